"""Names of categories, learnt privately: a name is shown if clearly many records hold it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from privet.accounting import Approximate, Event
from privet.data.cells import Names
from privet.data.tables import read
from privet.errors import InvalidParameter
from privet.preprocessing.counts import Release, histogram_reach, noisy_sums, released_with
from privet.preprocessing.ranges import chosen_columns
from privet.privacy import Neighbours, check_delta
from privet.randomness import Random, system_random

__all__ = ["LearntCategories", "leak", "name_threshold", "private_categories"]

_ROUNDING = 2.0**-11
"""Half a step of the released lattice, in standard deviations, at most: a count is shown rounded to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearntCategories:
    """Names that may be shown, sorted, the threshold they passed, and the event that pays for them.

    `void` is True if the noise came from a fixed seed: then nothing is promised.
    """

    values: dict[str, tuple[str, ...]]
    threshold: float
    event: Event
    neighbours: Neighbours
    void: bool


def private_categories(
    table: Any,
    *,
    columns: Sequence[str],
    noise_multiplier: float,
    threshold_delta: float,
    neighbours: Neighbours = "replace_one",
    rows: NDArray[np.int64] | None = None,
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
    >>> learnt = private_categories(table, columns=["job"], noise_multiplier=20.0, threshold_delta=1e-7)
    >>> learnt.values["job"], learnt.event
    (('baker', 'smith'), Gaussian(noise_multiplier=20.0) + Approximate(epsilon=0.0, delta=1e-07))
    """
    names = chosen_columns(columns)
    random = random if random is not None else system_random()
    release, event = category_release(
        len(names), noise_multiplier=noise_multiplier, threshold_delta=threshold_delta, neighbours=neighbours
    )
    threshold = name_threshold(release.noise_stddev, columns=len(names), threshold_delta=threshold_delta)
    readers = {name: Names() for name in names}
    codes = read(table, readers)
    values = {}
    for name, reader in readers.items():
        here = codes[name] if rows is None else codes[name][rows]
        held, places = reader.ranked(here)  # sorted, so that noise does not follow the order of the rows
        counts = np.bincount(places[places >= 0], minlength=len(held))
        noisy = noisy_sums(counts, unit=1.0, release=release, random=random)
        values[name] = tuple(text for text, count in zip(held, noisy, strict=True) if count >= threshold)
    return LearntCategories(values=values, threshold=threshold, event=event, neighbours=neighbours, void=random.void)


def category_release(
    columns: int, *, noise_multiplier: float, threshold_delta: float, neighbours: Neighbours
) -> tuple[Release, Event]:
    """The counts' release, and the event of `private_categories`."""
    delta = check_delta(threshold_delta)
    if delta > 0.1:
        raise InvalidParameter(
            f"Expected threshold_delta of at most 0.1, got {delta:g}: names of single records would be shown. "
            "Use a tenth of the delta of the whole run, e.g. 1e-7."
        )
    reach = histogram_reach(columns, neighbours)
    release = released_with(noise_multiplier, reach=reach, neighbours=neighbours)
    return release, release.event + Approximate(epsilon=0.0, delta=delta)


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
