"""Correlated noise of a Toeplitz strategy, against every pattern of participation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import toeplitz

from privet.accounting import Gaussian, matrix_mechanism, toeplitz_mechanism, toeplitz_sensitivity
from privet.errors import InvalidParameter

COLUMNS = {
    "falling": [1.0, 0.5, 0.375, 0.3125, 0.2],
    "flat": [1.0, 1.0, 1.0],
    "of either sign": [1.0, -0.7, 0.4, 0.1, -0.3, 0.6],
    "rising": [0.25, 0.5, 1.0, 2.0],
    "one": [1.0],
}


def exact_square(column: list[float], steps: int, times: int, apart: int) -> Fraction:
    """The largest squared move of C·x over all sets of steps and all signs, in fractions."""
    c = [Fraction(value) for value in column] + [Fraction(0)] * steps
    most = Fraction(0)
    for size in range(1, times + 1):
        for chosen in itertools.combinations(range(steps), size):
            if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
                for signs in itertools.product((-1, 1), repeat=size - 1):
                    turned = zip(chosen, (1, *signs), strict=True)
                    pairs = list(turned)
                    rows = [sum((sign * c[t - s] for s, sign in pairs if s <= t), Fraction(0)) for t in range(steps)]
                    most = max(most, sum((row * row for row in rows), Fraction(0)))
    return most


@pytest.mark.medium
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize(
    ("steps", "times", "apart"), [(7, 1, 1), (7, 2, 3), (7, 3, 2), (6, 6, 1), (8, 2, 6), (3, 2, 5)]
)
def test_no_pattern_moves_the_sums_further(column: list[float], steps: int, times: int, apart: int) -> None:
    """The bound covers every pattern in exact arithmetic, and is attained where the promise says so."""
    truth = exact_square(column, steps, times, apart)
    found = toeplitz_sensitivity(column, steps=steps, participations=times, separation=apart)
    assert Fraction(found) ** 2 >= truth
    falls = all(a >= b >= 0 for a, b in itertools.pairwise([*column, 0.0]))
    if falls or min(len(column), steps) <= apart:
        assert found == pytest.approx(math.sqrt(truth), rel=1e-13)


@pytest.mark.parametrize("mutant", ["a band dropped", "a participation dropped", "steps taken further apart"])
def test_mutants_are_caught(mutant: str) -> None:
    """A sensitivity that forgets a band, a pass or the nearest pattern is below the truth, so the test above fails."""
    column, steps, times, apart = COLUMNS["falling"], 7, 3, 2
    truth = math.sqrt(exact_square(column, steps, times, apart))
    asked = {"steps": steps, "participations": times, "separation": apart}
    if mutant == "a band dropped":
        column = column[:-1]
    elif mutant == "a participation dropped":
        asked["participations"] -= 1
    else:
        asked["separation"] += 1
    assert toeplitz_sensitivity(column, **asked) < truth * (1 - 1e-3)


@pytest.mark.parametrize(("times", "apart"), [(1, 1), (4, 10), (3, 7), (40, 1)])
def test_it_agrees_with_the_dense_mechanism(times: int, apart: int) -> None:
    """Where the coefficients fall, it is the price of `matrix_mechanism`, whose proof is another one."""
    column = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, 40)]))
    dense = matrix_mechanism(np.tril(toeplitz(column)), noise_multiplier=3.0, participations=times, separation=apart)
    found = toeplitz_mechanism(column, noise_multiplier=3.0, steps=40, participations=times, separation=apart)
    assert isinstance(dense, Gaussian)
    assert isinstance(found, Gaussian)
    if apart == 1 or times == 1:
        assert found.noise_multiplier == pytest.approx(dense.noise_multiplier, rel=1e-12)
    else:
        assert dense.noise_multiplier * (1 - 1e-12) <= found.noise_multiplier


def test_more_costs_more() -> None:
    """More steps, more passes and less distance between them move the sums further; what is cut off is not counted."""
    column = [1.0, 0.5, 0.375]
    base = {"steps": 20, "participations": 3, "separation": 4}
    found = toeplitz_sensitivity(column, **base)
    assert toeplitz_sensitivity(column, **{**base, "steps": 9}) < found
    assert toeplitz_sensitivity(column, **{**base, "participations": 4}) > found
    assert toeplitz_sensitivity(column, **{**base, "separation": 2}) > found
    assert toeplitz_sensitivity(column, steps=1) == pytest.approx(1.0, rel=1e-14)


def test_extremes_neither_overflow_nor_vanish() -> None:
    """Coefficients of 1e200 and 1e-200 scale the sensitivity."""
    for scale in (1e200, 1e-200):
        assert scale <= toeplitz_sensitivity([scale], steps=5) <= scale * (1 + 1e-13)


@pytest.mark.parametrize("bad", [[], [0.0, 1.0], [math.nan], ["a"], [[1.0]], [True], 1.0])
def test_what_is_no_column_is_refused(bad: object) -> None:
    """Nothing, a first coefficient of 0, NaN, texts, matrices and truth values are no column."""
    with pytest.raises(InvalidParameter, match="coefficients"):
        toeplitz_sensitivity(bad, steps=3)
