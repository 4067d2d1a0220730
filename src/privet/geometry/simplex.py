"""The simplex: non-negative coordinates with a given sum."""

import math
from dataclasses import dataclass

import numpy as np

from privet._checks import positive
from privet.geometry.convex_set import Domain, Vector, check_size

# A sum of floats is rarely the total to the last bit. Pairwise summation of up to 2^40 terms is off by at most 50
# units in the last place, and scaling the terms to the total by two more.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def onto_simplex(point: Vector, total: float) -> Vector:
    """Return argmin ‖p − point‖ over p ≥ 0 with Σp = total: max(point − τ, 0) with the τ that makes the sum right.

    Theorem: Held, Wolfe and Crowder 1974. With entries in falling order v₁ ≥ v₂ ≥ …, τ = (v₁ + … + v_k − total)/k
    for the last k with v_k > τ_k. Sorting makes it O(d log d).

    >>> onto_simplex(np.array([2.0, 1.5, -1.0]), 1.0)
    array([0.75, 0.25, 0.  ])
    """
    # Relative to the largest entry: then only entries above −total can survive (the first one alone would otherwise
    # exceed the total), and for those the difference is accurate however large the point is.
    shifted = point - np.max(point)
    falling = np.sort(shifted[shifted > -total])[::-1]
    thresholds = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    kept = int(np.count_nonzero(falling > thresholds))
    threshold = (np.sum(falling[:kept]) - total) / kept  # again, as a cumulative sum loses digits
    nearest: Vector = np.maximum(shifted - threshold, 0.0)
    return nearest * (total / float(np.sum(nearest)))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Simplex(Domain):
    """{p ≥ 0 : Σp = total}; argmin ‖p − θ‖ = max(θ − τ, 0), with τ such that the sum is `total`."""

    total: float
    points: int | None = None

    def __post_init__(self) -> None:
        why = "the simplex would be empty or a point"
        object.__setattr__(self, "total", positive("total", self.total, because=why, use="Use a number above 0."))
        if self.points is not None:
            object.__setattr__(self, "points", check_size("size", self.points))

    @property
    def size(self) -> int | None:
        return self.points

    @property
    def diameter(self) -> float:
        """√2 · total, from corner to corner; 0 in one dimension, where the simplex is a point."""
        return 0.0 if self.points == 1 else math.sqrt(2.0) * self.total

    @property
    def radius(self) -> float:
        """From the centre to a corner, total · √(1 − 1/d); its limit `total` if d is not declared."""
        return self.total if self.points is None else self.total * math.sqrt(1.0 - 1.0 / self.points)

    def centre(self, d: int) -> Vector:
        """All coordinates equal."""
        return np.full(self._fits("the centre", d), self.total / d)

    def _holds(self, point: Vector, tolerance: float) -> bool:
        off = abs(float(np.sum(point)) - self.total)
        return bool(np.all(point >= -tolerance)) and off <= tolerance + _ROUNDING * self.total

    def _nearest(self, point: Vector) -> Vector:
        return onto_simplex(point, self.total)

    def _reach(self, direction: Vector) -> float:
        return self.total * float(np.max(direction))

    def __repr__(self) -> str:
        return f"simplex(total={self.total!r}" + (")" if self.points is None else f", size={self.points!r})")


def simplex(*, total: float = 1.0, size: int | None = None) -> Simplex:
    """Return the set of non-negative vectors with that sum: weights, or probabilities for total = 1.

    Theorem: see :func:`onto_simplex`; O(d log d). The sum counts as right when it is within 64 units in the last
    place of `total`, as a sum of floats is rarely exact.

    Parameters
    ----------
    total : positive and finite
    size : the number of coordinates, if it is known; the radius then is exact

    Examples
    --------
    >>> simplex().project([2.0, 1.5, -1.0])
    array([0.75, 0.25, 0.  ])
    >>> simplex().diameter, simplex(size=4).centre(4)
    (1.4142135623730951, array([0.25, 0.25, 0.25, 0.25]))
    """
    return Simplex(total=total, points=size)
