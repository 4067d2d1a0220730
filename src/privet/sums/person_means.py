"""Sums in which each person, not each row, has a bounded share: the mean over the person's rows, bounded as one.

People with one row are records, and go the way of `glm_sum`; this file is about the others. A person's rows are added
in whole numbers, exactly, so neither the order of rows nor blocks nor threads can show; the mean of them is then
bounded as `record_sum` bounds a gradient.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from privet.arrays import IntArray, Vector
from privet.clipping.lattice import MOST_RECORDS, LatticeSum, check_count, lattice_step
from privet.clipping.rules import Bounding
from privet.sums.blocks import Work, blas, block_rows, pooled, workers_for
from privet.sums.glm import Derivative, rounded
from privet.sums.per_record import _bounded
from privet.sums.table import Table

_MOST_ROWS = 4096  # of a block; as `block_rows` has it
_FEW = 128  # rows of a person that may each be 2^46 units long


class People:
    """The rows of people with several rows each, side by side. Private.

    `starts` are the places where a person's rows begin, and the end of the last one's; `counts` are how many of them
    are not empty, which is what a mean is taken over.
    """

    __slots__ = ("counts", "labels", "starts", "table")

    def __init__(self, table: Table, labels: Vector, starts: IntArray) -> None:
        self.table, self.labels, self.starts = table, labels, starts
        present = np.concatenate([[0], np.cumsum(table.inverse_norms > 0)])
        self.counts: IntArray = np.diff(present[starts])

    def __len__(self) -> int:
        return len(self.counts)

    def rows(self, chosen: IntArray | None) -> tuple[IntArray | None, IntArray, IntArray]:
        """The chosen people's rows, as places in the table (None: all), where each one's begin, and their counts."""
        if chosen is None:
            return None, self.starts, self.counts
        first, sizes = self.starts[chosen], np.diff(self.starts)[chosen]
        edges = np.concatenate([[0], np.cumsum(sizes)])
        return np.arange(edges[-1]) + np.repeat(first - edges[:-1], sizes), edges, self.counts[chosen]


def split_people(table: Table, labels: Vector, numbers: IntArray) -> tuple[Table, Vector, People]:
    """The rows of people with one row, in their order, and the others' rows; a row of number -1 is left out.

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[0.1], [0.2], [0.3], [0.4]]), row_norm=1.0)
    >>> alone, labels, people = split_people(table, np.arange(4.0), np.array([1, 0, -1, 1]))
    >>> labels.tolist(), people.labels.tolist(), people.starts.tolist()
    ([1.0], [0.0, 3.0], [0, 2])
    """
    sizes = np.append(np.bincount(numbers[numbers >= 0]), 0)  # nobody's rows, at place -1, are as if there were none
    mine = sizes[numbers]
    single = np.flatnonzero(mine == 1)
    several = np.flatnonzero(mine > 1)
    several = several[np.argsort(numbers[several], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(sizes[sizes > 1])])
    people = People(table.rows(several), labels[several], starts)
    return (table if len(single) == len(numbers) else table.rows(single)), labels[single], people


def row_weights(people: People) -> Vector:
    """For each row a number of at most 1/√m, m the count of its person's rows, rounded down by 2^-50; 1 for m = 1.

    So the squares of a person's weights have a sum of at most 1, and so has any of their products with rows.

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.ones((4, 1)), row_norm=1.0)
    >>> row_weights(split_people(table, np.zeros(4), np.zeros(4, dtype=np.int64))[2]).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    counts = np.maximum(people.counts, 1)
    weights = np.where(counts == 1, 1.0, (1 - 2.0**-50) / np.sqrt(counts))
    return np.repeat(weights, np.diff(people.starts))


def people_sum(
    derivative: Derivative,
    people: People,
    theta: Vector,
    *,
    rule: Bounding,
    chosen: IntArray | None = None,
    shape: tuple[int, ...] | None = None,
    max_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """Sum over people of the mean of each one's row gradients a·x, bounded by `rule` as one vector, exactly.

    Promise: one person's share is at most `rule.clip` in l2 norm, in exact arithmetic, however many rows it has; rows
    that are empty, or whose derivative is not finite, add nothing; neither the order of rows or people nor blocks
    nor threads change a bit. A row's own gradient is first cut to 32 clips or more, to fewer beyond 128 rows a person.
    Theorem: docs/proofs/sums.md, section 8. Cost: one pass over the rows; memory O(block), however many one person has.

    Parameters
    ----------
    chosen : which people; all by default; private
    max_records : a public bound on the number of people
    others : as in `glm_sum`

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[1.0, 0.0], [0.0, 1.0]]), row_norm=1.0)
    >>> people = split_people(table, np.array([5.0, 5.0]), np.array([0, 0]))[2]
    >>> people_sum(lambda z, y: z - y, people, np.zeros(2), rule=Clip(clip=1.0)).value.round(6).tolist()
    [-0.707107, -0.707107]
    """
    table = people.table
    step = lattice_step(rule.clip, max_records=max_records)
    clip_units = math.floor(rule.clip / step)
    rows, edges, counts = people.rows(chosen)
    check_count(len(counts), max_records)
    theta_units, theta_step = rounded(theta)
    z_step, a_step = table.step * theta_step, step / table.step
    shape = theta.shape if shape is None else shape
    outputs = 1 if len(shape) == 1 else shape[1]
    windows = _windows(counts)
    divisors = np.maximum(counts, 1)

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        """Of the people first..last-1."""
        total, within = np.zeros(outputs * table.shape[1], dtype=np.int64), 0
        held: Any = None  # what a person whose rows go on in the next block has so far
        blocks = work.blocks(int(edges[first]), int(edges[last]))
        for (x, y, inverse), (begin, low, high, cuts) in zip(blocks, _cuts(edges, first, last, work.rows), strict=True):
            with np.errstate(all="ignore"):
                z = work.predictions(x, theta_units)
                z *= z_step
                a = np.array(derivative(z, y), dtype=np.float64, order="C")
                window = np.zeros(work.rows)
                window[: cuts[-1]] = np.repeat(windows[low:high], np.diff(cuts))
                _whole(a, np.floor(window * inverse), a_step)
            sums = _person_sums(a.reshape(len(a), -1), x, cuts)
            if held is not None:
                sums = _added(sums, held)
            done = high - low - (edges[high] > begin + cuts[-1])
            held = sums[done:] if done < high - low else None
            part, count = _shares(sums[:done], divisors[low : low + done], rule, clip_units, step)
            total += part
            within += count
        return total, within

    columns = table.shape[1] * outputs
    size = min(block_rows(columns), 64 * max(1, -(-int(edges[-1]) // 64)))
    workers = workers_for(int(edges[-1]) * columns, -(-int(edges[-1]) // size), threads)
    splits = [*np.searchsorted(edges, [edges[-1] * i // workers for i in range(workers)]).tolist(), len(counts)]
    work = [Work(table, people.labels, rows, size) for _ in range(workers)]
    units, within = pooled(share, work, splits, int(edges[-1]) * columns)
    units = units if len(shape) == 1 else np.ascontiguousarray(units.reshape(outputs, -1).T)
    return LatticeSum(units=units, step=step, clip=rule.clip, within=within)


def people_scalar_sum(
    scalar: Derivative,
    people: People,
    theta: Vector,
    *,
    clip: float,
    chosen: IntArray | None = None,
    max_records: int = MOST_RECORDS,
) -> LatticeSum:
    """Sum over people of the mean of one number a row, cut to [−clip, clip] after the mean, exactly.

    Promise: one person moves the sum by at most `clip`. Theorem: docs/proofs/sums.md, section 8.

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> people = split_people(bounded_table(np.ones((2, 1)), row_norm=1.0), np.array([0.0, 9.0]), np.array([0, 0]))[2]
    >>> float(people_scalar_sum(lambda z, y: z - y, people, np.ones(1), clip=5.0).value)
    -3.5
    """
    table = people.table
    step = lattice_step(clip, max_records=max_records)
    clip_units = math.floor(clip / step)
    rows, edges, counts = people.rows(chosen)
    check_count(len(counts), max_records)
    theta_units, theta_step = rounded(theta)
    units = np.zeros(int(edges[-1]), dtype=np.int64)
    limits = np.repeat(_windows(counts), np.diff(edges)).astype(np.float64)
    size = min(block_rows(table.shape[1]), 64 * max(1, -(-len(units) // 64)))
    begin = 0
    with blas().limit(limits=1):
        work = Work(table, people.labels, rows, size)
        for x, y, inverse in work.blocks(0, len(units)):
            part = slice(begin, begin + size)
            with np.errstate(all="ignore"):
                values = np.array(
                    scalar(work.predictions(x, theta_units) * (table.step * theta_step), y), dtype=np.float64
                )
                values[~(np.isfinite(values) & (inverse > 0))] = 0.0
                values = values[: len(units) - begin] / step
                units[part] = np.rint(np.clip(values, -limits[part], limits[part]))
            begin += size
    sums = np.add.reduceat(units, edges[:-1]) if len(counts) else units
    means = np.sign(sums) * (np.abs(sums) // np.maximum(counts, 1))
    total = np.clip(means, -clip_units, clip_units).sum(dtype=np.int64)
    return LatticeSum(units=np.array(total, dtype=np.int64), step=step, clip=clip)


def _windows(counts: IntArray) -> IntArray:
    """How long one row's share may be, in units, for a person with so many rows: sums of them must stay exact."""
    few = np.clip(counts, _FEW, _MOST_ROWS)  # of one person in one block: their sum is within 2^53
    return np.asarray(np.minimum(2**53 // few, 2**61 // np.maximum(counts, 1)), dtype=np.int64)


def _cuts(edges: IntArray, first: int, last: int, rows: int) -> Iterator[tuple[int, int, int, IntArray]]:
    """For each block of `rows` rows: where it begins, whose rows are in it, and where each one's begin in it."""
    end = int(edges[last])
    for begin in range(int(edges[first]), end, rows):
        stop = min(begin + rows, end)
        low = int(np.searchsorted(edges, begin, side="right")) - 1
        high = int(np.searchsorted(edges, stop, side="left"))
        yield begin, low, high, np.clip(edges[low : high + 1], begin, stop) - begin


def _whole(a: Vector, cap: Vector, a_step: float) -> None:
    """Bring `a` to whole units of at most `cap` in size, in place."""
    a[~np.isfinite(a)] = 0.0
    a /= a_step
    np.rint(a, out=a)
    limit = cap if a.ndim == 1 else cap[:, None]
    np.minimum(a, limit, out=a)
    np.maximum(a, -limit, out=a)


def _person_sums(a: Vector, x: Any, cuts: IntArray) -> Any:
    """Σ a·x of each person's rows in a block, one output's columns after another's; exact. Sparse if x is."""
    starts = cuts.astype(np.int32)
    places = np.arange(starts[-1], dtype=np.int32)
    sums = [
        sparse.csr_matrix((a[: starts[-1], k], places, starts), shape=(len(cuts) - 1, len(a))) @ x
        for k in range(a.shape[1])
    ]
    if sparse.issparse(x):
        return sparse.csr_matrix(sparse.hstack(sums, format="csr"))
    return sums[0] if len(sums) == 1 else np.hstack(sums)


def _added(sums: Any, held: Any) -> Any:
    """With what the first person had before; in int64, as it may be more than floats can tell apart."""
    whole = sums.astype(np.int64)
    if not sparse.issparse(whole):
        whole[0] += held[0].astype(np.int64)
        return whole
    first = whole[:1] + held.astype(np.int64)
    return sparse.vstack([first, whole[1:]], format="csr") if whole.shape[0] > 1 else first


def _shares(sums: Any, counts: IntArray, rule: Bounding, clip_units: int, step: float) -> tuple[IntArray, int]:
    """The sum of the bounded means, and the count of adaptive clipping, in halves."""
    if not sparse.issparse(sums):
        means = np.ascontiguousarray(sums, dtype=np.float64) / counts[:, None]
        means *= step
        within = _bounded(means, rule, clip_units, step)
        return means.sum(axis=0).astype(np.int64), within
    # Only the values that are not 0 are looked at: rows of the matrix with equally many of them are one dense block.
    found = sparse.csr_matrix(sums, dtype=np.float64)
    found.sum_duplicates()
    found.eliminate_zeros()
    sizes, within = np.diff(found.indptr), 0
    for size in np.unique(sizes[sizes > 0]):
        members = np.flatnonzero(sizes == size)
        places = found.indptr[members][:, None] + np.arange(size)
        block = found.data[places] / counts[members][:, None]
        block *= step
        within += _bounded(block, rule, clip_units, step)
        found.data[places] = block
    return np.asarray(found.sum(axis=0)).reshape(-1).astype(np.int64), within
