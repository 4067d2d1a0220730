"""Zeroth-order descent: two loss values a record and step, so the released number is one-dimensional."""

import math
from dataclasses import dataclass

import numpy as np

from privet._checks import positive, whole
from privet.arrays import Vector
from privet.clipping import Clip
from privet.clipping.lattice import check_clip
from privet.plan import Meter, Plan, Release
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, Problem
from privet.randomness import Random
from privet.sampling import FullBatch, Sampling
from privet.solvers.descent import Course, DescentSolver, ReleaseRule
from privet.solvers.gradient import PrivateGradient
from privet.solvers.solver import Releases, Result, Start, solve
from privet.solvers.updates import GradientStep, StepSize


@dataclass(frozen=True, kw_only=True, slots=True)
class ZerothOrder(DescentSolver):
    """θ ← Π(θ − η s̃ u), where s̃ is the noisy mean of the records' clipped slopes (ℓ(θ + hu) − ℓ(θ − hu))/2h.

    u is a public direction, uniform on the sphere of radius √d, so that E[⟨g, u⟩u] = g and a slope is about as large
    as the gradient's norm whatever d. One number a step is released: its noise does not grow with d. No gradient is
    needed, so any loss will do, also a network's.
    Theorem: the Gaussian mechanism on clipped scalars; Zhang et al. 2024 ("DPZero"), Tang et al. 2024 ("DP-ZO").

    Parameters
    ----------
    steps : noisy slopes to take
    clip : bound on one record's slope, in the unit of a gradient norm
    spread : h, the distance ÷ √d at which losses are compared
    step_size, sampling, release, tail : as in `DPSGD`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> solver = ZerothOrder(steps=20, clip=1.0, step_size=0.5)
    >>> solver.plan(facts_of(problem, "zero_out"), Budget(epsilon=1, delta=1e-6)).event
    Gaussian(noise_multiplier=...) * 20
    """

    steps: int
    clip: float
    step_size: StepSize
    spread: float = 1e-3
    sampling: Sampling = FullBatch()  # noqa: RUF009  # a frozen value without state

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        check_clip(self.clip)
        positive("spread", self.spread, because="the slope is a difference over it", use="Use e.g. 1e-3.")

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        slopes = Release(
            name="slopes",
            of="half differences of the loss along a public direction",
            bound=Clip(clip=self.clip * self.spread),
            times=whole("steps", self.steps, because="without a step nothing is learnt", use="Use e.g. 100."),
            sampling=self.sampling,
            size=1,
        )
        return (slopes,), {}

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        private = PrivateGradient(problem, meter, "slopes")
        directions = np.random.default_rng(meter.public_words(4))  # anyone may know where losses were compared

        def gradient(theta: Vector) -> Vector:
            u = directions.standard_normal(theta.shape)
            u *= math.sqrt(theta.size) / float(np.linalg.norm(u))
            return private.slope(theta, self.spread * u) / self.spread * u

        return Course(direction=gradient, steps=plan.times("slopes"), update=GradientStep(step_size=self.step_size))


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
    release: ReleaseRule = "average",
    records: int | None = None,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Run `ZerothOrder` on a problem, all of it for one budget; other parameters as in `solve`.

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import zeroth_order_descent
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> result = zeroth_order_descent(problem, budget=Budget(epsilon=1, delta=1e-6), steps=20, clip=1.0, step_size=0.5)
    >>> result.coef.shape
    (1,)
    """
    solver = ZerothOrder(steps=steps, clip=clip, step_size=step_size, spread=spread, sampling=sampling, release=release)
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)
