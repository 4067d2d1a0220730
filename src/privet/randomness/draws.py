"""Uniform numbers, whole numbers and subsets from random words: each exactly as its law says."""

import numpy as np
from numpy.typing import NDArray

from privet._checks import is_whole
from privet.errors import InvalidParameter
from privet.randomness.generator import Random

_LARGEST = 1 << 62
_MARKED = 32  # indices for each that is chosen, up to which marks are made on all


def uniforms(random: Random, count: int) -> NDArray[np.float64]:
    """Return `count` independent multiples of 2⁻⁵³, each uniform on [0, 1).

    Not for noise: a float made from these has holes that give its operand away. Noise is in :mod:`privet.noise`.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(1)
    >>> values = uniforms(random, 1000)
    >>> bool((values >= 0).all() and (values < 1).all()), f"{values.mean():.2f}"
    (True, '0.50')
    """
    return (random.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers_below(random: Random, bound: int, count: int) -> NDArray[np.int64]:
    """Return `count` independent whole numbers, each exactly uniform on 0 … bound − 1.

    A word beyond the last full multiple of `bound` below 2⁶⁴ is drawn again, so that no residue is favoured; this
    happens with probability below bound/2⁶⁴, and its time says nothing of the number that is returned.

    Parameters
    ----------
    bound : 1 … 2⁶²

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> dice = integers_below(fixed_seed_invalidates_guarantee(1), 6, 60_000)
    >>> np.bincount(dice)
    array([10024,  9980, 10044, 10051, 10020,  9881])
    """
    bound = whole("bound", bound, 1)
    divisor = np.uint64(bound)
    words = random.words(count)
    last = np.uint64((1 << 64) - 1 - (1 << 64) % bound)
    bad = words > last
    while bad.any():
        words[bad] = random.words(int(bad.sum()))
        bad = words > last
    return (words % divisor).astype(np.int64)


def choose(random: Random, n: int, k: int) -> NDArray[np.int64]:
    """Return `k` distinct indices below `n`, in ascending order: each set of k is equally likely.

    Promise: time and memory O(k log k), whatever n. Proof: the first k distinct values of a stream of independent
    uniform indices are a uniform set, by symmetry; a round draws as many as are missing, so it never overshoots. If
    k > n/2, the n − k that stay out are drawn instead (n < 2k then), so that each round at least halves what is
    missing on average. The order is sorted, not random: it is kind to memory and tells nothing.

    Parameters
    ----------
    n : 0 … 2⁶²
    k : 0 … n

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> choose(fixed_seed_invalidates_guarantee(1), 10**15, 3)
    array([456035563908246, 616923922549128, 876854217254650])
    >>> choose(fixed_seed_invalidates_guarantee(1), 5, 5)
    array([0, 1, 2, 3, 4])
    """
    n = whole("n", n, 0)
    k = whole("k", k, 0)
    if k > n:
        raise InvalidParameter("Expected k at most n, got more: there are not so many indices. Choose fewer.")
    if 2 * k > n:
        inside = np.ones(n, dtype=bool)
        inside[choose(random, n, n - k)] = False
        return np.flatnonzero(inside)
    if n <= _MARKED * k:  # marks on all of them cost less than to sort those chosen
        inside, missing = np.zeros(n, dtype=bool), k
        while missing:
            inside[integers_below(random, n, missing)] = True
            missing = k - int(np.count_nonzero(inside))
        return np.flatnonzero(inside)
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < k:
        chosen = np.concatenate([chosen, integers_below(random, n, k - chosen.size)])
        chosen.sort()  # np.union1d hashes: five times as long for 4,096 of 10⁷
        again = chosen[1:] == chosen[:-1]
        if again.any():
            chosen = np.delete(chosen, np.flatnonzero(again))
    return chosen


def whole(name: str, value: int, least: int) -> int:
    """Return `value` as an int if it is a whole number from `least` to 2⁶², else say that it is not."""
    if not (is_whole(value) and least <= value <= _LARGEST):
        raise InvalidParameter(
            f"Expected {name} to be a whole number from {least} to 2**62, got something else: indices are int64. "
            "Pass an int of that range."  # its value may be private, as n is under add_remove
        )
    return int(value)
