"""Ranges of columns of any scale, learnt privately: octaves first, then equal bins inside where there are enough."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from privet._checks import between
from privet.arrays import IntArray, Vector
from privet.data.cells import Numbers
from privet.data.elsewhere import tallies
from privet.data.tables import read
from privet.errors import InvalidParameter
from privet.plan import Histograms, Meter, Plan, Release
from privet.preprocessing.bins import bin_counts, edges_of, trimmed
from privet.preprocessing.octaves import COARSE, OCTAVES, likely_ranges, octave_counts, sure_octaves, unit_of
from privet.preprocessing.places import likely_place
from privet.preprocessing.tails import Root, root_for
from privet.privacy import Neighbours
from privet.randomness import Random, why_invalid

_OCTAVES_PART = 0.7  # of what is spent, where bins say where most values are: those of wrong octaves say nothing
_ONE_SIDED = 0.25  # part of a declared range below which one that ends at 0 is used, whatever is asked for
_FEW, _MANY = 40.0, 200.0  # records a standard deviation from which bins are worth having once, and twice


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntRanges:
    """Ranges that may be shown, and the plan of the releases that they come from; its event is for its relation alone.

    `invalidated` is True if the noise came from a fixed seed: then nothing is promised.
    """

    ranges: dict[str, tuple[float, float]]
    plan: Plan
    invalidated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundRanges:
    """A range for each column; `unsure` names those whose counts did not stand out of the noise. Public.

    `roots` are maps of columns with long tails, if those were looked for.
    """

    ranges: dict[str, tuple[float, float]]
    unsure: tuple[str, ...]
    roots: Mapping[str, Root] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeFinder:
    """How ranges of columns will be learnt: a histogram of octaves, then `rounds` of equal bins of what was found.

    `hulls` are declared ranges, one a column (None: there is none). What is learnt stays inside, and is used only where
    it is so much `narrower`; else the declared one is. With `shy`, a range that does not stand out of the noise is as
    small as it may well be: of a target, one that is far too wide makes predictions absurd, one too narrow near 0. With
    `tails`, long ones are looked for in what the octaves say anyway. `beyond` widths are added at either end of what
    was found: where columns nearly agree, ends that cut them off at different values hide what they differ by.
    `placed` is for few records: one round of bins then says where most values are, and with how much room about them,
    also where that is not `narrower` (`likely_place`).

    Examples
    --------
    >>> [release.name for release in RangeFinder(columns=("age", "income")).releases(noise_multiplier=20.0)]
    ['ranges: octaves', 'ranges: bins']
    """

    columns: tuple[str, ...]
    log: frozenset[str] = frozenset()
    tail: float = 0.005
    what: str = "ranges"
    hulls: tuple[tuple[float, float] | None, ...] = ()
    rounds: int = 1
    bins: int = 32
    shy: bool = False
    tails: bool = False
    beyond: float = 0.0
    narrower: float = 0.25
    placed: bool = False

    def __post_init__(self) -> None:
        chosen_columns(self.columns)
        alone = not self.placed or (self.rounds == 1 and not self.log)  # shapes are of one round of equal bins
        if len(self.hulls) not in (0, len(self.columns)) or self.rounds < 0 or self.bins < 2 or not alone:
            raise InvalidParameter(
                "Expected one declared range or None a column, at least 2 bins, rounds=1 and no log if placed, got "
                f"{len(self.hulls)}, {self.bins!r}, {self.rounds!r}: no range follows. Leave them out."
            )
        if not self.log <= set(self.columns) or not 0 <= self.tail < 0.5:
            raise InvalidParameter(
                f"Expected `log` to name some of the columns and tail in [0, 0.5), got log={sorted(self.log)} and "
                f"tail={self.tail!r}: no range follows. Use tail=0.005."
            )

    def sized(self, seen: float) -> "RangeFinder":
        """The same with as many rounds and bins as pay, if all records are `seen` standard deviations of one release.

        Below 40 the octaves alone are surer than octaves and bins for half of the budget each; a second round is for
        values that lie close together far from 0. Chosen on made-up columns of fifteen kinds. Inside declared ranges
        less is cut off the more can be seen.
        """
        rounds = 0 if seen < _FEW else 1 if seen < _MANY else 2
        tail = min(self.tail, 2 / seen) if any(self.hulls) and seen > 4 else self.tail
        return replace(self, rounds=rounds, bins=16 if seen < 2 * _FEW else 32, tail=tail)

    def releases(self, *, noise_multiplier: float) -> tuple[Release, ...]:
        """All releases, which together cost what one Gaussian release of `noise_multiplier` does."""
        first = _OCTAVES_PART if self.placed else 1 / (1 + self.rounds)
        whole, parts = check_noise(noise_multiplier), (first, (1 - first) / max(self.rounds, 1))
        each = [whole / math.sqrt(part) * (1 + 2.0**-50) for part in parts if part > 0]
        bound = Histograms(columns=len(self.columns))
        of, size = "values by their power of two", COARSE * len(self.columns)
        octaves = Release(name=f"{self.what}: octaves", of=of, bound=bound, noise_multiplier=each[0], size=size)
        if not self.rounds:
            return (octaves,)
        of, size = "values by their place in the octaves found", self.bins * len(self.columns)
        named = replace(octaves, name=f"{self.what}: bins", of=of, size=size)
        return octaves, replace(named, noise_multiplier=each[1], times=self.rounds)

    def run(self, values: Sequence[Vector], meter: Meter, *, rate: float = 1.0) -> dict[str, tuple[float, float]]:
        """Learn the range of each column from its values, NaN where there is none; private in, public out."""
        return self.learn(values, meter, rate=rate).ranges

    def learn(self, values: Sequence[Vector], meter: Meter, *, rate: float = 1.0) -> FoundRanges:
        """As `run`, and which of the ranges are hardly more than guesses.

        `values` may be of a sample in which each record is with probability `rate`; public, and not priced.
        """
        octaves, bins = f"{self.what}: octaves", f"{self.what}: bins"
        hulls = self.hulls or (None,) * len(self.columns)
        units = [(0.0, 1.0) if hull is None else unit_of(hull) for hull in hulls]
        meter.open(octaves, count=len(values[0]))
        coarse = tallies([partial(octave_counts, hull=hull) for hull in hulls], values)
        noisy = meter.noisy_counts(octaves, np.stack(coarse))
        stddev = meter.noise_stddev(octaves)
        records = _records(meter, len(values[0]), noisy, rate)
        declared = [hull is not None for hull in hulls]
        guesses = likely_ranges(noisy, stddev=stddev, records=records, inside=declared, shy=self.shy)
        roots = self._roots(noisy, units, stddev, records) if self.tails else {}
        found = []
        for name, guess, counts, (origin, size), hull in zip(self.columns, guesses, noisy, units, hulls, strict=True):
            low, high = guess.low, guess.high
            if self.rounds and not self.placed:
                known = sure_octaves(counts, stddev=stddev, least=self.tail * records, columns=len(self.columns))
                low, high = _with_margin(low, high, known)
            found.append(_proper(origin + size * low, origin + size * high, hull, log=name in self.log))
        places: list[tuple[float, float] | None] = [None] * len(found)
        for _ in range(self.rounds):
            meter.open(bins, count=len(values[0]))
            edges = [
                edges_of(*ends, self.bins, log=name in self.log) for name, ends in zip(self.columns, found, strict=True)
            ]
            counted = [
                partial(bin_counts, edges=e, log=name in self.log) for name, e in zip(self.columns, edges, strict=True)
            ]
            fine = meter.noisy_counts(bins, np.stack(tallies(counted, values)))
            spread = meter.noise_stddev(bins)
            if self.placed:
                told = zip(fine, edges, [guess.sure and any(self.hulls) for guess in guesses], strict=True)
                places = [likely_place(c, e, stddev=spread, records=records, sure=sure) for c, e, sure in told]
            else:
                found = [trimmed(counts, e, spread, self.tail, records) for counts, e in zip(fine, edges, strict=True)]
        sure = [g.sure or None not in (hull, place) for g, hull, place in zip(guesses, hulls, places, strict=True)]
        chosen = zip(self.columns, found, hulls, places, strict=True)
        ranges = [
            _inside(self._widened(ends, name in self.log), ends, hull, self.narrower)
            if place is None
            else _proper(*place, hull, log=False)
            for name, ends, hull, place in chosen
        ]
        return FoundRanges(
            ranges=dict(zip(self.columns, ranges, strict=True)),
            unsure=tuple(name for name, known in zip(self.columns, sure, strict=True) if not known),
            roots=roots,
        )

    def _widened(self, ends: tuple[float, float], log: bool) -> tuple[float, float]:
        """What was found with what is added; post-processing."""
        more = self.beyond * (ends[1] - ends[0])
        return max(ends[0] - more, 0.0) if log else ends[0] - more, ends[1] + more

    def _roots(self, noisy: Vector, units: list[tuple[float, float]], stddev: float, records: float) -> dict[str, Root]:
        """Maps of columns with long tails from 0, by their octaves; post-processing."""
        found = {}
        for name, counts, (origin, size) in zip(self.columns, noisy, units, strict=True):
            unit = root_for(counts, stddev=stddev, records=records, columns=len(self.columns))
            if unit is not None and origin == 0 and name not in self.log:
                found[name] = Root(unit=size * unit)
        return found


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

    First one noisy histogram a column over the octaves ±(2^k, 2^(k+1)], whose likeliest run is found at any scale from
    1e-12 to 1e12; then one over 32 equal bins of that and its neighbours (equal after log1p for columns in `log`), from
    whose noisy counts the ends are read: bins are dropped from either side as long as their sum is not clearly above
    `tail` of all. Each histogram has half of the budget.

    Promise: all of it together is one Gaussian release of `noise_multiplier`. The event is for `neighbours` alone.
    Theorem: docs/proofs/preprocessing.md, section 2. Bad, missing and infinite values are in no bin.
    Edges: if nothing stands out of the noise, a range is guessed from the other columns and common sizes.

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
    >>> learnt = private_ranges(table, columns=["height"], noise_multiplier=2.0)
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


def _records(meter: Meter, rows: int, noisy: Vector, rate: float) -> float:
    """How many records there are, as far as it is public; else by the column with the largest noisy total."""
    if meter.plan.records is not None:
        return meter.plan.records * rate
    return float(rows if meter.plan.neighbours != "add_remove" else max(noisy.sum(axis=1).max(), 1.0))


def _with_margin(low: float, high: float, known: tuple[float, float] | None) -> tuple[float, float]:
    """One octave more on either side, and those that stand out by themselves."""
    ends = (low * 2 if low < 0 else low / 2, high * 2 if high > 0 else high / 2)
    return ends if known is None else (min(ends[0], known[0]), max(ends[1], known[1]))


def _proper(low: float, high: float, hull: tuple[float, float] | None, *, log: bool) -> tuple[float, float]:
    """A range that is one, inside the declared one, and from 0 upwards if it is for log1p."""
    least, most = hull or (0.0 if log else -math.inf, math.inf)
    low, high = max(low, least), min(max(high, least), most)
    if low < high:
        return low, high
    return hull or (low, low + max(abs(low), 2.0**-OCTAVES))


def _inside(
    wide: tuple[float, float], ends: tuple[float, float], hull: tuple[float, float] | None, part: float
) -> tuple[float, float]:
    """What was learnt, widened, if nothing was declared or it is less than that part of it; else that.

    Of numbers of both signs, those of one may be too few to stand out: that one end is 0 must save more.
    """
    if hull is None:
        return wide
    one_sided = hull[0] < 0 < hull[1] and not ends[0] < 0 < ends[1]
    most = (min(part, _ONE_SIDED) if one_sided else part) * (hull[1] - hull[0])
    return (max(wide[0], hull[0]), min(wide[1], hull[1])) if ends[1] - ends[0] < most else hull
