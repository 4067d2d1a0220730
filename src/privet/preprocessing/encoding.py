"""Rows of bounded features, by public facts alone: each depends on its own record only, and its norm is at most 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet.data.cells import Codes, Numbers, Reader
from privet.data.tables import header, read
from privet.errors import InvalidParameter
from privet.preprocessing.schema import Category, Column, Number, Schema, Target

__all__ = ["check_extra", "check_known", "encode", "ends_of", "feature_names", "from_unit", "row_scale", "to_unit"]

Floats = NDArray[np.float64]
Slot = tuple[NDArray[np.int64], Floats]


def to_unit(values: Floats, *, low: float, high: float, log: bool = False) -> Floats:
    """Numbers in [low, high] to [-1, 1], after log1p if `log`; what lies outside is clipped, NaN stays NaN.

    Examples
    --------
    >>> to_unit(np.array([-5.0, 0.0, 50.0, 1e300, np.nan]), low=0.0, high=100.0)
    array([-1., -1.,  0.,  1., nan])
    """
    values = np.clip(values, low, high)
    if log:
        values, low, high = np.log1p(values), math.log1p(low), math.log1p(high)
    return np.clip((values - (low / 2 + high / 2)) / (high / 2 - low / 2), -1.0, 1.0)


def from_unit(units: Floats, *, low: float, high: float, log: bool = False) -> Floats:
    """The numbers that `to_unit` takes to `units`; units outside [-1, 1] are clipped to it.

    Examples
    --------
    >>> from_unit(np.array([-1.0, 0.0, 7.0]), low=0.0, high=100.0)
    array([  0.,  50., 100.])
    """
    bottom, top = (math.log1p(low), math.log1p(high)) if log else (low, high)
    values = np.clip(units, -1.0, 1.0) * (top / 2 - bottom / 2) + (bottom / 2 + top / 2)
    return np.clip(np.expm1(values) if log else values, low, high)


def row_scale(columns: int) -> float:
    """The largest float s with (columns + 1)·s² ≤ 1, exactly: rows of so many bounded columns and a 1 have norm ≤ 1."""
    scale = math.nextafter(1.0 / math.sqrt(columns + 1), 1.0)
    while Fraction(scale) ** 2 * (columns + 1) > 1:
        scale = math.nextafter(scale, 0.0)
    return scale


def feature_names(schema: Schema) -> list[str]:
    """Names of the encoded features, in order; public."""
    names: list[str] = []
    for name, column in schema.columns.items():
        names += [name] if isinstance(column, Number) else [f"{name}={value}" for value in column.values or ()]
        names += [f"{name} is missing"] if column.missing == "indicator" else []
    return [*names, "(constant)"]


def encode(schema: Schema, table: Any, *, as_csr: bool = False) -> Any:
    """The table as rows of norm at most 1: (records, features) float64, dense or CSR. Private."""
    check_known(schema, schema.columns)
    scale = row_scale(len(schema.columns))
    columns = read(table, {name: _reader(column) for name, column in schema.columns.items()})
    count, width = len(next(iter(columns.values()))), len(feature_names(schema))
    if as_csr:
        return _csr(list(_slots(schema, columns, scale)), count, width, scale)
    rows = np.zeros((count, width))
    for places, values in _slots(schema, columns, scale):
        held = np.flatnonzero(places >= 0)
        rows[held, places[held]] = values[held]
    rows[:, -1] = scale
    return rows


def check_known(schema: Schema, names: Any) -> None:
    """Refuse a schema that says of some column only its kind."""
    unknown = [name for name in schema.unknown if name in names]
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


def _reader(column: Column) -> Reader:
    return Numbers() if isinstance(column, Number) else Codes(column.values or ())


def _slots(schema: Schema, columns: dict[str, NDArray[Any]], scale: float) -> Iterator[Slot]:
    """One column after the other; what is done with is dropped, so that the table is not in memory twice."""
    place = 0
    for name, column in schema.columns.items():
        yield _slot(column, columns.pop(name), place, scale)
        place += _width(column)


def _width(column: Column) -> int:
    return (1 if isinstance(column, Number) else len(column.values or ())) + (column.missing == "indicator")


def _slot(column: Column, read_as: NDArray[Any], place: int, scale: float) -> Slot:
    """Each record's one feature of this column that is not zero: its place (-1: none) and its value."""
    absent = place + _width(column) - 1 if column.missing == "indicator" else -1
    if isinstance(column, Category):
        return np.where(read_as >= 0, read_as + place, absent), np.full(len(read_as), scale)
    low, high = ends_of(column)
    units = to_unit(read_as, low=low, high=high, log=column.log)
    here = ~np.isnan(units)
    return np.where(here, place, absent), np.where(here, units, 1.0) * scale


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
    for slot, (column_places, column_values) in enumerate(columns):
        places[:, slot], values[:, slot] = column_places, column_values
    places[:, -1], values[:, -1] = width - 1, scale
    held = places >= 0
    starts = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
    return sparse.csr_array((values[held], places[held], starts), shape=(count, width))
