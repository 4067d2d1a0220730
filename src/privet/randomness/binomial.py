"""How many of n records a Poisson batch holds: a binomial number, drawn exactly.

By inversion: the number is the k with F(k−1) ≤ U < F(k), F the distribution function and U uniform, of which 64 bits
are drawn at first. F is summed in floats outwards from the mode, with a bound on its error; if U is too close to a
step of F for that, more bits of U are drawn and F is summed in whole numbers until the k is certain.
Proof that the law is exactly binomial: docs/proofs/noise.md, section 4.
"""

import bisect
import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privet._checks import between
from privet.errors import InvalidParameter
from privet.randomness.draws import whole
from privet.randomness.generator import Random, stuck

_CUT = 2.0**-80  # of the mode's probability: where the float table ends
_MOST_VARIANCE = 2.0**32
_CACHED_VARIANCE = 2.0**28


def binomial(random: Random, n: int, rate: float) -> int:
    """Return how many of `n` independent events of probability `rate` happen.

    Promise: the law is exactly binomial for ideal words; nothing has to be added to δ for it. Time and memory
    O(√(n · rate)) for the first draw, O(log n) for more of the same n and rate.
    With `choose`, a Poisson batch costs what its members cost: `choose(random, n, binomial(random, n, rate))`.

    Parameters
    ----------
    n : 0 … 2⁶², with n · rate · (1 − rate) at most 2³²
    rate : in [0, 1], taken as the exact value of the float

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(1)
    >>> [binomial(random, 10**8, 256 / 10**8) for _ in range(5)]
    [249, 270, 280, 245, 251]
    >>> binomial(random, 100, 1.0)
    100
    """
    n = whole("n", n, 0)
    rate = between(
        "rate", rate, 0, 1, closed=(True, True), because="it is a probability", use="Use expected batch size ÷ records."
    )
    if n == 0 or rate in (0.0, 1.0):
        return n if rate == 1.0 else 0
    variance = n * rate * (1.0 - rate)
    if variance > _MOST_VARIANCE:
        raise InvalidParameter("""Expected n · rate · (1 − rate) of at most 2**32, got more: such a batch fits into no
            memory. Use a smaller rate.""")
    word = int(random.words(1)[0])
    first, sums = _cached(n, rate) if variance <= _CACHED_VARIANCE else _table(n, rate)
    target = word * 2.0**-64 * sums[-1]
    index = int(np.searchsorted(sums, target, side="right"))  # the least with sums[index] > target
    margin = 2.0**-48 * (sums.size + 1) * sums[-1]  # section 4.1
    if 0 < index < sums.size and sums[index - 1] + margin < target < sums[index] - margin:
        return first + index - 1
    return _exact(random, n, Fraction(rate), word)


def _table(n: int, rate: float) -> tuple[int, NDArray[np.float64]]:
    """Return k₀ and sums, sums[i] = P(k₀ ≤ K < k₀ + i)/P(K = mode), wide enough to hold all but 2⁻⁶⁰ of the law."""
    mode, odds = _mode_and_odds(n, Fraction(rate))
    below = _outwards(n - mode, n, 1 / odds)  # k falls as the number n − k of events that do not happen rises
    above = _outwards(mode, n, odds)
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([below[::-1], [1.0], above]))])
    return mode - below.size, sums


_cached = lru_cache(maxsize=8)(_table)


def _outwards(mode: int, n: int, odds: Fraction) -> NDArray[np.float64]:
    """Return P(mode + 1), P(mode + 2), … over P(mode), until they are below 2⁻⁸⁰ or there are no more."""
    parts: list[NDArray[np.float64]] = []
    last, start, length = 1.0, mode + 1, 64
    while start <= n and last >= _CUT:
        k = np.arange(start, min(start + length, n + 1))
        part = np.cumprod(np.asarray((n + 1 - k) / k, dtype=np.float64) * float(odds)) * np.float64(last)
        parts.append(part)
        last, start, length = float(part[-1]), start + length, 2 * length
    return np.concatenate(parts) if parts else np.empty(0)


def _exact(random: Random, n: int, rate: Fraction, word: int) -> int:
    """Return the k with F(k−1) ≤ U < F(k), `word` the first 64 bits of U; section 4.2."""
    mode, odds = _mode_and_odds(n, rate)
    for bits in range(128, 2048, 64):
        word = word << 64 | int(random.words(1)[0])
        one = 1 << (bits + 64)
        below = _whole_outwards(n - mode, n, 1 / odds, one)
        above = _whole_outwards(mode, n, odds, one)
        sums = list(accumulate([*reversed(below), one, *above]))
        error = 4 * (max(len(below), len(above)) + 2) ** 2
        index = bisect.bisect_right(sums, word * sums[-1] >> bits)
        surely_above = word * sums[-1] >= (sums[index - 1] if index else 0) + error << bits
        if surely_above and index < len(sums) and (word + 1) * (sums[-1] + error) <= sums[index] << bits:
            return mode - len(below) + index
    raise stuck()


def _whole_outwards(mode: int, n: int, odds: Fraction, one: int) -> list[int]:
    found: list[int] = []
    weight = one
    while weight and mode < n:
        mode += 1
        weight = weight * ((n + 1 - mode) * odds.numerator) // (mode * odds.denominator)
        found.append(weight)
    return found


def _mode_and_odds(n: int, rate: Fraction) -> tuple[int, Fraction]:
    return math.floor((n + 1) * rate), rate / (1 - rate)
