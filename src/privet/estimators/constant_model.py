"""What a linear model says of the constant that it would be alone."""

import math
from typing import Any, ClassVar

from privet.arrays import Vector
from privet.plan import Meter


def is_point(low: float, high: float) -> bool:
    """Whether there is next to no number between the ends of a range.

    Examples
    --------
    >>> is_point(2.5, 2.5), is_point(2.5, 2.5000001)
    (True, False)
    """
    return high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


class ConstantModel:
    """What a model says of the constant that it would be alone, if it `_draws` any."""

    _draws: ClassVar[bool] = False
    _loyal: ClassVar[bool] = False  # whether its constant is a mean, of which a median may be far off
    _finds_target = False  # whether `bounds_exact` is said of features alone, as by a table, which has learnt those
    bounds_exact: bool

    def _constant_draw(self, name: str) -> Any:
        """The draw of the best constant, if there is one whatever the scale of the target."""
        return None

    def _draw_constant(self, draw: Any, target: Any, ends: tuple[float, float] | None, meter: Meter) -> Any:
        """The constant, between public ends if there are any."""
        raise NotImplementedError

    def _keep_constant(self, constant: Any, columns: int) -> None:
        """Set the fitted attributes of a model that is a constant."""
        raise NotImplementedError

    @property
    def _said_public(self) -> tuple[str, ...]:
        """What is taken as public of the target."""
        return ()

    def _started(self, rates: Vector | None, shape: tuple[int, ...], constant: float) -> Vector | None:
        """Where a descent begins, if not in the middle."""
        return None

    @property
    def _target_exact(self) -> bool:
        """Whether the declared range of the target is used as it is."""
        return self.bounds_exact and not self._finds_target
