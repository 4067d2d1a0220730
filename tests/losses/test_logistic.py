from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import InvalidParameter
from privet.losses import LogisticLoss

ZERO_ONE = LogisticLoss(labels="zero_one")
PLUS_MINUS = LogisticLoss(labels="plus_minus_one")


@given(z=st.floats(allow_nan=False), y=st.sampled_from([0, 1]), single=st.booleans())
def test_both_ways_to_write_labels_agree_to_the_last_bit(z: float, y: int, single: bool) -> None:
    """Labels {0, 1} and {−1, +1} give the same bits after y ↦ 2y − 1."""
    with np.errstate(over="ignore"):
        at = np.array([z], dtype=np.float32 if single else np.float64)
    for method in ("value", "derivative", "curvature"):
        one = getattr(ZERO_ONE, method)(at, [y])
        other = getattr(PLUS_MINUS, method)(at, [2 * y - 1])
        assert one.tobytes() == other.tobytes()


@given(z=st.floats(-600, 600), y=st.sampled_from([0, 1]))
def test_all_digits_are_right(z: float, y: int) -> None:
    """Value, derivative and curvature agree with 40-digit arithmetic to 1e-15 relative, tails included."""
    with mpmath.workdps(300):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(z)))
        expected = {"value": -mpmath.log(p if y else 1 - p), "derivative": p - y, "curvature": p * (1 - p)}
        for method, truth in expected.items():
            got = float(getattr(ZERO_ONE, method)([z], [y])[0])
            assert abs(got - truth) <= 1e-15 * abs(truth) + 1e-307


def test_cross_entropy_of_the_lecture() -> None:
    """The loss is −y log p − (1 − y) log(1 − p) with p the sigmoid (lecture 13, example 1.3)."""
    z, y = np.linspace(-3, 3, 13), np.arange(13) % 2
    p = 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(ZERO_ONE.value(z, y), -y * np.log(p) - (1 - y) * np.log(1 - p), rtol=1e-13)


def test_lipschitz_constant_of_a_bounded_domain_is_the_sharpened_one() -> None:
    """Over |z| ≤ R√(d+1) the constant is 1/(1 + e^(−R√(d+1))), below the lecture's 1."""
    bound = 0.5 * math.sqrt(11)
    assert ZERO_ONE.lipschitz(bound) == pytest.approx(1 / (1 + math.exp(-bound)), rel=1e-15)


def test_unknown_way_to_write_labels_is_refused() -> None:
    """The set of labels is one of two, and never guessed."""
    with pytest.raises(InvalidParameter, match="'zero_one' or 'plus_minus_one', got '01'"):
        LogisticLoss(labels="01")  # type: ignore[arg-type]  # which is the point
