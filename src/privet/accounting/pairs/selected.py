"""The best of a random number of trials, as moments: Papernot and Steinke 2022, theorems 2 and 6.

Not a pair, like :class:`ConcentratedBound`: only the Rényi accountant composes it with other releases. Alone it has a
sharper bound, see :mod:`privet.accounting.selection`. Proof: docs/proofs/selection.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.pairs.elementary import ConcentratedBound
from privet.accounting.pairs.pair import Complexes, Pair, Reals

_ORDERS = np.geomspace(1e-3, 1e5, 161)


@dataclass(frozen=True, slots=True)
class SelectedBound:
    """Moments of the best trial. `steps` are of one trial in this direction, `back` in the other; both finite.

    `shape` and `stop` belong to a truncated negative binomial number of trials; without them, it is Poisson.
    """

    steps: tuple[tuple[Pair, int], ...]
    back: tuple[tuple[Pair, int], ...]
    log_mean: float
    shape: float = math.nan
    stop: float = math.nan
    infinite: float = 0.0
    lowest: float = -math.inf
    highest: float = math.inf
    atoms: tuple[float, ...] = ()

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        raise TypeError("moments alone do not determine the tails of the privacy loss")

    below = above

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        orders = t.real
        other = _log_moments(self.back, _ORDERS)
        if math.isnan(self.stop):
            # theorem 6: the chance δ̂ is asked at e^ε̂ = 1 + 1/t, here of the moments themselves
            epsilon = np.log1p(1 / orders)
            hook = -np.log1p(_ORDERS) - _ORDERS * np.log1p(1 / _ORDERS)
            chance = np.exp(np.minimum(0.0, (other + hook - np.multiply.outer(epsilon, _ORDERS)).min(axis=-1)))
            penalty = math.exp(self.log_mean) * chance
        else:
            penalty = (1 + self.shape) * ((other - math.log(self.stop)) / (1 + _ORDERS)).min()
        value = _log_moments(self.steps, orders) + orders * penalty + self.log_mean
        if math.isnan(self.stop):  # no trial at all, of chance e^-mean under both tables, is an outcome too
            value = np.logaddexp(value, -math.exp(self.log_mean - 1e-13))
        return value.astype(complex), 1e-13 * (1 + np.abs(value) + orders)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return np.zeros_like(frequency)


MomentsOnly = ConcentratedBound | SelectedBound
"""What is known by its moments at real orders only, so that neither the contour nor the Fourier engine applies."""


def log_mean_trials(shape: float, stop: float) -> float:
    """log E[K] of a truncated negative binomial number of trials, rounded up.

    E[K] = shape (1 − stop)/(stop (1 − stop^shape)); at shape 0, (1/stop − 1)/log(1/stop).
    """
    log = -math.log(stop)
    # (1 − stop^shape)/shape = ∫_0^log e^{−shape·u} du, between which and its limit at 0 nothing cancels
    integral = log if abs(shape) * log < 1e-16 else -math.expm1(-shape * log) / shape  # a product could underflow
    return (math.log1p(-stop) + log - math.log(integral)) * (1 + 1e-14) + 1e-14


@np.errstate(all="ignore")
def _log_moments(steps: tuple[tuple[Pair, int], ...], orders: Reals) -> Reals:
    """log M of one trial at real orders, rounded up; infinite where it cannot be computed."""
    total = np.zeros(len(orders))
    for pair, count in steps:
        try:
            value, error = pair.log_moment(orders.astype(complex))
        except OverflowError:
            if len(orders) == 1:
                return np.array([math.inf])
            return np.concatenate([_log_moments(steps, order) for order in np.split(orders, len(orders))])
        total += count * (value.real + np.log1p(error))
    return np.where(np.isfinite(total), np.maximum(total, 0.0), math.inf)
