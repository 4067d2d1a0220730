"""Exact draws with probabilities proportional to exp(−score): one uniform number, compared with as many bits as needed.

The probabilities are real numbers that no float holds. They are computed in decimals to a stated error; the uniform
number is known by its first bits. If the two leave open which outcome it is, both are refined. So the law is exact
for ideal words, and nothing has to be added to δ. Proof: docs/proofs/drawing.md, section 2.
"""

import bisect
import decimal
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise

from privet.randomness import Random
from privet.randomness.generator import stuck

Weights = Callable[[int], Sequence[int]]
"""From a number of digits to one whole number an outcome, each within 2 of 10^digits × its weight."""

_ERROR = 2  # of one weight, in its last digit; section 2.2
_ROUNDS = 15  # after these, some two thousand bits have not decided: no chance does that
_GUARD = 12  # digits beyond those asked for


def exact_choice(random: Random, weights: Weights) -> int:
    """Return an index, each with probability exactly proportional to its weight.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(1)
    >>> thirds = lambda digits: [10**digits // 3, 2 * 10**digits // 3]
    >>> sum(exact_choice(random, thirds) for _ in range(3000))
    2025
    """
    word = 0
    for extra in range(1, _ROUNDS + 1):
        bits = 128 * extra
        for more in random.words(2):
            word = word << 64 | int(more)
        sums = list(accumulate(weights(40 * extra)))
        error, total = _ERROR * len(sums), sums[-1]
        index = bisect.bisect_right(sums, word * total >> bits)
        above = index == 0 or word * (total - error) >= sums[index - 1] + error << bits
        below = index == len(sums) - 1 or (word + 1) * (total + error) <= sums[index] - error << bits
        if above and below:
            return index
    raise stuck()


def exponential_weights(scores: Sequence[int], rate: Fraction) -> Weights:
    """Return the weights exp(−rate · score), up to a common factor; private."""
    least = min(scores)

    def weights(digits: int) -> list[int]:
        with decimal.localcontext(_context(digits + _GUARD)):
            known = {score: int(_exp(_real(rate * (score - least)), digits).scaleb(digits)) for score in set(scores)}
        return [known[score] for score in scores]

    return weights


def piece_weights(knots: Sequence[int], rate: Fraction) -> Weights:
    """Return ∫ exp(−rate · f) over each unit interval, f linear there between the values at its two `knots`.

    The integral is exp(−rate · lower end) φ(rate · |difference|) with φ(c) = (1 − e^{−c})/c, φ(0) = 1.
    """
    least = min(knots)

    def weights(digits: int) -> list[int]:
        found = []
        for left, right in pairwise(knots):
            c = rate * abs(right - left)
            # 1 − e^{−c} loses as many digits as c has zeros after the point: section 2.3
            lost = len(str(c.denominator // c.numerator)) if c else 0
            with decimal.localcontext(_context(digits + _GUARD + lost)):
                share = (1 - _exp(_real(c), digits + lost)) / _real(c) if c else Decimal(1)
                found.append(int((_exp(_real(rate * (min(left, right) - least)), digits) * share).scaleb(digits)))
        return found

    return weights


def exact_fraction(random: Random, difference: int, rate: Fraction, bits: int) -> Fraction:
    """Return the middle of one of 2^bits cells of [0, 1], by the law of density ∝ exp(−rate · difference · t).

    The binary digits of such a t are independent: digit j is 1 with odds exp(−rate · difference · 2^−j) to 1.
    """
    cell = 0
    for j in range(1, bits + 1):
        cell = 2 * cell + exact_choice(random, exponential_weights((0, difference), rate / 2**j))
    return Fraction(2 * cell + 1, 2 ** (bits + 1))


def _exp(x: Decimal, digits: int) -> Decimal:
    """exp(−x) for x ≥ 0; 0 where that is below 10^−digits."""
    return Decimal(0) if x > 24 * digits // 10 else (-x).exp()


def _real(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / x.denominator


def _context(digits: int) -> decimal.Context:
    return decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9)
