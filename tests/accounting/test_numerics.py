from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.accounting.numerics import bracketed_root, downward, upward


@given(st.floats(1e-300, 1e300))
def test_rounding_moves_to_its_side(value: float) -> None:
    """Upwards is above, downwards below, both within 2e-14 relative."""
    assert downward(value) < value < upward(value)
    assert upward(value) / downward(value) < 1 + 3e-14


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.sampled_from([1.0, -1.0]))
def test_root_is_bracketed_by_evaluated_ends(root: float, left: float, right: float, slope: float) -> None:
    """The ends returned have the signs promised, and are as close as asked, for rising and falling functions."""

    def function(x: float) -> float:
        return slope * (x - root) * (1.0 + (x - root) ** 2)

    low, high = root - left, root + right
    negative, positive = (low, high) if slope > 0 else (high, low)
    if not (function(negative) <= 0.0 < function(positive)):
        return
    x, y = bracketed_root(function, negative, positive)
    assert function(x) <= 0.0 < function(y)
    assert abs(x - y) <= 4e-15 * max(abs(x), abs(y), 1e-300) or math.nextafter(x, y) == y


def test_root_of_a_jump_is_found() -> None:
    """A function without slope anywhere, and with an infinity, is bisected to adjacent floats."""
    x, y = bracketed_root(lambda v: math.inf if v > 0.3 else -1.0, 0.0, 1.0)
    assert x <= 0.3 < y
    assert y - x < 1e-15


def test_no_sign_change_is_refused() -> None:
    """Ends of one sign promise nothing, so there is no answer."""
    with pytest.raises(ValueError, match="no sign change"):
        bracketed_root(lambda v: v, 1.0, 2.0)
