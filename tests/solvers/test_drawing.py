"""Exact draws: the law to the last bit of probability, refined where a first look does not decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from privet.randomness import Words, fixed_seed_invalidates_guarantee
from privet.solvers.drawing import exact_choice, exact_fraction, exponential_weights, piece_weights


class Given:
    """A source that gives the words it was given, and counts them."""

    invalidates_guarantee = True

    def __init__(self, words: list[int]) -> None:
        self.left = list(words)

    def words(self, count: int) -> Words:
        found, self.left = self.left[:count], self.left[count:]
        return np.array(found, dtype=np.uint64)


def chi_square(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    expected = counts.sum() * probabilities
    return float(((counts - expected) ** 2 / expected).sum())


def law(scores: list[float]) -> NDArray[np.float64]:
    weights = np.exp(-np.array(scores))
    return np.asarray(weights / weights.sum())


def drawn(draw: Callable[[], int], outcomes: int, times: int) -> NDArray[np.int64]:
    return np.bincount([draw() for _ in range(times)], minlength=outcomes)


@pytest.mark.medium
def test_a_choice_follows_the_law_and_a_doubled_rate_does_not() -> None:
    """Chi-square of 4,000 draws; false positives 1e-6. The mutant "rate doubled" (a forgotten 2) fails by far."""
    scores, rate = [0, 3, 1, 7, 2], Fraction(1, 4)
    random = fixed_seed_invalidates_guarantee(11)
    counts = drawn(lambda: exact_choice(random, exponential_weights(scores, rate)), 5, 4000)
    limit = chi2.isf(1e-6, 4)
    assert chi_square(counts, law([float(rate) * s for s in scores])) < limit
    mutant = drawn(lambda: exact_choice(random, exponential_weights(scores, 2 * rate)), 5, 4000)
    assert chi_square(mutant, law([float(rate) * s for s in scores])) > 4 * limit


@pytest.mark.parametrize(("more", "index"), [([0, 0], 0), ([2**64 - 1, 2**64 - 1], 1)])
def test_more_bits_are_drawn_where_the_first_do_not_decide(more: list[int], index: int) -> None:
    """128 bits of 1/3 leave open on which side of 1/3 the number is; the next two words decide, rightly."""
    third = 0x5555555555555555
    random = Given([third, third, *more])
    assert exact_choice(random, lambda digits: [10**digits // 3, 2 * 10**digits // 3]) == index
    assert random.left == []


def test_an_error_of_the_weights_never_moves_the_choice() -> None:
    """A hundred equal outcomes, half of them two units short as is allowed: U just below ½ is the fiftieth, not later.

    The short sums alone say the fifty-first; the check from below sees that they cannot know.
    """

    def short(digits: int) -> list[int]:
        return [10 ** (digits - 2) - 2] * 50 + [10 ** (digits - 2)] * 50

    random = Given([2**63 - 1, 2**64 - 1, 0, 0])
    assert exact_choice(random, short) == 49
    assert random.left == []


def test_a_source_that_never_decides_is_broken() -> None:
    """Two thousand bits of 1/3 are no chance: an error says so, as no draw can be exact."""
    random = Given([0x5555555555555555] * 100)
    with pytest.raises(RuntimeError, match="the source is broken"):
        exact_choice(random, lambda digits: [10**digits // 3, 2 * 10**digits // 3])


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_the_ends_of_the_uniform_number_are_decided_at_once(word: int) -> None:
    """All bits 0 is the first outcome with any weight; all bits 1 the last that is not negligible, with two words."""
    random = Given([word, word])
    scores = [0, 1, 2]
    assert exact_choice(random, exponential_weights(scores, Fraction(1))) == (0 if word == 0 else 2)


@given(
    scores=st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=6),
    exponent=st.integers(-70, 3),
    digits=st.sampled_from([40, 80]),
)
def test_weights_are_within_two_of_the_truth(scores: list[int], exponent: int, digits: int) -> None:
    """Against mpmath at 400 digits: exp(−rate · score) and the pieces' integrals, from tiny rates to huge."""
    rate = Fraction(3, 7) * Fraction(2) ** exponent
    knots = [*scores, scores[0] + 1]  # a difference of one unit is the hardest for 1 − e^{−c}
    with mpmath.workdps(400):
        exact_rate = mpmath.mpf(rate.numerator) / rate.denominator
        one = mpmath.mpf(10) ** digits
        for found, score in zip(exponential_weights(scores, rate)(digits), scores, strict=True):
            assert abs(found - one * mpmath.exp(-exact_rate * (score - min(scores)))) <= 2
        for i, found in enumerate(piece_weights(knots, rate)(digits)):
            low, c = min(knots[i : i + 2]) - min(knots), exact_rate * abs(knots[i + 1] - knots[i])
            share = (1 - mpmath.exp(-c)) / c if c else mpmath.mpf(1)
            assert abs(found - one * mpmath.exp(-exact_rate * low) * share) <= 2


def test_a_hopeless_outcome_is_never_drawn_and_costs_nothing() -> None:
    """A score 10^9 nats above the best has weight 0 to forty digits; a rate of 0 nats makes all equal."""
    random = fixed_seed_invalidates_guarantee(3)
    assert {exact_choice(random, exponential_weights([10**9, 0], Fraction(1))) for _ in range(50)} == {1}
    counts = drawn(lambda: exact_choice(random, exponential_weights([5, 0], Fraction(0))), 2, 2000)
    assert chi_square(counts, np.array([0.5, 0.5])) < chi2.isf(1e-6, 1)


@pytest.mark.medium
@pytest.mark.parametrize("difference", [-3, 0, 8])
def test_the_place_in_a_piece_follows_its_exponential_law(difference: int) -> None:
    """Chi-square over eight cells, 1,500 draws each; false positives 1e-6. The mirrored law fails unless it is flat."""
    random = fixed_seed_invalidates_guarantee(5)
    counts = drawn(lambda: math.floor(8 * exact_fraction(random, difference, Fraction(1, 2), 6)), 8, 1500)
    edges = np.linspace(0, 1, 9)
    slope = difference / 2
    below = edges if slope == 0 else (1 - np.exp(-slope * edges)) / (1 - math.exp(-slope))
    probabilities = np.diff(below)
    assert chi_square(counts, probabilities) < chi2.isf(1e-6, 7)
    if slope:
        assert chi_square(counts, probabilities[::-1]) > 10 * chi2.isf(1e-6, 7)


def test_the_place_in_a_piece_is_the_middle_of_a_cell() -> None:
    """Never an end of the piece: two pieces share no outcome."""
    random = fixed_seed_invalidates_guarantee(5)
    found = exact_fraction(random, 1, Fraction(1), 4)
    assert found.denominator == 32
    assert 0 < found < 1
