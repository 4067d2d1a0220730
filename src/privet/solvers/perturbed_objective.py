"""Objective perturbation: tilt the objective by Gaussian noise, solve it once, and blur what the solver left over."""

from dataclasses import dataclass

import numpy as np

from privet._checks import positive
from privet.accounting import Approximate
from privet.errors import InvalidParameter
from privet.geometry.whole_space import WholeSpace
from privet.noise import add_gaussian, rounded_gaussian
from privet.plan import Bounded, Meter, Plan, Release
from privet.plan.plan import check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, Problem, facts_of
from privet.problems.protocol import assumed
from privet.randomness import Random
from privet.solvers.gradient import check_problem
from privet.solvers.minimise import Minimiser
from privet.solvers.smooth_model import Perturbation, default_reach, gradient_bound, max_records
from privet.solvers.solver import Releases, Result, epsilon_beside, ready, solve
from privet.solvers.tilt import Tilt, settled, tilt_for

TILTED = "minimiser of the perturbed objective"
_DELTA_SHARE = 0.9  # of delta, beside other releases, which are Gaussian


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectivePerturbation(Perturbation):
    """argmin of Σ ℓ(w) + (Λ/2)‖w‖² + ⟨b, w⟩ with b Gaussian, and a little noise for what the solver left over.

    Promise: the guarantee meets the budget. The proof is for the exact minimiser; the one that is computed is
    within a certified tolerance of it, and noise hides the difference, charged to the same budget (approximate minima
    perturbation, Iyengar et al. 2019). Whether there is a result never depends on the data. `result.bound` is the
    proven excess risk over the points within `radius`, if that is given and no ridge was asked for.
    Theorem: `tilt_epsilon`; docs/proofs/perturbation.md, sections 3 to 5. Lecture: Razaviyayn, objective perturbation
    (claims 80 to 82). The clipped loss need not be twice differentiable, but a kink is refused: see the median in
    docs/perturbation.md.

    Parameters
    ----------
    regularisation : λ = Λ/records, beside the problem's ridge. By default the larger of what lets the Jacobian cost a
        tenth of epsilon and, with a `radius`, what the utility theorem asks for
    clip : as in `OutputPerturbation`
    radius : public bound on ‖minimiser‖, for the default λ and the bound
    max_records : under "add_remove", a public bound on the number of records, 2^27 by default; the smaller, the less
        blur

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.losses import LogisticLoss
    >>> from privet.problems import Facts
    >>> facts = Facts(records=2000, shape=(3,), neighbours="replace_one", loss=LogisticLoss(), row_norm=1.0)
    >>> plan = ObjectivePerturbation(radius=5.0).plan(facts, Budget(epsilon=1, delta=1e-6))
    >>> 0.999 < plan.guarantee().epsilon <= 1
    True
    """

    def __post_init__(self) -> None:
        Perturbation.__post_init__(self)
        if self.regularisation is not None:
            because, use = "the penalty must be convex", "Leave it out for the default."
            positive("regularisation", self.regularisation, zero=True, because=because, use=use)

    def plan(self, facts: Facts, budget: Budget, *, before: Releases = (), after: Releases = ()) -> Plan:
        check_budget(budget)
        clip = _tiltable(facts, self.clip)

        def planned(cost: Approximate, how: str) -> Plan:
            tilted = Release(
                name=TILTED,
                of="losses, in the minimiser of their sum, a penalty and a random tilt",
                bound=Bounded(clip=clip, how=how),
                size=facts.dimension,
                mechanism=cost,
            )
            return Plan.of(facts, (*before, tilted, *after), budget)

        # a hair less than the budget, so that sums of the parts stay within it
        epsilon, delta = budget.epsilon * (1 - 2.0**-42), budget.delta * (1 - 2.0**-32)
        if before or after:
            delta = _DELTA_SHARE * budget.delta
            epsilon = epsilon_beside(
                lambda e: planned(Approximate(epsilon=e, delta=delta), ""), budget, facts.neighbours
            )
        cost = Approximate(epsilon=epsilon, delta=delta)
        return planned(cost, self._sentence(facts, clip, cost))

    def run(self, plan: Plan, problem: Problem, *, meter: Meter | None = None, random: Random | None = None) -> Result:
        """Tilt, solve and blur."""
        meter = ready(plan, meter, random)
        solver, tilt = self._settled(plan, problem)
        guarantee = meter.guarantee(assumptions=assumed(problem))
        meter.open(TILTED, count=problem.records)
        chance = meter.draw(TILTED)
        # whole numbers below 2^53 times a power of two: exact
        push = rounded_gaussian(chance, tilt.noise_stddev / tilt.unit, problem.shape).astype(np.float64) * tilt.unit
        found = solver.on_lattice(solver.solve(tilt.tolerance, tilt=push), tilt.step)
        coef = add_gaussian(found, step=tilt.step, noise_stddev=tilt.blur, random=chance)
        bound = None
        if self.radius is not None and problem.ridge.alpha == 0:
            bound = tilt.excess_risk(radius=self.radius, d=coef.size, records=plan.count)
        return Result(coef=coef, guarantee=guarantee, plan=plan, bound=bound)

    def tilt(self, plan: Plan, problem: Problem) -> Tilt:
        """The penalty, the noise and the tolerance with which `plan` is run on `problem`; public."""
        return self._settled(plan, problem)[1]

    def _settled(self, plan: Plan, problem: Problem) -> tuple[Minimiser, Tilt]:
        """The solver and its tilt, by public facts."""
        check_problem(plan, problem)
        facts = facts_of(problem, plan.neighbours, plan.records)
        clip = _tiltable(facts, self.clip)
        most = max_records(plan, problem, self.max_records)
        mechanism = plan[TILTED].mechanism
        if not isinstance(mechanism, Approximate):
            raise InvalidParameter(
                f"Expected a plan by ObjectivePerturbation, got one whose {TILTED!r} is {mechanism!r}: the tilt's "
                "noise follows from an epsilon and a delta. Make the plan with .plan(...)."
            )
        found = tilt_for(facts, mechanism, clip=clip, regularisation=self.regularisation, radius=self.radius)
        solver = Minimiser(
            problem=problem,  # type: ignore[arg-type]  # linear, as _tiltable found
            clip=clip,
            strength=found.strength,
            centre=np.zeros(facts.shape),
            reach=default_reach(facts, clip, self.radius),
        )
        return solver, settled(found, solver, most)

    def _sentence(self, facts: Facts, clip: float, mechanism: Approximate) -> str:
        """What the guarantee rests on."""
        found = tilt_for(facts, mechanism, clip=clip, regularisation=self.regularisation, radius=self.radius)
        return (
            f"the loss is convex and as smooth as it declares, each gradient is clipped to norm {clip:g}, the sum of "
            f"losses has a penalty of strength {found.strength:g} and a random tilt of standard deviation "
            f"{found.noise_stddev:g}, the minimiser is computed to a tolerance that is certified, and noise hides the "
            "rest"
        )


def objective_perturbation(
    problem: Problem,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    regularisation: float | None = None,
    clip: float | None = None,
    radius: float | None = None,
    records: int | None = None,
    max_records: int | None = None,
    before: Releases = (),
    random: Random | None = None,
) -> Result:
    """Run `ObjectivePerturbation` on a generalised linear model, on the whole space, with a convex, smooth loss.

    Its loss has one output. Other parameters are as in `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, glm
    >>> from privet.solvers import objective_perturbation
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) / 4
    >>> problem = glm("logistic", X, X @ [2.0, -1.0, 0.5] > 0, row_norm=1.0)
    >>> result = objective_perturbation(problem, budget=Budget(epsilon=1, delta=1e-6), radius=5.0)
    >>> result.coef.shape, result.guarantee.epsilon <= 1, round(result.bound, 3)
    ((3,), True, 0.042)
    """
    solver = ObjectivePerturbation(regularisation=regularisation, clip=clip, radius=radius, max_records=max_records)
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random)


def _tiltable(facts: Facts, clip: float | None) -> float:
    """Refuse, on public facts, what the theorem does not cover; return the bound on a record's gradient."""
    found = gradient_bound(facts, clip)
    if facts.loss is not None and facts.loss.outputs > 1:
        raise InvalidParameter(
            f"Expected a loss with one output, got {facts.loss!r}: with several, one record changes the Jacobian by "
            "more than a matrix of rank one, and nothing is proven. Use output_perturbation or dp_gd."
        )
    if not isinstance(facts.domain, WholeSpace):
        raise InvalidParameter(
            f"Expected the whole space, got {facts.domain!r}: on its border the minimiser has no density, and the "
            "proof compares densities. Leave the domain out, and project the result yourself; that costs nothing."
        )
    return found
