from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from privet.data import vector
from privet.errors import InvalidParameter
from privet.sums import bounded_table

ODD = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 1.7e308, 5e-324, -1e-17, math.nan, math.inf, -math.inf]
VALUES = st.one_of(st.sampled_from(ODD), st.floats(-4, 4))
NORMS = [1.0, 0.7, 1 - 2.0**-53, 1 + 2.0**-52, math.sqrt(2), 3e-100, 1e100]


def units(table: Any) -> NDArray[np.int64]:
    dense = table.units.toarray() if table.is_sparse else table.units
    return np.asarray(dense, dtype=np.int64)


def exact_square(row: NDArray[np.int64]) -> int:
    return sum(int(v) ** 2 for v in row)


@settings(max_examples=150)
@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=4), st.sampled_from(NORMS))
def test_no_row_is_longer_than_promised(rows: list[list[float]], row_norm: float) -> None:
    """In exact arithmetic every row's norm is at most row_norm, for any floats; bad rows are empty.

    See docs/footguns.md, 7 to 10.
    """
    with np.errstate(over="ignore"):
        scaled = np.array(rows) * row_norm
    table = bounded_table(scaled, row_norm=row_norm)
    for row, given_row, inverse in zip(units(table), scaled, table.inverse_norms, strict=True):
        square = exact_square(row)
        assert square * Fraction(table.step) ** 2 <= Fraction(row_norm) ** 2
        assert Fraction(float(inverse)) ** 2 * square <= 1
        if not np.isfinite(given_row).all():
            assert square == 0
            assert inverse == 0


@pytest.mark.parametrize("columns", [1, 2, 7, 100, 3000])
@pytest.mark.parametrize("row_norm", NORMS)
def test_rows_on_the_bound_stay_within_it_and_near_it(columns: int, row_norm: float) -> None:
    """Rows of exactly row_norm, along an axis, spread evenly, or at random, lose at most √columns/2 + 3 steps."""
    rng = np.random.default_rng(columns)
    rows = np.vstack([np.eye(1, columns), np.ones((1, columns)), rng.normal(size=(5, columns))])
    rows *= row_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    table = bounded_table(rows, row_norm=row_norm)
    most = Fraction(row_norm) / Fraction(table.step)
    for row in units(table):
        assert exact_square(row) <= most**2
        assert math.sqrt(exact_square(row)) >= float(most) - math.sqrt(columns) - 3


def test_values_inside_the_ball_are_rounded_to_the_nearest_step() -> None:
    """A row well within the norm is off by half a step at most in each value, whatever its size."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 4)) * 10.0 ** rng.integers(-9, 0, size=(50, 1)) / 4
    table = bounded_table(rows, row_norm=1.5)
    assert table.step == 2.0**-14
    assert (np.abs(units(table) * table.step - rows) <= table.step / 2).all()


@pytest.mark.parametrize("columns", [1, 3, 8, 130, 9001])
def test_a_row_depends_on_its_own_record_only(columns: int) -> None:
    """A row is the same alone, among others, in C or Fortran order, dense or CSR, bit for bit.

    See docs/footguns.md, 4, 5.
    """
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(9, columns)) * (rng.random((9, columns)) < 0.7) * 2
    rows[3, 0] = np.nan
    whole = bounded_table(rows, row_norm=1.0)
    alone = np.vstack([units(bounded_table(row[None], row_norm=1.0)) for row in rows])
    assert (units(whole) == alone).all()
    for form in (np.asfortranarray(rows), sparse.csr_array(rows), sparse.csc_matrix(rows), sparse.coo_array(rows)):
        other = bounded_table(form, row_norm=1.0)
        assert (units(other) == alone).all()
        assert (other.inverse_norms == whole.inverse_norms).all()
    assert (units(bounded_table(rows[::-1], row_norm=1.0))[::-1] == alone).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, np.int8, np.int64, np.bool_, object])
def test_types_of_the_same_values_give_the_same_rows(dtype: Any) -> None:
    """Any numeric type that holds the same values gives the same bits."""
    rows = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]])
    assert (units(bounded_table(rows.astype(dtype), row_norm=1.0)) == units(bounded_table(rows, row_norm=1.0))).all()


def test_float32_data_gives_the_bits_of_the_same_values_in_float64() -> None:
    """Single precision input is widened before anything is computed."""
    rows = np.random.default_rng(2).normal(size=(20, 5)).astype(np.float32)
    single, double = bounded_table(rows, row_norm=1.0), bounded_table(rows.astype(np.float64), row_norm=1.0)
    assert (single.units == double.units).all()
    assert (single.inverse_norms == double.inverse_norms).all()


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, None, "x", 10**400, np.longdouble("1e400"), object(), [1, 2]]
)
def test_an_odd_cell_empties_its_record_and_nothing_else(bad: object) -> None:
    """What is no finite number makes its own row zero: no error, no warning, no other row moves.

    See docs/footguns.md, 8, 9.
    """
    cells = np.empty((3, 2), dtype=object)
    cells[:] = 0.25
    clean = units(bounded_table(cells, row_norm=1.0))
    cells[1, 0] = bad
    found = units(bounded_table(cells, row_norm=1.0))
    assert (found[1] == 0).all()
    assert (found[[0, 2]] == clean[[0, 2]]).all()
    labels = np.array([1.0, 0.0, 1.0], dtype=object)
    labels[1] = bad
    assert not math.isfinite(vector(labels, 3)[1])


def test_long_doubles_beyond_floats_do_not_warn() -> None:
    """A long double that is infinite as a float empties its record in silence, dense and sparse."""
    rows = np.array([["1e400"], ["0.5"]], dtype=np.longdouble)
    for form in (rows, sparse.csr_array(rows)):
        assert units(bounded_table(form, row_norm=1.0)).ravel().tolist() == [0, 2**13]
    assert vector(rows[:, 0], 2).tolist()[1] == 0.5


def test_records_to_drop_are_emptied() -> None:
    """`keep` empties records, dense and sparse alike, and leaves the rest."""
    rows, keep = np.full((3, 2), 0.5), np.array([True, False, True])
    for form in (rows, sparse.csr_array(rows)):
        table = bounded_table(form, row_norm=1.0, keep=keep)
        assert (units(table)[:, 0] != 0).tolist() == [True, False, True]
        assert (table.inverse_norms > 0).tolist() == [True, False, True]


def test_pandas_frames_are_tables() -> None:
    """A frame with missing and mixed columns is read without an error; a record with a missing value is emptied."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.array([1, None, 0], dtype="Int64"), "b": [True, False, True]})
    assert (units(bounded_table(frame, row_norm=2.0)) != 0).tolist() == [[True, True], [False, False], [False, True]]


@pytest.mark.parametrize(
    "data",
    [
        [1.0, 2.0],
        np.zeros((2, 2, 2)),
        np.zeros((2, 0)),
        np.array([["a", "b"]]),
        np.array([[1j]]),
        np.array([["2020-01-01"]], dtype="datetime64[D]"),
        sparse.csr_array((3, 2**22 + 1)),
        3.0,
    ],
)
def test_what_is_no_table_is_refused_by_shape_or_type(data: Any) -> None:
    """Wrong dimensions, no columns, text, complex numbers, dates: an error that quotes no cell."""
    with pytest.raises(InvalidParameter, match="Expected X") as refused:
        bounded_table(data, row_norm=1.0)
    assert "'a'" not in str(refused.value)


@pytest.mark.parametrize("row_norm", [0, -1.0, math.nan, math.inf, "1", True, 1e-200, 1e200])
def test_row_norms_that_bound_nothing_are_refused(row_norm: Any) -> None:
    """row_norm is a positive finite number of a size that floats can square."""
    with pytest.raises(InvalidParameter, match="row_norm"):
        bounded_table([[1.0]], row_norm=row_norm)


def test_a_table_does_not_print_its_records() -> None:
    """The repr shows public facts only; not even how many records there are (docs/footguns.md, 43)."""
    assert repr(bounded_table(np.full((4321, 2), 0.123), row_norm=1.0)) == "Table(private, columns=2, row_norm=1.0)"
