"""What a pointwise loss is: a function of a prediction z = ⟨x, θ⟩ and a label y, with facts that were proven.

A loss is a public value. Predictions and labels are private and arrive as arguments, so nothing here ever raises, or
warns, on a *value*: only on types, shapes and parameters. Messages name a dtype or a parameter, never an entry.
"""

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet._checks import positive
from privet.errors import InvalidParameter

Array: TypeAlias = NDArray[np.floating[Any]]
"""Floats, of the precision of the predictions that came in."""
Mask: TypeAlias = NDArray[np.bool_]
"""One truth value a record."""


@runtime_checkable
class Loss(Protocol):
    """A pointwise loss ℓ(z, y), what calculus says of it, and the constants that are proven.

    The gradient of θ ↦ ℓ(⟨x, θ⟩, y) is `derivative(z, y)` · x (lecture 13, claim 1.4), so that its norm is
    |derivative| · ‖x‖. A constant that is not proven is None; then clipping has to carry the claim.
    Edges: |z| up to 1e300 gives the right limit, perhaps ±∞; NaN gives NaN or 0; no warning, no exception. A label
    that is not `admissible` gives any number at all: the caller counts such a record as zero.

    Examples
    --------
    >>> from privet.losses import LogisticLoss
    >>> loss: Loss = LogisticLoss(labels="zero_one")
    >>> loss.derivative(np.array([0.0, 2.0]), np.array([1, 0]))
    array([-0.5       ,  0.88079708])
    >>> loss.lipschitz(), loss.smoothness(), loss.convex, loss.outputs
    (1.0, 0.25, True, 1)
    """

    @property
    def convex(self) -> bool:
        """Whether z ↦ ℓ(z, y) is convex for every admissible y."""

    @property
    def outputs(self) -> int:
        """How many predictions a record has: 1, or the number of classes, and then z is (m, outputs)."""

    def value(self, z: ArrayLike, y: ArrayLike, /) -> Array:
        """ℓ(z, y), one number a record."""

    def derivative(self, z: ArrayLike, y: ArrayLike, /) -> Array:
        """∂ℓ/∂z, of the shape of z; where ℓ has a kink, one of its subgradients."""

    def curvature(self, z: ArrayLike, y: ArrayLike, /) -> Array:
        """∂²ℓ/∂z², one number a record; 0 where it does not exist. With several outputs a bound on its eigenvalues."""

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        """The largest |derivative| (l2 norm) over |z| ≤ `prediction_bound` and all admissible y; None if unbounded."""

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        """A Lipschitz constant of the derivative over the same z and y; None if there is none."""

    def admissible(self, y: ArrayLike, /) -> Mask:
        """Which labels belong to the declared set; a record with any other counts as zero."""


check_number = partial(positive, because="no constant follows from it", use="Pass a plain number, declared.")
"""Return a parameter of a loss as a float above 0 (`zero=True`: from 0; `infinite=True`: infinity too), else refuse."""


def check_prediction_bound(bound: float) -> float:
    """Return a bound on |z| as a float of at least 0; infinite means that nothing is known.

    >>> check_prediction_bound(math.inf)
    inf
    """
    return check_number("prediction_bound", bound, zero=True, infinite=True)


def labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as an array of numbers; refuse other types without quoting an entry.

    >>> labels(["sick", "well"])
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected numbers (a dtype of kind bool, int or float), got dtype <U4: a loss is a \
function of numbers. Map the declared classes to numbers first.
    """
    array = np.asarray(y)
    if array.dtype.kind not in "biuf":
        raise InvalidParameter(f"""Expected numbers (a dtype of kind bool, int or float), got dtype {array.dtype}: a
            loss is a function of numbers. Map the declared classes to numbers first.""")
    return array


def finite(y: ArrayLike) -> Mask:
    """Return which labels are finite numbers.

    >>> finite([1.0, float("nan")])
    array([ True, False])
    """
    return np.asarray(np.isfinite(labels(y)), dtype=np.bool_)


def floats(z: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return predictions and labels in the precision of the predictions: float32 stays, all else is float64.

    >>> z, y = floats(np.float32([0.5, 1.5]), [True, False])
    >>> z.dtype, y
    (dtype('float32'), array([1., 0.], dtype=float32))
    """
    z, y = labels(z), labels(y)
    dtype = np.float32 if z.dtype == np.float32 else np.float64
    # Contiguous, as NumPy's exp rounds differently along some strides, and a record must not feel how it is stored.
    with np.errstate(over="ignore"):
        return np.asarray(z, dtype=dtype, order="C"), np.asarray(y, dtype=dtype, order="C")


class PointwiseLoss(ABC):
    """What our convex losses of one prediction share: precision, silence and checks. A loss adds its mathematics.

    Edges as of `Loss`: `z` and `y` arrive in one precision, and no operation on them warns.
    """

    __slots__ = ()
    convex: ClassVar[bool] = True
    outputs: ClassVar[int] = 1

    @final
    @np.errstate(all="ignore")
    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        return self._value(*floats(z, y))

    @final
    @np.errstate(all="ignore")
    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        return self._derivative(*floats(z, y))

    @final
    @np.errstate(all="ignore")
    def curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return np.asarray(self._curvature(z, y) + np.zeros_like(y))  # a label of its own row each

    @final
    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        return self._lipschitz(check_prediction_bound(prediction_bound))

    @final
    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        return self._smoothness(check_prediction_bound(prediction_bound))

    def admissible(self, y: ArrayLike) -> Mask:
        """All finite numbers, unless a loss says otherwise."""
        return finite(y)

    @abstractmethod
    def _value(self, z: Array, y: Array) -> Array: ...

    @abstractmethod
    def _derivative(self, z: Array, y: Array) -> Array: ...

    @abstractmethod
    def _lipschitz(self, bound: float) -> float | None: ...

    def _curvature(self, z: Array, y: Array) -> Array:
        """0, as of a loss made of straight pieces."""
        return np.zeros_like(z)

    def _smoothness(self, bound: float) -> float | None:
        """None, as of a loss with a kink."""
        return None
