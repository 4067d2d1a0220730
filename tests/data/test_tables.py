from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privet.data import grouped_by, labels, person_numbers, vector
from privet.data.cells import Codes, Numbers
from privet.data.tables import header, read
from privet.errors import InvalidParameter
from privet.preprocessing import Category, Number, Schema, Target, encode_target
from privet.preprocessing.encoded_rows import EncodedRows
from privet.preprocessing.encoding import encode

SCHEMA = Schema(
    columns={
        "age": Number(low=0, high=100),
        "job": Category(values=("baker", "smith"), missing="indicator"),
        "zip": Category(values=("1010", "1020")),
        "own": Category(values=("True", "False")),
    },
    target=Target(column="y", kind="label", values=("no", "yes")),
)
COLUMNS: dict[str, list[Any]] = {
    "y": ["no", "yes", "yes", None],
    "age": [50, None, 75, 200],
    "own": [True, False, None, True],
    "job": ["smith", "baker", None, "Jane Doe"],
    "zip": [1010, 1020, None, 1030],
    "extra": ["p", "q", "r", "s"],
}


def rows() -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]


def csv_file(folder: Path, name: str) -> Path:
    path = folder / name
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(["" if cell is None else cell for cell in row.values()] for row in rows())
    raw = text.getvalue().encode()
    path.write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    return path


def tables(folder: Path) -> dict[str, Any]:
    frame = pd.DataFrame(COLUMNS)
    levels = frame.astype({"job": "category", "zip": "category", "y": "category"})
    records = np.empty(4, dtype=[(name, object) for name in COLUMNS])
    for name, cells in COLUMNS.items():
        records[name] = cells
    return {
        "dict of lists": COLUMNS,
        "dict of arrays": {name: np.array(cells, dtype=object) for name, cells in COLUMNS.items()},
        "dict of series": {name: frame[name] for name in COLUMNS},
        "list of dicts": rows(),
        "pandas": frame,
        "pandas, levels": levels,
        "pandas, nullable": frame.convert_dtypes(),
        "pandas, arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas, other order and index": frame[sorted(COLUMNS)].set_index(pd.Index([7, 7, 7, 7])),
        "polars": pl.DataFrame(COLUMNS),
        "polars, levels": pl.DataFrame(COLUMNS, schema_overrides={"job": pl.Categorical, "y": pl.Categorical}),
        "arrow": pa.table(COLUMNS),
        "dict of arrow arrays": {name: pa.array(cells) for name, cells in COLUMNS.items()},
        "dict of polars series": {name: pl.Series(cells) for name, cells in COLUMNS.items()},
        "structured array": records,
        "csv": csv_file(folder, "t.csv"),
        "csv.gz": str(csv_file(folder, "t.csv.gz")),
    }


def test_every_kind_of_table_gives_the_same_rows(tmp_path: Path) -> None:
    """Frames, dicts, rows, files and arrays with the same cells give the same features and target, in any order."""
    found = tables(tmp_path)
    expected = encode(SCHEMA, COLUMNS)
    assert SCHEMA.target is not None
    target = encode_target(SCHEMA.target, COLUMNS)
    assert target.tolist()[:3] == [0.0, 1.0, 1.0]
    for kind, table in found.items():
        assert np.array_equal(encode(SCHEMA, table), expected), kind
        assert np.array_equal(encode_target(SCHEMA.target, table), target, equal_nan=True), kind
        if kind != "list of dicts":
            assert sorted(header(table) or []) == sorted(COLUMNS), kind


def test_missing_and_doubled_columns_are_named(tmp_path: Path) -> None:
    """A header that lacks a column, or has it twice, is refused by the column's name; no cell is quoted."""
    frame = pd.DataFrame(COLUMNS)
    without = tmp_path / "without.csv"
    without.write_text("job,zip,own\nJane Doe,1,2\n", encoding="utf-8")
    twice = pd.concat([frame, frame[["age"]]], axis=1)
    for table in (frame.drop(columns="age"), frame.rename(columns={"age": "Age"}), twice, without, {"job": ["a"]}):
        with pytest.raises(InvalidParameter, match="'age'") as caught:
            encode(SCHEMA, table)
        assert "Jane" not in str(caught.value)


def test_rows_that_lack_a_cell_are_neutral() -> None:
    """In a list of dicts a key that is absent is a missing value, and what is no dict an empty record: no error."""
    expected = encode(SCHEMA, [{"age": 50}, {"age": None}, {"age": None}])
    assert np.array_equal(encode(SCHEMA, [{"age": 50}, {}, "Jane Doe"]), expected)
    assert encode(SCHEMA, []).shape == (0, 9)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_no_one_record_decides_what_a_list_holds(place: int) -> None:
    """Rows with one that is no dict are rows, labels with one that is a dict are labels, wherever it stands."""
    rows: list[Any] = [{"age": 50, "y": "yes"} for _ in range(3)]
    rows[place] = "Jane Doe"
    assert len(encode(SCHEMA, rows)) == 3
    labels: list[Any] = ["yes"] * 3
    labels[place] = {}
    assert SCHEMA.target is not None
    for data in (rows, labels):
        assert np.isnan(encode_target(SCHEMA.target, data)).tolist() == [i == place for i in range(3)]


@pytest.mark.parametrize("table", [np.zeros((2, 3)), [[1, 2]], 7, None, ["Jane Doe"], pd.Series([1])])
def test_tables_without_names_are_refused(table: Any) -> None:
    """Columns are matched by name, so what has none is refused, and no cell is quoted."""
    with pytest.raises(InvalidParameter, match="named columns") as caught:
        encode(SCHEMA, table)
    assert "Jane" not in str(caught.value)


def test_shapes_are_public_and_checked() -> None:
    """Columns of several lengths or dimensions are refused; lengths are not quoted."""
    with pytest.raises(InvalidParameter, match="one length") as caught:
        encode(SCHEMA, {**COLUMNS, "age": [1] * 777})
    assert "777" not in str(caught.value)
    with pytest.raises(InvalidParameter, match="one-dimensional"):
        encode(SCHEMA, {**COLUMNS, "age": np.zeros((4, 2))})


DATES = [0, 10**15, None]
KINDS: dict[str, Any] = {
    "arrow dates": pa.array(DATES, pa.timestamp("s")),
    "arrow levels of dates": pa.DictionaryArray.from_arrays([0, 1, None], pa.array(DATES[:2], pa.timestamp("s"))),
    "arrow lists": pa.array([[1], [2], None]),
    "polars dates": pl.Series([0, 2**30, None]).cast(pl.Date),
    "polars times": pl.Series([0, 2**62, None]).cast(pl.Datetime("us")),
    "polars lists": pl.Series([[1], [2], None]),
    "pandas arrow dates": pd.Series(pa.array(DATES, pa.timestamp("s")), dtype=pd.ArrowDtype(pa.timestamp("s"))),
    "pandas dates": pd.Series(pd.to_datetime(["2020-01-01", None, None])),
    "pandas zoned dates": pd.Series(pd.to_datetime(["2020-01-01", None, None], utc=True)),
    "pandas periods": pd.Series(pd.period_range("2020", periods=3)),
    "dates": np.array(["2020-01-01", "2021-01-01", "NaT"], dtype="M8[D]"),
    "complex": np.array([1, 2, 1j]),
}


@pytest.mark.parametrize("column", KINDS.values(), ids=list(KINDS))
def test_a_column_of_another_type_is_refused_before_a_cell_is_read(column: Any) -> None:
    """By its declared type, in every door alike: a date beyond the calendar would else raise by its value."""
    table = {"age": column, "job": ["a"] * 3, "zip": [1] * 3, "own": [True] * 3, "y": ["no"] * 3}
    doors: list[Any] = [
        lambda: encode(SCHEMA, table), lambda: vector(column), lambda: labels(column), lambda: person_numbers(column),
        lambda: grouped_by(table, "age"),
        lambda: encode_target(Target(column="age", kind="label", values=("a",)), table),
    ]  # fmt: skip
    for door in doors:
        with pytest.raises(InvalidParameter, match="to hold numbers or texts, got") as caught:
            door()
        assert caught.value.__context__ is None


def test_a_text_that_is_no_text_is_read_as_in_a_file() -> None:
    """Bytes that are no UTF-8 in a column declared as text: the other cells stay, and no error quotes it."""
    ends = pa.py_buffer(np.array([0, 1, 5, 6], dtype=np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"3Ja\xff\xfe7")])
    for column in (broken, pa.chunked_array([broken]), pd.Series(broken, dtype=pd.ArrowDtype(pa.string()))):
        assert np.array_equal(read({"a": column}, {"a": Numbers()})["a"], [3, np.nan, 7], equal_nan=True)
        assert person_numbers(column).tolist() == [0, 2, 1]


def test_a_code_book_without_names_has_no_features() -> None:
    """As names may be learnt, and none be held by enough: the other columns are as they were, wherever it stands."""
    age, none = Number(low=0, high=100), Category(values=())
    orders: list[dict[str, Number | Category]] = [{"age": age, "job": none}, {"job": none, "age": age}]
    for columns in orders:
        table = {"age": [50, None], "job": ["Jane", None]}
        assert EncodedRows(Schema(columns=columns), table).whole()[:, 0].tolist()[0] == 50
        assert encode(Schema(columns=columns), table).shape == (2, 2)


def test_files_with_odd_rows_are_read_in_silence(tmp_path: Path) -> None:
    """Short, long, blank, huge and undecodable rows: one record each (none for a blank line), neighbours untouched."""
    path = tmp_path / "odd.csv"
    path.write_bytes(
        b"\xef\xbb\xbfage,job,zip,own\r\n50,baker,1010,True\r\n51\r\n\r\n52,smith,1020,False,more\r\n"
        + b"53,\xff\xfe,1010,True\r\n" + b"54," + b"x" * 200_000 + b",1010,True\r\n55,baker,1010,True\r\n"
    )  # fmt: skip
    found = encode(SCHEMA, path)
    clean = [{"age": 50, "job": "baker", "zip": 1010, "own": True}, {"age": 51}]
    clean += [{"age": 52, "job": "smith", "zip": 1020, "own": False}, {"age": 53, "zip": 1010, "own": True}]
    clean += [{"age": 54, "zip": 1010, "own": True}, {"age": 55, "job": "baker", "zip": 1010, "own": True}]
    assert np.array_equal(found, encode(SCHEMA, clean))


def test_empty_tables_have_no_rows(tmp_path: Path) -> None:
    """A header alone gives zero rows of the right width."""
    path = tmp_path / "empty.csv"
    path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    empty: list[Any] = [path, pd.DataFrame(COLUMNS).iloc[:0], {name: [] for name in COLUMNS}]
    for table in empty:
        assert encode(SCHEMA, table).shape == (0, 9)


def test_long_files_are_read_in_pieces(tmp_path: Path) -> None:
    """A file of several blocks equals its columns."""
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(1000)), encoding="utf-8")
    from privet.data.cells import Codes, Numbers

    found = read(path, {"b": Codes(("0", "1", "2")), "a": Numbers()})
    assert found["a"].tolist() == list(range(1000))
    assert found["b"].tolist() == [i % 3 for i in range(1000)]


@pytest.mark.medium
def test_the_room_loads_no_optional_package() -> None:
    """Importing and encoding a dict of columns loads neither pandas, polars, pyarrow nor scikit-learn."""
    code = (
        "import sys; from privet.preprocessing import Number, Schema, private_ranges; "
        "from privet.preprocessing.encoding import encode; "
        "encode(Schema(columns={'a': Number(low=0, high=1)}), {'a': [0.5]}); "
        "print(*[m for m in ('pandas', 'polars', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_texts_of_arrow_are_read_as_one_by_one() -> None:
    """In one array or several, with texts that repeat, none, and texts that are no UTF-8: as a list of the same."""
    cells = ["smith", None, "7", " smith ", "7", "", "Jane"]
    for kind in (pa.string(), pa.large_string()):
        for column in (
            pa.array(cells, kind),
            pa.chunked_array([cells[:3], [], cells[3:]], kind),
            pa.chunked_array([], kind),
        ):
            wanted = cells[: len(column)]
            for reader in (Numbers(), Codes(("smith", "7"))):
                found = read(pa.table({"x": column}), {"x": reader})["x"]
                np.testing.assert_array_equal(found, read({"x": wanted}, {"x": reader})["x"])
    broken = pa.array([b"smith", b"\xff", b"7"], pa.binary()).view(pa.string())
    assert read(pa.table({"x": broken}), {"x": Codes(("smith", "7"))})["x"].tolist() == [0, -1, 1]
