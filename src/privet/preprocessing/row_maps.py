"""Maps of rows, block by block: what all blocks need is made once, and rows stand side by side so that loops are long.

Every operation here is rounded value by value, or exact, so that neither the block nor its length shows in a row.
"""

from collections.abc import Callable

import numpy as np

from privet.arrays import Vector

RowMap = Callable[[Vector], Vector]
"""From a C-ordered block of rows, which may be changed, to one of their images. Private in, private out."""

BITS = 26
"""Of a feature in [−1, 1] before it is turned."""
_SIDE = 32  # rows that stand side by side


class PerColumn:
    """Numbers for each column, and how they meet a block of rows.

    Examples
    --------
    >>> sizes = PerColumn(np.array([1.0, 2.0]))
    >>> block, (beside,) = sizes.beside(np.ones((64, 2)))
    >>> block.shape, beside.shape
    ((2, 64), (64,))
    """

    def __init__(self, *values: Vector) -> None:
        self._once, self._often = values, tuple(np.tile(value, _SIDE) for value in values)

    def beside(self, block: Vector) -> tuple[Vector, tuple[Vector, ...]]:
        """The block with many rows in one if their number allows it, a view; and the numbers for its columns."""
        if len(block) % _SIDE or not block.flags.c_contiguous:
            return block, self._once
        return block.reshape(-1, _SIDE * block.shape[1]), self._often


def stretched(low: Vector, high: Vector, middle: Vector, half: Vector) -> RowMap:
    """The map from values in their ranges to [−1, 1]: what is outside counts as the nearest end, NaN as 0. In place.

    Examples
    --------
    >>> low, high, zeros = np.array([0.0]), np.array([4.0]), np.zeros(1)
    >>> stretched(low, high, zeros, high)(np.array([[1.0], [9.0], [np.nan]])).tolist()
    [[0.25], [1.0], [0.0]]
    """
    numbers, moved = PerColumn(low, high, middle, half), bool(middle.any())

    def mapped(rows: Vector) -> Vector:
        wide, (least, most, origin, unit) = numbers.beside(rows)
        np.maximum(wide, least, out=wide)  # of NaN, NaN
        np.minimum(wide, most, out=wide)
        if moved:
            wide -= origin
        wide /= unit
        if moved:
            np.clip(wide, -1.0, 1.0, out=wide)  # the middle of [2⁵², 2⁵² + 3] is rounded, and an end beyond 1
        missing = np.isnan(wide)
        if missing.any():
            wide[missing] = 0.0
        return rows

    return mapped


def shifted(mean: Vector, scale: Vector) -> RowMap:
    """The map w ↦ (w − mean) × scale, value by value. In place.

    Examples
    --------
    >>> shifted(np.array([0.5, 0.0]), np.array([2.0, 1.0]))(np.array([[0.75, 0.25]])).tolist()
    [[0.5, 0.25]]
    """
    numbers = PerColumn(mean, scale)

    def mapped(rows: Vector) -> Vector:
        wide, (origin, size) = numbers.beside(rows)
        wide -= origin
        wide *= size
        return rows

    return mapped


def turned(units: Vector, sizes: Vector, places: Vector) -> RowMap:
    """The map w ↦ (rint(2²⁶ w) · units) × sizes ÷ 2²⁶ + places; the product is exact for units as in `Whitening`.

    Examples
    --------
    >>> turned(np.eye(2), np.array([2.0, 4.0]), np.zeros(2))(np.array([[0.5, 0.25]])).tolist()
    [[1.0, 1.0]]
    """
    numbers = PerColumn(sizes * 2.0**-BITS, places)

    def mapped(rows: Vector) -> Vector:
        rows *= 2.0**BITS
        found: Vector = np.dot(np.rint(rows, out=rows), units)
        wide, (size, place) = numbers.beside(found)
        wide *= size
        wide += place
        return found

    return mapped
