"""A table in parts, as numbers that are elsewhere: counted, sampled, posed as a problem, encoded; on any engine."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privet.arrays import IntArray
from privet.clipping import LatticeSum
from privet.data.elsewhere import Elsewhere, ElsewhereRows, Later, Source
from privet.data.people import ElsewherePeople, Picked, picked_rows
from privet.engines.blocks_of_rows import (
    ALL,
    FEATURES,
    TARGET,
    Block,
    Opener,
    chosen,
    features_of,
    needed,
    write_block,
    written_block,
)
from privet.engines.cache import Cache
from privet.engines.engine import Engine, bunched
from privet.engines.part import Part
from privet.engines.tasks import EncodedParts, encode
from privet.losses import Loss
from privet.problems import GroupedProblem, LinearProblem
from privet.problems.parted import Ask, added, dealt
from privet.sums.compiled import kernels

Prepare = Callable[[Block], Any]
"""From a block of raw rows to its problem; a value that can be sent."""


class BlockSource(Source):
    """Records in parts on an engine, read in blocks by an opener; of `people`, whole ones in each part. Private.

    Promise: every count and sum is over each record once, and a sample holds the records at the places drawn here.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Part],
        opener: Opener,
        counts: IntArray,
        cache: Cache,
        people: ElsewherePeople | None = None,
    ) -> None:
        self.engine, self.parts, self.opener, self.counts = engine, tuple(parts), opener, counts
        self.cache = cache  # lives as long as this does
        self.people = people
        self._picked: tuple[Picked, BlockSource] | None = None

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    def numbers(self, columns: int) -> tuple[ElsewhereRows, Elsewhere]:
        """Features, of so many columns, and targets, as numbers that are elsewhere."""
        count = self.records
        return ElsewhereRows(self, FEATURES, (count, columns)), Elsewhere(self, TARGET, count)

    def totals(self, asked: Sequence[Later]) -> list[IntArray]:
        self._check_rows()
        answers = self.engine.run(_Count(tuple(asked), self.opener), bunched(self.parts, self.engine.cores))
        return [np.sum([answer[i] for answer in answers], axis=0) for i in range(len(asked))]

    def met(self, columns: int, picked: Picked | None = None) -> list[dict[str, int]]:
        """For each of so many columns, names that records hold, and how many do, where blocks' features are those."""
        if picked is None:
            self._check_rows()
        shares = self._shares(picked)
        found = [Counter[str]() for _ in range(columns)]
        for answer in self.engine.run(_Meet(self.opener, columns), bunched(shares, self.engine.cores)):
            for total, each in zip(found, answer, strict=True):
                total.update(each)
        return [dict(each) for each in found]

    def largest(self, asked: Later) -> float:
        self._check_rows()
        return float(max(self.engine.run(_Largest(asked, self.opener), bunched(self.parts, self.engine.cores))))

    def _check_rows(self) -> None:
        """What is counted by rows must not be asked of people: one of them could count any number of times."""
        if self.people is not None:
            raise NotImplementedError

    def _shares(self, places: IntArray | Picked | None) -> list[tuple[Part, Any]]:
        """Each part with its share of some places, None for all of it."""
        dealt_out: Sequence[Any] = [None] * len(self.parts)
        if isinstance(places, Picked):
            dealt_out = [Picked(each) for each in np.split(places.places, np.cumsum(self.counts)[:-1])]
        elif places is not None:
            self._check_rows()
            dealt_out = dealt(np.sort(places), self.counts)
        return list(zip(self.parts, dealt_out, strict=True))

    def at(self, picked: Picked) -> "BlockSource":
        if self._picked is None or self._picked[0] is not picked:
            self._picked = picked, self.sampled(picked, self.cache.beside())
        return self._picked[1]

    def sampled(self, places: IntArray | Picked | None, cache: Cache) -> "BlockSource":
        """The records at some places, or one row of each person, or all, as rows that are mapped, no longer decoded."""
        items = self._shares(places)

        def make(folder: Path) -> list[tuple[Part, int]]:
            job = _Draw(self.opener, str(folder))
            return [each for answer in self.engine.run(job, bunched(items, self.engine.cores)) for each in answer]

        found = cache.made(make)
        parts = [Part(str(cache.folder / Path(part.path).name), part.fingerprint) for part, _ in found]
        counts = np.array([count for _, count in found], dtype=np.int64)
        return BlockSource(self.engine, parts, written_block, counts, cache, self.people if places is None else None)

    def asked(self, prepare: Prepare) -> "PreparedParts":
        """The records as `prepare` poses them, for a question or two: nothing is written."""
        return PreparedParts(self, prepare)

    def encoded(self, prepare: Prepare, cache: Cache) -> EncodedParts:
        """The records as `prepare` poses them, for many questions: encoded once, to files of the cache."""
        encoder = _BlockEncoder(prepare, self.opener)
        return cache.made(lambda folder: encode(self.engine, self.parts, encoder, folder)).moved(cache)

    def __repr__(self) -> str:
        return f"BlockSource(private, {self.engine!r})"


class PreparedParts:
    """What a `PartedProblem` asks, where rows are prepared anew for each question. Private."""

    def __init__(self, source: BlockSource, prepare: Prepare) -> None:
        self.source, self.prepare, self.counts = source, prepare, source.counts

    def total(self, ask: Ask, loss: Loss, places: Sequence[IntArray] | None) -> tuple[LatticeSum, ...]:
        """The sum of all blocks' answers. Private."""
        if places is not None:
            raise NotImplementedError  # batches are of encoded parts
        engine, source = self.source.engine, self.source
        return added(engine.run(_Pose(ask, self.prepare, source.opener), bunched(source.parts, engine.cores)))


@dataclass(frozen=True, slots=True, repr=False)
class _Count:
    """The sums of some functions over blocks."""

    asked: tuple[Later, ...]
    opener: Opener

    def __call__(self, parts: Sequence[Part]) -> list[IntArray]:
        totals: list[Any] = [0] * len(self.asked)
        needs = needed(self.asked)
        for part in parts:
            for block in self.opener(part, needs):
                totals = [total + np.asarray(each.of(block)) for total, each in zip(totals, self.asked, strict=True)]
        return totals

    def __repr__(self) -> str:
        return "Count(...)"


@dataclass(frozen=True, slots=True, repr=False)
class _Meet:
    """Names of columns, and how many records hold each, of blocks whose features are such counts."""

    opener: Opener
    columns: int

    def __call__(self, shares: Sequence[tuple[Part, Picked | None]]) -> list[Counter[str]]:
        found = [Counter[str]() for _ in range(self.columns)]
        for part, picked in shares:
            opener: Any = self.opener if picked is None else replace(self.opener, picked=picked)  # type: ignore[type-var]
            for block in opener(part, frozenset({features_of})):
                for total, each in zip(found, block.table, strict=True):
                    total.update(each)
        return found

    def __repr__(self) -> str:
        return "Meet(...)"


@dataclass(frozen=True, slots=True, repr=False)
class _Largest:
    """The largest value of a function of blocks."""

    asked: Later
    opener: Opener

    def __call__(self, parts: Sequence[Part]) -> float:
        needs = needed([self.asked])
        return max(float(self.asked.of(block)) for part in parts for block in self.opener(part, needs))

    def __repr__(self) -> str:
        return "Largest(...)"


@dataclass(frozen=True, slots=True, repr=False)
class _Draw:
    """Write the records at given places, or all, to files: which, and how many each has."""

    opener: Opener
    folder: str

    def __call__(self, shares: Sequence[tuple[Part, IntArray | Picked | None]]) -> list[tuple[Part, int]]:
        found = []
        for part, places in shares:
            first = 0
            for block in self.opener(part, ALL):
                last = first + block.count
                if isinstance(places, Picked):
                    block = chosen(block, picked_rows(block.people, places.places))
                elif places is not None:
                    inside = slice(*np.searchsorted(places, (first, last)))
                    block = chosen(block, places[inside] - first)
                found.append((write_block(block, Path(self.folder)), block.count))
                first = last
        return found

    def __repr__(self) -> str:
        return "Draw(...)"


@dataclass(frozen=True, slots=True, repr=False)
class _Pose:
    """The sum of blocks' answers to a question about their problems."""

    ask: Ask
    prepare: Prepare
    opener: Opener

    def __call__(self, parts: Sequence[Part]) -> tuple[LatticeSum, ...]:
        kernels()
        return added([self.ask.of(self.prepare(block)) for part in parts for block in self.opener(part, ALL)])

    def __repr__(self) -> str:
        return f"Pose({self.ask!r})"


@dataclass(frozen=True, slots=True, repr=False)
class _BlockEncoder:
    """The problems of a part's blocks."""

    prepare: Prepare
    opener: Opener

    def __call__(self, part: Part) -> Iterator[LinearProblem | GroupedProblem]:
        for block in self.opener(part, ALL):
            yield self.prepare(block)
