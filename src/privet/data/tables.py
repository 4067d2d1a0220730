"""Columns by name, from frames, dicts, rows, CSV files and structured arrays. Headers are public, cells are not."""

from __future__ import annotations

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Cells, Coded, Memory, Reader
from privet.errors import InvalidParameter

__all__ = ["cells_of", "check_header", "header", "is_table", "read"]

_ROWS = (
    256  # rows of a file in memory as text at a time; more would not fit the processor's cache, and take twice as long
)


def header(table: Any) -> list[str] | None:
    """The column names of a table, which are public; None for a list of dicts, whose rows need not agree."""
    if isinstance(table, str | PathLike):
        with _opened(table) as lines:
            return _first_row(csv.reader(lines))
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    if isinstance(table, np.ndarray) and table.dtype.names:
        return list(table.dtype.names)
    if _is(table, "pandas", "DataFrame") or _is(table, "polars", "DataFrame"):
        return [str(name) for name in table.columns]
    if _is(table, "pyarrow", "Table"):
        return [str(name) for name in table.column_names]
    if _is_rows(table):
        return None
    raise InvalidParameter(
        f"Expected a table with named columns, got {type(table).__name__}: columns are matched by name. Pass a pandas "
        "or polars frame, a dict of columns, a list of dicts, the path of a CSV file, or a structured array."
    )


def is_table(data: Any) -> bool:
    """Whether `data` has named columns, so that one of them can be picked."""
    framed = any(_is(data, *kind) for kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")))
    named = isinstance(data, np.ndarray) and bool(data.dtype.names)
    return framed or named or isinstance(data, str | PathLike | Mapping) or _is_rows(data, least=1)


def read(table: Any, readers: Mapping[str, Reader]) -> dict[str, NDArray[Any]]:
    """One array for each column that has a reader. Refuses a header that lacks one of them."""
    check_header(table, list(readers))
    if isinstance(table, str | PathLike):
        return _csv_columns(table, readers)
    if _is_rows(table):
        rows = [row if isinstance(row, Mapping) else {} for row in table]
        return {name: reader.read([row.get(name) for row in rows]) for name, reader in readers.items()}
    found = {name: reader.read(_column(table, name)) for name, reader in readers.items()}
    if len({len(values) for values in found.values()}) > 1:
        raise InvalidParameter(
            "Expected columns of one length, got several: cells of different records would be put together. "
            "Pass one value a record in each column."
        )
    return found


def check_header(table: Any, names: Sequence[str]) -> None:
    """Refuse a table whose header has not exactly one column of each name."""
    present = header(table)
    if present is None:
        return
    counts = Counter(present)
    for name in names:
        if counts[name] != 1:
            what = "none of that name" if not counts[name] else "several of that name"
            raise InvalidParameter(
                f"Expected one column {name!r} in the table, got {what}: columns are matched by name, not by place. "
                "Rename it in the table or in the schema."
            )


def _column(table: Any, name: str) -> Cells:
    if _is(table, "pandas", "DataFrame"):
        place = [str(column) for column in table.columns].index(name)
        return _pandas_cells(table.iloc[:, place])
    if _is(table, "polars", "DataFrame"):
        return _polars_cells(table.get_column(name))
    if _is(table, "pyarrow", "Table"):
        return _arrow_cells(table.column(name))
    if isinstance(table, Mapping):
        keys = [key for key in table if str(key) == name]
        return cells_of(table[keys[0]])
    return cells_of(table[name])


def cells_of(column: Any) -> Cells:
    """One column of any kind as cells; refuses what is not one value a record."""
    if _is(column, "pandas", "Series") or _is(column, "pandas", "Categorical") or _is(column, "pandas", "Index"):
        return _pandas_cells(column)
    if _is(column, "polars", "Series"):
        return _polars_cells(column)
    if _is(column, "pyarrow", "ChunkedArray") or _is(column, "pyarrow", "Array"):
        return _arrow_cells(column)
    if isinstance(column, list | tuple):
        return column
    cells = np.ma.asanyarray(column) if isinstance(column, np.ma.MaskedArray) else np.asarray(column)
    if cells.ndim != 1:
        raise InvalidParameter(
            f"Expected one value a record in each column, got an array of {cells.ndim} dimensions: a cell would hold "
            "several values. Pass one-dimensional columns."
        )
    return cells


def _pandas_cells(series: Any) -> Cells:
    pandas = sys.modules["pandas"]
    if isinstance(series.dtype, pandas.CategoricalDtype):
        held = series if _is(series, "pandas", "Categorical") else series.array
        return Coded(held.categories.to_numpy(dtype=object).tolist(), np.asarray(held.codes, dtype=np.int64))
    if isinstance(series.dtype, np.dtype):
        return np.asarray(series)
    if pandas.api.types.is_bool_dtype(series.dtype) or not pandas.api.types.is_numeric_dtype(series.dtype):
        objects: list[Any] = series.to_numpy(dtype=object, na_value=None).tolist()
        return objects
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _polars_cells(series: Any) -> Cells:
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return np.asarray(series.to_numpy())
    listed: list[Any] = series.to_list()
    return listed


def _arrow_cells(column: Any) -> Cells:
    types = sys.modules["pyarrow"].types
    if types.is_integer(column.type) or types.is_floating(column.type):
        chunked = _is(column, "pyarrow", "ChunkedArray")
        return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))
    listed: list[Any] = column.to_pylist()
    return listed


def _csv_columns(path: str | PathLike[str], readers: Mapping[str, Reader]) -> dict[str, NDArray[Any]]:
    parts: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, reader.dtype)] for name, reader in readers.items()}
    with _opened(path) as lines:
        rows = csv.reader(lines)
        present = _first_row(rows)
        columns = [
            (parts[name], present.index(name), Memory(reader.one).__getitem__, reader.dtype)
            for name, reader in readers.items()
        ]
        records = _records(rows, len(present))
        while block := list(islice(records, _ROWS)):
            cells = list(zip(*block, strict=True))
            for kept, place, function, dtype in columns:
                kept.append(np.fromiter(map(function, cells[place]), dtype=dtype, count=len(block)))
    return {name: np.concatenate(pieces) for name, pieces in parts.items()}


def _records(reader: Any, width: int) -> Iterator[Sequence[str]]:
    """The rows, each of `width` cells: short ones are filled with empty cells, long ones cut, blank lines skipped."""
    while True:
        try:
            for row in reader:
                if len(row) == width:
                    yield row
                elif row:
                    yield [*row[:width], *[""] * (width - len(row))]
            return
        except csv.Error:  # e.g. a cell of more than 128 KB: to raise would tell of it
            yield [""] * width


def _first_row(reader: Any) -> list[str]:
    try:
        return [name.strip() for name in next(reader, [])]
    except csv.Error:
        return []


def _opened(path: str | PathLike[str]) -> Any:
    """A text file, or one compressed by gzip if its name ends in .gz; bytes that are no UTF-8 raise nothing."""
    opener: Any = gzip.open if Path(path).suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="")


def _is_rows(table: Any, least: int = 0) -> bool:
    return isinstance(table, list | tuple) and len(table) >= least and (not table or isinstance(table[0], Mapping))


def _is(value: Any, package: str, kind: str) -> bool:
    """Whether `value` is of a class of an optional package; if that was never imported, nothing is."""
    module = sys.modules.get(package)
    return module is not None and isinstance(value, getattr(module, kind))
