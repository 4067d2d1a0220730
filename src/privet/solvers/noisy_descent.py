"""Noisy (projected) gradient descent: full batches, a proven Lipschitz constant, parameters by theorem."""

import math
from dataclasses import dataclass

from privet._checks import whole
from privet.arrays import Vector
from privet.clipping import Declared
from privet.errors import InvalidParameter
from privet.geometry.whole_space import WholeSpace
from privet.plan import Meter, Plan
from privet.plan.plan import check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, Problem, facts_of
from privet.randomness import Random
from privet.solvers.descent import Course, DescentSolver, ReleaseRule, gradient_release, starting_point
from privet.solvers.sampled_risk import convex_as_bounded
from privet.solvers.solver import Releases, Result, Start, solve
from privet.solvers.stochastic_descent import along_gradients
from privet.solvers.updates import GradientStep, StepSize
from privet.theory import plan_for
from privet.theory.prescription import Method, Prescription


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisyGradientDescent(DescentSolver):
    """w_t = Π(w_{t−1} − η (∇L(w_{t−1}) + noise)), with T, η and noise by theorem unless given.

    On a bounded domain this is noisy projected gradient descent (lecture 13, Wu, algorithm 2); on the whole space,
    noisy gradient descent, also called Langevin (lecture 13, Brown, algorithm 1), whose bound depends on the rank of
    the data and not on d. Gradients are bounded by the Lipschitz constant that loss, rows and domain prove; it is
    enforced, never believed.

    Promise: the guarantee meets the budget; `result.bound` is the proven excess risk of `coef` over the domain. It is
    None where no theorem applies: another release than the method's, a loss that is not convex, per-record losses, or
    a budget that pays for other releases too.

    Parameters
    ----------
    release, tail : as in `DPSGD`: one privacy cost, different theorems
    method : the theorem, if not the release's usual one: "last" for steps c/√t, "rank" for the rank bound
    steps : noisy gradients to take; by theorem if left out, at most `max_steps`
    step_size : η or a function of t = 1, 2, …; by theorem if left out. Given, no bound is claimed
    radius : a public bound on ‖start − minimiser‖; by default the domain's radius, for a start at its centre;
        required on the whole space, and with a start of one's own
    rank : a public bound on the rank of the records, for method="rank"
    lipschitz : a bound on gradient norms, if none is proven, or a smaller one; enforced by clipping

    Examples
    --------
    >>> from privet import Budget, l2_ball
    >>> from privet.losses import LogisticLoss
    >>> from privet.problems import Facts
    >>> facts = Facts(records=2000, shape=(3,), neighbours="replace_one", loss=LogisticLoss(), row_norm=1.0,
    ...               domain=l2_ball(radius=5))
    >>> NoisyGradientDescent().plan(facts, Budget(epsilon=1, delta=1e-6)).event
    Gaussian(noise_multiplier=...) * ...
    """

    method: Method | None = None
    steps: int | None = None
    step_size: StepSize | None = None
    radius: float | None = None
    rank: int | None = None
    lipschitz: float | None = None
    max_steps: int = 5_000

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        if self.steps is not None:
            whole("steps", self.steps, because="without a step nothing is learnt", use="Use e.g. 100.")

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        prescription = self._prescribed(facts, check_budget(budget))
        prescribed = None if prescription is None else prescription.noisy_steps
        steps = self.steps if prescribed is None else prescribed
        rule = Declared(lipschitz=proven_lipschitz(facts, self.lipschitz))
        return (gradient_release(facts, rule, steps=1 if steps is None else steps),), {}

    def _begin(self, problem: Problem, start: Start) -> Vector:
        if start is not None and self.radius is None:
            raise InvalidParameter(
                "Expected radius=... with a start of your own, got none: the domain's radius bounds the distance from "
                "its centre only. Pass a public bound on the distance of the minimiser from the start."
            )
        return starting_point(problem, start)

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        facts = facts_of(problem, plan.neighbours, plan.records)
        prescription = self._prescribed(facts, check_budget(plan.budget))  # type: ignore[arg-type]  # refused if None
        alone = plan.names == ("gradients",)  # else part of the budget, and so more noise, is for other releases
        ours = "average" if self._theorem in ("average", "rank") else "last"  # what the theorem is about
        proven = ours == self._point and convex_as_bounded(facts, plan["gradients"].bound.clip)  # type: ignore[union-attr]
        bound = None
        if prescription is not None and self.step_size is None and proven and alone:
            bound = prescription.excess_risk
        eta = self.step_size if self.step_size is not None else prescription.step_size_at  # type: ignore[union-attr]
        return along_gradients(plan, problem, meter, GradientStep(step_size=eta), bound=bound)

    @property
    def _theorem(self) -> Method:
        usual: Method = "last_linear" if self._point == "last" else "average"
        return usual if self.method is None else self.method

    @property
    def _point(self) -> str:
        return "last" if self.release == "all" else self.release  # of all iterates, coef is the last

    def _prescribed(self, facts: Facts, budget: Budget) -> Prescription | None:
        """The theorem's parameters, with at least one noisy gradient; None if the caller has set them all."""
        method, domain = self._theorem, facts.domain
        gradient_norm = proven_lipschitz(facts, self.lipschitz)
        distance = _distance(facts, self.radius)
        _check_domain(method, facts)
        if self.steps is not None and self.step_size is not None:
            return None
        width = domain.diameter if method == "last" else None  # other theorems need the distance alone
        reach = distance if width is None else min(max(distance, width / 2), width)

        def ask(iterates: int | None) -> Prescription:
            return plan_for(
                n=facts.records,
                d=facts.dimension,
                radius=reach,
                diameter=width,
                lipschitz=gradient_norm,
                budget=budget,
                neighbours=facts.neighbours,
                method=method,
                rank=self.rank,
                steps=iterates,
                max_steps=None if iterates is not None else self.max_steps,
            )

        extra = 0 if method == "last" else 1  # averages and linear decay count the start among their T iterates
        found = ask(None if self.steps is None else self.steps + extra)
        return found if found.noisy_steps else ask(1 + extra)


def noisy_gradient_descent(
    problem: Problem,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "average",
    method: Method | None = None,
    steps: int | None = None,
    step_size: StepSize | None = None,
    radius: float | None = None,
    rank: int | None = None,
    lipschitz: float | None = None,
    records: int | None = None,
    max_steps: int = 5_000,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Run `NoisyGradientDescent` on a problem; with a `start` of one's own, `radius` is by default the diameter.

    Other parameters are as in `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, glm, l2_ball, noisy_gradient_descent
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) / 4
    >>> problem = glm("logistic", X, X @ [2.0, -1.0, 0.5] > 0, domain=l2_ball(radius=5), row_norm=1.0)
    >>> result = noisy_gradient_descent(problem, budget=Budget(epsilon=1, delta=1e-6), max_steps=500)
    >>> result.coef.shape, result.guarantee.epsilon <= 1, round(result.bound, 3)
    ((3,), True, 0.225)
    """
    solver = NoisyGradientDescent(
        release=release,
        method=method,
        steps=steps,
        step_size=step_size,
        radius=problem.domain.diameter if start is not None and radius is None else radius,
        rank=rank,
        lipschitz=lipschitz,
        max_steps=max_steps,
    )
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)


def proven_lipschitz(facts: Facts, declared: float | None) -> float:
    """The bound on gradient norms that is declared, or else the proven one; refuses a problem without either."""
    found = declared if declared is not None else facts.lipschitz
    if found is None:
        raise InvalidParameter(
            "Expected a problem whose gradients have a proven bound, got one without: the theorem needs it. "
            "Bound the domain and the labels, pass lipschitz=... (enforced by clipping), or use dp_gd with a clip."
        )
    return found


def _check_domain(method: Method, facts: Facts) -> None:
    """Refuse a theorem that does not hold on such a domain."""
    if method == "rank" and not isinstance(facts.domain, WholeSpace):
        raise InvalidParameter(
            f"Expected the whole space as domain for method='rank', got {facts.domain!r}: a projection mixes noise "
            "into the span of the records. Leave the domain out, or use method='average'."
        )
    if method == "last" and not math.isfinite(facts.domain.diameter):
        raise InvalidParameter(
            f"Expected a bounded domain for method='last', got {facts.domain!r}: steps c/√t need its diameter. "
            "Bound the domain, or use method='last_linear'."
        )


def _distance(facts: Facts, radius: float | None) -> float:
    found = facts.domain.radius if radius is None else radius
    if not (math.isfinite(found) and found > 0):
        raise InvalidParameter(
            f"Expected a finite positive radius, got {found!r}: on an unbounded domain the step size needs a public "
            "guess of how far the minimiser is. Pass radius=..., chosen without the data, or a bounded domain."
        )
    return found
