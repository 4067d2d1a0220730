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

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.mixture_grid import CUT, Grid, Kind, exponents, lay_grid
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_BLOCK = 200_000  # complex numbers worked on at a time


@dataclass(frozen=True, slots=True)
class MixturePair:
    """((1-q)N(0,1) + qN(s,1), N(0,1)) and its kin; see the module's docstring for `kind`."""

    rate: float
    shift: float
    kind: Kind
    infinite: float = 0.0
    atoms: tuple[float, ...] = ()
    _grids: dict[tuple[bool, float, float], Grid] = field(default_factory=dict, repr=False, compare=False)

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

    def _line(self, real: bool) -> tuple[float, float]:
        """Height of the line of integration, and half the width of the strip around it."""
        # w vanishes at an angle of π; negative powers of it are kept within π/2, where |w| ≥ 1 - q
        angle = math.pi if self.kind == "remove" else math.pi / 2
        if real:
            return 0.0, min(3.0, 0.9 * angle / self.shift)
        eta = min(2.0, angle / (2 * self.shift))
        return (-eta if self.kind == "add" else eta), eta

    def _strip_error(self, step: float, real: bool, size: Reals) -> Reals:
        """Trapezoid error for an integrand whose modulus, without the Gaussian's growth, integrates to `size`."""
        centre, half = self._line(real)
        edge = abs(centre) + half
        return 2 * size * math.exp(edge**2 / 2) / math.expm1(2 * math.pi * half / step)

    def _grid(self, real: bool, least: float, most: float) -> Grid:
        """Nodes fine and wide enough for every order t with least ≤ Re t ≤ most."""
        if real:  # rounded, so that searches over orders share their nodes
            octaves = 1 if self.shift > 2 else 3  # wide grids are dear where s is large; where not, laying them is
            most = max(most, 1.5 if self.shift > 2 else 8.0 if self.shift > 1 else 64.0)
            least, most = min(least, 0.0), 2.0 ** (octaves * math.ceil(math.log2(most) / octaves))
        key = (real, least, most)
        grid = self._grids.get(key)
        if grid is None:
            if len(self._grids) > 32:
                self._grids.clear()
            grid = self._grids[key] = lay_grid(self.rate, self.shift, self.kind, self._line(real), least, most)
        return grid

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        t = np.asarray(t, dtype=complex)
        real = not t.imag.any()
        least, most = float(t.real.min()), float(t.real.max())
        a, b = exponents(self.kind, t)
        value = self.rough_log_moment(t)
        grid = self._grid(real, least, most)
        orders, which = np.unique(t.real, return_inverse=True) if least < most else (t.real[:1], np.zeros(len(t), int))
        fixed, slope = self._bounds(grid, orders, real)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = fixed[which] + slope[which] * (np.abs(a) + np.abs(b))
            error = sizes * np.exp(-value.real) + 4 * UNIT * np.abs(value)
        return value, np.where(np.isnan(error), math.inf, error)

    def rough_log_moment(self, t: Complexes) -> Complexes:
        """log M(t) without the bound on its error: for searches, whose outcome is certified afterwards."""
        grid = self._grid(not t.imag.any(), float(t.real.min()), float(t.real.max()))
        a, b = exponents(self.kind, t)
        rows = max(1, _BLOCK // len(grid.x))
        if len(t) <= rows:
            return self._block(grid, a, b)
        return np.concatenate([self._block(grid, a[i : i + rows], b[i : i + rows]) for i in range(0, len(t), rows)])

    def log_moments(self, tilt: float, spacing: float, count: int) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing, k < count, as one matrix product: much faster, a little less exact.

        With k = j·B + i the power is a product xy of a factor in j and one in i, and
        xy - 1 = (x-1)(y-1) + (x-1) + (y-1) keeps all digits when both are near 1.
        """
        block = max(1, math.isqrt(count))
        t = tilt + 1j * spacing * np.arange(count)
        a, b = exponents(self.kind, t)
        grid = self._grid(False, tilt, tilt)
        turn = -grid.up if self.kind == "add" else grid.up - grid.down
        start = a[0] * grid.up + b[0] * grid.down
        if float(start.real.max()) > 600.0:
            return self.log_moment(t)
        weight = np.exp(grid.log_weight)
        fine = expm1(np.multiply.outer(1j * spacing * np.arange(block), turn))
        coarse = expm1(start + np.multiply.outer(1j * spacing * block * np.arange(-(-count // block)), turn))
        m = (coarse * weight) @ fine.T + (coarse @ weight)[:, None] + fine @ weight
        sizes = np.abs(weight)
        spread = (np.abs(coarse) * sizes) @ np.abs(fine).T + (np.abs(coarse) @ sizes)[:, None] + np.abs(fine) @ sizes
        fixed, slope = self._bounds(grid, np.array([tilt]), False)
        error = (fixed[0] + slope[0] * (np.abs(a) + np.abs(b))) + UNIT * (len(grid.x) + 64) * spread.ravel()[:count]
        value = log1p(m.ravel()[:count])
        return value, error * np.exp(-value.real) + 4 * UNIT * np.abs(value)

    def _block(self, grid: Grid, a: Complexes, b: Complexes) -> Complexes:
        """log M, by M = 1 + ∫ φ (w₊^a w₋^b - 1 - a(w₊-1) - b(w₋-1)), where ∫φ = ∫φw₊ = ∫φw₋ = 1:
        no digits are lost when M ≈ 1.
        """
        if grid.eta == 0:
            power, linear = np.multiply.outer(a.real, grid.up.real), np.multiply.outer(a.real, grid.v_up.real)
            if self.kind == "replace":
                power += np.multiply.outer(b.real, grid.down.real)
                linear += np.multiply.outer(b.real, grid.v_down.real)
            weight = grid.log_weight.real
            if float(power.max()) < 650.0:
                m = (np.expm1(power) - linear) @ np.exp(weight)
                value = np.log1p(m)
            else:
                lift = power + weight
                top = lift.max(axis=1)
                value = np.log(np.exp(lift - top[:, None]).sum(axis=1)) + top
            real: Complexes = value.astype(complex)
            return real
        power, linear = np.multiply.outer(a, grid.up), np.multiply.outer(a, grid.v_up)
        if self.kind == "replace":
            power += np.multiply.outer(b, grid.down)
            linear += np.multiply.outer(b, grid.v_down)
        if float(power.real.max()) < 650.0:
            value_c = log1p((expm1(power) - linear) @ np.exp(grid.log_weight))
        else:
            lift = power + grid.log_weight
            top = lift.real.max(axis=1)
            value_c = np.log(np.exp(lift - top[:, None]).sum(axis=1)) + top
        return value_c

    def _bounds(self, grid: Grid, orders: Reals, real: bool) -> tuple[Reals, Reals]:
        """Bounds on the absolute error of M at each Re t in `orders`: a fixed part, and one per |a| + |b|."""
        q = self.rate
        a, b = (w.real for w in exponents(self.kind, orders.astype(complex)))
        growth = math.exp(grid.eta**2 / 2)
        log_flat = grid.log_weight.real - grid.eta**2 / 2  # log of h·φ(x)
        flat = np.exp(log_flat)
        with np.errstate(over="ignore"):
            powers = self._moduli(grid.up.real, grid.down.real, a, b)
            moduli = np.exp(powers + log_flat)
            size, dropped = self._size(grid, log_flat, a, b)
            strip = self._strip_error(grid.step, real, size + 1)
            strip_slope = self._strip_error(grid.step, real, np.full_like(orders, 2 * q))
            lengths = np.abs(grid.up) + np.abs(grid.down)
            each = np.maximum(moduli, flat) * lengths + flat * (np.abs(grid.v_up) + np.abs(grid.v_down))
            rounding = UNIT * growth * (each @ (32 + 8 * grid.x**2 + len(grid.x)))
            # the log-sum-exp branch of _block rounds the sum of the powers themselves
            if float(powers.max()) > 640.0:
                rounding += UNIT * growth * (len(grid.x) + 4000) * moduli.sum(axis=1)
        return strip + growth * dropped, strip_slope + rounding + 20 * growth * math.exp(-CUT) * q

    def _size(self, grid: Grid, log_flat: Reals, a: Reals, b: Reals, log_unit: float = 0.0) -> tuple[Reals, Reals]:
        """Bounds on ∫ φ|w₊^a w₋^b| along any line of the strip, and on the parts of integral and sum without a node.

        Both are in units of e^log_unit. On the cells next to a node the integrand is at most `largest` there, see
        `lay_grid`: e^{h²/8} is for φ.
        """
        largest = np.exp(self._moduli(grid.rise, grid.fall, a, b) + (log_flat - log_unit + grid.step**2 / 8))
        dropped = (1 + grid.span) * math.exp(-CUT) * (math.exp(-log_unit) + largest.max(axis=1) / grid.step)
        return largest.sum(axis=1) + dropped, dropped

    def _moduli(self, up: Reals, down: Reals, a: Reals, b: Reals) -> Reals:
        """log |w₊^a w₋^b| for real exponents, a row each."""
        out: Reals = np.multiply.outer(a, up)
        return out + np.multiply.outer(b, down) if self.kind == "replace" else out

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        s, q = self.shift, self.rate
        grid = self._grid(True, tilt, tilt)
        a, b = (w.real for w in exponents(self.kind, np.array([complex(tilt)])))
        log_weight = grid.log_weight.real + self._moduli(grid.up.real, grid.down.real, a, b)[0]
        top = float(log_weight.max())
        weight = np.exp(log_weight - top)  # of h·φ·w₊^a·w₋^b, which sums to M(tilt)
        with np.errstate(over="ignore"):
            size, dropped = (
                x[0] / weight.sum() for x in self._size(grid, grid.log_weight.real, a, b, max(top, -700.0))
            )
        weight /= weight.sum()
        # turned lines stay so far from the zeros of w that the real line's nodes serve them, too
        most = 0.45 if self.kind == "remove" else 0.2
        angles = most * min(math.pi, 4.0 * s) * 2.0 ** -np.arange(0.0, 11.0)
        strip = self._line(True)[1]
        width = min(strip, math.pi / 2 / s) if self.kind == "remove" else strip - angles[0] / s
        wrong = 4 * size * math.exp(width**2 / 2) / math.expm1(2 * math.pi * width / grid.step) + 2 * dropped + 1e-12
        steep = (1 + abs(a[0]) + abs(b[0])) * (4 + s * s + s * float(np.abs(grid.x).max()) - math.log1p(-q))
        wrong += UNIT * (1 + size) * (64 + len(grid.x) + 16 * steep)
        bend, turn = np.zeros((len(angles), len(grid.x))), np.zeros((len(angles), len(grid.x)))
        factors = [(a[0], grid.x), (b[0], -grid.x)] if self.kind == "replace" else [(a[0], grid.x)]
        for power, x in factors:
            rise = q * np.exp(np.minimum(s * x - s * s / 2, 300.0))
            across, along = np.multiply.outer(np.sin(angles), rise), np.multiply.outer(np.cos(angles), rise) + (1 - q)
            bend += power * (np.log(np.hypot(across, along)) - np.log(1 - q + rise))
            turn += np.arctan2(across, along)
        # nodes whose share of M(tilt), grown by e^bend, is below e^-40 go into the 1e-12 that is subtracted
        matters = weight * np.exp(np.minimum(np.maximum(bend.max(axis=0), 0.0), 600.0)) > math.exp(-40.0)
        # |M(tilt + iv)| ≤ e^{eta²/2} (M(tilt) - ∫ φ w₊^a w₋^b (1 - e^{bend - v·turn})), with eta = angle / s
        bend, turn, weight = bend[:, matters], turn[:, matters], weight[matters]
        falls = np.minimum(bend[None] - frequency[:, None, None] * turn[None], 600.0)
        left = -np.expm1(falls) @ weight
        left = np.clip(left - wrong, 0.0, 1.0 - 1e-9)
        bound = -np.log1p(-left) - (angles / s) ** 2 / 2
        best: Reals = np.maximum(0.0, bound.max(axis=1) * (1 - 1e-9))
        return best
