"""One column of any kind as cells, and what type it was declared to be. Types and shapes are public, cells are not."""

import sys
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Cells, Coded, listed
from privet.errors import InvalidParameter

_KINDS = {"c": "complex numbers", "M": "dates", "m": "spans of time", "U": "text", "S": "text", "T": "text"}
_SCALARS = frozenset({float, int, str, bool, type(None)})
_ARROW_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "fixed_size_binary")
_SERIES = (
    ("pandas", "Series"),
    ("pandas", "api.extensions.ExtensionArray"),
    ("pandas", "Index"),
    ("polars", "Series"),
    ("pyarrow", "ChunkedArray"),
    ("pyarrow", "Array"),
)


def is_of(value: Any, package: str, kind: str) -> bool:
    """Whether `value` is of a class of an optional package; if that was never imported, nothing is."""
    module = sys.modules.get(package)
    return module is not None and isinstance(value, attrgetter(kind)(module))


def names_of(data: Any) -> list[str] | None:
    """The names of the columns of a pandas, polars or pyarrow table, in order; None for what is none."""
    if is_of(data, "pandas", "DataFrame") or is_of(data, "polars", "DataFrame"):
        return [str(name) for name in data.columns]
    if is_of(data, "pyarrow", "Table") or is_of(data, "pyarrow", "RecordBatch"):
        return [str(name) for name in data.schema.names]
    return None


def column_of(data: Any, place: int) -> Any:
    """The column at a place of such a table."""
    if is_of(data, "pandas", "DataFrame"):
        return data.iloc[:, place]
    return data.to_series(place) if is_of(data, "polars", "DataFrame") else data.column(place)


def rows_of(data: Any) -> list[Sequence[Any] | None] | None:
    """The items of a list or another sequence, each as its cells, None for one that is no row; None for no sequence."""
    return [_row(item) for item in data] if _is_sequence(data) else None


def cells_of(column: Any, *, name: str = "each column") -> Cells:
    """One column of any kind as cells; refuses, on its shape, what is not one value a record.

    Whole numbers stay exact, beside missing ones too. A table of one column is that column. In a list, an item that is
    a list of one cell is that cell, and one of several is missing; a list of mostly such has another shape.
    """
    names = names_of(column)
    if names is not None and len(names) == 1:
        return cells_of(column_of(column, 0), name=name)
    _check_cells(column, name)
    for package, kind in _SERIES:
        if is_of(column, package, kind):
            return {"pandas": _pandas_cells, "polars": _polars_cells, "pyarrow": _arrow_cells}[package](column)
    cells = None if names is not None else _plain_cells(column, name)
    if cells is None:
        raise InvalidParameter(f"""Expected {name}, which should be a 1d array, to hold one value a record, got another
            shape: records and values would be paired wrongly. Pass one-dimensional columns, one value a record.""")
    return cells


def _check_cells(column: Any, name: str) -> None:
    """Refuse a column that is declared to hold neither numbers nor texts, before any cell of it is looked at."""
    what = declared_as(column)
    if what not in (None, "text", "categories"):
        raise InvalidParameter(f"""Expected {name} to hold numbers or texts, got {what}: they could not be told apart,
            or put in order, by what is public. Convert the column to numbers or texts first.""")


def _plain_cells(column: Any, name: str) -> Cells | None:
    """The cells of a sequence or an array of one column; None if there are several."""
    if not _is_sequence(column):
        array = array_of(column, name=name)
        _check_cells(array, name)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        return array if array.ndim == 1 else None
    items = list(column)
    rows = [_row(item) for item in items]
    if (usual_width(rows) or 0) > 1:
        return None
    return [item if row is None else row[0] if len(row) == 1 else None for item, row in zip(items, rows, strict=True)]


def usual_width(rows: Sequence[Sequence[Any] | None]) -> int | None:
    """How many cells most items of a list hold; None if most are no rows. Of equally many the shorter count."""
    counts = Counter(None if row is None else len(row) for row in rows)
    return max(counts, key=lambda width: (counts[width], 1 if width is None else -width), default=None)


def array_of(data: Any, *, name: str) -> NDArray[Any]:
    """What says itself how to be an array, as one; the masks of a masked one are kept."""
    if isinstance(data, np.ma.MaskedArray):
        return data
    try:
        if not hasattr(data, "__array__"):
            memoryview(data)  # else NumPy would make one type of all cells
        return np.asarray(data)
    except Exception:  # noqa: BLE001, S110  # what is raised below must not remember an error that may quote cells
        pass
    raise InvalidParameter(f"""Expected {name} to be an array, a list or a frame, got {type(data).__name__}: it cannot
        be read as numbers. Convert it to a NumPy array first.""")


def declared_as(column: Any) -> str | None:
    """In words, the type of a column that is declared to hold no numbers; None if it may hold some.

    Examples
    --------
    >>> declared_as(np.array(["a", "b"])), declared_as(np.array(["a", 2], dtype=object)), declared_as(["a", "b"])
    ('text', None, None)
    """
    names = names_of(column)
    if names is not None and len(names) == 1:
        return declared_as(column_of(column, 0))
    if is_of(column, "polars", "Series"):
        return _polars_type(column.dtype)
    if is_of(column, "pyarrow", "ChunkedArray") or is_of(column, "pyarrow", "Array"):
        return _arrow_type(column.type)
    if any(is_of(column, *kind) for kind in _SERIES):
        return _pandas_type(_series(column).dtype)
    if isinstance(column, np.ndarray) and column.dtype.kind not in "fiubO":
        return _KINDS.get(column.dtype.kind, "values of another kind")
    return None


def _is_sequence(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray | memoryview)


def _row(item: Any) -> Sequence[Any] | None:
    """The cells of an item that is a row; None for one that is none, or will not be read."""
    try:
        if type(item) in _SCALARS:
            return None
        if isinstance(item, np.ndarray) or is_of(item, "pandas", "Series"):
            return listed(array_of(item, name="a row")) if np.ndim(item) == 1 else None
        return list(item) if _is_sequence(item) else None
    except Exception:  # noqa: BLE001  # of its own methods, and it may quote a cell
        return None


def _exact(values: NDArray[Any], missing: NDArray[np.bool_]) -> Cells:
    """Whole numbers of which some are missing: never floats, which would merge those above 2^53."""
    if not missing.any():
        return values
    found, places = np.unique(values, return_inverse=True)
    return Coded(found.tolist(), np.where(missing, -1, places.reshape(-1)))


def _series(column: Any) -> Any:
    """A column of pandas, bare arrays of its own among them, as a series or an index."""
    bare = is_of(column, "pandas", "api.extensions.ExtensionArray")
    return sys.modules["pandas"].Series(column, copy=False) if bare else column


def _pandas_cells(series: Any) -> Cells:
    pandas, series = sys.modules["pandas"], _series(series)
    dtype, held = series.dtype, series.array
    if isinstance(dtype, pandas.CategoricalDtype):
        return Coded(held.categories.to_numpy(dtype=object).tolist(), np.asarray(held.codes, dtype=np.int64))
    if isinstance(dtype, np.dtype | pandas.SparseDtype):
        return np.asarray(series)
    if pandas.api.types.is_integer_dtype(dtype):
        return _exact(series.to_numpy(dtype=dtype.numpy_dtype, na_value=0), np.asarray(series.isna(), dtype=bool))
    if pandas.api.types.is_float_dtype(dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        objects: list[Any] = series.to_numpy(dtype=object, na_value=None).tolist()
        return objects
    except Exception:  # noqa: BLE001, S110  # as below
        pass
    return _arrow_cells(sys.modules["pyarrow"].array(held))


def _polars_cells(series: Any) -> Cells:
    whole = series.dtype.is_integer() and "128" not in str(series.dtype)  # of which NumPy has none
    if whole:
        return _exact(series.fill_null(0).to_numpy(), series.is_null().to_numpy())
    if series.dtype.is_float():
        return np.asarray(series.to_numpy())
    objects: list[Any] = series.to_list()
    return objects


def _arrow_cells(column: Any) -> Cells:
    types = sys.modules["pyarrow"].types
    if types.is_integer(column.type):
        return _exact(_arrow_array(column.fill_null(0)), _arrow_array(column.is_null()))
    if types.is_floating(column.type):
        return _arrow_array(column)
    if is_of(column, "pyarrow", "DictionaryArray") and _arrow_type(column.type.value_type) == "text":
        return Coded(_arrow_cells(column.dictionary), _arrow_array(column.indices.fill_null(-1)))  # type: ignore[arg-type]
    try:
        if types.is_string(column.type) or types.is_large_string(column.type):
            return _arrow_texts(column)
        objects: list[Any] = column.to_pylist()
        return objects
    except UnicodeDecodeError:  # which quotes a text that is no UTF-8, as others may have written it
        pass
    raw = column.cast(sys.modules["pyarrow"].large_binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", errors="replace") for cell in raw]  # as in a CSV file


def _arrow_texts(column: Any) -> Coded:
    """Texts as codes into those that occur, so that each of them is decoded once."""
    found = column.dictionary_encode()
    if is_of(column, "pyarrow", "ChunkedArray"):
        found = found.unify_dictionaries()
        parts = found.chunks
        codes = [part.indices.fill_null(-1).to_numpy(zero_copy_only=False) for part in parts]
        texts = parts[0].dictionary.to_pylist() if parts else []
        return Coded(texts, np.concatenate([np.empty(0, dtype=np.int64), *codes]).astype(np.int64))
    codes = found.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(found.dictionary.to_pylist(), np.asarray(codes, dtype=np.int64))


def _arrow_array(column: Any) -> NDArray[Any]:
    chunked = is_of(column, "pyarrow", "ChunkedArray")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))


def _pandas_type(dtype: Any) -> str | None:
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.SparseDtype):
        dtype = dtype.subtype
    if isinstance(dtype, np.dtype):
        return None if dtype.kind in "fiubO" else _KINDS.get(dtype.kind, "values of another kind")
    if isinstance(dtype, pandas.CategoricalDtype):
        return "categories"
    if isinstance(dtype, pandas.ArrowDtype):
        return _arrow_type(dtype.pyarrow_dtype)
    types = pandas.api.types
    if types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype):
        return None
    if types.is_string_dtype(dtype):
        return "text"
    return "dates" if types.is_datetime64_any_dtype(dtype) else "values of another kind"


def _polars_type(dtype: Any) -> str | None:
    polars = sys.modules["polars"]
    if dtype.is_numeric() or dtype in (polars.Boolean, polars.Null, polars.Object):
        return None
    if dtype in (polars.String, polars.Binary):
        return "text"
    if dtype in (polars.Categorical, polars.Enum):
        return "categories"
    if dtype in (polars.Date, polars.Datetime):
        return "dates"
    return "spans of time" if dtype.is_temporal() else "values of another kind"


def _arrow_type(dtype: Any) -> str | None:
    types = sys.modules["pyarrow"].types
    if any(test(dtype) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)):
        return None
    if types.is_null(dtype):
        return None
    if str(dtype).split("[")[0] in _ARROW_TEXTS:
        return "text"
    if types.is_dictionary(dtype):
        held = _arrow_type(dtype.value_type)
        return "categories" if held in (None, "text") else held
    if types.is_date(dtype) or types.is_timestamp(dtype):
        return "dates"
    return "spans of time" if types.is_temporal(dtype) else "values of another kind"
