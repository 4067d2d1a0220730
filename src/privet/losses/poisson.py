"""The loss of Poisson regression: labels are counts, the prediction is the logarithm of their mean."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet._checks import whole
from privet.losses.loss import Array, Mask, PointwiseLoss, check_number, finite, labels


@dataclass(frozen=True, kw_only=True, slots=True)
class PoissonLoss(PointwiseLoss):
    """ℓ(z, y) = e^z − y z: minus the log likelihood of the count y at mean e^z, without the constant log y!.

    Theorem: the derivative e^z − y grows with z and falls with y, so over |z| ≤ B and counts 0 … Y it lies between
    e^(−B) − Y and e^B: |derivative| ≤ max(e^B, Y − e^(−B)). The curvature e^z is at most e^B. Without a bound on the
    predictions, or on the counts, neither Lipschitz constant nor (for predictions) smoothness exists.

    Parameters
    ----------
    largest_count : public Y; labels that are not whole numbers in 0 … Y are not admissible

    Examples
    --------
    >>> loss = PoissonLoss(largest_count=10)
    >>> loss.value([0.0], [3]), loss.derivative([0.0], [3]), loss.curvature([0.0], [3])
    (array([1.]), array([-2.]), array([1.]))
    >>> loss.lipschitz(), round(loss.lipschitz(prediction_bound=2.0), 4), loss.admissible([3, 2.5, -1, 11])
    (None, 9.8647, array([ True, False, False, False]))
    """

    largest_count: int | None = None

    def __post_init__(self) -> None:
        if self.largest_count is not None:
            hint = "Use a count that is known without looking at the data, or None."
            whole("largest_count", self.largest_count, because="it bounds the labels", use=hint)

    def _value(self, z: Array, y: Array) -> Array:
        mean = np.exp(z)
        return np.where(np.isinf(mean), mean, mean - y * z)  # e^z beats y z, also where both are beyond floats

    def _derivative(self, z: Array, y: Array) -> Array:
        return np.exp(z) - y

    def _curvature(self, z: Array, y: Array) -> Array:
        return np.exp(z)

    def _lipschitz(self, bound: float) -> float | None:
        steepest = self._smoothness(bound)
        if steepest is None or self.largest_count is None:
            return None
        return max(steepest, int(self.largest_count) - math.exp(-bound))

    @np.errstate(all="ignore")
    def _smoothness(self, bound: float) -> float | None:
        steepest = float(np.exp(bound))
        return steepest if math.isfinite(steepest) else None

    def admissible(self, y: ArrayLike) -> Mask:
        most = math.inf if self.largest_count is None else int(self.largest_count)
        counts = labels(y).astype(np.float64, copy=False)
        return finite(counts) & (counts >= 0.0) & (counts <= most) & np.equal(counts, np.floor(counts))


@dataclass(frozen=True, kw_only=True, slots=True)
class CappedPoissonLoss(PointwiseLoss):
    """ℓ(z, y) = (e^z − y z)/unit as long as e^z ≤ M, and linear with slope (M − y)/unit beyond; y in [0, M = max_rate].

    Its derivative is that of a rate which stops growing at M: (min(e^z, M) − y)/unit. Where all rates are at most
    M, as they must be if no label is larger, it has the minimiser of the Poisson loss.
    Theorem: the derivative is non-decreasing in z and lies in ±M/unit; its slope is at most M/unit.

    Parameters
    ----------
    max_rate : public bound on labels and rates
    unit : what the loss is divided by; public

    Examples
    --------
    >>> loss = CappedPoissonLoss(max_rate=10.0)
    >>> loss.derivative([0.0, 100.0], [3, 3]), loss.lipschitz(), loss.smoothness()
    (array([-2.,  7.]), 10.0, 10.0)
    """

    max_rate: float
    unit: float = 1.0

    def __post_init__(self) -> None:
        check_number("max_rate", self.max_rate)
        check_number("unit", self.unit)

    def _value(self, z: Array, y: Array) -> Array:
        most, end = float(self.max_rate), math.log(self.max_rate)
        before = np.exp(np.minimum(z, end)) - y * np.minimum(z, end)
        return np.asarray((before + (most - y) * np.maximum(z - end, 0.0)) / float(self.unit))

    def _derivative(self, z: Array, y: Array) -> Array:
        return np.asarray((np.minimum(np.exp(z), float(self.max_rate)) - y) / float(self.unit))

    def _curvature(self, z: Array, y: Array) -> Array:
        rate = np.exp(z)
        return np.asarray(np.where(rate <= float(self.max_rate), rate, 0.0) / float(self.unit))

    def _lipschitz(self, bound: float) -> float | None:
        steepest = self._smoothness(bound)
        return max(steepest, (float(self.max_rate) - math.exp(-bound)) / float(self.unit))

    def _smoothness(self, bound: float) -> float:
        return (float(self.max_rate) if bound >= math.log(self.max_rate) else math.exp(bound)) / float(self.unit)

    def admissible(self, y: ArrayLike) -> Mask:
        counts = labels(y).astype(np.float64, copy=False)
        return finite(counts) & (counts >= 0.0) & (counts <= float(self.max_rate))
