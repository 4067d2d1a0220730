"""Rows brought to whole 16-bit units in one go, compiled by Numba where it is installed: the same bits, sooner.

A row that is surely within the bound is scaled and rounded here, value by value, as NumPy would do it: no sum of
floats decides anything, as the only sums are of whole numbers below 2^53. Every other row, with a value that is not
finite, or near the bound or beyond it, is marked and left to NumPy (docs/proofs/sums.md, section 2).
"""

import math
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from privet.sums.compiled import trusted

_WORTH_LOADING = 2**22  # values in one table that pay for loading the compiler, a fifth of a second
_WORTH_CALLING = 2**12
_MAGIC = 1.5 * 2.0**52  # x + this − this is x rounded to a whole number, ties to even, for |x| < 2^51
_FAR = 40_000.0  # units beyond which a row is marked, whatever else it holds: their square is above 2^30
_TURNED = 8  # columns that are turned together
_MARK = -1.0


class Rounding(NamedTuple):
    """The compiled functions: from floats to 16-bit rows and their squared norms, −1 for rows left over.

    `rows` takes rows; `column` one column after the other, as it lies in memory, which `turn` then makes rows of.
    """

    rows: Callable[[Any, float, float, float, Any, Any], None]
    column: Callable[[Any, float, float, Any, Any], None]
    turn: Callable[[Any, float, Any, Any], None]

    def columns(
        self, lying: Iterable[Any], over: float, times: float, limit: float, units: Any, squares: Any, scratch: Any
    ) -> None:
        """Columns of floats to rows of units: what `rows` does with their rows; 16 bits of `scratch` for each value."""
        tile = scratch[: units.size].reshape(units.shape[::-1])
        squares[:] = 0.0
        for column, values in zip(tile, lying, strict=True):
            self.column(values, over, times, column, squares)
        self.turn(tile, limit, units, squares)


def rounding_for(values: int) -> Rounding | None:
    """The compiled functions where they pay: for many values, or for fewer once they are there."""
    if values < _WORTH_CALLING:
        return None
    return rounding() if values >= _WORTH_LOADING or rounding.cache_info().currsize else None


@cache
def rounding() -> Rounding | None:
    """The compiled functions; None where there is no compiler, or none that can be trusted. Never raises."""
    return trusted(_compiled, _right)


def scales(row_norm: float, step: float, most: int, columns: int) -> tuple[float, float, float]:
    """What a value is divided by, then multiplied by, and the squared norm below which a row surely fits as it is.

    Rounding moves a row by at most √columns / 2, so that one whose rounded norm is below the bound by more than that
    and a millionth was itself below it. A bound that is a power of two needs no division: the product is the same.

    Examples
    --------
    >>> scales(8.0, 2.0**-11, 2**28, 4)[:2], scales(0.7, 2.0**-15, 2**28, 4)[:2]
    ((1.0, 2048.0), (0.7, 22937.6))
    """
    factor = row_norm / step
    below = factor * (1 - 2.0**-19) - math.sqrt(columns) / 2 - 1
    limit = min(float(most), math.floor(below * below)) if below > 0 else -1.0
    if math.frexp(row_norm)[0] == 0.5 and 2.0**-900 < step < 2.0**900:
        return 1.0, 1 / step, limit
    return row_norm, factor, limit


def _compiled(kept: bool) -> Rounding:
    """Compile, or read from the cache if `kept`; raises what Numba raises."""
    import numba

    number, lines, line = numba.types.float64, numba.types.float64[:, ::1], numba.types.float64[::1]
    short, shorts = numba.types.int16[::1], numba.types.int16[:, ::1]
    read = numba.types.Array(number, 1, "C", readonly=True)
    made: Any = partial(numba.njit, nogil=True, cache=kept, error_model="numpy")
    return Rounding(
        made((lines, number, number, number, shorts, line))(_rows),
        made((read, number, number, short, line))(_column),
        made((shorts, number, shorts, line))(_turn),
    )


def _rows(block: Any, over: float, times: float, limit: float, units: Any, squares: Any) -> None:
    """Rows of floats to rows of units."""
    count, columns = block.shape
    for i in range(count):
        total: Any = 0
        for j in range(columns):
            value = block[i, j] if over == 1.0 else block[i, j] / over
            value *= times
            value = value if value < _FAR else _FAR  # NaN as well
            value = value if value > -_FAR else -_FAR
            whole = np.int32((value + _MAGIC) - _MAGIC)
            units[i, j] = np.int16(whole)
            total += np.int64(whole) * np.int64(whole)
        squares[i] = np.float64(total) if total <= limit else _MARK


def _column(values: Any, over: float, times: float, units: Any, squares: Any) -> None:
    """A column of floats to units, and their squares to those of the columns before: whole, and below 2^53."""
    for i in range(len(values)):
        value = values[i] if over == 1.0 else values[i] / over
        value *= times
        value = value if value < _FAR else _FAR
        value = value if value > -_FAR else -_FAR
        value = (value + _MAGIC) - _MAGIC
        units[i] = np.int16(np.int32(value))
        squares[i] += value * value


def _turn(tile: Any, limit: float, units: Any, squares: Any) -> None:
    """Columns of units to rows, some columns at a time, as so many lines of memory are read at once; and marks."""
    columns, count = tile.shape
    for first in range(0, columns, _TURNED):
        last = min(columns, first + _TURNED)
        for i in range(count):
            for j in range(first, last):
                units[i, j] = tile[j, i]
    for i in range(count):
        squares[i] = squares[i] if squares[i] <= limit else _MARK


def _right(made: Rounding) -> bool:
    """Whether the functions, on a small public table, find what NumPy finds; a broken compiler would not."""
    block = np.linspace(-3.0, 3.0, 77 * 7).reshape(77, 7) ** 3
    block[[3, 4, 5], [1, 2, 3]] = np.nan, np.inf, -np.inf
    block[6] = (np.arange(7) - 3.5) * 2.0**-10
    for over, times in ((1.0, 2.0**10), (0.7, 0.7 * 2.0**10)):
        whole = np.rint(np.clip(np.nan_to_num(block / over * times, nan=_FAR), -_FAR, _FAR))
        wanted = np.einsum("ij,ij->i", whole, whole)
        limit = float(np.median(wanted))
        lying, scratch = list(np.ascontiguousarray(block.T)), np.empty(block.size, dtype=np.int16)
        for work in (partial(made.rows, block), partial(made.columns, lying, scratch=scratch)):
            units, squares = np.empty(block.shape, dtype=np.int16), np.empty(len(block))
            work(over, times, limit, units, squares)
            fits = wanted <= limit
            if not (np.array_equal(squares, np.where(fits, wanted, _MARK)) and (units[fits] == whole[fits]).all()):
                return False
    return True
