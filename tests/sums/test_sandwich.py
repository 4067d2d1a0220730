"""Bread, meat and counts of norms: whole, exact, bounded a record under each relation."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privet.clipping import LatticeSum
from privet.clipping.rules import FloatArray
from privet.errors import InvalidParameter
from privet.losses import HuberLoss, LogisticLoss
from privet.sums import bounded_table, norm_counts, sandwich_sums

LOGISTIC = LogisticLoss()
WILD = [0.0, 1e-9, 0.3, 0.7, 1.0, 7.0, -2.0, math.inf, -math.inf, math.nan, 1e300, 5e-324]


def wild(z: FloatArray, y: FloatArray) -> FloatArray:
    """Whatever the label says: huge, negative, infinite, no number."""
    return np.asarray(y)


def constant(z: FloatArray, y: FloatArray) -> FloatArray:
    """The largest curvature that is declared."""
    return np.ones_like(z)


def rows(n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def length(one: LatticeSum, other: LatticeSum) -> Fraction:
    """Squared Frobenius distance, exactly."""
    moved = (int(a) - int(b) for a, b in zip(one.units.ravel(), other.units.ravel(), strict=True))
    return Fraction(sum(u * u for u in moved)) * Fraction(one.step) ** 2


@pytest.mark.medium
@pytest.mark.parametrize("clip", [1.0, 0.7, 0.1])
@pytest.mark.parametrize("most", [5, 2**27])
def test_one_record_moves_each_sum_by_no_more_than_its_clip(clip: float, most: int) -> None:
    """By brute force, exactly: emptied, added, removed at most one clip, exchanged two; and no label changes that."""
    X = rows(4, 3)
    theta = np.array([0.5, -1.0, 2.0])

    def sums(keep: list[int], labels: list[float]) -> tuple[LatticeSum, ...]:
        table = bounded_table(X[keep], row_norm=1.0)
        y = np.array(labels)
        pair = sandwich_sums(wild, wild, table, y, theta, clip=clip, smoothness=0.25, max_records=most)
        edges = clip * np.array([1.0, 0.5, 0.25])
        return (*pair, norm_counts(wild, table, y, theta, edges=edges, max_records=most))

    for label in WILD:
        whole = sums([0, 1, 2], [0.2, label, 0.9])
        fewer = sums([0, 2], [0.2, 0.9])
        emptied = sums([0, 1, 2], [0.2, math.nan, 0.9])
        for a, b, c in zip(whole, fewer, emptied, strict=True):
            assert np.array_equal(b.units, c.units)
            assert length(a, b) <= Fraction(a.clip) ** 2
        for other in WILD:
            for a, b in zip(whole, sums([0, 3, 2], [0.2, other, 0.9]), strict=True):
                assert length(a, b) <= (2 * Fraction(a.clip)) ** 2


def test_the_bounds_are_the_declared_ones() -> None:
    """row_norm² for the bread, clip² for the meat (to the last bit), 1 for the counts; each is nearly reached."""
    table = bounded_table(np.array([[0.6, 0.8]]), row_norm=1.0)
    bread, meat = sandwich_sums(wild, constant, table, np.array([0.7]), np.zeros(2), clip=0.7, smoothness=1.0)
    assert (bread.clip, meat.clip) == (1.0, math.nextafter(0.7 * 0.7, 1))
    assert np.linalg.norm(bread.value) == pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(meat.value) == pytest.approx(0.49, abs=1e-3)


def test_the_sums_are_those_of_the_clipped_objective() -> None:
    """The bread counts only records that are not clipped, the meat clipped gradients; both to the rows' rounding."""
    X, theta = rows(500, 4) * 0.9, np.array([1.0, -2.0, 0.5, 3.0])
    y = np.random.default_rng(1).normal(size=500)
    loss = HuberLoss(threshold=50.0)
    table = bounded_table(X, row_norm=1.0)
    bread, meat = sandwich_sums(
        loss.derivative, loss.curvature, table, y, theta, clip=0.5, smoothness=1.0, max_records=500
    )
    slopes = X @ theta - y
    sizes = np.abs(slopes) * 0.9
    inside = (sizes < 0.5).astype(float)
    gradients = X * (slopes * np.minimum(1, 0.5 / sizes))[:, None]
    assert np.allclose(bread.value, (X * inside[:, None]).T @ X, rtol=0, atol=500 * 2e-4)
    assert np.allclose(meat.value, gradients.T @ gradients, rtol=0, atol=500 * 1e-4)
    counts = norm_counts(loss.derivative, table, y, theta, edges=np.array([2.0, 1.0, 0.5])).value
    assert counts.sum() == np.count_nonzero(sizes > 0.5)
    assert counts[0] == np.count_nonzero(sizes > 2.0)


def test_order_threads_and_storage_change_no_bit() -> None:
    """Shuffled rows, two threads, CSR in place of dense: the same whole numbers."""
    X, theta = rows(9000, 3), np.array([1.0, -2.0, 0.5])
    y = np.random.default_rng(2).integers(0, 2, 9000).astype(float)
    order = np.random.default_rng(1).permutation(9000)

    def units(data: object, labels: NDArray[np.float64], threads: int = 1) -> list[NDArray[np.int64]]:
        table = bounded_table(data, row_norm=1.0)
        pair = sandwich_sums(
            LOGISTIC.derivative, LOGISTIC.curvature, table, labels, theta, clip=1.0, smoothness=0.25, threads=threads
        )
        counts = norm_counts(
            LOGISTIC.derivative, table, labels, theta, edges=np.array([0.9, 0.5, 0.1]), threads=threads
        )
        return [pair[0].units, pair[1].units, counts.units]

    ours = units(X, y)
    for other in (units(X[order], y[order]), units(X, y, threads=2), units(sparse.csr_matrix(X), y)):
        assert all(np.array_equal(a, b) for a, b in zip(ours, other, strict=True))


@pytest.mark.parametrize(
    "asked",
    [
        lambda table, y: sandwich_sums(wild, wild, table, y, np.zeros(2), clip=1.0, smoothness=1.0, max_records=2),
        lambda table, y: sandwich_sums(wild, wild, table, y, np.zeros(2), clip=1.0, smoothness=1.0, max_records=2**33),
        lambda table, y: sandwich_sums(wild, wild, table, y, np.zeros(2), clip=0.0, smoothness=1.0),
        lambda table, y: sandwich_sums(wild, wild, table, y, np.zeros(2), clip=1.0, smoothness=-1.0),
        lambda table, y: norm_counts(wild, table, y, np.zeros(2), edges=np.array([0.0])),
        lambda table, y: norm_counts(wild, table, y, np.zeros(2), edges=np.array([1.0]), max_records=2),
    ],
)
def test_what_could_overflow_or_bounds_nothing_is_refused(asked: Callable[..., object]) -> None:
    """On public facts, before an integer could wrap around."""
    with pytest.raises(InvalidParameter):
        asked(bounded_table(rows(3, 2), row_norm=1.0), np.zeros(3))
