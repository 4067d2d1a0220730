"""The far end of the contour sum where nothing decays: nearly atomic losses.

The terms F(c + ikΔ), k > K, of the trapezoid sum are residues of F(t)·C(t), C(t) = 1/(1 - e^{-P(t-c)}), P = 2π/Δ.
On the line Im t = U = (K + 1/2)Δ that kernel is the Fermi function 1/(1 + e^{-Ps}), s = Re t - c, so that

    (Δ/2π) Σ_{k>K} F(c + ikΔ) = (1/2πi) ∫ F(c + s + iU) / (1 + e^{-Ps}) ds:

an oscillating sum becomes an integral that decays like e^{-s·omega} to the right, where omega is the distance from
epsilon to the atom. It is integrated from Re t = 0 to `end` by Gauss-Legendre panels; the left edge, the curve
Re t = end·√(Im t/U) that closes the contour on the right, and each panel's error are bounded with the modulus bound of
:mod:`privet.accounting.contour.turned_mixture`. docs/proofs/contour.md, section 5, has the proof.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from privet.accounting.contour.turned_mixture import TurnedMixture
from privet.accounting.numerics import gauss_legendre
from privet.accounting.pairs.elementary import GaussianPair
from privet.accounting.pairs.mixture_moments import Mixtures
from privet.accounting.pairs.pair import UNIT, Complexes, Moments, Reals

_MOST_NODES = 6000
_GAUSS = gauss_legendre(24)
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


def fermi_tail(
    steps: Sequence[tuple[Moments, int]], tilt: float, spacing: float, epsilon: float, log_tolerance: float
) -> Tail | None:
    """Lay the tail so that all it neglects is below e^log_tolerance; None where its conditions cannot be met."""
    gauss = [(pair, count) for pair, count in steps if isinstance(pair, GaussianPair)]
    mixtures = [part for pair, _ in steps if isinstance(pair, Mixtures) for part in pair.parts]
    known = len(gauss) + sum(isinstance(pair, Mixtures) for pair, _ in steps) == len(steps)
    if not mixtures or not known or any(p.kind == "add" or p.shift <= 0.45 or p.rate > 0.5 for p, _ in mixtures):
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
        highs = [TurnedMixture.of(p, n, most) for p, n in mixtures]
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
    highs: list[TurnedMixture],
    gauss: list[tuple[GaussianPair, int]],
    least: Reals,
    most: Reals,
    height: Reals,
    size: Reals,
) -> Reals:
    """log |M(t)| of the run over boxes, as in `TurnedMixture.log_modulus`."""
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
    highs: list[TurnedMixture],
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
    # beyond them 1 + R is at most 1 + 3·growth, while e^{-omega·Re t} goes on falling
    rest = sum(high.count * math.log1p(3 * high.growth) for high in highs)
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
    highs: list[TurnedMixture],
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
