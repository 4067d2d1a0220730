"""Columns by name, from frames, dicts, rows, CSV files and structured arrays. Headers are public, cells are not."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Reader
from privet.data.columns import column_of, is_of, names_of
from privet.data.csv_files import CsvFile, as_csv, csv_columns, csv_header
from privet.data.times import read_column
from privet.errors import InvalidParameter


def header(table: Any) -> list[str] | None:
    """The column names of a table, which are public; None for a list of dicts, whose rows need not agree.

    Examples
    --------
    >>> header({"age": [31, 44], "job": ["baker", None]})
    ['age', 'job']
    """
    if isinstance(table, str | PathLike | CsvFile):
        return csv_header(table)
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    if isinstance(table, np.ndarray) and table.dtype.names:
        return list(table.dtype.names)
    names = names_of(table)
    if names is not None:
        return names
    if _is_rows(table) or (isinstance(table, list | tuple) and not table):
        return None
    raise InvalidParameter(f"""Expected a table with named columns, got {type(table).__name__}: columns are matched by
        name. Pass a pandas or polars frame, a dict of columns, a list of dicts, the path of a CSV file, or a structured
        array.""")


def is_table(data: Any) -> bool:
    """Whether `data` has named columns, so that one of them can be picked."""
    named = isinstance(data, np.ndarray) and bool(data.dtype.names)
    return named or isinstance(data, str | PathLike | CsvFile | Mapping) or names_of(data) is not None or _is_rows(data)


def row_count(table: Any) -> int | None:
    """How many rows a table in memory has, as it says itself; None where that takes reading it.

    Examples
    --------
    >>> row_count({"age": [31, 44]}), row_count("people.csv")
    (2, None)
    """
    if isinstance(table, str | PathLike | CsvFile):
        return None
    if isinstance(table, Mapping):
        first = next(iter(table.values()), None)
        return len(first) if isinstance(first, Sequence | np.ndarray) else None
    if names_of(table) is not None:
        return int(table.num_rows if hasattr(table, "num_rows") else table.shape[0])
    return len(table) if isinstance(table, list | tuple | np.ndarray) else None


def read(table: Any, readers: Mapping[str, Reader]) -> dict[str, NDArray[Any]]:
    """One array for each column that has a reader. Refuses a header that lacks one of them.

    Examples
    --------
    >>> from privet.data.cells import Codes, Numbers
    >>> table = {"job": ["smith", "Jane Doe"], "age": [31, "unknown"]}
    >>> read(table, {"age": Numbers(), "job": Codes(("baker", "smith"))})
    {'age': array([31., nan]), 'job': array([ 1, -1])}
    """
    check_header(table, list(readers))
    if isinstance(table, str | PathLike | CsvFile):
        return csv_columns(table, readers)
    columns = zip(readers.items(), _columns(table, list(readers)), strict=True)
    found = {name: read_column(reader, column, name=f"column {name!r}") for (name, reader), column in columns}
    if len({len(values) for values in found.values()}) > 1:
        raise InvalidParameter("""Expected columns of one length, got several: cells of different records would be put
            together. Pass one value a record in each column.""")
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
            do = "Rename it in the table or in the schema."
            if len(present) == 1 and isinstance(table, str | PathLike | CsvFile):
                do = f"The first line has no {as_csv(table).sep!r}: if another sign separates its cells, say so by sep."
            raise InvalidParameter(f"""Expected one column {name!r} in the table, got {what}: columns are matched by
                name, not by place. {do}""")


def taken_out(frame: Any, names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """A frame of pandas, polars or pyarrow without some columns, each of which it must have once; and those columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rest, columns = taken_out(pa.table({"age": [31, 44], "who": ["ann", "bob"]}), ["who"])
    >>> rest.schema.names, columns["who"].to_pylist()
    (['age'], ['ann', 'bob'])
    """
    check_header(frame, names)
    present = names_of(frame) or []
    kept = [place for place, name in enumerate(present) if name not in names]
    columns = {name: column_of(frame, present.index(name)) for name in names}
    if is_of(frame, "pandas", "DataFrame"):
        return frame.iloc[:, kept], columns
    return (frame[:, kept] if is_of(frame, "polars", "DataFrame") else frame.select(kept)), columns


def _cell(row: Any, name: str) -> Any:
    """The cell of that name in a row of a list; None if there is none, or the row will not be read."""
    try:
        return row.get(name) if isinstance(row, Mapping) else None
    except Exception:  # noqa: BLE001  # of its own methods, and it may quote a cell
        return None


def _columns(table: Any, names: Sequence[str]) -> Iterator[Any]:
    """The columns of these names, each of which is there once."""
    framed = names_of(table)
    if framed is not None:
        places = {name: place for place, name in enumerate(framed)}
        return (column_of(table, places[name]) for name in names)
    if isinstance(table, Mapping):
        keys = {str(key): key for key in table}
        return (table[keys[name]] for name in names)
    if isinstance(table, list | tuple):
        return ([_cell(row, name) for row in table] for name in names)
    return (table[name] for name in names)


def _is_rows(table: Any) -> bool:
    """Whether a list holds rows by name, as most of its items do: no one record decides."""
    if not isinstance(table, list | tuple):
        return False
    kinds = Counter(map(type, table))
    return 2 * sum(count for kind, count in kinds.items() if issubclass(kind, Mapping)) > len(table)
