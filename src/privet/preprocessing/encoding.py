"""Rows of bounded features and targets, by public facts alone: each of its own record only, a row of norm at most 1."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet.arrays import IntArray, Vector
from privet.data.cells import Codes, Numbers, Reader
from privet.data.columns import cells_of
from privet.data.tables import header, is_table, read
from privet.data.times import Times
from privet.errors import InvalidParameter
from privet.preprocessing.dates import Date
from privet.preprocessing.scaling import scaling_from
from privet.preprocessing.schema import Category, Column, Number, Schema, Target

Slot = tuple[int, IntArray, Vector, IntArray]
Value = Callable[[Column, Vector], Vector]


def row_scale(columns: int) -> float:
    """The largest float s with (columns + 1)·s² ≤ 1, exactly: rows of so many bounded columns and a 1 have norm ≤ 1."""
    scale = math.nextafter(1.0 / math.sqrt(columns + 1), 1.0)
    while Fraction(scale) ** 2 * (columns + 1) > 1:
        scale = math.nextafter(scale, 0.0)
    return scale


def shares_of(schema: Schema) -> int:
    """How many columns of norm at most 1 a row consists of; those of a date are several. The constant is one more."""
    return sum(column.shares if isinstance(column, Date) else 1 for column in schema.columns.values())


def feature_names(schema: Schema) -> list[str]:
    """Names of the encoded features, in order; public."""
    names: list[str] = []
    for name, column in schema.columns.items():
        if isinstance(column, Category):
            names += [f"{name}={value}" for value in column.values or ()]
        else:
            names += [name] if isinstance(column, Number) else [name + part for part in column.features]
        names += [f"{name} is missing"] if column.missing == "indicator" else []
    return [*names, "(constant)"]


def encode(schema: Schema, table: Any, *, as_csr: bool = False) -> Any:
    """The table as rows of norm at most 1: (records, features) float64, dense or CSR. Private."""
    scale = row_scale(shares_of(schema))
    check_known(schema)
    columns = read(table, {name: reader_of(column) for name, column in schema.columns.items()})
    count, width = len(next(iter(columns.values()))), len(feature_names(schema))
    slots = _slots(schema, columns, lambda column, x: _scaled(column, x) * scale)
    if as_csr:
        return _csr(list(slots), count, width, scale)
    rows = placed(np.zeros((count, width)), slots, missing=0.0)
    rows[:, -1] = scale
    return rows


def feature_bounds(schema: Schema) -> tuple[Vector, Vector]:
    """The public ranges of `features`."""
    check_known(schema)
    ends: list[tuple[float, float]] = []
    for column in schema.columns.values():
        own = list(column.bounds) if isinstance(column, Date) else []
        own += [number_ends(column)] if isinstance(column, Number) else []
        ends += own + [(0.0, 1.0)] * (width_of(column) - len(own))
    low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    return low, high


def check_known(schema: Schema) -> None:
    """Refuse a schema that says of some column only its kind."""
    unknown = [name for name in schema.unknown if name in schema.columns]
    if unknown:
        raise InvalidParameter(
            f"Expected a range or code book for column {unknown[0]!r}, got its kind alone: it would have to be read "
            "off the rows. Write range = [low, high] or values = [...], or learn them privately with learn_schema."
        )


def check_extra(schema: Schema, table: Any) -> None:
    """Refuse a table with columns that the schema does not mention."""
    present = header(table)
    if present is None:
        return
    target = {schema.target.column} if schema.target else set()
    extra = [name for name in present if name not in {*schema.columns, *schema.ignored, *target}]
    if extra:
        raise InvalidParameter(
            f"Expected only columns that the schema mentions, got {extra[0]!r} too: it may be one that was renamed. "
            "List it under ignored, or use extra='ignore'."
        )


def reader_of(column: Column) -> Reader:
    """How cells of a column are read."""
    if isinstance(column, Date):
        return Times(column.format)
    return Numbers() if isinstance(column, Number) else Codes(column.values or ())


def placed(rows: Vector, slots: Iterable[Slot], *, missing: float) -> Vector:
    """The rows with each column's features in their places."""
    for place, places, values, absent in slots:
        held = np.flatnonzero(places >= 0)
        rows[held, places[held]] = values[held]
        if absent.size:  # else there may be no such place: a category of which no name is known, at the end
            rows[absent, place] = missing
    return rows


def _slots(schema: Schema, columns: dict[str, NDArray[Any]], value: Value) -> Iterator[Slot]:
    """One column after the other; what is done with is dropped, so that the table is not in memory twice."""
    place = 0
    for name, column in schema.columns.items():
        yield from slots_of(column, columns.pop(name), place, value)
        place += width_of(column)


def width_of(column: Column) -> int:
    """How many features a column is."""
    own = len(column.features) if isinstance(column, Date) else 1
    return (len(column.values or ()) if isinstance(column, Category) else own) + (column.missing == "indicator")


def slots_of(column: Column, read_as: NDArray[Any], place: int, value: Value) -> Iterator[Slot]:
    """One slot a share: where it begins; each record's feature of it that is not 0, its place (-1: none) and value;
    who has none.
    """
    absent = place + width_of(column) - 1 if column.missing == "indicator" else -1
    if not isinstance(column, Date):
        yield _slot(column, read_as, place, absent, value)
        return
    for at, ends, values in column.columns(read_as):
        if ends is None:
            codes = np.where(np.isnan(values), -1, values).astype(np.int64)
            yield _slot(Category(), codes, place + at, absent, value)
        else:
            yield _slot(Number(low=ends[0], high=ends[1]), values, place + at, absent, value)
        absent = -1  # which only the first is to set


def _slot(column: Number | Category, read_as: NDArray[Any], place: int, absent: int, value: Value) -> Slot:
    one = value(Category(values=("1",)), np.ones(1))[0]
    if isinstance(column, Category):
        none = np.empty(0, dtype=np.int64)
        return place, np.where(read_as >= 0, read_as + place, absent), np.full(len(read_as), one), none
    low, high = ends_of(column)
    found = np.clip(read_as, low, high)
    values = value(column, np.log1p(found) if column.log else found)
    gone = np.isnan(found)
    return place, np.where(gone, absent, place), np.where(gone, one, values), np.flatnonzero(gone)


def _scaled(column: Column, values: Vector) -> Vector:
    """Values of one column in [-1, 1], missing ones 0: by the scaler that the estimators use."""
    if not isinstance(column, Number):
        return values
    low, high = number_ends(column)
    scaling = scaling_from((low, high), 1, intercept=False)
    return scaling.features(np.array(values, dtype=np.float64)[:, None])[:, 0]


def number_ends(column: Number | Target) -> tuple[float, float]:
    """The range of a number as it is encoded: of log1p of it, where the schema says log."""
    low, high = ends_of(column)
    return (math.log1p(low), math.log1p(high)) if column.log else (low, high)


def ends_of(fact: Number | Target) -> tuple[float, float]:
    """The range of a column that is known to have one."""
    if fact.low is None or fact.high is None:
        raise InvalidParameter(
            "Expected a column with a range, got one without: it would have to be read off the rows. "
            "Write range = [low, high], or learn it privately with learn_schema."
        )
    return fact.low, fact.high


def _csr(columns: Sequence[Slot], count: int, width: int, scale: float) -> sparse.csr_array:
    slots = len(columns) + 1
    places, values = np.empty((count, slots), dtype=np.int64), np.empty((count, slots))
    for slot, (_, column_places, column_values, _) in enumerate(columns):
        places[:, slot], values[:, slot] = column_places, column_values
    places[:, -1], values[:, -1] = width - 1, scale
    held = places >= 0
    starts = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
    return sparse.csr_array((values[held], places[held], starts), shape=(count, width))


def encode_target(target: Target, data: Any) -> Vector:
    """Labels as class indices 0, 1, …; numbers and counts clipped to their range, numbers after log1p if so. Private.

    What is missing, unlisted or unreadable becomes NaN, whose record the losses zero out; nothing is raised
    and nothing is said.

    Parameters
    ----------
    target : public facts, with values or range
    data : a table that holds the target's column, or the column itself

    Examples
    --------
    >>> encode_target(Target(column="y", kind="label", values=("no", "yes")), ["yes", "no", "Jane Doe"])
    array([ 1.,  0., nan])
    >>> encode_target(Target(column="y", kind="number", low=0, high=10), {"y": [0, 5, 20]})
    array([ 0.,  5., 10.])
    """
    _check_target(target)
    reader = _target_reader(target)
    found = read(data, {target.column: reader})[target.column] if is_table(data) else reader.read(cells_of(data))
    if target.kind == "label":
        return np.where(found >= 0, found, np.nan)
    low, high = ends_of(target)
    if target.kind == "number":
        values = np.clip(found, low, high)
        return np.asarray(np.log1p(values) if target.log else values)
    whole = (found >= 0) & (found == np.floor(found))
    return np.where(whole, np.minimum(found, np.floor(high)), np.nan)


def decode_target(target: Target, predictions: Any) -> NDArray[Any]:
    """Class indices as labels, numbers kept to the public range; counts stay as they are.

    Examples
    --------
    >>> decode_target(Target(column="y", kind="label", values=("no", "yes")), [1, 0]).tolist()
    ['yes', 'no']
    >>> decode_target(Target(column="y", kind="number", low=0, high=10), [5.0, 13.0])
    array([ 5., 10.])
    """
    _check_target(target)
    values = np.asarray(predictions)
    if target.kind == "label":
        return np.array(target.classes, dtype=object)[values.astype(np.int64)]
    if target.kind == "count":
        return values.astype(np.float64)
    low, high = ends_of(target)
    numbers = values.astype(np.float64)
    with np.errstate(over="ignore"):
        return np.clip(np.expm1(numbers) if target.log else numbers, low, high)


def _target_reader(target: Target) -> Reader:
    if target.kind != "label":
        return Numbers()
    return Codes(target.values or (), other=-1 if target.other is None else len(target.classes) - 1)


def _check_target(target: Target) -> None:
    if not isinstance(target, Target):
        raise InvalidParameter(
            f"Expected a Target, got {type(target).__name__}: nothing says how to read the target. "
            'Declare it in the schema, e.g. Target(column="y", kind="label", values=("no", "yes")).'
        )
    if not target.known:
        what = "its list of values" if target.kind == "label" else "its range"
        raise InvalidParameter(
            f"Expected the target {target.column!r} with {what}, got its kind alone: it would have to be read off the "
            "rows. Write values = [...] or range = [low, high], or learn them privately with learn_schema."
        )
