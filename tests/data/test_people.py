"""Labels of people: who is whom, who is nobody, and one row of each."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.data import grouped_by, person_numbers
from privet.data.people import label_of, one_row_each
from privet.errors import InvalidParameter
from privet.randomness import fixed_seed_invalidates_guarantee

ZOO: list[Any] = [7, 7.0, "7", " 07 ", "7.50", 7.5, None, math.nan, "nan", "NA", "", -1, "a", b"a", True, 2**70, "x y"]


def test_one_person_is_never_two() -> None:
    """However a number is written it is one label, blanks do not count, and a huge float is the whole number it is."""
    assert {label_of(x) for x in (7, 7.0, "7", " 07 ", "7.0", np.int8(7), np.float32(7), b"7", "7e0")} == {"7"}
    assert label_of(2**70) == label_of(float(2**70)) == label_of(str(2**70))
    assert label_of("7.50") == label_of(7.5) == "7.5"


def test_a_missing_label_is_nobody() -> None:
    """None, NaN, blanks, what frames write for them, and what is no label at all, get -1."""
    missing = [
        None,
        math.nan,
        "",
        "  ",
        "nan",
        "NaN",
        "None",
        "NA",
        "n/a",
        "<NA>",
        "null",
        -1,
        "-1",
        math.inf,
        object(),
    ]
    assert [label_of(cell) for cell in missing] == [None] * len(missing)
    assert person_numbers(missing).tolist() == [-1] * len(missing)
    assert person_numbers(np.array([1.0, math.nan, 1.0])).tolist() == [0, -1, 0]
    assert person_numbers(np.ma.array([1, 2, 1], mask=[False, True, False])).tolist() == [0, -1, 0]


def test_numbering_again_changes_nothing() -> None:
    """Numbers of people are labels of the same people, the missing ones still missing."""
    once = person_numbers(ZOO)
    assert (person_numbers(once) >= 0).tolist() == (once >= 0).tolist()
    assert len(set(person_numbers(once).tolist())) == len(set(once.tolist()))


@given(labels=st.lists(st.sampled_from(ZOO), max_size=20), data=st.data())
def test_order_of_rows_does_not_show(labels: list[Any], data: Any) -> None:
    """A permutation of the rows permutes the numbers, which have no gaps."""
    order = data.draw(st.permutations(range(len(labels))))
    found = person_numbers(labels)
    assert person_numbers([labels[i] for i in order]).tolist() == found[order].tolist()
    assert sorted(set(found[found >= 0].tolist())) == list(range(found.max(initial=-1) + 1))


def test_what_holds_no_labels_is_refused_by_type_and_shape() -> None:
    """A table, dates, or a scalar are refused without a cell in the message; a single column is taken."""
    for wrong in (np.zeros((3, 2)), np.array(["2020-01-01"], dtype="M8[D]"), np.array(3)):
        with pytest.raises(InvalidParameter, match="Expected groups"):
            person_numbers(wrong)
    assert person_numbers(np.array([[5], [4]])).tolist() == [1, 0]
    assert person_numbers([uuid.uuid4(), "a"])[0] == -1


def test_one_row_each_is_one_row_of_each() -> None:
    """Everybody who has a row gives exactly one, nobody's rows are never drawn; people with one row need no draw."""
    people = np.array([3, 0, -1, 3, 1, 3, -1, 2, 1])
    random = fixed_seed_invalidates_guarantee(5)
    for _ in range(50):
        rows = one_row_each(people, random)
        assert sorted(people[rows].tolist()) == [0, 1, 2, 3]
    alone = np.array([2, 0, 1])
    assert one_row_each(alone, fixed_seed_invalidates_guarantee(1)).tolist() == [0, 1, 2]
    assert one_row_each(np.array([-1, -1]), random).tolist() == []


@pytest.mark.medium
def test_one_row_each_draws_uniformly_and_independently() -> None:
    """Each of a person's rows is as likely as any other, whatever another person's draw.

    20,000 draws of two people with 3 rows each: 9 cells of expected 2,222; chi-square with 8 degrees of freedom above
    45 has probability 4e-7. Taking always the first row, or one draw for both, gives over 10,000.
    """
    people, random = np.array([0, 1, 0, 1, 0, 1]), fixed_seed_invalidates_guarantee(11)
    drawn = np.array([one_row_each(people, random) for _ in range(20_000)])
    rows = np.array([next(row for row in pair if row % 2 == side) // 2 for pair in drawn for side in (0, 1)])
    cells = np.bincount(rows[::2] * 3 + rows[1::2], minlength=9)
    assert ((cells - 20_000 / 9) ** 2 / (20_000 / 9)).sum() < 45


LARGE = [2**53 + 1, 2**53, None, 2**53 + 1, 2**53 + 2]


@pytest.mark.parametrize(
    "ids",
    [
        LARGE,
        np.fromiter(LARGE, dtype=object, count=5),
        np.ma.array([2**53 + 1, 2**53, 0, 2**53 + 1, 2**53 + 2], mask=[False, False, True, False, False]),
        pd.array(LARGE, dtype="Int64"),
        pd.Series(LARGE, dtype="UInt64"),
        pd.Series(LARGE, dtype=pd.ArrowDtype(pa.int64())),
        pd.Series(LARGE, dtype=pd.ArrowDtype(pa.decimal128(20, 0))),
        pd.Series(LARGE, dtype=object).astype("category"),
        pl.Series(LARGE),
        pl.Series(LARGE, dtype=pl.UInt64),
        pl.Series(LARGE, dtype=pl.Int128),
        pl.Series([None if cell is None else Decimal(cell) for cell in LARGE]),
        pa.array(LARGE),
        pa.chunked_array([LARGE[:2], LARGE[2:]]),
        pa.array(LARGE, type=pa.decimal128(20, 0)),
        [None if cell is None else str(cell) for cell in LARGE],
        pd.DataFrame({"id": pd.array(LARGE, dtype="Int64")}),
    ],
    ids=lambda ids: type(ids).__module__.split(".")[0] + " " + str(getattr(ids, "dtype", "")),
)
def test_a_missing_id_merges_no_others(ids: Any) -> None:
    """Ids above 2^53 stay apart beside a null, in columns of every kind, as groups and as names in a table."""
    assert person_numbers(ids).tolist() == [1, 0, -1, 1, 2]
    if not isinstance(ids, pd.DataFrame):
        assert grouped_by({"who": ids}, "who").tolist() == [1, 0, -1, 1, 2]


def test_bytes_and_texts_of_every_library_are_labels() -> None:
    """Declared as text or as bytes, an id is the text it spells; dates are refused, as they always were."""
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary(1)):
        assert person_numbers(pa.array([b"b", b"a", None], type=kind)).tolist() == [1, 0, -1]
    for column in (pl.Series(["b", "a", None]), pl.Series([b"b", b"a", None]), np.array([b"b", b"a", b""])):
        assert person_numbers(column).tolist() == [1, 0, -1]
    for dates in (pd.to_datetime(["2020-01-01"], utc=True), pl.Series([dt.date(2020, 1, 1)])):
        with pytest.raises(InvalidParameter, match="dates"):
            person_numbers(dates)


def test_an_odd_label_is_nobody_and_moves_no_other(odd: Any) -> None:
    """Record and replay: the others are who they were, whatever one label is; no error and no warning."""
    clean: list[Any] = [5, 7, 7, 9]
    alone = label_of(odd)
    expected = sorted({"5", "7", "9"} | ({alone} if alone else set()))
    for form in (list, lambda c: np.fromiter(c, dtype=object, count=5), lambda c: pd.Series(list(c), dtype=object)):
        found = person_numbers(form([*clean, odd])).tolist()
        assert found == [*(expected.index(str(c)) for c in clean), expected.index(alone) if alone else -1]
