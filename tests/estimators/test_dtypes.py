"""Columns of every declared type: read as the plain column of the same values, or refused by that type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privet.errors import InvalidParameter
from privet.estimators import fit_table
from privet.preprocessing import Category, Date, Number, Schema, TableEncoder, Target
from privet.randomness import fixed_seed_invalidates_guarantee

ROWS = 60
BERLIN = ZoneInfo("Europe/Berlin")
PLAIN: dict[str, list[Any]] = {
    "number": [float(i % 7) if i % 9 else None for i in range(ROWS)],
    "whole": [i % 7 if i % 9 else None for i in range(ROWS)],
    "truth": [i % 3 == 0 if i % 9 else None for i in range(ROWS)],
    "name": [("ann", "bob", "3")[i % 3] if i % 9 else None for i in range(ROWS)],
    "time": [dt.datetime(2020, 1, 1 + i % 28, i % 24, 30) if i % 9 else None for i in range(ROWS)],
    "day": [dt.date(2020, 1 + i % 12, 1 + i % 28) if i % 9 else None for i in range(ROWS)],
}
FACTS: dict[str, Number | Category | Date] = {
    "number": Number(low=0, high=8),
    "whole": Number(low=0, high=8),
    "truth": Category(values=("True", "False")),
    "name": Category(values=("ann", "bob", "3")),
    "time": Date(low="2020-01-01", high="2020-12-31", parts=("weekday", "hour"), missing="indicator"),
    "day": Date(low="2020-01-01", high="2020-12-31", parts=("season", "month")),
}
ZONED = pa.timestamp("us", "Europe/Berlin")
IN_BERLIN = [each and each.replace(tzinfo=BERLIN) for each in PLAIN["time"]]


def pandas_(what: str, dtype: Any) -> Any:
    return pd.Series(PLAIN[what], dtype=dtype)


def arrow(what: str, kind: Any, cells: Any = None) -> Any:
    return pa.array(PLAIN[what] if cells is None else cells, type=kind)


def polars_(what: str, dtype: Any) -> Any:
    return pl.Series(PLAIN[what], dtype=dtype)


DECIMALS = [None if x is None else Decimal(str(x)) for x in PLAIN["number"]]
TEXTS = {what: [None if x is None else str(x) for x in PLAIN[what]] for what in PLAIN}
MIXED = [str(x) if i % 2 and x is not None else x for i, x in enumerate(PLAIN["whole"])]
HALF = [None if x is None else np.float16(x) for x in PLAIN["number"]]
HALVES = [pa.array(half).dictionary_encode() for half in (PLAIN["name"][:31], PLAIN["name"][31:])]
TAKEN: dict[str, tuple[str, Any]] = {
    "pandas float64": ("number", lambda: pandas_("number", "float64")),
    "pandas float32": ("number", lambda: pandas_("number", "float32")),
    "pandas Float64": ("number", lambda: pandas_("number", "Float64")),
    "pandas Int64": ("whole", lambda: pandas_("whole", "Int64")),
    "pandas UInt8": ("whole", lambda: pandas_("whole", "UInt8")),
    "pandas sparse": ("number", lambda: pandas_("number", "Sparse[float]")),
    "pandas int64[pyarrow]": ("whole", lambda: pandas_("whole", "int64[pyarrow]")),
    "pandas double[pyarrow]": ("number", lambda: pandas_("number", "double[pyarrow]")),
    "pandas decimal[pyarrow]": ("number", lambda: pd.Series(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(5, 1)))),
    "pandas objects, Decimal": ("number", lambda: pd.Series(DECIMALS, dtype=object)),
    "pandas objects, mixed": ("whole", lambda: pd.Series(MIXED, dtype=object)),
    "pandas category of numbers": ("whole", lambda: pandas_("whole", "Int64").astype("category")),
    "pandas boolean": ("truth", lambda: pandas_("truth", "boolean")),
    "pandas bool[pyarrow]": ("truth", lambda: pandas_("truth", "bool[pyarrow]")),
    "pandas objects, truth": ("truth", lambda: pandas_("truth", object)),
    "pandas category of truth": ("truth", lambda: pandas_("truth", "boolean").astype("category")),
    "pandas string": ("name", lambda: pandas_("name", "string")),
    "pandas string[pyarrow]": ("name", lambda: pandas_("name", "string[pyarrow]")),
    "pandas str": ("name", lambda: pandas_("name", "str")),
    "pandas objects, text": ("name", lambda: pandas_("name", object)),
    "pandas category": ("name", lambda: pandas_("name", "category")),
    "pandas large_string": ("name", lambda: pd.Series(PLAIN["name"], dtype=pd.ArrowDtype(pa.large_string()))),
    "pandas datetime64[ns]": ("time", lambda: pandas_("time", "datetime64[ns]")),
    "pandas datetime64[s]": ("time", lambda: pandas_("time", "datetime64[s]")),
    "pandas, with a zone": ("time", lambda: pandas_("time", "datetime64[us]").dt.tz_localize("Europe/Berlin")),
    "pandas timestamp[pyarrow]": ("time", lambda: pandas_("time", pd.ArrowDtype(pa.timestamp("us")))),
    "pandas zone[pyarrow]": ("time", lambda: pd.Series(IN_BERLIN, dtype=pd.ArrowDtype(ZONED))),
    "pandas objects, dates": ("day", lambda: pandas_("day", object)),
    "pandas category of dates": ("time", lambda: pandas_("time", "datetime64[us]").astype("category")),
    "pandas date32[pyarrow]": ("day", lambda: pandas_("day", pd.ArrowDtype(pa.date32()))),
    "pandas texts of times": ("time", lambda: pd.Series(TEXTS["time"], dtype="string")),
    "polars Float64": ("number", lambda: polars_("number", pl.Float64)),
    "polars Int64": ("whole", lambda: polars_("whole", pl.Int64)),
    "polars UInt8": ("whole", lambda: polars_("whole", pl.UInt8)),
    "polars Int128": ("whole", lambda: polars_("whole", pl.Int128)),
    "polars Decimal": ("number", lambda: pl.Series(DECIMALS, dtype=pl.Decimal(5, 1))),
    "polars Boolean": ("truth", lambda: polars_("truth", pl.Boolean)),
    "polars String": ("name", lambda: polars_("name", pl.String)),
    "polars Categorical": ("name", lambda: polars_("name", pl.Categorical)),
    "polars Enum": ("name", lambda: polars_("name", pl.Enum(["ann", "bob", "3"]))),
    "polars Binary": ("name", lambda: pl.Series([x and x.encode() for x in PLAIN["name"]], dtype=pl.Binary)),
    "polars Object": ("whole", lambda: pl.Series(MIXED, dtype=pl.Object)),
    "polars Date": ("day", lambda: polars_("day", pl.Date)),
    "polars Datetime": ("time", lambda: polars_("time", pl.Datetime("ms"))),
    "polars, with a zone": ("time", lambda: polars_("time", pl.Datetime("us")).dt.replace_time_zone("Europe/Berlin")),
    "pyarrow double": ("number", lambda: arrow("number", pa.float64())),
    "pyarrow halffloat": ("number", lambda: arrow("number", pa.float16(), HALF)),
    "pyarrow int8": ("whole", lambda: arrow("whole", pa.int8())),
    "pyarrow decimal128": ("number", lambda: arrow("number", pa.decimal128(5, 1), DECIMALS)),
    "pyarrow bool": ("truth", lambda: arrow("truth", pa.bool_())),
    "pyarrow string": ("name", lambda: arrow("name", pa.string())),
    "pyarrow large_string": ("name", lambda: arrow("name", pa.large_string())),
    "pyarrow string_view": ("name", lambda: arrow("name", pa.string_view())),
    "pyarrow binary": ("name", lambda: arrow("name", pa.binary(), [x and x.encode() for x in PLAIN["name"]])),
    "pyarrow dictionary": ("name", lambda: arrow("name", pa.string()).dictionary_encode()),
    "pyarrow dictionary, chunked": ("name", lambda: pa.chunked_array(HALVES)),
    "pyarrow dictionary of numbers": ("whole", lambda: arrow("whole", pa.int64()).dictionary_encode()),
    "pyarrow date32": ("day", lambda: arrow("day", pa.date32())),
    "pyarrow date64": ("day", lambda: arrow("day", pa.date64())),
    "pyarrow timestamp": ("time", lambda: arrow("time", pa.timestamp("ns"))),
    "pyarrow, with a zone": ("time", lambda: arrow("time", pa.timestamp("s", "Europe/Berlin"), IN_BERLIN)),
    "pyarrow dictionary of dates": ("day", lambda: arrow("day", pa.date32()).dictionary_encode()),
    "NumPy datetime64": ("time", lambda: np.array(PLAIN["time"], dtype="M8[us]")),
    "NumPy dates": ("day", lambda: np.array(PLAIN["day"], dtype="M8[D]")),
    "NumPy objects": ("day", lambda: np.array(PLAIN["day"], dtype=object)),
}  # fmt: skip
"""What the column holds, and the column: each is read as the list of the same values."""


def framed(column: Any, target: list[str]) -> Any:
    """The column in a table of its own library, beside the target."""
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": column, "y": target})
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return pa.table({"x": column, "y": target})
    return pd.DataFrame({"x": column, "y": target}) if isinstance(column, pd.Series) else {"x": column, "y": target}


def schema(what: str) -> Schema:
    target = Target(column="y", kind="label", values=("no", "yes"))
    return Schema(columns={"x": FACTS[what]}, target=target)


LABELS = ["no" if i % 2 else "yes" for i in range(ROWS)]


@pytest.mark.parametrize("case", TAKEN)
def test_a_column_of_any_type_is_read_as_its_values_are(case: str) -> None:
    """Encoded rows are those of a plain list of the same values, bit for bit."""
    what, made = TAKEN[case]
    encoder = TableEncoder(schema(what))
    expected = encoder.features({"x": PLAIN[what], "y": LABELS})
    assert np.isnan(expected).any() or (expected == 0).all(axis=1).any()  # some are missing
    assert (np.unique(expected, axis=0).shape[0]) > 2
    np.testing.assert_array_equal(encoder.features(framed(made(), LABELS)), expected)


@pytest.mark.medium
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_fit_on_a_mixed_frame_is_that_on_plain_values(library: str) -> None:
    """One column of each kind, in types of a library: the same coefficients as from lists, at the same seed."""
    picked = {
        "pandas": ("pandas Float64", "pandas int64[pyarrow]", "pandas boolean", "pandas category",
                   "pandas, with a zone", "pandas date32[pyarrow]"),
        "polars": ("polars Decimal", "polars Int64", "polars Boolean", "polars Enum", "polars Datetime", "polars Date"),
        "pyarrow": ("pyarrow decimal128", "pyarrow int8", "pyarrow bool", "pyarrow dictionary", "pyarrow, with a zone",
                    "pyarrow date32"),
    }[library]  # fmt: skip
    columns = {what: made() for what, made in (TAKEN[name] for name in picked)}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    facts = Schema(columns=FACTS, target=Target(column="y", kind="label", values=("no", "yes")))

    def coefficients(table: Any) -> Any:
        seed = fixed_seed_invalidates_guarantee(1)
        with pytest.warns():  # of few records
            return fit_table(table, facts, epsilon=1, delta=1e-6, random=seed, bounds_exact=True).estimator_.coef_

    expected = coefficients({**PLAIN, "y": LABELS})
    np.testing.assert_array_equal(coefficients(make({**columns, "y": LABELS})), expected)


REFUSED: dict[str, tuple[str, Any]] = {
    "a date as a number": ("number", pl.Series([dt.date(2020, 1, 1)] * ROWS)),
    "a date as a name": ("name", pa.array([dt.date(2020, 1, 1)] * ROWS)),
    "whole numbers as dates": ("day", pd.Series([20200101] * ROWS)),
    "nullable numbers as dates": ("day", pd.Series([20200101, None] * (ROWS // 2), dtype="Int64")),
    "numbers of polars as dates": ("day", pl.Series([1.5] * ROWS)),
    "truth as dates": ("day", pa.array([True] * ROWS)),
    "NumPy's numbers as dates": ("day", np.arange(ROWS)),
    "spans of time as dates": ("day", pd.Series(pd.to_timedelta([1] * ROWS))),
    "spans of time of polars": ("day", pl.Series([dt.timedelta(1)] * ROWS)),
    "times of the day": ("number", pa.array([dt.time(1)] * ROWS)),
    "periods": ("day", pd.Series(pd.period_range("2020", periods=ROWS, freq="D"))),
    "intervals": ("number", pd.Series(pd.interval_range(0, ROWS))),
    "lists": ("number", pl.Series([[1, 2]] * ROWS)),
    "structs": ("name", pa.array([{"a": 1}] * ROWS)),
    "complex numbers": ("number", pd.Series([1j] * ROWS)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_another_type_is_refused_by_its_name(case: str) -> None:
    """One sentence that names the column and what it is declared to hold, before anything is charged."""
    what, column = REFUSED[case]
    with pytest.raises(InvalidParameter, match=r"^Expected column 'x' to hold .*, got (?!numbers or)[a-z ]+:"):
        fit_table(framed(column, LABELS), schema(what), epsilon=1, delta=1e-6)
