"""The squared loss, with the factor that lectures and libraries disagree on made explicit."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.losses.loss import Array, Mask, PointwiseLoss, check_number, finite, labels


@dataclass(frozen=True, kw_only=True, slots=True)
class SquaredLoss(PointwiseLoss):
    """ℓ(z, y) = (`factor`/2) (z − y)², whose derivative is `factor` · (z − y).

    `factor=2` is (z − y)², as in the lectures (13, example 1.2); `factor=1` is ½ (z − y)². Forgetting the 2 in the
    derivative halves the Lipschitz constant, and a run calibrated to ε = 1 then really gives about 2.2.
    Theorem: |factor (z − y)| ≤ factor · (B + Y) for |z| ≤ B, |y| ≤ Y, with equality at z = B, y = −Y; the curvature
    is `factor` everywhere.

    Parameters
    ----------
    factor : positive, the second derivative
    label_bound : public Y, in the unit of y; labels beyond ±Y are not admissible. Without it no Lipschitz constant

    Examples
    --------
    >>> loss = SquaredLoss(factor=2, label_bound=1.0)
    >>> loss.value([3.0], [1.0]), loss.derivative([3.0], [1.0])
    (array([4.]), array([4.]))
    >>> loss.lipschitz(prediction_bound=5.0), loss.smoothness()
    (12.0, 2.0)
    """

    factor: float = 2.0
    label_bound: float | None = None

    def __post_init__(self) -> None:
        check_number("factor", self.factor)
        if self.label_bound is not None:
            check_number("label_bound", self.label_bound)

    def _value(self, z: Array, y: Array) -> Array:
        return float(self.factor) / 2.0 * np.square(z - y)

    def _derivative(self, z: Array, y: Array) -> Array:
        return float(self.factor) * (z - y)

    def _curvature(self, z: Array, y: Array) -> Array:
        return np.full_like(z, self.factor)

    def _lipschitz(self, bound: float) -> float | None:
        if self.label_bound is None or math.isinf(bound):
            return None
        return float(self.factor) * (bound + float(self.label_bound))

    def _smoothness(self, bound: float) -> float | None:
        return float(self.factor)

    def admissible(self, y: ArrayLike) -> Mask:
        bound = math.inf if self.label_bound is None else float(self.label_bound)
        return finite(y) & (np.abs(labels(y).astype(np.float64, copy=False)) <= bound)
