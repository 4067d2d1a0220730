"""Names of categories, learnt privately: a name is shown if clearly many records hold it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from privet.accounting import Approximate
from privet.arrays import IntArray
from privet.data.cells import Names
from privet.data.tables import read
from privet.errors import InvalidParameter
from privet.plan import Histograms, Meter, Plan, Release
from privet.preprocessing.ranges import check_noise, chosen_columns
from privet.privacy import Neighbours, check_delta
from privet.randomness import Random, why_invalid

_COUNTS, _SHOWN = "counts of names", "names above the threshold"

Held = tuple[list[str], IntArray]
"""Names that records hold, sorted, and how many hold each. Private."""

_ROUNDING = 2.0**-11
"""Half a step of the released lattice, in standard deviations, at most: a count is shown rounded to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntCategories:
    """Names that may be shown, sorted, the threshold they passed, and the plan of the releases that they come from.

    `invalidated` is True if the noise came from a fixed seed: then nothing is promised.
    """

    values: dict[str, tuple[str, ...]]
    threshold: float
    plan: Plan
    invalidated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class NameFinder:
    """How names of categories will be learnt: noisy counts of all, and a threshold that a sole holder rarely passes.

    Examples
    --------
    >>> [release.name for release in NameFinder(columns=("job",), threshold_delta=1e-7).releases(noise_multiplier=20.0)]
    ['counts of names', 'names above the threshold']
    """

    columns: tuple[str, ...]
    threshold_delta: float

    def __post_init__(self) -> None:
        chosen_columns(self.columns)
        if check_delta(self.threshold_delta) > 0.1:
            raise InvalidParameter(
                f"Expected threshold_delta of at most 0.1, got {self.threshold_delta:g}: names of single records would "
                "be shown. Use a tenth of the delta of the whole run, e.g. 1e-7."
            )

    def releases(self, *, noise_multiplier: float) -> tuple[Release, Release]:
        """The counts, and what showing names at all may leak."""
        bound = Histograms(columns=len(self.columns))
        counts = Release(
            name=_COUNTS, of="names of categories", bound=bound, noise_multiplier=check_noise(noise_multiplier)
        )
        leaked = Approximate(epsilon=0.0, delta=self.threshold_delta)
        return counts, Release(name=_SHOWN, of="names of categories", bound=bound, mechanism=leaked)

    def threshold(self, meter: Meter) -> float:
        """The noisy count from which a name is shown; public."""
        return name_threshold(
            meter.noise_stddev(_COUNTS), columns=len(self.columns), threshold_delta=self.threshold_delta
        )

    def run(self, codes: dict[str, IntArray], readers: dict[str, Names], meter: Meter) -> dict[str, Any]:
        """The names of each column that reach the threshold. Private in, public out."""
        held = {name: names_held(readers[name], codes[name]) for name in self.columns}
        return self.shown(held, len(codes[self.columns[0]]), meter)

    def shown(self, held: dict[str, Held], count: int, meter: Meter) -> dict[str, Any]:
        """The same of so many records, by how many of them hold each name."""
        meter.open(_COUNTS, count=count)
        noisy = meter.noisy_counts(_COUNTS, np.concatenate([held[name][1] for name in self.columns]))
        meter.skip(_SHOWN)
        ends = np.cumsum([len(held[name][0]) for name in self.columns])
        least = self.threshold(meter)
        return {
            name: tuple(text for text, found in zip(held[name][0], part, strict=True) if found >= least)
            for name, part in zip(self.columns, np.split(noisy, ends[:-1]), strict=True)
        }


def private_categories(
    table: Any,
    *,
    columns: Sequence[str],
    noise_multiplier: float,
    threshold_delta: float,
    neighbours: Neighbours = "replace_one",
    rows: IntArray | None = None,
    random: Random | None = None,
) -> LearntCategories:
    """The names of each column that clearly more than one record holds: those whose noisy count reaches a threshold.

    Promise: Gaussian(noise_multiplier) and Approximate(0, threshold_delta) together. The latter is the probability that
    a name held by one record alone is shown: with noise σ and threshold t it is at most 1 - (1 - p)^columns,
    p = Φ((1 - t)/σ), rounding to the lattice included. The event is for `neighbours` alone.
    Theorem: docs/proofs/preprocessing.md, section 4; Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilkins, Kifer,
    Zhang and Karrer 2024 for Gaussian noise.

    Parameters
    ----------
    table : any table with these columns; private. A record holds one name in each
    columns : names of the columns
    noise_multiplier : noise stddev ÷ clip of all counts together
    threshold_delta : the part of delta for names of one record, e.g. a tenth of the whole
    rows : which rows are the records, e.g. one of each person, as `one_row_each` draws them; all by default; private
    random : the system's, unless for a test

    Examples
    --------
    >>> table = {"job": ["baker"] * 900 + ["smith"] * 800 + ["Jane Doe's own"]}
    >>> learnt = private_categories(table, columns=["job"], noise_multiplier=20.0, threshold_delta=1e-10)
    >>> learnt.values["job"], learnt.plan.names
    (('baker', 'smith'), ('counts of names', 'names above the threshold'))
    """
    names = chosen_columns(columns)
    finder = NameFinder(columns=tuple(names), threshold_delta=threshold_delta)
    plan = Plan(releases=finder.releases(noise_multiplier=noise_multiplier), neighbours=neighbours)
    meter = Meter(plan, random=random)
    readers = {name: Names() for name in names}
    codes = {name: found if rows is None else found[rows] for name, found in read(table, readers).items()}
    values = finder.run(codes, readers, meter)
    meter.finish()
    return LearntCategories(
        values=values, threshold=finder.threshold(meter), plan=plan, invalidated=bool(why_invalid(meter.random))
    )


def names_held(reader: Names, codes: IntArray) -> Held:
    """The names that some cells hold, sorted, so that noise does not follow the rows' order; how many hold each.

    Examples
    --------
    >>> reader = Names()
    >>> names, counts = names_held(reader, reader.read(["b", "a", None, "b"]))
    >>> names, counts.tolist()
    (['a', 'b'], [1, 2])
    """
    names, places = reader.ranked(codes)
    return names, np.bincount(places[places >= 0], minlength=len(names)).astype(np.int64)


def name_threshold(noise_stddev: float, *, columns: int, threshold_delta: float) -> float:
    """The count, noise included, from which a name is shown: `leak` of it is at most `threshold_delta`.

    Examples
    --------
    >>> round(name_threshold(10.0, columns=1, threshold_delta=1e-6), 3)
    48.539
    """
    alone = -math.expm1(math.log1p(-threshold_delta) / columns)
    return 1.0 + noise_stddev * (-float(ndtri(alone)) * (1 + 1e-12) + _ROUNDING)


def leak(threshold: float, *, noise_stddev: float, columns: int) -> float:
    """The probability that any of `columns` names, each held by one record alone, is shown: rounding at its worst.

    Examples
    --------
    >>> f"{leak(name_threshold(10.0, columns=3, threshold_delta=1e-6), noise_stddev=10.0, columns=3):.6g}"
    '1e-06'
    """
    alone = float(log_ndtr((1.0 - threshold) / noise_stddev + _ROUNDING))
    return -math.expm1(columns * math.log1p(-math.exp(alone)))
