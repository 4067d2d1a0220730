"""The exponential mechanism: exact law, sensitivity by brute force, bounds that hold, kind refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from privet import box, glm, l2_ball, per_record
from privet.clipping.lattice import MOST_RECORDS, LatticeSum
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, SquaredLoss
from privet.privacy import Neighbours, sensitivity_factor
from privet.problems import LinearProblem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import exponential_mechanism
from privet.solvers.drawing import exponential_weights, piece_weights
from privet.solvers.scores import Scores, climbed, compared, knots_of

RELATIONS: list[Neighbours] = ["replace_one", "zero_out", "add_remove"]
UNIT = box(low=[-1.0], high=[1.0])


def median(labels: list[float], rows: list[float] | None = None) -> LinearProblem:
    return glm("absolute", [[x] for x in rows or [1.0] * len(labels)], labels, row_norm=1.0, domain=UNIT)


def neighbour(problem: LinearProblem, relation: Neighbours, label: float) -> LinearProblem:
    """The same records but for the last, which is exchanged, emptied, or gone."""
    rows = (problem.table.units * problem.table.step).tolist()
    labels = problem.labels.tolist()
    if relation == "add_remove":
        rows, labels = rows[:-1], labels[:-1]
    elif relation == "zero_out":
        rows[-1] = [math.nan]
    else:
        labels[-1] = label
    return glm("absolute", np.array(rows).reshape(-1, 1), labels, row_norm=1.0, domain=UNIT)


def scored(problem: LinearProblem, relation: Neighbours, way: str) -> Scores:
    most = MOST_RECORDS if relation == "add_remove" else problem.records
    if way == "interval":
        return climbed(problem, knots_of(problem, 8), 1.0, most)
    return compared(problem, np.array([[-1.0], [-0.25], [0.5], [1.0]]), 1.0, most)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("way", ["interval", "candidates"])
@pytest.mark.parametrize("labels", [[1.0], [1.0, 1.0], [0.1, -0.4, 1.0]])
def test_one_record_moves_the_scores_within_the_width(relation: Neighbours, way: str, labels: list[float]) -> None:
    """Exact range of the scores' change over all outcomes, n = 1, 2, 3: never above what epsilon is divided by.

    The worst pair (labels at opposite ends) reaches half of it at least, so that forgetting the 2 of a record
    exchanged (a mutant) would be caught: then the range is above.
    """
    problem = median(labels)
    ours, theirs = (scored(p, relation, way) for p in (problem, neighbour(problem, relation, -1.0)))
    moves = [a - b for a, b in zip(ours.values, theirs.values, strict=True)]
    width = ours.width
    spread = max(moves) - min(moves)
    assert spread <= sensitivity_factor(relation) * width
    if way == "interval":
        assert spread >= 0.999 * sensitivity_factor(relation) * width
        if relation == "replace_one":
            assert spread > width  # the mutant "divide by one record's width"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("way", ["interval", "candidates"])
def test_no_outcome_is_likelier_by_more_than_epsilon(relation: Neighbours, way: str) -> None:
    """All outcomes' exact probabilities on the worst pair of neighbours differ by at most e^epsilon, both ways round.

    And the log ratios span at most epsilon: the bounded range that the accountants price.
    """
    epsilon = 1.3
    problem = median([0.2, -0.3, 1.0])
    other = neighbour(problem, relation, -1.0)
    weigh = piece_weights if way == "interval" else exponential_weights
    logs = []
    for each in (problem, other):
        scores = scored(each, relation, way)
        weights = weigh(scores.values, Fraction(epsilon) / (sensitivity_factor(relation) * scores.width))(60)
        logs.append([math.log(Fraction(w, sum(weights))) for w in weights])
    ratios = [a - b for a, b in zip(*logs, strict=True)]
    assert max(map(abs, ratios)) <= epsilon
    assert max(ratios) - min(ratios) <= epsilon + 1e-12
    assert max(ratios) - min(ratios) > 0.4 * epsilon  # the pair is a hard one


@pytest.mark.parametrize("way", ["interval", "candidates"])
def test_a_record_beyond_the_declared_slope_is_cut(way: str) -> None:
    """A squared loss with a huge label has any slope; one record still moves the scores within the width."""
    rows = np.array([[1.0], [1.0]])
    tame = per_record(LinearRecords(loss=SquaredLoss()), rows, [0.0, 0.0], shape=1, domain=UNIT)
    wild = per_record(LinearRecords(loss=SquaredLoss()), rows, [0.0, 1e200], shape=1, domain=UNIT)
    points = knots_of(tame, 8) if way == "interval" else np.array([[-1.0], [0.0], [1.0]])
    score = climbed if way == "interval" else compared
    ours, theirs = score(tame, points, 1.0, 2), score(wild, points, 1.0, 2)
    moves = [a - b for a, b in zip(ours.values, theirs.values, strict=True)]
    assert max(moves) - min(moves) <= 2 * ours.width


@pytest.mark.medium
def test_a_draw_from_an_interval_follows_its_density() -> None:
    """Chi-square over 16 cells, 900 draws, false positives 1e-6; with four pieces the place in a piece counts.

    Twice the rate (a mutant) is seen; so is the mirrored place in a piece.
    """
    labels, knots = np.array([0.5, 0.5, -0.5]), np.linspace(-1, 1, 5)
    random = fixed_seed_invalidates_guarantee(21)
    problem = median(labels.tolist())
    found = [float(exponential_mechanism(problem, epsilon=8.0, pieces=4, random=random).coef[0]) for _ in range(900)]
    counts, _ = np.histogram(found, np.linspace(-1, 1, 17))
    fine = np.linspace(-1, 1, 160_001)
    heights = np.interp(fine, knots, [float(np.abs(w - labels).sum()) for w in knots])

    def statistic(beta: float) -> float:
        density = np.exp(-beta * heights)
        cumulated = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
        expected = 900 * np.diff(cumulated[::10_000]) / cumulated[-1]
        return float(((counts - expected) ** 2 / expected).sum())

    beta = 8.0 / (2 * 1.0 * 2.0)  # ε/(2GD), D = 2
    assert statistic(beta) < chi2.isf(1e-6, 15)
    assert statistic(2 * beta) > 2 * chi2.isf(1e-6, 15)


@pytest.mark.medium
def test_a_draw_of_candidates_follows_its_law() -> None:
    """Chi-square over five candidates in two dimensions, 1,000 draws, false positives 1e-6; half the rate is seen."""
    X, y = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, -1.0]]), [1, 0, 1]
    problem = glm("logistic", X, y, row_norm=1.0, domain=l2_ball(radius=2))
    points = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [0.0, -1.5], [1.9, 0.0]])
    random = fixed_seed_invalidates_guarantee(22)
    found = [exponential_mechanism(problem, epsilon=20.0, candidates=points, random=random).coef for _ in range(1000)]
    counts = np.array([sum(bool((f == p).all()) for f in found) for p in points])
    z = points @ X.T
    losses = (np.logaddexp(0, z) - z * np.array(y)).sum(axis=1)
    reach = np.linalg.norm(points - points.mean(axis=0), axis=1).max()

    def statistic(beta: float) -> float:
        expected = 1000 * np.exp(-beta * losses) / np.exp(-beta * losses).sum()
        return float(((counts - expected) ** 2 / expected).sum())

    slope = problem.lipschitz
    assert slope is not None
    assert statistic(20.0 / (2 * slope * 2 * reach)) < chi2.isf(1e-6, 4)
    assert statistic(10.0 / (2 * slope * 2 * reach)) > 2 * chi2.isf(1e-6, 4)


@pytest.mark.medium
@pytest.mark.parametrize("loss", ["absolute", "logistic", "huber"])
def test_mean_excess_risk_stays_below_the_bound(loss: str) -> None:
    """40 draws at n = 200, epsilon 1: the mean is below the proven bound, which is below the trivial one."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (200, 1))
    y = np.clip(0.4 * x[:, 0] + 0.1 * rng.normal(size=200), -1, 1)
    problem = glm(loss, x, (y > 0) if loss == "logistic" else y, row_norm=1.0, domain=UNIT)
    random = fixed_seed_invalidates_guarantee(23)
    results = [exponential_mechanism(problem, epsilon=1.0, pieces=64, random=random) for _ in range(40)]
    grid = np.linspace(-1, 1, 2001)
    rows = problem.table.units * problem.table.step
    value = [float(np.mean(problem.loss.value(rows[:, 0] * w, problem.labels))) for w in grid]
    excess = np.interp([float(r.coef[0]) for r in results], grid, value) - min(value)
    bound = results[0].bound
    assert bound is not None
    assert excess.mean() <= bound < (problem.lipschitz or 0) * 2.0


def test_the_bound_over_candidates_holds_exactly() -> None:
    """The exact expectation from exact probabilities is at most the best candidate's loss plus ln(m)/β."""
    rng = np.random.default_rng(8)
    points = rng.uniform(-1, 1, (30, 1))
    for _ in range(20):
        problem = median(rng.uniform(-1, 1, 12).tolist())
        result = exponential_mechanism(problem, epsilon=2.0, candidates=points)
        scores = compared(problem, points, 1.0, 12)
        weights = exponential_weights(scores.values, Fraction(2) / (2 * scores.width))(40)
        mean = float(sum(Fraction(w, sum(weights)) * v for w, v in zip(weights, scores.values, strict=True)))
        assert result.bound is not None
        assert (mean - min(scores.values)) * scores.unit / 12 <= result.bound


def test_the_guarantee_is_pure_and_a_fixed_seed_invalidates_it() -> None:
    """Delta is 0 and epsilon what was asked for; with a known seed, nothing is promised."""
    problem = median([0.3] * 50)
    kept = exponential_mechanism(problem, epsilon=0.7, pieces=8).guarantee
    assert (kept.epsilon, kept.delta, kept.neighbours, kept.invalidated) == (0.7, 0.0, "replace_one", "")
    assert "(0.7, 0)-differentially private" in kept.details
    seeded = exponential_mechanism(problem, epsilon=0.7, pieces=8, random=fixed_seed_invalidates_guarantee(1)).guarantee
    assert math.isinf(seeded.epsilon)
    assert str(seeded).startswith("NOT PRIVATE: fixed seed")


def test_a_strong_ridge_pulls_the_draw_to_zero() -> None:
    """The penalty is public: it is added in full, and costs nothing; no bound is claimed with it."""
    records = [1.0] * 200
    plain = glm("absolute", [[1.0]] * 200, records, row_norm=1.0, domain=UNIT)
    tied = glm("absolute", [[1.0]] * 200, records, row_norm=1.0, domain=UNIT, ridge=100.0)
    free = exponential_mechanism(plain, epsilon=2.0, pieces=64).coef[0]
    result = exponential_mechanism(tied, epsilon=2.0, pieces=64)
    assert free > 0.7  # 1 − 0.7 costs 30 nats
    assert abs(result.coef[0]) < 0.2
    assert result.bound is None
    with pytest.raises(InvalidParameter, match="records"):
        exponential_mechanism(tied, epsilon=2.0, pieces=64, neighbours="add_remove")
    exponential_mechanism(tied, epsilon=2.0, pieces=64, neighbours="add_remove", records=300)


def test_order_of_rows_and_bad_records_change_nothing() -> None:
    """Shuffled rows give the same bits; a NaN or a label that is no number counts as zero."""
    labels = [0.3, -0.2, 0.9, 0.1]
    shuffled = [0.9, 0.1, 0.3, -0.2]
    ours, theirs = (climbed(median(y), knots_of(median(y), 16), 1.0, 6).values for y in (labels, shuffled))
    assert ours == theirs
    bad = median([*labels, math.nan, math.inf])
    assert climbed(bad, knots_of(bad, 16), 1.0, 6).values == ours


def test_nothing_public_depends_on_a_private_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under add_remove the scores' unit and width are the same with and without a record; even with none at all."""
    some, fewer = median([0.3] * 9), median([0.3] * 8)
    one, other = (climbed(p, knots_of(p, 8), 1.0, MOST_RECORDS) for p in (some, fewer))
    assert (one.unit, one.width) == (other.unit, other.width)
    asked: list[int] = []
    inner = some.slope_sum

    def spied(*args: Any, **settings: Any) -> LatticeSum:
        asked.append(settings["max_records"])
        return inner(*args, **settings)

    monkeypatch.setattr(some, "slope_sum", spied)
    for candidates in (None, [[0.0], [1.0]]):
        exponential_mechanism(some, epsilon=1.0, pieces=8, candidates=candidates, neighbours="add_remove")
    assert set(asked) == {MOST_RECORDS}
    empty = glm("absolute", np.empty((0, 1)), [], row_norm=1.0, domain=UNIT)
    result = exponential_mechanism(empty, epsilon=1.0, pieces=8, neighbours="add_remove")
    assert result.bound is None
    assert UNIT.contains(result.coef)


def test_knots_have_so_few_bits_that_sums_and_middles_are_exact() -> None:
    """Odd ends too: evenly spaced, inside the interval, and a knot is the same number from both of its pieces."""
    problem = glm("absolute", [[1.0]], [0.0], row_norm=1.0, domain=box(low=[-0.1], high=[math.pi]))
    knots = np.ravel(knots_of(problem, 1000))
    assert knots[0] >= -0.1
    assert knots[-1] <= math.pi
    assert math.pi + 0.1 - (knots[-1] - knots[0]) < 1e-6
    assert len(set(np.diff(knots))) == 1
    middles, halves = (knots[1:] + knots[:-1]) / 2, (knots[1:] - knots[:-1]) / 2
    assert np.array_equal(middles + halves, knots[1:])
    assert np.array_equal(middles - halves, knots[:-1])


def test_no_bound_without_its_assumptions() -> None:
    """A smaller declared slope cuts the loss, and "add_remove" hides n: then no excess risk is claimed."""
    problem = median([0.3] * 20)
    assert exponential_mechanism(problem, epsilon=1.0, pieces=8, lipschitz=0.5).bound is None
    assert exponential_mechanism(problem, epsilon=1.0, pieces=8, neighbours="add_remove").bound is None
    assert exponential_mechanism(problem, epsilon=1.0, pieces=8, lipschitz=2.0).bound is not None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0}, "positive epsilon"),
        ({"epsilon": math.nan}, "finite number"),
        ({"pieces": 0}, "pieces"),
        ({"pieces": True}, "pieces"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"candidates": [[0.0]]}, "at least two"),
        ({"candidates": [[0.0], [math.nan]]}, "finite candidates"),
        ({"candidates": [[0.0, 1.0], [1.0, 0.0]]}, "of shape"),
        ({"candidates": [[0.0], [2.0]]}, "in the domain"),
        ({"candidates": [[0.5], [0.5]]}, "different"),
        ({"lipschitz": -1.0}, "clip"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], says: str) -> None:
    """Each refusal names what was expected, on public facts alone."""
    with pytest.raises(InvalidParameter, match=says):
        exponential_mechanism(median([0.3, 0.1]), **{"epsilon": 1.0, "pieces": 8, **change})


def problems_without_a_draw() -> list[tuple[LinearProblem, str]]:
    X, y = [[1.0, 0.0]], [1]
    far = box(low=[1e9], high=[1e9 + 1e-3])
    return [
        (glm("logistic", X, y, row_norm=1.0), "candidates=.*noisy_gradient_descent"),
        (glm("logistic", [[1.0]], y, row_norm=1.0), "bounded interval"),
        (glm("half_squared", [[1.0]], y, row_norm=1.0), "proven bound"),
        (glm("absolute", [[1.0]], y, row_norm=1.0, domain=far), "too narrow"),
    ]


@pytest.mark.parametrize(("problem", "says"), problems_without_a_draw())
def test_what_cannot_be_drawn_exactly_is_refused(problem: LinearProblem, says: str) -> None:
    """Unbounded sets in one dimension or more, unproven slopes: refused, with what to use instead."""
    with pytest.raises(InvalidParameter, match=says):
        exponential_mechanism(problem, epsilon=1.0)
