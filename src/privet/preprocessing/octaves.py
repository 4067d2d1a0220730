"""Which octaves a column's values are in, by noisy counts of them: the likeliest range, and whether it is sure."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import logsumexp, ndtri

from privet.arrays import IntArray, Vector

OCTAVES = 40
"""Sizes from 2^-40 to 2^40 (1e-12 to 1e12) have octaves of their own; what is smaller is 0, larger is clipped."""
COARSE = 4 * OCTAVES + 1
_LEVELS = 2 * OCTAVES
_BLOCK = 1 << 15  # values whose bits are looked at together
_TOP = (1 << 11) - 1  # the largest exponent
_TOPS = np.ldexp(1.0, np.arange(1 - OCTAVES, OCTAVES + 1))
_WIDTHS = (1, 2, 3, 4, 6, 8, 12)  # of a run of octaves that holds all values of a column but zeros
_POSITIVE = np.array([1.0, 0.0, 0.5, 0.75, 0.25])  # part of the values that is: all, none, or some of both signs
_UNLIKE = 0.7  # logarithm of how much rarer it is that one of both signs is commoner
_TIGHT = 2  # so wide a run, if it holds them all, says where they begin, too
_ZERO = 3.0  # standard deviations from which there are zeros
_SURE = 6.0  # logarithm of how much likelier a range must be than an empty column
_SURER = 8.0  # the same where to be wrong is dear
_HEDGE, _SHY_HEDGE = 0.65, 0.5  # probability with which an end is beyond the true one; where too wide a range is dear
_SHY = 0.05  # and with which it is if nothing is sure, where too wide a range would ruin more than too narrow a one
_STRANGERS = 2.0  # columns that the prior is worth, beside those that are learnt together
_FALSE = 1e-6  # probability that any octave of any column looks as if it stood out by itself


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A range, and whether what was counted says so: else it is what the prior and the other columns suggest."""

    low: float
    high: float
    sure: bool


def octave_counts(values: Vector, *, hull: tuple[float, float] | None = None) -> IntArray:
    """Each value in one bin: ±(2^k, 2^(k+1)], from the largest negative ones up, and zero; NaN in none.

    With a `hull`, values are first kept to it and taken from its point next to 0, in units of the distance to its far
    end (`unit_of`).

    Read off the bits of a float64, of which the first 12 are sign and exponent: one less in the last place moves 2^k,
    and no other number, to the octave below; infinity, to the largest. NaN has the largest exponent still, which zeros
    get as well: they are counted by themselves.
    """
    fields, zeros = np.zeros(1 << 12, dtype=np.int64), 0
    for first in range(0, len(values), _BLOCK):
        bits = _in_units(values[first : first + _BLOCK], hull).view(np.uint64)
        bits -= np.uint64(1)
        bits >>= np.uint64(52)
        found = np.bincount(bits.view(np.int64), minlength=1 << 12)
        if found[_TOP] or found[-1]:
            zeros += int(np.count_nonzero(_in_units(values[first : first + _BLOCK], hull) == 0))
        fields += found
    fields[[_TOP, -1]] = 0
    fields[0] += zeros
    place = np.clip(np.arange(1 << 11) - 1022, -OCTAVES, OCTAVES) + OCTAVES
    counts = np.zeros(COARSE, dtype=np.int64)
    for side, sign in ((fields[: 1 << 11], 1), (fields[1 << 11 :], -1)):
        np.add.at(counts, 2 * OCTAVES + sign * place, side)
    return counts


def _in_units(values: Vector, hull: tuple[float, float] | None) -> Vector:
    """A copy of values in units of a declared range."""
    block = np.array(values, dtype=np.float64)
    if hull is not None:
        origin, size = unit_of(hull)
        np.clip(block, *hull, out=block)
        block -= origin
        with np.errstate(all="ignore"):
            block /= size
    return block


def unit_of(hull: tuple[float, float]) -> tuple[float, float]:
    """What is taken for 0 and for 1 in the octaves of a declared range: its point next to 0, and the far end."""
    low, high = hull
    origin = min(max(0.0, low), high)
    return origin, max(high - origin, origin - low) or 1.0


def likely_ranges(
    noisy: Vector, *, stddev: float, records: float, inside: list[bool], shy: bool = False
) -> list[Guess]:
    """A range for each column from its noisy octaves; post-processing.

    A column is taken to have its values, but for zeros, evenly in a run of octaves of one sign, or of both, of which
    one may be three times as common. Of all such runs the likelihood is known, as the noise is; a prior prefers
    moderate sizes, sizes that other columns have, and full columns. Each end is beyond the true one with probability
    `_HEDGE`, or `_SHY_HEDGE` with `shy`, and if nothing is sure then, with `_SHY` by the prior alone. Where `inside`
    says so, values are parts of a declared range, none is larger than 1, and the prior is that they fill it.
    """
    evidence = [_evidence(counts, stddev, records) for counts in noisy]
    marginal = np.array([logsumexp(each, axis=(0, 1, 2)) for each, _ in evidence])
    kind, priors = np.array(inside), np.empty_like(marginal)
    for which, prior in ((kind, _declared_prior()), (~kind, _moderate_prior())):
        priors[which] = prior
        for _ in range(2 if which.any() else 0):  # expectation, maximisation: how common a size is among the columns
            odds = marginal[which] + priors[which]
            with np.errstate(divide="ignore"):
                shares = np.exp(odds - logsumexp(odds, axis=1, keepdims=True))
                others = np.maximum(shares.sum(axis=0) - shares, 0.0)  # a column must not vouch for itself
                priors[which] = np.log((_STRANGERS * np.exp(prior) + others) / (_STRANGERS + which.sum() - 1))
    return [_guess(each, zeros, prior, shy) for (each, zeros), prior in zip(evidence, priors, strict=True)]


def sure_octaves(counts: Vector, *, stddev: float, least: float, columns: int) -> tuple[float, float] | None:
    """From the lowest to the highest octave that holds clearly more than `least` values, by itself; None if none."""
    beyond = -float(ndtri(_FALSE / (COARSE * columns))) * stddev
    found = np.flatnonzero(counts > least + beyond)
    if not found.size:
        return None
    ends = [_ends(int(place)) for place in found]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _ends(place: int) -> tuple[float, float]:
    size = abs(place - 2 * OCTAVES)
    if size == 0:
        return 0.0, 0.0
    near, far = math.ldexp(1.0, size - OCTAVES - 1), math.ldexp(1.0, size - OCTAVES)
    return (near, far) if place > 2 * OCTAVES else (-far, -near)


def _evidence(counts: Vector, stddev: float, records: float) -> tuple[Vector, bool]:
    """Log-likelihood of each hypothesis against an empty column, (sign, width, halvings, top); and if there are zeros.

    With a values evenly in k octaves, a part p of them above 0 and q = 1 − p below, whose noisy counts add to S and T,
    it is (2a(pS + qT) − a²(p² + q²))/(2kσ²).
    """
    middle = 2 * OCTAVES
    zeros = bool(counts[middle] > _ZERO * stddev)
    most = max(records - (counts[middle] if zeros else 0.0), stddev)
    positive, negative = counts[middle + 1 :], counts[middle - 1 :: -1]
    totals, parts = np.zeros((2, _LEVELS + 1)), np.stack([_POSITIVE, 1 - _POSITIVE], axis=1)
    np.cumsum([positive, negative], axis=1, out=totals[:, 1:])
    totals = parts @ totals
    ends = np.arange(1, _LEVELS + 1)
    starts = np.maximum(ends - np.array(_WIDTHS)[:, None], 0)
    held = (totals[:, None, 1:] - totals[:, starts])[:, :, None, :]
    bins = (ends - starts)[None, :, None, :]
    squares = np.square(parts).sum(axis=1)[:, None, None, None]
    halvings = np.arange(max(1, math.ceil(math.log2(max(most / (3 * stddev), 1.0)))) + 1.0)[:, None]
    amount = most * np.exp2(-halvings)
    found = (2 * amount * held - amount**2 * squares) / (2 * bins * stddev**2) - math.log(2) * halvings
    found -= 0.7 * np.log(_WIDTHS)[:, None, None]
    found[3:] -= _UNLIKE
    found[1] -= 1.0  # columns of negative numbers alone are rare
    if zeros:  # and ones beside zeros are common
        found[0, 0, :, OCTAVES - 1] += 4.0
    return found, zeros


def _guess(found: Vector, zeros: bool, prior: Vector, shy: bool) -> Guess:
    odds = found + prior
    chances = np.exp(odds - odds.max())
    chances /= chances.sum()
    far = chances.sum(axis=(1, 2))
    near = chances[:, :_TIGHT, 0] * (not zeros)
    sure = bool(found.max() > (_SURER if shy else _SURE))
    if shy and not sure:  # about 0, and as small as few are: what was counted is noise
        size = float(_TOPS[np.searchsorted(np.cumsum(np.exp(_moderate_prior())), _SHY)])
        return Guess(low=-size, high=size, sure=False)
    both = far[2:].sum(axis=0)
    hedge = _SHY_HEDGE if shy else _HEDGE
    high = _hedged(far[0] + both, near[1], far[1], hedge)
    return Guess(low=-_hedged(far[1] + both, near[0], far[0], hedge), high=high, sure=sure)


def _hedged(own: Vector, near: Vector, other: Vector, hedge: float) -> float:
    """The upper end: by the chances that it is each top; else, in runs of the other sign, where they begin, or 0."""
    ends = np.concatenate([_TOPS, *(-_TOPS / 2.0**width for width in _WIDTHS[:_TIGHT]), [0.0]])
    chances = np.concatenate([own, *near, [other.sum() - near.sum()]])
    order = np.argsort(ends)
    place = int(np.searchsorted(np.cumsum(chances[order]), hedge))
    return float(ends[order][min(place, order.size - 1)])


@cache
def _moderate_prior() -> Vector:
    """Logarithm of how common sizes are: most are from 1e-3 to 1e6, around 10."""
    power = np.log2(_TOPS)
    odds = -0.15 * np.abs(power - 3) - 0.3 * np.maximum(np.abs(power - 5) - 15, 0)
    return np.asarray(odds - logsumexp(odds))


@cache
def _declared_prior() -> Vector:
    """Of parts of a declared range: the whole of it is likeliest, more than that impossible."""
    power = np.log2(_TOPS)
    odds = np.where(power > 0, -np.inf, np.where(power == 0, 1.0, 0.05 * power))
    return np.asarray(odds - logsumexp(odds))
