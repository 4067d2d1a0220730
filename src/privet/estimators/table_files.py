"""A table in files, as its schema reads it: what `fit_table` learns from and fits where the records are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.data import read
from privet.data.cells import Names, Numbers, Reader
from privet.data.elsewhere import Elsewhere, ElsewhereRows
from privet.data.people import person_numbers
from privet.data.tables import check_header
from privet.engines.block_source import BlockSource
from privet.engines.blocks_of_rows import FileRows
from privet.engines.files import Files
from privet.engines.people_parts import people_parts
from privet.engines.sources import source_counts, source_header
from privet.plan import Meter
from privet.preprocessing import Category, Date, Schema, TableEncoder, encode_target
from privet.preprocessing.categories import NameFinder, names_held
from privet.preprocessing.encoded_rows import EncodedRows
from privet.preprocessing.encoding import reader_of
from privet.preprocessing.opened import Opened
from privet.preprocessing.schema import Column, Target


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a frame by a complete schema."""

    schema: Schema

    def __call__(self, frame: Any) -> EncodedRows:
        return EncodedRows(self.schema, frame)


@dataclass(frozen=True, slots=True)
class _Targets:
    """Targets of a frame by what is public of them; none where nothing is."""

    target: Target | None

    def __call__(self, frame: Any) -> Any:
        return np.zeros(frame.num_rows) if self.target is None else encode_target(self.target, frame)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Columns of a frame as numbers, missing ones NaN."""

    names: tuple[str, ...]

    def __call__(self, frame: Any) -> Any:
        found = read(frame, {name: Numbers() for name in self.names})
        return np.column_stack([found[name] for name in self.names])


@dataclass(frozen=True, slots=True)
class _Names:
    """Columns of a frame as the names that they hold, and how many cells hold each."""

    names: tuple[str, ...]

    def __call__(self, frame: Any) -> list[dict[str, int]]:
        readers = {name: Names() for name in self.names}
        held = [names_held(readers[name], codes) for name, codes in read(frame, readers).items()]
        return [dict(zip(names, counts.tolist(), strict=True)) for names, counts in held]


class TableFiles:
    """A table in files that was opened: headers and footers were read, no row, but of CSV files."""

    def __init__(self, files: Files, schema: Schema, groups: str | None = None, *, delta: float | None = None) -> None:
        facts = {**schema.columns, schema.known_target.column: schema.known_target}
        texts, names = [name for name, fact in facts.items() if _is_text(fact)], list(facts)
        whose = [] if groups is None else [groups]
        parts, self._cache = files.opened(columns=names, beside=whose, texts=[*texts, *whose], delta=delta)
        header = source_header(parts[0])
        check_header(header, [*names, *whose])
        # refuses, by declared types, before anything is charged
        read(header, {name: _reader(fact) for name, fact in facts.items()})
        self._engine, self._column, self.people = files.engine, None, None
        self._kept = files.kept(f"{schema!r} {groups!r}")
        if groups is None:
            self._parts, self.counts = parts, source_counts(parts)
            return
        person_numbers(header.column(groups))  # refuses what is declared to be no label
        held = people_parts(files.engine, parts, self._cache.beside(), columns=names, groups=groups)
        self._parts, self.counts, self._cache = held.parts, held.counts, held.cache
        self._column, self.people = held.column, held.people

    def journal(self, settings: str) -> dict[str, Any]:
        """The journal that the files come with, if they do, and what must be the same when a fit goes on."""
        return {name: f"{value} {settings}" if name == "of" else value for name, value in self._kept.items()}

    @property
    def count(self) -> int:
        """How many rows there are, or people."""
        return int(self.counts.sum())

    def source(self, columns: Sequence[str], target: str, targets: Any, rows: Any) -> BlockSource:
        """The records, as `rows` and `targets` make them of frames."""
        opener = FileRows(tuple(columns), target, targets, rows, people=self._column)
        return BlockSource(self._engine, self._parts, opener, self.counts, self._cache.beside(), self.people)

    def encoded(self, schema: Schema) -> tuple[ElsewhereRows, Elsewhere]:
        """Features and targets by a complete schema."""
        target = schema.known_target
        source = self.source(list(schema.columns), target.column, _Targets(target), _Rows(schema))
        return source.numbers(len(TableEncoder(schema).bounds[0]))

    def opened(self, names: Sequence[str]) -> "FileColumns":
        """Columns to learn from."""
        return FileColumns(columns={}, names={}, people=self.people, known=tuple(names), table=self)


def _reader(fact: Column | Target) -> Reader:
    """One that takes the types that the column may be declared to have."""
    return reader_of(fact) if isinstance(fact, Date) else Numbers()


def _is_text(fact: Column | Target) -> bool:
    """Whether cells of a column are names or dates, not numbers."""
    return isinstance(fact, Category | Date) or (isinstance(fact, Target) and fact.kind == "label")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class FileColumns(Opened):
    """Columns of a table in files, as numbers that are elsewhere; of names, counts come here."""

    known: tuple[str, ...]
    table: TableFiles

    @property
    def count(self) -> int:
        return self.table.count

    def numbers(self, names: Sequence[str], places: Any) -> list[Any]:
        source = self.table.source(names, names[0], _Targets(None), _Numbers(tuple(names)))
        if places is not None:
            source = source.sampled(places, source.cache.beside())
        rows = source.numbers(len(names))[0]
        return [rows.column(place) for place in range(len(names))]

    def learnt_names(self, finder: NameFinder, places: Any, meter: Meter) -> dict[str, Any]:
        names = finder.columns
        met = self.table.source(names, names[0], _Targets(None), _Names(names)).met(len(names), places)
        held = {name: (sorted(each), each) for name, each in zip(names, met, strict=True)}
        counted = {
            name: (listed, np.array([each[text] for text in listed], dtype=np.int64))
            for name, (listed, each) in held.items()
        }
        return finder.shown(counted, self.count, meter)
