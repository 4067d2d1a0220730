"""The last of the budget: on the constant alone where slopes were dropped, else on the descent that found them."""

import math
from dataclasses import dataclass, replace

import numpy as np

from privet.arrays import Vector
from privet.clipping import Clip
from privet.plan import Meter, Release
from privet.problems.linear_model import LinearModel
from privet.solvers.gradient import PrivateGradient
from privet.solvers.keeping import Keeping
from privet.solvers.solver import Result, Solver
from privet.solvers.stochastic_descent import DPSGD, along_gradients
from privet.solvers.updates import GradientStep

SETTLED = "last gradients"
_BESIDE = 0.5  # of the length of the constant, at most, that a score has beside it


@dataclass(frozen=True, kw_only=True, slots=True)
class Settling:
    """A few last gradients, for what was chosen: of the constant alone, or of all coefficients.

    A descent in all coefficients at once leaves the constant as noisy as any of them, and a choice that drops the
    slopes leaves that. Here all of a record's influence is spent on one number: step j is 1/j of a Newton step, so that
    the end is an average of what all of them say; the curvature is a guess in public. Where all slopes of a plain
    descent were kept, it goes on instead.

    Promise: its releases are those of `releases`, and no more; of which coefficients they are is public by then.
    Theorem: the Gaussian mechanism on clipped sums; docs/proofs/whitening.md, section 4.

    Parameters
    ----------
    clip : to what a record's gradient is clipped
    curvature : of the average loss along predictions
    steps : how many
    longest : how far one step may move predictions

    Examples
    --------
    >>> Settling(clip=0.2, curvature=0.5).releases(noise_multiplier=10.0)[0].times
    5
    """

    clip: float
    curvature: float
    steps: int = 5
    longest: float = 0.5

    def releases(self, *, noise_multiplier: float) -> tuple[Release, ...]:
        """All steps, together as one Gaussian release of `noise_multiplier`."""
        each = math.nextafter(noise_multiplier * math.sqrt(self.steps), math.inf)
        of, bound = "gradients of the loss, of the constant or of all coefficients", Clip(clip=self.clip)
        return (Release(name=SETTLED, of=of, bound=bound, times=self.steps, noise_multiplier=each),)

    def run(self, problem: LinearModel, theta: Vector, constant: float, meter: Meter) -> Vector:
        """θ with another constant; its last row is of the constant, which is `constant` in every row."""
        slopes = np.append(theta[:-1], 0.0)
        rows, shift = Beside(size=float(np.linalg.norm(slopes))), float(theta[-1]) * constant
        ask = PrivateGradient(problem.along(slopes, rows, columns=2), meter, SETTLED)
        for step in range(1, self.steps + 1):
            slope = float(ask(rows.coefficients(shift))[1]) * rows.reach
            shift -= float(np.clip(slope / self.curvature / step, -self.longest, self.longest))
        return np.append(theta[:-1], shift / constant)

    def go_on(self, problem: LinearModel, path: Vector, update: GradientStep, tail: float, meter: Meter) -> Vector:
        """The average of the last part of a descent's path that goes on for as many steps, as if it had not paused."""
        course = along_gradients(meter.plan, problem, meter, update, name=SETTLED)
        points = list(path)
        for _ in range(self.steps):
            carried = update.momentum * (points[-1] - points[-2])
            points.append(points[-1] - update.step_size * course.direction(points[-1]) + carried)  # type: ignore[operator]
        return last_part(np.array(points), tail)


def settled(
    solver: Solver, problem: LinearModel, keeping: Keeping, settling: Settling, constant: float, meter: Meter
) -> Result:
    """Descend, choose what to keep, and spend what is left on that; all as the meter's plan has it.

    `constant` is what the constant is in every row, by which its coefficient is multiplied.
    """
    plain = (
        isinstance(solver, DPSGD) and isinstance(solver.update, GradientStep) and not callable(solver.update.step_size)
    )
    if plain:
        solver = replace(solver, release="all")
    result = solver.run(meter.plan, problem, meter=meter)
    found = result.coef if result.iterates is None else last_part(result.iterates, solver.tail)
    kept = keeping.run(problem, found, meter)
    if plain and kept[:-1].any() and np.array_equal(kept, found):
        coef = settling.go_on(problem, result.iterates, solver.update, solver.tail, meter)
    else:
        coef = settling.run(problem, kept, constant, meter)
    return replace(result, coef=coef, iterates=None)


def last_part(points: Vector, tail: float) -> Vector:
    """The average of the last part of a path of so many points, the start among them."""
    steps = len(points) - 1
    return np.asarray(points[steps - math.floor(steps * tail) :].mean(axis=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Rows (score, 1) of norm at most 1, nearly all of it the constant; scores are within ±`size`. A value to send."""

    size: float

    @property
    def reach(self) -> float:
        """The longest row before it is shortened."""
        return math.hypot(_BESIDE, 1.0) if self.size else 1.0

    def __call__(self, score: Vector) -> Vector:
        """A row of each score. Private in, private out, number by number."""
        part = score * (_BESIDE / self.size) if self.size else np.zeros_like(score)
        return np.column_stack([np.clip(part, -_BESIDE, _BESIDE), np.ones_like(part)]) / self.reach

    def coefficients(self, shift: float) -> Vector:
        """Of its rows, with which their predictions are the score and so much more."""
        return np.array([self.size / _BESIDE, shift]) * self.reach
