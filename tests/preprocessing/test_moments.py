from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.plan import MomentSums
from privet.preprocessing import moments, private_moments
from privet.preprocessing.schema import Number
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_invalidates_guarantee

RELATIONS: tuple[Neighbours, ...] = get_args(Neighbours)
UNIT = Number(low=-1, high=1)


def contribution(value: float) -> np.ndarray:
    """What one value adds, by the code itself: the exact sums of a column that holds it alone."""
    return moments._sums(np.array([value]), UNIT) * 2.0**-32


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_reach_holds_for_all_values(neighbours: Neighbours) -> None:
    """Brute force over a grid of values, beyond the range and missing too: no pair moves the sums further, some do.

    Mutant: raw squares instead of centred ones, (1, u, u²), reach √3 > 1.5.
    """
    values = [contribution(v) for v in (*np.linspace(-1, 1, 81), -7.0, 7.0, 0.70710678, math.nan)]
    others = values if neighbours == "replace_one" else [np.zeros(3)]
    largest = max(float(np.linalg.norm(a - b)) for a in values for b in others)
    assert largest <= MomentSums(columns=1).sensitivity(neighbours)
    assert largest >= 0.999 * MomentSums(columns=1).sensitivity(neighbours)
    raw = max(float(np.linalg.norm(a + np.array([0, 0, 0.5]))) for a in values[:-1])
    assert raw > MomentSums(columns=1).sensitivity("add_remove")


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_moments_are_those_of_the_clipped_column(neighbours: Neighbours) -> None:
    """With many records the estimates are NumPy's, on the values that are there, clipped to the range."""
    rng = np.random.default_rng(5)
    heights = rng.normal(170, 10, 200_000)
    heights[::10] = math.nan
    table = {"height": heights, "flag": rng.integers(0, 2, 200_000)}
    found = private_moments(
        table, ranges={"height": (100, 250), "flag": (0, 1)}, noise_multiplier=3.0, neighbours=neighbours
    )
    assert found.mean["height"] == pytest.approx(170, abs=0.2)
    assert found.stddev["height"] == pytest.approx(10, abs=0.5)
    assert (found.mean["flag"], found.stddev["flag"]) == pytest.approx((0.5, 0.5), abs=0.01)
    assert found.standardised("height") == Number(
        low=found.mean["height"] - 3 * found.stddev["height"], high=found.mean["height"] + 3 * found.stddev["height"]
    )
    assert found.standardised("flag").low == 0
    assert (found.plan.neighbours, found.invalidated) == (neighbours, False)


@pytest.mark.parametrize("values", [[], ["Jane Doe"] * 9, [5.0], [3.0] * 5000, [1e300] * 5000])
def test_few_bad_or_constant_values_give_usable_moments(values: list[Any]) -> None:
    """Nothing raises; the mean is in the range, the deviation positive and no larger than half of it."""
    for seed in range(5):
        found = private_moments(
            {"a": values}, ranges={"a": (0, 10)}, noise_multiplier=2.0, random=fixed_seed_invalidates_guarantee(seed)
        )
        assert 0 <= found.mean["a"] <= 10
        assert 0 < found.stddev["a"] <= 5
        assert found.invalidated
        column = found.standardised("a")
        assert column.low is not None
        assert column.high is not None
        assert 0 <= column.low < column.high <= 10


@pytest.mark.medium
def test_the_noise_of_the_mean_is_what_was_priced() -> None:
    """Over 4,000 columns the noise of the sums has the claimed deviation.

    False positive rate 1e-6; a deviation off by 8 % is caught with power 0.99.
    """
    table = {str(i): np.zeros(1000) for i in range(4000)}
    found = private_moments(
        table, ranges=dict.fromkeys(table, (-1.0, 1.0)), noise_multiplier=0.05, neighbours="zero_out",
        random=fixed_seed_invalidates_guarantee(9),
    )  # fmt: skip
    expected = 0.05 * MomentSums(columns=4000).sensitivity("zero_out") / 1000
    assert np.std(list(found.mean.values())) == pytest.approx(expected, rel=4.9 / math.sqrt(8000))


@pytest.mark.parametrize("ranges", [{}, {"a": (1, 1)}, {"a": (0, math.inf)}, {"b": (0, 1)}])
def test_public_mistakes_are_refused(ranges: Any) -> None:
    """No columns, no range, or a column that is not there."""
    with pytest.raises(InvalidParameter):
        private_moments({"a": [1.0]}, ranges=ranges, noise_multiplier=1.0)
