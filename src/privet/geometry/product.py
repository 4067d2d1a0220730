"""Products: one set for the first coordinates, another for the next, and so on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privet.errors import InvalidParameter
from privet.geometry.convex_set import ConvexSet, Domain, Vector, check_size


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Product(Domain):
    """{(p₁, p₂, …) : p_i in set i}; argmin ‖p − θ‖ takes each block's own projection."""

    sets: tuple[ConvexSet, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sets or len(self.sets) != len(self.sizes):
            raise InvalidParameter(f"""Expected as many sizes as sets, at least one, got {len(self.sets)} and
                {len(self.sizes)}: each set needs its number of coordinates. Pass two lists of equal length.""")
        for part, size in zip(self.sets, self.sizes, strict=True):
            if part.size not in (None, size):
                raise InvalidParameter(f"""Expected {part.size} coordinates for {part!r}, got {size}: the set lies in
                    another space. Pass the sizes in the order of the sets.""")

    @property
    def size(self) -> int | None:
        return sum(self.sizes)

    @property
    def diameter(self) -> float:
        """The root of the sum of squares of the diameters."""
        return math.hypot(*(part.diameter for part in self.sets))

    @property
    def radius(self) -> float:
        """The root of the sum of squares of the radii."""
        return math.hypot(*(part.radius for part in self.sets))

    def _blocks(self, point: Vector) -> list[tuple[ConvexSet, Vector]]:
        return list(zip(self.sets, np.split(point, np.cumsum(self.sizes)[:-1]), strict=True))

    def centre(self, d: int) -> Vector:
        """The centres of the sets."""
        self._fits("the centre", d)
        return np.concatenate([part.centre(size) for part, size in zip(self.sets, self.sizes, strict=True)])

    def _holds(self, point: Vector, tolerance: float) -> bool:
        return all(part.contains(block, tolerance) for part, block in self._blocks(point))

    def _nearest(self, point: Vector) -> Vector:
        return np.concatenate([part.project(block) for part, block in self._blocks(point)])

    def _reach(self, direction: Vector) -> float:
        return sum(part.support(block) for part, block in self._blocks(direction))

    def __repr__(self) -> str:
        return f"product({list(self.sets)!r}, {list(self.sizes)!r})"


def product(sets: Sequence[ConvexSet], sizes: Sequence[int]) -> Product:
    """Return the product of sets, of which the first takes the first `sizes[0]` coordinates, and so on.

    Theorem: squared distances add up over the blocks, so each is projected by itself.

    Parameters
    ----------
    sets : any convex sets, yours included
    sizes : how many coordinates each takes

    Examples
    --------
    A ball for three coefficients, and an interval for the intercept:

    >>> from privet.geometry import box, l2_ball
    >>> domain = product([l2_ball(radius=1.0), box(low=-5.0, high=5.0, size=1)], [3, 1])
    >>> domain.project([0.0, 3.0, 4.0, 9.0]), round(domain.diameter, 3)
    (array([0. , 0.6, 0.8, 5. ]), 10.198)
    """
    return Product(sets=tuple(sets), sizes=tuple(check_size("size", size) for size in sizes))
