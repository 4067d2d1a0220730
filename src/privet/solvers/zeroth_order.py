"""Zeroth-order descent: two loss values a record and step, so the released number is one-dimensional."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Clip
from privet.clipping.lattice import check_clip
from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours
from privet.problems import Problem
from privet.randomness import Random, system_random
from privet.sampling import FullBatch, Sampling
from privet.solvers.descent import Release, check_release, descended, guaranteed, starting_point
from privet.solvers.gradient import PrivateGradient
from privet.solvers.planning import planned
from privet.solvers.result import Result
from privet.solvers.updates import GradientStep, StepSize

__all__ = ["zeroth_order_descent"]

Vector = NDArray[np.float64]


def zeroth_order_descent(
    problem: Problem,
    *,
    budget: Budget,
    steps: int,
    clip: float,
    step_size: StepSize,
    spread: float = 1e-3,
    sampling: Sampling = FullBatch(),  # noqa: B008  # a frozen value without state
    neighbours: Neighbours = "replace_one",
    release: Release = "average",
    records: int | None = None,
    start: Vector | None = None,
    random: Random | None = None,
) -> Result:
    """θ ← Π(θ − η s̃ u), where s̃ is the noisy mean of the records' clipped slopes (ℓ(θ + hu) − ℓ(θ − hu))/2h.

    u is a public direction, uniform on the sphere of radius √d, so that E[⟨g, u⟩u] = g and a slope is about as large
    as the gradient's norm whatever d. One number a step is released: its noise does not grow with d. No gradient is
    needed, so any loss will do, also a network's.
    Theorem: the Gaussian mechanism on clipped scalars; Zhang et al. 2024 ("DPZero"), Tang et al. 2024 ("DP-ZO").

    Parameters
    ----------
    clip : bound on one record's slope, in the unit of a gradient norm
    spread : h, the distance ÷ √d at which losses are compared
    others : as in `dp_sgd`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import zeroth_order_descent
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> result = zeroth_order_descent(problem, budget=Budget(epsilon=1, delta=1e-6), steps=20, clip=1.0, step_size=0.5)
    >>> result.coef.shape
    (1,)
    """
    check_release(release)
    if not (math.isfinite(spread) and spread > 0):
        raise InvalidParameter(
            f"Expected spread to be a positive finite number, got {spread!r}: the slope is a difference over it. "
            "Use e.g. 1e-3."
        )
    random = random if random is not None else system_random()
    plan = planned(
        problem,
        bounding=Clip(clip=check_clip(clip) * spread),
        sampling=sampling,
        steps=steps,
        budget=budget,
        neighbours=neighbours,
        records=records,
    )
    guarantee = guaranteed(plan, budget.delta, random)
    private = PrivateGradient(problem, plan, random=random)
    directions = np.random.default_rng(random.words(4))  # public: anyone may know where the losses were compared

    def gradient(theta: Vector) -> Vector:
        u = directions.standard_normal(theta.shape)
        u *= math.sqrt(theta.size) / float(np.linalg.norm(u))
        return private.slope(theta, spread * u) / spread * u

    return descended(
        gradient,
        problem=problem,
        plan=plan,
        guarantee=guarantee,
        start=starting_point(problem, start),
        steps=steps,
        update=GradientStep(step_size=step_size),
        release=release,
    )
