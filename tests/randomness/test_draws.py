from __future__ import annotations

import itertools
import tracemalloc
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privet.errors import InvalidParameter
from privet.randomness import (
    Words,
    choose,
    draws,
    fixed_seed_invalidates_guarantee,
    integers_below,
    system_random,
    uniforms,
)


class Scripted:
    """Words from a list; what is asked beyond it comes from a fixed seed."""

    invalidates_guarantee = True

    def __init__(self, words: list[int]) -> None:
        self.left = words
        self.rest = fixed_seed_invalidates_guarantee(0)

    def words(self, count: int) -> Words:
        now, self.left = self.left[:count], self.left[count:]
        return np.concatenate([np.array(now, dtype=np.uint64), self.rest.words(count - len(now))])


def test_uniforms_are_multiples_of_two_to_the_minus_53_below_one() -> None:
    """The largest word gives the largest double below 1, the smallest gives 0."""
    assert uniforms(Scripted([2**64 - 1, 0, 1 << 63]), 3).tolist() == [1 - 2.0**-53, 0.0, 0.5]


@given(bound=st.integers(1, 2**62))
def test_words_that_would_favour_a_residue_are_drawn_again(bound: int) -> None:
    """Of the 2^64 words the last full multiple of the bound is kept: every residue has equally many words."""
    last = 2**64 - 2**64 % bound - 1
    assert integers_below(Scripted([last]), bound, 1).tolist() == [bound - 1]
    if last + 1 < 2**64:
        again = Scripted([last + 1, 2**64 - 1, bound + 5])
        assert integers_below(again, bound, 1).tolist() == [(bound + 5) % bound]


def test_integers_are_uniform() -> None:
    """False positive rate 1e-6; 60,000 draws; bound 3·2^60, where a plain remainder has bias 1/16.

    A bias of 0.01 in one third is caught with power 0.99. Mutant: the remainder without drawing again.
    """
    bound, draws = 3 << 60, 60_000
    thirds = np.bincount(integers_below(fixed_seed_invalidates_guarantee(2), bound, draws) >> 60, minlength=3)
    assert stats.chisquare(thirds).pvalue > 1e-6
    plain = fixed_seed_invalidates_guarantee(2).words(draws) % np.uint64(bound)
    assert stats.chisquare(np.bincount((plain >> np.uint64(60)).astype(int), minlength=3)).pvalue < 1e-6


@pytest.mark.medium
@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3), (6, 5), (4, 1)])
def test_each_subset_is_equally_likely(n: int, k: int) -> None:
    """False positive rate 1e-6 each; 12,000 draws; all subsets counted; one subset 40 % too rare is caught (.99).

    Mutant: draws with the duplicates replaced by the least free indices.
    """
    draws = 12_000
    cells = {subset: i for i, subset in enumerate(itertools.combinations(range(n), k))}
    assert len(cells) == comb(n, k)

    def counts(sets: list[tuple[int, ...]]) -> np.ndarray:
        return np.bincount([cells[subset] for subset in sets], minlength=len(cells))

    random = fixed_seed_invalidates_guarantee(3)
    assert stats.chisquare(counts([tuple(choose(random, n, k).tolist()) for _ in range(draws)])).pvalue > 1e-6
    if k > 1:
        lazy = []
        for _ in range(draws):
            found = set(integers_below(random, n, k).tolist())
            free = (i for i in range(n) if i not in found)
            lazy.append(tuple(sorted(found | set(itertools.islice(free, k - len(found))))))
        assert stats.chisquare(counts(lazy)).pvalue < 1e-6


@given(n=st.integers(0, 40), data=st.data())
def test_chosen_are_distinct_sorted_and_in_range(n: int, data: st.DataObject) -> None:
    """k distinct indices below n in ascending order, for every k from 0 to n."""
    k = data.draw(st.integers(0, n))
    chosen = choose(system_random(), n, k)
    assert chosen.dtype == np.int64
    assert chosen.size == k
    assert (np.diff(chosen) > 0).all()
    assert ((chosen >= 0) & (chosen < n)).all()


@pytest.mark.parametrize("n", [10**4, 10**8, 2**62])
def test_memory_does_not_grow_with_n(n: int) -> None:
    """256 of n take a few kilobytes, whatever n is."""
    random = system_random()
    choose(random, n, 256)
    tracemalloc.start()
    choose(random, n, 256)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_indices_come_from_the_source_alone() -> None:
    """Batches are a function of the cryptographic words; a public seed invalidates what follows and says so."""
    first, second = (choose(fixed_seed_invalidates_guarantee(4), 10**9, 100) for _ in range(2))
    assert (first == second).all()
    assert not np.intersect1d(choose(system_random(), 10**15, 100), choose(system_random(), 10**15, 100)).size


@pytest.mark.parametrize(("n", "k"), [(3, 4), (-1, 0), (2**62 + 1, 1), (10, -1), (10, 1.5), (True, 1), ("10", 1)])
def test_impossible_choices_are_refused_without_a_number(n: int, k: int) -> None:
    """Too many, negative, fractional: refused; the message quotes neither n nor k, which may be private."""
    with pytest.raises(InvalidParameter) as caught:
        choose(system_random(), n, k)
    assert "got 3" not in str(caught.value)
    assert "got 4" not in str(caught.value)


@pytest.mark.parametrize("bound", [0, -1, 2**62 + 1, 2.0])
def test_impossible_bounds_are_refused(bound: int) -> None:
    """A bound is a whole number from 1 to 2^62."""
    with pytest.raises(InvalidParameter, match="bound"):
        integers_below(system_random(), bound, 1)


@pytest.mark.parametrize(("n", "k"), [(1000, 100), (64, 2), (3200, 100), (5, 1)])
def test_marks_choose_the_set_that_sorting_does(n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same words, both ways find the same indices, in ascending order."""
    found = choose(fixed_seed_invalidates_guarantee(7), n, k)
    monkeypatch.setattr(draws, "_MARKED", 0)
    assert choose(fixed_seed_invalidates_guarantee(7), n, k).tolist() == found.tolist()
