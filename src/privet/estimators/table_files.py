"""A table in files, as its schema reads it: what `fit_table` learns from and fits where the records are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.arrays import IntArray
from privet.data import read
from privet.data.cells import Numbers
from privet.data.elsewhere import Elsewhere, ElsewhereRows
from privet.data.tables import check_header
from privet.engines.block_source import BlockSource
from privet.engines.blocks_of_rows import FileRows
from privet.engines.files import Files
from privet.engines.part import told_apart
from privet.engines.sources import source_counts, source_header
from privet.errors import InvalidParameter
from privet.preprocessing import Category, Schema, TableEncoder, encode_target
from privet.preprocessing.encoded_rows import EncodedRows
from privet.preprocessing.opened import Opened
from privet.preprocessing.schema import Target


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


class TableFiles:
    """A table in files that was opened: headers and footers were read, no row."""

    def __init__(self, files: Files, schema: Schema) -> None:
        parts, self._cache = files.opened()
        header, names = source_header(parts[0]), [*schema.columns, schema.known_target.column]
        check_header(header, names)
        read(header, {name: Numbers() for name in names})  # refuses, by declared types, before anything is charged
        self._engine, self._parts, self.counts = files.engine, parts, source_counts(parts)
        self._files, self._schema = files, schema

    def journal(self, settings: str) -> dict[str, Any]:
        """The journal that the files come with, if they do, and what must be the same when a fit goes on."""
        of = f"{self._schema!r} {settings} {told_apart(self._parts)}"
        return {} if self._files.journal is None else {"journal": self._files.journal, "of": of}

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def source(self, columns: Sequence[str], target: str, targets: Any, rows: Any) -> BlockSource:
        """The records, as `rows` and `targets` make them of frames."""
        opener = FileRows(tuple(columns), target, targets, rows)
        return BlockSource(self._engine, self._parts, opener, self.counts, self._cache.beside())

    def encoded(self, schema: Schema) -> tuple[ElsewhereRows, Elsewhere]:
        """Features and targets by a complete schema."""
        target = schema.known_target
        source = self.source(list(schema.columns), target.column, _Targets(target), _Rows(schema))
        return source.numbers(len(TableEncoder(schema).bounds[0]))

    def opened(self, schema: Schema, names: Sequence[str]) -> "FileColumns":
        """Columns of numbers, to learn from; names of categories are not learnt in files."""
        facts = {**schema.columns, schema.known_target.column: schema.known_target}
        for name in names:
            fact = facts[name]
            if isinstance(fact, Category) or (isinstance(fact, Target) and fact.kind == "label"):
                raise InvalidParameter(
                    f"Expected values=[...] for the column {name!r} of a table in files, got none: names do not come "
                    "here to be learnt. Write the public list into the schema."
                )
        columns = tuple(names)
        return FileColumns(columns={}, names={}, people=None, known=columns, table=self)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class FileColumns(Opened):
    """Columns of numbers of a table in files, as numbers that are elsewhere."""

    known: tuple[str, ...]
    table: TableFiles

    @property
    def count(self) -> int:
        return self.table.count

    def numbers(self, names: Sequence[str], places: IntArray | None) -> list[Any]:
        source = self.table.source(names, names[0], _Targets(None), _Numbers(tuple(names)))
        if places is not None:
            source = source.sampled(places, source.cache.beside())
        rows = source.numbers(len(names))[0]
        return [rows.column(place) for place in range(len(names))]
