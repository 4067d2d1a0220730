from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privet.errors import InvalidParameter
from privet.preprocessing.scaling import Scaling, scaling_from


@given(
    hnp.arrays(np.float64, (5, 3), elements=st.floats(allow_nan=True, allow_infinity=True)),
    st.booleans(),
)
def test_prepared_rows_have_norm_at_most_one(rows: np.ndarray, intercept: bool) -> None:
    """Whatever is in a cell, the prepared row is finite and no longer than 1, up to rounding."""
    scaling = scaling_from(([-1e3, 0, 5], [1e3, 1, 5]), 3, intercept=intercept)
    with np.errstate(all="ignore"):
        prepared = scaling.prepare(rows)
    assert np.isfinite(prepared).all()
    assert (np.linalg.norm(prepared, axis=1) <= 1 + 1e-15).all()


def test_coefficients_come_back_in_the_data_s_units() -> None:
    """A model on prepared rows and its unscaled form predict the same inside the ranges."""
    rng = np.random.default_rng(0)
    scaling = Scaling(low=np.array([-3.0, 4.0]), high=np.array([1.0, 10.0]), intercept=True, norm=1.5)
    X = rng.uniform(scaling.low, scaling.high, size=(20, 2))
    theta = rng.normal(size=(3, 2))
    coef, intercept = scaling.unscaled(theta)
    np.testing.assert_allclose(X @ coef.T + intercept, scaling.prepare(X) @ theta)


@pytest.mark.parametrize("bounds", [(1, 0), (0, np.inf), ("a", "b"), 3, (0, 1, 2), ([0, 0], [1, 1])])
def test_ranges_that_bound_nothing_are_refused(bounds: object) -> None:
    """Two finite ends, in order, one or one a feature; else a kind error."""
    with pytest.raises(InvalidParameter, match="bounds="):
        scaling_from(bounds, 3, intercept=True)


def test_no_norm_depends_on_how_many_rows_there_are() -> None:
    """A row alone in its block is summed as beside others, in whatever order the table lies in memory."""
    rows = np.asfortranarray(np.random.default_rng(0).uniform(-1, 1, size=(4096 + 64, 20)))
    scaling = scaling_from((-1, 1), 20, intercept=True)
    whole = scaling.norms(rows)
    alone = [scaling.norms(rows[place : 4097 + place])[-1] for place in range(64)]
    assert alone == whole[4096:].tolist()


@given(
    low=st.floats(-1e307, 1e307), width=st.floats(1e-3, 1e307), values=st.lists(st.floats(allow_nan=False), min_size=1)
)
def test_scaling_stays_within_one_and_inverts(low: float, width: float, values: list[float]) -> None:
    """Any range to [-1, 1] without a warning; inside the range, there and back is the identity to rounding."""
    high = low + width
    if not low < high:
        return
    raw = np.array(values)
    scaling = scaling_from((low, high), 1, intercept=False)
    units = scaling.features(raw[:, None])[:, 0]
    assert (np.abs(units) <= 1).all()
    back = units * scaling.half + scaling.middle
    np.testing.assert_allclose(back, np.clip(raw, low, high), atol=4e-16 * max(abs(low), abs(high)), rtol=1e-9)


def test_zero_stays_zero_where_the_range_holds_it() -> None:
    """So sparse rows stay sparse and a 0/1 feature stays one; other ranges are centred."""
    scaling = scaling_from(([-1.0, 0.0, 5.0], [4.0, 2.0, 9.0]), 3, intercept=False)
    assert scaling.features(np.array([[0.0, 0.0, 7.0], [4.0, 2.0, 9.0], [-1.0, 1.0, 5.0]])).tolist() == [
        [0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0],
        [-0.25, 0.5, -1.0],
    ]
