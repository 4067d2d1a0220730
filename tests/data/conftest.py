"""Cells that nobody expected, and tables of every kind with one of them in it."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

CELLS: dict[str, Any] = {
    "name": "Jane Doe",
    "number as text": "3",
    "blank": " ",
    "bytes": b"x",
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "huge": 10**400,
    "huge below 0": -(10**400),
    "huge for a loss": 10**308,
    "Timestamp": pd.Timestamp("2020-01-01"),
    "date": dt.date(2020, 1, 1),
    "datetime64": np.datetime64("2020-01-01"),
    "timedelta64": np.timedelta64(3, "D"),
    "dict": {},
    "list": [1, 2],
    "tuple": (1, 2),
    "array": np.array([1.0, 2.0]),
    "complex": 1j,
    "infinite": math.inf,
    "NaN": math.nan,
    "Decimal": Decimal("3"),
    "signalling": Decimal("sNaN"),
    "Fraction": Fraction(1, 3),
    "True": True,
    "NumPy's False": np.False_,
    "object": object(),
}
"""Each is judged alone: as a number or a label if it is one, else as missing."""


def _raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError("Jane Doe")


_METHODS = (
    "__float__", "__int__", "__index__", "__complex__", "__abs__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
    "__hash__", "__str__", "__bool__", "__len__", "__iter__", "__getitem__", "__contains__", "__array__",
    "strip", "decode", "get", "keys", "is_integer", "to_integral_value",
)  # fmt: skip


def _hostile(base: type, *given: Any) -> Any:
    """A value of a kind of `base` whose every method raises, with a cell in the message."""
    methods: dict[str, Any] = dict.fromkeys(_METHODS, _raises)
    return type("Hostile", (base,), {**methods, "__class__": property(_raises)})(*given)


HOSTILE: dict[str, Any] = {
    "object that raises": _hostile(object),
    "text that raises": _hostile(str, "Jane Doe"),
    "bytes that raise": _hostile(bytes, b"Jane Doe"),
    "int that raises": _hostile(int, 3),
    "float that raises": _hostile(float, 3.5),
    "list that raises": _hostile(list, [1, 2, 3]),
    "dict that raises": _hostile(dict, {"age": 3}),
    "Decimal that raises": _hostile(Decimal, "3.5"),
    "Fraction that raises": _hostile(Fraction, 1, 3),
}
"""Each counts as missing."""

COLUMNS = 3


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> Any:
    """Each of them, one after the other."""
    return HOSTILE[request.param]


@pytest.fixture(scope="session")
def zoo() -> list[Any]:
    """All odd cells."""
    return [*CELLS.values(), *HOSTILE.values()]


@pytest.fixture(params=CELLS.values(), ids=list(CELLS))
def odd(request: pytest.FixtureRequest) -> Any:
    """Each of them, one after the other."""
    return request.param


@pytest.fixture
def kinds_of_table() -> Any:
    """A function: the same rows of cells in every kind of table that can hold anything."""
    return _kinds_of_table


@pytest.fixture
def kinds_of_numbers() -> Any:
    """A function: the same rows of numbers and None in every kind of table that declares numbers."""
    return _kinds_of_numbers


def _kinds_of_table(cells: list[list[Any]]) -> dict[str, Any]:
    """The same cells in every kind of table that can hold anything."""
    array = np.empty((len(cells), COLUMNS), dtype=object)
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            array[i, j] = cell
    columns = {f"x{j}": array[:, j].tolist() for j in range(COLUMNS)}
    return {
        "list of lists": cells,
        "tuple of tuples": tuple(tuple(row) for row in cells),
        "list of arrays": [array[i] for i in range(len(cells))],
        "array": array,
        "array, Fortran": np.asfortranarray(array),
        "pandas": pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()}),
        "polars": pl.DataFrame([pl.Series(name, column, dtype=pl.Object) for name, column in columns.items()]),
    }


def _kinds_of_numbers(cells: list[list[Any]]) -> dict[str, Any]:
    """Numbers and None in every kind of table that declares numbers."""
    columns = {f"x{j}": [row[j] for row in cells] for j in range(COLUMNS)}
    types = {"x0": "Float64", "x1": "Int64", "x2": "boolean"}
    held = {**columns, "x2": [None if cell is None else bool(cell) for cell in columns["x2"]]}
    nullable = pd.DataFrame({name: pd.array(column, dtype=types[name]) for name, column in held.items()})
    arrow = {"x0": pa.float64(), "x1": pa.int64(), "x2": pa.bool_()}
    table = pa.table({name: pa.array(column, type=arrow[name]) for name, column in held.items()})
    return {
        "pandas, nullable": nullable,
        "pandas, arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(held, schema={"x0": pl.Float64, "x1": pl.Int64, "x2": pl.Boolean}),
        "pyarrow": table,
        "pyarrow batch": table.to_batches()[0],
        "masked array": np.ma.array(
            [[math.pi if cell is None else cell for cell in row] for row in cells],
            mask=[[cell is None for cell in row] for row in cells],
        ),
    }
