"""Honest probabilities: slope and intercept of a score that is public by now, by a few private Newton steps."""

import math
from dataclasses import dataclass

import numpy as np

from privet.arrays import Vector
from privet.clipping import Clip
from privet.losses import Loss, WeightedLoss
from privet.plan import Meter, Release
from privet.problems import GroupedProblem, LinearProblem
from privet.solvers.gradient import PrivateGradient

CALIBRATION = "calibration"
_WEIGHT = 0.7  # of the score beside the constant: as long as it, at 1/0.7 standard deviations
_AVERAGED = 4  # last steps, whose mean is taken
_MOST = 12.0  # logits
_SPREAD = 2.0**-10
_DRAWN = 1_000
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalibration:
    """Platt's scaling, privately: clipped gradients leave scores that are too sure or too shy, and a biased intercept.

    Of two classes, slope and intercept of the score are refitted to the same loss, on rows (score, 1) whose gradients
    are bounded without clipping; of several, the slope. Each step is a Newton step whose curvature is that of a
    standard normal score, which is public. A slope that does not stand out of its noise is shrunk towards 0, where only
    the constant is left. A penalty of the problem counts as it does in the descent before.

    Promise: its releases are those of `releases`, and no more.
    Theorem: the Gaussian mechanism on clipped sums; docs/proofs/whitening.md, section 4.

    Parameters
    ----------
    steps : private Newton steps
    several : whether there are several classes
    long : of two classes, standard deviations of a score beyond which it is cut

    Examples
    --------
    >>> Recalibration(several=False).releases(noise_multiplier=10.0)[0].times
    5
    """

    several: bool
    long: float = 2.0
    steps: int = 5

    def releases(self, *, noise_multiplier: float) -> tuple[Release, ...]:
        """All steps, together as one Gaussian release of `noise_multiplier`."""
        each = math.nextafter(noise_multiplier * math.sqrt(self.steps), math.inf)
        bound = Clip(clip=_SPREAD if self.several else 1.0)
        of = "slopes of the loss along the score" + ("" if self.several else " and the constant")
        size = 1 if self.several else 2
        release = Release(name=CALIBRATION, of=of, bound=bound, times=self.steps, noise_multiplier=each, size=size)
        return (release,)

    def run(self, problem: LinearProblem | GroupedProblem, theta: Vector, constant: float, meter: Meter) -> Vector:
        """θ with its slope and intercept recalibrated.

        The last row of θ is of the constant, which is `constant` in every row; the others' rows are whitened, so that
        the score has the norm of θ for its standard deviation.
        """
        spread = max(float(np.linalg.norm(theta[:-1])) * constant, 2.0**-40)
        run = self._several if self.several else self._two
        return run(problem, theta, constant, spread, meter)

    def _two(
        self, problem: LinearProblem | GroupedProblem, theta: Vector, constant: float, spread: float, meter: Meter
    ) -> Vector:
        slopes, reach = np.append(theta[:-1], 0.0), math.hypot(_WEIGHT * self.long, 1.0)
        pull = np.array([2 * problem.ridge.value(slopes / spread), 0.0])  # the penalty is half of it × slope²

        def rows(score: Vector) -> Vector:
            cut = np.clip(score / spread, -self.long, self.long) * _WEIGHT
            return np.column_stack([cut, np.ones_like(cut)]) / reach

        gradient = PrivateGradient(problem.along(slopes, rows, columns=2), meter, CALIBRATION)
        scale = np.array([reach / _WEIGHT, reach])  # from rows as they are to (score in standard deviations, 1)
        noise = gradient.noise_stddev * scale
        point = np.clip([spread, float(theta[-1]) * constant], -_MOST, _MOST)
        damping = np.diag(noise / np.maximum([point[0] / 2, 1.0], 2.0**-10))  # where the loss hardly bends, stay
        path = []
        for _ in range(self.steps):
            step = np.linalg.solve(
                _curvature(problem.loss, point, self.long) + damping + np.diag(pull),
                gradient(point * scale) * scale + pull * point,
            )
            point = np.clip(point - step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300)), -_MOST, _MOST)
            path.append(point)
        slope, intercept = np.mean(path[-_AVERAGED:], axis=0)
        # how sure it is that the slope is not 0: by the curvature on the way there, as none is left beyond
        near = _curvature(problem.loss, np.array([min(slope, 1.0), intercept]), self.long) + np.diag(pull)
        unsure = noise[0] * float(np.linalg.inv(near)[0, 0]) / math.sqrt(_AVERAGED)
        believed = max(0.0, 1 - (unsure / slope) ** 2) if slope > 0 else 0.0
        return np.append(theta[:-1] * (believed * slope / spread), intercept / constant)

    def _several(
        self, problem: LinearProblem | GroupedProblem, theta: Vector, constant: float, spread: float, meter: Meter
    ) -> Vector:
        gradient = PrivateGradient(problem, meter, CALIBRATION)
        direction = np.vstack([theta[:-1] / spread, np.zeros_like(theta[-1:])])
        slope, path, pull = 1.0, [], 2 * problem.ridge.value(direction)
        for _ in range(self.steps):
            point = np.vstack([theta[:-1] * slope, theta[-1:]])
            slant = gradient.slope(point, direction * _SPREAD) / _SPREAD
            bend = _several_curvature(problem.loss, point, constant, spread * slope) + pull
            slope = float(np.clip(slope - 0.8 * slant / bend / spread, slope / 2, 2 * slope))
            path.append(slope)
        found = theta.copy()
        found[:-1] *= float(np.mean(path[-_AVERAGED:]))
        return found


def _curvature(loss: Loss, point: Vector, long: float) -> Vector:
    """The Hessian in slope and intercept for a standard normal score, cut as rows are; public."""
    score = np.clip(_NODES, -long, long)
    inner = loss.loss if isinstance(loss, WeightedLoss) else loss
    bends = np.asarray(inner.curvature(point[0] * score + point[1], np.zeros_like(score))) * _WEIGHTS / _WEIGHTS.sum()
    rows = np.column_stack([score, np.ones_like(score)])
    return np.asarray((rows * bends[:, None]).T @ rows + 1e-5 * np.eye(2))


def _several_curvature(loss: Loss, theta: Vector, constant: float, spread: float) -> float:
    """The second derivative along the score for normal whitened rows, which are drawn in public from a fixed seed."""
    inner = loss.loss if isinstance(loss, WeightedLoss) else loss
    slopes = theta[:-1] * constant
    rows = np.random.default_rng(0).standard_normal((_DRAWN, min(len(slopes), theta.shape[1])))
    root = np.linalg.qr(slopes, mode="r")  # rows @ root is distributed as normal rows @ slopes
    scores, labels = rows @ root, np.zeros(_DRAWN)
    along = scores / spread
    ends = [inner.derivative(scores + sign * _SPREAD * along + theta[-1] * constant, labels) for sign in (1, -1)]
    return max(float(((ends[0] - ends[1]) * along).sum(axis=1).mean()) / (2 * _SPREAD), 1e-3)
