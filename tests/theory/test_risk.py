from __future__ import annotations

import math

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.theory import RiskBound, trivial_bound
from privet.theory.risk import at_least_zero, positive, probability, smaller, whole


@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, "1", None, True])
def test_what_is_not_positive_and_finite_is_refused(bad: object) -> None:
    """A constant that gives no bound raises, with what to do."""
    with pytest.raises(InvalidParameter, match="Pass a public constant"):
        positive("radius", bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, 2.5, "3", True, None])
def test_what_is_no_count_is_refused(bad: object) -> None:
    """A count is a whole number of at least 1."""
    with pytest.raises(InvalidParameter, match="whole number"):
        whole("steps", bad)


def test_numbers_of_numpy_are_taken() -> None:
    """NumPy scalars become plain numbers."""
    assert type(whole("n", np.int64(3))) is int
    assert type(positive("radius", np.float32(2.0))) is float


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_negative_or_infinite_amount_is_refused(bad: float) -> None:
    """Noise is at least 0 and finite; a probability is strictly between 0 and 1."""
    with pytest.raises(InvalidParameter):
        at_least_zero("noise_stddev", bad)
    with pytest.raises(InvalidParameter):
        probability("beta", bad)


def test_a_bound_is_a_number_with_a_name() -> None:
    """It converts to float, prints its theorem, refuses nonsense, and the smaller of two wins."""
    low, high = trivial_bound(distance=1.0, lipschitz=1.0), trivial_bound(distance=2.0, lipschitz=1.0)
    assert float(low) == pytest.approx(1.0, rel=1e-12)
    assert float(low) >= 1.0
    assert smaller(low, high) is low
    assert smaller(high, low) is low
    assert "claim 78" in str(low)
    with pytest.raises(InvalidParameter):
        RiskBound(value=-1.0, theorem="", assumptions=())
