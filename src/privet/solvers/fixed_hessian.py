"""Noisy fixed-Hessian descent: one private second moment of the features preconditions every private gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event, Gaussian, calibrate
from privet.clipping import Clip, LatticeSum
from privet.errors import InvalidParameter
from privet.noise import add_gaussian
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import GroupedProblem, LinearProblem
from privet.randomness import Random, system_random
from privet.solvers.descent import Release, check_release, descended, guaranteed, starting_point
from privet.solvers.gradient import PrivateGradient
from privet.solvers.planning import public_records
from privet.solvers.result import Result
from privet.solvers.updates import GradientStep

__all__ = ["fixed_hessian_descent", "noisy_gram"]

Vector = NDArray[np.float64]


def fixed_hessian_descent(
    problem: LinearProblem | GroupedProblem,
    *,
    budget: Budget,
    steps: int = 40,
    clip: float,
    hessian_share: float = 0.25,
    step_size: float = 1.0,
    momentum: float = 0.8,
    floor: float = 2.0,
    tail: float = 0.5,
    neighbours: Neighbours = "replace_one",
    release: Release = "tail_average",
    records: int | None = None,
    also: tuple[Event, ...] = (),
    start: Vector | None = None,
    random: Random | None = None,
) -> Result:
    """θ ← Π(θ − η P v), P the inverse of a private upper bound on the Hessian, v momentum of private gradients.

    For a GLM the Hessian is at most s · XᵀX/n, s the loss's smoothness (1/4 for the logistic loss). XᵀX is released
    once, with noise, for `hessian_share` of the budget; its eigenvalues are floored at what noise alone can reach.

    Theorem: ‖xxᵀ‖_F = ‖x‖² ≤ row_norm²; as a vector the symmetric matrix is (diagonal, √2 × upper triangle), so
    the upper triangle needs only 1/√2 of the noise. All releases are Gaussian and compose exactly.

    Parameters
    ----------
    problem : a generalised linear model with a smooth loss
    steps : private gradients to take
    clip : per-record bound on the gradient norm
    hessian_share : of the squared signal-to-noise ratio, in (0, 1)
    step_size : η, relative to the inverse curvature: 1 is a full step
    floor : least eigenvalue of the released XᵀX, in units of the noise's typical spectral norm
    tail : which part of the path the tail average is over, in (0, 1]
    also : releases made before, e.g. of feature ranges, that the same budget has to cover
    others : as in `dp_sgd`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import fixed_hessian_descent
    >>> problem = glm("half_squared", [[1.0, 0.0], [0.0, 0.1]] * 500, [0.5, 0.0] * 500, row_norm=1.0)
    >>> fixed_hessian_descent(problem, budget=Budget(epsilon=1, delta=1e-6), clip=1.0).plan.event
    Gaussian(noise_multiplier=...) * 40 + Gaussian(noise_multiplier=...)
    """
    check_budget(budget)
    check_release(release)
    if not 0 < hessian_share < 1:
        raise InvalidParameter(
            f"Expected hessian_share in (0, 1), got {hessian_share!r}: both the Hessian and the gradients need a part "
            "of the budget. Use 0.25."
        )
    if not (math.isfinite(floor) and floor > 0):
        raise InvalidParameter(
            f"Expected floor to be a positive finite number, got {floor!r}: the noisy matrix must be invertible. Use 2."
        )
    if not 0 < tail <= 1:
        raise InvalidParameter(
            f"Expected tail in (0, 1], got {tail!r}: the average is over the last part of the path. Use 0.5."
        )
    smoothness = _smoothness(problem)
    random = random if random is not None else system_random()
    count = public_records(problem, neighbours, records)
    blank = Plan(bounding=Clip(clip=clip), steps=steps, records=count, neighbours=neighbours, unit=problem.unit)
    ratio = math.sqrt((1 - hessian_share) / (hessian_share * steps))

    def priced(noise: float) -> Plan:
        return replace(blank, noise_multiplier=noise, also=(Gaussian(noise_multiplier=noise * ratio), *also))

    noise = calibrate(lambda s: priced(s).event, epsilon=budget.epsilon, delta=budget.delta, neighbours=neighbours)
    plan = priced(noise)
    guarantee = guaranteed(plan, budget.delta, random)
    private = PrivateGradient(problem, plan, random=random)
    theta = starting_point(problem, start)

    moment = noisy_gram(problem.moment_sum(most_records=plan.most_records), noise * ratio, random)
    least = floor * math.sqrt(2 * len(moment)) * noise * ratio * problem.row_norm**2
    values, vectors = np.linalg.eigh(moment)
    curvature = smoothness * np.maximum(values, least) / count + problem.ridge.alpha
    inverse = (vectors / curvature) @ vectors.T
    return descended(
        lambda point: inverse @ private(point),
        problem=problem,
        plan=plan,
        guarantee=guarantee,
        start=theta,
        steps=steps,
        update=GradientStep(step_size=step_size, momentum=momentum),
        release=release,
        tail=tail,
    )


def noisy_gram(total: LatticeSum, multiplier: float, random: Random) -> Vector:
    """Release a sum of x xᵀ: noise of `multiplier` × row_norm² on the diagonal, 1/√2 of that above it, mirrored."""
    stddev = math.nextafter(multiplier * total.clip, math.inf)
    size = len(total.units)
    above = np.triu_indices(size, 1)
    released = np.zeros((size, size))
    released[above] = add_gaussian(
        total.units[above],
        step=total.step,
        noise_stddev=stddev * math.sqrt(0.5) * (1 + 2.0**-50),
        random=random,
    )
    released += released.T
    diagonal = np.diag_indices(size)
    released[diagonal] = add_gaussian(total.units[diagonal], step=total.step, noise_stddev=stddev, random=random)
    return released


def _smoothness(problem: LinearProblem | GroupedProblem) -> float:
    if not isinstance(problem, LinearProblem | GroupedProblem):
        raise InvalidParameter(
            f"Expected a generalised linear model, got {type(problem).__name__}: only there is the Hessian bounded by "
            "the features' second moment. Use glm(...), or a first-order solver."
        )
    found = problem.loss.smoothness(problem.prediction_bound)
    if not found:
        raise InvalidParameter(
            f"Expected a smooth loss with some curvature, got {problem.loss!r}: a step along its inverse Hessian is "
            "not defined. Use a smooth loss such as 'logistic', 'huber' or 'smoothed_hinge', or a bounded domain."
        )
    return found
