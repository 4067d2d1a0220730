"""Intervals by an exact draw: they hold most values, however wide a range is; where little is told, a good guess."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from privet.plan import Meter, Plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import interval_draws as room
from privet.solvers.interval_draws import IntervalDraw, MiddleDraw

VALUES = np.random.default_rng(3).exponential(size=300)


@pytest.mark.parametrize("ends", [(-2000.0, 2000.0), (0.0, 5000.0), None])
@pytest.mark.parametrize("shift", [0.0, 20.0])
def test_an_interval_is_found_however_wide_the_range_is(ends: Any, shift: float) -> None:
    """Of 300 values at epsilon 0.3: with as much on either side it holds most, and is at most 40 wide; 20 seeds.

    The bulk is between 0 and 3, or 20 and 23, in a range of thousands, or in none.
    """
    plan = Plan(releases=(IntervalDraw(name="c").release(0.3),), neighbours="replace_one", records=300)
    for seed in range(20):
        meter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
        low, high = IntervalDraw(name="c").run(VALUES + shift, ends, meter)
        meter.finish()
        wide = high - low
        assert wide <= 40
        assert np.mean((VALUES + shift >= low - wide) & (VALUES + shift <= high + wide)) > 0.8


def test_an_interval_is_as_short_as_may_be_also_far_from_0() -> None:
    """Of 300 values within 1 of each other, at 100, in no range or one a thousand times too wide: at most 13 wide."""
    plan = Plan(releases=(IntervalDraw(name="c").release(0.3),), neighbours="replace_one", records=300)
    values = 100.0 + np.linspace(-0.5, 0.5, 300)
    for seed, ends in itertools.product(range(10), [(-1e5, 1e5), (0.0, 150.0), None]):
        meter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
        low, high = IntervalDraw(name="c").run(values, ends, meter)
        meter.finish()
        assert high - low <= 13
        assert np.mean((values >= low) & (values <= high)) > 0.2


def test_intervals_are_within_declared_ends_and_cover_them() -> None:
    """Of every size, none beyond the ends, and their parts inside; an octave has the odds of others but for width."""
    found = room.intervals((10.0, 30.0))
    assert found.lows.min() == 10
    assert found.highs.max() == 30
    assert (found.lows < found.highs).all()
    has = ~np.isnan(found.starts)
    assert (found.starts >= found.lows[:, None])[has].all()
    assert (found.stops <= found.highs[:, None] * (1 + 1e-12))[has].all()
    widest, narrow = (
        np.exp(-found.dislike[found.dislike == each]).sum() for each in (found.dislike[0], found.dislike[-1])
    )
    assert narrow / widest == pytest.approx(np.exp(0.1 * 20))


def middles(values: Any, ends: tuple[float, float], epsilon: float) -> tuple[Any, Any]:
    """The places that may be drawn, of records that may be replaced, and the chance of each, by the law of the draw."""
    lows, highs, dislike = room.guesses(ends)
    inside = ((values[:, None] >= lows) & (values[:, None] <= highs)).sum(axis=0)
    odds = inside * epsilon / 2 - dislike
    chances = np.exp(odds - odds.max())
    return (lows + highs) / 2, chances / chances.sum()


def test_where_nothing_is_told_the_usual_place_is_guessed() -> None:
    """Of no records at all: within a 64th of the range of 0, or of the ends' logarithmic mean, in 19 of 20 draws."""
    for ends, guess in (((-8.0, 8.0), 0.0), ((25.0, 346.0), 122.1)):
        places, chances = middles(np.empty(0), ends, 0.05)
        assert chances[abs(places - guess) <= (ends[1] - ends[0]) / 64].sum() > 0.95


@pytest.mark.parametrize(("ends", "most"), [((-8.0, 8.0), 0.1), ((-5.0, 30.0), 8.0)])
def test_a_guess_of_few_records_costs_little(ends: tuple[float, float], most: float) -> None:
    """300 normal numbers at epsilon 0.05: the squared error to be expected; of medians by even odds, 1 and 13."""
    values = np.random.default_rng(0).standard_normal(300)
    places, chances = middles(values, ends, 0.05)
    assert chances @ (places - values.mean()) ** 2 < most


def test_a_guess_is_drawn_by_its_law() -> None:
    """The mean of 400 draws is within 5 standard deviations of the mean by the law: false in one of 1e6 runs."""
    ends, values = (-8.0, 8.0), np.random.default_rng(0).standard_normal(300) + 2.0
    plan = Plan(releases=(MiddleDraw(name="c").release(0.05),), neighbours="replace_one", records=300)
    found = []
    for seed in range(400):
        meter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
        found.append(MiddleDraw(name="c").run(values, ends, meter))
        meter.finish()
    places, chances = middles(values, ends, 0.05)
    mean = chances @ places
    assert abs(np.mean(found) - mean) < 5 * np.sqrt(chances @ (places - mean) ** 2 / 400)


def test_quantiles_are_guessed_beside_the_middle() -> None:
    """Of the level 0.9 at 0.7 of an interval's width, half as far from its middle as it would be of even values."""
    plan = Plan(releases=(MiddleDraw(name="c").release(1.0),), neighbours="replace_one", records=300)
    found = []
    for level in (0.1, 0.5, 0.9):
        meter = Meter(plan, random=fixed_seed_invalidates_guarantee(1))
        found.append(MiddleDraw(name="c", level=level).run(VALUES, (0.0, 64.0), meter))
    assert found[1] - found[0] == pytest.approx(found[2] - found[1])
    assert found[2] / found[1] == pytest.approx(0.7 / 0.5)
