"""Features and targets: each cell judged alone, refusals on declared types and shapes only."""

from __future__ import annotations

import datetime as dt
import math
from collections import deque
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privet.data import labels, matrix, person_numbers, vector
from privet.data.cells import number_of
from privet.data.floats import columns_at
from privet.errors import InvalidParameter

FLOATS = [np.float16, np.float32, np.float64, np.longdouble]
WHOLE = [np.int8, np.uint8, np.int64, np.uint64, np.bool_]


def rows() -> list[list[Any]]:
    """Numbers with nothing odd about them, whole and not."""
    return [[i + 0.5, 2**53 + 1 + i, i % 2] for i in range(6)]


def sparse_forms(dense: NDArray[Any]) -> list[Any]:
    held = dense.dtype != np.float16  # else SciPy has no such matrix
    return [sparse.csr_array(dense), sparse.csc_array(dense), sparse.coo_matrix(dense)] if held else []


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True))


@pytest.mark.parametrize("place", [(0, 0), (2, 1), (5, 2)])
def test_an_odd_cell_is_a_number_or_missing_and_moves_no_other(odd: Any, place: Any, kinds_of_table: Any) -> None:
    """Record and replay: with the odd cell, or what it reads as in its place, each kind of table gives equal bits."""
    clean, strange = rows(), rows()
    clean[place[0]][place[1]] = number_of(odd)
    strange[place[0]][place[1]] = odd
    expected = np.array(clean, dtype=np.float64)
    for kind, table in kinds_of_table(strange).items():
        found = matrix(table)
        assert found.dtype == np.float64, kind
        assert same(found, expected), kind


def test_an_odd_target_is_a_number_or_missing_and_moves_no_other(odd: Any) -> None:
    """As for tables: lists, arrays, columns of objects, and tables of one column."""
    cells: list[Any] = [0, 1.5, 2**60, odd, 4, 5]
    array = np.fromiter(cells, dtype=object, count=6)
    expected = [0, 1.5, 2.0**60, number_of(odd), 4, 5]
    forms = [cells, tuple(cells), deque(cells), array, array[:, None], pd.Series(array), pd.DataFrame({"y": array})]
    forms += [pl.Series(cells, dtype=pl.Object), [[cell] for cell in cells]]
    for form in forms:
        assert same(vector(form, 6), expected)


@pytest.mark.parametrize("place", [(0, 0), (2, 1), (5, 2)])
def test_a_null_among_declared_numbers_is_missing_and_moves_no_other(place: Any, kinds_of_numbers: Any) -> None:
    """Nullable, arrow and masked columns, whole numbers above 2^53 among them, give the bits of the plain array."""
    clean, strange = rows(), rows()
    clean[place[0]][place[1]] = math.nan
    strange[place[0]][place[1]] = None
    for kind, table in kinds_of_numbers(strange).items():
        assert same(matrix(table), np.array(clean, dtype=np.float64)), kind
    for kind, table in kinds_of_numbers(rows()).items():
        assert same(matrix(table), np.array(rows(), dtype=np.float64)), kind


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_every_numeric_type_is_read_and_none_is_changed(dtype: Any) -> None:
    """The values are those of the array, dense and sparse, in either order; float32 and float64 are not copied."""
    given = np.array([[0, 1], [1, 1], [0, 0]]).astype(dtype)
    for form in (given, np.asfortranarray(given), *sparse_forms(given)):
        found = matrix(form)
        assert found.dtype == (dtype if dtype in (np.float32, np.float64) else np.float64)
        assert same(found.toarray() if sparse.issparse(found) else found, given.astype(np.float64))
    if dtype in (np.float32, np.float64):
        assert matrix(given) is given
        csr = sparse.csr_array(given)
        assert matrix(csr) is csr
    assert same(vector(given[:, 0]), given[:, 0].astype(np.float64))


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinity_is_missing_in_every_kind_of_table(dtype: Any) -> None:
    """An infinite value is NaN, the others and the caller's own array stay, and nothing warns."""
    given = np.array([[1.0, np.inf], [-np.inf, 2.0], [np.nan, 3.0]], dtype=dtype)
    before = given.copy()
    expected = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, 3.0]])
    for form in (given, np.asfortranarray(given), *sparse_forms(given), given.tolist(), pd.DataFrame(given)):
        found = matrix(form)
        assert same(found.toarray() if sparse.issparse(found) else found, expected)
    assert same(given, before)
    assert same(vector(given[:, 1]), expected[:, 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool])
def test_columns_at_some_places_are_those_of_the_matrix(dtype: Any) -> None:
    """Over several blocks, of each numeric type, infinity missing: as the rows at these places are read."""
    rng = np.random.default_rng(7)
    table = (3 * rng.normal(size=(9_000, 3))).astype(dtype)
    if table.dtype.kind == "f":
        table[::7, 1], table[::11, 2] = np.inf, np.nan
    places = np.flatnonzero(rng.random(9_000) < 0.7)
    np.testing.assert_array_equal(columns_at(list(table.T), places), matrix(table[places]).T)


def test_long_tables_are_looked_at_whole() -> None:
    """The last of many values counts as much as the first."""
    for shape in ((300_000, 1), (3, 100_000)):
        given = np.zeros(shape)
        given[-1, -1] = -np.inf
        assert np.isnan(matrix(given)[-1, -1])
        assert np.isnan(matrix(sparse.csr_array(given))[-1, -1])


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize(
    "odd", [[], [1], [1, 2], [1, 2, 3, 4], (), "Jane", b"abc", None, {}, 7.0, np.zeros(2), np.zeros((3, 3)), range(9)]
)
def test_a_row_of_another_length_is_missing_and_moves_no_other(odd: Any, place: int) -> None:
    """In a list, whatever stands for one row, first or last: the others keep their bits, and nothing is refused."""
    expected = np.array(rows(), dtype=np.float64)
    expected[place] = math.nan
    for kind in (list, tuple, deque):
        table = kind([*rows()[:place], odd, *rows()[place + 1 :]])
        assert same(matrix(table), expected)
        assert same(matrix(table, columns=3), expected)


def test_declared_columns_are_those_of_a_list_whatever_its_rows_are() -> None:
    """With a declared number no row has a say, not even all of them; without, most have."""
    assert same(matrix([[1.0, 2.0], [3.0, 4.0]], columns=3), np.full((2, 3), math.nan))
    assert same(matrix([7, "Jane"], columns=2), np.full((2, 2), math.nan))
    assert matrix([], columns=2).shape == (0, 2)
    assert matrix([[1.0]] * 3 + [[1.0, 2.0]] * 2).shape == (5, 1)


TYPES: dict[str, Any] = {
    "text array": np.array([["Jane", "b"]]),
    "bytes array": np.array([[b"Jane"]]),
    "complex array": np.array([[1j]]),
    "dates": np.array([["2020-01-01"]], dtype="M8[D]"),
    "records": np.zeros((1, 1), dtype=[("a", float)]),
    "pandas text": pd.DataFrame({"a": [1.0], "b": pd.Series(["Jane"], dtype="string")}),
    "pandas str": pd.DataFrame({"a": [1.0], "b": ["Jane"]}).convert_dtypes(),
    "pandas levels": pd.DataFrame({"a": [1.0], "b": pd.Categorical([3])}),
    "pandas dates": pd.DataFrame({"a": [1.0], "b": pd.to_datetime(["2020-01-01"])}),
    "pandas zoned dates": pd.DataFrame({"a": [1.0], "b": pd.to_datetime(["2020-01-01"], utc=True)}),
    "pandas periods": pd.DataFrame({"b": pd.period_range("2020", periods=1)}),
    "pandas arrow text": pd.DataFrame({"b": pd.Series(["Jane"], dtype=pd.ArrowDtype(pa.string()))}),
    "polars text": pl.DataFrame({"a": [1.0], "b": ["Jane"]}),
    "polars levels": pl.DataFrame({"b": pl.Series(["Jane"], dtype=pl.Categorical)}),
    "polars dates": pl.DataFrame({"b": [dt.date(2020, 1, 1)]}),
    "polars lists": pl.DataFrame({"b": [[1.0]]}),
    "arrow text": pa.table({"a": [1.0], "b": ["Jane"]}),
    "arrow levels": pa.table({"b": pa.array(["Jane"]).dictionary_encode()}),
    "arrow dates": pa.table({"b": [dt.date(2020, 1, 1)]}),
    "arrow lists": pa.table({"b": [[1.0]]}),
    "sparse complex": sparse.csr_array(np.array([[1j]])),
}
SHAPES: dict[str, Any] = {
    "one dimension": np.zeros(3),
    "list of numbers": [1.0, 2.0],
    "list of texts": ["Jane", "b"],
    "nothing": [],
    "three dimensions": np.zeros((2, 2, 2)),
    "no columns": np.zeros((2, 0)),
    "frame of no columns": pd.DataFrame(index=[0, 1]),
    "series": pd.Series([1.0]),
    "a number": 3.0,
    "a dict": {"a": [1.0]},
    "mostly texts": [[1.0, 2.0], "Jane", "b"],
    "too wide": sparse.csr_array((3, 2**22 + 1)),
    "sparse vector": sparse.coo_array(np.array([1.0, 0.0])),
}


@pytest.mark.parametrize("wrong", [*TYPES.values(), *SHAPES.values()], ids=[*TYPES, *SHAPES])
def test_tables_are_refused_by_declared_type_and_shape(wrong: Any) -> None:
    """What is no table of numbers is refused in words without a cell, and no other error hides behind."""
    with pytest.raises(InvalidParameter, match=r"Expected X .*\. ") as caught:
        matrix(wrong)
    assert "Jane" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_refusal_names_the_column_and_the_way_out() -> None:
    """The header is public, and text wants an encoder."""
    with pytest.raises(InvalidParameter, match=r"got text in column 'b': .* TableEncoder"):
        matrix(TYPES["polars text"])


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((3, 2)), np.zeros(2), 3.0, [[1.0, 2.0]] * 3, [[1, 2], [2, 3], 4], pd.DataFrame(np.zeros((3, 2))),
        np.array(["Jane", "b", "c"]), np.zeros(3, complex), pd.Series(["Jane", "b", "c"], dtype="string"),
        pd.Categorical([1, 2, 3]), pl.Series(["Jane", "b", "c"]), np.zeros(3, "M8[D]"), "Jane", None,
    ],
)  # fmt: skip
def test_targets_are_refused_by_declared_type_and_shape(wrong: Any) -> None:
    """Another shape, length or type; the words hold no cell and no number of records."""
    with pytest.raises(InvalidParameter, match="Expected weight") as caught:
        vector(wrong, 3, name="weight")
    assert "Jane" not in str(caught.value)
    assert "3" not in str(caught.value)
    assert caught.value.__context__ is None


class Lent:
    """As little of an array as NumPy asks for."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.values if dtype is None else self.values.astype(dtype)


class Closed:
    """What complains with a cell when NumPy asks."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        raise ValueError("Jane Doe")


def test_what_numpy_cannot_read_is_refused_without_its_complaint() -> None:
    """The error of another library is not chained to ours."""
    for read in (matrix, vector):
        with pytest.raises(InvalidParameter, match="got Closed") as caught:
            read(Closed())
        assert caught.value.__context__ is None


class Numbered:
    """As little of a sequence as NumPy asks for, of which it would make one type."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> Any:
        return [[0.0, 1.0], [1.0, "Jane"]][place]


def test_no_common_type_is_made_of_cells() -> None:
    """What declares no type itself is refused by its own, not by what NumPy would make of its cells."""
    for read in (matrix, vector, person_numbers, labels):
        with pytest.raises(InvalidParameter, match="got Numbered"):
            read(Numbered())


def test_what_numpy_can_read_is_read() -> None:
    """Arrays of other libraries, and tables without rows."""
    assert matrix(Lent([[1.0, 0.0]])).tolist() == [[1.0, 0.0]]
    assert vector(Lent([[1.0], [2.0]])).tolist() == [1.0, 2.0]
    assert matrix(np.empty((0, 3))).shape == (0, 3)
    assert matrix(pl.DataFrame(schema={"a": pl.Int64, "b": pl.Boolean})).shape == (0, 2)
    assert vector([]).tolist() == []
    assert matrix(pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 0.0]), "b": [1, 2]})).tolist() == [[1, 1], [0, 2]]
