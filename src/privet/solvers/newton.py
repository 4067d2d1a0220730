"""DP-Newton: each step a private gradient, then a private Newton direction for it (double noise)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privet._checks import between, is_number
from privet.arrays import Vector
from privet.clipping import Clip
from privet.clipping.rules import FloatArray
from privet.errors import InvalidParameter
from privet.losses import LogisticLoss
from privet.plan import Computed, Meter, Plan, Release
from privet.plan.influence import unit_clip
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, LinearProblem, Problem, facts_of
from privet.randomness import Random
from privet.solvers.descent import Course, DescentSolver, ReleaseRule, gradient_release
from privet.solvers.fixed_hessian import check_smooth
from privet.solvers.gradient import PrivateGradient
from privet.solvers.newton_direction import (
    DIRECTIONS,
    direction_sensitivity,
    gradient_size,
    newton_direction,
    noisy_direction,
)
from privet.solvers.solver import Releases, Result, Start, solve
from privet.solvers.updates import GradientStep

_TURN = "one record turns the inverse Hessian by at most k/(l^2 + lk), k its curvature and l what is added to it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Newton(DescentSolver):
    """θ ← Π(θ − η ((H + λI)⁻¹ g̃ + noise)), g̃ a private gradient, H the Hessian of the average loss at θ.

    g̃ is public once it is released; only H still reads the records, and one record turns (H + λI)⁻¹ by at most
    κ/(λ² + λκ) in spectral norm, κ = smoothness · row_norm² ÷ n. So the direction is released with Gaussian noise in
    proportion to ‖g̃‖. λ is the ridge plus `damping`.

    Promise: the guarantee meets the budget. No excess risk is claimed.
    Theorem: Ganesh, Haghifam, Steinke and Thakurta 2023, "Faster differentially private convex optimization via
    second-order methods", double noise with λ added. Under "replace_one" the same bound holds without a factor 2:
    docs/proofs/drawing.md, section 5. All releases are Gaussian and compose exactly.
    Cost: a step is two passes over the records, one of them O(d²) a record, and one solve of d equations.

    Parameters
    ----------
    clip : per-record bound on the gradient norm
    steps : Newton steps; each releases a gradient and a direction
    damping : added to the Hessian, in the unit of curvature × row_norm²; public. By default about as
        much as it takes for the direction's noise to shrink the gradient's norm rather than to blow it up:
        κ√(n × noise ÷ (2 × sensitivity))
    direction_share : share of the budget for the directions, in (0, 1); the gradients have the rest
    step_size : η; 1 is a full Newton step
    majorise : for the logistic loss, take the curvature tanh(z/2)/(2z) of the parabola that touches the loss at z and
        is nowhere below it, in place of its own: then a full step never overshoots. Other losses keep their own
    release, tail : as in `DPSGD`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> problem = glm("logistic", [[1.0, 0.0], [0.0, 0.1]] * 5000, [0, 1] * 5000, row_norm=1.0)
    >>> plan = Newton(clip=1.0, steps=5).plan(facts_of(problem, "zero_out"), Budget(epsilon=1, delta=1e-6))
    >>> [release.name for release in plan.releases[:4]], plan.times("directions")
    (['gradients', 'directions', 'gradients', 'directions'], 5)
    """

    clip: float
    steps: int = 10
    damping: float | None = None
    direction_share: float = 0.5
    step_size: float = 1.0
    majorise: bool = True
    release: ReleaseRule = "last"

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        because = "both the gradients and the directions need a part of the budget"
        between("direction_share", self.direction_share, 0, 1, because=because, use="Use 0.5.")

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        _check_records(facts)
        gradients = gradient_release(facts, Clip(clip=self.clip), steps=self.steps)
        direction = Release(
            name=DIRECTIONS,
            of="curvatures of the loss, in the Newton direction of a released gradient",
            bound=Computed(how=_TURN, when_replaced=1.0),
            size=facts.dimension,
        )
        ratio = math.sqrt((1 - self.direction_share) / self.direction_share)
        return (replace(gradients, times=1), direction) * gradients.times, {DIRECTIONS: ratio}

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        facts = facts_of(problem, plan.neighbours, plan.records)
        _check_records(facts)
        gradient, update = PrivateGradient(problem, meter), GradientStep(step_size=self.step_size)
        turn = self._turning(plan, facts, problem, meter)  # type: ignore[arg-type]  # linear, as the check found
        steps = plan.times(DIRECTIONS)
        return Course(direction=lambda point: turn(point, gradient(point)), steps=steps, update=update)

    def _turning(
        self, plan: Plan, facts: Facts, problem: LinearProblem, meter: Meter
    ) -> Callable[[Vector, Vector], Vector]:
        """From a point and a released gradient there to the private Newton direction."""
        smoothness, most = facts.smoothness or 0.0, plan.max_records(DIRECTIONS)
        influence = smoothness * problem.row_norm**2 / plan.count
        damping = self._damping(plan, influence, facts.ridge.alpha)
        sensitivity = direction_sensitivity(influence, damping, facts.dimension, most)
        loss = problem.loss
        curvature = _majorised if self.majorise and isinstance(loss, LogisticLoss) else loss.curvature

        def turn(point: Vector, gradient: Vector) -> Vector:
            size = gradient_size(gradient)
            if size == 0:  # the direction is nothing, as public as the gradient
                meter.skip(DIRECTIONS)
                return np.zeros_like(gradient)
            meter.open(DIRECTIONS, count=problem.records)
            moments = problem.curvature_sum(curvature, point, smoothness=smoothness, max_records=most)
            found = newton_direction(
                moments, gradient, scale=smoothness / plan.count, damping=damping, error=sensitivity
            )
            return noisy_direction(meter, found, size=size, sensitivity=sensitivity)

        return turn

    def _damping(self, plan: Plan, influence: float, ridge: float) -> float:
        """λ, all that is added to the Hessian."""
        release = plan[DIRECTIONS]
        relative = release.noise_multiplier * unit_clip(release.bound, plan.neighbours)  # noise ÷ sensitivity
        usual = influence * math.sqrt(max(relative * plan.count / 2, 1.0))
        damping = self.damping if self.damping is not None else usual
        if not (is_number(damping) and damping >= 0 and damping + ridge > 0):
            raise InvalidParameter(
                f"Expected damping to be a finite number of at least 0, and above 0 without a ridge, got {damping!r}: "
                "it keeps the Hessian invertible. Leave it out, or use a small part of smoothness × row_norm²."
            )
        return float(damping) + ridge


def newton_descent(
    problem: LinearProblem,
    *,
    budget: Budget,
    steps: int = 10,
    clip: float,
    damping: float | None = None,
    direction_share: float = 0.5,
    step_size: float = 1.0,
    majorise: bool = True,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "last",
    records: int | None = None,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Run `Newton` on a problem, all of it for one budget; other parameters as in `solve`.

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.solvers import newton_descent
    >>> problem = glm("logistic", [[1.0, 0.0], [0.0, 0.1]] * 5000, [0, 1] * 5000, row_norm=1.0)
    >>> newton_descent(problem, budget=Budget(epsilon=1, delta=1e-6), clip=1.0, steps=5).plan.event
    Gaussian(noise_multiplier=...) * 5 + (Gaussian(noise_multiplier=...) * 5).under('replace_one')
    """
    solver = Newton(
        clip=clip,
        steps=steps,
        damping=damping,
        direction_share=direction_share,
        step_size=step_size,
        majorise=majorise,
        release=release,
    )
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)


def _check_records(facts: Facts) -> None:
    """Refuse, on public facts, what has no proven sensitivity of a direction."""
    check_smooth(facts)
    if facts.unit == "person":
        raise InvalidParameter(
            "Expected a problem of records, got one of people with many rows: the sum of their curvatures is bounded "
            "row by row here. Use fixed_hessian_descent, dp_gd or dp_sgd."
        )
    if len(facts.shape) > 1:
        raise InvalidParameter(
            f"Expected a loss with one prediction a record, got {facts.loss!r}: its Hessian couples the classes, for "
            "which no sensitivity is proven here. Use dp_gd or dp_sgd, or one model a class."
        )


def _majorised(z: FloatArray, y: FloatArray) -> FloatArray:
    """tanh(z/2)/(2z), between 0 and ¼; Jaakkola and Jordan 2000."""
    size = np.maximum(np.abs(z), 2.0**-20)  # below, it is ¼ to the last bits
    return np.asarray(np.tanh(size / 2) / (2 * size))
