from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import InvalidParameter
from privet.theory import projector, rank, seminorm


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 8), st.integers(0, 2**32 - 1))
def test_projector_is_the_projector_on_the_span(n: int, d: int, r: int, seed: int) -> None:
    """M is symmetric, idempotent, keeps the records, has the records' rank, and kills what is orthogonal to them."""
    rng = np.random.default_rng(seed)
    r = min(r, n, d)
    data = rng.standard_normal((n, r)) @ rng.standard_normal((r, d))
    M = projector(data, tol=1e-9)
    assert rank(data, tol=1e-9) == r
    assert np.trace(M) == pytest.approx(r, abs=1e-9)
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    np.testing.assert_allclose(M @ M, M, atol=1e-12)
    np.testing.assert_allclose(data @ M, data, atol=1e-7)
    v = rng.standard_normal(d)
    assert seminorm(v - M @ v, M) == pytest.approx(0.0, abs=1e-10)
    assert seminorm(v, M) ** 2 == pytest.approx(float(v @ M @ v), abs=1e-9)
    assert seminorm(v, M) <= np.linalg.norm(v) * (1 + 1e-12)


def test_claim_4_4_by_hand() -> None:
    """Row 52: Mv keeps exactly the components whose eigenvalue is positive."""
    M = projector([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    np.testing.assert_allclose(M @ np.array([3.0, 4.0, 5.0]), [3.0, 4.0, 0.0], atol=1e-15)
    assert seminorm([3.0, 4.0, 5.0], M) == pytest.approx(5.0)


def test_tolerance_decides_what_is_zero() -> None:
    """A direction a billion times weaker counts by default and not above its tolerance."""
    data = [[1.0, 0.0], [0.0, 1e-9]]
    assert rank(data) == 2
    assert rank(data, tol=1e-6) == 1
    assert rank(np.zeros((3, 2))) == 0


@pytest.mark.parametrize("bad", [[1.0, 2.0], np.zeros((0, 3)), [[np.nan, 1.0]], [[np.inf, 1.0]]])
def test_what_spans_no_space_is_refused(bad: object) -> None:
    """Shapes and missing values raise: these data are public."""
    with pytest.raises(InvalidParameter):
        projector(bad)  # type: ignore[arg-type]


def test_seminorm_refuses_unlike_shapes() -> None:
    """A vector and a projector of unlike size have no length."""
    with pytest.raises(InvalidParameter):
        seminorm([1.0, 2.0], np.eye(3))
