"""Output perturbation: solve a strongly convex problem to a certified tolerance, then add Gaussian noise once."""

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.numerics import upward
from privet.errors import InvalidParameter
from privet.plan import Computed, Meter, Plan, Release
from privet.plan.plan import check_budget, whole_noise
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, LinearProblem, Problem, facts_of
from privet.problems.protocol import assumed
from privet.randomness import Random
from privet.solvers.descent import project
from privet.solvers.gradient import check_problem
from privet.solvers.minimise import Minimiser
from privet.solvers.smooth_model import Perturbation, default_reach, gradient_bound, max_records
from privet.solvers.solver import Releases, Result, ready, solve
from privet.theory import output_perturbation_bound, plan_for

MINIMISER = "minimiser"
_FINE = 2.0**-16  # the tolerance aimed at, as a part of the sensitivity


@dataclass(frozen=True, kw_only=True, slots=True)
class SolvedTo:
    """How far one record moves a computed minimiser: by strong convexity, a clip, and a certified solver. Public.

    Promise: zeroing out, adding or removing a record moves the computed minimiser by at most `clip`, replacing one by
    at most 2 × `clip`: gradient_clip/strength for the exact one, and 2 × `tolerance` for what was computed.

    Examples
    --------
    >>> round(SolvedTo(gradient_clip=1.0, strength=100.0, tolerance=1e-7).clip, 9)
    0.0100002
    """

    gradient_clip: float
    strength: float
    tolerance: float

    @property
    def clip(self) -> float:
        return upward(upward(self.gradient_clip / self.strength) + 2.0 * self.tolerance)


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputPerturbation(Perturbation):
    """argmin over the domain of L(w) + (λ/2)‖w − centre‖², plus Gaussian noise, projected back.

    Promise: the guarantee meets the budget, however well or badly the problem is conditioned: the minimiser is
    computed to a certified tolerance, which is part of the sensitivity. Whether there is a result never depends on the
    data. `result.bound` is the proven excess risk over the points within `radius`, if no ridge was asked for.
    Theorem: the minimiser of a sum with penalty strength Λ = λ · records moves by at most clip/Λ when a record is
    zeroed out, added or removed, by twice that when it is replaced; docs/proofs/perturbation.md, section 1. Lecture:
    Razaviyayn, output perturbation (claims 76 to 79).

    Parameters
    ----------
    regularisation : λ; by default the problem's own ridge, or the theorem's λ if it has none. It must not come from
        the data
    clip : bound on a record's gradient norm, enforced; the proven Lipschitz constant by default
    radius : public bound on ‖centre − minimiser‖; the domain's radius by default; needed on an unbounded domain
    max_records : under "add_remove", a public bound on the number of records; 2^27 by default

    Examples
    --------
    >>> from privet import Budget, l2_ball
    >>> from privet.losses import LogisticLoss
    >>> from privet.problems import Facts
    >>> facts = Facts(records=2000, shape=(3,), neighbours="replace_one", loss=LogisticLoss(), row_norm=1.0,
    ...               domain=l2_ball(radius=5))
    >>> OutputPerturbation().plan(facts, Budget(epsilon=1, delta=1e-6)).names
    ('minimiser',)
    """

    def plan(self, facts: Facts, budget: Budget, *, before: Releases = (), after: Releases = ()) -> Plan:
        clip = gradient_bound(facts, self.clip)
        strength = self._strength(facts, clip, check_budget(budget))
        minimiser = Release(
            name=MINIMISER,
            of="losses, in the minimiser of their sum and a penalty",
            bound=Computed(
                how="the loss is convex and as smooth as it declares, each gradient is clipped to norm "
                f"{clip:g}, the sum of losses has a penalty of strength {strength:g}, and the minimiser is computed to "
                "a tolerance that is certified and counted in the sensitivity"
            ),
            size=facts.dimension,
            noise_multiplier=math.nan if before or after else whole_noise(budget, facts.neighbours),
        )
        return Plan.of(facts, (*before, minimiser, *after)).calibrated(budget)

    def run(self, plan: Plan, problem: Problem, *, meter: Meter | None = None, random: Random | None = None) -> Result:
        """Solve and release."""
        meter = ready(plan, meter, random)
        solver, solved, tolerance, step = self._settled(plan, problem)
        model, sensitivity = solver.problem, solved.clip
        guarantee = meter.guarantee(assumptions=assumed(problem))
        stddev = meter.noise_stddev(MINIMISER, sensitivity=sensitivity)
        meter.open(MINIMISER, count=model.records)
        found = solver.on_lattice(solver.solve(tolerance), step)
        noisy = meter.noisy_units(MINIMISER, found, step=step, sensitivity=sensitivity)
        bound, distance = None, self._distance(facts_of(model, plan.neighbours, plan.records))
        if model.ridge.alpha == 0 and distance is not None:
            bound = _bound(model, distance, solved, solved.strength / plan.count, stddev)
        return Result(coef=project(model.domain, noisy), guarantee=guarantee, plan=plan, bound=bound)

    def solved_to(self, plan: Plan, problem: Problem) -> SolvedTo:
        """What bounds one record's influence when `plan` is run on `problem`; public."""
        return self._settled(plan, problem)[1]

    def _settled(self, plan: Plan, problem: Problem) -> tuple[Minimiser, SolvedTo, float, float]:
        """The solver, the sensitivity, the tolerance to solve to and the lattice, all by public facts."""
        check_problem(plan, problem)
        facts = facts_of(problem, plan.neighbours, plan.records)
        clip = gradient_bound(facts, self.clip)
        strength = self._strength(facts, clip, plan.budget)
        centre = np.asarray(facts.domain.centre(facts.dimension)).reshape(facts.shape)
        solver = Minimiser(
            problem=problem,  # type: ignore[arg-type]  # linear, as gradient_bound found
            clip=clip,
            strength=strength,
            centre=centre * (1.0 - facts.ridge.alpha * plan.count / strength),  # of ridge and λ together
            reach=default_reach(facts, clip, self._distance(facts)),
        )
        exact = clip / strength
        step = solver.lattice(plan[MINIMISER].noise_multiplier * exact)
        most = max_records(plan, problem, self.max_records)
        tolerance = max(_FINE * exact, solver.least_tolerance(records=most))
        allowed = upward(tolerance + solver.slack(step))
        return solver, SolvedTo(gradient_clip=clip, strength=strength, tolerance=allowed), tolerance, step

    def _distance(self, facts: Facts) -> float | None:
        found = self.radius if self.radius is not None else facts.domain.radius
        return found if math.isfinite(found) else None

    def _strength(self, facts: Facts, clip: float, budget: Budget | None) -> float:
        """Λ, of the sum of losses: ridge and regularisation together, or the theorem's."""
        own, count, radius = facts.ridge.alpha, facts.records, self._distance(facts)
        if self.regularisation is not None:
            total = own + self.regularisation
            if not (math.isfinite(total) and self.regularisation >= 0 and total > 0):
                raise InvalidParameter(
                    f"Expected a positive regularisation, got {self.regularisation!r} and a ridge of {own:g}: without "
                    "strong convexity one record can move the minimiser anywhere, and no noise hides it. Pass "
                    "regularisation > 0, or leave it out."
                )
            return total * count
        if own > 0:
            return own * count
        if radius is None:
            raise InvalidParameter(
                "Expected regularisation, a ridge, or a radius, got none on an unbounded domain: without strong "
                "convexity one record can move the minimiser anywhere, and the theorem's λ needs a radius. Pass one of "
                "them, chosen without the data."
            )
        found = plan_for(
            n=count,
            d=facts.dimension,
            radius=radius,
            lipschitz=clip,
            budget=check_budget(budget),  # type: ignore[arg-type]  # refused if there is none
            neighbours=facts.neighbours,
            method="output_perturbation",
        ).regularisation
        return count * found  # type: ignore[operator]  # this method has one


def output_perturbation(
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
    """Run `OutputPerturbation` on a generalised linear model with a convex, smooth loss.

    Other parameters are as in `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from privet import Budget, glm, l2_ball
    >>> from privet.solvers import output_perturbation
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) / 4
    >>> problem = glm("logistic", X, X @ [2.0, -1.0, 0.5] > 0, domain=l2_ball(radius=5), row_norm=1.0)
    >>> result = output_perturbation(problem, budget=Budget(epsilon=1, delta=1e-6))
    >>> result.coef.shape, result.guarantee.epsilon <= 1, round(result.bound, 3)
    ((3,), True, 0.601)
    """
    solver = OutputPerturbation(regularisation=regularisation, clip=clip, radius=radius, max_records=max_records)
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random)


def _bound(model: LinearProblem, distance: float, solved: SolvedTo, strength: float, stddev: float) -> float:
    """Claim 77 with the noise that was drawn and the tolerance that was allowed."""
    diameter = model.domain.diameter  # of no use if the noise may leave every set
    found = output_perturbation_bound(
        distance=distance,
        diameter=diameter if math.isfinite(diameter) else 2.0**200,
        lipschitz=solved.gradient_clip,
        d=math.prod(model.shape),
        regularisation=strength,
        noise_stddev=stddev * (1 + 2.0**-20),
    )
    return found.value + solved.gradient_clip * solved.tolerance
