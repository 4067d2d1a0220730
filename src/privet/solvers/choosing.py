"""The best of several released points: choosing it reads the records again, so the choice is private and charged."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet._checks import between, whole
from privet.accounting import Event, ExponentialMechanism
from privet.arrays import Vector
from privet.clipping import Bounding
from privet.clipping.lattice import MOST_RECORDS, check_clip
from privet.errors import InvalidParameter
from privet.plan import Bounded, Meter, Plan, Release
from privet.plan.plan import check_budget
from privet.privacy import Budget, Guarantee, Neighbours, check_epsilon, sensitivity_factor
from privet.problems import Facts, Problem
from privet.randomness import Random
from privet.solvers.descent import DescentSolver
from privet.solvers.drawing import exact_choice, exponential_weights
from privet.solvers.exponential import as_candidates, drawing_facts, mechanism_epsilon, penalties, pure_guarantee
from privet.solvers.gradient import check_problem
from privet.solvers.solver import Releases, Result, Start, ready, solve
from privet.solvers.stochastic_descent import DPSGD
from privet.solvers.updates import UpdateRule

CHOICE = "choice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One of several points, chosen privately: which, the point itself, and the event to add to the run's own.

    `guarantee` is of the choice alone; whatever made the candidates is priced apart, and the two events add up.

    Examples
    --------
    >>> from privet import glm
    >>> from privet.solvers import choose_best
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> choice = choose_best(problem, [[0.0], [0.4], [9.0]], loss_clip=1.0, epsilon=1.0, neighbours="replace_one")
    >>> choice.index, choice.event
    (1, ExponentialMechanism(epsilon=1.0).under('replace_one'))
    """

    index: int
    coef: Vector
    event: Event
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True, slots=True)
class BestIterate:
    """Descend, then choose the best iterate, both within one budget.

    The choice gets `selection_share` of epsilon; the descent's noise is then calibrated so that all of it together
    meets the budget. Candidates are at most `max_candidates` iterates, evenly spaced and with the last.

    Promise: the guarantee meets the budget, with the choice in the plan; `result.iterates` are the candidates,
    released at no further cost.

    Parameters
    ----------
    descent : how to descend; it must release all iterates
    loss_clip : as in `choose_best`
    selection_share : in (0, 1)
    max_candidates : each costs a pass over all records

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> from privet.solvers import DPSGD
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> solver = BestIterate(descent=DPSGD(steps=20, clip=1.0, step_size=0.5, release="all"), loss_clip=1.0)
    >>> solver.plan(facts_of(problem, "zero_out"), Budget(epsilon=1, delta=1e-6)).names
    ('gradients', 'choice')
    """

    descent: DescentSolver
    loss_clip: float
    selection_share: float = 0.1
    max_candidates: int = 32

    def __post_init__(self) -> None:
        because = "both the descent and the choice need a part of the budget"
        between("selection_share", self.selection_share, 0, 1, because=because, use="Use 0.1.")
        whole("max_candidates", self.max_candidates, least=2, because="one point is no choice", use="Use 32.")
        check_clip(self.loss_clip, name="loss_clip")
        if self.descent.release != "all":
            raise InvalidParameter(
                f"Expected a descent that releases all iterates, got release={self.descent.release!r}: there would be "
                "nothing to choose from. Use release='all'."
            )

    def plan(self, facts: Facts, budget: Budget, *, before: Releases = (), after: Releases = ()) -> Plan:
        choice = _release(self.loss_clip, self.selection_share * check_budget(budget).epsilon)
        return self.descent.plan(facts, budget, before=before, after=(choice, *after))

    def run(
        self,
        plan: Plan,
        problem: Problem,
        *,
        meter: Meter | None = None,
        random: Random | None = None,
        start: Start = None,
    ) -> Result:
        """Descend as planned, then choose."""
        meter = ready(plan, meter, random)
        found = self.descent.run(plan, problem, meter=meter, start=start)
        path = np.asarray(found.iterates)  # all of them, as checked above
        places = np.linspace(0, len(path) - 1, min(self.max_candidates, len(path))).round().astype(np.int64)
        candidates = path[np.unique(places)]
        index = _chosen(problem, candidates, meter)
        return replace(found, coef=candidates[index], iterates=candidates)


def choose_best(
    problem: Problem,
    candidates: Any,
    *,
    loss_clip: float,
    epsilon: float,
    neighbours: Neighbours,
    records: int | None = None,
    random: Random | None = None,
) -> Choice:
    """Choose the candidate of least total loss, nearly: with probability ∝ exp(−β Σ losses), exactly.

    Lecture 13 (Wu) remarks that one may output the best iterate by evaluating the loss (claim 28); as it reads the
    records, it is private only like this.

    Promise: the choice is ExponentialMechanism(epsilon). Its expected average loss (each cut to [0, loss_clip], plus
    penalty) exceeds the best candidate's by at most r · loss_clip · ln(number of candidates) ÷ (epsilon · n), with
    r = 2 for one record replaced and 1 else.
    Theorem: McSherry and Talwar 2007; docs/proofs/drawing.md, section 3.
    Cost: one pass over the records a candidate.

    Parameters
    ----------
    problem : whose loss counts
    candidates : (m, ...) points, m ≥ 2, public: e.g. `result.iterates` of a run with release="all"
    loss_clip : the largest loss that counts, public; losses are cut to [0, loss_clip]
    epsilon : positive
    neighbours : the relation of the run that made the candidates
    records : under "add_remove" with a ridge, a public guess of the number of records
    random : the operating system's by default; a fixed seed invalidates the guarantee

    Examples
    --------
    >>> from privet import glm
    >>> from privet.solvers import choose_best
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> choose_best(problem, [[0.0], [0.4]], loss_clip=1.0, epsilon=1.0, neighbours="zero_out").coef
    array([0.4])
    """
    if check_epsilon(epsilon) == 0:
        raise InvalidParameter(
            "Expected a positive epsilon, got 0: the choice would not look at the losses. Use e.g. 0.1."
        )
    release = _release(loss_clip, float(epsilon))
    points = as_candidates(problem, candidates)
    facts = drawing_facts(problem, neighbours, records)
    plan = Plan.of(facts, (release,))
    meter = Meter(plan, random=random)
    index = _chosen(problem, points, meter)
    meter.finish()
    return Choice(index=index, coef=points[index], event=plan.event, guarantee=pure_guarantee(meter, problem))


def best_iterate(
    problem: Problem,
    *,
    plan: Plan,
    budget: Budget,
    update: UpdateRule,
    loss_clip: float,
    selection_share: float = 0.1,
    max_candidates: int = 32,
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Descend along the gradients of `plan`, then choose the best iterate: `BestIterate` of a `DPSGD`.

    Parameters
    ----------
    plan : how to descend; its noise is replaced by what the budget allows
    update : how a gradient moves the point
    loss_clip, selection_share, max_candidates : as in `BestIterate`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> from privet.solvers import GradientStep, best_iterate
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), steps=20, records=500, neighbours="replace_one")
    >>> best_iterate(problem, plan=plan, budget=Budget(epsilon=1, delta=1e-6), update=GradientStep(step_size=0.5),
    ...              loss_clip=1.0).plan.event
    Gaussian(noise_multiplier=...) * 20 + ExponentialMechanism(epsilon=0.1).under('replace_one')
    """
    check_problem(plan, problem)
    gradients = plan["gradients"]
    if plan.names != ("gradients",) or not isinstance(gradients.bound, Bounding):
        raise InvalidParameter(
            f"Expected a plan of clipped gradients alone, got one of {', '.join(plan.names)}: only its gradients would "
            "be run. Use BestIterate(...), whose plan takes what comes before and after."
        )
    steps, sampling, rule = plan.times("gradients"), gradients.sampling, gradients.bound
    descent = DPSGD(steps=steps, sampling=sampling, bounding=rule, update=update, release="all")
    solver = BestIterate(
        descent=descent, loss_clip=loss_clip, selection_share=selection_share, max_candidates=max_candidates
    )
    return solve(solver, problem, budget, plan.neighbours, records=plan.count, random=random, start=start)


def _release(loss_clip: float, epsilon: float) -> Release:
    clip = check_clip(loss_clip, name="loss_clip")
    return Release(
        name=CHOICE,
        of="losses at released points, in a random choice among them",
        bound=Bounded(clip=clip, how=f"losses are cut to [0, {clip:g}]"),
        mechanism=ExponentialMechanism(epsilon=epsilon),
    )


def _chosen(problem: Problem, points: Vector, meter: Meter) -> int:
    """The index of the point that the next release of the meter, a choice, falls on."""
    plan = meter.plan
    check_problem(plan, problem)
    half = plan[CHOICE].bound.clip / 2  # type: ignore[union-attr]  # Bounded
    most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
    meter.open(CHOICE, count=problem.records)
    # A loss between 0 and loss_clip is within half of that from its middle: the sum knows cuts to ±clip only.
    sums = [problem.loss_sum(point, clip=half, centre=half, max_records=most) for point in points]
    step = sums[0].step
    width = 2 * math.floor(half / step)  # one record's scores lie in an interval of this width
    rate = Fraction(mechanism_epsilon(plan, CHOICE)) / (sensitivity_factor(plan.neighbours) * width)
    extras = penalties(problem, points, step, plan.count)
    scores = [int(total.units) + extra for total, extra in zip(sums, extras, strict=True)]
    weights = exponential_weights(scores, rate)
    return int(meter.chosen(CHOICE, lambda random: exact_choice(random, weights)))
