from __future__ import annotations

import tracemalloc
from fractions import Fraction
from math import comb, floor

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from privet.errors import InvalidParameter
from privet.randomness import Words, binomial, choose, fixed_seed_invalidates_guarantee, system_random
from privet.randomness.binomial import _exact, _table

MORE = 0x9E3779B97F4A7C15


class Endless:
    """One word, then the same word for ever: the bits of a number U that is known to the last one."""

    invalidates_guarantee = True

    def __init__(self, first: int, more: int = MORE) -> None:
        self.first: int | None = first
        self.more = more

    def words(self, count: int) -> Words:
        now, self.first = self.first if self.first is not None else self.more, None
        return np.array([now, *[self.more] * (count - 1)], dtype=np.uint64)

    @staticmethod
    def number(first: int, more: int = MORE) -> Fraction:
        return Fraction(first, 2**64) + Fraction(more, 2**64 - 1) / 2**64


LAWS = [(n, rate) for n in (1, 2, 3, 12, 50) for rate in (0.5, 0.1, 1e-3, 0.999, 1 - 2.0**-53, 5e-324, 0.3)]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("n", "rate"),  # 50 of the smallest float have 53,700 bits
    [pytest.param(*law, marks=pytest.mark.slow if law == (50, 5e-324) else ()) for law in LAWS],
)
def test_inversion_is_exact_at_every_step_of_the_law(n: int, rate: float) -> None:
    """The words just below, at and just above each F(k), and in the middle of each cell, give the exact k."""
    q = Fraction(rate)
    law = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
    sums = [sum(law[: k + 1], Fraction(0)) for k in range(n + 1)]
    edges = {floor(step * 2**64) + shift for step in sums for shift in (-2, -1, 0, 1, 2, 2**40, -(2**40))}
    for word in sorted({min(max(edge, 0), 2**64 - 1) for edge in edges}):
        u = Endless.number(word)
        expected = next(k for k, step in enumerate(sums) if u < step)
        assert binomial(Endless(word), n, rate) == expected
        random = Endless(word)
        random.words(1)
        assert _exact(random, n, q, word) == expected


@pytest.mark.medium
@pytest.mark.parametrize(("n", "rate"), [(10**8, 256 / 10**8), (10**4, 0.0256), (10**12, 1e-10), (5000, 0.7)])
def test_inversion_is_exact_for_many_records(n: int, rate: float) -> None:
    """Against sums of 60 digits: random words and words next to every tenth step of the law."""
    with mp.workdps(60):
        q = mp.mpf(rate)
        first, table = _table(n, rate)
        k = range(first, first + table.size - 1)
        sums = []
        total = mp.betainc(n - first + 1, first, 0, 1 - q, regularized=True) if first else mp.mpf(0)
        weight = mp.binomial(n, first) * q**first * (1 - q) ** (n - first)
        for i in k:
            total += weight
            sums.append(total)
            weight *= mp.mpf(n - i) / (i + 1) * q / (1 - q)
        assert abs(sums[-1] - 1) < mp.mpf(2) ** -60
        assert max(abs(float(s) - t / table[-1]) for s, t in zip(sums, table[1:], strict=True)) < 2.0**-49 * table.size
        words = [int(w) for w in fixed_seed_invalidates_guarantee(4).words(100)]
        words += [int(mp.floor(step * 2**64)) + shift for step in sums[::10] for shift in (-1, 0, 1)]
        for word in words:
            if 0 < word < 2**64 - 2:
                u = mp.mpf(word) / 2**64 + mp.mpf(MORE) / (2**64 - 1) / 2**64
                expected = first + next(i for i, step in enumerate(sums) if u < step)
                assert binomial(Endless(word), n, rate) == expected


@pytest.mark.medium
@pytest.mark.parametrize(("n", "rate"), [(40, 0.3), (10**6, 2e-5), (10**8, 0.25)])
def test_numbers_follow_the_law(n: int, rate: float) -> None:
    """False positive rate 1e-6 each; 20,000 draws, 20 cells; a mean off by 0.06 deviations is caught (power .99).

    Mutant: the number of records is one tenth of a deviation's worth too large.
    """
    random = fixed_seed_invalidates_guarantee(6)
    draws = np.array([binomial(random, n, rate) for _ in range(20_000)])
    law = stats.binom(n, rate)

    def fits(numbers: np.ndarray) -> bool:
        edges = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
        expected = np.diff([0.0, *law.cdf(edges), 1.0]) * numbers.size
        counts = np.bincount(np.searchsorted(edges, numbers), minlength=edges.size + 1)
        return bool(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-6)

    assert fits(draws)
    extra = max(1, round(0.1 * law.std() / rate))
    assert not fits(np.array([binomial(random, n + extra, rate) for _ in range(20_000)]))


def test_the_exact_road_follows_the_law_too() -> None:
    """False positive rate 1e-6; 5,000 draws of _exact alone; a mean off by 0.12 deviations is caught."""
    random = fixed_seed_invalidates_guarantee(8)
    draws = [_exact(random, 100, Fraction(1, 4), int(random.words(1)[0])) for _ in range(5000)]
    score = (np.mean(draws) - 25) / np.sqrt(100 * 3 / 16 / 5000)
    assert abs(score) < 4.9


@pytest.mark.parametrize("n", [10**4, 10**8, 10**12])
def test_a_poisson_batch_makes_no_array_of_length_n(n: int) -> None:
    """Size and members of a batch of 256 expected take a few kilobytes."""
    random = system_random()
    tracemalloc.start()
    size = binomial(random, n, 256 / n)
    assert choose(random, n, size).size == size
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_certain_numbers_need_no_words() -> None:
    """Rates 0 and 1 and no records at all."""
    random = system_random()
    assert [binomial(random, 5, 0.0), binomial(random, 5, 1.0), binomial(random, 0, 0.3)] == [0, 5, 0]


def test_a_source_that_never_decides_is_named_broken() -> None:
    """Zeros for ever are an error, not an endless loop."""
    with pytest.raises(RuntimeError, match="broken"):
        binomial(Endless(0, 0), 10, 0.5)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "0.5", None])
def test_wrong_rates_are_refused(rate: float) -> None:
    """A rate is a probability."""
    with pytest.raises(InvalidParameter, match="rate in"):
        binomial(system_random(), 10, rate)


def test_a_batch_beyond_memory_is_refused_without_quoting_n() -> None:
    """A variance above 2^32 is refused."""
    with pytest.raises(InvalidParameter, match="smaller rate") as caught:
        binomial(system_random(), 10**12, 0.5)
    assert "1000000000000" not in str(caught.value)
