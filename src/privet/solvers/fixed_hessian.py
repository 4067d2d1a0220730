"""Descent along a fixed, private upper bound on the Hessian of a generalised linear model."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from privet._checks import between, positive
from privet.arrays import Vector
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.losses import Ridge
from privet.plan import Meter, Plan, Release, SecondMoments
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, GroupedProblem, LinearProblem, Problem, facts_of
from privet.randomness import Random
from privet.solvers.descent import Course, DescentSolver, ReleaseRule, gradient_release
from privet.solvers.gradient import PrivateGradient
from privet.solvers.solver import Releases, Result, Start, solve
from privet.solvers.updates import GradientStep

SECOND_MOMENT = "second moment XᵀX"


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedHessian(DescentSolver):
    """θ ← Π(θ − η P v), P the inverse of a private upper bound on the Hessian, v momentum of private gradients.

    For a GLM the Hessian is at most s · XᵀX/n, s the loss's smoothness (1/4 for the logistic loss). XᵀX is released
    once, with noise, for `hessian_share` of the budget; its eigenvalues are floored at what noise alone can reach.

    Theorem: ‖xxᵀ‖_F = ‖x‖² ≤ row_norm², and two such matrices differ by at most √2 of that; as a vector the symmetric
    matrix is (diagonal, √2 × upper triangle), so the upper triangle needs only 1/√2 of the noise. All releases are
    Gaussian and compose exactly.

    Parameters
    ----------
    steps : private gradients to take
    clip : per-record bound on the gradient norm
    hessian_share : share of the budget for XᵀX, in (0, 1); the gradients have the rest
    step_size : η, relative to the inverse curvature: 1 is a full step
    momentum : of the gradients, in [0, 1)
    floor : least eigenvalue of the released XᵀX, in units of the noise's typical spectral norm
    typical_curvature : of the loss near its minimum, where that is far below the largest: steps are for it
    release, tail : as in `DPSGD`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> problem = glm("half_squared", [[1.0, 0.0], [0.0, 0.1]] * 500, [0.5, 0.0] * 500, row_norm=1.0)
    >>> FixedHessian(clip=1.0).plan(facts_of(problem, "zero_out"), Budget(epsilon=1, delta=1e-6)).names
    ('second moment XᵀX', 'gradients')
    """

    clip: float
    steps: int = 40
    hessian_share: float = 0.25
    step_size: float = 1.0
    momentum: float = 0.8
    floor: float = 2.0
    typical_curvature: float | None = None
    release: ReleaseRule = "tail_average"

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        because = "both the Hessian and the gradients need a part of the budget"
        between("hessian_share", self.hessian_share, 0, 1, because=because, use="Use 0.25.")
        positive("floor", self.floor, because="the noisy matrix must be invertible", use="Use 2.")

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        row_norm = check_smooth(facts)
        gradients = gradient_release(facts, Clip(clip=self.clip), steps=self.steps)
        bound, size = SecondMoments(clip=row_norm * row_norm), facts.shape[0] ** 2
        moment = Release(name=SECOND_MOMENT, of="x xᵀ of each row", bound=bound, size=size)
        ratio = math.sqrt((1 - self.hessian_share) / (self.hessian_share * gradients.times))
        return (moment, gradients), {SECOND_MOMENT: ratio}

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        facts = facts_of(problem, plan.neighbours, plan.records)
        check_smooth(facts)
        update = GradientStep(step_size=self.step_size, momentum=self.momentum)
        private = PrivateGradient(problem, meter)
        inverse = self._inverse(plan, problem, facts, meter)  # type: ignore[arg-type]  # linear, as check_smooth found
        steps = plan.times("gradients")
        return Course(direction=lambda point: inverse @ private(point), steps=steps, update=update)

    def _inverse(self, plan: Plan, problem: LinearProblem | GroupedProblem, facts: Facts, meter: Meter) -> Vector:
        """The inverse of the bound on the Hessian; public."""
        meter.open(SECOND_MOMENT, count=problem.records)
        total = problem.moment_sum(max_records=plan.max_records(SECOND_MOMENT))
        moment = meter.noisy_symmetric(SECOND_MOMENT, total)
        # in units of noise ÷ clip, as the gradients' noise is, which the floor has to tame
        noise = plan[SECOND_MOMENT].noise_multiplier * total.clip
        least = self.floor * math.sqrt(2 * len(moment)) * noise
        values, vectors = np.linalg.eigh(moment)
        smoothness = facts.smoothness or 0.0
        # steps are longer where the loss typically bends less than it may; the penalty bends as it does
        bend = smoothness * self._typical(facts)
        curvature = bend * np.maximum(values, least) / plan.count
        if isinstance(problem.ridge, Ridge):
            return np.asarray((vectors / (curvature + problem.ridge.alpha)) @ vectors.T)
        added = problem.ridge.matrix
        whole = (vectors * curvature) @ vectors.T + (np.diag(added) if added.ndim == 1 else added)
        return np.asarray(cho_solve(cho_factor(whole), np.eye(len(whole))))

    def _typical(self, facts: Facts) -> float:
        """The typical curvature of the loss in units of the proven one."""
        if self.typical_curvature is None:
            return 1.0
        proven = facts.loss.smoothness() or 1.0  # type: ignore[union-attr]  # a linear model has one
        return min(proven, self.typical_curvature) / proven


def fixed_hessian_descent(
    problem: LinearProblem | GroupedProblem,
    *,
    budget: Budget,
    steps: int = 40,
    clip: float,
    hessian_share: float = 0.25,
    step_size: float = 1.0,
    momentum: float = 0.8,
    floor: float = 2.0,
    tail: float = 0.5,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "tail_average",
    records: int | None = None,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Run `FixedHessian` on a problem, all of it for one budget; other parameters as in `solve`.

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import fixed_hessian_descent
    >>> problem = glm("half_squared", [[1.0, 0.0], [0.0, 0.1]] * 500, [0.5, 0.0] * 500, row_norm=1.0)
    >>> fixed_hessian_descent(problem, budget=Budget(epsilon=1, delta=1e-6), clip=1.0).plan.event
    Gaussian(noise_multiplier=...).under('replace_one') + Gaussian(noise_multiplier=...) * 40
    """
    solver = FixedHessian(
        steps=steps,
        clip=clip,
        hessian_share=hessian_share,
        step_size=step_size,
        momentum=momentum,
        floor=floor,
        release=release,
        tail=tail,
    )
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)


def check_smooth(facts: Facts) -> float:
    """Return the bound on rows of a generalised linear model with a smooth loss, else say why it must be one."""
    if facts.row_norm is None or facts.loss is None:
        raise InvalidParameter(
            "Expected a generalised linear model, got another problem: only there is the Hessian bounded by "
            "the features' second moment. Use glm(...), or a first-order solver."
        )
    if not facts.smoothness:
        raise InvalidParameter(
            f"Expected a smooth loss with some curvature, got {facts.loss!r}: a step along its inverse Hessian is "
            "not defined. Use a smooth loss such as 'logistic', 'huber' or 'smoothed_hinge', or a bounded domain."
        )
    return facts.row_norm
