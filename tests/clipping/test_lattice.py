from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.clipping import LatticeSum, lattice_step
from privet.clipping.lattice import check_clip, check_count
from privet.errors import InvalidParameter


@given(st.floats(2.0**-400, 2.0**400), st.integers(1, 2**41))
def test_sums_of_clips_fit_in_an_int64(clip: float, max_records: int) -> None:
    """A clip is at most 2^41 and at least 2^19 whole steps; max_records of them stay within 2^61."""
    step = lattice_step(clip, max_records=max_records)
    assert math.frexp(step)[0] == 0.5
    units = Fraction(clip) / Fraction(step)
    assert 2**19 <= units <= 2**41
    assert units * max_records <= 2**61


def test_too_many_records_are_refused_one_step_above() -> None:
    """2^41 records fit, one more does not."""
    assert lattice_step(1.0, max_records=2**41) == 2.0**-20
    with pytest.raises(InvalidParameter, match="2\\^41 records"):
        lattice_step(1.0, max_records=2**41 + 1)
    check_count(5, 5)
    with pytest.raises(InvalidParameter, match="at most 5 records"):
        check_count(6, 5)


@pytest.mark.parametrize("clip", [0, 0.0, -1.0, math.nan, math.inf, "1", None, True, 2.0**-401, 2.0**401, 1j])
def test_clips_that_bound_nothing_are_refused(clip: Any) -> None:
    """A clip is a positive finite real number."""
    with pytest.raises(InvalidParameter, match="clip"):
        check_clip(clip)


@pytest.mark.parametrize("clip", [1, np.float32(0.5), np.int64(3), Fraction(1, 3)])
def test_any_real_number_may_be_a_clip(clip: Any) -> None:
    """NumPy numbers and fractions are numbers."""
    assert check_clip(clip) == float(clip)


def test_a_sum_does_not_print_itself() -> None:
    """The repr shows shape, step and clip; the private units and counts stay out."""
    shown = repr(LatticeSum(units=np.array([12345]), step=0.5, clip=1.0, within=777))
    assert "12345" not in shown
    assert "777" not in shown
