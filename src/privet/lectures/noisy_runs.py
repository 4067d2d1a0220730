"""Noisy descent as checks and figures need it: a plan of the library, run under a fixed seed, with no guarantee."""

from __future__ import annotations

from privet.clipping import Bounding, Declared
from privet.plan import gradient_plan
from privet.problems import Problem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FullBatch, Sampling
from privet.solvers import GradientStep, ReleaseRule, Result, follow
from privet.solvers.updates import StepSize

UNIT = Declared(lipschitz=1.0)
ALL = FullBatch()


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

    Examples
    --------
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
