from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet import glm
from privet.errors import InvalidParameter
from privet.preprocessing import Target, decode_target, encode_target

LABEL = Target(column="y", kind="label", values=("no", "yes", "3"))
NUMBER = Target(column="y", kind="number", low=300, high=20000, log=True)
COUNT = Target(column="y", kind="count", low=0, high=20)


def test_labels_become_indices_and_come_back() -> None:
    """Listed labels have their place in the list; unlisted and missing ones NaN."""
    found = encode_target(LABEL, ["yes", " no", 3, 3.0, "Jane Doe", None, ["x"]])
    assert np.array_equal(found, [1, 0, 2, 2, np.nan, np.nan, np.nan], equal_nan=True)
    assert decode_target(LABEL, found[:4]).tolist() == ["yes", "no", "3", "3"]


def test_other_is_a_class_for_the_rest() -> None:
    """With `other` an unlisted label has a class; a missing one still has none."""
    target = Target(column="y", kind="label", values=("normal",), other="attack")
    found = encode_target(target, {"y": ["normal", "smurf", "attack", None, ""]})
    assert np.array_equal(found, [0, 1, 1, np.nan, np.nan], equal_nan=True)
    assert decode_target(target, [1, 0]).tolist() == ["attack", "normal"]


def test_numbers_are_kept_to_their_range_and_come_back() -> None:
    """Numbers in their own unit, log1p of it where the schema says log, clipped; predictions back in the range."""
    found = encode_target(NUMBER, ["300", 20000, 1e9, -5, "Jane Doe", 1000])
    np.testing.assert_allclose(found[:4], np.log1p([300, 20000, 20000, 300]), rtol=1e-15)
    assert np.isnan(found[4])
    np.testing.assert_allclose(decode_target(NUMBER, found[[0, 1, 5]]), [300, 20000, 1000])
    assert decode_target(NUMBER, [-1e9, 1e9]).tolist() == [300.0, 20000.0]


def test_counts_are_bounded_and_whole() -> None:
    """Counts above the bound are cut to it; what is no count is NaN."""
    found = encode_target(COUNT, [0, 7, 99, -1, 2.5, "x"])
    assert np.array_equal(found, [0, 7, 20, np.nan, np.nan, np.nan], equal_nan=True)
    assert decode_target(COUNT, [1.5]).tolist() == [1.5]


def test_bad_labels_are_empty_records_downstream() -> None:
    """A record whose label became NaN has no gradient at all."""
    X, y = np.array([[0.6, 0.8], [1.0, 0.0]]), encode_target(LABEL, ["yes", "Jane Doe"])
    problem = glm("logistic", X, y, row_norm=1.0)
    assert not problem.table.units[1].any()


@pytest.mark.parametrize("target", [Target(column="y", kind="label"), Target(column="y", kind="number"), None])
def test_unknown_targets_are_refused(target: Any) -> None:
    """Classes and ranges are never read off the rows; the refusal names the column (docs/footguns.md, 42)."""
    for function in (encode_target, decode_target):
        with pytest.raises(InvalidParameter, match=r"'y'|Target"):
            function(target, ["Jane Doe"])


def test_dropping_the_only_row_of_a_class_changes_no_shape() -> None:
    """The classes are those of the schema, whoever is there (docs/footguns.md, 42)."""
    assert LABEL.classes == ("no", "yes", "3")
    assert encode_target(LABEL, ["no"])[0] == encode_target(LABEL, ["no", "yes"])[0] == 0
