"""The logistic loss, for labels 0 and 1 and for labels −1 and +1."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from privet.errors import InvalidParameter
from privet.losses.loss import Array, Mask, PointwiseLoss, labels

BinaryLabels: TypeAlias = Literal["zero_one", "plus_minus_one"]
"""How the two classes are written: 0 and 1, or −1 and +1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogisticLoss(PointwiseLoss):
    """ℓ(z, s) = log(1 + e^(−s z)) with s = ±1; for labels y in {0, 1}, s = 2y − 1, bit for bit the same.

    In the other notation (lecture 13, example 1.3) this is the cross-entropy of the sigmoid p = 1/(1 + e^(−z)):
    −y log p − (1 − y) log(1 − p). Logs are natural.
    Theorem: the derivative −s/(1 + e^(s z)) is below 1, and over |z| ≤ B largest at s z = −B: 1/(1 + e^(−B)).
    The curvature p (1 − p) is at most ¼, at z = 0.

    Parameters
    ----------
    labels : "zero_one" for {0, 1}, "plus_minus_one" for {−1, +1}

    Examples
    --------
    >>> LogisticLoss(labels="zero_one").value([2.0, 2.0], [1, 0])
    array([0.12692801, 2.12692801])
    >>> LogisticLoss(labels="plus_minus_one").value([2.0, 2.0], [1, -1])
    array([0.12692801, 2.12692801])
    >>> round(LogisticLoss().lipschitz(prediction_bound=1.0), 6)
    0.731059
    """

    labels: BinaryLabels = "zero_one"

    def __post_init__(self) -> None:
        if self.labels not in get_args(BinaryLabels):
            raise InvalidParameter(f"""Expected labels to be 'zero_one' or 'plus_minus_one', got {self.labels!r}: the
                same number means different classes in the two. Say how the classes are written.""")

    def _margin(self, z: Array, y: Array) -> tuple[Array, Array]:
        """Return (s z, s)."""
        sign = 2.0 * y - 1.0 if self.labels == "zero_one" else y
        return sign * z, sign

    def _value(self, z: Array, y: Array) -> Array:
        margin, _ = self._margin(z, y)
        return np.logaddexp(0.0, -margin, dtype=margin.dtype)

    def _derivative(self, z: Array, y: Array) -> Array:
        margin, sign = self._margin(z, y)
        odds = np.exp(margin)  # may be ∞, and then 0 is right
        odds += 1.0
        sign = np.negative(sign)
        return np.divide(sign, odds, out=odds if np.ndim(odds) else None)

    def _curvature(self, z: Array, y: Array) -> Array:
        margin, _ = self._margin(z, y)
        odds = np.exp(-np.abs(margin))
        return odds / np.square(1.0 + odds)

    def _lipschitz(self, bound: float) -> float | None:
        return float(expit(bound))

    def _smoothness(self, bound: float) -> float | None:
        return 0.25

    def admissible(self, y: ArrayLike) -> Mask:
        return np.isin(labels(y), (0, 1) if self.labels == "zero_one" else (-1, 1))
