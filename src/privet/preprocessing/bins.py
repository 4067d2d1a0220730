"""Equal bins of a range: which value is in which, and what noisy counts of them say of its ends."""

import math

import numpy as np
from numpy.typing import NDArray

from privet.arrays import IntArray, Vector

_BELIEVED = 1.0  # standard deviations beyond `tail` up to which a tail of the bins is dropped
_TAIL_SEEN = 0.02  # of all records: where noise hides more, one more bin is kept at either end
_BLOCK = 1 << 15  # values that are counted together
_PAIRED = 64  # places, of which pairs are few enough to count


def edges_of(low: float, high: float, bins: int, *, log: bool) -> Vector:
    """The edges of equal bins, equal after log1p if so; public."""
    edges = np.linspace(math.log1p(low), math.log1p(high), bins + 1) if log else np.linspace(low, high, bins + 1)
    edges = np.expm1(edges) if log else edges
    edges[0], edges[-1] = low, high
    return edges


def bin_counts(values: Vector, edges: Vector, *, log: bool = False) -> IntArray:
    """Each value in one of the bins, those outside in the outermost; NaN in none."""
    bins = len(edges) - 1
    counts = np.zeros(bins + 2, dtype=np.int64)
    low, high = (math.log1p(edges[0]), math.log1p(edges[-1])) if log else (edges[0], edges[-1])
    with np.errstate(all="ignore"):  # what is beyond all floats is outside
        for first in range(0, len(values), _BLOCK):
            block = values[first : first + _BLOCK]
            place = (np.log1p(np.maximum(block, edges[0])) if log else block) - low
            place *= bins / (high - low)
            np.clip(np.ceil(place, out=place), 1, bins, out=place)
            np.copyto(place, bins + 1, where=np.isnan(place))
            counts += _counts(place.astype(np.int32), bins + 2)
    return counts[1:-1]


def _counts(places: NDArray[np.int32], size: int) -> IntArray:
    """How many are at each of so many places: by twos, of which NumPy counts half as many."""
    half = len(places) // 2
    if len(places) % 2 or size > _PAIRED:
        return np.bincount(places, minlength=size)
    pairs = np.bincount(places[:half] * np.int32(size) + places[half:], minlength=size * size).reshape(size, size)
    return np.asarray(pairs.sum(axis=0) + pairs.sum(axis=1))


def trimmed(counts: Vector, edges: Vector, stddev: float, tail: float, records: float) -> tuple[float, float]:
    """Drop as many bins from either end as may hold no more than `tail` of all records; post-processing."""
    bins, total = len(counts), min(max(float(counts.sum()), stddev), records)

    def dropped(ordered: Vector) -> int:
        blur, held = stddev * np.sqrt(np.arange(1, bins + 1)), np.cumsum(ordered)
        few = held <= tail * total + _BELIEVED * blur
        places = np.flatnonzero(few[: np.argmax(np.append(held, np.inf) > total / 2)])
        first = int(places[-1]) + 1 if places.size else 0
        return first - (first > 0 and blur[first - 1] > _TAIL_SEEN * total)

    first, last = dropped(counts), bins - dropped(counts[::-1])
    if first >= last:
        first, last = 0, bins
    return float(edges[first]), float(edges[last])
