"""Each solver behind one face: a problem, settings and a budget in, a result out that also covers earlier releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from privet import accounting
from privet.accounting import Approximate, Event, calibrate
from privet.errors import InvalidParameter
from privet.estimators.defaults import Settings
from privet.privacy import Budget, Neighbours
from privet.problems import GroupedProblem, LinearProblem
from privet.randomness import Random
from privet.sampling import Poisson
from privet.solvers import (
    GradientStep,
    Result,
    dp_gd,
    dp_sgd,
    fixed_hessian_descent,
    newton_descent,
    objective_perturbation,
    output_perturbation,
)

__all__ = ["Solved", "solved"]

_OF_PEOPLE = ("fixed_hessian", "gradient", "sgd")
_DELTA_SHARE = 0.9  # of delta, for a release that is no Gaussian, beside others that are


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """What a solver found, and the event of the whole fit."""

    result: Result
    event: Event


def solved(
    problem: LinearProblem | GroupedProblem,
    settings: Settings,
    *,
    budget: Budget,
    neighbours: Neighbours,
    records: int | None,
    also: tuple[Event, ...],
    random: Random,
) -> Solved:
    """Solve with the settings' solver. Promise: `result.guarantee` meets `budget` with all of `also` in it."""
    if isinstance(problem, GroupedProblem) and settings.solver not in _OF_PEOPLE:
        raise InvalidParameter(
            f"Expected one of the solvers {', '.join(map(repr, _OF_PEOPLE))} with groups=..., got {settings.solver!r}: "
            "only what bounds a person's whole gradient is proven for people with many rows. Leave solver at 'auto'."
        )
    if settings.solver == "objective" and isinstance(problem, LinearProblem):
        return _objective(problem, settings, budget, neighbours, records, also, random)
    loss, step = problem.loss, settings.step_size
    shared: dict[str, Any] = {
        "budget": budget,
        "neighbours": neighbours,
        "records": records,
        "also": also,
        "random": random,
    }
    if settings.solver == "fixed_hessian":
        result = fixed_hessian_descent(
            problem,
            steps=settings.steps,
            clip=settings.clip,
            hessian_share=settings.hessian_share,
            step_size=step * (loss.smoothness() or 1.0) / settings.curvature(loss),
            momentum=settings.momentum,
            floor=settings.floor,
            tail=settings.tail,
            **shared,
        )
    elif settings.solver == "newton" and isinstance(problem, LinearProblem):
        result = newton_descent(problem, steps=settings.steps, clip=settings.clip, step_size=step, **shared)
    elif settings.solver == "output":
        several = loss.outputs > 1  # whose clipped gradient is that of no loss: they keep the proven bound
        result = output_perturbation(
            problem,
            clip=None if several else settings.clip,
            radius=None if problem.ridge.strength > 0 else settings.radius,
            **shared,
        )
    else:
        size = step / (settings.curvature(loss) + problem.ridge.strength)
        update = GradientStep(step_size=size, momentum=settings.momentum)
        path: dict[str, Any] = {"steps": settings.steps, "clip": settings.clip, "release": "tail_average"}
        if settings.solver == "sgd":
            result = dp_sgd(problem, sampling=Poisson(rate=settings.rate), update=update, **path, **shared)
        else:
            result = dp_gd(problem, update=update, **path, **shared)
    return Solved(result=result, event=result.plan.event)


def _objective(
    problem: LinearProblem | GroupedProblem,
    settings: Settings,
    budget: Budget,
    neighbours: Neighbours,
    records: int | None,
    also: tuple[Event, ...],
    random: Random,
) -> Solved:
    """Objective perturbation, which is priced as one (ε, δ), in what the other releases leave of the budget."""
    left = budget
    if also:
        delta = _DELTA_SHARE * budget.delta
        epsilon = calibrate(
            lambda e: sum(also, start=Approximate(epsilon=e, delta=delta)),
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=neighbours,
            between=(2.0**-30 * budget.epsilon, budget.epsilon),
        )
        left = Budget(epsilon=epsilon, delta=delta)
    result = objective_perturbation(
        problem, budget=left, clip=settings.clip, neighbours=neighbours, records=records, random=random
    )
    event = sum(also, start=result.plan.event)
    if not also:
        return Solved(result=result, event=event)
    whole = accounting.guarantee(event, delta=budget.delta, neighbours=neighbours)
    whole = replace(whole, assumptions=(*whole.assumptions, result.plan.bounding.describe()))
    if random.void:
        whole = whole.invalidate("fixed seed: whoever knows it can subtract the noise")
    return Solved(result=replace(result, guarantee=whole), event=event)
