"""Checks of public parameters: the same idea of a number everywhere, and refusals that say what to do."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet import _checks as checks
from privet.errors import InvalidParameter

WORDS: dict[str, Any] = {"because": "nothing works with it", "use": "Use 3."}


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_plain_and_numpy_integers_are_whole(value: Any) -> None:
    """A whole number comes back as a plain int, whoever made it."""
    found = checks.whole("steps", value, **WORDS)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, 0, -1, 10**400])
def test_what_is_no_whole_number_in_range_is_refused(value: Any) -> None:
    """Booleans, floats, texts and what is out of range are refused in one sentence that names the parameter."""
    with pytest.raises(
        InvalidParameter, match=r"Expected steps to be a whole number from 1 to 9, got .*: nothing .* Use 3"
    ):
        checks.whole("steps", value, most=9, **WORDS)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), Fraction(2)])
def test_numbers_come_back_as_plain_floats(value: Any) -> None:
    """Any real number is a float afterwards."""
    for found in (
        checks.number("x", value, **WORDS),
        checks.positive("x", value, **WORDS),
        checks.between("x", value, 0, 3, **WORDS),
    ):
        assert found == 2.0
        assert type(found) is float


@pytest.mark.parametrize("value", [True, np.False_, math.nan, math.inf, "2", None, 1j, 10**400, [2]])
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    """Nothing else is a number, and none of it makes a check itself fail."""
    for check in (checks.number, checks.positive):
        with pytest.raises(InvalidParameter, match="Expected x"):
            check("x", value, **WORDS)
    with pytest.raises(InvalidParameter, match=r"Expected x in \[0, 1\)"):
        checks.between("x", value, 0, 1, closed=(True, False), **WORDS)


def test_ends_count_where_they_are_closed() -> None:
    """An interval holds its closed ends only."""
    assert checks.between("x", 0, 0, 1, closed=(True, False), **WORDS) == 0.0
    with pytest.raises(InvalidParameter, match=r"\[0, 1\)"):
        checks.between("x", 1, 0, 1, closed=(True, False), **WORDS)
    assert checks.positive("x", 0, zero=True, **WORDS) == 0.0
    with pytest.raises(InvalidParameter, match="positive"):
        checks.positive("x", 0, **WORDS)


def test_names_are_listed_when_one_is_unknown() -> None:
    """A refusal of a name says which there are."""
    assert checks.one_of("law", "b", ("a", "b"), **WORDS) == "b"
    with pytest.raises(InvalidParameter, match="one of 'a', 'b', got 'c'"):
        checks.one_of("law", "c", ("a", "b"), **WORDS)
