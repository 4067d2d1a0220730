from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from privet.errors import InvalidParameter
from privet.losses import AppendOne, CustomFeatures, FeatureMap, RandomFourier, append_one

MAPS: dict[str, FeatureMap] = {
    "one": AppendOne(),
    "scaled one": AppendOne(scale=0.25),
    "custom": CustomFeatures(function=np.tanh, norm=math.sqrt(3)),
    "fourier": RandomFourier(inputs=3, frequencies=7, scale=2.0, seed=5),
}


@pytest.mark.medium
@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
@given(X=arrays(np.float64, (4, 3), elements=st.floats(-1e3, 1e3)))
def test_declared_norm_holds(phi: FeatureMap, X: np.ndarray) -> None:
    """No image is longer than the map says for rows as long as the longest."""
    longest = float(np.linalg.norm(X, axis=1).max())
    assert np.linalg.norm(phi.transform(X), axis=1).max() <= phi.output_norm(longest) * (1 + 1e-14)


@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
def test_rows_are_mapped_one_by_one(phi: FeatureMap) -> None:
    """A row's image does not depend on the other rows, and a bad row spoils no other and raises nothing."""
    X = np.random.default_rng(0).normal(size=(6, 3))
    expected = phi.transform(X)
    X[2] = [math.nan, math.inf, -math.inf]
    others = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(phi.transform(X)[others], expected[others], rtol=1e-14)


def test_appended_one_counts_in_the_norm() -> None:
    """A row of norm 1 has norm √2 with the 1, and √(1 + s²) with s appended; in [−1, 1]^d it is √(d + 1)."""
    assert AppendOne().output_norm(1.0) == math.sqrt(2)
    assert AppendOne(scale=0.5).output_norm(1.0) == math.sqrt(1.25)
    assert AppendOne().output_norm(math.sqrt(10)) == pytest.approx(math.sqrt(11))
    assert AppendOne().output_norm(math.inf) == math.inf


def test_sparse_rows_stay_sparse() -> None:
    """Appending to a sparse matrix gives the CSR form of what it gives for the dense one, in the same precision."""
    X = np.array([[0.0, 2.0], [0.0, 0.0]], dtype=np.float32)
    got = append_one(sparse.csr_array(X), scale=3.0)
    assert sparse.issparse(got)
    assert got.format == "csr"
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.toarray(), append_one(X, scale=3.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_precision_of_rows_is_kept(dtype: type) -> None:
    """float32 rows stay float32; integers and booleans become float64."""
    expected = np.float32 if dtype is np.float32 else np.float64
    assert append_one(np.ones((2, 3), dtype=dtype)).dtype == expected
    assert MAPS["fourier"].transform(np.ones((2, 3), dtype=dtype)).dtype == expected


def test_fourier_features_approximate_the_gaussian_kernel() -> None:
    """Inner products come within 5/√frequencies of exp(−‖x − x′‖²/(2 scale²)); a scale off by a tenth does not.

    Each is a mean of 20,000 cosines, all within ±1, so by Hoeffding one of the 15 pairs strays by 5/√20,000 with
    probability below 15 · 2 exp(−25/2) = 2e-4 over seeds; the seed is fixed.
    """
    X = np.random.default_rng(0).normal(size=(6, 3))
    phi = RandomFourier(inputs=3, frequencies=20_000, scale=1.5, seed=11).transform(X)
    distances = np.square(X[:, np.newaxis] - X[np.newaxis]).sum(axis=-1)
    error = {s: np.abs(phi @ phi.T - np.exp(-distances / (2 * s**2))).max() for s in (1.5, 1.65, 1.35)}
    assert error[1.5] <= 5 / math.sqrt(20_000) < min(error[1.65], error[1.35])


def test_fourier_features_are_pinned_to_their_seed() -> None:
    """The same seed gives the same map for ever: a released model needs it. Values computed by this code, v0.1."""
    X = np.array([[1.0, -2.0]])
    first = RandomFourier(inputs=2, frequencies=2, scale=1.0, seed=0).transform(X)
    pinned = [[-0.5463626790046427, -0.6178911839394082, -0.4488739500025254, -0.34381751672937827]]
    np.testing.assert_allclose(first, pinned, rtol=1e-12)
    assert not np.allclose(first, RandomFourier(inputs=2, frequencies=2, scale=1.0, seed=1).transform(X))


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2, 2)), np.array([["a", "b"]]), 1.0])
def test_what_is_no_matrix_is_refused(X: np.ndarray) -> None:
    """Another number of dimensions, or text, is an error; no entry is quoted."""
    with pytest.raises(InvalidParameter):
        append_one(X)


def test_parameters_are_checked() -> None:
    """Scales, norms, counts and functions that define no map are refused by name."""
    with pytest.raises(InvalidParameter, match="scale"):
        AppendOne(scale=0.0)
    with pytest.raises(InvalidParameter, match="norm"):
        CustomFeatures(function=np.tanh, norm=math.inf)
    with pytest.raises(InvalidParameter, match="function"):
        CustomFeatures(function=3, norm=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="frequencies"):
        RandomFourier(inputs=2, frequencies=0, scale=1.0, seed=0)
    with pytest.raises(InvalidParameter, match="rows of 2 features, got 3"):
        RandomFourier(inputs=2, frequencies=1, scale=1.0, seed=0).transform(np.zeros((1, 3)))
