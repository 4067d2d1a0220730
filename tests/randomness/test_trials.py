"""Numbers of trials have exactly the laws that selection is priced for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.randomness import fixed_seed_invalidates_guarantee, negative_binomial_trials, poisson_trials
from privet.randomness.trials import happens


def chi_square(found: np.ndarray, law: np.ndarray) -> float:
    """Pearson's statistic over the cells 0 … len(law) − 1 and the rest, in standard deviations above its mean."""
    counts = np.bincount(np.minimum(found, len(law)), minlength=len(law) + 1)
    chances = np.append(law, 1 - law.sum())
    used = chances > 0
    expected = chances[used] * len(found)
    freedom = int(used.sum()) - 1
    assert counts[~used].sum() == 0
    return float((((counts[used] - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


@pytest.mark.parametrize(("shape", "stop"), [(-0.5, 0.3), (0.0, 0.3), (0.5, 0.3), (1.0, 0.3)])
def test_negative_binomial_numbers_have_their_law(shape: float, stop: float) -> None:
    """600 draws against the law by chi-square over 8 cells: false alarm below 1e-4 (8 deviations), fixed seed.

    The mutant that forgets to start again, whose law is geometric, is caught.
    """
    random = fixed_seed_invalidates_guarantee(5)
    found = np.array([negative_binomial_trials(random, shape=shape, stop=stop) for _ in range(600)])
    weights = [0.0] + [(1 - stop) ** k * math.prod((j + shape) / (j + 1) for j in range(1, k)) for k in range(1, 500)]
    law = np.array(weights[:8]) / math.fsum(weights)
    assert chi_square(found, law) < 8
    if shape < 0.5:
        geometric = stop * (1 - stop) ** (np.arange(1, 8) - 1.0)
        assert chi_square(found, np.append(0.0, geometric)) > 8


@pytest.mark.parametrize("mean", [0.3, 2.5])
def test_poisson_numbers_have_their_law(mean: float) -> None:
    """600 draws against the law by chi-square over 4 or 6 cells: false alarm below 1e-4, fixed seed."""
    random = fixed_seed_invalidates_guarantee(6)
    found = np.array([poisson_trials(random, mean=mean) for _ in range(600)])
    law = np.array([math.exp(-mean) * mean**k / math.factorial(k) for k in range(3 if mean < 1 else 7)])
    assert chi_square(found, law) < 8
    moved = 1.5 * mean
    wrong = np.array([math.exp(-moved) * moved**k / math.factorial(k) for k in range(3 if mean < 1 else 7)])
    assert chi_square(found, wrong) > 8


class Words:
    """Words from a list."""

    invalidates_guarantee = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        assert count == 1
        return np.array([self.left.pop(0)], dtype=np.uint64)


def test_a_chance_is_decided_by_as_many_bits_as_it_needs() -> None:
    """A word equal to the chance's own digits asks for the next; certain and impossible things need none or are so."""
    third = Fraction(1, 3)
    digits = (1 << 64) // 3
    assert happens(Words(digits - 1), third)
    assert not happens(Words(digits + 1), third)
    assert happens(Words(digits, digits - 1), third)
    assert not happens(Words(digits, digits, digits + 1), third)
    assert happens(Words(), Fraction(1))
    assert not happens(Words(0, 0, 1), Fraction(0))
    with pytest.raises(RuntimeError, match="source is broken"):
        happens(Words(*[digits] * 16), third)


def test_laws_that_cannot_be_drawn_are_refused() -> None:
    """Shapes above 1, chances outside (0, 1), means that are none."""
    random = fixed_seed_invalidates_guarantee(1)
    for shape, stop in ((2.0, 0.5), (-1.0, 0.5), (0.0, 0.0), (0.0, 1.0)):
        with pytest.raises(InvalidParameter, match="shape"):
            negative_binomial_trials(random, shape=shape, stop=stop)
    for mean in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="mean"):
            poisson_trials(random, mean=mean)
