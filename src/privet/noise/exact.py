"""The slow road: decide a rounding with as many random bits as it takes.

The fast samplers know each real number that they use only as an interval: the words drawn so far are its first bits.
When such an interval leaves open which whole number comes out, these functions draw more bits and compute in decimals
of growing precision, with error bounds, until it is certain. Proof: docs/proofs/noise.md, section 3.
"""

import decimal
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from privet.randomness import Random
from privet.randomness.generator import stuck

_ROUNDS = 15  # after these, some thousand bits have not decided: no chance does that


class _Interval(NamedTuple):
    """All reals from `low` to `low + width`."""

    low: Decimal
    width: Decimal


def exact_gaussian_pair(
    random: Random, words: tuple[int, int, int], stddev: float, offsets: tuple[float, float]
) -> tuple[int, int]:
    """Return round(offset + stddev · Z) for the two normals Z whose first bits are `words` (angle, radius, tail)."""
    angle, radius, tail = words
    angle -= (angle >> 63) << 64  # two's complement: f = angle/2⁶³ in [−1, 1)
    halvings = _halvings(random, tail)
    signs = (1 - 2 * (tail & 1), 1 - (tail & 2))
    for extra in range(1, _ROUNDS + 1):
        angle, radius = _longer(random, angle), _longer(random, radius)
        with decimal.localcontext(_context(extra)) as context:
            rounding = Decimal(10) ** (8 - context.prec)  # above every rounding error below, section 3
            exponential = _exponential(halvings, radius, extra, rounding)
            low = (2 * exponential.low).sqrt()
            high = (2 * (exponential.low + exponential.width)).sqrt() * (1 + rounding)
            turn = 1 + Decimal(angle) / (1 << 63 + 64 * extra)  # in units of π/4, from 0 to 2
            cosine, sine = _cosine_and_sine(turn * _pi(context.prec) / 4)
            spread = high * (Decimal(2) ** (-63 - 64 * extra) + rounding) + (high - low)
            scale = Decimal(stddev)
            found = [
                _decided(Decimal(offset) + sign * scale * low * value, scale * spread + rounding)
                for offset, sign, value in zip(offsets, signs, (cosine, sine), strict=True)
            ]
        first, second = found
        if first is not None and second is not None:
            return first, second
    raise stuck()


def exact_laplace(random: Random, words: tuple[int, int], scale: float, offset: float) -> int:
    """Return round(offset + scale · X) for the Laplace number X whose first bits are `words` (size, tail)."""
    size, tail = words
    halvings = _halvings(random, tail)
    sign = 1 - 2 * (tail & 1)
    for extra in range(1, _ROUNDS + 1):
        size = _longer(random, size)
        with decimal.localcontext(_context(extra)) as context:
            rounding = Decimal(10) ** (8 - context.prec)
            exponential = _exponential(halvings, size, extra, rounding)
            exact_scale = Decimal(scale)
            middle = Decimal(offset) + sign * exact_scale * exponential.low
            found = _decided(middle, exact_scale * (exponential.width + rounding) + rounding)
        if found is not None:
            return found
    raise stuck()


def _context(extra: int) -> decimal.Context:
    return decimal.Context(prec=40 + 20 * extra, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _longer(random: Random, bits: int) -> int:
    return bits << 64 | int(random.words(1)[0])


def _halvings(random: Random, tail: int) -> int:
    """Return the number of leading zeros of the endless word that starts with the upper 53 bits of `tail`."""
    head = tail >> 11
    if head:
        return 53 - head.bit_length()
    for word in range(_ROUNDS):
        more = int(random.words(1)[0])
        if more:
            return 53 + 64 * word + 64 - more.bit_length()
    raise stuck()


def _exponential(halvings: int, bits: int, extra: int, rounding: Decimal) -> _Interval:
    """Return an interval that holds −ln(2^{−halvings}(1 − v)), where v is in [bits, bits + 1] · 2^{−65−64·extra}."""
    unit = Decimal(2) ** (-65 - 64 * extra)
    middle = halvings * _ln2(decimal.getcontext().prec) - (1 - bits * unit).ln()
    error = (halvings + 1) * rounding
    low = max(middle - error, Decimal(0))
    return _Interval(low, 2 * unit + 2 * error)  # the derivative 1/(1 − v) is at most 2


def _decided(middle: Decimal, error: Decimal) -> int | None:
    """Return the whole number that every real within `error` of `middle` rounds to, if there is one."""
    half = Decimal("0.5")
    low = (middle - error + half).to_integral_value(decimal.ROUND_FLOOR)
    high = (middle + error + half).to_integral_value(decimal.ROUND_FLOOR)
    return int(low) if low == high else None


def _cosine_and_sine(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Return both by Taylor's series, for an angle from 0 to π/2."""
    least = Decimal(10) ** -(decimal.getcontext().prec + 2)
    sums = [Decimal(0), Decimal(0)]
    term, power = Decimal(1), 0
    while abs(term) > least:
        sums[power % 2] += term if power % 4 < 2 else -term
        power += 1
        term = term * angle / power
    return sums[0], sums[1]


@lru_cache(maxsize=_ROUNDS)
def _ln2(digits: int) -> Decimal:
    return Decimal(2).ln(decimal.Context(prec=digits))


@lru_cache(maxsize=_ROUNDS)
def _pi(digits: int) -> Decimal:
    """Return π by Machin's formula, 16 arctan(1/5) − 4 arctan(1/239), in whole numbers of 10^{−digits−10}."""
    one: int = 10 ** (digits + 10)

    def arctan_of_inverse(x: int) -> int:
        total, power, k, sign = 0, one // x, 0, 1
        while power:
            total += sign * (power // (2 * k + 1))
            power //= x * x
            k, sign = k + 1, -sign
        return total

    with decimal.localcontext(decimal.Context(prec=digits)):
        return Decimal(16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) / one
