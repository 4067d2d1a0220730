"""Poisson batches of Laplace noise.

Moments are integrals over an interval at whose ends the loss has its atoms, so they are summed by Gauss-Legendre
panels; `docs/proofs/contour.md`, section 4, has the error bound.
"""

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
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_RULE = gauss_legendre(24)
_MOST_WORK = 1e6  # numbers in one array
PANEL_ERROR = 64 / 15 / (1 - 1 / 9) * 9.0**-24  # of a 24-point panel, per unit modulus on the ellipse rho = 3


def panels(start: float, end: float, half: float) -> tuple[Reals, Reals, float]:
    """Nodes and weights of equal Gauss-Legendre panels of half-width at most `half`."""
    count = max(1, math.ceil((end - start) / (2 * half)))
    if count > 2000:
        raise OverflowError(f"{count} panels are needed for moments of this order")
    half = (end - start) / (2 * count)
    centres = start + half * (1 + 2 * np.arange(count))
    return (centres[:, None] + half * _RULE[0]).ravel(), np.tile(half * _RULE[1], count), half


def sum_blocks(t: Complexes, nodes: int, integrate: Callable[[Complexes], Complexes]) -> Complexes:
    """`integrate` over a few of the orders at a time, so that its arrays stay small."""
    rows = max(1, 200_000 // nodes)
    return np.concatenate([integrate(t[i : i + rows]) for i in range(0, len(t), rows)], axis=-1)


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
        return self._ends()[1] * (1 + 8 * UNIT) + 1e-323  # the latter where the former underflows

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
        x, weight, part = panels(-1.0, 1.0, float((wanted / d).min()))
        y = d * np.concatenate([x, [-1.0, 1.0]])
        ends = np.concatenate([0.5 + 0 * d, 0.5 * np.exp(-d)], axis=-1) if d.ndim else [0.5, 0.5 * math.exp(-d)]
        mass = np.concatenate([d * weight * np.exp(-(d + d * x) / 2) / 4, ends], axis=-1)
        v = q * np.expm1(y)
        ell = np.where(v < -0.5, np.log((1 - q) + q * np.exp(y)), np.log1p(v))  # no digits are lost near w = 0
        half = part * d
        slack = float(np.max(half * (4 / 3 * bend * top + 16 / 3 * (1 + bend * steepest))))
        return ell, v, mass, PANEL_ERROR * math.exp(slack)

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        t = np.asarray(t, dtype=complex)
        power = 1 + t if self.kind == "remove" else -t
        steepest = float(np.abs(power.real).max())
        ell, v, mass, wrong = self._outcomes(float(np.abs(t.imag).max()), steepest)
        ell, v, mass = ell[..., None, :], v[..., None, :], mass[..., None]

        def integrate(block: Complexes) -> Complexes:  # ∫ v = 0, so the linear part may be left out exactly
            part: Complexes = ((expm1(block[:, None] * ell) - block[:, None] * v) @ mass.astype(complex))[..., 0]
            return part

        m = sum_blocks(power, ell.size, integrate)
        orders, which = np.unique(power.real, return_inverse=True)
        return self._bounded(m, power, np.exp(orders[:, None] * ell) + 1, which, ell, v, mass, wrong)

    def log_moments(self, tilt: float, spacing: float, heard: NDArray[np.int64]) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing for k in `heard`, which rises: by matrix products where that is quicker."""
        t = tilt + 1j * spacing * heard
        count = int(heard[-1]) + 1
        if count > 8 * len(heard):
            return self.log_moment(t)
        power = 1 + t if self.kind == "remove" else -t
        first = power[0].real
        ell, v, mass, wrong = self._outcomes(spacing * count, abs(float(first)))
        if ell.size * math.sqrt(count) > _MOST_WORK:
            raise OverflowError("too many nodes are needed at such frequencies")
        m, spread = rises_on_line(first * ell, (1j if self.kind == "remove" else -1j) * spacing * ell, mass, count)
        growth, which = np.exp(first * ell[..., None, :]) + 1, np.zeros(len(t), dtype=int)
        value, error = self._bounded(
            m[..., heard], power, growth, which, ell[..., None, :], v[..., None, :], mass[..., None], wrong
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
        wrong: float,
    ) -> tuple[Complexes, Reals]:
        """log(1 + m) and the relative error of 1 + m; `growth` has a row for each Re power, of which `which` picks."""
        size = 1 + np.abs(power)
        rounding = 32 * UNIT * size * (growth @ (mass * (np.abs(v) + np.abs(ell)).swapaxes(-1, -2)))[..., 0][..., which]
        error = wrong * size * (growth @ mass)[..., 0][..., which] + rounding
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
