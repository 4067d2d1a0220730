"""DP-Newton: each step a private gradient, then a private Newton direction for it (double noise)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privet.accounting import Event, Gaussian, calibrate
from privet.clipping import Clip, LatticeSum
from privet.clipping.rules import FloatArray
from privet.errors import InvalidParameter
from privet.geometry.base import length
from privet.losses import LogisticLoss
from privet.noise import add_gaussian
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import LinearProblem
from privet.randomness import Random, system_random
from privet.solvers.descent import Release, check_release, descended, guaranteed, starting_point
from privet.solvers.fixed_hessian import _smoothness
from privet.solvers.gradient import PrivateGradient
from privet.solvers.planning import public_records
from privet.solvers.result import Result
from privet.solvers.updates import GradientStep
from privet.sums import curvature_sum

__all__ = ["direction_sensitivity", "newton_descent", "newton_direction"]

Vector = NDArray[np.float64]
_SOLVE = 2.0**-12  # error of the computed direction, in units of its sensitivity
_UNIT = 2.0**-53


def newton_descent(
    problem: LinearProblem,
    *,
    budget: Budget,
    steps: int = 10,
    clip: float,
    damping: float | None = None,
    direction_share: float = 0.5,
    step_size: float = 1.0,
    majorise: bool = True,
    neighbours: Neighbours = "replace_one",
    release: Release = "last",
    records: int | None = None,
    also: tuple[Event, ...] = (),
    start: Vector | None = None,
    random: Random | None = None,
) -> Result:
    """θ ← Π(θ − η ((H + λI)⁻¹ g̃ + noise)), g̃ a private gradient, H the Hessian of the average loss at θ.

    g̃ is public once it is released; only H still reads the records, and one record turns (H + λI)⁻¹ by at most
    κ/(λ² + λκ) in spectral norm, κ = smoothness · row_norm² ÷ n. So the direction is released with Gaussian noise in
    proportion to ‖g̃‖. λ is the ridge plus `damping`.

    Promise: `result.guarantee` meets `budget`. No excess risk is claimed.
    Theorem: Ganesh, Haghifam, Steinke and Thakurta 2023, "Faster differentially private convex optimization via
    second-order methods", double noise with λ added. Under "replace_one" the same bound holds without a factor 2:
    docs/proofs/drawing.md, section 5. All releases are Gaussian and compose exactly.
    Cost: a step is two passes over the records, one of them O(d²) a record, and one solve of d equations.

    Parameters
    ----------
    problem : a generalised linear model with a smooth loss
    budget : the (epsilon, delta) to meet
    steps : Newton steps; each releases a gradient and a direction
    clip : per-record bound on the gradient norm
    damping : added to the Hessian, in the unit of curvature × row_norm²; public. By default about as
        much as it takes for the direction's noise to shrink the gradient's norm rather than to blow it up:
        κ√(n × noise ÷ (2 × sensitivity))
    direction_share : of the squared signal-to-noise ratio, in (0, 1), for the directions; the gradients have the rest
    step_size : η; 1 is a full Newton step
    majorise : for the logistic loss, take the curvature tanh(z/2)/(2z) of the parabola that touches the loss at z and
        is nowhere below it, in place of its own: then a full step never overshoots. Other losses keep their own
    others : as in `dp_sgd`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import newton_descent
    >>> problem = glm("logistic", [[1.0, 0.0], [0.0, 0.1]] * 5000, [0, 1] * 5000, row_norm=1.0)
    >>> newton_descent(problem, budget=Budget(epsilon=1, delta=1e-6), clip=1.0, steps=5).plan.event
    Gaussian(noise_multiplier=...) * 5 + Gaussian(noise_multiplier=...) * 5
    """
    check_budget(budget)
    check_release(release)
    if not 0 < direction_share < 1:
        raise InvalidParameter(
            f"Expected direction_share in (0, 1), got {direction_share!r}: both the gradients and the directions need "
            "a part of the budget. Use 0.5."
        )
    smoothness = _smoothness(problem)
    if not isinstance(problem, LinearProblem):
        raise InvalidParameter(
            "Expected a problem of records, got one of people with many rows: the sum of their curvatures is bounded "
            "row by row here. Use fixed_hessian_descent, dp_gd or dp_sgd."
        )
    if len(problem.shape) > 1:
        raise InvalidParameter(
            f"Expected a loss with one prediction a record, got {problem.loss!r}: its Hessian couples the classes, for "
            "which no sensitivity is proven here. Use dp_gd or dp_sgd, or one model a class."
        )
    random = random if random is not None else system_random()
    count = public_records(problem, neighbours, records)
    blank = Plan(bounding=Clip(clip=clip), steps=steps, records=count, neighbours=neighbours)
    ratio = math.sqrt((1 - direction_share) / direction_share)

    def priced(noise: float) -> Plan:
        return replace(blank, noise_multiplier=noise, also=(Gaussian(noise_multiplier=noise * ratio) * steps, *also))

    noise = calibrate(lambda s: priced(s).event, epsilon=budget.epsilon, delta=budget.delta, neighbours=neighbours)
    plan = priced(noise)
    influence = smoothness * problem.row_norm**2 / count
    multiplier = _multiplier(noise * ratio, neighbours)
    added = damping if damping is not None else influence * math.sqrt(max(multiplier * count / 2, 1.0))
    total_damping = _check_damping(added, problem.ridge.alpha)
    sensitivity = direction_sensitivity(influence, total_damping, problem.shape[0], plan.most_records)
    guarantee = guaranteed(plan, budget.delta, random)
    private = PrivateGradient(problem, plan, random=random)
    theta = starting_point(problem, start)
    curvature = _majorised if majorise and isinstance(problem.loss, LogisticLoss) else problem.loss.curvature

    def direction(point: Vector) -> Vector:
        gradient = private(point)
        moments = curvature_sum(
            curvature,
            problem.table,
            problem.labels,
            point,
            smoothness=smoothness,
            most_records=plan.most_records,
        )
        found = newton_direction(moments, gradient, scale=smoothness / count, damping=total_damping, error=sensitivity)
        return _released(found, gradient, sensitivity, multiplier, random)

    return descended(
        direction,
        problem=problem,
        plan=plan,
        guarantee=guarantee,
        start=theta,
        steps=steps,
        update=GradientStep(step_size=step_size),
        release=release,
    )


def direction_sensitivity(influence: float, damping: float, d: int, most_records: int) -> float:
    """How far one record, emptied or exchanged, moves (H + λI)⁻¹ in spectral norm: κ/(λ² + λκ), rounded up.

    Refuses, on public facts, what is too ill-conditioned to be solved in floats to `_SOLVE` of that.
    Theorem: docs/proofs/drawing.md, sections 5 and 6.

    Examples
    --------
    >>> round(direction_sensitivity(0.001, 0.1, 5, 250), 6)
    0.09901
    """
    found = influence / (damping * (damping + influence)) * (1 + 2.0**-40)
    # ‖|M|‖ ≤ trace H + λ√d ≤ κ · records + λ√d; section 6
    rounding = 8 * (d + 8) * _UNIT * (influence * most_records + damping * (1 + math.sqrt(d))) / damping**2
    if not rounding <= _SOLVE * found or not 2.0**-300 <= found <= 2.0**300:
        raise InvalidParameter(
            f"Expected a damping at which {d} equations can be solved in floats, got {damping:g} in all: the rounding "
            "would be no longer small beside one record's influence. Use another damping, or fewer columns."
        )
    return found


def newton_direction(moments: LatticeSum, gradient: Vector, *, scale: float, damping: float, error: float) -> Vector:
    """(scale · moments + damping · I)⁻¹ gradient, to within `_SOLVE` × error × ‖gradient‖, certainly. Private.

    Theorem: as the matrix is at least damping · I, the error is at most ‖residual‖ ÷ damping; and the residual is
    computed with a bound on its own rounding. docs/proofs/drawing.md, section 6.
    """
    matrix = moments.units.astype(np.float64) * (moments.step * scale)
    matrix[np.diag_indices_from(matrix)] += damping
    allowed = _SOLVE * error * float(np.linalg.norm(gradient))
    try:
        factor = cho_factor(matrix)
        found: Vector = cho_solve(factor, gradient)
        found += cho_solve(factor, gradient - matrix @ found)
    except (LinAlgError, ValueError):  # it never is, but if so, nobody must see it
        found = np.zeros_like(gradient)
    residual = float(np.linalg.norm(gradient - matrix @ found))
    size = float(np.linalg.norm(np.abs(matrix) @ np.abs(found))) + float(np.linalg.norm(gradient))
    if (residual + (len(gradient) + 8) * _UNIT * size) * (1 + 2.0**-30) <= allowed * damping:
        return found
    return _exact_solution(moments, gradient, scale, damping)


def _exact_solution(moments: LatticeSum, gradient: Vector, scale: float, damping: float) -> Vector:
    """The same in fractions, by elimination: slow, and never needed unless a linear algebra library misbehaves."""
    factor = Fraction(moments.step * scale)
    rows = [
        [factor * int(entry) for entry in row] + [Fraction(g)] for row, g in zip(moments.units, gradient, strict=True)
    ]
    for i, row in enumerate(rows):
        row[i] += Fraction(damping)
    for i, pivot in enumerate(rows):  # positive definite: no pivot is ever 0
        for row in rows[i + 1 :]:
            ratio = row[i] / pivot[i]
            row[i:] = [a - ratio * b for a, b in zip(row[i:], pivot[i:], strict=True)]
    found: list[Fraction] = []
    for i in reversed(range(len(rows))):
        known = sum(a * b for a, b in zip(rows[i][i + 1 : -1], reversed(found), strict=True))
        found.append((rows[i][-1] - known) / rows[i][i])
    return np.array([float(x) for x in reversed(found)])


def _released(direction: Vector, gradient: Vector, sensitivity: float, multiplier: float, random: Random) -> Vector:
    """Add the second noise; where the public gradient is nothing, so is the direction."""
    size = length(gradient) * (1 + 2.0**-30)
    if not size <= 2.0**300:
        raise InvalidParameter(
            "Expected the descent to stay finite, got a gradient beyond all bounds: the step size is too large. "
            "Use a smaller step size, more damping, or a bounded domain."
        )
    if size < 2.0**-300:
        return np.zeros_like(gradient)
    moved = sensitivity * size
    step = math.ldexp(1.0, math.frexp(moved)[1] - 31)
    # the move itself, both ends' error of the solution, and both ends' rounding to the lattice
    most = moved * (1 + 2 * _SOLVE) + math.sqrt(direction.size) * step
    with np.errstate(over="ignore"):
        units = np.clip(np.rint(direction / step), -(2.0**61), 2.0**61).astype(np.int64)
    return add_gaussian(units, step=step, noise_stddev=math.nextafter(multiplier * most, math.inf), random=random)


def _majorised(z: FloatArray, y: FloatArray) -> FloatArray:
    """tanh(z/2)/(2z), between 0 and ¼; Jaakkola and Jordan 2000."""
    size = np.maximum(np.abs(z), 2.0**-20)  # below, it is ¼ to the last bits
    return np.asarray(np.tanh(size / 2) / (2 * size))


def _multiplier(noise: float, neighbours: Neighbours) -> float:
    """Noise ÷ sensitivity. An event's multiplier is noise ÷ clip, and a record exchanged is priced at 2 × clip."""
    return noise / 2 if neighbours == "replace_one" else noise


def _check_damping(damping: float, ridge: float) -> float:
    """Return λ, all that is added to the Hessian."""
    real = isinstance(damping, int | float | np.number) and not isinstance(damping, bool)
    if not (real and math.isfinite(damping) and damping >= 0 and damping + ridge > 0):
        raise InvalidParameter(
            f"Expected damping to be a finite number of at least 0, and above 0 without a ridge, got {damping!r}: it "
            "keeps the Hessian invertible. Leave it out, or use a small part of smoothness × row_norm²."
        )
    return float(damping) + ridge
