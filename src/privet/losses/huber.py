"""The Huber loss: squared near the label, absolute far from it."""

from dataclasses import dataclass

import numpy as np

from privet.losses.loss import Array, PointwiseLoss, check_number


@dataclass(frozen=True, kw_only=True, slots=True)
class HuberLoss(PointwiseLoss):
    """ℓ(z, y) = ½ r² for |r| ≤ threshold and threshold · (|r| − threshold/2) beyond, with r = z − y.

    It is what ½ r² becomes when the derivative is clipped at ±`threshold`: a clipped GLM is a Huberised one.
    Theorem: the derivative clip(r, −threshold, threshold) is bounded by `threshold` for all labels; its slope is 1
    inside and 0 outside.

    Parameters
    ----------
    threshold : positive, in the unit of y

    Examples
    --------
    >>> loss = HuberLoss(threshold=2.0)
    >>> loss.value([1.0, 5.0], [0.0, 0.0]), loss.derivative([1.0, 5.0], [0.0, 0.0])
    (array([0.5, 8. ]), array([1., 2.]))
    >>> loss.lipschitz(), loss.smoothness()
    (2.0, 1.0)
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold)

    def _value(self, z: Array, y: Array) -> Array:
        distance = np.abs(z - y)
        near = np.minimum(distance, float(self.threshold))
        return 0.5 * np.square(near) + float(self.threshold) * (distance - near)

    def _derivative(self, z: Array, y: Array) -> Array:
        return np.clip(z - y, -float(self.threshold), float(self.threshold))

    def _curvature(self, z: Array, y: Array) -> Array:
        return (np.abs(z - y) < float(self.threshold)).astype(z.dtype)

    def _lipschitz(self, bound: float) -> float | None:
        return float(self.threshold)

    def _smoothness(self, bound: float) -> float | None:
        return 1.0
