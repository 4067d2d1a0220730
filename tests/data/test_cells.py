from __future__ import annotations

import datetime as dt
import math
import warnings
from collections import deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.data import class_list, matrix, person_numbers, places, read, vector
from privet.data.cells import Coded, Codes, Memory, Names, Numbers, number_of, text_of

ODD: list[Any] = [
    "Jane Doe", "", " ", "nan", "inf", "-1e999", "1e400", "0x10", "½", "1,5", None, math.nan, math.inf, 10**5000,
    [1], {"a": 1}, object(), b"7", complex(1, 1), np.complex128(1j), np.array([1.0]), dt.date(2020, 1, 1),
    np.datetime64("2020-01-01"), Decimal("NaN"), Decimal("sNaN"), "\ud800", "\x00",
]  # fmt: skip
cell = st.one_of(
    st.sampled_from(ODD), st.text(max_size=4), st.integers(), st.floats(), st.booleans(), st.decimals(), st.fractions()
)


@pytest.mark.medium
@given(cells=st.lists(cell, max_size=12))
def test_any_cell_is_read_in_silence(cells: list[Any]) -> None:
    """Whatever a cell holds, reading raises and warns nothing, and gives a finite number or NaN, a place or -1."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = Numbers().read(cells)
        places = Codes(("7", "x")).read(cells)
        reader = Names()
        names, codes = reader.ranked(reader.read(cells))
    assert not np.isinf(values).any()
    assert set(places.tolist()) <= {-1, 0, 1}
    assert names == sorted(set(names))
    assert set(codes.tolist()) <= set(range(-1, len(names)))


@pytest.mark.medium
@given(cells=st.lists(cell, min_size=1, max_size=8), other=st.lists(cell, max_size=8))
def test_a_cell_is_read_the_same_whatever_stands_beside_it(cells: list[Any], other: list[Any]) -> None:
    """D against D': one by one, or beside any other cells, in either order, each cell has the same result."""
    for reader in (Numbers(), Codes(("True", "1", "7"))):
        alone = [reader.read([one])[0] for one in cells]
        for beside in (reader.read([*cells, *other])[: len(cells)], reader.read([*other, *cells])[len(other) :]):
            assert np.array_equal(np.array(alone), beside, equal_nan=True)


def test_a_cell_that_raises_is_missing_in_every_kind_of_column(hostile: Any) -> None:
    """Its methods raise what they like: it counts as None would, whoever reads it and wherever; nothing is raised."""

    def forms(cell: Any) -> list[Any]:
        cells = [1, 2, cell]
        array = np.empty(3, dtype=object)
        for i, value in enumerate(cells):
            array[i] = value
        return [
            cells,
            tuple(cells),
            deque(cells),
            array,
            pd.Series(array, dtype=object),
            pl.Series(cells, dtype=pl.Object),
        ]

    doors: list[Any] = [vector, lambda y: places(y, [1, 2]), class_list, person_numbers]
    readers: list[Any] = [Numbers, Names, lambda: Codes(("1", "2"))]
    doors += [lambda y, reader=reader: read({"a": y}, {"a": reader()})["a"] for reader in readers]
    for door in doors:
        for strange, clean in zip(forms(hostile), forms(None), strict=True):
            assert np.array_equal(door(strange), door(clean), equal_nan=True)
    rows: list[list[Any]] = [[1.0, 2.0], [3.0, 4.0], [5.0, hostile]]
    expected = np.array([[1, 2], [3, 4], [5, math.nan]])
    assert np.array_equal(matrix(rows), expected, equal_nan=True)
    expected[2] = math.nan
    assert np.array_equal(matrix([*rows[:2], hostile]), expected, equal_nan=True)
    found = read([{"a": 1}, {"a": hostile}, hostile, {"a": 2}], {"a": Numbers()})["a"]
    assert np.array_equal(found, [1, math.nan, math.nan, 2], equal_nan=True)


def test_mutant_one_memory_for_all_types_is_caught() -> None:
    """Remembering every type would make True and 1 one name, whichever came first: the law above fails for it."""
    book = Codes(("True", "1"))
    remembering = Memory(book.one)
    assert [remembering[c] for c in (True, 1)] != [remembering[c] for c in (1,)] + [book.one(1)]
    assert book.read([True, 1]).tolist() == [0, 1]
    assert book.read([1, True]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (3.0, "3"), (np.int64(3), "3"), (np.float32(0.5), "0.5"), (" 3 ", "3"), (True, "True"),
        (np.bool(False), "False"), (Decimal("2.50"), "2.5"), (Fraction(1, 2), "0.5"), (b" x", "x"), (1e300, "1e+300"),
        (-0.0, "0"), (None, None), (math.nan, None), ("  ", None), (object(), None),
    ],
)  # fmt: skip
def test_names_are_texts_without_blanks(value: Any, text: str | None) -> None:
    """Numbers that are equal are one name in whatever type they come; what is no name is missing."""
    assert text_of(value) == text


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, np.float32, np.float64, np.longdouble, bool])
def test_arrays_of_numbers_read_as_their_cells_do(dtype: type) -> None:
    """The fast road for arrays agrees with reading cell by cell."""
    cells: Any = np.array([0, 1, 1, 3, 0]).astype(dtype)
    assert Numbers().read(cells).tolist() == [number_of(c) for c in cells.tolist()]
    book = Codes(("3", "True", "1"))
    assert book.read(cells).tolist() == [book.one(c) for c in cells.tolist()]
    big = np.array([np.inf, -np.inf, np.nan, 1.0])
    assert np.array_equal(Numbers().read(big), [np.nan, np.nan, np.nan, 1.0], equal_nan=True)


@pytest.mark.parametrize("cells", [np.array(["2020-01-01"], "M8[D]"), np.array([1j]), np.zeros(1, "V4")])
def test_arrays_of_other_kinds_are_missing(cells: Any) -> None:
    """Dates, complex numbers and raw bytes are neither numbers nor names; their type may follow from one bad cell."""
    assert np.isnan(Numbers().read(cells)).all()
    assert (Codes(("1",)).read(cells) == -1).all()


def test_masked_and_coded_cells() -> None:
    """A masked cell and the code -1 are missing; levels that no record holds are no names."""
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    assert np.array_equal(Numbers().read(masked), [1.0, np.nan], equal_nan=True)
    coded = Coded(["2", "b", "unused"], np.array([0, 1, -1, 0]))
    assert np.array_equal(Numbers().read(coded), [2.0, np.nan, np.nan, 2.0], equal_nan=True)
    assert Codes(("b",)).read(coded).tolist() == [-1, 0, -1, -1]
    reader = Names()
    assert reader.ranked(reader.read(coded))[0] == ["2", "b"]


def test_memory_is_bounded_and_forgets_without_harm() -> None:
    """More texts than are remembered give the same answers."""
    texts = [str(i) for i in range(70_000)] * 2
    assert Numbers().read(texts).tolist() == [float(t) for t in texts]


@given(ids=st.lists(st.one_of(st.none(), st.integers(0, 5), st.sampled_from(["a", "b", "3"])), max_size=12))
def test_groups_are_dense_and_free_of_order(ids: list[Any]) -> None:
    """Equal ids share an index, indices have no gaps, a missing id is nobody's, and the order of rows does not show."""
    found = person_numbers(ids)
    held = [text_of(i) for i in ids]
    assert sorted(set(found[found >= 0].tolist())) == list(range(len({h for h in held if h})))
    assert [i is None for i in held] == (found == -1).tolist()
    assert all((a == b) == (found[i] == found[j]) for i, a in enumerate(held) for j, b in enumerate(held) if a and b)
    assert person_numbers(ids[::-1]).tolist() == found[::-1].tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int8, np.uint64, bool])
def test_small_whole_numbers_are_what_a_sort_finds(dtype: Any) -> None:
    """Codes and names of a few whole numbers, negative ones and unlisted ones among them, are those of each cell."""
    rng = np.random.default_rng(3)
    cells = (rng.integers(0, 7, 500) * 3 - (6 if np.dtype(dtype).kind in "fi" else 0)).astype(dtype)
    reader = Codes(("0", "3", "True", "-6"), other=9)
    assert reader.read(cells).tolist() == [reader.one(cell) for cell in cells.tolist()]
    names = Names()
    found, places = names.ranked(names.read(cells))
    assert found == sorted({str(text_of(cell)) for cell in cells.tolist()})
    assert [found[place] for place in places] == [text_of(cell) for cell in cells.tolist()]


@pytest.mark.parametrize("odd", [0.5, np.nan, np.inf, 1e300, 1000.0, -1e6])
def test_one_odd_number_among_small_ones_moves_no_other(odd: float) -> None:
    """A fraction, a missing or a large one: the others are read as without it."""
    cells = np.tile([0.0, 1.0, 2.0], 50)
    reader = Codes(("0", "1"), other=7)
    wanted = reader.read(cells)
    cells[4] = odd
    found = reader.read(cells)
    assert np.array_equal(np.delete(found, 4), np.delete(wanted, 4))
    assert found[4] == reader.one(odd)
