"""What output and objective perturbation ask of a problem: public facts, checked before any record is read."""

from __future__ import annotations

import math

from privet.clipping.lattice import MOST_RECORDS, check_clip, check_count
from privet.errors import InvalidParameter
from privet.privacy import Neighbours
from privet.problems import LinearProblem, Problem
from privet.solvers.planning import public_records

__all__ = ["bounded_records", "default_reach", "linear_problem", "smoothness"]


def linear_problem(problem: Problem, clip: float | None) -> tuple[LinearProblem, float]:
    """The problem and the bound on its gradients, if its clipped loss is convex and smooth by public facts."""
    if not isinstance(problem, LinearProblem):
        raise InvalidParameter(
            f"Expected a generalised linear model, got {type(problem).__name__}: only there is a clipped gradient that "
            "of a convex loss, which the proof needs. Use glm(...), or dp_sgd."
        )
    if not problem.loss.convex:
        raise InvalidParameter(
            f"Expected a convex loss, got {problem.loss!r}: its minimiser may jump when one record changes. "
            "Use a convex loss, or dp_sgd."
        )
    smoothness(problem)
    proven = problem.lipschitz
    if clip is None and proven is None:
        raise InvalidParameter(
            "Expected a problem whose gradients have a proven bound, got one without: nothing bounds what one record "
            "can do. Pass clip=..., bound the domain and the labels, or use a loss such as 'huber'."
        )
    found = check_clip(proven if clip is None else clip)  # type: ignore[arg-type]  # one of them is there
    if problem.loss.outputs > 1 and (proven is None or found < proven):
        raise InvalidParameter(
            f"Expected a clip of at least the proven bound {proven!r} for a loss with several outputs, got {found:g}: "
            "clipped, its gradient is no longer that of a convex loss. Leave clip out."
        )
    return problem, found


def smoothness(problem: LinearProblem) -> float:
    """The proven bound on the loss's second derivative over the domain; refuses a loss with a kink."""
    found = problem.loss.smoothness(problem.prediction_bound)
    if found is None:
        raise InvalidParameter(
            f"Expected a loss that is smooth on the domain, got {problem.loss!r}: at a kink the minimiser can be told "
            "exactly, noise or not, and no solver reaches it for certain. Use 'smoothed_hinge', 'huber' or 'logistic'."
        )
    return found


def bounded_records(
    problem: LinearProblem, neighbours: Neighbours, records: int | None, most_records: int | None
) -> tuple[int, int]:
    """The public number of records that scales the penalty, and a public bound on it that rounding is allowed for."""
    count = public_records(problem, neighbours, records)
    most = most_records if most_records is not None else MOST_RECORDS
    for name, value in (("records", count), ("most_records", most)):
        if not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            raise InvalidParameter(
                f"Expected {name} to be a whole number of at least 1, got {value!r}: the penalty is so many times λ, "
                f"and without records there is nothing to learn. Pass {name} as a plain int."
            )
    if neighbours != "add_remove":
        return count, problem.records
    check_count(problem.records, most)
    return count, most


def default_reach(problem: LinearProblem, clip: float, radius: float | None) -> float:
    """How far from the start a minimiser may be: the domain's radius, eight times the one given, or absurdly far."""
    if math.isfinite(problem.domain.radius):
        return problem.domain.radius
    if radius is not None:
        return 8.0 * radius
    bend = smoothness(problem) * problem.row_norm**2
    return 1024.0 * clip / bend if bend > 0 else 1024.0  # a clipped slope needs clip/bend to change its sign
