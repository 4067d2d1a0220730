"""DP-SGD: descent on clipped, noisy gradients of batches, drawn by any scheme that the accountants can price."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event
from privet.clipping import Bounding, Clip
from privet.errors import InvalidParameter
from privet.plan import Plan
from privet.privacy import Budget, Neighbours, check_delta
from privet.problems import Problem
from privet.randomness import Random
from privet.sampling import Sampling
from privet.solvers.descent import Release, private_descent
from privet.solvers.planning import planned
from privet.solvers.result import Result
from privet.solvers.updates import GradientStep, StepSize, UpdateRule

__all__ = ["dp_sgd", "follow"]


def dp_sgd(
    problem: Problem,
    *,
    budget: Budget,
    steps: int,
    sampling: Sampling,
    clip: float | None = None,
    bounding: Bounding | None = None,
    step_size: StepSize = 1.0,
    update: UpdateRule | None = None,
    neighbours: Neighbours = "replace_one",
    release: Release = "average",
    records: int | None = None,
    also: tuple[Event, ...] = (),
    start: NDArray[np.float64] | None = None,
    random: Random | None = None,
) -> Result:
    """w_t = Π(update(w_{t−1}, (Σ bounded gradients of a batch + noise) ÷ expected batch size)).

    Promise: `result.guarantee` meets `budget`: the noise is calibrated to the exact composition of all steps, and
    each batch, bound and draw of noise is the one that was priced. No excess risk is claimed.

    Parameters
    ----------
    problem : what is minimised
    budget : the (epsilon, delta) to meet
    steps : noisy gradients to take
    sampling : Poisson(sampling_rate=...), FixedSize(batch=...), OneRecord(), Cyclic(batch=...) or FullBatch()
    clip : per-record bound on the gradient norm; short for bounding=Clip(clip=...)
    bounding : another way to bound: Automatic(...), Adaptive(...), Declared(...)
    step_size : η, or a function of t = 1, 2, …
    update : another rule than plain steps: GradientStep with momentum, Adam, AdamW, Adafactor
    neighbours : "replace_one" by default
    release : "average", "last", "all" or "tail_average"; one price
    records : under "add_remove", a public guess of the number of records
    also : releases made before, e.g. of feature ranges, that the same budget has to cover
    start : public; the domain's centre by default
    random : the operating system's by default; a fixed seed voids the guarantee

    Examples
    --------
    >>> from privet import Budget, dp_sgd, glm
    >>> from privet.sampling import Poisson
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> result = dp_sgd(problem, budget=Budget(epsilon=1, delta=1e-6), steps=100, sampling=Poisson(sampling_rate=0.1),
    ...                 clip=1.0, step_size=0.1)
    >>> result.plan.event
    Gaussian(noise_multiplier=...).poisson(rate=0.1) * 100
    """
    if (clip is None) == (bounding is None):
        raise InvalidParameter(
            "Expected either clip=... or bounding=..., got both or neither: one record's influence must be bounded in "
            "one way. Use clip=1.0."
        )
    plan = planned(
        problem,
        bounding=bounding if bounding is not None else Clip(clip=clip),  # type: ignore[arg-type]  # one is given
        sampling=sampling,
        steps=steps,
        budget=budget,
        neighbours=neighbours,
        records=records,
        also=also,
    )
    return follow(
        plan,
        problem,
        delta=budget.delta,
        update=update if update is not None else GradientStep(step_size=step_size),
        release=release,
        start=start,
        random=random,
    )


def follow(
    plan: Plan,
    problem: Problem,
    *,
    delta: float,
    update: UpdateRule,
    release: Release = "average",
    start: NDArray[np.float64] | None = None,
    random: Random | None = None,
) -> Result:
    """Run a plan as it stands, with its own noise, and say what that promises at `delta`.

    Examples
    --------
    >>> from privet import Plan, follow, glm
    >>> from privet.clipping import Clip
    >>> from privet.solvers import GradientStep
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> plan = Plan(bounding=Clip(clip=1.0), noise_multiplier=20.0, steps=10, records=500, neighbours="zero_out")
    >>> round(follow(plan, problem, delta=1e-6, update=GradientStep(step_size=0.5)).guarantee.epsilon, 4)
    0.6481
    """
    return private_descent(
        problem, plan, update=update, release=release, delta=check_delta(delta), start=start, random=random
    )
