"""Noisy descent as checks and figures need it: a plan of the library, run under a fixed seed, with no guarantee."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.clipping import Bounding, Clip, Declared
from privet.geometry import ConvexSet, whole_space
from privet.geometry.convex_set import Domain
from privet.lectures.measures import Vector
from privet.lectures.toy_problems import BUDGET, pointwise
from privet.losses import SquaredLoss
from privet.plan import Meter, gradient_plan
from privet.problems import Problem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FullBatch, Sampling
from privet.solvers import GradientStep, ReleaseRule, Result, follow
from privet.solvers.descent import descend
from privet.solvers.gradient import PrivateGradient
from privet.solvers.plain_descent import projected_gradient_descent
from privet.solvers.updates import StepSize

UNIT = Declared(lipschitz=1.0)
ALL = FullBatch()
EVERYWHERE = whole_space()


def noisy_run(
    problem: Problem,
    *,
    noise_multiplier: float,
    steps: int,
    step_size: StepSize,
    seed: int,
    release: ReleaseRule = "average",
    bounding: Bounding = UNIT,
    sampling: Sampling = ALL,
) -> Result:
    """Run noisy gradient descent, or DP-SGD with other `sampling`; `noise_multiplier` is noise stddev ÷ clip.

    >>> from privet.lectures.toy_problems import linear
    >>> found = noisy_run(linear([[1.0], [3.0]]), noise_multiplier=1.0, steps=9, step_size=0.1, seed=1, release="all")
    >>> found.iterates.shape, found.guarantee.epsilon
    ((10, 1), inf)
    """
    plan = gradient_plan(
        bounding=bounding,
        sampling=sampling,
        noise_multiplier=noise_multiplier,
        steps=steps,
        records=problem.records,
        neighbours="replace_one",
    )
    random = fixed_seed_invalidates_guarantee(seed)
    return follow(plan, problem, delta=1e-5, update=GradientStep(step_size=step_size), release=release, random=random)


def walk(
    gradient: Callable[[Vector], Vector],
    *,
    size: int,
    steps: int,
    step_size: StepSize,
    domain: ConvexSet = EVERYWHERE,
    release: ReleaseRule = "average",
    start: Vector | None = None,
) -> Vector:
    """Descend from 0, or `start`, along gradients that are made elsewhere, and return what is released.

    >>> walk(lambda w: np.ones(2), size=2, steps=4, step_size=0.5, release="last")
    array([-2., -2.])
    """
    update, first = GradientStep(step_size=step_size), np.zeros(size) if start is None else start
    return descend(gradient, start=first, steps=steps, update=update, domain=domain, release=release).released


@dataclass(frozen=True)
class _Balls(Domain):
    """`copies` balls of `radius` in d dimensions each, side by side."""

    copies: int
    d: int
    ball: float

    @property
    def size(self) -> int:
        return self.copies * self.d

    @property
    def radius(self) -> float:
        return self.ball * math.sqrt(self.copies)

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius

    def centre(self, d: int, /) -> Vector:
        return np.zeros(d)

    def project(self, theta: ArrayLike) -> Vector:
        """As of every set, with lengths found once: checks take tens of thousands of steps."""
        return self._nearest(np.asarray(theta, dtype=np.float64))

    def _rows(self, point: Vector) -> Vector:
        return np.asarray(np.sqrt(np.square(point.reshape(self.copies, self.d)).sum(axis=1)))

    def _holds(self, point: Vector, tolerance: float) -> bool:
        return bool((self._rows(point) <= self.ball * (1 + 1e-12) + tolerance).all())

    def _nearest(self, point: Vector) -> Vector:
        lengths = np.maximum(self._rows(point), self.ball)
        return np.asarray((point.reshape(self.copies, self.d) * (self.ball / lengths)[:, None]).reshape(-1))

    def _reach(self, direction: Vector) -> float:
        return float(self.ball * self._rows(direction).sum())


def side_by_side(
    slopes: Callable[[Vector], Vector],
    *,
    d: int,
    copies: int,
    radius: float,
    noise: float,
    steps: int,
    step_size: float,
    seed: int,
) -> Vector:
    """Average iterates of independent noisy descents from the centre of a ball, a row each; `slopes` is of all rows.

    >>> side_by_side(np.ones_like, d=1, copies=2, radius=1.0, noise=0.0, steps=1, step_size=0.5, seed=0)
    array([[-0.25],
           [-0.25]])
    """
    rng = np.random.default_rng(seed)

    def gradient(w: Vector) -> Vector:
        return np.asarray(slopes(w.reshape(copies, d)).ravel() + noise * rng.standard_normal(w.size))

    domain = _Balls(copies, d, radius)
    return walk(gradient, size=copies * d, steps=steps, step_size=step_size, domain=domain).reshape(copies, d)


def largest_slopes(rows: Vector) -> Vector:
    """The subgradient of each row's largest coordinate: the first that is largest.

    >>> largest_slopes(np.array([[1.0, 2.0], [3.0, 3.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    found = np.zeros_like(rows)
    found[np.arange(len(rows)), rows.argmax(axis=1)] = 1.0
    return found


def down_a_slope(
    *, slope: float, d: int, noise: float, steps: int, step_size: StepSize, copies: int, seed: int, last: bool = False
) -> tuple[float, float]:
    """Descend on slope × w_1 in a ball of diameter 1, from its highest point; return mean excess and standard error.

    The bounds of noisy descent are nearly reached there: the start is as far from the optimum as can be.

    >>> round(down_a_slope(slope=1.0, d=3, noise=0.0, steps=9, step_size=0.05, copies=2, seed=0)[0], 3)
    0.775
    """
    rng, uphill = np.random.default_rng(seed), np.tile(np.eye(1, d)[0], copies)

    def gradient(w: Vector) -> Vector:
        return np.asarray(slope * uphill + noise * rng.standard_normal(w.size))

    release: ReleaseRule = "last" if last else "average"
    found = walk(
        gradient,
        size=copies * d,
        steps=steps,
        step_size=step_size,
        domain=_Balls(copies, d, 0.5),
        release=release,
        start=0.5 * uphill,
    )
    excess = slope * (0.5 + found[::d])
    return float(excess.mean()), float(excess.std()) / math.sqrt(copies)


def clipped_mean(clip: float) -> tuple[float, float]:
    """Where descent on clipped gradients of nine 0s to each 10 ends, and the noise of a gradient in ten at `BUDGET`.

    >>> [round(number, 4) for number in clipped_mean(100.0)]
    [1.0, 2.3595]
    """
    ten = pointwise(SquaredLoss(), np.ones((10, 1)), [0.0] * 9 + [10.0])  # whose mean is that of a hundred such
    path = projected_gradient_descent(ten, steps=80, step_size=0.4, bounding=Clip(clip=clip), release="last")
    problem = pointwise(SquaredLoss(), np.ones((1000, 1)), np.tile([0.0] * 9 + [10.0], 100))
    plan = gradient_plan(bounding=Clip(clip=clip), steps=10, records=1000, neighbours="replace_one").calibrated(BUDGET)
    estimate = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(61)))
    return float(path.released[0]), estimate.noise_stddev
