"""From what a caller says to a plan: shared by the solvers that take a budget or a finished plan."""

from __future__ import annotations

from privet.accounting import Event
from privet.clipping import Bounding
from privet.errors import InvalidParameter
from privet.plan import Plan
from privet.privacy import Budget, Neighbours
from privet.problems import Problem
from privet.sampling import Sampling

__all__ = ["planned", "public_records"]


def public_records(problem: Problem, neighbours: Neighbours, records: int | None) -> int:
    """The number of records that may be used in public: the true one, or under "add_remove" the caller's guess."""
    return public_count(problem.records, neighbours, records)


def public_count(true: int, neighbours: Neighbours, records: int | None) -> int:
    """As `public_records`, of a number that is private under "add_remove"."""
    if neighbours != "add_remove":
        return true if records is None else records
    if records is None:
        raise InvalidParameter(
            "Expected records=... under 'add_remove', got none: there the number of records is private, and rates, "
            "divisors and steps must not be computed from it. Pass a public guess of it."
        )
    return records


def planned(
    problem: Problem,
    *,
    bounding: Bounding,
    sampling: Sampling,
    steps: int,
    budget: Budget,
    neighbours: Neighbours,
    records: int | None,
    also: tuple[Event, ...] = (),
) -> Plan:
    """A plan with the least noise that meets the budget, of which `also` is paid too."""
    count = public_records(problem, neighbours, records)
    plan = Plan(
        bounding=bounding,
        sampling=sampling,
        steps=steps,
        records=count,
        neighbours=neighbours,
        unit=problem.unit,
        also=also,
    )
    return plan.calibrated(budget)
