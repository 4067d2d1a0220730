"""Rows rounded by compiled functions: the bits that NumPy finds, for any floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sums.test_table import NORMS, VALUES

from privet.data.floats import FrameRows
from privet.sums import bounded_table, table
from privet.sums.compiled_rounding import Rounding, _column, _right, _rows, _turn, rounding, scales

pytestmark = pytest.mark.skipif(rounding() is None, reason="Numba is not installed: pip install privet[fast]")


def both(monkeypatch: pytest.MonkeyPatch, data: Any, **more: Any) -> tuple[Any, Any]:
    """The table by compiled functions, and by NumPy alone."""
    found = []
    for compiled in (rounding(), None):
        monkeypatch.setattr(table, "rounding_for", lambda values, made=compiled: made)
        found.append(bounded_table(data, **more))
    return found[0], found[1]


def same(one: Any, other: Any) -> bool:
    """Whether two tables are equal to the last bit."""
    return np.array_equal(one.units, other.units) and one.inverse_norms.tobytes() == other.inverse_norms.tobytes()


@settings(max_examples=150)
@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=9), st.sampled_from(NORMS))
def test_any_floats_give_the_same_bits(rows: list[list[float]], row_norm: float) -> None:
    """Compiled and plain rounding agree for values of any size, missing and infinite ones, in rows and in frames."""
    with np.errstate(over="ignore"):
        values = np.array(rows) * row_norm
    frame = FrameRows(pa.table({f"x{j}": values[:, j] for j in range(3)}))
    with pytest.MonkeyPatch.context() as patch:
        plain = both(patch, values, row_norm=row_norm)
        assert same(*plain)
        assert same(*both(patch, frame, row_norm=row_norm))
        assert same(plain[0], both(patch, frame, row_norm=row_norm)[0])


@pytest.mark.parametrize("row_norm", [1.0, 8.0, 0.7, 3e-100, 1e100])
@pytest.mark.parametrize("columns", [1, 2, 5, 40, 130])
def test_rows_about_the_bound_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, columns: int, row_norm: float
) -> None:
    """Rows well within the bound, just within, on it, just beyond, of halves of a step, and far beyond, some left out.

    Shown to fail on a mutant: with rows taken up to the bound itself, 18 of these 25 tables differ.
    """
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(700, columns))
    rows *= row_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.repeat([0.3, 1 - 1e-4, 1 - 1e-6, 1 - 2.0**-50, 1.0, 1 + 1e-5, 30.0], 100)[:, None]
    step = math.ldexp(1.0, math.frexp(row_norm)[1] - 15)
    rows[:50] = (np.floor(rows[:50] / step) + 0.5) * step
    rows[[7, 8, 9], 0] = np.nan, np.inf, -np.inf
    keep = rng.random(700) < 0.9
    frame = FrameRows(pa.table({f"x{j}": rows[:, j] for j in range(columns)}))
    for data in (rows, frame, np.asfortranarray(rows)):
        assert same(*both(monkeypatch, data, row_norm=row_norm, keep=keep))
    assert same(*both(monkeypatch, rows, row_norm=row_norm, keep=keep, prepare=lambda block: block[:, ::-1] * 1.01))


def test_a_frame_of_many_kinds_of_columns_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers, single precision, truth values and missing cells, in more rows than a block has."""
    rng = np.random.default_rng(0)
    count = 9000
    frame = FrameRows(
        pa.table(
            {
                "a": rng.integers(-3, 3, size=count),
                "b": rng.normal(size=count).astype(np.float32),
                "c": rng.random(count) < 0.5,
                "d": pa.array([None if i % 7 == 0 else i / count for i in range(count)]),
            }
        )
    )
    assert same(*both(monkeypatch, frame, row_norm=2.5))


def test_no_row_is_taken_that_is_not_surely_within_the_bound() -> None:
    """The squared norm below which a row fits leaves room for rounding: the row itself was below the bound."""
    for row_norm in NORMS:
        step = math.ldexp(1.0, math.frexp(row_norm)[1] - 15)
        for columns in (1, 40, 10_000):
            limit = scales(row_norm, step, 2**30, columns)[2]
            assert math.sqrt(max(limit, 0)) + math.sqrt(columns) / 2 < row_norm / step * (1 - 2.0**-20)


def test_a_compiler_that_is_wrong_is_noticed() -> None:
    """Functions that round ties up, forget a row's mark or mix up rows are not taken."""

    def ties_up(block: Any, over: float, times: float, limit: float, units: Any, squares: Any) -> None:
        _rows(np.nextafter(block, np.inf), over, times, limit, units, squares)

    def unmarked(tile: Any, limit: float, units: Any, squares: Any) -> None:
        _turn(tile, limit * 2, units, squares)

    def up(values: Any, over: float, times: float, units: Any, squares: Any) -> None:
        _column(np.nextafter(values, np.inf), over, times, units, squares)

    with np.errstate(all="ignore"):
        assert _right(Rounding(_rows, _column, _turn))
        assert not _right(Rounding(ties_up, _column, _turn))
        assert not _right(Rounding(_rows, _column, unmarked))
        assert not _right(Rounding(_rows, up, _turn))
