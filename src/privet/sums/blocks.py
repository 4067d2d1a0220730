"""Records a block at a time, in as many threads as pay; what a block is made of never shows in a sum."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from privet.arrays import IntArray, Vector
from privet.clipping.lattice import MOST_RECORDS, summed
from privet.sums.compiled import Kernels, kernels_for
from privet.sums.table import Table, lengthened

_BLOCK = 2**19  # values a block of floats holds: four megabytes, well inside the last cache
_MOST_ROWS = 4096  # so that a block's shares, below 2^41 each, sum exactly in floats
_NARROW = 4  # blocks of 16-bit rows are so many times longer: less talk between threads, and as many bytes
_BLAS_ALONE = 2**15  # values below which BLAS keeps to one thread by itself; above, its threads wait for each other
_MOST: ContextVar[int | None] = ContextVar("threads", default=None)
_WORTH_A_THREAD = 2**21  # values below which a second thread costs more than it brings


class Work:
    """One thread's buffers: blocks of a multiple of 64 records, the last one padded with empty ones.

    So each record meets the same vector instructions wherever it stands. Features of a block are floats, or, where
    `compiled` is not None, the 16-bit rows themselves without padding: `predictions` and `weighted` know either.
    """

    def __init__(
        self, table: Table, labels: Vector, indices: IntArray | None, rows: int, compiled: Kernels | None = None
    ) -> None:
        self.table, self.labels, self.indices = table, labels, indices
        self.rows, self.compiled = rows, compiled
        self.x = None if table.is_sparse or compiled else np.zeros((self.rows, table.shape[1]))
        self.y, self.inverse = np.zeros((self.rows, *labels.shape[1:])), np.zeros(self.rows)
        self.lengths = None if table.lengths is None else np.ones(self.rows)

    def blocks(self, first: int, last: int) -> Any:
        """Features, labels and inverse norms of the records first..last-1, a block at a time."""
        for start in range(first, last, self.rows):
            size = min(self.rows, last - start)
            part: Any = slice(start, start + size)
            if self.indices is not None:
                part = self.indices[part]
            self.y[:size], self.inverse[:size] = self.labels[part], self.table.inverse_norms[part]
            self.y[size:], self.inverse[size:] = 0.0, 0.0
            if self.lengths is not None and self.table.lengths is not None:
                self.lengths[:size], self.lengths[size:] = self.table.lengths[part], 1.0
            if self.compiled is not None:
                yield np.require(self.table.units[part], requirements=["C", "A"]), self.y, self.inverse
            elif self.x is None:
                yield _padded(self.table.units[part], self.rows), self.y, self.inverse
            else:
                np.copyto(self.x[:size], self.table.units[part])
                self.x[size:] = 0.0
                yield self.x, self.y, self.inverse

    def predictions(self, x: Any, theta_units: Vector) -> Vector:
        """⟨x, θ⟩ of the last block's records, in units; theta in whole ones that keep every sum below 2^53.

        Exact, but for rows that were shortened where predictions are of rows as they were: then rounded once.
        """
        z = self._products(x, theta_units)
        return z if self.lengths is None else lengthened(z, self.lengths)

    def _products(self, x: Any, theta_units: Vector) -> Vector:
        if self.compiled is None:
            return np.asarray(product(x, theta_units))
        z = np.empty((self.rows, *theta_units.shape[1:]))
        z[len(x) :] = 0.0
        columns = np.ascontiguousarray(np.atleast_2d(theta_units.T))
        self.compiled.predict(x, columns, z.reshape(self.rows, -1)[: len(x)])
        return z

    def weighted(self, x: Any, a: Vector) -> IntArray:
        """Σ a·x over a block's records, exact; a in whole units that keep every share within 2^41."""
        if self.compiled is not None:
            total = np.zeros((*a.shape[1:], x.shape[1]), dtype=np.int64)
            weights = np.ascontiguousarray(np.atleast_2d(a[: len(x)].T))
            self.compiled.weigh(x, weights, np.atleast_2d(total))
            return total.T
        wide = product(a, x) if a.ndim == 1 and isinstance(x, np.ndarray) else product(x.T, a)
        return np.asarray(wide).astype(np.int64)


def product(a: Any, b: Any) -> Any:
    """a @ b. For arrays NumPy's `dot`, which lets other threads work meanwhile, as `@` on a vector does not."""
    return np.dot(a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else a @ b


def _padded(rows: Any, count: int) -> Any:
    starts = np.append(rows.indptr, np.full(count - rows.shape[0], rows.indptr[-1]))
    return sparse.csr_matrix((rows.data, rows.indices, starts), shape=(count, rows.shape[1]))


def block_rows(columns: int, longer: int = 1) -> int:
    """Rows a block holds: a multiple of 64, between 64 and 4096, or `longer` times as many."""
    return max(64, min(_MOST_ROWS * longer, _BLOCK * longer // columns // 64 * 64))


def shared(
    share: Callable[[Work, int, int], tuple[IntArray, int]],
    table: Table,
    labels: Vector,
    indices: IntArray | None,
    count: int,
    threads: int | None,
    *,
    outputs: int = 0,
) -> tuple[IntArray, int]:
    """The sum of all threads' shares; whole blocks each. BLAS itself is kept to one thread a caller.

    `outputs`, if not 0, says that the share leaves all work with features to `Work`, so that they may be 16-bit rows,
    and how many predictions a record has.
    """
    if count > MOST_RECORDS:  # so many are below 2^61 together, as the lattice is made; more may not fit
        edges = [*range(0, count, MOST_RECORDS), count]
        some = [(*_lot(table, labels, indices, a, b), b - a) for a, b in pairwise(edges)]
        lots = [shared(share, *lot, threads, outputs=outputs) for lot in some]
        return summed(*(units for units, _ in lots))[0], sum(within for _, within in lots)
    values = count * table.shape[1]
    compiled = kernels_for(table.units, values, outputs) if outputs else None
    rows = _evenly(count, block_rows(table.shape[1], _NARROW if compiled else 1))
    blocks = -(-count // rows)
    workers = workers_for(values, blocks, threads)
    edges = [min(count, blocks * i // workers * rows) for i in range(workers + 1)]
    work = [Work(table, labels, indices, rows, compiled) for _ in range(workers)]
    return pooled(share, work, edges, values)


def _evenly(count: int, most: int) -> int:
    """Rows of a block, a multiple of 64, with which as few blocks as there must be are about as long as each other.

    A last one that is short would be padded to the length of all.

    Examples
    --------
    >>> _evenly(100_000, 16_384), _evenly(10, 16_384)
    (14336, 64)
    """
    blocks = max(1, -(-count // most))
    return 64 * max(1, -(-count // (64 * blocks)))


def _lot(
    table: Table, labels: Vector, indices: IntArray | None, first: int, last: int
) -> tuple[Table, Vector, IntArray | None]:
    """The records first..last-1 of those at `indices`, as they are."""
    if indices is not None:
        return table, labels, indices[first:last]
    part = slice(first, last)
    return table.rows(part), labels[part], None


def workers_for(values: int, blocks: int, threads: int | None) -> int:
    """How many threads are worth it."""
    wanted = min(blocks, values // _WORTH_A_THREAD if threads is None else threads)
    return max(1, min(wanted, most_threads()) if threads is None and wanted > 1 else wanted)


def most_threads() -> int:
    """How many threads there may be here: one a core, or fewer if told so by `threads_at_most`."""
    return _MOST.get() or os.cpu_count() or 1


@contextmanager
def threads_at_most(count: int) -> Iterator[None]:
    """Sums in here, unless told otherwise, take no more threads: where each core has a task of its own, one.

    Examples
    --------
    >>> with threads_at_most(1):
    ...     workers_for(2**30, blocks=100, threads=None)
    1
    """
    token = _MOST.set(count)
    try:
        yield
    finally:
        _MOST.reset(token)


def pooled(
    share: Callable[[Work, int, int], tuple[IntArray, int]], work: list[Work], edges: list[int], values: int
) -> tuple[IntArray, int]:
    """The sum of each worker's share of what lies between two edges, and of the counts that go with it."""
    if len(work) == 1 and (work[0].compiled or values < _BLAS_ALONE):
        return share(work[0], edges[0], edges[1])
    with blas().limit(limits=1):
        if len(work) == 1:
            return share(work[0], edges[0], edges[1])
        with ThreadPoolExecutor(len(work)) as pool:
            parts = list(pool.map(share, work, edges[:-1], edges[1:]))
    return np.sum([units for units, _ in parts], axis=0), sum(within for _, within in parts)


@cache
def blas() -> ThreadpoolController:
    """Who tells BLAS how many threads it may use."""
    return ThreadpoolController()
