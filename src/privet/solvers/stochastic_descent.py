"""DP-SGD: descent on clipped, noisy gradients of batches, drawn by any scheme that the accountants can price."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Bounding, Clip
from privet.errors import InvalidParameter
from privet.plan import Meter, Plan, Release, gradient_plan
from privet.privacy import Budget, Neighbours, check_delta
from privet.problems import Facts, Problem
from privet.randomness import Random
from privet.sampling import FullBatch, Sampling
from privet.solvers.descent import ReleaseRule, check_release, descended
from privet.solvers.gradient import PrivateGradient
from privet.solvers.result import Result
from privet.solvers.solver import ready, solve
from privet.solvers.updates import GradientStep, StepSize, UpdateRule


@dataclass(frozen=True, kw_only=True, slots=True)
class DPSGD:
    """w_t = Π(update(w_{t−1}, (Σ bounded gradients of a batch + noise) ÷ expected batch size)).

    Promise: the guarantee meets the budget: the noise is calibrated to the exact composition of all steps, and each
    batch, bound and draw of noise is the one that was priced. No excess risk is claimed.

    Parameters
    ----------
    steps : noisy gradients to take
    sampling : Poisson(...), FixedSize(batch=...), OneRecord(), Cyclic(batch=...) or FullBatch(), which makes it DP-GD
    clip : per-record bound on the gradient norm; short for bounding=Clip(clip=...)
    bounding : another clipping rule: Automatic(...), Adaptive(...), Declared(...)
    step_size : η, or a function of t = 1, 2, …
    update : another rule than plain steps: GradientStep with momentum, Adam, AdamW, Adafactor
    release : "average", "last", "all" or "tail_average"; they cost the same
    tail : which part of the path the tail average is over, in (0, 1]

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> solver = DPSGD(steps=10, clip=1.0, step_size=0.5)
    >>> plan = solver.plan(facts_of(problem, "zero_out"), Budget(epsilon=1, delta=1e-6))
    >>> plan.event
    Gaussian(noise_multiplier=13.35...) * 10
    >>> solver.run(plan, problem).coef.shape
    (1,)
    """

    steps: int
    sampling: Sampling = FullBatch()  # noqa: RUF009  # a frozen value without state
    clip: float | None = None
    bounding: Bounding | None = None
    step_size: StepSize = 1.0
    update: UpdateRule | None = None
    release: ReleaseRule = "average"
    tail: float = 0.5

    def __post_init__(self) -> None:
        check_release(self.release)
        if (self.clip is None) == (self.bounding is None):
            raise InvalidParameter(
                "Expected either clip=... or bounding=..., got both or neither: one record's influence must be bounded "
                "in one way. Use clip=1.0."
            )

    def plan(
        self, facts: Facts, budget: Budget, *, before: tuple[Release, ...] = (), after: tuple[Release, ...] = ()
    ) -> Plan:
        rule = self.bounding if self.bounding is not None else Clip(clip=self.clip)  # type: ignore[arg-type]
        own = gradient_plan(
            bounding=rule,
            sampling=self.sampling,
            steps=self.steps,
            records=facts.records,
            neighbours=facts.neighbours,
            unit=facts.unit,
        )
        gradients = replace(own["gradients"], size=facts.dimension)
        return replace(own, releases=(*before, gradients, *after)).calibrated(budget)

    def run(
        self,
        plan: Plan,
        problem: Problem,
        *,
        meter: Meter | None = None,
        random: Random | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> Result:
        """Descend as planned."""
        meter = ready(plan, meter, random)
        gradient = PrivateGradient(problem, meter)
        return descended(
            gradient,
            problem=problem,
            meter=meter,
            steps=plan.times("gradients"),
            update=self.update if self.update is not None else GradientStep(step_size=self.step_size),
            release=self.release,
            start=start,
            noise_stddev=lambda: gradient.noise_stddev,
            tail=self.tail,
        )


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
    release: ReleaseRule = "average",
    records: int | None = None,
    before: tuple[Release, ...] = (),
    start: NDArray[np.float64] | None = None,
    random: Random | None = None,
) -> Result:
    """Run `DPSGD` on a problem, all of it for one budget.

    Parameters
    ----------
    problem : what is minimised
    budget : the (epsilon, delta) to meet
    neighbours : "replace_one" by default
    records : under "add_remove", a public guess of the number of records
    before : releases made already, e.g. of feature ranges, that the same budget has to cover
    start : public; the domain's centre by default
    random : the operating system's by default; a fixed seed invalidates the guarantee
    others : as in `DPSGD`

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
    solver = DPSGD(
        steps=steps,
        sampling=sampling,
        clip=clip,
        bounding=bounding,
        step_size=step_size,
        update=update,
        release=release,
    )
    return solve(
        solver,
        problem,
        budget=budget,
        neighbours=neighbours,
        records=records,
        before=before,
        random=random,
        start=start,
    )


def follow(
    plan: Plan,
    problem: Problem,
    *,
    delta: float,
    update: UpdateRule,
    release: ReleaseRule = "average",
    start: NDArray[np.float64] | None = None,
    random: Random | None = None,
) -> Result:
    """Run a plan of gradients as it stands, with its own noise, and say what that promises at `delta`.

    Examples
    --------
    >>> from privet import follow, glm
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> from privet.solvers import GradientStep
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=20.0, steps=10, records=500,
    ...                      neighbours="zero_out")
    >>> round(follow(plan, problem, delta=1e-6, update=GradientStep(step_size=0.5)).guarantee.epsilon, 4)
    0.6481
    """
    check_release(release)
    meter = Meter(plan, random=random)
    gradient = PrivateGradient(problem, meter)
    result = descended(
        gradient,
        problem=problem,
        meter=meter,
        steps=plan.times("gradients"),
        update=update,
        release=release,
        start=start,
        noise_stddev=lambda: gradient.noise_stddev,
        delta=check_delta(delta),
    )
    meter.finish()
    return result
