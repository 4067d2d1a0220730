"""Dates and times as seconds, as clocks showed them. A cell that is none counts as missing; nothing is said of it."""

import datetime as dt
import math
import sys
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Cells, Reader
from privet.data.columns import cells_of, column_of, declared_as, is_of, names_of
from privet.errors import InvalidParameter

_EPOCH = dt.datetime(1970, 1, 1)
_SECOND = dt.timedelta(seconds=1)
_UNITS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
_FINER = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_NEVER = np.iinfo(np.int64).min  # what NumPy and pandas keep for a date that is not there
_FARTHEST = 10**6  # years from 1970
_CLOCKS = (-62_135_500_000, 253_402_200_000)  # seconds between which Python's clocks go: the years 1 to 9999


def seconds_of(cell: Any, form: str | None = None) -> float:
    """One cell as whole seconds since 1970, by the clock that it was written by; NaN if it is no date.

    A zone or an offset is dropped: 10:00+02:00 is ten o'clock. A text is read by `form`, in the language of
    `datetime.strptime`, or without one by ISO 8601.

    Examples
    --------
    >>> [seconds_of(cell) for cell in (dt.date(1970, 1, 2), "1970-01-01T00:01+02:00", "Jane Doe", 7)]
    [86400.0, 60.0, nan, nan]
    >>> seconds_of("2.1.1970", "%d.%m.%Y")
    86400.0
    """
    try:
        if isinstance(cell, bytes):
            cell = cell.decode("utf-8", errors="replace")
        if isinstance(cell, str):
            text = cell.strip()
            cell = dt.datetime.fromisoformat(text) if form is None else dt.datetime.strptime(text, form)
        if isinstance(cell, np.datetime64):
            return float(seconds_in(np.array([cell]))[0])
        if isinstance(cell, dt.datetime):
            return float((cell.replace(tzinfo=None) - _EPOCH) // _SECOND)
        return float((cell - _EPOCH.date()) // _SECOND) if isinstance(cell, dt.date) else math.nan
    except Exception:  # noqa: BLE001  # a cell's own methods may raise anything, and quote it
        return math.nan


def seconds_in(dates: NDArray[Any]) -> NDArray[np.float64]:
    """NumPy's dates as whole seconds since 1970; NaN for one that is not there.

    Examples
    --------
    >>> seconds_in(np.array(["1970-01-02", "NaT"], dtype="M8[D]"))
    array([86400.,    nan])
    """
    unit, many = np.datetime_data(dates.dtype)
    held = dates.astype(f"M8[{unit}]").view(np.int64) if many == 1 else _single(dates, unit, many)
    gone = held == _NEVER
    if unit in _FINER:
        found = (held // _FINER[unit]).astype(np.float64)
    elif unit in _UNITS:
        found = held.astype(np.float64) * _UNITS[unit]
    elif unit in ("Y", "M"):  # of different lengths
        far = _FARTHEST * (1 if unit == "Y" else 12)
        found = np.clip(held, -far, far).view(f"M8[{unit}]").astype("M8[s]").view(np.int64).astype(np.float64)
    else:  # no unit: nothing is there
        found, gone = np.zeros(len(held)), np.ones(len(held), dtype=bool)
    return np.where(gone, np.nan, found)


def _single(dates: NDArray[Any], unit: str, many: int) -> NDArray[np.int64]:
    """Dates in steps of several units, in single ones; what is too far away stays at the end of what there is."""
    held = dates.view(np.int64)
    most = np.iinfo(np.int64).max // many
    return np.where(held == _NEVER, _NEVER, np.clip(held, -most, most) * many)


class Times(Reader):
    """Cells as whole seconds since 1970, by the clock that they were written by; NaN for all that is no date.

    Examples
    --------
    >>> Times().read(["1970-01-01 00:00:03.5", None, dt.date(1970, 1, 2)])
    array([3.00e+00,      nan, 8.64e+04])
    """

    dtype = np.dtype(np.float64)
    missing = math.nan

    def __init__(self, form: str | None = None) -> None:
        self._form = form

    def one(self, cell: Any) -> float:
        return seconds_of(cell, self._form)

    def read(self, cells: Cells) -> NDArray[Any]:
        if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
            return seconds_in(np.asarray(np.ma.filled(cells, np.datetime64("NaT"))))
        return super().read(cells)

    def _plain(self, cells: NDArray[Any]) -> NDArray[Any]:
        return np.full(len(cells), np.nan)

    def column(self, column: Any, *, name: str) -> NDArray[Any]:
        """One column of any kind. Private. Refuses, by what it is declared to hold, one that can have no dates."""
        names = names_of(column)
        if names is not None and len(names) == 1:
            return self.column(column_of(column, 0), name=name)
        if _is_numbers(column):
            raise InvalidParameter(f"""Expected {name} to hold dates, as the schema says, got numbers: nothing says
                since when they count, or in which unit. Convert the column to dates, or declare kind = "number".""")
        if declared_as(column) != "dates" or (isinstance(column, np.ndarray) and column.ndim != 1):
            one_column = isinstance(column, np.ndarray) and column.ndim == 2 and column.shape[1] == 1
            return self.column(column[:, 0], name=name) if one_column else self.read(cells_of(column, name=name))
        dates, zone = _dates(column)
        found = self.read(dates)
        return found if zone is None else by_the_clock(found, _zone(zone, name))


def read_column(reader: Reader, column: Any, *, name: str) -> NDArray[Any]:
    """One column of any kind by its reader; refuses what is declared to hold nothing for it. Private.

    Examples
    --------
    >>> read_column(Times(), np.array(["1970-01-02"], dtype="M8[D]"), name="born")
    array([86400.])
    """
    return reader.column(column, name=name) if isinstance(reader, Times) else reader.read(cells_of(column, name=name))


def by_the_clock(seconds: NDArray[np.float64], zone: dt.tzinfo) -> NDArray[np.float64]:
    """Seconds since 1970 in Greenwich as those that a clock in a zone shows; each by itself. Private.

    Where Python's calendar ends, the clock at its end is taken: libraries raise there, and so would tell.

    Examples
    --------
    >>> by_the_clock(np.array([0.0, np.nan, 2.0**60]), dt.timezone(dt.timedelta(hours=2)))[:2]
    array([7200.,   nan])
    """
    found = np.isfinite(seconds)
    held, places = np.unique(np.clip(seconds[found], *_CLOCKS), return_inverse=True)
    offsets = [_offset(dt.datetime.fromtimestamp(each, zone)) for each in held.tolist()]
    moved = seconds.copy()
    moved[found] += np.array(offsets, dtype=np.float64)[places.reshape(-1)]
    return moved


def _offset(time: dt.datetime) -> float:
    offset = time.utcoffset()
    return 0.0 if offset is None else float(offset // _SECOND)


def _dates(column: Any) -> tuple[NDArray[Any], Any]:
    """A column that is declared to hold dates as NumPy's, in Greenwich if it has a zone, and that zone."""
    if isinstance(column, np.ndarray):
        return column, None
    if is_of(column, "polars", "Series"):
        unit = getattr(column.dtype, "time_unit", "D")
        whole = column.to_physical().cast(sys.modules["polars"].Int64).fill_null(_NEVER)
        return whole.to_numpy().view(f"M8[{unit}]"), getattr(column.dtype, "time_zone", None)
    if is_of(column, "pyarrow", "ChunkedArray") or is_of(column, "pyarrow", "Array"):
        return _arrow_dates(column)
    pandas = sys.modules["pandas"]
    held = getattr(column, "array", column)
    if isinstance(held.dtype, pandas.ArrowDtype):
        return _arrow_dates(sys.modules["pyarrow"].array(held))
    if isinstance(held.dtype, pandas.DatetimeTZDtype):
        return np.asarray(held.tz_convert(None)), held.dtype.tz
    return np.asarray(held), None


def _arrow_dates(column: Any) -> tuple[NDArray[Any], Any]:
    arrow = sys.modules["pyarrow"]
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    unit = "D" if arrow.types.is_date32(kind) else "ms" if arrow.types.is_date64(kind) else kind.unit
    whole = column.cast(arrow.int32()) if unit == "D" else column
    held = whole.cast(arrow.int64()).fill_null(_NEVER)
    chunked = is_of(held, "pyarrow", "ChunkedArray")
    found = np.array(held.to_numpy() if chunked else held.to_numpy(zero_copy_only=False), dtype=np.int64)
    return found.view(f"M8[{unit}]"), getattr(kind, "tz", None)


def _zone(zone: Any, name: str) -> dt.tzinfo:
    """A zone by its name, or by its offset such as +02:00; declared, so public."""
    if isinstance(zone, dt.tzinfo):
        return zone
    for known in (ZoneInfo, lambda text: dt.datetime.strptime(text, "%z").tzinfo):
        try:
            return known(str(zone))  # type: ignore[no-any-return, operator]
        except Exception:  # noqa: BLE001, S112  # of several kinds, where it is not known
            continue
    raise InvalidParameter(f"""Expected {name} to have a time zone that this machine knows, got {zone!r}: what its
        clocks showed is not known. Install tzdata, or convert the column to another zone.""")


def _is_numbers(column: Any) -> bool:
    """Whether a column is declared to hold numbers, or truth values."""
    if is_of(column, "polars", "Series"):
        return bool(column.dtype.is_numeric() or column.dtype == sys.modules["polars"].Boolean)
    if is_of(column, "pyarrow", "ChunkedArray") or is_of(column, "pyarrow", "Array"):
        types = sys.modules["pyarrow"].types
        tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        return any(test(column.type) for test in tests)
    if hasattr(column, "dtype") and "pandas" in sys.modules:
        types = sys.modules["pandas"].api.types
        return bool(types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype))
    return isinstance(column, np.ndarray) and column.dtype.kind in "fiub"
