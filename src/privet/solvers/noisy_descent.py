"""Noisy (projected) gradient descent: full batches, a proven Lipschitz constant, parameters by theorem."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Declared
from privet.errors import InvalidParameter
from privet.geometry.whole_space import WholeSpace
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import GroupedProblem, LinearProblem, Problem
from privet.randomness import Random
from privet.solvers.descent import Release, check_release, private_descent
from privet.solvers.planning import public_records
from privet.solvers.result import Result
from privet.solvers.updates import GradientStep, StepSize
from privet.theory import plan_for
from privet.theory.prescription import Method, Prescription

__all__ = ["noisy_gradient_descent"]

_METHODS: dict[Release, Method] = {
    "average": "average",
    "all": "last_linear",  # of all iterates, coef is the last
    "last": "last_linear",
    "tail_average": "average",
}
_PROVEN: dict[Method, tuple[Release, ...]] = {
    "average": ("average",),
    "rank": ("average",),
    "last_linear": ("last", "all"),
    "last": ("last", "all"),
}


def noisy_gradient_descent(
    problem: Problem,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    release: Release = "average",
    method: Method | None = None,
    steps: int | None = None,
    step_size: StepSize | None = None,
    radius: float | None = None,
    rank: int | None = None,
    lipschitz: float | None = None,
    records: int | None = None,
    max_steps: int = 5_000,
    start: NDArray[np.float64] | None = None,
    random: Random | None = None,
) -> Result:
    """w_t = Π(w_{t−1} − η (∇L(w_{t−1}) + noise)), with T, η and noise by theorem unless given.

    On a bounded domain this is noisy projected gradient descent (lecture 13, Wu, algorithm 2); on the whole space,
    noisy gradient descent, also called Langevin (lecture 13, Brown, algorithm 1), whose bound depends on the rank of
    the data and not on d. Gradients are bounded by the Lipschitz constant that loss, rows and domain prove; it is
    enforced, never believed.

    Promise: `result.guarantee` meets `budget`; `result.bound` is the proven excess risk of `coef` over the domain. It
    is None where no theorem applies: another release than the method's, a loss that is not convex, per-record losses.

    Parameters
    ----------
    problem : what is minimised
    budget : the (epsilon, delta) to meet
    neighbours : "replace_one" by default, the lectures' relation
    release : "average", "last", "all" or "tail_average": one price, different theorems
    method : the theorem, if not the release's usual one: "last" for steps c/√t, "rank" for the rank bound
    steps : noisy gradients to take; by theorem if left out, at most `max_steps`
    step_size : η or a function of t = 1, 2, …; by theorem if left out. Given, no bound is claimed
    radius : a public bound on ‖start − minimiser‖; the domain's radius by default; required on the whole space
    rank : a public bound on the rank of the records, for method="rank"
    lipschitz : a bound on gradient norms, if none is proven, or a smaller one; enforced by clipping
    records : under "add_remove", a public guess of the number of records
    start : public; the domain's centre by default
    random : the operating system's by default; a fixed seed voids the guarantee

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, glm, l2_ball, noisy_gradient_descent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)) / 4
    >>> y = X @ [2.0, -1.0, 0.5] > 0
    >>> problem = glm("logistic", X, y, domain=l2_ball(radius=5), row_norm=1.0)
    >>> result = noisy_gradient_descent(problem, budget=Budget(epsilon=1, delta=1e-6))
    >>> result.coef.shape, result.guarantee.epsilon <= 1, round(result.bound, 3)
    ((3,), True, 0.079)
    """
    check_budget(budget)
    check_release(release)
    count = public_records(problem, neighbours, records)
    gradient_norm = _lipschitz(problem, lipschitz)
    blank = Plan(
        bounding=Declared(lipschitz=gradient_norm),
        steps=1 if steps is None else steps,
        records=count,
        neighbours=neighbours,
        unit=problem.unit,
    )
    distance = _distance(problem, radius, start)
    usual = method if method is not None else _METHODS[release]
    _check_domain(usual, problem)
    if steps is not None and step_size is not None:
        prescription = None
    else:
        prescription = _prescribed(
            usual, problem, count, distance, gradient_norm, budget, neighbours, rank, steps, max_steps
        )
    if prescription is not None and prescription.noisy_steps is not None:
        blank = replace(blank, steps=prescription.noisy_steps)
    plan = blank.calibrated(budget)
    bound = None
    if prescription is not None and step_size is None and release in _PROVEN[usual] and _convex(problem, gradient_norm):
        bound = prescription.excess_risk
    eta = step_size if step_size is not None else prescription.step_size_at  # type: ignore[union-attr]
    return private_descent(
        problem,
        plan,
        update=GradientStep(step_size=eta),
        release=release,
        delta=budget.delta,
        start=start,
        random=random,
        bound=bound,
    )


def _prescribed(
    method: Method,
    problem: Problem,
    count: int,
    distance: float,
    gradient_norm: float,
    budget: Budget,
    neighbours: Neighbours,
    rank: int | None,
    steps: int | None,
    max_steps: int,
) -> Prescription:
    """The theorem's parameters, with at least one noisy gradient."""
    width = problem.domain.diameter if method == "last" else None  # other theorems need the distance alone
    reach = distance if width is None else min(max(distance, width / 2), width)

    def ask(iterates: int | None) -> Prescription:
        return plan_for(
            n=count,
            d=math.prod(problem.shape),
            radius=reach,
            diameter=width,
            lipschitz=gradient_norm,
            budget=budget,
            neighbours=neighbours,
            method=method,
            rank=rank,
            steps=iterates,
            max_steps=None if iterates is not None else max_steps,
        )

    extra = 0 if method == "last" else 1  # averages and linear decay count the start among their T iterates
    found = ask(None if steps is None else steps + extra)
    return found if found.noisy_steps else ask(1 + extra)


def _check_domain(method: Method, problem: Problem) -> None:
    """Refuse a theorem that does not hold on such a domain."""
    if method == "rank" and not isinstance(problem.domain, WholeSpace):
        raise InvalidParameter(
            f"Expected the whole space as domain for method='rank', got {problem.domain!r}: a projection mixes noise "
            "into the span of the records. Leave the domain out, or use method='average'."
        )
    if method == "last" and not math.isfinite(problem.domain.diameter):
        raise InvalidParameter(
            f"Expected a bounded domain for method='last', got {problem.domain!r}: steps c/√t need its diameter. "
            "Bound the domain, or use method='last_linear'."
        )


def _convex(problem: Problem, gradient_norm: float) -> bool:
    """Whether the gradients, as bounded, are those of a convex loss: clipping keeps that only for one output."""
    linear = isinstance(problem, LinearProblem | GroupedProblem)
    if not (linear and problem.loss.convex and problem.ridge.alpha == 0):  # type: ignore[attr-defined]  # linear
        return False
    proven = problem.lipschitz
    one = isinstance(problem, LinearProblem) and problem.loss.outputs == 1  # and one row a record
    return one or (proven is not None and gradient_norm >= proven)


def _lipschitz(problem: Problem, declared: float | None) -> float:
    found = declared if declared is not None else problem.lipschitz
    if found is None:
        raise InvalidParameter(
            "Expected a problem whose gradients have a proven bound, got one without: the theorem needs it. "
            "Bound the domain and the labels, pass lipschitz=... (enforced by clipping), or use dp_gd with a clip."
        )
    return found


def _distance(problem: Problem, radius: float | None, start: NDArray[np.float64] | None) -> float:
    found = radius
    if found is None:
        found = problem.domain.radius if start is None else problem.domain.diameter
    if not (math.isfinite(found) and found > 0):
        raise InvalidParameter(
            f"Expected a finite positive radius, got {found!r}: on an unbounded domain the step size needs a public "
            "guess of how far the minimiser is. Pass radius=..., chosen without the data, or a bounded domain."
        )
    return found
