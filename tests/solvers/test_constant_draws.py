"""Constants and intervals by an exact draw: what a record moves is what the rate is for, and constants are good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.plan import Meter, Plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import constant_draws as room
from privet.solvers import interval_draws
from privet.solvers.constant_draws import MeanDraw, QuantileDraw
from privet.solvers.interval_draws import IntervalDraw, MiddleDraw

RNG = np.random.default_rng(3)
RECORDS = 302  # of which three tenths are rounded another way than of one fewer
VALUES = RNG.exponential(size=RECORDS)
COUNTS = np.append(RNG.poisson(3.0, size=RECORDS - 1), 60.0)
ODD = [np.nan, 0.0, 1e308, 1e-308, 0.7, 2.0, 30.0]


def run(draw: Any, values: Any, neighbours: Any, epsilon: float = 1.0, seed: int = 1) -> Any:
    plan = Plan(releases=(draw.release(epsilon),), neighbours=neighbours, records=RECORDS)  # a public guess, perhaps
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
    values = values if isinstance(draw, MeanDraw) else np.clip(values, -5.0, 30.0)
    found = draw.run(values, 80.0 if isinstance(draw, MeanDraw) else (-5.0, 30.0), meter)
    meter.finish()
    return found


DRAWS: list[tuple[Any, Any, float]] = [
    (QuantileDraw(name="c", level=0.5), VALUES, 1.0),
    (QuantileDraw(name="c", level=0.9), VALUES, 1.0),
    (MeanDraw(name="c"), COUNTS, 1.0),
    (MeanDraw(name="c"), COUNTS, 80.03 / RECORDS),  # just enough for counts to be cut far up
    (MeanDraw(name="c"), COUNTS, 0.1),
    (IntervalDraw(name="c"), VALUES, 1.0),
    (MiddleDraw(name="c"), VALUES, 1.0),
]


def spans(draw: Any, values: Any, epsilon: float, neighbours: Any, patch: pytest.MonkeyPatch) -> tuple[float, int]:
    """By how much scores move apart, at most, if one record changes; and what the rate is for."""
    heard: list[tuple[list[int], int]] = []
    real = room.drawn

    def listened(name: str, scores: Any, width: int, *given: Any, **more: Any) -> int:
        heard.append((list(scores), width))
        return real(name, scores, width, *given, **more)

    with patch.context() as here:
        here.setattr(room, "drawn", listened)
        here.setattr(interval_draws, "drawn", listened)
        firsts = [np.nan] if neighbours == "zero_out" else ODD
        for one in [*firsts, *ODD]:
            if neighbours == "add_remove" and np.isnan(one):
                run(draw, values[1:], neighbours, epsilon)
            else:
                run(draw, np.append(one, values[1:]), neighbours, epsilon)
    bases = heard[: len(firsts)]
    if neighbours == "add_remove":
        bases = [pair for pair, one in zip(heard, firsts, strict=False) if np.isnan(one)]
    most = 0
    width = heard[0][1]
    for base, _ in bases:
        for other, _ in heard[len(firsts) :]:
            moved = np.array(base, dtype=object) - np.array(other, dtype=object)
            most = max(most, int(moved.max() - moved.min()))
    return most, width


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize(("draw", "values", "epsilon"), DRAWS)
def test_one_record_moves_scores_apart_by_no_more_than_the_rate_is_for(
    draw: Any, values: Any, epsilon: float, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaced, emptied or taken away, by the worst values of a list; and some move them."""
    most, width = spans(draw, values, epsilon, neighbours, monkeypatch)
    assert 0 < most <= width


def test_a_score_of_twice_the_size_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails if a record counts three times in a quantile."""
    real = room.quantile_scores

    def thrice(*given: Any) -> Any:
        scores, most = real(*given)
        return [3 * score for score in scores], most

    monkeypatch.setattr(room, "quantile_scores", thrice)
    most, width = spans(*DRAWS[0], "replace_one", monkeypatch)
    assert most > width


def test_constants_are_near_the_best_at_any_scale() -> None:
    """Median, ninth decile and mean count of 300 records at epsilon 1; ranges a million times too wide do no harm."""
    medians = [run(DRAWS[0][0], VALUES, "replace_one", seed=seed) for seed in range(20)]
    assert abs(np.median(medians) - np.median(VALUES)) < 0.1
    tenths = [run(DRAWS[1][0], VALUES, "replace_one", epsilon=4.0, seed=seed) for seed in range(20)]
    assert abs(np.mean(np.median(tenths) >= VALUES) - 0.9) < 0.03
    means = [run(DRAWS[2][0], COUNTS, "replace_one", seed=seed) for seed in range(20)]
    assert abs(np.median(means) / 3.0 - 1) < 0.1


@pytest.mark.parametrize("ends", [(25.0, 346.0), (-5.0, 30.0), (0.0, 1e6)])
def test_points_that_crowd_have_no_more_odds_than_others(ends: tuple[float, float]) -> None:
    """Half of the odds are spread over a range, half in logarithms of the distance from the usual place."""
    points, dislike = room.quantile_points(*ends)
    assert (points[0], points[-1]) == ends
    odds = np.exp(-np.array(dislike))
    upper = odds[points > sum(ends) / 2].sum() / odds.sum()
    assert 0.15 <= upper < 0.3
    assert np.diff(points).max() <= (ends[1] - ends[0]) / 512 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("low", "records", "most"), [(0.02, 200, 0.2), (0.02, 300, 0.07), (0.0, 200, 0.56), (0.0, 300, 0.18)]
)
def test_a_median_of_few_records_is_hardly_ever_far_off(low: float, records: int, most: float) -> None:
    """Exponential values at epsilon 0.1 in a range to 6.5: the squared error to be expected, in variances, by the law.

    .15, .05, .51, .17; with odds about the end next to 0, and as even as they were, .64, .19, .64, .19.
    """
    values = np.random.default_rng(3).exponential(size=300)[:records]
    points, dislike = room.quantile_points(low, 6.5)
    scores, _ = room.quantile_scores(values, points, 0.5)
    odds = -0.1 / 2 * np.array(scores) / room.ONE - dislike
    chances = np.exp(odds - odds.max())
    assert chances @ (points - values.mean()) ** 2 / chances.sum() < most * values.var()


def test_points_anywhere_are_of_both_signs_and_of_no_size_before_all_others() -> None:
    """They are sorted and alike about 0, small ones are as likely in every octave, and those beyond 1 ever less."""
    points, dislike = room.points_anywhere()
    assert (np.diff(points) > 0).all()
    assert (points == -points[::-1]).all()
    assert dislike == dislike[::-1]
    assert (points[0], points[-1], min(points[points > 0])) == (-(2.0**40), 2.0**40, 2.0**-20)
    octaves = np.log2(points[points > 0])
    assert np.diff(octaves) == pytest.approx(1 / 64)
    assert np.array(dislike)[points > 0] == pytest.approx(0.35 * np.maximum(octaves, 0) + np.log(4))


@pytest.mark.parametrize("middle", [5.0, 650.0, 40_000.0])
def test_a_median_close_together_far_from_0_is_found_without_a_range(middle: float) -> None:
    """400 values that spread by 3 % at epsilon 0.2: by the law, four of five draws are within three spreads.

    With 16 points an octave hardly one was, where all are beside the values.
    """
    values = middle * (1 + 0.03 * np.random.default_rng(3).standard_normal(400))
    points, dislike = room.points_anywhere()
    scores, _ = room.quantile_scores(values, points, 0.5)
    odds = -0.2 / 2 * np.array(scores) / room.ONE - dislike
    chances = np.exp(odds - odds.max())
    assert chances[np.abs(points - middle) < 0.09 * middle].sum() / chances.sum() > 0.8


def test_a_range_of_one_point_is_that_point() -> None:
    """With nothing to choose from."""
    assert room.quantile_points(3.0, 3.0)[0].tolist() == [3.0]
