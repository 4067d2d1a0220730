"""The Hessian's sum: whole, exact, positive semidefinite, bounded a record."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privet.clipping.rules import FloatArray
from privet.errors import InvalidParameter
from privet.losses import LogisticLoss
from privet.sums import bounded_table, curvature_sum

LOGISTIC = LogisticLoss()


def wild(z: FloatArray, y: FloatArray) -> FloatArray:
    """Beyond its declared bound, negative, infinite, no number: whatever the label says."""
    return np.asarray(y)


def rows(n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


@pytest.mark.parametrize("label", [0.0, 1e-9, 0.3, 1.0, 7.0, -2.0, math.inf, -math.inf, math.nan, 1e300])
@pytest.mark.parametrize("most", [1, 1000, 2**27])
def test_one_record_is_one_bounded_outer_product(label: float, most: int) -> None:
    """In exact arithmetic: rank one, trace = squared norm of r ≤ row_norm², weights cut to [0, 1], bad ones zero."""
    table = bounded_table(rows(1, 3), row_norm=1.0)
    found = curvature_sum(wild, table, np.array([label]), np.zeros(3), smoothness=1.0, max_records=most)
    units = [[int(u) for u in row] for row in found.units]
    trace = sum(units[i][i] for i in range(3)) * Fraction(found.step)
    assert trace <= 1
    for i in range(3):
        for j in range(3):
            assert units[i][j] ** 2 == units[i][i] * units[j][j]
    wanted = 0.0 if not math.isfinite(label) else min(max(label, 0.0), 1.0)
    assert float(trace) == pytest.approx(wanted * float(np.sum((table.units * table.step) ** 2)), abs=2e-4)


def test_it_is_the_hessian() -> None:
    """Of the logistic loss, to the rounding of the rows' grid."""
    X, theta = rows(500, 4), np.array([1.0, -2.0, 0.5, 3.0])
    table = bounded_table(X, row_norm=1.0)
    y = np.zeros(500)
    found = curvature_sum(LOGISTIC.curvature, table, y, theta, smoothness=0.25, max_records=500).value * 0.25
    h = LOGISTIC.curvature(X @ theta, y)
    assert np.allclose(found, (X * h[:, None]).T @ X, rtol=0, atol=500 * 0.25 * 1e-4)


def test_order_threads_and_storage_change_no_bit() -> None:
    """Shuffled rows, two threads, CSR in place of dense: the same whole numbers."""
    X, theta = rows(9000, 3), np.array([1.0, -2.0, 0.5])
    y = np.zeros(9000)
    order = np.random.default_rng(1).permutation(9000)

    def units(data: object, threads: int = 1) -> NDArray[np.int64]:
        table = bounded_table(data, row_norm=1.0)
        return curvature_sum(LOGISTIC.curvature, table, y, theta, smoothness=0.25, threads=threads).units

    ours = units(X)
    for other in (units(X[order]), units(X, threads=2), units(sparse.csr_matrix(X))):
        assert np.array_equal(ours, other)


def test_more_records_than_declared_or_than_fit_are_refused() -> None:
    """On public facts, before an integer could wrap around."""
    table = bounded_table(rows(3, 2), row_norm=1.0)
    for most, says in ((2, "at most 2 records"), (2**33, "overflow")):
        with pytest.raises(InvalidParameter, match=says):
            curvature_sum(wild, table, np.zeros(3), np.zeros(2), smoothness=1.0, max_records=most)
    with pytest.raises(InvalidParameter, match="smoothness"):
        curvature_sum(wild, table, np.zeros(3), np.zeros(2), smoothness=0.0)
