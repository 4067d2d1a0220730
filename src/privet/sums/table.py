"""Features with bounded rows, rounded once to 16 bits on a public grid, so that sums over them are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet.clipping.lattice import check_clip
from privet.errors import InvalidParameter

__all__ = ["Table", "as_matrix", "as_vector", "bounded_table"]

_ROWS = 1 << 12  # rows prepared at a time, at most
_VALUES = 1 << 17  # and values: a block and what is made of it stay in a core's own cache
_MOST_COLUMNS = 2**22  # then a squared norm is below 2^52, an exact float


class Table:
    """Private rows of l2 norm at most `row_norm`, as whole multiples of the power of two `step`.

    Promise: each row depends on its own record only; a record with a value that is not finite is all zeros; no row's
    exact norm exceeds `row_norm`. A value is rounded by at most `row_norm` × 2^-15; rows that rounding
    makes longer than `row_norm` are shortened by a few parts in 2^15, by √columns of them at worst.
    """

    __slots__ = ("inverse_norms", "row_norm", "step", "units")

    def __init__(self, units: Any, inverse_norms: NDArray[np.float64], *, step: float, row_norm: float) -> None:
        self.units = units  # int16 (n, d), or CSR with whole float64 values
        self.inverse_norms = inverse_norms  # 1 ÷ norm in units, rounded down by 2^-50; 0 for an empty row
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

    def __repr__(self) -> str:
        return f"Table(private, columns={self.shape[1]}, row_norm={self.row_norm!r})"


def as_matrix(data: Any, *, name: str = "X") -> Any:
    """`data` as a numeric 2-d array or CSR matrix. Types and shapes are looked at, values never.

    In an array of objects, such as a frame of mixed columns makes, a cell that is no number is NaN, so that its record
    will count as zero. Text as a type is refused.
    """
    if sparse.issparse(data):
        matrix = data.tocsr()
    else:
        matrix = _array(data, name)
        if matrix.dtype.kind == "O":
            matrix = _numbers(matrix)
    if matrix.dtype.kind not in "fiub" or matrix.ndim != 2:
        raise InvalidParameter(
            f"Expected {name} to be a table of numbers with rows and columns, got {matrix.ndim} dimension(s) of type "
            f"{matrix.dtype.kind!r}: a gradient needs numbers. Encode text columns first, or reshape one column "
            "with .reshape(-1, 1)."
        )
    if not 0 < matrix.shape[1] <= _MOST_COLUMNS:
        raise InvalidParameter(
            f"Expected {name} to have between 1 and {_MOST_COLUMNS:,} columns, got {matrix.shape[1]}: "
            "norms beyond that are no longer exact. Hash or drop columns."
        )
    return matrix


def as_vector(data: Any, length: int, *, name: str = "y") -> NDArray[np.float64]:
    """`data` as `length` floats; what is no number is NaN, so that its record will count as zero."""
    vector = _array(data, name)
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.ndim != 1 or len(vector) != length:
        raise InvalidParameter(
            f"Expected {name} to hold one value a record, got {vector.ndim} dimension(s) that do not fit the table: "
            "records and labels would be paired wrongly. Pass a vector as long as the table."  # how long is private
        )
    if vector.dtype.kind not in "fiubO":
        raise InvalidParameter(
            f"Expected {name} to be numbers, got values of type {vector.dtype.kind!r}: a loss needs numbers. "
            "Map labels to numbers with a public list of classes first."
        )
    if vector.dtype.kind == "O":
        return _numbers(vector)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(vector, dtype=np.float64)


def _array(data: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(data)
    except ValueError:  # which would quote a shape
        raise InvalidParameter(
            f"Expected {name} to be an array of numbers, got rows of unequal lengths: they are no table. "
            "Pass as many numbers for each record."
        ) from None


def _numbers(cells: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([_number(cell) for cell in cells.ravel()], dtype=np.float64).reshape(cells.shape)


def _number(cell: object) -> float:
    try:
        return float(cell)  # type: ignore[arg-type]  # what is no number is caught
    except (TypeError, ValueError, OverflowError):
        return math.nan


def bounded_table(
    data: Any,
    *,
    row_norm: float,
    keep: NDArray[np.bool_] | None = None,
    prepare: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None,
) -> Table:
    """Rows shortened to l2 norm at most `row_norm` and rounded to the grid; rows with bad values are zeroed out.

    Theorem: data clipping, lecture 13 (Brown), section 3.(2).

    Parameters
    ----------
    data : (n, d) numbers, dense or CSR; private
    row_norm : the public bound, in the unit of a row's norm
    keep : which records to keep; the others are zeroed out, e.g. those whose label is not in the declared set
    prepare : a public map of dense rows, value by value, applied a block at a time so that its image is never whole in
        memory; may change its argument

    Examples
    --------
    >>> table = bounded_table(np.array([[3.0, 4.0], [np.nan, 1.0], [0.5, 0.0]]), row_norm=1.0)
    >>> (table.units * table.step).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0], [0.5, 0.0]]
    """
    matrix = as_matrix(data)
    row_norm = check_clip(row_norm, name="row_norm")
    step = math.ldexp(1.0, math.frexp(row_norm)[1] - 15)  # a row's norm is between 2^14 and 2^15 steps
    most = math.floor((Fraction(row_norm) / Fraction(step)) ** 2)
    kept = np.ones(matrix.shape[0], dtype=bool) if keep is None else keep
    if sparse.issparse(matrix):
        return _sparse(matrix, kept, row_norm, step, most)
    n, d = matrix.shape
    columns = d if prepare is None else prepare(np.zeros((1, d))).shape[1]
    units = np.empty((n, columns), dtype=np.int16)
    squares = np.empty(n)
    rows = max(64, min(_ROWS, _VALUES // columns))
    for first in range(0, n, rows):
        part = slice(first, first + rows)
        with np.errstate(over="ignore"):
            block = np.array(matrix[part], dtype=np.float64, order="C")
        if prepare is not None:
            with np.errstate(all="ignore"):
                block = np.ascontiguousarray(prepare(block), dtype=np.float64)
        block[~kept[part]] = 0.0
        units[part], squares[part] = _rounded(block, row_norm, step, most)
    return Table(units, _inverse(squares), step=step, row_norm=row_norm)


def _inverse(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.where(squares > 0, (1 - 2.0**-50) / np.sqrt(squares), 0.0)


def _rounded(
    block: NDArray[np.float64], row_norm: float, step: float, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows in units, and their exact squared norms. Works in place."""
    with np.errstate(all="ignore"):
        largest = np.abs(block).max(axis=1, initial=0.0)
        bad = ~np.isfinite(largest)
        block[bad] = 0.0
        largest[bad | (largest == 0)] = 1.0
        scale = np.maximum(largest, row_norm)
        block /= scale[:, None]  # at most 1: no square overflows
        norms = _norms(block)
        block *= (np.minimum(scale / step, (row_norm / step) / np.maximum(norms, 1e-300)))[:, None]
    units = np.rint(block)
    squares = np.einsum("ij,ij->i", units, units)  # whole and below 2^53: exact
    # Rounded past the bound: one and a half steps shorter, a row hardly ever is; more than half a step a column, never.
    for steps in (1.5, 1.5 + math.sqrt(block.shape[1]) / 2):
        over = np.flatnonzero(squares > most)
        units[over] = np.rint(block[over] * (1 - steps / math.sqrt(most)))
        squares[over] = np.einsum("ij,ij->i", units[over], units[over])
    return units, squares  # of at most `most` < 2^30, so each unit fits in 16 bits


def _norms(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """l2 norms; those near 1 or above by sums from left to right, where neither zeros nor other rows can show.

    A sum in any other order may round differently with the row's place in memory, and does beyond 8192 columns. Below
    1 the norm is only compared with 1, and 2^-20 is more than any order can be wrong by.
    """
    norms: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", block, block))
    near = np.flatnonzero(norms > 1 - 2.0**-20)
    for first in range(0, near.size, 256):
        part = near[first : first + 256]
        norms[part] = np.sqrt(np.add.accumulate(np.square(block[part]), axis=1)[:, -1])
    return norms


def _sparse(matrix: Any, kept: NDArray[np.bool_], row_norm: float, step: float, most: int) -> Table:
    """As the dense table; a row is its stored values."""
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float64, copy=True)
    matrix.sum_duplicates()
    starts, data = matrix.indptr, matrix.data
    squares = np.zeros(matrix.shape[0])
    counts = np.diff(starts)
    for size in np.unique(counts[counts > 0]):  # rows with equally many values are one dense block
        members = np.flatnonzero(counts == size)
        places = starts[members][:, None] + np.arange(size)
        block = data[places]
        block[~kept[members]] = 0.0
        data[places], squares[members] = _rounded(block, row_norm, step, most)
    return Table(matrix, _inverse(squares), step=step, row_norm=row_norm)
