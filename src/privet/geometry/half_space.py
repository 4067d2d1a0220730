"""Half-spaces: one linear inequality."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet._checks import number
from privet.errors import InvalidParameter
from privet.geometry.convex_set import Unbounded, Vector, frozen_vector, length

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class HalfSpace(Unbounded):
    """{p : ⟨normal, p⟩ ≤ offset}; argmin ‖p − θ‖ = θ − max(0, ⟨normal, θ⟩ − offset)/‖normal‖² · normal."""

    normal: Vector
    offset: float

    def __post_init__(self) -> None:
        if not self.normal.any():
            raise InvalidParameter("""Expected a normal that is not 0, got 0: it would constrain nothing, or everything.
                Use whole_space() for no constraint.""")
        why, hint = "the half-space would be everything or empty", "Use whole_space() for no constraint."
        object.__setattr__(self, "offset", number("offset", self.offset, because=why, use=hint))

    @property
    def size(self) -> int | None:
        return self.normal.size

    def centre(self, d: int) -> Vector:
        """The point nearest to 0."""
        return self.project(np.zeros(self._fits("the centre", d)))

    def _scaled(self) -> tuple[Vector, float]:
        """The same half-space, by a power of two (so exactly) such that the largest entry is in [1/2, 1)."""
        exponent = math.frexp(float(np.max(np.abs(self.normal))))[1]
        return np.ldexp(self.normal, -exponent), float(np.ldexp(self.offset, -exponent))

    def _holds(self, point: Vector, tolerance: float) -> bool:
        normal, offset = self._scaled()
        return float(np.sum(normal * point)) <= offset + tolerance * length(normal)

    def _nearest(self, point: Vector) -> Vector:
        normal, offset = self._scaled()
        terms, squared = normal * point, float(np.sum(np.square(normal)))
        nearest = point - ((float(np.sum(terms)) - offset) / squared) * normal
        # What is left of the inequality is rounding: step over it, doubling until the set contains the point.
        step = _EPSILON * (float(np.sum(np.abs(terms))) + abs(offset)) / squared
        for _ in range(52):
            if self._holds(nearest, 0.0):
                break
            nearest = nearest - step * normal
            step *= 2.0
        return nearest

    def _reach(self, direction: Vector) -> float:
        normal, offset = self._scaled()
        along = float(np.sum(normal * direction)) / float(np.sum(np.square(normal)))
        across = length(direction - along * normal)
        parallel = along >= 0.0 and across <= 8.0 * _EPSILON * along * length(normal)  # up to rounding
        return along * offset if parallel else math.inf

    def __repr__(self) -> str:
        return f"half_space(normal={self.normal!r}, offset={self.offset!r})"


def half_space(*, normal: ArrayLike, offset: float = 0.0) -> HalfSpace:
    """Return the set of coefficients with ⟨normal, θ⟩ ≤ offset.

    Theorem: the nearest point lies on the line through θ along the normal. Tolerances of `contains` are distances:
    the inequality is divided by ‖normal‖. `support` is finite only along the normal, up to rounding.

    Parameters
    ----------
    normal : public flat array, not 0
    offset : finite

    Examples
    --------
    >>> half = half_space(normal=[1.0, 1.0], offset=1.0)
    >>> half.project([2.0, 1.0]), half.contains([0.5, 0.5]), half.diameter
    (array([1., 0.]), True, inf)
    """
    return HalfSpace(normal=frozen_vector("normal", normal), offset=offset)
