"""What a solver is: a value that makes a plan from public facts, and runs it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from privet.accounting import calibrate
from privet.arrays import Vector
from privet.errors import InvalidParameter
from privet.plan import Meter, Plan, Release
from privet.plan.plan import check_budget
from privet.privacy import Budget, Guarantee, Neighbours
from privet.problems import Facts, Problem, facts_of
from privet.randomness import Random

Releases = tuple[Release, ...]
Start = Vector | None
"""Where a descent begins; public. None for the domain's centre."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Coefficients that may be published, and the statement that goes with them.

    `bound` is the proven bound on the expected excess risk over the domain, where a theorem gives one: for the loss
    as it was bounded, which is the loss itself if nothing was clipped. `iterates` is there only if all were released.
    Everything here is public once the result is.
    """

    coef: Vector
    guarantee: Guarantee
    plan: Plan
    bound: float | None = None
    iterates: Vector | None = None

    def __repr__(self) -> str:
        return f"Result(shape={self.coef.shape}, {self.guarantee})"


@runtime_checkable
class Solver(Protocol):
    """A frozen value with all of an algorithm's public settings.

    Promise of `plan`: it is made from public facts alone, meets the budget together with the releases in `before` and
    `after`, whose noise is known, and has these first and last. Promise of `run`: it makes the solver's own releases of
    the plan through the meter, all of them, in order, and nothing else.
    """

    def plan(self, facts: Facts, budget: Budget, *, before: Releases = (), after: Releases = ()) -> Plan:
        """What will be released, calibrated to the budget."""

    def run(self, plan: Plan, problem: Problem, *, meter: Meter | None = None, random: Random | None = None) -> Result:
        """Run the plan on a problem; `meter` holds it already if other releases of it came before."""


def solve(
    solver: Solver,
    problem: Problem,
    budget: Budget,
    neighbours: Neighbours,
    *,
    records: int | None = None,
    before: Releases = (),
    random: Random | None = None,
    **settings: Any,
) -> Result:
    """Plan and run in one go: what the functions named after the algorithms do.

    Parameters
    ----------
    problem : what is minimised
    budget : the (epsilon, delta) to meet
    neighbours : which data sets must look alike; "replace_one" by default in those functions
    records : under "add_remove", a public guess of the number of records
    before : releases made already, e.g. of feature ranges, that the same budget has to cover
    random : the operating system's by default; a fixed seed invalidates the guarantee
    settings : what else the solver's `run` takes, e.g. `start`, public; the domain's centre by default

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import FixedHessian, solve
    >>> problem = glm("half_squared", [[1.0, 0.0], [0.0, 0.1]] * 500, [0.5, 0.0] * 500, row_norm=1.0)
    >>> result = solve(FixedHessian(clip=1.0), problem, budget=Budget(epsilon=1, delta=1e-6), neighbours="zero_out")
    >>> result.guarantee.epsilon <= 1
    True
    """
    check_budget(budget)
    plan = solver.plan(facts_of(problem, neighbours, records), budget, before=before)
    meter = ready(plan, None, random, made=before)
    result = solver.run(plan, problem, meter=meter, **settings)
    meter.finish()
    return result


def ready(plan: Plan, meter: Meter | None, random: Random | None, *, made: Releases = ()) -> Meter:
    """The meter of a run: the one that is given, or a new one, past the releases that were made before."""
    if meter is not None:
        if meter.plan != plan:
            raise InvalidParameter(
                "Expected a meter that holds this plan, got one with another: what it draws is not what was planned. "
                "Make the meter of this plan."
            )
        return meter
    fresh = Meter(plan, random=random)
    for release in made:
        for _ in range(release.times):
            fresh.skip(release.name)
    return fresh


def epsilon_beside(planned: Callable[[float], Plan], budget: Budget, neighbours: Neighbours) -> float:
    """The largest epsilon of a release beside others with which all of `planned(epsilon)` meets the budget."""
    return calibrate(
        lambda epsilon: planned(epsilon).event,
        epsilon=budget.epsilon,
        delta=budget.delta,
        neighbours=neighbours,
        between=(2.0**-30 * budget.epsilon, budget.epsilon),
    )
