"""Does the schema fit the table? How many records it can read, column by column, counted with noise."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from privet.arrays import IntArray
from privet.data.elsewhere import Elsewhere, ElsewhereRows, tallies
from privet.plan import Meter, Presences, Release
from privet.plan.influence import unit_clip
from privet.preprocessing.dates import Date
from privet.preprocessing.schema import Category, Schema
from privet.privacy import Neighbours

TARGETS, FEATURES = "usable targets", "usable records"
_ALARM = 1e-3  # chance of a warning about any column, if each can be read for at least half of the records
_POWER = 2.0  # standard deviations, so that a column that nothing can be read of is named in 97 of 100 fits
_FEW = 0.1  # of the records: a column that clearly more can be read of is not named
_LEAST, _MOST = {TARGETS: 0.001, FEATURES: 0.001}, {TARGETS: 0.02, FEATURES: 0.01}  # shares of the budget
_NOISIEST = 2.0**19
_SHOWN = 8  # names in a warning


@dataclass(frozen=True, kw_only=True, slots=True)
class Usable:
    """Noisy counts of records that the schema can read, by column, and the columns that it hardly can; public."""

    counts: dict[str, float]
    misfits: tuple[str, ...] = ()

    def sentence(self, schema: Schema) -> str:
        """What to say of columns that hardly any record can be read of; empty if there are none."""
        if not self.misfits:
            return ""
        told = [_told(schema, name) for name in self.misfits[:_SHOWN]]
        more = len(self.misfits) - _SHOWN
        shown = ", ".join(told) + (f" and {more} more" if more > 0 else "")
        target = schema.target is not None and schema.target.column in self.misfits
        lost = (
            "their records count as empty, so that nothing was learnt" if target else "these columns count as missing"
        )
        return (
            f"Expected most records to be read by the schema, got next to none in {shown}, by a noisy count: {lost}. "
            "Compare the schema with the table: the spelling and case of values, the kind of a column."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class UsableCounts:
    """Which counts a fit of a table buys, at which share of its budget; all of it public.

    A count is bought if, for at most its share of the budget, it tells a column that every second record can be read
    of from one that none can; for less, if less is enough. With fewer records nothing is bought and nothing said.

    Promise: if each column can be read for at least half of the records, a warning names any with probability at most
    1e-3; a column that nothing can be read of is named with probability at least 0.97.
    Theorem: docs/proofs/preprocessing.md, section 5.

    Examples
    --------
    >>> from privet.preprocessing import Number, Target
    >>> schema = Schema(columns={"age": Number()}, target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> many = UsableCounts.planned(schema, records=10_000, whole_noise=8.5, neighbours="replace_one")
    >>> few = UsableCounts.planned(schema, records=100, whole_noise=8.5, neighbours="replace_one")
    >>> [release.name for release in many.releases], few.releases
    (['usable targets', 'usable records'], ())
    """

    releases: tuple[Release, ...] = ()

    @classmethod
    def planned(cls, schema: Schema, *, records: int, whole_noise: float, neighbours: Neighbours) -> "UsableCounts":
        """The counts for a table of so many records; `whole_noise` is the multiplier that spends all of the budget."""
        found = []
        for name, columns in ((TARGETS, 1), (FEATURES, len(schema.columns))):
            bound = Presences(columns=columns)
            seen = records / (whole_noise * unit_clip(bound, neighbours))
            share = max((2 * (_alarm(columns) + _POWER) / max(seen, 2.0**-20)) ** 2, _LEAST[name])
            noise = whole_noise / math.sqrt(share)
            if share <= _MOST[name] and noise <= _NOISIEST:
                of = "records that the schema can read, column by column"
                found.append(Release(name=name, of=of, bound=bound, noise_multiplier=noise, size=columns))
        return cls(releases=tuple(found))

    def run(self, schema: Schema, rows: Any, target: Any, meter: Meter) -> Usable:
        """Count, with noise: rows, which are the records, and targets as the schema encodes them. Private."""
        if not self.releases:
            return Usable(counts={})
        columns = {TARGETS: (schema.known_target.column,), FEATURES: tuple(schema.columns)}
        held = dict(zip((FEATURES, TARGETS), _counted(rows, target), strict=True))
        counts: dict[str, float] = {}
        misfits: tuple[str, ...] = ()
        for name in (release.name for release in self.releases):
            meter.open(name, count=len(target))
            noisy = meter.noisy_counts(name, held[name])
            blur = _alarm(len(noisy)) * meter.noise_stddev(name)
            counts.update(zip(columns[name], noisy.tolist(), strict=True))
            hardly = noisy < min(meter.plan.count / 2 - blur, _FEW * meter.plan.count + blur)
            misfits += tuple(column for column, few in zip(columns[name], hardly, strict=True) if few)
        nameless = {column for column, kind in schema.columns.items() if isinstance(kind, Category) and not kind.values}
        misfits = tuple(column for column in misfits if column not in nameless)  # that none was learnt is told
        return Usable(counts=counts, misfits=misfits)


def _alarm(columns: int) -> float:
    """How many standard deviations noise stays below in any of so many columns, but for half of the chance."""
    return float(-ndtri(_ALARM / 2 / columns))


def _counted(rows: Any, target: Any) -> tuple[IntArray, IntArray]:
    """How many records can be read: of each column, and of the target. Private."""
    if isinstance(rows, ElsewhereRows):
        features: Any = Elsewhere(rows.source, rows.rows, rows.shape[0])
        found, known = tallies([_usable, _known], [features, target])
        return np.asarray(found), np.atleast_1d(known)
    return rows.usable(), np.atleast_1d(_known(target))


def _usable(rows: Any) -> IntArray:
    return rows.usable()  # type: ignore[no-any-return]  # encoded rows of a block


def _known(target: Any) -> IntArray:
    return np.array([np.isfinite(target).sum()], dtype=np.int64)


def _told(schema: Schema, name: str) -> str:
    """A column, and what was looked for in it."""
    target = schema.target
    fact: Any = target if target is not None and target.column == name else schema.columns[name]
    label = isinstance(fact, Category) or getattr(fact, "kind", "") == "label"
    return f"{name!r} ({'one of its values' if label else 'a date' if isinstance(fact, Date) else 'a number'})"
