"""Noisy descent as checks and figures need it: a plan of the library, run under a fixed seed, with no guarantee."""

from collections.abc import Callable

import numpy as np

from privet.clipping import Bounding, Clip, Declared
from privet.geometry import ConvexSet, whole_space
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
    step_size: float,
    domain: ConvexSet = EVERYWHERE,
    release: ReleaseRule = "average",
) -> Vector:
    """Descend from 0 along gradients that are made elsewhere, and return what is released.

    >>> walk(lambda w: np.ones(2), size=2, steps=4, step_size=0.5, release="last")
    array([-2., -2.])
    """
    update = GradientStep(step_size=step_size)
    return descend(gradient, start=np.zeros(size), steps=steps, update=update, domain=domain, release=release).released


def clipped_mean(clip: float) -> tuple[float, float]:
    """Where descent on clipped gradients of nine 0s to each 10 ends, and the noise of a gradient in ten at `BUDGET`.

    >>> [round(number, 4) for number in clipped_mean(100.0)]
    [1.0, 2.3595]
    """
    problem = pointwise(SquaredLoss(), np.ones((1000, 1)), np.tile([0.0] * 9 + [10.0], 100))
    path = projected_gradient_descent(problem, steps=80, step_size=0.4, bounding=Clip(clip=clip), release="last")
    plan = gradient_plan(bounding=Clip(clip=clip), steps=10, records=1000, neighbours="replace_one").calibrated(BUDGET)
    estimate = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(61)))
    return float(path.released[0]), estimate.noise_stddev
