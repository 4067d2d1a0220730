"""DP-SGD: descent on clipped, noisy gradients of batches, drawn by any scheme that the accountants can price."""

from dataclasses import dataclass, replace

import numpy as np

from privet._checks import positive
from privet.arrays import Vector
from privet.clipping import Adaptive, Bounding, Clip
from privet.errors import InvalidParameter
from privet.geometry import whole_space
from privet.losses import QuadraticPenalty
from privet.noise import Strategy
from privet.plan import Meter, Plan
from privet.privacy import Budget, Neighbours, check_delta
from privet.problems import Facts, Problem, facts_of
from privet.randomness import Random
from privet.sampling import FullBatch, Sampling
from privet.solvers.descent import (
    Course,
    DescentSolver,
    ReleaseRule,
    check_release,
    descend,
    descended,
    gradient_release,
    starting_point,
)
from privet.solvers.gradient import PrivateGradient
from privet.solvers.sampled_risk import Sampled
from privet.solvers.solver import Releases, Result, Start, solve
from privet.solvers.updates import GradientStep, StepSize, UpdateRule


@dataclass(frozen=True, kw_only=True, slots=True)
class DPSGD(DescentSolver):
    """w_t = Π(update(w_{t−1}, (Σ bounded gradients of a batch + noise) ÷ expected batch size)).

    Promise: the guarantee meets the budget: the noise is calibrated to the exact composition of all steps, and each
    batch, bound and draw of noise is the one that was priced. `result.bound` is the proven excess risk of `coef` over
    the domain: lemma 2.7 of the lecture (Wu), for batches. It is None where no theorem applies: a loss that is not
    convex, per-record losses, a penalty, people, another rule than a clip, batches that are not drawn afresh, momentum
    or another update, correlated noise; and for another release than the average at a constant step size, or "average",
    "last" or "all" with step_size=None. Under "add_remove" it is for at most `records` records, and the sum ÷ that.
    Proof: docs/proofs/utility.md, section 12.

    Parameters
    ----------
    steps : noisy gradients to take
    sampling : Poisson(...), FixedSize(batch=...), OneRecord(), Cyclic(batch=...) or FullBatch(), which makes it DP-GD
    clip : per-record bound on the gradient norm; short for bounding=Clip(clip=...)
    bounding : another clipping rule: Automatic(...), Adaptive(...), Declared(...)
    step_size : η, or a function of t = 1, 2, …; None for the theorem's: constant for the average, falling linearly for
        the last iterate
    radius : a public bound on ‖start − minimiser‖, for the theorem; by default the domain's radius, for a start at its
        centre, or its diameter for another start
    update : another rule than plain steps: GradientStep with momentum, Adam, AdamW, Adafactor
    correlation : how noise is correlated over the steps, e.g. banded_inverse_square_root(100) for Cyclic batches
    release, tail : what of the path is published, and which part the tail average is over, in (0, 1]

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
    step_size: StepSize | None = 1.0
    update: UpdateRule | None = None
    correlation: Strategy | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        if (self.clip is None) == (self.bounding is None):
            raise InvalidParameter(
                "Expected either clip=... or bounding=..., got both or neither: one record's influence must be bounded "
                "in one way. Use clip=1.0."
            )
        if self.radius is not None:
            because, use = "it bounds how far the minimiser is from the start", "Pass a public bound, or leave it out."
            positive("radius", self.radius, infinite=True, because=because, use=use)

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        rule = self.bounding if self.bounding is not None else Clip(clip=self.clip)  # type: ignore[arg-type]
        release = gradient_release(facts, rule, steps=self.steps, sampling=self.sampling)
        return (replace(release, correlation=self.correlation),), {}

    def run(
        self,
        plan: Plan,
        problem: Problem,
        *,
        meter: Meter | None = None,
        random: Random | None = None,
        start: Start = None,
    ) -> Result:
        elsewhere = start is not None and self.radius is None  # the domain's radius is about its centre
        solver = replace(self, radius=problem.domain.diameter) if elsewhere else self
        return DescentSolver.run(solver, plan, problem, meter=meter, random=random, start=start)

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        update, bound = self.update, None
        if update is None:
            known = self._sampled(plan, problem, meter)
            eta = known.step_size() if self.step_size is None else self.step_size
            once = sum(release.name == "gradients" for release in plan.releases) == 1  # so that all have one noise
            if once and self.correlation is None and self.release != "tail_average" and not callable(self.step_size):
                bound = known.bound(self.step_size)
            update = GradientStep(step_size=eta)
        return along_gradients(plan, problem, meter, update, bound=bound)

    def _sampled(self, plan: Plan, problem: Problem, meter: Meter) -> Sampled:
        rule = plan["gradients"].bound
        stddev = 0.0 if isinstance(rule, Adaptive) else meter.noise_stddev("gradients")
        return Sampled(
            steps=plan.times("gradients"),
            sampling=plan["gradients"].sampling,
            bounding=rule,  # type: ignore[arg-type]  # of gradients
            facts=facts_of(problem, plan.neighbours, plan.records),
            noise_stddev=stddev / plan.batch_size("gradients"),
            radius=self.radius,
            last=self.release in ("last", "all"),
        )


def noise_gain(solver: DPSGD, *, pull: float = 0.0) -> float:
    """How much noise a released coefficient has, in standard deviations of that of one gradient; public.

    The gradient is taken to be that noise and `pull` times the coefficient. Steps are linear then, so that each step's
    noise has its own part in what is released: a coordinate of its own here.

    Examples
    --------
    >>> noise_gain(DPSGD(steps=4, clip=1.0, step_size=0.5, release="last"))
    1.0
    """
    if solver.update is None and solver.step_size is None:
        raise InvalidParameter(
            "Expected a step size, got None: the theorem's depends on noise that is not known yet. Pass step_size."
        )
    each, update = iter(np.eye(solver.steps)), solver.update or GradientStep(step_size=solver.step_size)  # type: ignore[arg-type]
    path = descend(
        lambda theta: np.asarray(next(each) + pull * theta),
        start=np.zeros(solver.steps),
        steps=solver.steps,
        update=update,
        domain=whole_space(),
        release=solver.release,
        tail=solver.tail,
    )
    return float(np.linalg.norm(path.released))


def along_gradients(
    plan: Plan, problem: Problem, meter: Meter, update: UpdateRule, *, bound: float | None = None
) -> Course:
    """The course along the noisy gradients of the plan, whose noise the update may know."""
    gradient, steps = PrivateGradient(problem, meter), plan.times("gradients")
    penalty, direction = problem.ridge, gradient.__call__
    if isinstance(penalty, QuadraticPenalty) and isinstance(update, GradientStep) and not callable(update.step_size):
        softened = penalty.softened(update.step_size)  # which a step of that size would overshoot where it is steep

        def direction(theta: Vector) -> Vector:
            return np.asarray(softened(gradient(theta)), dtype=np.float64)

    return Course(
        direction=direction, steps=steps, update=update, noise_stddev=lambda: gradient.noise_stddev, bound=bound
    )


def dp_sgd(
    problem: Problem,
    *,
    budget: Budget,
    steps: int,
    sampling: Sampling,
    clip: float | None = None,
    bounding: Bounding | None = None,
    step_size: StepSize | None = 1.0,
    update: UpdateRule | None = None,
    correlation: Strategy | None = None,
    radius: float | None = None,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "average",
    records: int | None = None,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Run `DPSGD` on a problem, all of it for one budget; other parameters as in `solve`.

    Examples
    --------
    >>> from privet import Budget, dp_sgd, glm
    >>> from privet.sampling import Poisson
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> result = dp_sgd(problem, budget=Budget(epsilon=1, delta=1e-6), steps=100, sampling=Poisson(sampling_rate=0.1),
    ...                 clip=1.0, step_size=0.1)
    >>> result.plan.event
    Gaussian(noise_multiplier=...).poisson(rate=0.1) * 100

    On a bounded domain, or with a `radius`, a convex loss has a proven excess risk; `step_size=None` is its best step:

    >>> from privet import l2_ball
    >>> problem = glm("logistic", [[0.6, 0.8]] * 5000, [1] * 5000, row_norm=1.0, domain=l2_ball(radius=1))
    >>> round(dp_sgd(problem, budget=Budget(epsilon=1, delta=1e-6), steps=500, sampling=Poisson(sampling_rate=0.1),
    ...              clip=1.0, step_size=None).bound, 3)
    0.033
    """
    solver = DPSGD(
        steps=steps,
        sampling=sampling,
        clip=clip,
        bounding=bounding,
        step_size=step_size,
        update=update,
        correlation=correlation,
        radius=radius,
        release=release,
    )
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)


def dp_gd(
    problem: Problem,
    *,
    budget: Budget,
    steps: int,
    clip: float | None = None,
    bounding: Bounding | None = None,
    step_size: StepSize | None = 1.0,
    update: UpdateRule | None = None,
    radius: float | None = None,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "all",
    records: int | None = None,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Full-batch descent on clipped gradients. Needs no Lipschitz constant; an excess risk is proven as for `dp_sgd`.

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
    solver = DPSGD(
        steps=steps, clip=clip, bounding=bounding, step_size=step_size, update=update, radius=radius, release=release
    )
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)


def follow(
    plan: Plan,
    problem: Problem,
    *,
    delta: float,
    update: UpdateRule,
    release: ReleaseRule = "average",
    start: Start = None,
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
    meter, theta = Meter(plan, random=random), starting_point(problem, start)
    course = along_gradients(plan, problem, meter, update)
    result = descended(course, problem, meter, theta, release=release, delta=check_delta(delta))
    meter.finish()
    return result
