"""The hinge of support vector machines, sharp and smoothed. Labels are −1 and +1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.losses.loss import Array, Mask, PointwiseLoss, check_number, labels


@dataclass(frozen=True, kw_only=True, slots=True)
class HingeLoss(PointwiseLoss):
    """ℓ(z, y) = max(0, 1 − y z), for y in {−1, +1}.

    Theorem: the derivative is −y below the kink y z = 1 and 0 above, so it is 1-Lipschitz; at the kink we take 0,
    one of the subgradients. The derivative jumps, so there is no smoothness constant.

    Examples
    --------
    >>> HingeLoss().value([0.5, 2.0], [1, 1]), HingeLoss().derivative([0.5, 1.0], [1, 1])
    (array([0.5, 0. ]), array([-1.,  0.]))
    >>> HingeLoss().lipschitz(), HingeLoss().smoothness()
    (1.0, None)
    """

    def _value(self, z: Array, y: Array) -> Array:
        return np.maximum(0.0, 1.0 - y * z)

    def _derivative(self, z: Array, y: Array) -> Array:
        return np.where(y * z < 1.0, -y, 0.0)

    def _lipschitz(self, bound: float) -> float | None:
        return 1.0

    def admissible(self, y: ArrayLike) -> Mask:
        return np.isin(labels(y), (-1, 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class SmoothedHingeLoss(PointwiseLoss):
    """The hinge with its kink rounded off over the last `width` of the margin u = y z, for y in {−1, +1}.

    ℓ = 0 for u ≥ 1, (1 − u)²/(2 width) for 1 − width ≤ u ≤ 1, and 1 − u − width/2 below: between the hinge and the
    hinge less width/2.
    Theorem: the derivative −y · clip((1 − u)/width, 0, 1) is at most min(1, (1 + B)/width) over |z| ≤ B, at
    u = −B; its slope is 1/width on the rounded part and 0 elsewhere.

    Parameters
    ----------
    width : positive, in units of z; the smaller, the closer to the hinge and the larger the curvature

    Examples
    --------
    >>> loss = SmoothedHingeLoss(width=0.5)
    >>> loss.value([0.0, 0.75, 2.0], [1, 1, 1]), loss.derivative([0.0, 0.75, 2.0], [1, 1, 1])
    (array([0.75  , 0.0625, 0.    ]), array([-1. , -0.5, -0. ]))
    >>> loss.lipschitz(), loss.smoothness()
    (1.0, 2.0)
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        check_number("width", self.width)

    def _value(self, z: Array, y: Array) -> Array:
        short = 1.0 - y * z
        rounded = np.clip(short, 0.0, float(self.width))
        return rounded * (rounded / (2.0 * float(self.width))) + np.maximum(short - float(self.width), 0.0)

    def _derivative(self, z: Array, y: Array) -> Array:
        return -y * np.clip((1.0 - y * z) / float(self.width), 0.0, 1.0)

    def _curvature(self, z: Array, y: Array) -> Array:
        short = 1.0 - y * z
        return ((short > 0.0) & (short < float(self.width))).astype(z.dtype) / float(self.width)

    def _lipschitz(self, bound: float) -> float | None:
        return min(1.0, (1.0 + bound) / float(self.width))

    def _smoothness(self, bound: float) -> float | None:
        return 1.0 / float(self.width)

    def admissible(self, y: ArrayLike) -> Mask:
        return np.isin(labels(y), (-1, 1))
