"""Clipped sums of per-record gradients that somebody else computed: for losses that are not linear models."""

import math

import numpy as np
from numpy.typing import NDArray

from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS, LatticeSum, check_count, lattice_step
from privet.clipping.rules import Bounding

_ROWS = 2**12


def record_sum(gradients: NDArray[np.floating], *, rule: Bounding, max_records: int = MOST_RECORDS) -> LatticeSum:
    """Sum per-record gradients, each bounded by `rule` and rounded to the lattice, exactly.

    Promise: one record's share is at most `rule.clip` in l2 norm, in exact arithmetic; non-finite rows count as zero.
    Theorem: triangle inequality; lecture 4, section 2.5; docs/proofs/sums.md.
    Edges: an empty batch gives zeros.

    Parameters
    ----------
    gradients : (m, ...) floats, row i a function of record i alone; private
    rule : how a gradient is bounded
    max_records : a public bound on how many records the sum may hold; fewer make the lattice finer

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> record_sum(np.array([[3.0, 4.0], [np.nan, 1.0]]), rule=Clip(clip=1.0)).value.round(6).tolist()
    [0.6, 0.8]
    """
    step = lattice_step(rule.clip, max_records=max_records)
    clip_units = math.floor(rule.clip / step)
    shape = gradients.shape[1:]
    check_count(len(gradients), max_records)
    total = np.zeros(math.prod(shape), dtype=np.int64)
    within = 0
    for first in range(0, len(gradients), _ROWS):
        rows = np.array(gradients[first : first + _ROWS], dtype=np.float64, order="C").reshape(-1, total.size)
        within += _bounded(rows, rule, clip_units, step)
        total += rows.sum(axis=0).astype(np.int64)  # whole and below 2^53: exact
    return LatticeSum(units=total.reshape(shape), step=step, clip=rule.clip, within=within)


def _bounded(rows: Vector, rule: Bounding, clip_units: int, step: float) -> int:
    """Bring rows to whole lattice units, bounded, in place; the count of adaptive clipping, in halves."""
    with np.errstate(all="ignore"):
        largest = np.abs(rows).max(axis=1, initial=0.0)
        bad = ~np.isfinite(largest)
        rows[bad] = 0.0
        largest[bad] = 0.0
        scale = np.where(largest > 0, largest, 1.0)
        rows /= scale[:, None]  # at most 1: no square overflows
        size = np.sqrt(np.square(rows).sum(axis=1))  # pairwise: the same wherever the row stands, as einsum's is not
        norms = size * scale
        present = size > 0
        within = 2 * int(np.count_nonzero(present & (norms <= rule.clip))) - int(np.count_nonzero(present))
        factor = rule.factor(norms)
        length = norms / step if factor is None else norms / step * np.abs(np.where(np.isfinite(factor), factor, 0.0))
        columns = rows.shape[1]
        cap = max(clip_units * (1 - (columns + 8) * 2.0**-52) - math.sqrt(columns), 0.0)  # room for the roundings
        target = np.minimum(np.where(np.isfinite(length), length, cap), cap)
        rows *= np.divide(target, size, out=np.zeros_like(size), where=present)[:, None]
        np.rint(rows, out=rows)
    return within
