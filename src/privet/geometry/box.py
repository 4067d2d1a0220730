"""Boxes: each coordinate in its own interval. The cube, and the non-negative orthant, are among them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.errors import InvalidParameter
from privet.geometry.convex_set import Domain, Vector, check_size, frozen_vector, length


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Box(Domain):
    """{p : low ≤ p ≤ high}; argmin ‖p − θ‖ = min(max(θ, low), high), coordinate by coordinate."""

    low: Vector
    high: Vector

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape:
            raise InvalidParameter(f"""Expected low and high of equal length, got {self.low.size} and {self.high.size}:
                each coordinate needs both. Pass two arrays of the same length.""")
        if not (np.all(self.low <= self.high) and np.all(self.low < np.inf) and np.all(self.high > -np.inf)):
            raise InvalidParameter(f"""Expected low ≤ high in every coordinate, low < ∞ and high > −∞, got
                low={self.low!r}, high={self.high!r}: the box would be empty. Swap the two where they are the wrong way
                round.""")

    @property
    def size(self) -> int | None:
        return self.low.size

    @property
    def diameter(self) -> float:
        """‖high − low‖₂, from corner to corner."""
        with np.errstate(over="ignore"):
            return length(self.high - self.low)

    @property
    def radius(self) -> float:
        """From the centre to the farthest corner; half the diameter if no side is infinite."""
        middle = self._middle()
        with np.errstate(over="ignore"):
            return length(np.maximum(self.high - middle, middle - self.low))

    def _middle(self) -> Vector:
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isfinite(self.low) & np.isfinite(self.high), self.low / 2 + self.high / 2, 0.0)
        return np.clip(middle, self.low, self.high)

    def centre(self, d: int) -> Vector:
        """The middle; where a side is infinite, the point of it nearest to 0."""
        self._fits("the centre", d)
        return self._middle()

    def _holds(self, point: Vector, tolerance: float) -> bool:
        return bool(np.all(point >= self.low - tolerance) and np.all(point <= self.high + tolerance))

    def _nearest(self, point: Vector) -> Vector:
        return np.clip(point, self.low, self.high)

    def _reach(self, direction: Vector) -> float:
        corner = np.where(direction > 0.0, self.high, self.low)
        return float(np.sum(np.where(direction == 0.0, 0.0, direction * corner)))

    def __repr__(self) -> str:
        return f"box(low={self.low!r}, high={self.high!r})"


def box(*, low: ArrayLike, high: ArrayLike, size: int | None = None) -> Box:
    """Return the box of all points between `low` and `high`.

    Theorem: the squared distance is a sum over coordinates, so each is clipped by itself (lecture 13, exercise 2.3).

    Parameters
    ----------
    low, high : flat arrays, or one number for all `size` coordinates; ±∞ leaves a side open
    size : the number of coordinates, needed if both are numbers: the diameter depends on it

    Examples
    --------
    >>> cube = box(low=-1.0, high=1.0, size=4)
    >>> cube.project([3.0, 0.5, -2.0, 0.0]), cube.diameter
    (array([ 1. ,  0.5, -1. ,  0. ]), 4.0)
    >>> box(low=[0.0, 0.0], high=np.inf).contains([1.0, 9.0])
    True
    """
    shapes = {np.shape(side) for side in (low, high) if np.ndim(side) > 0}
    if not shapes and size is None:
        raise InvalidParameter(f"""Expected an array or a size, got low={low!r}, high={high!r} and no size: the diameter
            of a cube depends on its dimension. Pass size=d.""")
    sizes = {int(np.prod(shape)) for shape in shapes} | ({check_size("size", size)} if size is not None else set())
    if len(sizes) > 1:
        raise InvalidParameter(f"""Expected low, high and size to agree, got {", ".join(map(str, sorted(sizes)))}
            coordinates: each coordinate needs both bounds. Pass arrays of one length.""")
    (common,) = sizes
    sides = [np.full(common, side) if np.ndim(side) == 0 else side for side in (low, high)]
    return Box(low=frozen_vector("low", sides[0], infinite=True), high=frozen_vector("high", sides[1], infinite=True))
