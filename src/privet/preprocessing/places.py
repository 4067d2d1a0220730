"""Where most values of a column are, by a few noisy counts of equal bins: whichever shape is likeliest."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from privet.arrays import Vector

_HELD = (1.0, 0.8, 0.6)  # parts of the values that a shape may have, the others being anywhere
_MORE = 3.0  # standard deviations by which counts add up to more than was guessed
_SEEN = 2.0  # logarithm of how much likelier a shape must be than empty bins
_NARROW = 0.7  # how much rarer shapes are for each e times as many bins
# Half a range: of an even run, in halves of it; of one that falls off, in lengths of that; of two apart, in halves.
_EVEN, _FALLING, _APART = 1.5, 2.5, 2.0
_LENGTHS = (1.0, 1.5, 2.5, 4.0)  # of bins over which a shape falls off
_RARE, _RARER = 1.0, 2.0  # logarithm of how much rarer shapes are that fall off, and those that rise or are apart
_WIDTHS, _SHARES = (1, 2, 3, 4), (0.3, 0.5, 0.7)  # of two runs apart, and of values in the lower one


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shapes:
    """Shapes by their share in each bin, one row each, the range that suits each, in bins, and its prior; public."""

    shares: Vector
    middles: Vector
    halves: Vector
    odds: Vector


def likely_place(
    counts: Vector, edges: Vector, *, stddev: float, records: float, sure: bool = False
) -> tuple[float, float] | None:
    """The range that suits where most values are, by noisy counts of equal bins; None if they say nothing.

    If it is `sure` that most values are in these bins, they always say something.

    A column's values are taken to be even in a run of bins, or to fall off from some bin to one side, or to be in two
    runs apart; all of them or a part. With n of N records in it, a shape with shares s has the log-likelihood
    (2n⟨s, counts⟩ − n²|s|²)/(2σ²) against empty bins, as the noise is known; N is `records`, which may be a guess, or
    more if the counts say so. The middle and the half of the range are the means of what suits each shape, by how
    likely each is. Post-processing.

    Examples
    --------
    >>> counts = np.array([0.0, 2.0, 250.0, 240.0, 9.0, 1.0, 0.0, 3.0])
    >>> low, high = likely_place(counts, np.linspace(0.0, 8.0, 9), stddev=20.0, records=500)
    >>> 1 < low < 2 and 4 < high < 6
    True
    """
    shapes, blur = shapes_of(len(counts)), stddev * math.sqrt(len(counts))
    held = max(records, float(counts.sum()) - _MORE * blur) * np.array(_HELD)[:, None]
    found = 2 * held * (shapes.shares @ counts) - held**2 * np.square(shapes.shares).sum(axis=1)
    odds = found / (2 * stddev**2) + shapes.odds
    if odds.max() < _SEEN and not sure:
        return None
    chances = np.exp(odds - odds.max()).sum(axis=0)
    chances /= chances.sum()
    middle, half = float(chances @ shapes.middles), float(chances @ shapes.halves)
    size = (float(edges[-1]) - float(edges[0])) / len(counts)
    return float(edges[0]) + size * (middle - half), float(edges[0]) + size * (middle + half)


@cache
def shapes_of(bins: int) -> Shapes:
    """All shapes in so many bins."""
    falling = [_falling(bins, length) for length in _LENGTHS]
    rising = [(shares[:, ::-1], bins - middles, halves, odds - _RARE) for shares, middles, halves, odds in falling]
    found = [_even(bins), *falling, *rising]
    found += [_apart(bins, width, share) for width in _WIDTHS if 2 * width < bins for share in _SHARES]
    shares, middles, halves, odds = (np.concatenate(each) for each in zip(*found, strict=True))
    return Shapes(shares=shares, middles=middles, halves=halves, odds=odds)


def _even(bins: int) -> tuple[Vector, Vector, Vector, Vector]:
    starts, stops = np.triu_indices(bins + 1, 1)
    wide, places = stops - starts, np.arange(bins)
    shares = ((places >= starts[:, None]) & (places < stops[:, None])) / wide[:, None]
    return shares, (starts + stops) / 2, _EVEN * wide / 2, -np.log(bins + 1.0 - wide) - _NARROW * np.log(wide)


def _falling(bins: int, length: float) -> tuple[Vector, Vector, Vector, Vector]:
    first = np.arange(bins // 2, dtype=np.float64)
    away = np.arange(bins) - first[:, None]
    shares = np.where(away >= 0, np.exp(-np.maximum(away, 0) / length), 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    prior = -math.log(len(first)) - _NARROW * math.log(2 * length) - _RARE
    return shares, first + length, np.full(len(first), _FALLING * length), np.full(len(first), prior)


def _apart(bins: int, width: int, share: float) -> tuple[Vector, Vector, Vector, Vector]:
    starts, places = np.arange(bins - width + 1), np.arange(bins)
    run = ((places >= starts[:, None]) & (places < starts[:, None] + width)) / width
    lows, highs = np.triu_indices(len(starts), width + 1)
    prior = -math.log(len(lows)) - _NARROW * math.log(2 * width) - _RARER
    low, high = lows.astype(np.float64), highs.astype(np.float64) + width
    shares = share * run[lows] + (1 - share) * run[highs]
    return shares, (low + high) / 2, _APART * (high - low) / 2, np.full(len(lows), prior)
