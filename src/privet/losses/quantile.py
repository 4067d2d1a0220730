"""Losses whose minimiser is a quantile: the median (absolute loss), or any level (pinball loss)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privet._checks import between
from privet.losses.base import Array, Mask, check_number, check_prediction_bound, finite, floats

__all__ = ["AbsoluteLoss", "QuantileLoss", "SmoothedQuantileLoss"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AbsoluteLoss:
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

    convex: ClassVar[bool] = True
    outputs: ClassVar[int] = 1

    @np.errstate(all="ignore")
    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return np.abs(z - y)

    @np.errstate(all="ignore")
    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return np.sign(z - y)

    def curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return np.zeros(np.broadcast_shapes(z.shape, y.shape), dtype=z.dtype)

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return 1.0

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return None

    def admissible(self, y: ArrayLike) -> Mask:
        return finite(y)


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantileLoss:
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
    convex: ClassVar[bool] = True
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_level(self.level)

    @np.errstate(all="ignore")
    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        level, above = float(self.level), z - y
        return np.where(above > 0.0, (1.0 - level) * above, -level * above)

    @np.errstate(all="ignore")
    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        level, above = float(self.level), np.sign(z - y)
        return np.where(above > 0.0, (1.0 - level) * above, level * above)

    def curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return np.zeros(np.broadcast_shapes(z.shape, y.shape), dtype=z.dtype)

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return max(float(self.level), 1.0 - float(self.level))

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return None

    def admissible(self, y: ArrayLike) -> Mask:
        return finite(y)


@dataclass(frozen=True, kw_only=True, slots=True)
class SmoothedQuantileLoss:
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
    convex: ClassVar[bool] = True
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_level(self.level)
        check_number("width", self.width)

    @np.errstate(all="ignore")
    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        above, width = z - y, float(self.width)
        inside = np.clip(above / width, -0.5, 0.5)
        # ½|r| becomes width · (inside²/2 + 1/8) in the window, and is itself outside
        half = np.where(np.abs(above) < width / 2, width * (inside * inside / 2 + 0.125), np.abs(above) / 2)
        return half + (0.5 - float(self.level)) * above

    @np.errstate(all="ignore")
    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return np.clip((z - y) / float(self.width) + 0.5, 0.0, 1.0) - float(self.level)

    @np.errstate(all="ignore")
    def curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        z, y = floats(z, y)
        return (np.abs(z - y) < float(self.width) / 2).astype(z.dtype) / float(self.width)

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return max(float(self.level), 1.0 - float(self.level))

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return 1.0 / float(self.width)

    def admissible(self, y: ArrayLike) -> Mask:
        return finite(y)


def _check_level(level: float) -> None:
    hint = "Use 0.5 for the median, 0.9 for the ninth decile."
    between("level", level, 0, 1, because="no prediction is that quantile", use=hint)
