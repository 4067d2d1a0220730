"""The Euclidean ball."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.geometry.convex_set import Ball, Vector, frozen_vector, length, pulled_in


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class L2Ball(Ball):
    """{p : ‖p − middle‖₂ ≤ radius}; argmin ‖p − θ‖ = middle + (θ − middle) · min(1, radius/‖θ − middle‖)."""

    middle: Vector | None = None

    @property
    def size(self) -> int | None:
        return None if self.middle is None else self.middle.size

    def centre(self, d: int) -> Vector:
        zeros = np.zeros(self._fits("the centre", d))
        return zeros if self.middle is None else zeros + self.middle

    def _holds(self, point: Vector, tolerance: float) -> bool:
        return length(point if self.middle is None else point - self.middle) <= self.radius + tolerance

    def _nearest(self, point: Vector) -> Vector:
        middle = np.zeros_like(point) if self.middle is None else self.middle
        direction = point - middle
        direction /= np.max(np.abs(direction))  # first to a size whose square neither overflows nor vanishes
        direction /= length(direction)
        return pulled_in(lambda part: middle + (part * self.radius) * direction, self._holds, middle + 0.0)

    def _reach(self, direction: Vector) -> float:
        start = 0.0 if self.middle is None else float(np.sum(direction * self.middle))
        return start + self.radius * length(direction)

    def __repr__(self) -> str:
        return f"l2_ball(radius={self.radius!r}" + (")" if self.middle is None else f", centre={self.middle!r})")


def l2_ball(*, radius: float, centre: ArrayLike | None = None) -> L2Ball:
    """Return the Euclidean ball of that radius about `centre`, or about 0 in any dimension.

    Theorem: the nearest point lies on the line to the centre (lecture 13, exercise 2.3). The lectures' R is the
    radius in one note and the diameter in another: here both have their name.

    Parameters
    ----------
    radius : positive and finite, in the unit of θ
    centre : public, a flat array; 0 if None

    Examples
    --------
    >>> ball = l2_ball(radius=5.0)
    >>> ball.project([6.0, 8.0]), ball.diameter
    (array([3., 4.]), 10.0)
    >>> l2_ball(radius=1.0, centre=[2.0, 0.0]).project([0.0, 0.0])
    array([1., 0.])
    """
    return L2Ball(radius=radius, middle=None if centre is None else frozen_vector("centre", centre))
