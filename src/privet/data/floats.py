"""Features and targets as numbers. Refused by declared type and shape only; a cell that is no number is NaN."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet.data.cells import Cells, Coded, Numbers, RawNumbers
from privet.data.columns import array_of, cells_of, column_of, declared_as, is_of, names_of, rows_of, usual_width
from privet.errors import InvalidParameter

_MOST_COLUMNS = 2**22  # then a squared norm in units of 2^-15 is below 2^52, an exact float
_ROWS = 1 << 11  # taken together
_VALUES = 1 << 17  # looked at together: a block and what is made of it stay in a core's own cache


class MadeRows(ABC):
    """(records, features) floats that are made as they are asked for, none infinite; private.

    Promise: a row depends on its own record alone, however many are asked for with it.

    Examples
    --------
    >>> class Ones(MadeRows):
    ...     shape = (4, 2)
    ...     def __getitem__(self, part):
    ...         return np.ones(self.shape)[part]
    >>> matrix(Ones())[1:3].tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    shape: tuple[int, int]

    @abstractmethod
    def __getitem__(self, part: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """The rows of a slice, or at some places: an array that nobody else holds."""


class FrameRows(MadeRows):
    """The rows of a frame of pandas, polars or pyarrow, made as they are asked for: its columns are not copied.

    Promise: as `matrix` reads them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> FrameRows(pa.table({"age": [31, 44], "height": [1.6, float("inf")]}))[:].tolist()
    [[31.0, 1.6], [44.0, nan]]
    """

    def __init__(self, frame: Any, *, name: str = "X") -> None:
        columns = _checked_columns(frame, names_of(frame) or [], name)
        self._columns = [RawNumbers().read(cells_of(column, name=name)) for column in columns]
        self.shape = frame.shape[0], len(columns)
        _check_width(self.shape[1], name)

    def __getitem__(self, part: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        count = len(range(self.shape[0])[part]) if isinstance(part, slice) else len(part)
        rows = np.empty((count, self.shape[1]))
        with np.errstate(all="ignore"):
            for place, values in enumerate(self._columns):
                rows[:, place] = values[part]
        infinite = np.isinf(rows)
        if infinite.any():
            rows[infinite] = np.nan
        return rows

    def columns(self, part: slice) -> NDArray[np.float64]:
        """The rows of a slice as (columns, rows), for those who count infinite values as missing themselves."""
        found = np.empty((self.shape[1], len(range(self.shape[0])[part])))
        with np.errstate(all="ignore"):
            for values, column in zip(found, self._columns, strict=True):
                values[:] = column[part]
        return found


def matrix(X: Any, *, name: str = "X", columns: int | None = None) -> Any:
    """`X` as (records, features) floats, dense or CSR; a cell that is no finite number is NaN. Private.

    Promise: each cell is read alone, so an odd one (a text, a date, a list, a number beyond floats, infinity) changes
    no other and raises nothing; a text that reads as a number is that number. What is refused is refused on public
    facts: the number of dimensions and of columns, and declared types (text, categories, dates, complex numbers); no
    error holds a cell.
    Edges: float64 and float32 arrays and CSR matrices of those types are returned as they are, not copied, unless some
    value is infinite; so are `MadeRows`; all else becomes float64. A list declares no shape: it has `columns` columns,
    or without that as many as most of its rows, which is then taken as public; an item that is no such row is a record
    of missing cells.

    Parameters
    ----------
    X : an array, a list of rows, a frame of pandas, polars or pyarrow, or a sparse matrix; private
    name : what errors call it; public
    columns : how many columns a list of rows has; public

    Examples
    --------
    >>> matrix([[1, 2], [3, "Jane Doe"], ["5", None], [7, 8, 9]])
    array([[ 1.,  2.],
           [ 3., nan],
           [ 5., nan],
           [nan, nan]])
    """
    found: Any
    if isinstance(X, MadeRows):
        found = X
    elif sparse.issparse(X):
        found = _from_sparse(X, name)
    elif (names := names_of(X)) is not None:
        found = _from_frame(X, names, name)
    elif (rows := rows_of(X)) is not None:
        found = _from_rows(rows, usual_width(rows) if columns is None else columns, name)
    else:
        found = _from_array(array_of(X, name=name), name)
    _check_width(found.shape[1], name)
    return found


def vector(y: Any, rows: int | None = None, *, name: str = "y") -> NDArray[np.float64]:
    """`y` as one float a record; what is no finite number is NaN. Private.

    Promise: as `matrix`. With `rows`, another length is refused, and not told: it may be private.

    Parameters
    ----------
    y : an array, a list, a column of a frame, or a table of one column; private
    rows : how many records there are
    name : what errors call it; public

    Examples
    --------
    >>> vector([1, "2", "Jane Doe", 10**400, True])
    array([ 1.,  2., nan, nan,  1.])
    """
    cells = cells_of(y, name=name)
    what = declared_as(y) or declared_as(cells)  # text, or categories
    if what is not None:
        raise InvalidParameter(f"""Expected {name} to be numbers, got {what}: a loss needs numbers. Map labels to
            numbers with a public list of classes first.""")
    check_length(cells, rows, name)
    return np.ascontiguousarray(Numbers().read(cells), dtype=np.float64)


def columns_at(columns: Sequence[NDArray[Any]], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Columns of numbers at some places, as (columns, places) floats; what is not finite is NaN. Private.

    Some rows at a time, so that columns which share memory, as those of one array do, are fetched once.

    Examples
    --------
    >>> columns_at(np.array([[1.0, 2.0], [3.0, np.inf], [5.0, 6.0]]).T, np.array([0, 1]))
    array([[ 1.,  3.],
           [ 2., nan]])
    """
    found = np.empty((len(columns), len(places)))
    with np.errstate(all="ignore"):
        for first in range(0, len(places), _ROWS):
            part = places[first : first + _ROWS]
            for values, column in zip(found, columns, strict=True):
                values[first : first + len(part)] = column[part]
    for values in found:
        infinite = np.isinf(values)
        if infinite.any():
            values[infinite] = np.nan
    return found


def check_length(cells: Cells, rows: int | None, name: str) -> None:
    """Refuse what is not as long as the table."""
    length = len(cells.codes) if isinstance(cells, Coded) else len(cells)
    if rows is not None and length != rows:
        raise InvalidParameter(
            f"Expected {name} to hold one value a record, got another number of them: records and values would be "
            "paired wrongly. Pass as many as the table has rows."  # how many is private
        )


def _from_array(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.ndim != 2:
        raise _wrong_dimensions(array.ndim, name)
    _check_type(array, name)
    if np.ma.isMaskedArray(array) or array.dtype.kind == "O":
        return Numbers().read(array.reshape(-1)).reshape(array.shape)
    return _finite(array)


def _from_sparse(data: Any, name: str) -> Any:
    if data.ndim != 2:
        raise _wrong_dimensions(data.ndim, name)
    _check_type(np.empty(0, dtype=data.dtype), name, objects=False)
    found = data.tocsr()
    values = _finite(found.data)
    if values is found.data:
        return found
    return type(found)((values, found.indices, found.indptr), shape=found.shape)


def _from_frame(data: Any, names: list[str], name: str) -> NDArray[Any]:
    columns = _checked_columns(data, names, name)
    if is_of(data, "pandas", "DataFrame") and len(set(data.dtypes)) == 1 and isinstance(data.dtypes.iloc[0], np.dtype):
        return _from_array(data.to_numpy(), name)
    found = np.empty((data.shape[0], len(columns)))
    for place, column in enumerate(columns):
        found[:, place] = Numbers().read(cells_of(column, name=name))
    return found


def _checked_columns(data: Any, names: list[str], name: str) -> list[Any]:
    """The columns of a frame, refused by what they are declared to be."""
    columns = [column_of(data, place) for place in range(len(names))]
    for label, column in zip(names, columns, strict=True):
        _check_type(column, name, where=f" in column {label!r}")
    return columns


def _from_rows(rows: list[Any], width: int | None, name: str) -> NDArray[np.float64]:
    if width is None:
        raise _wrong_dimensions(1, name)
    missing = [None] * width
    cells = [cell for row in rows for cell in (row if row is not None and len(row) == width else missing)]
    found: NDArray[np.float64] = Numbers().read(cells).reshape(len(rows), width)
    return found


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers as float64 or float32, with NaN for infinity; the array itself if that changes nothing."""
    with np.errstate(over="ignore"):
        found = array if array.dtype in (np.float64, np.float32) else array.astype(np.float64)
    rows = max(1, _VALUES // max(1, found[:1].size))
    if array.dtype.kind != "f" or not any(np.isinf(found[i : i + rows]).any() for i in range(0, len(found), rows)):
        return found
    return np.where(np.isinf(found), found.dtype.type(np.nan), found)


def _check_type(column: Any, name: str, *, where: str = "", objects: bool = True) -> None:
    what = declared_as(column)
    if what is None and not objects and column.dtype.kind == "O":
        what = "values of any kind"
    if what == "complex numbers":
        raise InvalidParameter(f"""Expected {name} to be real numbers, got complex ones{where}. Complex data not
            supported: pass real and imaginary parts as two columns.""")
    if what is not None:
        raise InvalidParameter(f"""Expected {name} to be numbers, got {what}{where}: a model needs numbers. Encode it
            with a TableEncoder first: text by a public list of categories, dates by a public range.""")


def _check_width(width: int, name: str) -> None:
    if not 0 < width <= _MOST_COLUMNS:
        none = " (shape=(, 0)) while a minimum of 1 is required" if width == 0 else ""  # scikit-learn's own words
        raise InvalidParameter(f"""Expected {name} to have between 1 and {_MOST_COLUMNS:,} columns, got {width}
            feature(s){none}: there is nothing to learn from, or norms are no longer exact. Add, hash or drop
            columns.""")


def _wrong_dimensions(dimensions: int, name: str) -> InvalidParameter:
    return InvalidParameter(f"""Expected {name} to have rows and columns, got an array of dim {dimensions}: features
        could not be told apart. Reshape your data with .reshape(-1, 1) if it is one feature, with .reshape(1, -1) if it
        is one row.""")
