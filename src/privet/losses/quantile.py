"""Losses whose minimiser is a quantile: the median (absolute loss), or any level (pinball loss)."""

from dataclasses import dataclass

import numpy as np

from privet._checks import between
from privet.losses.loss import Array, PointwiseLoss, check_number


@dataclass(frozen=True, kw_only=True, slots=True)
class AbsoluteLoss(PointwiseLoss):
    """ℓ(z, y) = |z − y|, minimised by a median.

    Theorem: the derivative is ±1, and 0 (one of the subgradients) at z = y, so ℓ is 1-Lipschitz. It jumps, so there
    is no smoothness constant: the median is the lectures' example of what objective perturbation must refuse.

    Examples
    --------
    >>> AbsoluteLoss().value([3.0], [1.0]), AbsoluteLoss().derivative([3.0, 1.0], [1.0, 1.0])
    (array([2.]), array([1., 0.]))
    >>> AbsoluteLoss().lipschitz(), AbsoluteLoss().smoothness()
    (1.0, None)
    """

    def _value(self, z: Array, y: Array) -> Array:
        return np.abs(z - y)

    def _derivative(self, z: Array, y: Array) -> Array:
        return np.sign(z - y)

    def _lipschitz(self, bound: float) -> float | None:
        return 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantileLoss(PointwiseLoss):
    """ℓ(z, y) = level · (y − z) where z < y and (1 − level) · (z − y) where z > y, minimised by that quantile.

    Theorem: the derivative is −level, 1 − level, or 0 (one of the subgradients) at z = y, so the Lipschitz constant
    is max(level, 1 − level). It jumps: no smoothness constant. At level ½ it is half the absolute loss.

    Parameters
    ----------
    level : the probability in (0, 1) of a label below the prediction

    Examples
    --------
    >>> loss = QuantileLoss(level=0.9)
    >>> loss.value([0.0, 2.0], [1.0, 1.0]), loss.derivative([0.0, 2.0], [1.0, 1.0])
    (array([0.9, 0.1]), array([-0.9,  0.1]))
    >>> loss.lipschitz()
    0.9
    """

    level: float

    def __post_init__(self) -> None:
        _check_level(self.level)

    def _value(self, z: Array, y: Array) -> Array:
        level, above = float(self.level), z - y
        return np.where(above > 0.0, (1.0 - level) * above, -level * above)

    def _derivative(self, z: Array, y: Array) -> Array:
        level, above = float(self.level), np.sign(z - y)
        return np.where(above > 0.0, (1.0 - level) * above, level * above)

    def _lipschitz(self, bound: float) -> float | None:
        return max(float(self.level), 1.0 - float(self.level))


@dataclass(frozen=True, kw_only=True, slots=True)
class SmoothedQuantileLoss(PointwiseLoss):
    """The quantile loss with its kink rounded over `width`: the average of ℓ(z + u, y) over |u| ≤ width/2.

    Theorem: the derivative is clip(r/width + ½, 0, 1) − level with r = z − y, the share of u for which z + u is above
    y, less the level. So it is max(level, 1 − level)-Lipschitz, 1/width-smooth and convex, and at most width/8 above
    the loss itself, by Jensen never below. Fernandes, Guerre and Horta 2021, "Smoothing quantile regressions".

    Parameters
    ----------
    level : the probability in (0, 1) of a label below the prediction
    width : positive, in the unit of y

    Examples
    --------
    >>> loss = SmoothedQuantileLoss(level=0.9, width=0.5)
    >>> loss.value([0.0, 2.0, 1.0], [1.0, 1.0, 1.0]), loss.derivative([0.0, 2.0, 1.0], [1.0, 1.0, 1.0])
    (array([0.9   , 0.1   , 0.0625]), array([-0.9,  0.1, -0.4]))
    >>> loss.lipschitz(), loss.smoothness()
    (0.9, 2.0)
    """

    level: float
    width: float

    def __post_init__(self) -> None:
        _check_level(self.level)
        check_number("width", self.width)

    def _value(self, z: Array, y: Array) -> Array:
        above, width = z - y, float(self.width)
        inside = np.clip(above / width, -0.5, 0.5)
        # ½|r| becomes width · (inside²/2 + 1/8) in the window, and is itself outside
        half = np.where(np.abs(above) < width / 2, width * (inside * inside / 2 + 0.125), np.abs(above) / 2)
        return half + (0.5 - float(self.level)) * above

    def _derivative(self, z: Array, y: Array) -> Array:
        return np.clip((z - y) / float(self.width) + 0.5, 0.0, 1.0) - float(self.level)

    def _curvature(self, z: Array, y: Array) -> Array:
        return (np.abs(z - y) < float(self.width) / 2).astype(z.dtype) / float(self.width)

    def _lipschitz(self, bound: float) -> float | None:
        return max(float(self.level), 1.0 - float(self.level))

    def _smoothness(self, bound: float) -> float | None:
        return 1.0 / float(self.width)


def _check_level(level: float) -> None:
    hint = "Use 0.5 for the median, 0.9 for the ninth decile."
    between("level", level, 0, 1, because="no prediction is that quantile", use=hint)
