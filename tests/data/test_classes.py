"""Labels of classes: each judged alone."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privet.data import class_list, labels, places
from privet.errors import InvalidParameter

WHOLE = [0, 1, 1, 0, 2, 1]
TEXTS = ["no", "yes", "yes", "no", "perhaps", "yes"]
TRUTH = [True, False, False, True, True, True]


def forms(cells: list[Any]) -> list[Any]:
    """The same labels as anything that holds labels of any kind."""
    array = np.fromiter(cells, dtype=object, count=len(cells))
    return [cells, tuple(cells), array, array[:, None], pd.Series(array), pl.Series(cells, dtype=pl.Object)]


@pytest.mark.parametrize("clean", [WHOLE, TEXTS, TRUTH], ids=["whole", "text", "truth"])
def test_an_odd_label_changes_nobody_elses(clean: list[Any], odd: Any) -> None:
    """Record and replay: in lists, arrays and frames the others' places are those of the labels without it."""
    classes = sorted(set(clean))
    expected = places(clean, classes)
    alone = places([odd, clean[0]], classes)[0]
    for form in forms([*clean[:3], odd, *clean[4:]]):
        found = places(form, classes, 6)
        assert np.array_equal(np.delete(found, 3), np.delete(expected, 3))
        assert np.array_equal(found[3], alone, equal_nan=True)
    neutral = math.isnan(alone) and not isinstance(odd, str | bytes | numbers.Real | Decimal)
    if neutral:
        for form in forms([*clean, odd]):
            listed = class_list(form)
            assert listed.tolist() == classes
            assert listed.dtype == class_list(clean).dtype


def test_numbers_of_one_value_are_one_label() -> None:
    """7, 7.0 and a 7 of NumPy's are one; beyond 2^53 whole numbers are told apart; truth values are 0 and 1."""
    sevens = [7, 7.0, np.int64(7), np.float32(7), Decimal(7), "7", "7.0", b"7"]
    assert places(sevens, [6, 7]).tolist() == [1.0] * len(sevens)
    large = [2**53, 2**53 + 1]
    for form in (large, np.array(large), pd.array([*large, None], dtype="Int64")[:2], pl.Series(large)):
        assert places(form, large).tolist() == [0, 1]
    for classes in ([0, 1], [False, True], np.array([0.0, 1.0])):
        for y in ([False, True], [0, 1], np.array([False, True]), pl.Series([False, True]), pa.array([0.0, 1.0])):
            assert places(y, classes).tolist() == [0, 1]
    assert np.isnan(places([0.5, "x", None, math.nan, 7 + 0j], [0, 1, 7])).all()


@pytest.mark.parametrize(
    ("dtype", "cells"),
    [("Int64", [0, 1, None, 1]), ("boolean", [False, True, None, True]), ("Float64", [0.0, 1.0, None, 1.0])],
)
def test_a_null_makes_no_other_label_another(dtype: str, cells: list[Any]) -> None:
    """Nullable columns of pandas, polars and pyarrow, with a null or without, have the same classes and places."""
    whole: list[Any] = [cell for cell in cells if cell is not None]
    for make in (lambda c: pd.Series(c, dtype=dtype), pl.Series, pa.array, list, lambda c: pa.chunked_array([c])):
        assert np.array_equal(places(make(cells), [0, 1]), [0, 1, np.nan, 1], equal_nan=True)
        assert places(make(whole), [0, 1]).tolist() == [0, 1, 1]
        assert class_list(make(cells)).tolist() == class_list(make(whole)).tolist() == [0, 1]
        assert class_list(make(cells)).dtype == class_list(make(whole)).dtype


def test_a_label_that_made_texts_of_all_is_no_harm() -> None:
    """NumPy makes [0, 1, "x"] texts before we see it; the others are still the classes 0 and 1, and the reverse."""
    assert np.array_equal(places(np.array([0, 1, "x"]), [0, 1]), [0, 1, np.nan], equal_nan=True)
    assert np.array_equal(places(np.array([True, False, "x"]), [False, True]), [1, 0, np.nan], equal_nan=True)
    assert places(np.array([0, 1]), ["0", "1"]).tolist() == [0, 1]
    assert places([" yes", "1", 1], ["yes", " yes", 1, "1"]).tolist() == [1, 3, 2]


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 3]), np.array([0.5, 0.0]), np.array([True, False]), np.array(["b", "a"]),
        np.array(["b", "a"], dtype=object), np.array([3, 1], dtype=np.uint8),
    ],
)  # fmt: skip
def test_classes_are_those_of_numpy_where_labels_are_of_one_kind(y: Any) -> None:
    """Same values, order and kind of type as `np.unique`, from arrays and from lists."""
    assert class_list(y).tolist() == np.unique(y).tolist()
    assert class_list(y.tolist()).dtype.kind in (class_list(y).dtype.kind, "i")
    assert class_list(y.tolist()).tolist() == np.unique(y).tolist()


def test_missing_and_rarer_kinds_are_no_classes() -> None:
    """NaN, None, blanks, and texts among more numbers (or the reverse) are left out; nothing at all is no class."""
    assert class_list(np.array([1.0, np.nan, np.inf, 0.0])).tolist() == [0, 1]
    assert class_list([1, 0, "Jane", None, math.nan, {}, 2.5]).tolist() == [0, 1, 2.5]
    assert class_list(["b", "a", 1, " ", b"a"]).tolist() == ["a", "b"]
    assert class_list([0, 1, True, 1.0]).dtype.kind == "i"
    assert class_list(pd.Categorical(["b", None, "a"], categories=["c", "b", "a"])).tolist() == ["a", "b"]
    assert class_list([]).tolist() == []


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 2)), np.zeros(3), np.zeros(2, complex), np.zeros(2, "M8[D]"), pd.to_datetime(["2020"] * 2)]
)
def test_labels_are_refused_by_declared_type_and_shape(wrong: Any) -> None:
    """Another shape, another length, dates and complex numbers; no error hides behind."""
    with pytest.raises(InvalidParameter, match="Expected y") as caught:
        labels(wrong, 2)
    assert caught.value.__context__ is None


def test_what_is_no_label_has_no_place_among_texts() -> None:
    """None, NaN, a list and an unlisted text have no place in classes that are texts, whose number is NaN."""
    odd: list[Any] = [None, math.nan, float("nan"), np.nan, ["no", "yes"], {}, "other", object()]
    assert np.isnan(places([*odd, "no"], ["no", "yes"])[:-1]).all()
    assert places([*odd, "no"], ["no", "yes"])[-1] == 0.0
