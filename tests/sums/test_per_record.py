from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.clipping import Adaptive, Automatic, Bounding, Clip, Declared, LatticeSum
from privet.errors import InvalidParameter
from privet.sums import record_sum

RULES: list[Bounding] = [
    Clip(clip=1.0),
    Clip(clip=0.3),
    Clip(clip=1e-30),
    Declared(lipschitz=7.0),
    Automatic(clip=0.9, stability=0.05),
    Adaptive(clip=0.6, count_noise=5.0),
]
SPECIAL = [0.0, 1.0, -1.0, 0.6, 0.8, 1e-300, 1e300, 1.7e308, 5e-324, math.nan, math.inf, -math.inf]
ROW = st.lists(st.one_of(st.sampled_from(SPECIAL), st.floats(-2, 2)), min_size=3, max_size=3)


class Sharp:
    """A rule whose factor is no help at all: the sum must bound the record by itself."""

    clip = 1.0

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def factor(self, norms: Any) -> Any:
        return np.full_like(norms, self._factor)

    def describe(self) -> str:
        return "nothing"


def square(units: Any) -> int:
    return sum(int(v) ** 2 for v in np.ravel(units))


def within(one: LatticeSum, other: LatticeSum, clips: int) -> None:
    assert square(one.units - other.units) * Fraction(one.step) ** 2 <= (clips * Fraction(one.clip)) ** 2
    assert abs(one.within - other.within) <= clips


@settings(max_examples=120)
@given(st.lists(ROW, min_size=1, max_size=3), ROW, st.sampled_from(RULES), st.sampled_from([3, 2**27]))
def test_one_record_moves_the_sum_by_at_most_the_clip(
    rows: list[list[float]], other: list[float], rule: Bounding, most: int
) -> None:
    """For every rule × neighbours × n = 1, 2, 3, in exact arithmetic; the count included."""

    def summed(some: list[list[float]]) -> LatticeSum:
        return record_sum(np.array(some).reshape(-1, 3), rule=rule, max_records=most)

    whole = summed(rows)
    for i in range(len(rows)):
        within(whole, summed([*rows[:i], *rows[i + 1 :]]), 1)
        within(whole, summed([*rows[:i], [0.0] * 3, *rows[i + 1 :]]), 1)
        within(whole, summed([*rows[:i], other, *rows[i + 1 :]]), 2)


@pytest.mark.medium
@pytest.mark.parametrize("columns", [1, 2, 50, 9001])
@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_rows_on_the_boundary_are_within_the_clip(columns: int, rule: Bounding) -> None:
    """Gradients of exactly the clip, an ulp less or more, and far beyond, are within it, and near it if clipped."""
    rng = np.random.default_rng(columns)
    rows = np.vstack([np.eye(1, columns), np.ones((1, columns)), rng.normal(size=(6, columns))])
    rows *= rule.clip / np.linalg.norm(rows, axis=1, keepdims=True)
    for scale in (1.0, 1 - 2.0**-53, 1 + 2.0**-52, 1e10, 1e-10, 1e280):
        for row in rows * scale:
            total = record_sum(row[None], rule=rule, max_records=1)
            assert square(total.units) * Fraction(total.step) ** 2 <= Fraction(rule.clip) ** 2
            if scale >= 1e10 and not isinstance(rule, Automatic):
                assert square(total.units) * Fraction(total.step) ** 2 >= Fraction(rule.clip) ** 2 * (1 - 2.0**-30)


@pytest.mark.parametrize("factor", [1e300, math.inf, math.nan, -5.0, 0.0])
def test_no_rule_can_lengthen_a_record_beyond_its_clip(factor: float) -> None:
    """Whatever a rule's factor is, the share is within the clip."""
    total = record_sum(np.array([[3.0, 4.0], [1e-9, 0.0]]), rule=Sharp(factor), max_records=2)
    assert square(total.units) * Fraction(total.step) ** 2 <= 4
    assert np.isfinite(total.value).all()


def test_the_sum_is_the_plain_one_where_nothing_is_clipped() -> None:
    """With a huge clip the sum is that of the gradients, to a lattice step a record."""
    rows = np.random.default_rng(1).normal(size=(300, 4))
    total = record_sum(rows, rule=Clip(clip=1e3), max_records=300)
    assert np.abs(total.value - rows.sum(axis=0)).max() <= 300 * total.step


@pytest.mark.parametrize("columns", [1, 3, 65, 9001])
def test_place_order_and_layout_never_change_a_share(columns: int) -> None:
    """A record's share is the same alone, among others, in C or Fortran order, in any block."""
    rows = np.random.default_rng(columns).normal(size=(11, columns))
    rule = Adaptive(clip=0.5, count_noise=1.0)
    shares = [record_sum(row[None], rule=rule, max_records=11).units for row in rows]
    for some in (slice(None), slice(1, None), slice(0, 2), slice(None, None, -1)):
        for layout in ("C", "F"):
            found = record_sum(np.array(rows[some], order=layout), rule=rule, max_records=11)
            assert (found.units == np.sum(shares[some], axis=0)).all()


def test_single_precision_gradients_give_the_bits_of_the_same_values() -> None:
    """float32 gradients are widened before anything is computed."""
    rows = np.random.default_rng(2).normal(size=(9, 5)).astype(np.float32)
    one, other = (record_sum(form, rule=Clip(clip=0.7)) for form in (rows, rows.astype(np.float64)))
    assert (one.units == other.units).all()


def test_one_huge_row_among_zeros_contributes_its_clip() -> None:
    """Each record is clipped before the sum, not the sum or the mean."""
    rows = np.zeros((1000, 2))
    rows[500] = [3e200, 4e200]
    total = record_sum(rows, rule=Clip(clip=1.0))
    assert total.value == pytest.approx([0.6, 0.8], abs=1e-9)


def test_layers_are_bounded_together() -> None:
    """A record's gradient of several axes is bounded in the norm of all its entries."""
    rows = np.random.default_rng(3).normal(size=(1, 3, 4, 5)) * 10
    total = record_sum(rows, rule=Clip(clip=2.0))
    assert total.units.shape == (3, 4, 5)
    assert np.linalg.norm(total.value) == pytest.approx(2.0, abs=1e-7)
    assert square(total.units) * Fraction(total.step) ** 2 <= 4


def test_empty_batches_and_capacity() -> None:
    """No records give zeros; more than the lattice was made for are refused."""
    assert record_sum(np.zeros((0, 2)), rule=Clip(clip=1.0)).value.tolist() == [0.0, 0.0]
    assert record_sum(np.zeros((2, 1)), rule=Clip(clip=1.0), max_records=2).units.tolist() == [0]
    with pytest.raises(InvalidParameter, match="at most 2 records"):
        record_sum(np.zeros((3, 1)), rule=Clip(clip=1.0), max_records=2)
