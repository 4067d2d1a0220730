"""The far end of the contour sum where nothing decays: nearly atomic losses.

The terms F(c + ikΔ), k > K, of the trapezoid sum are residues of F(t)·C(t), C(t) = 1/(1 - e^{-P(t-c)}), P = 2π/Δ.
On the line Im t = U = (K + 1/2)Δ that kernel is the Fermi function 1/(1 + e^{-Ps}), s = Re t - c, so that

    (Δ/2π) Σ_{k>K} F(c + ikΔ) = (1/2πi) ∫ F(c + s + iU) / (1 + e^{-Ps}) ds:

an oscillating sum becomes an integral that decays like e^{-s·omega} to the right, where omega is the distance from
epsilon to the atom. It is integrated from Re t = 0 to `end` by Gauss-Legendre panels; the left edge, the curve
Re t = end·√(Im t/U) that closes the contour on the right, and each panel's error are bounded with the modulus bound

    |M_1(t)| ≤ (1-q)^{Re a + Re b} (1 + R),   R = e^{eta²/2} ∫ φ |w̃₊^a w̃₋^b - 1|,   w̃ = w/(1-q), xi = x + i·eta.

docs/proofs/contour.md, section 5, has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from privet.accounting.pairs.base import UNIT, Complexes, Pair, Reals
from privet.accounting.pairs.mixture import MixturePair, expm1, log1p
from privet.accounting.pairs.simple import GaussianPair

__all__ = ["Tail", "fermi_tail"]

_ANGLE = 0.6 * math.pi  # s·eta: how far the line of integration of one step's moment is turned
_HALF_STRIP = 0.3 * math.pi
_REACH = 40.0  # nodes of relative weight below e^-40 are dropped
_STRIDE = 3  # bounds need only every third node
_MOST_NODES = 6000
_GAUSS = np.polynomial.legendre.leggauss(24)
_RHO = 2.4  # Bernstein ellipse of every panel


@dataclass(slots=True)
class Tail:
    """Σ_{|k|>K} of the contour sum, as nodes and weights that serve every epsilon near the one they were laid for."""

    first: int
    nodes: Complexes
    weights: Complexes  # panel weight × Fermi function × M-independent factors; includes both conjugate halves
    log_m: Complexes
    error: Reals
    epsilon: float
    log_bound: float  # log of the bound on everything neglected, for `epsilon` and up to half as much again
    neglected: Callable[[float], float]  # the same at any epsilon

    def _terms(self, epsilon: float) -> Complexes:
        out: Complexes = np.exp(self.log_m - self.nodes * epsilon) * self.weights
        return out

    def sum(self, epsilon: float) -> tuple[float, float]:
        """The tail at `epsilon`, and a bound on its error."""
        f = self._terms(epsilon)
        size = np.abs(f)
        wrong = size * (np.expm1(np.minimum(self.error, 700.0)))
        wrong += 8 * UNIT * size * (4 + np.abs(self.nodes) * epsilon + np.abs(self.log_m))
        if not self.epsilon <= epsilon <= 1.5 * self.epsilon:
            self.epsilon, self.log_bound = epsilon, self.neglected(epsilon)
        return float(f.imag.sum()), float(wrong.sum()) + math.exp(min(700.0, self.log_bound))

    def slope(self, epsilon: float) -> float:
        """Derivative of the tail in epsilon."""
        return float((-self.nodes * self._terms(epsilon)).imag.sum())


@dataclass(slots=True)
class _High:
    """One mixture pair on the turned line, for orders of large imaginary part."""

    pair: MixturePair
    count: int
    x: Reals
    step: float
    up: Complexes
    down: Complexes
    low_up: Complexes  # log w̃ on the lower edge of the strip, for the quadrature's error

    @classmethod
    def of(cls, pair: MixturePair, count: int, end: float) -> _High:
        s = pair.shift
        step = 2 * math.pi * (_HALF_STRIP / s) / (_REACH + 12.0 + math.log(count))
        right = math.sqrt(2 * _REACH) + s * (1 + end)
        left = -math.sqrt(2 * _REACH) - (s * (1 + end) if pair.kind == "replace" else 0.0)
        x = left + step * np.arange(int((right - left) / step) + 2)
        up, down = cls._logs(pair, x, _ANGLE)
        low_up, _ = cls._logs(pair, x, _ANGLE - _HALF_STRIP)
        return cls(pair, count, x, step, up, down, low_up)

    @property
    def log_rho(self) -> float:
        s, q = self.pair.shift, self.pair.rate
        return math.log(q / (1 - q)) - s * s / 2

    @staticmethod
    def _logs(pair: MixturePair, x: Reals, angle: float) -> tuple[Complexes, Complexes]:
        s = pair.shift
        r = pair.rate / (1 - pair.rate) * math.exp(-s * s / 2)
        up = log1p(r * np.exp(s * x + 1j * angle))
        return up, log1p(r * np.exp(-s * x - 1j * angle)) if pair.kind == "replace" else np.zeros_like(up)

    @property
    def atom(self) -> float:
        """Where the loss of one step is nearly atomic."""
        return self.pair.lowest if self.pair.kind == "remove" else 0.0

    @property
    def eta(self) -> float:
        return _ANGLE / self.pair.shift

    def excess(self, least: Reals, most: Reals, height: Reals, size: Reals) -> Reals:
        """R over boxes least ≤ Re t ≤ most, Im t ≥ height, |1 + t| ≤ size: an upper Riemann sum, cell by cell."""
        x, up, down = self.x[::_STRIDE], self.up[::_STRIDE], self.down[::_STRIDE]
        rise = np.maximum(up.real, 0.0)[1:]
        turn = np.maximum(up.imag, 0.0)[:-1] - np.minimum(down.imag, 0.0)[1:]
        length = np.maximum(np.abs(up)[1:], np.abs(up)[:-1]) + np.abs(down)[:-1]
        edges = np.minimum(np.abs(x[1:]), np.abs(x[:-1])) * (x[1:] * x[:-1] > 0)
        density = self.step * _STRIDE / math.sqrt(2 * math.pi) * np.exp(-edges * edges / 2)
        with np.errstate(over="ignore", invalid="ignore"):
            real = np.multiply.outer(1 + most, rise) - np.multiply.outer(height, turn)
            if self.pair.kind == "replace":  # log 1/|1 + rho·e^{-i·angle}| ≤ min(rho·|cos|, log 1/sin)
                rho = np.exp(np.minimum(self.log_rho - self.pair.shift * x[:-1], 0.0))
                dip = np.minimum(rho * abs(math.cos(_ANGLE)), -math.log(math.sin(_ANGLE)))
                real += np.multiply.outer(np.maximum(most, 0.0), dip)
                real += np.multiply.outer(np.maximum(-least, 0.0), np.maximum(down.real, 0.0)[:-1])
            bend = np.multiply.outer(size, length) * np.exp(np.minimum(np.maximum(real, 0.0), 700.0))
            g = np.minimum(bend, 1 + np.exp(np.minimum(real, 700.0)))
        out: Reals = math.exp(self.eta**2 / 2) * (g @ density + 1e-16)
        return out

    def log_modulus(self, least: Reals, most: Reals, height: Reals, size: Reals) -> Reals:
        """log |M_1(t)| over boxes least ≤ Re t ≤ most, Im t ≥ height, |1 + t| ≤ size, times the count."""
        base = math.log1p(-self.pair.rate)
        scale = (1 + least) * base if self.pair.kind == "remove" else np.full_like(least, base)
        out: Reals = self.count * (scale + np.log1p(self.excess(least, most, height, size)))
        return out

    def least_height(self, end: float) -> float:
        """The Im t from which what lies right of the grid is negligible, here and all along the closing curve."""
        s, top = self.pair.shift, float(self.up.imag[-1])
        drop = math.log((1 - self.pair.rate) / self.pair.rate) + s * s / 2
        bump = (1 + end) ** 2 * s * s / 2
        return max(bump, bump - (1 + end) * drop + _REACH) / top

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
        x, up, down, low = x[keep], self.up[keep], self.down[keep], self.low_up[keep]
        xi = x + 1j * self.eta
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
        rounding = UNIT * math.exp(self.eta**2 / 2) * (np.exp(np.minimum(rise, 700.0)) @ each) * length
        # quadrature: the integrand on both edges of the strip; its modulus falls with the angle, so the lower one
        low_power = np.multiply.outer(1 + t.real, np.maximum(low.real, 0.0)) - np.multiply.outer(t.imag, low.imag)
        if pair.kind == "replace":
            low_power -= math.log(math.sin(_ANGLE + _HALF_STRIP)) * np.maximum(t.real, 0.0)[:, None]
        edge = 2 * (1 + np.exp(np.minimum(low_power, 700.0)) @ flat)
        far = (self.eta + _HALF_STRIP / pair.shift) ** 2 / 2
        strip = 2 * edge * math.exp(far) / math.expm1(2 * math.pi * _HALF_STRIP / pair.shift / self.step)
        pruned = 20 * math.exp(-_REACH + self.eta**2 / 2)
        relative = (strip + rounding + pruned) / np.abs(1 + m) + 4 * UNIT * np.abs(value)
        return self.count * value, self.count * np.log1p(relative)


def fermi_tail(
    steps: Sequence[tuple[Pair, int]], tilt: float, spacing: float, epsilon: float, log_tolerance: float
) -> Tail | None:
    """Lay the tail so that all it neglects is below e^log_tolerance; None where its conditions cannot be met."""
    gauss = [(pair, count) for pair, count in steps if isinstance(pair, GaussianPair)]
    mixtures = [(p, n) for p, n in steps if isinstance(p, MixturePair) and p.kind != "add" and p.shift > 0.45]
    if not mixtures or len(gauss) + len(mixtures) != len(steps) or max(p.rate for p, _ in mixtures) > 0.5:
        return None
    atoms = sum(n * (p.lowest if p.kind == "remove" else 0.0) for p, n in mixtures)
    omega = epsilon - atoms
    if omega <= 0:
        return None
    for slack in (3.0, 8.0, 20.0, 50.0):
        end = max((slack - log_tolerance) / omega, 1.15 * tilt)
        most = end + 1.25 * spacing  # the ellipses of the panels reach beyond the end, and 3 spacings down
        if any(p.shift * (9.0 + p.shift * (1 + most)) > 600.0 for p, _ in mixtures):
            return None  # orders so high that e^{s·x} overflows
        highs = [_High.of(p, n, most) for p, n in mixtures]
        least = max(high.least_height(most) for high in highs) / spacing + 4.5
        if least > _MOST_NODES:
            return None
        for factor in (1.0, 1.5, 2.2, 3.4, 6.0):
            first = max(12, math.ceil(factor * least))
            height = (first - 0.5) * spacing
            neglected = partial(_neglected, highs, gauss, tilt, spacing, end, height)
            log_bound = neglected(epsilon)
            if log_bound < log_tolerance:
                nodes, weights, log_m, error = _lay(highs, gauss, tilt, spacing, end, height)
                return Tail(first, nodes, weights, log_m, error, epsilon, log_bound, neglected)
    return None


def _log_modulus(
    highs: list[_High],
    gauss: list[tuple[GaussianPair, int]],
    least: Reals,
    most: Reals,
    height: Reals,
    size: Reals,
) -> Reals:
    """log |M(t)| of the run over boxes, as in `_High.log_modulus`."""
    total = np.zeros_like(least)
    for high in highs:
        total += high.log_modulus(least, most, height, size)
    for pair, count in gauss:
        total += count * pair.mu**2 / 2 * (most * (1 + most) - height**2)
    return total


def _panels(tilt: float, spacing: float, end: float) -> Reals:
    """Panel edges in s = Re t - tilt: narrow at the Fermi function's poles, growing away from them."""
    edges = [-0.35 * spacing, 0.35 * spacing]
    while edges[-1] < end - tilt:
        edges.append(min(end - tilt, edges[-1] * 3.5 if edges[-1] * 2.5 < 6 * spacing else edges[-1] + 6 * spacing))
    while edges[0] > -tilt:
        edges.insert(0, max(-tilt, edges[0] * 3.5 if -edges[0] * 2.5 < 6 * spacing else edges[0] - 6 * spacing))
    return np.array(edges)


def _neglected(
    highs: list[_High],
    gauss: list[tuple[GaussianPair, int]],
    tilt: float,
    spacing: float,
    end: float,
    height: float,
    epsilon: float,
) -> float:
    """log of a bound on what the panels leave out or get wrong, for both conjugate halves together."""
    period = 2 * math.pi / spacing
    omega = epsilon - sum(high.count * high.atom for high in highs)
    # left edge, Re t = 0: |M| ≤ 1 and the kernel is at most 1/(e^{P·tilt} - 1)
    logs = [-math.log(math.expm1(min(700.0, period * tilt))) - math.log(math.pi * height)]
    # the closing curve, in segments
    y = height * 1.5 ** np.arange(61)
    x = end * np.sqrt(y / height)
    least, most, low, high = x[:-1], x[1:], y[:-1], y[1:]
    size = np.hypot(1 + most, high)
    modulus = _log_modulus(highs, gauss, least, most, low, size)
    segment = modulus - least * epsilon + np.log((high - low + most - least) / (low * low) / math.pi) + 0.2
    logs.append(float(np.logaddexp.reduce(segment)))
    # beyond them 1 + R is at most 1 + 3·e^{eta²/2}, while e^{-omega·Re t} goes on falling
    rest = sum(high.count * math.log1p(3 * math.exp(high.eta**2 / 2)) for high in highs)
    if x[-1] * omega < 2 * rest + 200:
        return math.inf
    logs.append(rest - x[-1] * omega)
    # Gauss-Legendre error of each panel
    edges = _panels(tilt, spacing, end)
    half, centre = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    wide, tall = half * (_RHO + 1 / _RHO) / 2, half * (_RHO - 1 / _RHO) / 2
    left, right = centre - wide, centre + wide
    least, most = tilt + left, tilt + right
    if np.any(tall > height / 2) or least[0] < -0.9:
        return math.inf
    modulus = _log_modulus(highs, gauss, least, np.maximum(most, 0.0), height - tall, np.hypot(1 + most, height + tall))
    with np.errstate(over="ignore", divide="ignore"):
        away = np.minimum(np.abs(left), np.abs(right))
        kernel = np.where(left * right < 0, 0.0, -np.log(-np.expm1(-period * away)))
        near = (left * right < 0) & (period * tall < 0.9 * math.pi)
        kernel = np.where(near, -math.log(math.sin(0.1 * math.pi)), kernel)
        kernel = np.where((left * right < 0) & ~near, math.inf, kernel) + np.minimum(0.0, period * right)
    rule = math.log(64 / 15) - 2 * len(_GAUSS[0]) * math.log(_RHO) - math.log1p(-(_RHO**-2))
    panel = (
        modulus
        - least * np.where(least > 0, epsilon, 1.5 * epsilon)
        - 2 * np.log(height - tall)
        + kernel
        + rule
        + np.log(half / math.pi)
    )
    logs.append(float(np.logaddexp.reduce(panel)))
    return float(np.logaddexp.reduce(np.array(logs)))


def _lay(
    highs: list[_High],
    gauss: list[tuple[GaussianPair, int]],
    tilt: float,
    spacing: float,
    end: float,
    height: float,
) -> tuple[Complexes, Complexes, Complexes, Reals]:
    period = 2 * math.pi / spacing
    edges = _panels(tilt, spacing, end)
    half, centre = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    s = (centre[:, None] + half[:, None] * _GAUSS[0]).ravel()
    w = (half[:, None] * _GAUSS[1]).ravel()
    t = tilt + s + 1j * height
    log_m, error = np.zeros_like(t), np.zeros_like(s)
    for high in highs:
        value, wrong = high.log_moment(t)
        log_m += value
        error += wrong
    for pair, count in gauss:
        value, wrong = pair.log_moment(t)
        log_m += count * value
        error += count * np.log1p(wrong)
    # 2·Re((1/2πi)·z) = Im(z)/π
    weights = w / (1 + np.exp(-period * s)) / (t * (1 + t)) / math.pi
    return t, weights, log_m, error
