"""A loss whose records carry weights of their own: a label is then a pair, the label proper and its weight."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet.losses.loss import Array, Loss, Mask, labels


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightedLoss:
    """ℓ(z, (y, v)) = v · ℓ(z, y) for weights v in [0, 1]. Labels have two columns: y, and v.

    The weight multiplies the derivative *before* it is clipped, so that no weight, however large, lets a record move a
    sum by more than the clip.
    Theorem: value, derivative and curvature are those of `loss` times v ≤ 1, so its constants and its convexity hold.

    Parameters
    ----------
    loss : of a record with weight 1

    Examples
    --------
    >>> from privet.losses import SquaredLoss
    >>> loss = WeightedLoss(loss=SquaredLoss(factor=1.0))
    >>> pairs = np.array([[3.0, 1.0], [3.0, 0.5]])
    >>> loss.derivative(np.array([1.0, 1.0]), pairs)
    array([-2., -1.])
    >>> loss.admissible([[3.0, 1.0], [3.0, 1.5], [3.0, float("nan")]])
    array([ True, False, False])
    """

    loss: Loss

    @property
    def convex(self) -> bool:
        return self.loss.convex

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        return _weighted(self.loss.value, z, y)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        return _weighted(self.loss.derivative, z, y)

    def curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        return _weighted(self.loss.curvature, z, y)

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        return self.loss.lipschitz(prediction_bound)

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        return self.loss.smoothness(prediction_bound)

    def admissible(self, y: ArrayLike) -> Mask:
        proper, weight = _split(y)
        return np.asarray(self.loss.admissible(proper) & (weight >= 0.0) & (weight <= 1.0), dtype=np.bool_)


@np.errstate(all="ignore")
def _weighted(function: Callable[[ArrayLike, ArrayLike], Array], z: ArrayLike, y: ArrayLike) -> Array:
    proper, weight = _split(y)
    found = function(z, proper)
    return np.asarray(found * (weight if found.ndim == 1 else weight[:, None]))


def _split(y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels and weights, each in memory of its own: some functions round differently along a stride."""
    pairs = labels(y)
    return np.array(pairs[:, 0], dtype=np.float64), np.array(pairs[:, 1], dtype=np.float64)
