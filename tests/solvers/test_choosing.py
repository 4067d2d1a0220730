"""The best of several points: chosen by an exact law, within its price, inside one budget if asked for."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from privet import Budget, accounting, glm, per_record
from privet.accounting import ExponentialMechanism, Gaussian
from privet.clipping import Clip
from privet.clipping.lattice import MOST_RECORDS, LatticeSum
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, SquaredLoss
from privet.plan import Plan, gradient_plan
from privet.privacy import Neighbours, sensitivity_factor
from privet.problems import LinearProblem, Problem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Poisson
from privet.solvers import GradientStep, best_iterate, choose_best, dp_sgd
from privet.solvers.drawing import exponential_weights

RELATIONS: list[Neighbours] = ["replace_one", "zero_out", "add_remove"]
POINTS = np.array([[0.0], [0.5], [1.0], [-4.0]])
BUDGET = Budget(epsilon=1, delta=1e-6)


def means(labels: list[float]) -> LinearProblem:
    return glm("half_squared", [[1.0]] * len(labels), labels, row_norm=1.0)


def scores(problem: Problem, relation: Neighbours, clip: float = 1.0) -> tuple[list[int], int, float]:
    """Total losses cut to [0, clip], in whole units, up to a constant a record; one record's width; the unit."""
    most = MOST_RECORDS if relation == "add_remove" else problem.records
    sums = [problem.loss_sum(point, clip=clip / 2, centre=clip / 2, max_records=most) for point in POINTS]
    return [int(s.units) for s in sums], 2 * math.floor(clip / 2 / sums[0].step), sums[0].step


@pytest.mark.medium
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("label", [0.0, 0.5, 1.0, -4.0, 1e200, math.nan])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_record_moves_the_scores_within_the_width(relation: Neighbours, label: float, n: int) -> None:
    """Exact range of the change over all candidates, for hostile labels: never above what epsilon is divided by.

    The mutant "one record's width for a record exchanged" is caught by labels 0 and 1: there the range is above it.
    """
    problem = means([*[0.2] * (n - 1), label])
    spreads = []
    for other in (1.0, 0.5, -4.0):
        labels = [*[0.2] * (n - 1), {"replace_one": other, "zero_out": math.nan, "add_remove": 0.0}[relation]]
        twin = means(labels[:-1] if relation == "add_remove" else labels) if n > 1 or relation != "add_remove" else None
        ours, width, _ = scores(problem, relation)
        theirs = [0] * len(POINTS) if twin is None else scores(twin, relation)[0]
        moves = [a - b for a, b in zip(ours, theirs, strict=True)]
        spreads.append(max(moves) - min(moves))
        assert spreads[-1] <= sensitivity_factor(relation) * width
    if label == -4.0 and relation == "replace_one":
        assert max(spreads) > width


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_candidate_is_likelier_by_more_than_epsilon(relation: Neighbours) -> None:
    """Exact probabilities on a worst pair: log ratios within ±epsilon, and of range at most epsilon."""
    epsilon = 0.8
    pair = {
        "replace_one": ([0.2, -4.0], [0.2, 1.0]),
        "zero_out": ([0.2, -4.0], [0.2, math.nan]),
        "add_remove": ([0.2, -4.0], [0.2]),
    }[relation]
    logs = []
    for labels in pair:
        values, width, _ = scores(means(labels), relation)
        weights = exponential_weights(values, Fraction(epsilon) / (sensitivity_factor(relation) * width))(60)
        logs.append([math.log(Fraction(w, sum(weights))) for w in weights])
    ratios = [a - b for a, b in zip(*logs, strict=True)]
    assert max(map(abs, ratios)) <= epsilon
    assert 0.9 * epsilon < max(ratios) - min(ratios) <= epsilon + 1e-12


@pytest.mark.medium
def test_the_choice_follows_its_law() -> None:
    """Chi-square over four candidates, 2,000 choices, false positives 1e-6; half the rate (a mutant) is seen."""
    labels = [0.9, 0.4, 0.6, -0.2]
    problem, random = means(labels), fixed_seed_invalidates_guarantee(31)
    found = [
        choose_best(problem, POINTS, loss_clip=1.0, epsilon=5.0, neighbours="replace_one", random=random).index
        for _ in range(2000)
    ]
    counts = np.bincount(found, minlength=4)
    losses = np.array([sum(min((p - y) ** 2 / 2, 1.0) for y in labels) for p in POINTS[:, 0]])

    def statistic(beta: float) -> float:
        expected = 2000 * np.exp(-beta * losses) / np.exp(-beta * losses).sum()
        return float(((counts - expected) ** 2 / expected).sum())

    assert statistic(5.0 / 2) < chi2.isf(1e-6, 3)
    assert statistic(5.0 / 4) > 2 * chi2.isf(1e-6, 3)


def test_the_expected_loss_is_within_the_promise() -> None:
    """By exact probabilities on random data: at most the best candidate's loss plus r · clip · ln(m)/(epsilon · n)."""
    rng = np.random.default_rng(6)
    for relation in RELATIONS:
        for _ in range(20):
            values, width, unit = scores(means(rng.uniform(-2, 2, 10).tolist()), relation)
            weights = exponential_weights(values, Fraction(2) / (sensitivity_factor(relation) * width))(40)
            mean = float(sum(Fraction(w, sum(weights)) * v for w, v in zip(weights, values, strict=True)))
            promise = sensitivity_factor(relation) * 1.0 * math.log(4) / (2.0 * 10)
            assert (mean - min(values)) * unit / 10 <= promise * (1 + 1e-9)


def test_many_records_find_the_best_and_a_ridge_counts() -> None:
    """400 records agree on 1; with a strong public ridge the candidate 0 is the best, at no price."""
    problem = means([1.0] * 400)
    found = choose_best(problem, POINTS, loss_clip=1.0, epsilon=1.0, neighbours="replace_one")
    assert (found.index, found.coef.tolist()) == (2, [1.0])
    tied = glm("half_squared", [[1.0]] * 400, [1.0] * 400, row_norm=1.0, ridge=10.0)
    assert choose_best(tied, POINTS, loss_clip=1.0, epsilon=1.0, neighbours="zero_out").index == 0
    with pytest.raises(InvalidParameter, match="records"):
        choose_best(tied, POINTS, loss_clip=1.0, epsilon=1.0, neighbours="add_remove")
    assert choose_best(tied, POINTS, loss_clip=1.0, epsilon=1.0, neighbours="add_remove", records=300).index == 0


def test_any_loss_can_choose() -> None:
    """Per-record losses too."""
    problem = per_record(LinearRecords(loss=SquaredLoss(factor=1)), [[1.0]] * 400, [0.5] * 400, shape=1)
    assert choose_best(problem, POINTS, loss_clip=1.0, epsilon=1.0, neighbours="replace_one").index == 1


def test_the_choice_says_what_it_costs() -> None:
    """The event is that of the exponential mechanism; a fixed seed invalidates the guarantee."""
    found = choose_best(means([0.5] * 9), POINTS, loss_clip=1.0, epsilon=0.25, neighbours="zero_out")
    assert found.event == ExponentialMechanism(epsilon=0.25).under("zero_out")
    assert (found.guarantee.epsilon, found.guarantee.delta, found.guarantee.neighbours) == (0.25, 0.0, "zero_out")
    seeded = choose_best(
        means([0.5] * 9),
        POINTS,
        loss_clip=1.0,
        epsilon=0.25,
        neighbours="zero_out",
        random=fixed_seed_invalidates_guarantee(1),
    )
    assert "NOT PRIVATE" in str(seeded.guarantee)


def test_a_private_number_of_records_sets_no_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under add_remove the sums are kept on the lattice of any number of records."""
    problem = means([0.5] * 9)
    asked: list[int] = []
    inner = problem.loss_sum

    def spied(*args: Any, **settings: Any) -> LatticeSum:
        asked.append(settings["max_records"])
        return inner(*args, **settings)

    monkeypatch.setattr(problem, "loss_sum", spied)
    choose_best(problem, POINTS, loss_clip=1.0, epsilon=1.0, neighbours="add_remove")
    assert set(asked) == {MOST_RECORDS}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"loss_clip": 0.0}, "loss_clip"),
        ({"loss_clip": math.inf}, "loss_clip"),
        ({"epsilon": 0.0}, "positive epsilon"),
        ({"epsilon": -1.0}, "finite number"),
        ({"neighbours": "none"}, "neighbours"),
        ({"candidates": np.zeros((1, 1))}, "at least two"),
        ({"candidates": np.zeros((3, 2))}, "of shape"),
        ({"candidates": np.array([[0.0], [np.inf]])}, "finite"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], says: str) -> None:
    """Each refusal names what was expected, on public facts alone."""
    given = {"candidates": POINTS, "loss_clip": 1.0, "epsilon": 1.0, "neighbours": "replace_one", **change}
    with pytest.raises(InvalidParameter, match=says):
        choose_best(means([0.1, 0.2]), given.pop("candidates"), **given)


BASE: dict[str, Any] = {"bounding": Clip(clip=1.0), "steps": 12, "records": 300, "neighbours": "replace_one"}
PLAN = gradient_plan(**BASE)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        gradient_plan(**BASE, sampling=Poisson(sampling_rate=0.1)),
        replace(PLAN, neighbours="add_remove", records=250),
    ],
    ids=["full", "poisson", "add_remove"],
)
def test_descent_and_choice_meet_one_budget(plan: Plan) -> None:
    """The event holds both; its price at delta is within the budget and close to it; without the choice it is less."""
    result = best_iterate(
        means([0.5] * 300), plan=plan, budget=BUDGET, update=GradientStep(step_size=0.5), loss_clip=1.0
    )
    assert result.plan.names == ("gradients", "choice")
    assert result.plan["choice"].mechanism == ExponentialMechanism(epsilon=0.1)
    assert 0.999 <= result.guarantee.epsilon <= 1
    assert result.guarantee.invalidated == ""
    alone = replace(result.plan, releases=(result.plan["gradients"],))
    assert accounting.epsilon(alone.event, delta=1e-6, neighbours=plan.neighbours) < 0.999
    assert result.iterates is not None
    assert len(result.iterates) == 13
    assert any((result.coef == point).all() for point in result.iterates)


def test_candidates_are_spread_over_the_path() -> None:
    """At most `max_candidates`, with the start and the last iterate, in order."""
    random = fixed_seed_invalidates_guarantee(2)
    result = best_iterate(
        means([0.5] * 300),
        plan=gradient_plan(**{**BASE, "steps": 100}),
        budget=BUDGET,
        update=GradientStep(step_size=0.01),
        loss_clip=1.0,
        max_candidates=5,
        random=random,
    )
    assert result.iterates is not None
    assert len(result.iterates) == 5
    assert result.iterates[0] == 0
    assert "NOT PRIVATE" in str(result.guarantee)


def test_the_choice_avoids_a_path_that_ends_badly() -> None:
    """A step size that grows without bounds leaves a bad last iterate; the chosen one is better, at the same budget."""
    problem = means([0.5] * 3000)
    plan = replace(PLAN, records=3000)
    result = best_iterate(
        problem,
        plan=plan,
        budget=Budget(epsilon=2, delta=1e-6),
        update=GradientStep(step_size=lambda t: 0.5 if t < 8 else 9.0),
        loss_clip=1.0,
        random=fixed_seed_invalidates_guarantee(4),
    )
    assert result.iterates is not None
    assert abs(result.coef[0] - 0.5) < 0.1 < abs(result.iterates[-1, 0] - 0.5)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"selection_share": 0.0}, "selection_share"),
        ({"selection_share": 1.0}, "selection_share"),
        ({"max_candidates": 1}, "max_candidates"),
        ({"loss_clip": -1.0}, "loss_clip"),
        ({"budget": 1.0}, "budget"),
    ],
)
def test_bad_parameters_of_the_whole_are_refused(change: dict[str, Any], says: str) -> None:
    """Before any record is read."""
    given: dict[str, Any] = {"plan": PLAN, "budget": BUDGET, "update": GradientStep(step_size=0.5), "loss_clip": 1.0}
    with pytest.raises(InvalidParameter, match=says):
        best_iterate(means([0.5] * 300), **{**given, **change})


def test_the_best_is_no_release_of_its_own() -> None:
    """release="best" is refused with a pointer here: for free it would read the records once more."""
    with pytest.raises(InvalidParameter, match="choose_best"):
        dp_sgd(means([0.5] * 9), budget=BUDGET, steps=2, sampling=Poisson(sampling_rate=0.5), clip=1.0, release="best")  # type: ignore[arg-type]


def test_both_parts_add_up_by_their_events() -> None:
    """What a caller composes by hand is what the plan composes."""
    result = best_iterate(
        means([0.5] * 300), plan=PLAN, budget=BUDGET, update=GradientStep(step_size=0.5), loss_clip=1.0
    )
    noise = result.plan["gradients"].noise_multiplier
    by_hand = Gaussian(noise_multiplier=noise) * 12 + ExponentialMechanism(epsilon=0.1)
    found = accounting.epsilon(by_hand, delta=1e-6, neighbours="replace_one")
    assert found == pytest.approx(result.guarantee.epsilon, rel=1e-12)
