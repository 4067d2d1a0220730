"""Ranges of columns of any scale, learnt privately: octaves first, then 32 equal bins inside."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet._checks import between
from privet.arrays import IntArray, Vector
from privet.data.cells import Numbers
from privet.data.tables import read
from privet.errors import InvalidParameter
from privet.plan import Histograms, Meter, Plan, Release
from privet.privacy import Neighbours
from privet.randomness import Random, why_invalid

OCTAVES = 40
"""Sizes from 2^-40 to 2^40 (1e-12 to 1e12) have octaves of their own; what is smaller is 0, larger is clipped."""
_COARSE = 4 * OCTAVES + 1
_FINE = 32
CERTAIN = 4.5
"""An octave is believed at so many standard deviations: noise makes one of 161 look so once in 1,800."""
_BELIEVED = 2.0  # a tail of the fine bins, likewise, beyond `tail`


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntRanges:
    """Ranges that may be shown, and the plan of the releases that they come from; its event is for its relation alone.

    `invalidated` is True if the noise came from a fixed seed: then nothing is promised.
    """

    ranges: dict[str, tuple[float, float]]
    plan: Plan
    invalidated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeFinder:
    """How ranges of columns will be learnt: two histograms a column, octaves and then 32 bins of what was found.

    Examples
    --------
    >>> [release.name for release in RangeFinder(columns=("age", "income")).releases(noise_multiplier=20.0)]
    ['ranges: octaves', 'ranges: bins']
    """

    columns: tuple[str, ...]
    log: frozenset[str] = frozenset()
    tail: float = 0.005
    what: str = "ranges"

    def __post_init__(self) -> None:
        chosen_columns(self.columns)
        if not self.log <= set(self.columns) or not 0 <= self.tail < 0.5:
            raise InvalidParameter(
                f"Expected `log` to name some of the columns and tail in [0, 0.5), got log={sorted(self.log)} and "
                f"tail={self.tail!r}: no range follows. Use tail=0.005."
            )

    def releases(self, *, noise_multiplier: float) -> tuple[Release, Release]:
        """The two releases, each with half of what one Gaussian release of `noise_multiplier` costs."""
        half = math.nextafter(check_noise(noise_multiplier) * math.sqrt(2.0), math.inf)
        bound = Histograms(columns=len(self.columns))

        def one(name: str, of: str, bins: int) -> Release:
            return Release(name=name, of=of, bound=bound, noise_multiplier=half, size=bins * len(self.columns))

        return (
            one(f"{self.what}: octaves", "values by their power of two", _COARSE),
            one(f"{self.what}: bins", "values by their place in the octaves found", _FINE),
        )

    def run(self, values: Sequence[Vector], meter: Meter) -> dict[str, tuple[float, float]]:
        """Learn the range of each column from its values, NaN where there is none; private in, public out."""
        octaves, bins = f"{self.what}: octaves", f"{self.what}: bins"
        meter.open(octaves, count=len(values[0]))
        coarse = meter.noisy_counts(
            octaves, np.stack([np.bincount(_octave(x), minlength=_COARSE)[:_COARSE] for x in values])
        )
        found = [
            _span(counts, meter.noise_stddev(octaves), floor=0.0 if name in self.log else -math.inf)
            for name, counts in zip(self.columns, coarse, strict=True)
        ]
        edges = [_edges(*span, log=name in self.log) for name, span in zip(self.columns, found, strict=True)]
        meter.open(bins, count=len(values[0]))
        fine = meter.noisy_counts(bins, np.stack([_histogram(x, e) for x, e in zip(values, edges, strict=True)]))
        stddev = meter.noise_stddev(bins)
        return {
            name: _trimmed(counts, e, stddev, self.tail)
            for name, counts, e in zip(self.columns, fine, edges, strict=True)
        }


def private_ranges(
    table: Any,
    *,
    columns: Sequence[str],
    noise_multiplier: float,
    neighbours: Neighbours = "replace_one",
    log: Collection[str] = (),
    tail: float = 0.005,
    rows: IntArray | None = None,
    random: Random | None = None,
) -> LearntRanges:
    """A range for each column of numbers that leaves out about `tail` of the records at either end, if noise allows.

    First one noisy histogram a column over the octaves ±[2^k, 2^(k+1)), which finds any scale from 1e-12 to 1e12; then
    one over 32 equal bins of what was found (equal after log1p for columns in `log`), from whose noisy counts the ends
    are read: bins are dropped from either side as long as their sum is not clearly above `tail` of all. Each
    histogram has half of the budget.

    Promise: all of it together is one Gaussian release of `noise_multiplier`. The event is for `neighbours` alone.
    Theorem: docs/proofs/preprocessing.md, section 2. Bad, missing and infinite values are in no bin.
    Edges: if no octave stands out of the noise, the one with the largest noisy count is taken.

    Parameters
    ----------
    table : any table with these columns; private
    columns : names of columns of numbers
    noise_multiplier : noise stddev ÷ clip of the whole release
    log : those of the columns that will be scaled after log1p; their range starts at 0 or above
    tail : share of records that may be clipped at either end, in [0, 0.5)
    rows : which rows are the records, e.g. one of each person, as `one_row_each` draws them; all by default; private
    random : the system's, unless for a test

    Examples
    --------
    >>> table = {"height": [1.5 + i / 10_000 for i in range(5_000)]}
    >>> learnt = private_ranges(table, columns=["height"], noise_multiplier=20.0)
    >>> low, high = learnt.ranges["height"]
    >>> 1.0 <= low < 1.7 and 1.8 < high <= 2.1, learnt.plan.names
    (True, ('ranges: octaves', 'ranges: bins'))
    """
    names = chosen_columns(columns)
    finder = RangeFinder(columns=tuple(names), log=frozenset(log), tail=tail)
    plan = Plan(releases=finder.releases(noise_multiplier=noise_multiplier), neighbours=neighbours)
    meter = Meter(plan, random=random)
    read_columns = read(table, {name: Numbers() for name in names})
    values = [read_columns[name] if rows is None else read_columns[name][rows] for name in names]
    ranges = finder.run(values, meter)
    meter.finish()
    return LearntRanges(ranges=ranges, plan=plan, invalidated=bool(why_invalid(meter.random)))


def check_noise(noise_multiplier: float) -> float:
    """Return `noise_multiplier` if a histogram can carry such noise, else say why not."""
    because, use = "less hides nobody, more leaves nothing to learn", "Calibrate it to a budget, as learn_schema does."
    return between(
        "noise_multiplier", noise_multiplier, 2.0**-10, 2.0**20, closed=(True, True), because=because, use=use
    )


def chosen_columns(columns: Sequence[str]) -> list[str]:
    """The names as a list; refuses none, a bare text, and one named twice."""
    names = [] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names):
        raise InvalidParameter(
            f"Expected columns to be a list of distinct names, got {columns!r}: each column is one histogram, and the "
            "noise is for that many. List each name once."
        )
    return names


def _octave(values: Vector) -> IntArray:
    """0 … 4·OCTAVES: negative octaves from the largest down, zero in the middle, positive ones; _COARSE for NaN."""
    _, exponents = np.frexp(values)
    size = np.clip(exponents, 1 - OCTAVES, OCTAVES) + OCTAVES
    size = np.where(np.abs(values) < 2.0**-OCTAVES, 0, size)
    place = np.where(values < 0, -size, size) + 2 * OCTAVES
    return np.where(np.isnan(values), _COARSE, place).astype(np.int64)


def _ends(octave: int) -> tuple[float, float]:
    size = abs(octave - 2 * OCTAVES)
    if size == 0:
        return 0.0, 0.0
    near, far = 2.0 ** (size - OCTAVES - 1), 2.0 ** (size - OCTAVES)
    return (near, far) if octave > 2 * OCTAVES else (-far, -near)


def _span(counts: Vector, stddev: float, floor: float) -> tuple[float, float]:
    """From the first to the last octave that stands out of the noise; post-processing."""
    believed = np.flatnonzero(counts > CERTAIN * stddev)
    if not believed.size:
        believed = np.array([np.argmax(counts)])
    low, high = max(_ends(int(believed[0]))[0], floor), max(_ends(int(believed[-1]))[1], floor)
    return (low, high) if low < high else (low, low + 2.0**-OCTAVES if abs(low) < 1 else low * 2)


def _edges(low: float, high: float, *, log: bool) -> Vector:
    edges = np.linspace(math.log1p(low), math.log1p(high), _FINE + 1) if log else np.linspace(low, high, _FINE + 1)
    edges = np.expm1(edges) if log else edges
    edges[0], edges[-1] = low, high
    return edges


def _histogram(values: Vector, edges: Vector) -> IntArray:
    """Each value in one of the bins, those outside in the outermost; NaN in none."""
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, _FINE - 1)
    return np.bincount(place[~np.isnan(values)], minlength=_FINE)


def _trimmed(counts: Vector, edges: Vector, stddev: float, tail: float) -> tuple[float, float]:
    """Drop bins from either end while the records in them are not clearly more than `tail` of all; post-processing."""
    allowed = tail * max(float(counts.sum()), 0.0)

    def dropped(ordered: Vector) -> int:
        sums = np.cumsum(ordered)
        clear = sums > allowed + _BELIEVED * stddev * np.sqrt(np.arange(1, _FINE + 1))
        return int(np.argmax(clear)) if clear.any() else 0

    first, last = dropped(counts), _FINE - dropped(counts[::-1])
    if first >= last:
        first, last = 0, _FINE
    return float(edges[first]), float(edges[last])
