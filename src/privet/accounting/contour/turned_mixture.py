"""One step's moment at orders of large imaginary part: a mixture pair on a turned line of integration.

    |M_1(t)| ≤ (1-q)^{Re a + Re b} (1 + R),   R = e^{eta²/2} ∫ φ |w̃₊^a w̃₋^b - 1|,   w̃ = w/(1-q), xi = x + i·eta,

w₊, w₋, a and b as in :mod:`privet.accounting.pairs.mixture`. docs/proofs/contour.md, section 5, has the proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.mixture_moments import Mixture
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_LOW, _ANGLE, _HIGH = 0.6 * math.pi, 0.75 * math.pi, 0.9 * math.pi  # s·Im xi: the line of integration in its strip
_REACH = 40.0  # nodes of relative weight below e^-40 are dropped
_STRIDE = 6  # bounds need only every sixth node


@dataclass(slots=True)
class TurnedMixture:
    """One mixture pair on the turned line, for orders of large imaginary part."""

    pair: Mixture
    count: int
    x: Reals
    step: float
    up: Complexes  # log w̃ on the line of integration
    down: Complexes
    low_up: Complexes  # and on the lower edge of its strip, where bounds are taken: at every _STRIDE-th node
    low_down: Complexes

    @classmethod
    def of(cls, pair: Mixture, count: int, end: float) -> "TurnedMixture":
        s = pair.shift
        step = 2 * math.pi * ((_HIGH - _ANGLE) / s) / (_REACH + 12.0 + math.log(count))
        right = math.sqrt(2 * _REACH) + s * (1 + end)
        left = -math.sqrt(2 * _REACH) - (s * (1 + end) if pair.kind == "replace" else 0.0)
        x = left + step * np.arange(int((right - left) / step) + 1 + _STRIDE)  # the last of every sixth is right of it
        return cls(pair, count, x, step, *cls._logs(pair, x, _ANGLE), *cls._logs(pair, x[::_STRIDE], _LOW))

    @property
    def log_rho(self) -> float:
        s, q = self.pair.shift, self.pair.rate
        return math.log(q / (1 - q)) - s * s / 2

    @staticmethod
    def _logs(pair: Mixture, x: Reals, angle: float) -> tuple[Complexes, Complexes]:
        s = pair.shift
        r = pair.rate / (1 - pair.rate) * math.exp(-s * s / 2)
        up = log1p(r * np.exp(s * x + 1j * angle))
        return up, log1p(r * np.exp(-s * x - 1j * angle)) if pair.kind == "replace" else np.zeros_like(up)

    @property
    def atom(self) -> float:
        """Where the loss of one step is nearly atomic."""
        return self.pair.lowest if self.pair.kind == "remove" else 0.0

    @property
    def growth(self) -> float:
        """How much larger the Gaussian's modulus is on the lower edge than on the real line."""
        return math.exp((_LOW / self.pair.shift) ** 2 / 2)

    def _cells(self, least: Reals, most: Reals, height: Reals) -> tuple[Reals, Reals]:
        """Re zeta at most, over boxes least ≤ Re t ≤ most, Im t ≥ height, and ∫φ, on each cell of the lower edge."""
        x, up, down = self.x[::_STRIDE], self.low_up, self.low_down
        rise = np.maximum(up.real, 0.0)[1:]
        turn = np.maximum(up.imag, 0.0)[:-1] - np.minimum(down.imag, 0.0)[1:]
        edges = np.minimum(np.abs(x[1:]), np.abs(x[:-1])) * (x[1:] * x[:-1] > 0)
        density = self.step * _STRIDE / math.sqrt(2 * math.pi) * np.exp(-edges * edges / 2)
        with np.errstate(over="ignore", invalid="ignore"):
            real: Reals = np.multiply.outer(1 + most, rise) - np.multiply.outer(height, turn)
            if self.pair.kind == "replace":  # log 1/|1 + rho·e^{-i·angle}| ≤ min(rho·|cos|, log 1/sin)
                rho = np.exp(np.minimum(self.log_rho - self.pair.shift * x[:-1], 0.0))
                dip = np.minimum(rho * abs(math.cos(_LOW)), -math.log(math.sin(_LOW)))
                real += np.multiply.outer(np.maximum(most, 0.0), dip)
                real += np.multiply.outer(np.maximum(-least, 0.0), np.maximum(down.real, 0.0)[:-1])
        return np.minimum(real, 700.0), density

    def excess(self, least: Reals, most: Reals, height: Reals, size: Reals) -> Reals:
        """R over boxes least ≤ Re t ≤ most, Im t ≥ height, |1 + t| ≤ size: an upper Riemann sum, cell by cell."""
        up, down = np.abs(self.low_up), np.abs(self.low_down)
        real, density = self._cells(least, most, height)
        with np.errstate(over="ignore"):
            bend = np.multiply.outer(size, np.maximum(up[1:], up[:-1]) + down[:-1]) * np.exp(np.maximum(real, 0.0))
        out: Reals = self.growth * (np.minimum(bend, 1 + np.exp(real)) @ density + 1e-16)
        return out

    def log_modulus(self, least: Reals, most: Reals, height: Reals, size: Reals) -> Reals:
        """log |M_1(t)| over boxes least ≤ Re t ≤ most, Im t ≥ height, |1 + t| ≤ size, times the count."""
        base = math.log1p(-self.pair.rate)
        scale = (1 + least) * base if self.pair.kind == "remove" else np.full_like(least, base)
        out: Reals = self.count * (scale + np.log1p(self.excess(least, most, height, size)))
        return out

    def least_height(self, end: float) -> float:
        """The Im t from which what lies right of the grid is negligible, here and all along the closing curve."""
        s, top = self.pair.shift, float(self.low_up.imag[-1])
        drop = math.log((1 - self.pair.rate) / self.pair.rate) + s * s / 2
        bump = (1 + end) ** 2 * s * s / 2
        # Im t ≥ (1 + Re t)·cot(π - angle) makes the turn win over the rise, for w₋ up to the upper edge of the strip
        steep = (1 + end) * (-1 / math.tan(_HIGH) if self.pair.kind == "replace" else 1.0)
        return max(bump / top, (bump - (1 + end) * drop + _REACH) / top, steep)

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """log M_1(t)·count on a line of constant imaginary part, and count·log(1 + relative error)."""
        pair, x = self.pair, self.x
        a, b = 1 + t, (-t if pair.kind == "replace" else np.zeros_like(t))
        density = -x * x / 2
        keep = density > -_REACH
        for order in (t.real.max(), t.real.min()):
            keep |= (
                density + (1 + order) * self.up.real - order * self.down.real - t.imag.min() * self.up.imag > -_REACH
            )
        span = float(x[-1] - x[0])
        x, up, down, eta = x[keep], self.up[keep], self.down[keep], _ANGLE / pair.shift
        xi = x + 1j * eta
        weight = np.exp(-xi * xi / 2) * (self.step / math.sqrt(2 * math.pi))
        power = np.multiply.outer(a, up)
        if pair.kind == "replace":
            power += np.multiply.outer(b, down)
        m = expm1(power) @ weight
        value = log1p(m) + (a + b) * math.log1p(-pair.rate)
        flat = np.exp(-x * x / 2) * (self.step / math.sqrt(2 * math.pi))
        length = np.abs(a) + np.abs(b)
        # rounding: as in MixturePair, with |w̃^t| ≤ e^{real part}
        rise = np.maximum(power.real, 0.0)
        each = flat * (np.abs(up) + np.abs(down)) * (32 + 8 * x * x + len(x))
        rounding = UNIT * math.exp(eta**2 / 2) * (np.exp(np.minimum(rise, 700.0)) @ each) * length
        # quadrature: on both edges of the strip the integrand is below φ(1 + e^{Re zeta of the lower one, if positive})
        real, density = self._cells(t.real, t.real, t.imag)
        edge = (1 + np.exp(np.maximum(real, 0.0))) @ density + 1e-16
        far = (_HIGH / pair.shift) ** 2 / 2
        strip = 2 * edge * math.exp(far) / math.expm1(2 * math.pi * (_HIGH - _ANGLE) / pair.shift / self.step)
        pruned = (1 + span) * math.exp(-_REACH + eta**2 / 2)
        relative = (strip + rounding + pruned) / np.abs(1 + m) + 4 * UNIT * np.abs(value)
        return self.count * value, self.count * np.log1p(relative)
