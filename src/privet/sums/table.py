"""Features with bounded rows, rounded once to 16 bits on a public grid, so that sums over them are exact."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from privet.arrays import BoolArray, IntArray, Vector
from privet.clipping.lattice import check_clip
from privet.data import MadeRows, matrix
from privet.data.floats import FrameRows
from privet.sums.compiled_rounding import rounding_for, scales

_ROWS = 1 << 12  # rows prepared at a time, at most
_SURELY = (1 - 2.0**-20) ** 2  # squared norm below which one is below 1, in whatever order it was summed
_VALUES = 1 << 16  # and values: a block and what is made of it stay in a core's own cache
_LYING = 1 << 17  # of columns that are copied as they lie: longer pieces, fewer calls


class Table:
    """Private rows of l2 norm at most `row_norm`, as whole multiples of the power of two `step`.

    Promise: each row depends on its own record only; a record with a value that is not finite is all zeros; no row's
    exact norm exceeds `row_norm`. A value is rounded by at most `row_norm` × 2^-15; rows that rounding
    makes longer than `row_norm` are shortened by a few parts in 2^15, by √columns of them at worst.

    With `lengths`, predictions are of rows as long as they were, up to a `reach` times the bound; what a record adds to
    a sum is its shortened row all the same.
    """

    __slots__ = ("inverse_norms", "lengths", "reach", "row_norm", "step", "units")

    def __init__(
        self,
        units: Any,
        inverse_norms: Vector,
        *,
        step: float,
        row_norm: float,
        lengths: Vector | None = None,
        reach: float = 1.0,
    ) -> None:
        self.units = units  # int16 (n, d), or CSR with whole float64 values
        self.inverse_norms = inverse_norms  # 1 ÷ norm in units, rounded down by 2^-50; 0 for an empty row
        self.lengths = lengths  # how many times as long a row was, from 1 to reach; None if predictions do not ask
        self.reach = float(reach)
        self.step = step
        self.row_norm = row_norm

    @property
    def shape(self) -> tuple[int, int]:
        """Records and features."""
        n, d = self.units.shape
        return n, d

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are kept as CSR."""
        return bool(sparse.issparse(self.units))

    def rows(self, places: IntArray | slice) -> "Table":
        """The rows at some places alone, as they are."""
        lengths = None if self.lengths is None else self.lengths[places]
        facts: dict[str, Any] = {"step": self.step, "row_norm": self.row_norm, "reach": self.reach}
        return Table(self.units[places], self.inverse_norms[places], lengths=lengths, **facts)

    def predicted(self, z: Vector) -> Vector:
        """Predictions of all rows as long as they were, from those of the rows as they are. Private."""
        return z if self.lengths is None else lengthened(z, self.lengths)

    def __repr__(self) -> str:
        return f"Table(private, columns={self.shape[1]}, row_norm={self.row_norm!r})"


def lengthened(z: Vector, lengths: Vector) -> Vector:
    """Predictions, one or several a record, of rows so many times as long."""
    return z * (lengths if z.ndim == 1 else lengths[:, None])


def bounded_table(
    data: Any,
    *,
    row_norm: float,
    keep: BoolArray | None = None,
    prepare: Callable[[Vector], Vector] | None = None,
    reach: float = 1.0,
) -> Table:
    """Rows shortened to l2 norm at most `row_norm` and rounded to the grid; rows with bad values are zeroed out.

    Theorem: data clipping, lecture 13 (Brown), section 3.(2).

    Parameters
    ----------
    data : (n, d) numbers, dense or CSR; private
    row_norm : the public bound, in the unit of a row's norm
    keep : which records to keep; the others are zeroed out, e.g. those whose label is not in the declared set
    prepare : a public map of dense rows, row by row, applied a block at a time so that its image is never whole in
        memory; may change its argument
    reach : up to how many times the bound a row is as long as it was where it is predicted for; 1 if it is shortened
        there, too. Of dense rows

    Examples
    --------
    >>> table = bounded_table(np.array([[3.0, 4.0], [np.nan, 1.0], [0.5, 0.0]]), row_norm=1.0)
    >>> (table.units * table.step).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0], [0.5, 0.0]]
    """
    values = matrix(data)
    row_norm = check_clip(row_norm, name="row_norm")
    step = math.ldexp(1.0, math.frexp(row_norm)[1] - 15)  # a row's norm is between 2^14 and 2^15 steps
    most = math.floor((Fraction(row_norm) / Fraction(step)) ** 2)
    kept = np.ones(values.shape[0], dtype=bool) if keep is None else keep
    if sparse.issparse(values) and prepare is None:
        return _sparse(values, kept, row_norm, step, most)
    n, d = values.shape
    columns = d if prepare is None else prepare(np.zeros((1, d))).shape[1]
    compiled = rounding_for(n * columns)
    units, squares = np.empty((n, columns), dtype=np.int16), np.empty(n)
    lengths = np.ones(n if reach > 1 else 0)
    later = _Later(units, squares, lengths, row_norm, step, most)
    lying = compiled is not None and prepare is None and isinstance(values, FrameRows)  # columns, as the frame has them
    rows = max(64, min(_ROWS, (_LYING if lying else _VALUES) // columns // 64 * 64))
    scratch = np.empty(rows * columns if lying else 0, dtype=np.int16)
    for first in range(0, n, rows):
        part = slice(first, first + rows)
        if compiled is None:
            block = _kept(_block(values, part, prepare), kept[part])
            units[part], squares[part], longer = _rounded(block, row_norm, step, most)
            lengths[part] = longer[: len(lengths[part])]
        elif lying:
            bounds = scales(row_norm, step, most, columns)
            compiled.columns(values.columns(part), *bounds, units[part], squares[part], scratch)
            _kept(units[part], kept[part])
            _kept(squares[part], kept[part])
        else:
            block = np.ascontiguousarray(_kept(_block(values, part, prepare), kept[part]))
            compiled.rows(block, *scales(row_norm, step, most, columns), units[part], squares[part])
            places = np.flatnonzero(squares[part] < 0)
            later.add(first + places, block[places])
    left = np.flatnonzero(squares < 0)[: n if lying else 0]  # of columns, all at once: each is asked for them
    for first in range(0, len(left), _ROWS):
        later.add(left[first : first + _ROWS], values[left[first : first + _ROWS]])
    later.done()
    held = np.minimum(lengths, reach, out=lengths) if reach > 1 else None
    return Table(units, _inverse(squares), step=step, row_norm=row_norm, lengths=held, reach=reach)


def _kept(rows: Vector, kept: BoolArray) -> Vector:
    """Rows, or numbers, of which those that are not kept were set to zero."""
    if not kept.all():
        rows[~kept] = 0
    return rows


class _Later:
    """Rows that want a closer look, some thousand at a time."""

    def __init__(self, units: Any, squares: Vector, lengths: Vector, row_norm: float, step: float, most: int) -> None:
        self._units, self._squares, self._lengths, self._facts = units, squares, lengths, (row_norm, step, most)
        self._places: list[IntArray] = []
        self._rows: list[Vector] = []

    def add(self, places: IntArray, rows: Vector) -> None:
        """The rows at some places of the table."""
        if places.size:
            self._places.append(places)
            self._rows.append(rows)
        if sum(map(len, self._places)) >= _ROWS:
            self.done()

    def done(self) -> None:
        """Round them."""
        if self._places:
            places = np.concatenate(self._places)
            self._units[places], self._squares[places], longer = _rounded(np.concatenate(self._rows), *self._facts)
            if len(self._lengths):
                self._lengths[places] = longer
            self._places, self._rows = [], []


def _block(values: Any, part: slice, prepare: Callable[[Vector], Vector] | None) -> Vector:
    """Rows of a table, prepared, as floats that are nobody else's."""
    with np.errstate(over="ignore"):
        rows = values[part].toarray() if sparse.issparse(values) else values[part]
        block = rows if isinstance(values, MadeRows) else np.array(rows, dtype=np.float64, order="C")
    if prepare is not None:
        with np.errstate(all="ignore"):
            block = np.ascontiguousarray(prepare(block), dtype=np.float64)
    return block


def _inverse(squares: Vector) -> Vector:
    """1 ÷ norm, rounded down by 2^-50; 0 for an empty row. Works in place."""
    empty = np.flatnonzero(squares == 0)
    with np.errstate(divide="ignore"):
        np.divide(1 - 2.0**-50, np.sqrt(squares, out=squares), out=squares)
    squares[empty] = 0.0
    return squares


def _rounded(block: Vector, row_norm: float, step: float, most: int) -> tuple[Vector, Vector, Vector]:
    """The rows in units, their exact squared norms, and how many times as long they were. Works in place."""
    lengths = np.ones(len(block))
    with np.errstate(all="ignore"):
        scaled = block if row_norm == 1 else block / row_norm
        # surely shorter than the bound; else, and where a value is not finite, by a closer look
        far = np.flatnonzero(~(np.einsum("ij,ij->i", scaled, scaled) <= _SURELY))
        shorter = block[far] if far.size else None
        if shorter is not None:
            lengths[far] = _shorten(shorter, row_norm, step)
        block = np.multiply(scaled, row_norm / step, out=scaled)
        if shorter is not None:
            block[far] = shorter
    units = np.rint(block)
    squares = np.einsum("ij,ij->i", units, units)  # whole and below 2^53: exact
    # Rounded past the bound: one and a half steps shorter, a row hardly ever is; more than half a step a column, never.
    for steps in (1.5, 1.5 + math.sqrt(block.shape[1]) / 2):
        over = np.flatnonzero(squares > most)
        if not over.size:
            break
        units[over] = np.rint(block[over] * (1 - steps / math.sqrt(most)))
        squares[over] = np.einsum("ij,ij->i", units[over], units[over])
    return units, squares, lengths  # of at most `most` < 2^30, so each unit fits in 16 bits


def _shorten(block: Vector, row_norm: float, step: float) -> Vector:
    """Bring rows to steps, shortened to the bound but for rounding, zeros for what is not finite: in place.

    How many times as long they were, at least 1: for any longer row by the sum from left to right in `_norms`.
    """
    largest = np.abs(block).max(axis=1, initial=0.0)
    bad = ~np.isfinite(largest)
    block[bad] = 0.0
    largest[bad | (largest == 0)] = 1.0
    scale = np.maximum(largest, row_norm)
    block /= scale[:, None]  # at most 1: no square overflows
    norms = _norms(block)
    block *= (np.minimum(scale / step, (row_norm / step) / np.maximum(norms, 1e-300)))[:, None]
    lengths: Vector = np.maximum(norms * (scale / row_norm), 1.0)
    return lengths


def _norms(block: Vector) -> Vector:
    """l2 norms; those near 1 or above by sums from left to right, where neither zeros nor other rows can show.

    A sum in any other order may round differently with the row's place in memory, and does beyond 8192 columns. Below
    1 the norm is only compared with 1, and 2^-20 is more than any order can be wrong by.
    """
    norms: Vector = np.sqrt(np.einsum("ij,ij->i", block, block))
    near = np.flatnonzero(norms > 1 - 2.0**-20)
    for first in range(0, near.size, 256):
        part = near[first : first + 256]
        norms[part] = np.sqrt(np.add.accumulate(np.square(block[part]), axis=1)[:, -1])
    return norms


def _sparse(values: Any, kept: BoolArray, row_norm: float, step: float, most: int) -> Table:
    """As the dense table; a row is its stored values."""
    with np.errstate(over="ignore"):
        values = values.astype(np.float64, copy=True)
    values.sum_duplicates()
    starts, data = values.indptr, values.data
    squares = np.zeros(values.shape[0])
    counts = np.diff(starts)
    for size in np.unique(counts[counts > 0]):  # rows with equally many values are one dense block
        members = np.flatnonzero(counts == size)
        places = starts[members][:, None] + np.arange(size)
        block = data[places]
        block[~kept[members]] = 0.0
        data[places], squares[members], _ = _rounded(block, row_norm, step, most)
    return Table(values, _inverse(squares), step=step, row_norm=row_norm)
