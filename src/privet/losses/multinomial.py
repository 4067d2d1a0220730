"""The softmax cross-entropy of multinomial logistic regression."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from privet._checks import whole
from privet.errors import InvalidParameter
from privet.losses.loss import Array, Mask, check_prediction_bound, floats, labels


@dataclass(frozen=True, kw_only=True, slots=True)
class MultinomialLoss:
    """ℓ(z, y) = log Σ_k e^(z_k) − z_y, for z of K = `classes` entries and y in {0, …, K − 1}.

    With p = softmax(z) the derivative is p − e_y, of the shape of z, and the second derivative is the matrix
    H = diag(p) − p pᵀ. For a GLM θ is (d, K) and the gradient is the outer product of x and p − e_y, of Frobenius
    norm ‖x‖ · ‖p − e_y‖. Bounds on predictions hold for each entry: |z_k| ≤ B.

    Theorem: ‖p − e_y‖² = (1 − p_y)² + Σ_{k≠y} p_k² ≤ 2 (1 − p_y)², and 1 − p_y is at most 1/(1 + e^(−2B)/(K − 1)),
    so the Lipschitz constant (l2) is √2 times that, √2 for B = ∞. It is reached for two classes, and approached
    for B = ∞.
    Theorem: 0 ≤ H ≤ diag(p), and by Gershgorin, as row k has sum of absolute values 2 p_k (1 − p_k), H has no
    eigenvalue above 2 max_k p_k (1 − p_k) ≤ ½. The largest p_k is where that maximum is taken. `curvature` is the
    smaller of max p and this: exact for two classes and for equal p. The smoothness constant is ½.

    Parameters
    ----------
    classes : public, at least 2; never counted from the labels

    Examples
    --------
    >>> loss = MultinomialLoss(classes=3)
    >>> loss.derivative(np.zeros((1, 3)), [2]).round(3)
    array([[ 0.333,  0.333, -0.667]])
    >>> loss.value(np.zeros((1, 3)), [2]), loss.curvature(np.zeros((1, 3)), [2])
    (array([1.09861229]), array([0.33333333]))
    >>> loss.lipschitz(), loss.smoothness(), loss.outputs
    (1.4142135623730951, 0.5, 3)
    """

    classes: int
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        hint = "Use the number of classes that may occur, declared, not counted."
        whole("classes", self.classes, least=2, because="there would be nothing to choose between", use=hint)

    @property
    def outputs(self) -> int:
        """One prediction a class."""
        return int(self.classes)

    def _parts(self, z: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Mask]:
        """Return z less its largest entry, e to that power, and where the label is."""
        z, y = floats(z, y)
        if z.ndim == 0 or z.shape[-1] != self.classes:
            raise InvalidParameter(f"""Expected predictions with {self.classes} columns, one a class, got shape
                {z.shape}: the softmax would mix classes. Use coefficients of shape (d, classes).""")
        shifted = z - z.max(axis=-1, keepdims=True)
        # Compared, not indexed: a label that is no class marks nothing, where an index would raise.
        here = y[..., np.newaxis] == np.arange(self.classes)
        return shifted, np.exp(shifted), here

    def _rest(self, weights: Array) -> Array:
        """Σ e^… over all but one largest entry, whose term is 1: softmax's sum less 1, with all its digits."""
        top = weights.argmax(axis=-1)[..., np.newaxis] == np.arange(self.classes)
        return np.asarray(np.sum(np.where(top, 0.0, weights), axis=-1))

    @np.errstate(all="ignore")
    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        shifted, weights, here = self._parts(z, y)
        # log1p keeps the digits of a loss near 0, where the label's class is by far the likeliest.
        return np.asarray(np.log1p(self._rest(weights)) - np.sum(np.where(here, shifted, 0.0), axis=-1))

    @np.errstate(all="ignore")
    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        _, weights, here = self._parts(z, y)
        others = np.where(here, 0.0, weights / np.sum(weights, axis=-1, keepdims=True))
        # p_y − 1 as minus the sum of the others: no cancellation, and the entries sum to 0.
        return np.where(here, -np.sum(others, axis=-1, keepdims=True), others)

    @np.errstate(all="ignore")
    def curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        rest = self._rest(self._parts(z, y)[1])
        largest: Array = 1.0 / (1.0 + rest)
        return np.minimum(largest, 2.0 * largest * (rest * largest))

    def lipschitz(self, prediction_bound: float = math.inf) -> float | None:
        bound = check_prediction_bound(prediction_bound)
        return math.sqrt(2.0) * float(expit(2.0 * bound + math.log(self.classes - 1)))

    def smoothness(self, prediction_bound: float = math.inf) -> float | None:
        check_prediction_bound(prediction_bound)
        return 0.5

    def admissible(self, y: ArrayLike) -> Mask:
        return np.isin(labels(y), np.arange(self.classes))
