"""Losses that are no function of ⟨x, θ⟩: known only by one value and one gradient a record."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from privet.losses.loss import Array, Loss


class RecordLoss(Protocol):
    """Any loss of a record (x, y) at coefficients θ, by its values and its gradients.

    No constant is asked for: clipping bounds each gradient, and carries the privacy claim alone. One array of the
    size of all gradients is made, so a loss of ⟨x, θ⟩ is better written as a :class:`Loss`.
    Both methods must treat each record by itself, and must not raise on values.

    Examples
    --------
    The distance to a point, ‖θ − x‖, whose minimiser is the geometric median; labels play no part:

    >>> class Distance:
    ...     def values(self, theta, X, y):
    ...         return np.linalg.norm(theta - X, axis=1)
    ...     def gradients(self, theta, X, y):
    ...         return (theta - X) / np.maximum(self.values(theta, X, y), 1e-300)[:, np.newaxis]
    >>> loss: RecordLoss = Distance()
    >>> loss.gradients(np.zeros(2), np.array([[3.0, 4.0]]), None)
    array([[-0.6, -0.8]])
    """

    def values(self, theta: Array, X: ArrayLike, y: ArrayLike, /) -> Array:
        """Loss of each record: (m,)."""

    def gradients(self, theta: Array, X: ArrayLike, y: ArrayLike, /) -> Array:
        """Gradient in θ, or a subgradient, of each record: `(m, *theta.shape)`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearRecords:
    """A pointwise loss of ⟨x, θ⟩ seen record by record: the slow way, to check the fast one against.

    Theorem: the chain rule; the gradient of record (x, y) is derivative(⟨x, θ⟩, y) · x (lecture 13, claim 1.4).

    Examples
    --------
    >>> from privet.losses import SquaredLoss
    >>> records = LinearRecords(loss=SquaredLoss(factor=2))
    >>> records.gradients(np.array([1.0, 1.0]), np.array([[1.0, 2.0]]), np.array([1.0]))
    array([[4., 8.]])
    """

    loss: Loss

    def values(self, theta: Array, X: ArrayLike, y: ArrayLike) -> Array:
        return self.loss.value(np.asarray(X) @ theta, y)

    def gradients(self, theta: Array, X: ArrayLike, y: ArrayLike) -> Array:
        rows = np.asarray(X)
        slopes = self.loss.derivative(rows @ theta, y)
        return np.asarray(np.einsum("md,m...->md...", rows, slopes))
