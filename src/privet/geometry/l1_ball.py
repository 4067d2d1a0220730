"""The l1 ball, the domain of sparse models."""

from dataclasses import dataclass

import numpy as np

from privet.geometry.convex_set import Ball, Vector, pulled_in
from privet.geometry.simplex import onto_simplex


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class L1Ball(Ball):
    """{p : Σ|p| ≤ radius}; argmin ‖p − θ‖ = sign(θ) · max(|θ| − τ, 0), with the least τ ≥ 0 that is feasible."""

    def centre(self, d: int) -> Vector:
        return np.zeros(self._fits("the centre", d))

    def _holds(self, point: Vector, tolerance: float) -> bool:
        return float(np.sum(np.abs(point))) <= self.radius + tolerance

    def _nearest(self, point: Vector) -> Vector:
        # Outside, the sum of magnitudes of the nearest point is the radius, so they are the nearest on a simplex.
        nearest = np.sign(point) * onto_simplex(np.abs(point), self.radius) + 0.0
        return pulled_in(lambda part: part * nearest, self._holds, np.zeros_like(point))

    def _reach(self, direction: Vector) -> float:
        return self.radius * float(np.max(np.abs(direction)))

    def __repr__(self) -> str:
        return f"l1_ball(radius={self.radius!r})"


def l1_ball(*, radius: float) -> L1Ball:
    """Return the set of coefficients whose magnitudes sum to at most `radius`, in any dimension.

    Theorem: soft thresholding (lecture 13, exercise 2.3; Duchi et al. 2008), by sorting, O(d log d).

    Parameters
    ----------
    radius : positive and finite, in the unit of θ; also the Euclidean distance from 0 to a corner

    Examples
    --------
    >>> ball = l1_ball(radius=1.0)
    >>> ball.project([2.0, -1.5, 0.25]), ball.support([3.0, -4.0, 0.0])
    (array([ 0.75, -0.25,  0.  ]), 4.0)
    """
    return L1Ball(radius=radius)
