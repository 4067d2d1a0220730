"""The whole space: no constraint, and no diameter."""

import math
from dataclasses import dataclass

import numpy as np

from privet.geometry.convex_set import Unbounded, Vector


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class WholeSpace(Unbounded):
    """ℝ^d, for any d; argmin ‖p − θ‖ = θ."""

    def centre(self, d: int) -> Vector:
        return np.zeros(self._fits("the centre", d))

    def _holds(self, point: Vector, tolerance: float) -> bool:
        return True

    def _nearest(self, point: Vector) -> Vector:
        return point

    def _reach(self, direction: Vector) -> float:
        return math.inf if direction.any() else 0.0

    def __repr__(self) -> str:
        return "whole_space()"


def whole_space() -> WholeSpace:
    """Return the set of all coefficients, for algorithms without projection.

    Only here does the rank bound of lecture 13 hold: projecting on a ball loses it.

    Examples
    --------
    >>> whole_space().project([1e9, -3.0]), whole_space().diameter
    (array([ 1.e+09, -3.e+00]), inf)
    """
    return WholeSpace()
