"""Rows of a table in their own units, made as they are asked for, so that a tall table is not in memory twice."""

from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from privet.arrays import IntArray, Vector
from privet.data import MadeRows, read
from privet.data.cells import RawNumbers
from privet.preprocessing.encoding import check_known, ends_of, feature_names, placed, reader_of, slots_of, width_of
from privet.preprocessing.row_maps import PerColumn
from privet.preprocessing.schema import Category, Column, Number, Schema

_ROWS = 1 << 12  # that are made together
_COUNTED = 1 << 16  # values that are looked at together


class EncodedRows(MadeRows):
    """The table in its own units: numbers (after log1p where the schema says log), NaN for missing ones; 0/1 blocks.

    Their ranges are `feature_bounds`. Private. Columns are read once; those that are arrays of numbers are not copied,
    and fetched together, so that those which share memory, as the columns of one array do, are fetched once.

    Promise: a row depends on its own record alone, however many are asked for with it.

    Examples
    --------
    >>> from privet.preprocessing.schema import Category
    >>> schema = Schema(columns={"age": Number(low=0, high=100), "sex": Category(values=("f", "m"))})
    >>> rows = EncodedRows(schema, {"sex": ["m", "f", "Jane Doe"], "age": [75, float("inf"), 130]})
    >>> rows.shape, rows[1:].tolist()
    ((3, 3), [[nan, 1.0, 0.0], [100.0, 0.0, 0.0]])
    """

    def __init__(self, schema: Schema, table: Any) -> None:
        check_known(schema)
        kinds = schema.columns.items()
        columns = read(table, {name: RawNumbers() if _is_plain(kind) else reader_of(kind) for name, kind in kinds})
        width = len(feature_names(schema)) - 1
        low, high = np.full(width, -np.inf), np.full(width, np.inf)
        self._numbers, self._others, place = [], [], 0
        for name, kind in kinds:
            if isinstance(kind, Number) and _is_plain(kind):
                low[place], high[place] = ends_of(kind)
                self._numbers.append((place, columns[name]))
            else:
                self._others.append((place, kind, columns[name]))
            place += width_of(kind)
        self._ranges = PerColumn(low, high)
        self.shape = len(next(iter(columns.values()))), width

    def __getitem__(self, part: slice | IntArray) -> Vector:
        count = len(range(self.shape[0])[part]) if isinstance(part, slice) else len(part)
        rows = np.zeros((count, self.shape[1]))
        with np.errstate(all="ignore"):
            for place, values in self._numbers:
                rows[:, place] = values[part]
            wide, (least, most) = self._ranges.beside(rows)
            infinite = np.isinf(wide)
            if infinite.any():
                wide[infinite] = np.nan
            np.maximum(wide, least, out=wide)  # of NaN, NaN
            np.minimum(wide, most, out=wide)
        others = (slots_of(kind, read_as[part], place, _itself) for place, kind, read_as in self._others)
        return placed(rows, chain.from_iterable(others), missing=np.nan)

    def usable(self, part: slice | IntArray = slice(None)) -> IntArray:
        """How many of the records have a value that the schema can read, for each of its columns in order. Private."""
        found = [(place, 1, _finite(values[part])) for place, values in self._numbers]
        for place, kind, read_as in self._others:
            known = read_as[part]
            many = int((known >= 0).sum()) if isinstance(kind, Category) else _finite(known)
            found.append((place, width_of(kind), many))
        found.sort(key=itemgetter(0, 1))  # a column without names has no width, and shares the place of the next
        return np.array([many for *_, many in found], dtype=np.int64)

    def whole(self) -> Vector:
        """All rows."""
        rows = np.empty(self.shape)
        for first in range(0, len(rows), _ROWS):
            rows[first : first + _ROWS] = self[first : first + _ROWS]
        return rows


def _is_plain(column: Column) -> bool:
    """Whether a column is one feature, its value itself."""
    return isinstance(column, Number) and not column.log and column.missing != "indicator"


def _finite(values: Any) -> int:
    with np.errstate(all="ignore"):
        blocks = (np.asarray(values[i : i + _COUNTED], dtype=np.float64) for i in range(0, len(values), _COUNTED))
        return sum(int(np.isfinite(block).sum()) for block in blocks)


def _itself(column: Column, values: Vector) -> Vector:
    return values
