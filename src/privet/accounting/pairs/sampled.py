"""Pairs of other sampled mechanisms: fixed-size batches of Gaussian noise, and Poisson batches of Laplace noise.

Their moments are integrals over an interval that ends at a kink of the loss, so they are summed by Gauss-Legendre
panels; `docs/proofs/contour.md`, section 4, has the error bound.
"""

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privet.accounting.numerics import gauss_legendre
from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.elementary import LaplacePair, mixed_loss
from privet.accounting.pairs.line_products import rises_on_line
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_RULE = gauss_legendre(24)
_PANEL_ERROR = 64 / 15 / (1 - 1 / 9) * 9.0**-24  # of a 24-point panel, per unit modulus on the ellipse rho = 3


def _panels(start: float, end: float, half: float) -> tuple[Reals, Reals, float]:
    """Nodes and weights of equal Gauss-Legendre panels of half-width at most `half`."""
    count = max(1, math.ceil((end - start) / (2 * half)))
    if count > 2000:
        raise OverflowError(f"{count} panels are needed for moments of this order")
    half = (end - start) / (2 * count)
    centres = start + half * (1 + 2 * np.arange(count))
    return (centres[:, None] + half * _RULE[0]).ravel(), np.tile(half * _RULE[1], count), half


def _sum_blocks(t: Complexes, nodes: int, integrate: Callable[[Complexes], Complexes]) -> Complexes:
    rows = max(1, 200_000 // nodes)
    return np.concatenate([integrate(t[i : i + rows]) for i in range(0, len(t), rows)])


@dataclass(frozen=True, slots=True)
class FixedSizePair:
    """Gaussian noise on a batch of fixed size, one record of the data replaced.

    Zhu, Dong and Wang (2022, theorem 11): if N(shift, 1) against N(0, 1) dominates the unsampled step, the sampled
    one is dominated by the curve H_α((1-q)Q + qP ‖ Q) for α ≥ 1 and H_α(P ‖ (1-q)P + qQ) for α < 1. Read as one
    pair: losses above 0 as when a record leaves, below 0 as when it joins, and an atom at 0 with the rest.
    Unlike the worst pair of a single step (Lebeda et al. 2024), this curve is valid under composition.
    """

    rate: float
    shift: float
    infinite: float = 0.0
    lowest: float = -math.inf
    highest: float = math.inf
    atoms: tuple[float, ...] = (0.0,)

    def _sides(self) -> tuple[MixturePair, MixturePair]:
        return MixturePair(self.rate, self.shift, "remove"), MixturePair(self.rate, self.shift, "add")

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        loss = np.asarray(loss, dtype=float)
        remove, add = self._sides()
        right, left = remove.above(np.maximum(loss, 0.0)), add.below(np.minimum(loss, 0.0))
        return np.where(loss >= 0, right[0], 1 - left[0]), np.where(loss >= 0, right[1], 1 - left[1])

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        loss = np.asarray(loss, dtype=float)
        remove, add = self._sides()
        right, left = remove.above(np.maximum(loss, 0.0)), add.below(np.minimum(loss, 0.0))
        return np.where(loss >= 0, 1 - right[0], left[0]), np.where(loss >= 0, 1 - right[1], left[1])

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        # M - 1 = ∫_{s/2}^∞ φ (w^{1+t} - 1)(1 - w^{-t}): the atom and both sides together, without cancellation
        t = np.asarray(t, dtype=complex)
        q, s = self.rate, self.shift
        top = float(np.abs(t.imag).max())
        most = max(float(t.real.max()), -1 - float(t.real.min()), 0.0)
        if (1 + most) * (s * s * (1 + most) / 2 + math.log(q)) > 600.0:
            raise OverflowError(f"moments of order {most:.3g} are too large to compute")
        half = min(0.5, 0.9 / s, 3.0 / (top * s) if top else 1.0, 2.5 / (12 + s * (1 + most)))
        end = s / 2 + 11.5 + s * (1 + most)
        x, weight, half = _panels(s / 2, end, half)
        ell = np.log1p(q * np.expm1(s * x - s * s / 2))
        log_flat = -x * x / 2 - math.log(math.sqrt(2 * math.pi)) + np.log(weight)

        def integrate(block: Complexes) -> Complexes:
            power = np.multiply.outer(1 + block, ell)
            large = power.real > 40.0  # there -1 is lost in rounding, and e^power may overflow before φ makes it small
            grown = np.where(large, np.exp(power + log_flat), expm1(np.where(large, 0.0, power)) * np.exp(log_flat))
            total: Complexes = np.sum(grown * -expm1(-np.multiply.outer(block, ell)), axis=1)
            return total

        with np.errstate(over="ignore", invalid="ignore"):
            m = _sum_blocks(t, len(x), integrate)
            value = log1p(m)
            orders, which = np.unique(t.real, return_inverse=True)
            steep = np.maximum(np.maximum(orders, -1 - orders), 0.0)
            powers = np.exp(np.multiply.outer(1 + steep, ell) + log_flat) + np.exp(log_flat)
            size, spread = powers.sum(axis=1)[which], (powers @ (ell * (4 + x * x)))[which]
            tall, wide = half * 4 / 3, half * 2 / 3
            slack = math.exp(tall**2 / 2 + top * s * tall + half * (8 / 3 * (end + wide) + 1.5 * s * most))
            error = (_PANEL_ERROR * 4 * slack + 1e-25) * size + 32 * UNIT * (1 + 2 * np.abs(t)) * spread
            return value, np.nan_to_num(error / np.abs(1 + m), nan=math.inf) + 8 * UNIT * np.abs(value)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        try:
            return self._decay(tilt, frequency)
        except OverflowError:  # an order too high to compute: nothing is claimed
            return np.zeros_like(frequency)

    def _decay(self, tilt: float, frequency: Reals) -> Reals:
        # Each side's integral is moved from [s/2, ∞) to Im xi = ±eta, up the vertical at s/2 and along; what the two
        # verticals leave nearly cancels, and is bounded by V (docs/proofs/contour.md, section 4).
        q, s, c = self.rate, self.shift, max(tilt, 0.0)
        end = s / 2 + 11.5 + s * (1 + c)
        x, weight, half = _panels(s / 2, end, min(0.25, 0.5 / s, 7 / (12 + s * (1 + c))))
        frequency = np.minimum(frequency, 12 / (s * half))  # what the panels resolve; the bound holds beyond
        z = q * np.exp(s * x - s * s / 2)
        ell = np.log1p(q * np.expm1(s * x - s * s / 2))
        log_here = float(self.log_moment(np.array([complex(c)]))[0][0].real)
        log_flat = np.log(weight) - x * x / 2 - math.log(2 * math.pi) / 2 - log_here
        above, under = np.exp(log_flat + (1 + c) * ell), np.exp(log_flat - c * ell)  # relative to M(tilt)
        tall, wide = half * 4 / 3, half * 2 / 3
        rule = _PANEL_ERROR * math.exp(tall**2 / 2 + 8 / 3 * half * (end + wide))
        edge = math.exp(-s * s / 8 - log_here) / math.sqrt(2 * math.pi)
        best = np.zeros_like(frequency)
        for angle in 0.45 * min(math.pi, 4.0 * s) * 2.0 ** -np.arange(0.0, 11.0):
            eta = angle / s
            turned = (1 - q) + z * np.exp(1j * angle)
            bend, turn = np.log(np.abs(turned)) - ell, np.angle(turned)
            falls = eta * eta / 2 - np.multiply.outer(frequency, turn)
            left = -np.expm1((1 + c) * bend + falls) @ above - np.expm1(-c * bend + falls) @ under
            # the verticals, at xi = s/2 ± iy: an upper Riemann sum, each factor at the worse end of its cell
            y = eta * np.linspace(0.0, 1.0, 49)
            side = 1 + q * expm1(1j * s * y)
            size, twist = -np.log(np.abs(side)), np.angle(side)
            # |e^{a+i(phase+2v·size)} - e^b| ≤ |e^a - e^b| + e^min(a,b)·(|phase| + 2v·size), size ≤ twist·tan(sy/2), and
            # v·e^{-v·twist} falls once v·twist exceeds 1: no part of the bound rises with the frequency
            decays = np.multiply.outer(frequency, twist[:-1])
            fixed = np.exp(np.minimum(c * size, 700.0)) - np.exp(-(1 + c) * size) + s * y - twist
            late = np.where(decays < 1, math.exp(-1), decays * np.exp(-decays))
            gap = np.exp(-decays) * fixed[1:] + 2 * np.tan(s * y[1:] / 2) * late
            left -= edge * gap @ (np.exp(y[1:] ** 2 / 2) * eta / 48)
            # the panels' error, w being at most turned by psi and at least `least` on their ellipses
            psi, start = angle + s * tall, q * math.exp(-s * wide)
            least = (
                abs(1 - q + start * cmath.exp(1j * psi)) if start > (q - 1) * math.cos(psi) else (1 - q) * math.sin(psi)
            )
            wrong = rule * (
                float(above.sum()) + float(np.exp(log_flat).sum()) * math.exp(min(700.0, -c * math.log(least)))
            )
            grown = np.exp(np.minimum((1 + c) * bend, 700.0)) @ above + np.exp(np.minimum(-c * bend, 700.0)) @ under
            wrong += UNIT * (1 + float(grown)) * (64 + len(x) + 16 * (2 + c) * (4 + s * s + s * end))
            best = np.maximum(best, np.clip(left - math.exp(eta**2 / 2) * wrong - 1e-12, 0.0, 1.0 - 1e-9))
        return -np.log1p(-best) * (1 - 1e-9)


@dataclass(frozen=True, slots=True)
class SampledLaplacePair:
    """Laplace noise on a Poisson batch: (1-q)·Lap(0,1) + q·Lap(distance,1) against Lap(0,1), or the reverse."""

    rate: float
    distance: float
    kind: Literal["remove", "add"]
    infinite: float = 0.0

    def _ends(self) -> tuple[float, float]:
        low, high = (mixed_loss(self.rate, e) for e in (-self.distance, self.distance))
        return (low, high) if self.kind == "remove" else (-high, -low)

    @property
    def lowest(self) -> float:
        return self._ends()[0]

    @property
    def highest(self) -> float:
        return max(self._ends()[1] * (1 + 8 * UNIT), 5e-324)

    @property
    def atoms(self) -> tuple[float, ...]:
        return self._ends()

    def _base(self, loss: Reals) -> Reals:
        """The loss of the unsampled step at which log(1 - q + q·e^base) is `loss`; beyond the ends, far away."""
        excess = np.expm1(np.minimum(loss, 700.0)) + self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            base = np.where(excess > 0, np.log(np.maximum(excess, 1e-320) / self.rate), -math.inf)
        # rounding must not lose an atom at an end of the support
        low, high = (mixed_loss(self.rate, e) for e in (-self.distance, self.distance))
        snap = 16 * UNIT * (1 + np.abs(loss))
        base = np.where(np.abs(loss - low) <= snap, -self.distance, base)
        return np.where(np.abs(loss - high) <= snap, self.distance, base)

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        loss, q = np.asarray(loss, dtype=float), self.rate
        law = LaplacePair(self.distance)
        if self.kind == "remove":
            p, base = law.above(self._base(loss))
            return (1 - q) * base + q * p, base
        p, base = law.below(np.nextafter(self._base(-loss), -math.inf))
        return base, (1 - q) * base + q * p

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        loss, q = np.asarray(loss, dtype=float), self.rate
        law = LaplacePair(self.distance)
        if self.kind == "remove":
            p, base = law.below(self._base(loss))
            return (1 - q) * base + q * p, base
        p, base = law.above(np.nextafter(self._base(-loss), -math.inf))
        return base, (1 - q) * base + q * p

    def _outcomes(self, top: float, steepest: float) -> tuple[Reals, Reals, Reals, float]:
        """log w, w - 1 and masses of the unsampled outcomes under Q, and the panels' error of a term of size 1."""
        # atoms e^{-d}/2 at d and 1/2 at -d, and between them the density e^{-(d+y)/2}/4
        q, d = np.asarray(self.rate), np.asarray(self.distance)
        # |w'/w| on the panels' ellipses: w is 1 - q and little else where q·e^d is small
        grown = q * np.exp(np.minimum(d + 0.4, 700.0))
        bend = np.minimum(1.0, 1.28 * grown / (1 - q + grown))
        wanted = np.minimum(np.minimum(0.5, 0.5 * d), 2.5 / (1 + steepest * bend))
        wanted = np.minimum(wanted, 3.0 / np.maximum(top * bend, 1e-9))
        x, weight, part = _panels(-1.0, 1.0, float((wanted / d).min()))
        y = d * np.concatenate([x, [-1.0, 1.0]])
        ends = np.concatenate([0.5 + 0 * d, 0.5 * np.exp(-d)], axis=-1) if d.ndim else [0.5, 0.5 * math.exp(-d)]
        mass = np.concatenate([d * weight * np.exp(-(d + d * x) / 2) / 4, ends], axis=-1)
        v = q * np.expm1(y)
        ell = np.where(v < -0.5, np.log((1 - q) + q * np.exp(y)), np.log1p(v))  # no digits are lost near w = 0
        half = part * d
        slack = float(np.max(half * (4 / 3 * bend * top + 16 / 3 * (1 + bend * steepest))))
        return ell, v, mass, _PANEL_ERROR * math.exp(slack)

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        t = np.asarray(t, dtype=complex)
        power = 1 + t if self.kind == "remove" else -t
        steepest = float(np.abs(power.real).max())
        ell, v, mass, panels = self._outcomes(float(np.abs(t.imag).max()), steepest)
        ell, v, mass = ell[..., None, :], v[..., None, :], mass[..., None]

        def integrate(block: Complexes) -> Complexes:  # ∫ v = 0, so the linear part may be left out exactly
            part: Complexes = ((expm1(block[:, None] * ell) - block[:, None] * v) @ mass.astype(complex))[..., 0]
            return part

        m = _sum_blocks(power, ell.size, integrate)
        orders, which = np.unique(power.real, return_inverse=True)
        return self._bounded(m, power, np.exp(orders[:, None] * ell) + 1, which, ell, v, mass, panels)

    def log_moments(self, tilt: float, spacing: float, heard: NDArray[np.int64]) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing for k in `heard`, which rises: by matrix products where that is quicker."""
        t = tilt + 1j * spacing * heard
        count = int(heard[-1]) + 1
        if count > 8 * len(heard):
            return self.log_moment(t)
        power = 1 + t if self.kind == "remove" else -t
        first = power[0].real
        ell, v, mass, panels = self._outcomes(spacing * count, abs(float(first)))
        m, spread = rises_on_line(first * ell, (1j if self.kind == "remove" else -1j) * spacing * ell, mass, count)
        growth, which = np.exp(first * ell[..., None, :]) + 1, np.zeros(len(t), dtype=int)
        value, error = self._bounded(
            m[..., heard], power, growth, which, ell[..., None, :], v[..., None, :], mass[..., None], panels
        )
        return value, error + spread[..., heard] * np.exp(-value.real)

    @staticmethod
    def _bounded(
        m: Complexes,
        power: Complexes,
        growth: Reals,
        which: NDArray[np.int64],
        ell: Reals,
        v: Reals,
        mass: Reals,
        panels: float,
    ) -> tuple[Complexes, Reals]:
        """log(1 + m) and the relative error of 1 + m; `growth` has a row for each Re power, of which `which` picks."""
        size = 1 + np.abs(power)
        rounding = 32 * UNIT * size * (growth @ (mass * (np.abs(v) + np.abs(ell)).swapaxes(-1, -2)))[..., 0][..., which]
        error = panels * size * (growth @ mass)[..., 0][..., which] + rounding
        value = log1p(m)
        return value, error / np.abs(1 + m) + 8 * UNIT * np.abs(value)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        # The density's part is ∫ f·e^{ivℓ}, f > 0, and by parts at most 2/v times the sum of f/ℓ' at both ends, as
        # f/ℓ' = ρ·w^{2+c}/(q·e^y), or ρ·w^{1-c}/(q·e^y), falls and then rises.
        q, d = np.asarray(self.rate), np.asarray(self.distance)
        power = 1 + tilt if self.kind == "remove" else -tilt
        atoms, ends = 0.0, 0.0
        for place, mass, density in ((-d, 0.5, 0.25), (d, 0.5 * np.exp(-d), 0.25 * np.exp(-d))):
            rise = q * np.exp(np.minimum(place, 700.0))
            here = mass * (1 - q + rise) ** power
            atoms, ends = atoms + here, ends + density / mass * here * (1 - q + rise) / rise
        whole = np.exp(self.log_moment(np.array([complex(tilt)]))[0].real)
        bound = (atoms + 2 * ends / np.maximum(frequency, 1e-300)) / whole
        return np.where(np.isfinite(bound) & (d < 600), np.maximum(0.0, -np.log(bound) - 1e-9), 0.0)
