"""Honest probabilities: slope and intercept of a score that is public by now, by a few private Newton steps."""

import math
from dataclasses import dataclass

import numpy as np

from privet.arrays import Vector
from privet.clipping import Clip
from privet.losses import Loss, WeightedLoss
from privet.plan import Meter, Release
from privet.problems.linear_model import LinearModel
from privet.solvers.gradient import PrivateGradient
from privet.solvers.score_model import Belief, Look, Window, believed, pulled, with_slope

CALIBRATION = "calibration"
_SPREADS = 2.0, 0.5  # of the right slope about the one found by descent, and of the log odds of the mean
_NEAR = 0.4  # of the right slope of several classes about 1, before any is looked at
_AVERAGED = 4  # last steps, whose mean is taken
_MOST = 12.0  # logits
_SPREAD = 2.0**-10
_DRAWN = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalibration:
    """Platt's scaling, privately: clipped gradients leave scores that are too sure or too shy, and a biased intercept.

    Of two classes, slope and intercept of the score are refitted to the logistic loss, on rows (score, 1) whose
    gradients are bounded without clipping; of several, all of θ gets one factor, by which no predicted class changes,
    and which is the nearer to 1 the more noise there is. The curvature is that of a standard normal score, which is
    public. Of two classes, scores are measured about where the loss bends, which for a rare class is far from 0, and
    all steps together say what is likeliest, beside what the descent before has found. A slope that does not stand out
    of its noise is shrunk towards 0, where only the constant is left; the mean probability stays. A penalty of the
    problem counts as it does in that descent.

    Promise: its releases are those of `releases`, and no more.
    Theorem: the Gaussian mechanism on clipped sums; docs/proofs/whitening.md, section 4.

    Parameters
    ----------
    steps : private Newton steps
    several : whether there are several classes
    long : of two classes, how far from where the loss bends a score is cut, in standard deviations there; None chooses
        by what can be told from noise
    cut : of several classes, to what a record's slope of the loss is cut, for a direction in which the score changes by
        its own spread: what is cut biases the factor, what is not is noise

    Examples
    --------
    >>> Recalibration(several=False).releases(noise_multiplier=10.0)[0].times
    5
    """

    several: bool
    long: float | None = None
    steps: int = 5
    cut: float = 1.0

    def releases(self, *, noise_multiplier: float) -> tuple[Release, ...]:
        """All steps, together as one Gaussian release of `noise_multiplier`."""
        each = math.nextafter(noise_multiplier * math.sqrt(self.steps), math.inf)
        bound = Clip(clip=_SPREAD * self.cut if self.several else 1.0)
        of = "slopes of the loss along the score" + ("" if self.several else " and the constant")
        size = 1 if self.several else 2
        release = Release(name=CALIBRATION, of=of, bound=bound, times=self.steps, noise_multiplier=each, size=size)
        return (release,)

    def run(
        self,
        problem: LinearModel,
        theta: Vector,
        constant: float,
        meter: Meter,
        *,
        weight: float = 1.0,
    ) -> Vector:
        """θ with its slope and intercept recalibrated.

        The last row of θ is of the constant, which is `constant` in every row; the others' rows are whitened, so that
        the score has the norm of θ for its standard deviation. `weight` is what a record weighs on average, in public.
        """
        if self.several:
            size = max(float(np.linalg.norm(theta)) * constant, 2.0**-40)
            return self._several(problem, theta, constant, size, meter, weight)
        spread = max(float(np.linalg.norm(theta[:-1])) * constant, 2.0**-40)
        return self._two(problem, theta, constant, spread, meter, weight)

    def _two(
        self,
        problem: LinearModel,
        theta: Vector,
        constant: float,
        spread: float,
        meter: Meter,
        weight: float,
    ) -> Vector:
        slopes = np.append(theta[:-1], 0.0)
        pull = 2 * problem.ridge.value(slopes / spread)  # the penalty is half of it × slope²
        start = np.clip([spread, float(theta[-1]) * constant], -_MOST, _MOST)
        found, looks, window = Belief(point=start, unsure=math.inf), [], None
        for _ in range(self.steps):
            point = pulled(found.point, pull=pull, weight=weight)
            noise = meter.noise_stddev(CALIBRATION) / meter.plan.batch_size(CALIBRATION)
            better = Window.about(point, told=weight * math.sqrt(self.steps) / noise, long=self.long)
            if window is None or not window.is_near(better):
                window = better
                ask = PrivateGradient(problem.along(slopes / spread, window.rows, columns=2), meter, CALIBRATION)
            gradient = ask(window.coefficients(point))
            looks.append(Look(window=window, point=point, gradient=gradient, noise=noise))
            found = believed(looks, start, weight=weight, pull=pull, spreads=_SPREADS)
        slope = float(found.point[0])
        sure = max(0.0, 1 - (found.unsure / slope) ** 2) if slope > 0 else 0.0
        slope, intercept = pulled(with_slope(found.point, sure * slope), pull=pull, weight=weight)
        return np.append(theta[:-1] * (slope / spread), intercept / constant)

    def _several(
        self,
        problem: LinearModel,
        theta: Vector,
        constant: float,
        spread: float,
        meter: Meter,
        weight: float,
    ) -> Vector:
        gradient = PrivateGradient(problem, meter, CALIBRATION)
        direction = theta / spread
        noise = meter.noise_stddev(CALIBRATION) / meter.plan.batch_size(CALIBRATION) / _SPREAD / math.sqrt(self.steps)
        slope, path, pull = 1.0, [], 2 * problem.ridge.value(direction)
        for _ in range(self.steps):
            point = slope * theta
            slant = gradient.slope(point, direction * _SPREAD) / _SPREAD
            bend = weight * _several_curvature(problem.loss, point, constant, spread * slope) + pull
            told = bend * spread
            gain = told / (told**2 + (noise / _NEAR) ** 2)
            step = gain * slant + (1 - gain * told) * (slope - 1)
            slope = float(np.clip(slope - 0.8 * step, slope / 2, 2 * slope))
            path.append(slope)
        return theta * float(np.mean(path[-_AVERAGED:]))


def _several_curvature(loss: Loss, theta: Vector, constant: float, spread: float) -> float:
    """The second derivative along the score for normal whitened rows, which are drawn in public from a fixed seed."""
    inner = loss.loss if isinstance(loss, WeightedLoss) else loss
    slopes = theta[:-1] * constant
    rows = np.random.default_rng(0).standard_normal((_DRAWN, min(len(slopes), theta.shape[1])))
    root = np.linalg.qr(slopes, mode="r")  # rows @ root is distributed as normal rows @ slopes
    scores, labels = rows @ root, np.zeros(_DRAWN)
    scores = scores + theta[-1] * constant
    along = scores / spread
    ends = [inner.derivative(scores + sign * _SPREAD * along, labels) for sign in (1, -1)]
    return max(float(((ends[0] - ends[1]) * along).sum(axis=1).mean()) / (2 * _SPREAD), 1e-3)
