"""A loss of your own, from three functions and what you have proved about them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from privet._checks import whole
from privet.errors import InvalidParameter
from privet.losses.loss import Array, Mask, check_number, check_prediction_bound, finite


@dataclass(frozen=True, kw_only=True, slots=True)
class CustomLoss:
    """A pointwise loss from its value, derivative and curvature, each a function of (z, y).

    The constants are yours to prove; the default declares none, and then clipping carries the privacy claim, as it
    does for any loss. The functions must not raise on values: a label that they cannot take belongs outside
    `label_set`, but they still see it. Anything with the methods of :class:`Loss` serves as well as this.

    Parameters
    ----------
    value, derivative, curvature : functions of (z, y), vectorised over records
    lipschitz_constant : bound on |derivative| for all z and admissible y, or None
    smoothness_constant : bound on |curvature| (Lipschitz constant of the derivative), likewise
    convex : whether z ↦ value(z, y) is convex for all admissible y
    label_set : function from labels to a mask of those admissible; all finite numbers if None
    outputs : predictions a record

    Examples
    --------
    >>> import numpy as np
    >>> logcosh = CustomLoss(
    ...     value=lambda z, y: np.logaddexp(z - y, y - z) - math.log(2),
    ...     derivative=lambda z, y: np.tanh(z - y),
    ...     curvature=lambda z, y: 1 - np.tanh(z - y) ** 2,
    ...     lipschitz_constant=1.0, smoothness_constant=1.0, convex=True)
    >>> logcosh.derivative(np.array([0.0, 9.0]), np.array([0.0, 0.0])).round(6)
    array([0., 1.])
    >>> logcosh.lipschitz()
    1.0
    """

    value: Callable[[ArrayLike, ArrayLike], Array]
    derivative: Callable[[ArrayLike, ArrayLike], Array]
    curvature: Callable[[ArrayLike, ArrayLike], Array]
    lipschitz_constant: float | None = None
    smoothness_constant: float | None = None
    convex: bool = False
    label_set: Callable[[ArrayLike], Mask] | None = None
    outputs: int = 1

    def __post_init__(self) -> None:
        for name in ("value", "derivative", "curvature"):
            if not callable(getattr(self, name)):
                raise InvalidParameter(f"""Expected {name} to be a function of (z, y), got {getattr(self, name)!r}: a
                    loss is made of three functions. Pass {name} as a callable, vectorised over records.""")
        for name in ("lipschitz_constant", "smoothness_constant"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), zero=True)
        hint = "Use 1 for one coefficient a feature."
        whole("outputs", self.outputs, because="it is the number of predictions a record", use=hint)

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return None if self.lipschitz_constant is None else float(self.lipschitz_constant)

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return None if self.smoothness_constant is None else float(self.smoothness_constant)

    def admissible(self, y: ArrayLike) -> Mask:
        return finite(y) if self.label_set is None else self.label_set(y)
