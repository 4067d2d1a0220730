"""Quadratic penalties: functions of θ alone, so they cost no privacy and stay outside the clip."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.losses.loss import Array, check_number


@dataclass(frozen=True, kw_only=True, slots=True)
class Ridge:
    """The penalty (alpha/2) ‖θ‖², added once to the *average* loss, not once a record.

    Its gradient is added after the noise; clipped with the records it would eat into their share.
    Theorem: alpha · θ is its gradient; it makes a convex average loss `alpha`-strongly convex.

    Parameters
    ----------
    alpha : at least 0, loss units per squared unit of θ

    Examples
    --------
    >>> Ridge(alpha=0.1).value([3.0, 4.0]), Ridge(alpha=0.1).gradient([3.0, 4.0])
    (1.25, array([0.3, 0.4]))
    """

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, zero=True)

    @np.errstate(all="ignore")
    def value(self, theta: ArrayLike) -> float:
        """(alpha/2) ‖θ‖², all entries of θ counted, whatever its shape."""
        return float(self.alpha) / 2.0 * float(np.sum(np.square(np.asarray(theta, dtype=np.float64))))

    @np.errstate(all="ignore")
    def gradient(self, theta: ArrayLike) -> Array:
        """alpha · θ, of the shape of θ."""
        return float(self.alpha) * np.asarray(theta, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class QuadraticPenalty:
    """The penalty ½ ‖R θ‖², added once to the average loss: a ridge in other coordinates, or on some of them only.

    As R is public, it reads no record. Its gradient may be far steeper than the loss's: `softened` takes it implicitly.

    Parameters
    ----------
    root : R, of shape (k, d); or its diagonal, of shape (d,)

    Examples
    --------
    >>> penalty = QuadraticPenalty(root=np.array([2.0, 0.0]))
    >>> penalty.value([1.0, 5.0]), penalty.gradient([1.0, 5.0]), penalty.alpha
    (2.0, array([4., 0.]), 4.0)
    """

    root: Array

    @property
    def matrix(self) -> Array:
        """RᵀR, or its diagonal if R is one."""
        return np.asarray(np.square(self.root) if self.root.ndim == 1 else self.root.T @ self.root)

    @property
    def alpha(self) -> float:
        """The largest curvature it has in any direction: the least alpha of a ridge that is nowhere below it."""
        if self.root.ndim == 1:
            return float(self.matrix.max(initial=0.0))
        return float(np.linalg.norm(self.root, 2)) ** 2

    @np.errstate(all="ignore")
    def value(self, theta: ArrayLike) -> float:
        """½ ‖R θ‖², all outputs counted."""
        return float(np.sum(np.square(_times(self.root, np.asarray(theta, dtype=np.float64))))) / 2

    @np.errstate(all="ignore")
    def gradient(self, theta: ArrayLike) -> Array:
        """RᵀR θ, of the shape of θ."""
        return _times(self.root.T, _times(self.root, np.asarray(theta, dtype=np.float64)))

    def softened(self, step_size: float) -> Callable[[Array], Array]:
        """g ↦ (I + η RᵀR)⁻¹ g for the step size η.

        A step along it from θ, g being the gradient of loss and penalty, ends where one along the loss alone, from
        θ − ηg, is pulled back by the penalty (a proximal step): it never overshoots, however steep the penalty is.
        Theorem: θ − η(I + ηS)⁻¹(g + Sθ) = (I + ηS)⁻¹(θ − ηg).
        """
        if self.root.ndim == 1:
            inverse = 1 / (1 + step_size * self.matrix)
        else:
            _, sizes, turned = np.linalg.svd(self.root)
            weights = np.ones(len(turned))
            weights[: len(sizes)] = 1 / (1 + step_size * np.square(sizes))
            inverse = (turned.T * weights) @ turned
        return lambda gradient: _times(inverse, gradient)


Penalty = Ridge | QuadraticPenalty


def _times(matrix: Array, theta: Array) -> Array:
    """The product, of a matrix or of a diagonal."""
    if matrix.ndim == 2:
        return np.asarray(matrix @ theta)
    return np.asarray(matrix * theta if theta.ndim == 1 else matrix[:, None] * theta)
