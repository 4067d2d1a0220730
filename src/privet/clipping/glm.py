"""Clipped gradient sums of generalised linear models: one pass over the rows, exact, no gradient ever in memory.

A record's gradient is a·x with a = ℓ'(⟨x, θ⟩, y), so its norm is |a|·‖x‖ (lecture 13, Brown, claim 1.4). Rows are
16-bit integers; θ is rounded (it is public) so that every ⟨x, θ⟩ is an exact float64; the clipped a is rounded so
that every a·x is an integer below 2^41 and a block of products sums exactly in float64, in any order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import ThreadpoolController

from privet.clipping.lattice import MOST_RECORDS, LatticeSum, check_count, lattice_step
from privet.clipping.rules import Bounding, Clip, Declared, FloatArray
from privet.clipping.table import Table
from privet.errors import InvalidParameter

__all__ = ["Derivative", "glm_sum", "gram_sum", "scalar_sum"]

_THETA_BITS = 37  # with rows of 2^15 units, by Cauchy and Schwarz no partial sum of ⟨x, θ⟩ reaches 2^53
_BLOCK = 2**19  # values a block holds: four megabytes, well inside the last cache
_BLAS_ALONE = 2**15  # values below which BLAS keeps to one thread by itself; above, its threads wait for each other
_WORTH_A_THREAD = 2**21  # values below which a second thread costs more than it brings

IntArray = NDArray[np.int64]


class Derivative(Protocol):
    """From predictions z and labels y to ∂ℓ/∂z, record by record; shaped like z."""

    def __call__(self, z: FloatArray, y: FloatArray, /) -> FloatArray: ...


def glm_sum(
    derivative: Derivative,
    table: Table,
    labels: NDArray[np.float64],
    theta: NDArray[np.float64],
    *,
    rule: Bounding,
    indices: IntArray | None = None,
    shape: tuple[int, ...] | None = None,
    most_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """Sum of the records' gradients a·x, each bounded by `rule`, exactly.

    Promise: one record's share is at most `rule.clip` in l2 norm, in exact arithmetic; a record whose derivative is
    not finite counts as zero; neither the order of the rows nor blocks nor threads change a bit.
    Theorem: docs/proofs/sums.md. Cost: one pass over the 16-bit rows; memory O(block).

    Parameters
    ----------
    derivative : ∂ℓ/∂z, a function of each record's own z and y
    table, labels : the records; private
    theta : (d,) or (d, K) finite floats; public
    rule : how a gradient is bounded
    indices : which records; all by default; private
    shape : of the sum, where it is not that of theta: `derivative` may make one a of several columns of z
    most_records : a public bound on how many records the sum may hold; fewer make the lattice finer
    threads : how many may work; by default as many as there are cores, for large tables

    Examples
    --------
    >>> from privet.clipping import Clip, bounded_table
    >>> table = bounded_table(np.array([[0.6, 0.8], [1.0, 0.0]]), row_norm=1.0)
    >>> squared = lambda z, y: 2 * (z - y)
    >>> glm_sum(squared, table, np.array([5.0, 0.25]), np.zeros(2), rule=Clip(clip=1.0)).value.round(3).tolist()
    [-1.1, -0.8]
    """
    step = lattice_step(rule.clip, most_records=most_records)
    clip_units = math.floor(rule.clip / step)
    count = table.shape[0] if indices is None else len(indices)
    check_count(count, most_records)
    theta_units, theta_step = _rounded(theta)
    z_step = table.step * theta_step
    a_step = step / table.step
    shape = theta.shape if shape is None else shape

    def share(work: _Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros(shape, dtype=np.int64)
        within = 0
        for x, y, inverse in work.blocks(first, last):
            with np.errstate(all="ignore"):
                z = _product(x, theta_units)
                z *= z_step
                a = np.array(derivative(z, y), dtype=np.float64, order="C")
                within += _bounded(a, inverse, rule, clip_units, table.step, a_step)
            product = _product(a, x) if a.ndim == 1 and isinstance(x, np.ndarray) else _product(x.T, a)
            total += product.astype(np.int64)
        return total, within

    parts = _shared(share, table, labels, indices, count, threads)
    return LatticeSum(
        units=np.sum([units for units, _ in parts], axis=0),
        step=step,
        clip=rule.clip,
        within=sum(within for _, within in parts),
    )


def scalar_sum(
    scalar: Derivative,
    table: Table,
    labels: NDArray[np.float64],
    theta: NDArray[np.float64],
    *,
    clip: float,
    indices: IntArray | None = None,
    most_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """Sum of one number a record, a function of its z and y, each cut to [−clip, clip], exactly.

    Promise: one record moves the sum by at most `clip`; an empty record, or a number that is not finite, counts as 0.

    Examples
    --------
    >>> from privet.clipping import bounded_table
    >>> table = bounded_table(np.array([[0.5], [1.0]]), row_norm=1.0)
    >>> float(scalar_sum(lambda z, y: z - y, table, np.array([0.0, 9.0]), np.ones(1), clip=2.0).value)
    -1.5
    """
    step = lattice_step(clip, most_records=most_records)
    clip_units = math.floor(clip / step)
    count = table.shape[0] if indices is None else len(indices)
    check_count(count, most_records)
    theta_units, theta_step = _rounded(theta)

    def share(work: _Work, first: int, last: int) -> tuple[IntArray, int]:
        total = 0
        for x, y, inverse in work.blocks(first, last):
            with np.errstate(all="ignore"):
                values = np.array(scalar(_product(x, theta_units) * (table.step * theta_step), y), dtype=np.float64)
            values[~(np.isfinite(values) & (inverse > 0))] = 0.0
            with np.errstate(over="ignore"):
                total += int(np.rint(np.clip(values / step, -clip_units, clip_units)).sum())
        return np.array(total, dtype=np.int64), 0

    parts = _shared(share, table, labels, indices, count, threads)
    return LatticeSum(units=np.sum([part for part, _ in parts], axis=0), step=step, clip=clip)


def gram_sum(table: Table, *, threads: int | None = None) -> LatticeSum:
    """Σ x xᵀ, exactly. One record moves it by at most row_norm² in Frobenius norm.

    Examples
    --------
    >>> from privet.clipping import bounded_table
    >>> gram_sum(bounded_table(np.array([[0.5, 0.5]]), row_norm=1.0)).value.tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    count = table.shape[0]
    check_count(count, 2**31)  # entries below 2^30

    def share(work: _Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros((table.shape[1],) * 2, dtype=np.int64)
        for x, _, _ in work.blocks(first, last):
            product = _product(x.T, x)
            total += (product if isinstance(x, np.ndarray) else product.toarray()).astype(np.int64)
        return total, 0

    parts = _shared(share, table, np.zeros(table.shape[0]), None, count, threads)
    return LatticeSum(
        units=np.sum([units for units, _ in parts], axis=0), step=table.step**2, clip=table.row_norm * table.row_norm
    )


def _bounded(
    a: NDArray[np.float64],
    inverse: NDArray[np.float64],
    rule: Bounding,
    clip_units: int,
    x_step: float,
    a_step: float,
) -> int:
    """Bring `a` to whole units of `a_step`, bounded, in place; the count of adaptive clipping, in halves."""
    a[~np.isfinite(a)] = 0.0
    cap = np.floor(clip_units * inverse)  # in units: a·x is within the clip when |a| ≤ cap
    within = 0
    if not isinstance(rule, Clip | Declared):  # which say nothing that the cap does not do
        size = np.abs(a) if a.ndim == 1 else _norms(a)
        present = inverse > 0
        within = 2 * int(np.count_nonzero(present & (size <= cap * a_step))) - int(np.count_nonzero(present))
        factor = rule.factor(np.divide(size * x_step, inverse, out=np.zeros_like(size), where=present))
        if factor is not None:
            factor = np.where(np.isfinite(factor), factor, 0.0)
            a *= factor if a.ndim == 1 else factor[:, None]
    a /= a_step
    if a.ndim == 1:
        np.rint(a, out=a)
        np.minimum(a, cap, out=a)
        np.maximum(a, -cap, out=a)
        return within
    a[~np.isfinite(a)] = 0.0
    size = _norms(a)
    outputs = a.shape[1]
    room = np.maximum(cap * (1 - (outputs + 8) * 2.0**-52) - math.sqrt(outputs), 0.0)  # for the roundings of K values
    a *= np.divide(room, size, out=np.ones_like(size), where=size > room)[:, None]
    np.rint(a, out=a)
    return within


def _product(a: Any, b: Any) -> Any:
    """a @ b. For arrays NumPy's `dot`, which lets other threads work meanwhile, as `@` on a vector does not."""
    return np.dot(a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else a @ b


def _norms(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """l2 norms of rows, without overflow."""
    largest = np.abs(a).max(axis=1)
    scale = np.where(largest > 0, largest, 1.0)[:, None]
    norms: NDArray[np.float64] = np.sqrt(np.square(a / scale).sum(axis=1)) * scale[:, 0]
    return norms


def _rounded(theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """θ as whole multiples of a power of two, so that ⟨x, θ⟩ is exact: a change below ‖θ‖ × 2^-35 in each entry."""
    largest = float(np.abs(theta).max(initial=0.0))
    if not math.isfinite(largest):
        raise InvalidParameter(
            "Expected finite coefficients, got some that are not: the descent diverged. "
            "Use a smaller step size, or a bounded domain."
        )
    if largest < 2.0**-900:  # nothing, in the unit of any gradient
        return np.zeros_like(theta), 1.0
    scale = math.frexp(largest)[1]
    scaled = np.ldexp(theta, -scale)  # at most 1: no square overflows, or vanishes unseen
    exponent = math.frexp(float(np.linalg.norm(scaled)))[1] - _THETA_BITS + 1
    return np.trunc(np.ldexp(scaled, -exponent)), math.ldexp(1.0, scale + exponent)


class _Work:
    """One thread's buffers: blocks of a multiple of 64 records, the last one padded with empty ones.

    So each record meets the same vector instructions wherever it stands.
    """

    def __init__(self, table: Table, labels: NDArray[np.float64], indices: IntArray | None, rows: int) -> None:
        self.table, self.labels, self.indices = table, labels, indices
        self.rows = rows
        self.x = None if table.is_sparse else np.zeros((self.rows, table.shape[1]))
        self.y, self.inverse = np.zeros(self.rows), np.zeros(self.rows)

    def blocks(self, first: int, last: int) -> Any:
        """Features, labels and inverse norms of the records first..last-1, a block at a time."""
        for start in range(first, last, self.rows):
            size = min(self.rows, last - start)
            part: Any = slice(start, start + size)
            if self.indices is not None:
                part = self.indices[part]
            self.y[:size], self.inverse[:size] = self.labels[part], self.table.inverse_norms[part]
            self.y[size:], self.inverse[size:] = 0.0, 0.0
            if self.x is None:
                yield _padded(self.table.units[part], self.rows), self.y, self.inverse
            else:
                np.copyto(self.x[:size], self.table.units[part])
                self.x[size:] = 0.0
                yield self.x, self.y, self.inverse


def _padded(rows: Any, count: int) -> Any:
    starts = np.append(rows.indptr, np.full(count - rows.shape[0], rows.indptr[-1]))
    return sparse.csr_matrix((rows.data, rows.indices, starts), shape=(count, rows.shape[1]))


def block_rows(columns: int) -> int:
    """Rows a block holds: a multiple of 64, between 64 and 4096."""
    return max(64, min(4096, _BLOCK // columns // 64 * 64))


def _shared(
    share: Callable[[_Work, int, int], tuple[IntArray, int]],
    table: Table,
    labels: NDArray[np.float64],
    indices: IntArray | None,
    count: int,
    threads: int | None,
) -> list[tuple[IntArray, int]]:
    """The shares of all threads; whole blocks each. BLAS itself is kept to one thread a caller."""
    values = count * table.shape[1]
    wanted = threads if threads is not None else min(_cores(), values // _WORTH_A_THREAD)
    rows = min(block_rows(table.shape[1]), 64 * max(1, -(-count // 64)))
    blocks = -(-count // rows)
    workers = max(1, min(wanted, blocks))
    edges = [min(count, blocks * i // workers * rows) for i in range(workers + 1)]
    work = [_Work(table, labels, indices, rows) for _ in range(workers)]
    if values < _BLAS_ALONE and workers == 1:
        return [share(work[0], 0, count)]
    with _blas().limit(limits=1):
        if workers == 1:
            return [share(work[0], 0, count)]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(share, work, edges[:-1], edges[1:]))


@cache
def _cores() -> int:
    return os.cpu_count() or 1


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
