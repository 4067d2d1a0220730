"""DP-GD: clip every gradient, average, add noise, step; lecture 4, section 2.2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Bounding
from privet.plan import Release
from privet.privacy import Budget, Neighbours
from privet.problems import Problem
from privet.randomness import Random
from privet.sampling import FullBatch
from privet.solvers.descent import ReleaseRule
from privet.solvers.result import Result
from privet.solvers.stochastic_descent import dp_sgd
from privet.solvers.updates import StepSize, UpdateRule


def dp_gd(
    problem: Problem,
    *,
    budget: Budget,
    steps: int,
    clip: float | None = None,
    bounding: Bounding | None = None,
    step_size: StepSize = 1.0,
    update: UpdateRule | None = None,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "all",
    records: int | None = None,
    before: tuple[Release, ...] = (),
    start: NDArray[np.float64] | None = None,
    random: Random | None = None,
) -> Result:
    """Full-batch descent on clipped gradients. Needs no Lipschitz constant, and claims no excess risk.

    As the lecture has it, all iterates are released by default; `result.coef` is then the last one's.
    Parameters are those of `dp_sgd`.

    Examples
    --------
    >>> from privet import Budget, dp_gd, glm
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> result = dp_gd(problem, budget=Budget(epsilon=1, delta=1e-6), steps=10, clip=1.0, step_size=0.5)
    >>> result.iterates.shape, result.guarantee.epsilon <= 1
    ((11, 1), True)
    """
    return dp_sgd(
        problem,
        budget=budget,
        steps=steps,
        sampling=FullBatch(),
        clip=clip,
        bounding=bounding,
        step_size=step_size,
        update=update,
        neighbours=neighbours,
        release=release,
        records=records,
        before=before,
        start=start,
        random=random,
    )
