"""The mean of independent log-normal numbers: a law above its own in the convex order, and a law below.

docs/proofs/allocation.md, section 3.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr

from privet.accounting.pairs.floating_below import added_below, raised_below, under
from privet.accounting.pairs.floating_law import FloatingLaw, added
from privet.accounting.pairs.pair import Reals

_DROPPED = 1e-22  # what one trim of the top may cost, in probability
_BOTTOM, _TOP = 9.3, 9.8  # how many standard deviations of log W the first grid reaches
_PER_SPREAD = 100.0  # grid points in one standard deviation of the mean
_LEAST_BITS, _MOST_BITS = 11, 14  # of the points an octave
_FAR = 1e-60  # what lies beyond 20 standard deviations, where Gauss's rule is less exact
_DENSITY = 1e-12  # relative error of a log-normal mass: docs/proofs/allocation.md, section 3


@dataclass(frozen=True, slots=True)
class MeanLaw:
    """`masses` at `ratios`, in order; and a bound on what is left out above: on its mass, and on mass plus moment."""

    ratios: Reals
    masses: Reals
    dropped: float = 0.0
    dropped_moment: float = 0.0


@lru_cache(maxsize=8)
def mean_above(shift: float, steps: int) -> MeanLaw:
    """A law above that of the mean of `steps` independent exp(shift·Z − shift²/2), but for what is dropped.

    Examples
    --------
    >>> law = mean_above(1.0, 100)
    >>> bool(1 <= law.masses.sum() < 1 + 1e-9), bool(1 <= law.masses @ law.ratios < 1 + 1e-9)
    (True, True)
    """
    bits = _bits(shift, 1)
    one, _, mass, moment = _lognormal(shift, 1 << bits)
    law, count, dropped, dropped_moment = one, 1, steps * mass, moment + steps * mass
    for bit in bin(steps)[3:]:
        for other, count in ((law, 2 * count), (one, 2 * count + 1))[: 1 + int(bit)]:  # noqa: B020  # a chain of sums
            law, mass, moment = added(law, other).lightened(_DROPPED * count, float(steps))
            times = steps // count  # so often does a sum of `count` take part in the whole
            dropped, dropped_moment = dropped + times * mass, dropped_moment + times * (moment / steps + mass)
        while bits < _bits(shift, count):
            law, one, bits = law.refined(), one.refined(), bits + 1
    return _gathered(law, steps, 1.01 * dropped, 1.01 * dropped_moment)


@lru_cache(maxsize=8)
def mean_below(shift: float, steps: int) -> MeanLaw:
    """A law below that of the mean of `steps` independent exp(shift·Z − shift²/2)."""
    one, raised_by, _, _ = _lognormal(shift, 1 << _bits(shift, steps), inside=True)
    law = one = under(FloatingLaw(one.exponent, one.low, one.rows * (1 - 4 * _DENSITY)), raised_by)
    for bit in bin(steps)[3:]:
        law = _lightened_below(added_below(law, law))
        if bit == "1":
            law = _lightened_below(added_below(law, one))
    return _gathered(law, steps)


def _lightened_below(law: FloatingLaw) -> FloatingLaw:
    while len(law.rows) > 1 and law.low.sum() + law.rows[0].sum() < _DROPPED:
        law = raised_below(law, law.exponent + 1)
    filled = np.flatnonzero(law.rows.any(axis=1))
    return FloatingLaw(law.exponent, law.low, law.rows[: int(filled[-1]) + 1 if filled.size else 1])


def _gathered(law: FloatingLaw, steps: int, dropped: float = 0.0, dropped_moment: float = 0.0) -> MeanLaw:
    places, masses = law.points()
    kept = masses > 0
    return MeanLaw(places[kept] / steps, masses[kept], dropped, dropped_moment)


def _bits(shift: float, count: int) -> int:
    """log2 of the points an octave that resolve the spread of a mean of `count`."""
    spread = math.sqrt(math.expm1(min(shift * shift, 100.0)) / count)
    return min(max(math.ceil(math.log2(_PER_SPREAD / spread)), _LEAST_BITS), _MOST_BITS)


def _lognormal(shift: float, half: int, *, inside: bool = False) -> tuple[FloatingLaw, Reals, float, float]:
    """A law above that of exp(shift·Z − shift²/2) but for its top, and the mass and first moment of that.

    In between, by how much its potential is higher on each cell. What lies below the grid is at 0 and the first point;
    with `inside`, it is left out, as is the last cell.
    """
    s = shift
    first = math.floor((-s * s / 2 - s * _BOTTOM) / math.log(2))
    last = math.ceil((s * s / 2 + s * _TOP) / math.log(2))
    grid = FloatingLaw(first - half.bit_length() + 1, np.zeros(half), np.zeros((last - first, half)))
    left = grid.points()[0][half:]
    width = np.repeat(np.ldexp(1.0, grid.exponent + np.arange(last - first)), half)
    to_left, to_right, raised_by = np.zeros((3, len(left)))
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        share = (1 + node) / 2
        x = left + share * width
        z = np.log(x) / s + s / 2
        mass = np.exp(-z * z / 2) / x * (width * (weight / 2 / (s * math.sqrt(2 * math.pi))))
        to_left += (1 - share) * mass
        to_right += share * mass
        raised_by += share * (1 - share) * mass * width  # each is at (x − a)(b − x)/(b − a) at most, and they add up
    if inside:
        to_left[-1], to_right[-1] = 0.0, 0.0
    masses = np.append(to_left, 0.0)
    masses[1:] += to_right
    masses *= 1 + _DENSITY
    bottom, top = math.ldexp(1.0, first), math.ldexp(1.0, last)
    low = np.zeros(half)
    if not inside:
        low[0] = 1.01 * ndtr(math.log(bottom) / s + s / 2)
        masses[0] += 1.01 * ndtr(math.log(bottom) / s - s / 2) / bottom
    above = [float(np.exp(log_ndtr(-math.log(top) / s + side * s / 2))) for side in (-1, 1)]
    end = float(masses[-1])
    law = FloatingLaw(grid.exponent, low, masses[:-1].reshape(-1, half))
    cells = np.append(np.zeros(half), raised_by[:-1]) * (1 + _DENSITY)
    return law, cells, 1.01 * (above[0] + end) + _FAR, 1.01 * (above[1] + end * top) + _FAR
