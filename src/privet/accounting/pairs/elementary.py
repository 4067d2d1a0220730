"""Pairs whose moments are closed forms: Gaussian, Laplace, bounded range, and finitely many outcomes."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.pair import UNIT, Complexes, Reals


def mixed_loss(rate: float, loss: float) -> float:
    """log(1 - q + q·e^loss), to four units of rounding."""
    if loss > 700:
        return loss + math.log(rate)
    part = rate * math.expm1(loss)
    return math.log1p(part) if part > -0.5 else math.log((1 - rate) + rate * math.exp(loss))


def _interval_factor(z: Complexes, half_width: float) -> Complexes:
    """sinh(z·a)/(z·a)·e^{-|Re z|a}, the scaled moment of a uniform law on [-a, a]; 1 at z = 0."""
    x = z * half_width
    small = np.abs(x) < 1e-2
    safe = np.where(small, 1.0, x)
    scale = np.abs(x.real)
    full = (np.exp(safe - scale) - np.exp(-safe - scale)) / (2 * safe)
    square = x * x
    series = (1 + square / 6 * (1 + square / 20 * (1 + square / 42))) * np.exp(-scale)
    return np.where(small, series, full)


@dataclass(frozen=True, slots=True)
class GaussianPair:
    """N(mu, 1) against N(0, 1): L ~ N(mu²/2, mu²), the same in both directions."""

    mu: float
    infinite: float = 0.0
    lowest: float = -math.inf
    highest: float = math.inf
    atoms: tuple[float, ...] = ()

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        return ndtr(self.mu / 2 - loss / self.mu), ndtr(-self.mu / 2 - loss / self.mu)

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        return ndtr(loss / self.mu - self.mu / 2), ndtr(loss / self.mu + self.mu / 2)

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        value = self.mu**2 / 2 * t * (1 + t)
        return value, 8 * UNIT * np.abs(value)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return self.mu**2 / 2 * frequency**2 * (1 - 8 * UNIT)


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """Laplace(0, 1) against Laplace(distance, 1): atoms at ±distance and a density between them."""

    distance: float
    infinite: float = 0.0

    @property
    def lowest(self) -> float:
        return -self.distance

    @property
    def highest(self) -> float:
        return self.distance

    @property
    def atoms(self) -> tuple[float, ...]:
        return (-self.distance, self.distance)

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        d = self.distance
        inside = np.clip(loss, -d, d)
        p = np.where(loss < -d, 1.0, 0.5 - 0.5 * np.expm1(-(d - inside) / 2))
        q = np.where(loss < -d, 1.0, 0.5 * np.exp(-(d + inside) / 2))
        return np.where(loss >= d, 0.0, p), np.where(loss >= d, 0.0, q)

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        d = self.distance
        inside = np.clip(loss, -d, d)
        p = np.where(loss >= d, 1.0, 0.5 * np.exp(-(d - inside) / 2))
        q = np.where(loss >= d, 1.0, 0.5 - 0.5 * np.expm1(-(d + inside) / 2))
        return np.where(loss < -d, 0.0, p), np.where(loss < -d, 0.0, q)

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        # M = ((1+t)e^{td} + t·e^{-(1+t)d})/(1+2t), the same at -1-t; both factors of the exponentials add up to 1
        d = self.distance
        t = np.where(t.real < -0.5, -1 - t, t)
        share = 0.5 + 0.25 / np.where(t == -0.5, 1e-9, t + 0.5)
        if float(np.max(np.abs(t))) * np.max(d) < 1:
            rises = share * expm1(t * d), (1 - share) * expm1(-(1 + t) * d)
            rise = rises[0] + rises[1]
            value, size, whole = log1p(rise), np.abs(rises[0]) + np.abs(rises[1]), np.abs(1 + rise)
        else:
            turned = np.exp(1j * (t.imag * d))
            fallen = (1 - share) * np.exp(-(1 + 2 * t.real) * d)
            rise = share * turned + fallen * turned.conj()
            whole = np.abs(rise)
            value, size = np.log(rise) + t.real * d, (np.abs(share) + np.abs(fallen)) * (1 + np.abs(t) * d)
        return value, 16 * UNIT * size / whole + 4 * UNIT * np.abs(value)

    def log_moments(self, tilt: float, spacing: float, heard: NDArray[np.int64]) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing for k in `heard`."""
        return self.log_moment(tilt + 1j * spacing * heard)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        # |M(c+iv)| ≤ the two atoms + the density's part, whose modulus is at most cosh-like over |t + 1/2|
        d, c = self.distance, tilt
        # all divided by e^{c·d}, so that nothing overflows
        fallen = np.exp(-(1 + 2 * c) * d)
        here = np.exp(self.log_moment(np.array([complex(c)]))[0].real - c * d)
        bound = (1 + fallen) * (0.5 + 0.25 / np.hypot(c + 0.5, frequency)) / here
        out: Reals = np.maximum(0.0, -np.log(bound) - 64 * UNIT)
        return out


@dataclass(frozen=True, slots=True)
class BoundedRangePair:
    """The envelope of all mechanisms whose loss has range epsilon (Dong, Durfee and Rogers 2020).

    The hockey stick of a pair with losses in [t - epsilon, t] is largest over t at (1 - e^{-(epsilon-e)/2})² /
    (1 - e^{-epsilon}); that envelope is itself the curve of a pair, whose loss has P-density ∝ e^{loss/2}
    on [-epsilon, epsilon].
    """

    epsilon: float
    infinite: float = 0.0
    atoms: tuple[float, ...] = ()

    @property
    def lowest(self) -> float:
        return -self.epsilon

    @property
    def highest(self) -> float:
        return self.epsilon

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        e = self.epsilon
        x = np.clip(loss, -e, e)
        norm = -math.expm1(-e)
        return -np.expm1((x - e) / 2) / norm, -np.expm1((x - e) / 2) * np.exp(-(x + e) / 2) / norm

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        e = self.epsilon
        x = np.clip(loss, -e, e)
        norm = -math.expm1(-e)
        return -np.expm1(-(x + e) / 2) * np.exp((x - e) / 2) / norm, -np.expm1(-(x + e) / 2) / norm

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        e = self.epsilon
        scale = np.maximum(t.real, -1 - t.real) * e
        factor = _interval_factor(t + 0.5, e) * (e / -np.expm1(-e))
        with np.errstate(divide="ignore"):
            value = np.log(factor) + scale
        return value, 32 * UNIT * (1 + np.abs(t) * e) / np.maximum(np.abs(factor), 1e-300)

    def log_moments(self, tilt: float, spacing: float, heard: NDArray[np.int64]) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing for k in `heard`."""
        return self.log_moment(tilt + 1j * spacing * heard)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        # |sinh(x+iy)| ≤ cosh x, and M(c) has sinh in its place
        ratio = 1 / np.tanh((tilt + 0.5) * self.epsilon) * (tilt + 0.5) / np.hypot(tilt + 0.5, frequency)
        out: Reals = np.maximum(0.0, -np.log(ratio) - 64 * UNIT)
        return out


@dataclass(frozen=True, slots=True)
class DiscretePair:
    """Finitely many outcomes: `losses` (finite, increasing) with P-masses `masses`; the rest of P is at infinity."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    infinite: float = 0.0

    @property
    def lowest(self) -> float:
        return self.losses[0] if self.losses else 0.0

    @property
    def highest(self) -> float:
        return self.losses[-1] if self.losses else 0.0

    @property
    def atoms(self) -> tuple[float, ...]:
        return self.losses

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        if len(self.losses) > 8:
            return self._running(loss, upper=True)
        return self._sums(np.asarray(loss)[..., None] < np.array(self.losses))

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        if len(self.losses) > 8:
            return self._running(loss, upper=False)
        return self._sums(np.asarray(loss)[..., None] >= np.array(self.losses))

    def _running(self, loss: Reals, *, upper: bool) -> tuple[Reals, Reals]:
        """As `_sums`, in the memory of its arguments: sums of all above, or of all up to, each place."""
        p, place = np.array(self.masses), np.searchsorted(self.losses, loss, side="right")
        both = (p, p * np.exp(-np.array(self.losses)))
        if upper:
            first, second = (np.append(np.cumsum(x[::-1])[::-1], 0.0)[place] for x in both)
        else:
            first, second = (np.append(0.0, np.cumsum(x))[place] for x in both)
        return first, second

    def _sums(self, chosen: np.ndarray) -> tuple[Reals, Reals]:
        p = np.array(self.masses)
        return chosen @ p, chosen @ (p * np.exp(-np.array(self.losses)))

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        losses, p = np.array(self.losses), np.array(self.masses)
        scale = np.maximum(t.real * self.lowest, t.real * self.highest)
        terms = np.exp(np.multiply.outer(t, losses) - scale[..., None])
        total = terms @ p
        size = (np.abs(terms) * (1 + np.abs(np.multiply.outer(t, losses)) + np.abs(scale)[..., None])) @ p
        with np.errstate(divide="ignore"):
            value = np.log(total) + scale
        return value, 16 * UNIT * size / np.maximum(np.abs(total), 1e-300)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return np.zeros_like(frequency)  # atoms never decay


@dataclass(frozen=True, slots=True)
class ConcentratedBound:
    """A mechanism of which only rho-zCDP is known: moments are bounded at real orders, nothing else.

    Not a pair: it has no tails, so only the Rényi and zCDP accountants bound it.
    """

    rho: float
    infinite: float = 0.0
    lowest: float = -math.inf
    highest: float = math.inf
    atoms: tuple[float, ...] = ()

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        raise TypeError("zCDP alone does not determine the tails of the privacy loss")

    below = above

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        value = self.rho * t * (1 + t)
        return value, 8 * UNIT * np.abs(value)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return np.zeros_like(frequency)
