"""The best of several released points: choosing it reads the records again, so the choice is private and charged."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event, ExponentialMechanism
from privet.clipping.lattice import MOST_RECORDS, check_clip
from privet.errors import InvalidParameter
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Guarantee, Neighbours, check_epsilon, check_neighbours
from privet.problems import Problem
from privet.randomness import Random, system_random
from privet.solvers.drawing import exact_choice, exponential_weights
from privet.solvers.exponential import as_candidates, penalties, pure_guarantee, records_exchanged
from privet.solvers.result import Result
from privet.solvers.stochastic_descent import follow
from privet.solvers.updates import UpdateRule

__all__ = ["Choice", "best_iterate", "choose_best"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One of several points, chosen privately: which, the point itself, and the event to add to the run's price.

    `guarantee` is of the choice alone; whatever made the candidates is priced apart, and the two events add up.

    Examples
    --------
    >>> from privet import glm
    >>> from privet.solvers import choose_best
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> choice = choose_best(problem, [[0.0], [0.4], [9.0]], loss_clip=1.0, epsilon=1.0, neighbours="replace_one")
    >>> choice.index, choice.event
    (1, ExponentialMechanism(epsilon=1.0))
    """

    index: int
    coef: Vector
    event: Event
    guarantee: Guarantee


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

    Lecture 13 (Wu) remarks that one may output the best iterate by evaluating the loss (row 28); as it reads the
    records, it is private only like this.

    Promise: the choice is ExponentialMechanism(epsilon). Its expected average loss (each cut to [0, loss_clip], plus
    penalty) exceeds the best candidate's by at most r · loss_clip · ln(number of candidates) ÷ (epsilon · n), with
    r = 2 for one record exchanged and 1 else.
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
    random : the operating system's by default; a fixed seed voids the guarantee

    Examples
    --------
    >>> from privet import glm
    >>> from privet.solvers import choose_best
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> choose_best(problem, [[0.0], [0.4]], loss_clip=1.0, epsilon=1.0, neighbours="zero_out").coef
    array([0.4])
    """
    check_neighbours(neighbours)
    if check_epsilon(epsilon) == 0:
        raise InvalidParameter(
            "Expected a positive epsilon, got 0: the choice would not look at the losses. Use e.g. 0.1."
        )
    half = check_clip(loss_clip, name="loss_clip") / 2
    points = as_candidates(problem, candidates)
    random = random if random is not None else system_random()
    most = MOST_RECORDS if neighbours == "add_remove" else problem.records
    # A loss between 0 and loss_clip is within half of that from its middle: the sum knows cuts to ±clip only.
    sums = [problem.loss_sum(point, clip=half, centre=half, most_records=most) for point in points]
    step = sums[0].step
    width = 2 * math.floor(half / step)  # one record's scores lie in an interval of this width
    rate = Fraction(epsilon) / (records_exchanged(neighbours) * width)
    extras = penalties(problem, points, step, neighbours, records)
    scores = [int(total.units) + extra for total, extra in zip(sums, extras, strict=True)]
    index = exact_choice(random, exponential_weights(scores, rate))
    return Choice(
        index=index,
        coef=points[index],
        event=ExponentialMechanism(epsilon=float(epsilon)),
        guarantee=pure_guarantee(epsilon, neighbours, f"losses are cut to [0, {loss_clip:g}]", random, problem.unit),
    )


def best_iterate(
    problem: Problem,
    *,
    plan: Plan,
    budget: Budget,
    update: UpdateRule,
    loss_clip: float,
    selection_share: float = 0.1,
    most_candidates: int = 32,
    start: Vector | None = None,
    random: Random | None = None,
) -> Result:
    """Descend as planned, then choose the best iterate, both within one budget.

    The choice gets `selection_share` of epsilon; the noise is then calibrated so that all of it together meets
    `budget`. Candidates are at most `most_candidates` iterates, evenly spaced and with the last.

    Promise: `result.guarantee` meets `budget`, with the choice in `result.plan.event`; `result.iterates` are the
    candidates, released at no further cost.

    Parameters
    ----------
    plan : how to descend; its noise is replaced by what the budget allows
    update : how a gradient moves the point
    loss_clip : as in `choose_best`
    selection_share : in (0, 1)
    most_candidates : each costs a pass over all records

    Examples
    --------
    >>> from privet import Budget, Plan, glm
    >>> from privet.clipping import Clip
    >>> from privet.solvers import GradientStep, best_iterate
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> plan = Plan(bounding=Clip(clip=1.0), steps=20, records=500, neighbours="replace_one")
    >>> best_iterate(problem, plan=plan, budget=Budget(epsilon=1, delta=1e-6), update=GradientStep(step_size=0.5),
    ...              loss_clip=1.0).plan.event
    Gaussian(noise_multiplier=...) * 20 + ExponentialMechanism(epsilon=0.1)
    """
    check_budget(budget)
    if not 0 < selection_share < 1:
        raise InvalidParameter(
            f"Expected selection_share in (0, 1), got {selection_share!r}: both the descent and the choice need a part "
            "of the budget. Use 0.1."
        )
    if not (isinstance(most_candidates, int) and not isinstance(most_candidates, bool) and most_candidates >= 2):
        raise InvalidParameter(
            f"Expected most_candidates to be a whole number of at least 2, got {most_candidates!r}: one point is no "
            "choice. Use 32."
        )
    check_clip(loss_clip, name="loss_clip")
    random = random if random is not None else system_random()
    epsilon = selection_share * budget.epsilon
    paid = replace(plan, also=(*plan.also, ExponentialMechanism(epsilon=epsilon))).calibrated(budget)
    run = follow(paid, problem, delta=budget.delta, update=update, release="all", start=start, random=random)
    iterates = np.asarray(run.iterates)
    spread = np.unique(np.linspace(0, len(iterates) - 1, min(most_candidates, len(iterates))).round().astype(np.int64))
    choice = choose_best(
        problem,
        iterates[spread],
        loss_clip=loss_clip,
        epsilon=epsilon,
        neighbours=plan.neighbours,
        records=plan.records,
        random=random,
    )
    return replace(run, coef=choice.coef, iterates=iterates[spread])
