from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, get_args

import mpmath
import numpy as np
import pytest
from scipy import stats

from privet.accounting import Approximate, Gaussian, delta
from privet.errors import InvalidParameter
from privet.plan import Plan
from privet.preprocessing import NameFinder, categories, private_categories
from privet.preprocessing.categories import leak, name_threshold
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_invalidates_guarantee

RELATIONS: tuple[Neighbours, ...] = get_args(Neighbours)


def exact_leak(threshold: float, stddev: float, columns: int) -> mpmath.mpf:
    """P(any of `columns` names with count 1 is shown), without rounding to the lattice, in 60 digits."""
    with mpmath.workdps(60):
        alone = mpmath.erfc((mpmath.mpf(threshold) - 1) / mpmath.mpf(stddev) / mpmath.sqrt(2)) / 2
        return 1 - (1 - alone) ** columns


@pytest.mark.parametrize("columns", [1, 2, 14, 500])
@pytest.mark.parametrize("target", [0.05, 1e-6, 1e-12, 1e-30])
def test_the_threshold_leaks_no_more_than_charged(columns: int, target: float) -> None:
    """The exact probability is below what is charged, half a lattice step taken off too, and within 1 % of it.

    Mutants: a threshold without the record's own count of 1, and one for a single column, leak more.
    """
    for stddev in (2.0, 31.7, 4000.0):
        threshold = name_threshold(stddev, columns=columns, threshold_delta=target)
        rounded = threshold - stddev * 2.0**-11
        assert exact_leak(rounded, stddev, columns) <= target
        assert exact_leak(rounded, stddev, columns) >= 0.99 * target
        assert leak(threshold, noise_stddev=stddev, columns=columns) == pytest.approx(target, rel=1e-6)
        assert stddev > 100 or exact_leak(rounded - 1, stddev, columns) > target
        one = name_threshold(stddev, columns=1, threshold_delta=target)
        assert columns == 1 or exact_leak(one, stddev, columns) > target


def test_names_of_single_records_are_shown_as_often_as_charged() -> None:
    """100,000 names, each held by one record: as many are shown as threshold_delta says.

    False positive rate 1e-6; expected 1000; a leak 28 % larger is caught with power 0.99. Mutant: threshold lower by
    a tenth of a deviation.
    """
    names = {"name": [f"person {i}" for i in range(100_000)]}
    options: dict[str, Any] = {"columns": ["name"], "noise_multiplier": 10.0, "threshold_delta": 0.01}
    found = private_categories(names, **options, neighbours="zero_out", random=fixed_seed_invalidates_guarantee(6))
    count = len(found.values["name"])
    assert stats.binom.sf(count - 1, 100_000, 0.01) > 1e-6
    assert stats.binom.cdf(count, 100_000, 0.01) > 1e-6  # and not needlessly fewer
    mutant = 100_000 * stats.norm.sf((found.threshold - 1) / 10.0 - 0.1)
    assert stats.binom.sf(round(mutant), 100_000, 0.01) < 1e-6


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_release_never_beats_its_price(neighbours: Neighbours) -> None:
    """The exact delta between the shown sets of all neighbouring small tables of one column is within the event's.

    Each name is shown with probability Φ((count − t)/σ) independently, so the law of the shown set is known exactly.
    Mutants: half of the noise, and a threshold half a deviation lower, are above the price somewhere.
    """
    noise, part = 1.2, 1e-3
    releases = NameFinder(columns=("name",), threshold_delta=part).releases(noise_multiplier=noise)
    event, stddev = Plan(releases=releases, neighbours=neighbours).event, releases[0].noise_stddev(neighbours)
    threshold = name_threshold(stddev, columns=1, threshold_delta=part)

    @cache
    def law(table: tuple[int, ...], noise: float, cut: float) -> np.ndarray:
        shown = [stats.norm.cdf((count - cut) / noise) if count else 0.0 for count in table]
        sets = itertools.product((0, 1), repeat=3)
        return np.array([math.prod(p if s else 1 - p for p, s in zip(shown, one, strict=True)) for one in sets])

    def neighbour(table: tuple[int, ...]) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        for leaves in range(3):
            if table[leaves] == 0:
                continue
            without = [count - (name == leaves) for name, count in enumerate(table)]
            if neighbours == "replace_one":
                found += [tuple(count + (name == joins) for name, count in enumerate(without)) for joins in range(3)]
            else:
                found.append(tuple(without))
        return found

    def worst(noise: float, cut: float, epsilon: float) -> float:
        largest = 0.0
        for table in itertools.product((0, 1, 2, 5), repeat=3):
            for other in neighbour(table):
                p, q = law(table, noise, cut), law(other, noise, cut)
                for a, b in ((p, q), (q, p)):
                    largest = max(largest, float(np.maximum(a - math.exp(epsilon) * b, 0).sum()))
        return largest

    caught = [0, 0]
    for eps in (0.0, 0.3, 1.0, 8.0):
        price = delta(event, epsilon=eps, neighbours=neighbours)
        assert worst(stddev, threshold, eps) <= price
        caught[0] += worst(stddev / 2, threshold, eps) > price
        caught[1] += worst(stddev, threshold - stddev / 2, eps) > price
    assert all(caught)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_common_names_are_found_and_rare_ones_are_not(neighbours: Neighbours) -> None:
    """Names of many records are shown, sorted; a name of one record, a missing cell and an unheld level are not."""
    table = {
        "job": ["smith"] * 900 + ["baker"] * 900 + ["Jane Doe"] + [None] * 900,
        "zip": [1010] * 2000 + [1020.0] * 701,
    }
    found = private_categories(
        table, columns=["job", "zip"], noise_multiplier=10.0, threshold_delta=1e-8, neighbours=neighbours
    )
    assert found.values == {"job": ("baker", "smith"), "zip": ("1010", "1020")}
    counts = Gaussian(noise_multiplier=10.0).under(neighbours)
    assert found.plan.event == counts + Approximate(epsilon=0.0, delta=1e-8).under(neighbours)
    assert (found.plan.neighbours, found.invalidated) == (neighbours, False)


def test_the_order_of_rows_does_not_show() -> None:
    """With the same words, the same records in any order give the same names: noise follows sorted names."""
    rng = np.random.default_rng(3)
    names = rng.choice(["a", "b", "c", "d", "e"], 300, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    found = [
        private_categories(
            {"x": order}, columns=["x"], noise_multiplier=10.0, threshold_delta=0.05,
            random=fixed_seed_invalidates_guarantee(1),
        ).values
        for order in (names, names[::-1], np.sort(names))
    ]  # fmt: skip
    assert found[0] == found[1] == found[2]


def test_empty_and_bad_columns_have_no_names() -> None:
    """No record, or no name: an empty list, nothing raised."""
    for cells in ([], [None] * 9, [object()] * 9, [math.nan]):
        found = private_categories({"x": cells}, columns=["x"], noise_multiplier=1.0, threshold_delta=1e-3)
        assert found.values == {"x": ()}


@pytest.mark.parametrize("part", [0.0, 1.0, 0.2, math.nan, -1e-6])
def test_a_delta_that_promises_nothing_is_refused(part: float) -> None:
    """The part of delta for single names is above 0 and at most 0.1; a refusal quotes no name."""
    with pytest.raises(InvalidParameter) as caught:
        private_categories({"x": ["Jane Doe"]}, columns=["x"], noise_multiplier=1.0, threshold_delta=part)
    assert "Jane" not in str(caught.value)


def test_the_lattice_is_finer_than_the_allowance() -> None:
    """Half a step of the lattice that counts are shown on is within what the threshold allows for it."""
    for stddev in (2.0**-9, 0.7, 3.0, 1e4, 1e6):
        bits = max(0, 13 - math.frexp(stddev)[1])
        step = max(2.0**-bits, 2.0 ** (math.frexp(stddev)[1] - 1 - 20))
        assert step / 2 <= categories._ROUNDING * stddev
