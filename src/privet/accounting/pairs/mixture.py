"""Poisson-sampled Gaussian noise: mixtures of Gaussians, their tails and their moments at complex orders.

With xi ~ N(0, 1), s = 1 / noise multiplier and rate q, write

    w₊ = 1 - q + q·exp(s·xi - s²/2),      w₋ = 1 - q + q·exp(-s·xi - s²/2),

the densities of (1-q)·N(0,1) + q·N(±s,1) relative to N(0,1). All moments are ∫ φ w₊^a w₋^b with

    a record leaves  ("remove"):  P = w₊, Q = 1:   a = 1 + t, b = 0
    a record joins   ("add"):     P = 1,  Q = w₊:  a = -t,    b = 0
    a record changes ("replace"): P = w₊, Q = w₋:  a = 1 + t, b = -t

They are computed by the trapezoid rule on the line Im xi = ±eta instead of the real one: there |w₊^{iu}| ≤ 1 for
every u ≥ 0, so one grid serves all frequencies. `docs/proofs/contour.md`, section 3, has the error bounds.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from privet.accounting.pairs.mixture_grid import Kind
from privet.accounting.pairs.mixture_moments import Mixtures
from privet.accounting.pairs.pair import Complexes, Reals


@dataclass(frozen=True, slots=True)
class MixturePair:
    """((1-q)N(0,1) + qN(s,1), N(0,1)) and its kin; see the module's docstring for `kind`."""

    rate: float
    shift: float
    kind: Kind
    infinite: float = 0.0
    atoms: tuple[float, ...] = ()
    _known: list[Mixtures] = field(default_factory=list, repr=False, compare=False)

    @property
    def lowest(self) -> float:
        return math.log1p(-self.rate) if self.kind == "remove" else -math.inf

    @property
    def highest(self) -> float:
        return -math.log1p(-self.rate) if self.kind == "add" else math.inf

    # --- tails -------------------------------------------------------------------------------------------------

    def _threshold(self, loss: Reals) -> Reals:
        """The xi at which log w₊ (or log w₊/w₋) equals `loss`."""
        q, s = self.rate, self.shift
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.kind == "replace":
                half = np.abs(loss) / 2
                # y = e^{s·xi} solves a quadratic: log y = loss/2 + asinh((1-q) sinh(loss/2) / (q e^{-s²/2}))
                log_k = math.log1p(-q) - math.log(q) + s * s / 2 + half + np.log(-np.expm1(-2 * half) / 2)
                grow = np.where(log_k > 18, log_k + math.log(2), np.arcsinh(np.exp(np.minimum(log_k, 18.0))))
                return np.where(loss == 0, 0.0, np.sign(loss) * (half + grow) / s)
            excess = np.expm1(np.minimum(loss, 700.0)) + q  # e^loss - (1 - q)
            log_excess = np.where(loss > 700, loss, np.log(np.maximum(excess, 0.0)))
            return (log_excess - math.log(q)) / s + s / 2

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        q, s = self.rate, self.shift
        loss = np.asarray(loss, dtype=float)
        if self.kind == "add":
            x = self._threshold(-loss)
            return ndtr(x), (1 - q) * ndtr(x) + q * ndtr(x - s)
        x = self._threshold(loss)
        p = (1 - q) * ndtr(-x) + q * ndtr(s - x)
        return p, ndtr(-x) if self.kind == "remove" else (1 - q) * ndtr(-x) + q * ndtr(-s - x)

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        q, s = self.rate, self.shift
        loss = np.asarray(loss, dtype=float)
        if self.kind == "add":
            x = self._threshold(-loss)
            return ndtr(-x), (1 - q) * ndtr(-x) + q * ndtr(s - x)
        x = self._threshold(loss)
        p = (1 - q) * ndtr(x) + q * ndtr(x - s)
        return p, ndtr(x) if self.kind == "remove" else (1 - q) * ndtr(x) + q * ndtr(x + s)

    # --- moments -----------------------------------------------------------------------------------------------

    def quick_log_moment(self, t: float) -> float:
        """An upper bound on log M(t) of "add" for real t > 0, by E[w^{-t}] and the first moments of w - 1 ≥ -q.

        Taylor's remainder of w^{-t}, of even order, is largest at w = 1 - q. docs/proofs/contour.md, section 3.
        """
        if self.shift > 10.0:
            return math.inf
        q, e = self.rate, math.expm1(self.shift**2)
        left = math.exp(min(-(t + 2) * math.log1p(-q), 700.0))
        second = t * (t + 1) / 2 * q * q * e
        third = second * (t + 2) / 3 * q * e * (3 + e)
        fourth = second * (t + 2) * (t + 3) / 12 * q * q * e * (3 + e * (16 + e * (15 + e * (6 + e))))
        fourth *= left / (1 - q) ** 2
        fine = second - third + fourth + 1e-12 * (third + fourth)
        return math.log1p(min(second * left, fine) + 1e-12 * second * left)

    def _moments(self) -> Mixtures:
        if not self._known:
            self._known.append(Mixtures([(self, 1)]))
        return self._known[0]

    @np.errstate(all="ignore")  # what overflows becomes an infinite bound
    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        return self._moments().log_moment(t)

    @np.errstate(all="ignore")  # what overflows becomes an infinite bound
    def log_moments(self, tilt: float, spacing: float, count: int) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing, k < count."""
        value, error = self._moments().on_line(tilt, spacing, count)
        return value, np.expm1(error)

    @np.errstate(all="ignore")  # what overflows becomes an infinite bound
    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return self._moments().decay(tilt, frequency)
