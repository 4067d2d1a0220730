"""Clipped gradient sums of generalised linear models: one pass over the rows, exact, no gradient ever in memory.

A record's gradient is a·x with a = ℓ'(⟨x, θ⟩, y), so its norm is |a|·‖x‖ (lecture 13, Brown, claim 1.4). Rows are
16-bit integers; θ is rounded (it is public) so that every ⟨x, θ⟩ is an exact float64; the clipped a is rounded so
that every a·x is an integer below 2^41 and a block of products sums exactly in float64, in any order.
"""

import math
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from privet.arrays import IntArray, Vector
from privet.clipping.lattice import MOST_RECORDS, LatticeSum, check_count, lattice_step
from privet.clipping.rules import Bounding, Clip, Declared, FloatArray
from privet.errors import InvalidParameter
from privet.sums.blocks import Work, product, shared
from privet.sums.table import Table

_THETA_BITS = 37  # with rows of 2^15 units, by Cauchy and Schwarz no partial sum of ⟨x, θ⟩ reaches 2^53
_SCORED = 1 << 12  # rows at a time


class Derivative(Protocol):
    """From predictions z and labels y to ∂ℓ/∂z, record by record; shaped like z."""

    def __call__(self, z: FloatArray, y: FloatArray, /) -> FloatArray: ...


def glm_sum(
    derivative: Derivative,
    table: Table,
    labels: Vector,
    theta: Vector,
    *,
    rule: Bounding,
    indices: IntArray | None = None,
    shape: tuple[int, ...] | None = None,
    max_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """Sum of the records' gradients a·x, each bounded by `rule`, exactly.

    Promise: one record's share is at most `rule.clip` in l2 norm, in exact arithmetic; a record whose derivative is
    not finite counts as zero; neither the order of the rows nor blocks nor threads change a bit.
    Theorem: docs/proofs/sums.md. Cost: one pass over the 16-bit rows; memory O(block).

    Parameters
    ----------
    derivative : ∂ℓ/∂z, a function of each record's own z and y
    table, labels : the records; private. What `derivative` sees of a record's label is its entry or row
    theta : (d,) or (d, K) finite floats; public
    rule : how a gradient is bounded
    indices : which records; all by default; private
    shape : of the sum, where it is not that of theta: `derivative` may make one a of several columns of z
    max_records : a public bound on how many records the sum may hold; fewer make the lattice finer
    threads : how many may work; by default as many as there are cores, for large tables

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[0.6, 0.8], [1.0, 0.0]]), row_norm=1.0)
    >>> squared = lambda z, y: 2 * (z - y)
    >>> glm_sum(squared, table, np.array([5.0, 0.25]), np.zeros(2), rule=Clip(clip=1.0)).value.round(3).tolist()
    [-1.1, -0.8]
    """
    step = lattice_step(rule.clip, max_records=max_records)
    clip_units = math.floor(rule.clip / step)
    count = table.shape[0] if indices is None else len(indices)
    check_count(count, max_records, saturates=True)
    theta_units, theta_step = rounded(theta)
    z_step = table.step * theta_step
    a_step = step / table.step
    shape = theta.shape if shape is None else shape

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros(shape, dtype=np.int64)
        within = 0
        for x, y, inverse in work.blocks(first, last):
            with np.errstate(all="ignore"):
                z = work.predictions(x, theta_units)
                z *= z_step
                a = np.array(derivative(z, y), dtype=np.float64, order="C")
                if work.compiled and a.ndim == 1 and isinstance(rule, Clip | Declared):
                    work.compiled.bound(a, inverse, float(clip_units), a_step)  # as below, in one go
                else:
                    within += _bounded(a, inverse, rule, clip_units, table.step, a_step)
            total += work.weighted(x, a)
        return total, within

    units, within = shared(share, table, labels, indices, count, threads, outputs=theta.size // len(theta))
    return LatticeSum(units=units, step=step, clip=rule.clip, within=within)


def scalar_sum(
    scalar: Derivative,
    table: Table,
    labels: Vector,
    theta: Vector,
    *,
    clip: float,
    indices: IntArray | None = None,
    max_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """Sum of one number a record, a function of its z and y, each cut to [−clip, clip], exactly.

    Promise: one record moves the sum by at most `clip`; an empty record, or a number that is not finite, counts as 0.

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[0.5], [1.0]]), row_norm=1.0)
    >>> float(scalar_sum(lambda z, y: z - y, table, np.array([0.0, 9.0]), np.ones(1), clip=2.0).value)
    -1.5
    """
    step = lattice_step(clip, max_records=max_records)
    clip_units = math.floor(clip / step)
    count = table.shape[0] if indices is None else len(indices)
    check_count(count, max_records, saturates=True)
    theta_units, theta_step = rounded(theta)

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = 0
        for x, y, inverse in work.blocks(first, last):
            with np.errstate(all="ignore"):
                z = work.predictions(x, theta_units) * (table.step * theta_step)
                values = np.array(scalar(z, y), dtype=np.float64)
            values[~(np.isfinite(values) & (inverse > 0))] = 0.0
            with np.errstate(over="ignore"):
                whole = np.rint(np.clip(values / step, -clip_units, clip_units)).astype(np.int64)
            total += int(whole.sum())  # not in floats: a long block's sum may be beyond 2^53
        return np.array(total, dtype=np.int64), 0

    units, _ = shared(share, table, labels, indices, count, threads, outputs=theta.size // len(theta))
    return LatticeSum(units=units, step=step, clip=clip)


def gram_sum(table: Table, *, weights: Vector | None = None, threads: int | None = None) -> LatticeSum:
    """Σ x xᵀ, exactly. One record moves it by at most row_norm² in Frobenius norm.

    With `weights`, each row is first multiplied by its own, which is at most 1, and rounded towards zero; rows whose
    squared weights add up to at most 1 then move it together by no more than one record (docs/proofs/sums.md,
    section 8).

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> gram_sum(bounded_table(np.array([[0.5, 0.5]]), row_norm=1.0)).value.tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    count = table.shape[0]
    if weights is None:  # else the caller knows how many records there are, which may be fewer than rows
        check_count(count, 2**31, saturates=True)  # entries below 2^30

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros((table.shape[1],) * 2, dtype=np.int64)
        for x, weight, _ in work.blocks(first, last):
            total += outer(x, None if weights is None else weight)
        return total, 0

    units, _ = shared(share, table, np.zeros(count) if weights is None else weights, None, count, threads)
    return LatticeSum(units=units, step=table.step**2, clip=table.row_norm * table.row_norm)


def scores(table: Table, theta: Vector) -> Vector:
    """⟨x, θ⟩ of every record, exactly for θ as it is rounded; of a row that was shortened, times its λ. Private.

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> scores(bounded_table(np.array([[0.5, 0.25], [1.0, 0.0]]), row_norm=1.0), np.array([2.0, 4.0])).tolist()
    [2.0, 2.0]
    """
    units, step = rounded(theta)
    if table.is_sparse:
        return table.predicted(np.asarray(table.units @ units) * (table.step * step))
    found = np.empty(table.shape[0])
    for first in range(0, len(found), _SCORED):
        part = slice(first, first + _SCORED)
        found[part] = np.dot(table.units[part].astype(np.float64), units)
    return table.predicted(found * (table.step * step))


def outer(x: Any, weight: Vector | None = None) -> IntArray:
    """Σ r rᵀ over a block's rows, r the row itself, or its product with the weight, each value towards zero."""
    if weight is not None and isinstance(x, np.ndarray):
        x = np.trunc(x * weight[:, None])
    elif weight is not None:
        x = sparse.csr_matrix(x.multiply(weight[:, None]))
        np.trunc(x.data, out=x.data)
    squares = product(x.T, x)
    return np.asarray(squares if isinstance(x, np.ndarray) else squares.toarray()).astype(np.int64)


def _bounded(a: Vector, inverse: Vector, rule: Bounding, clip_units: int, x_step: float, a_step: float) -> int:
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


def _norms(a: Vector) -> Vector:
    """l2 norms of rows, without overflow."""
    largest = np.abs(a).max(axis=1)
    scale = np.where(largest > 0, largest, 1.0)[:, None]
    norms: Vector = np.sqrt(np.square(a / scale).sum(axis=1)) * scale[:, 0]
    return norms


def rounded(theta: Vector) -> tuple[Vector, float]:
    """θ as whole multiples of a power of two, so that ⟨x, θ⟩ is exact: a change below ‖θ‖ × 2^-35 in each entry."""
    largest = float(np.abs(theta).max(initial=0.0))
    if not math.isfinite(largest):
        raise InvalidParameter("""Expected finite coefficients, got some that are not: the descent diverged. Use a
            smaller step size, or a bounded domain.""")
    if largest < 2.0**-900:  # nothing, in the unit of any gradient
        return np.zeros_like(theta), 1.0
    scale = math.frexp(largest)[1]
    scaled = np.ldexp(theta, -scale)  # at most 1: no square overflows, or vanishes unseen
    exponent = math.frexp(float(np.linalg.norm(scaled)))[1] - _THETA_BITS + 1
    return np.trunc(np.ldexp(scaled, -exponent)), math.ldexp(1.0, scale + exponent)
