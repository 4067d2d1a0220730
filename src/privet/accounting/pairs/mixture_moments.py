"""Moments at complex orders of Poisson-sampled Gaussian steps, many steps of one kind at a time.

What is summed, and the notation, is in :mod:`privet.accounting.pairs.mixture`; docs/proofs/contour.md, section 3, has
the error bounds. Tables have a row a pair and a column an order.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.mixture_grid import Grid, Kind, exponents, lay_grid, power
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_BLOCK = 200_000  # numbers worked on at a time
_FALL = 40.0  # about how far a run decays where its line is cut
_ANGLES = 2.0 ** -np.arange(0.0, 11.0)


class Mixture(Protocol):
    """One step's parameters."""

    @property
    def rate(self) -> float: ...
    @property
    def shift(self) -> float: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def lowest(self) -> float: ...
    @property
    def highest(self) -> float: ...


class Mixtures:
    """Mixture pairs of one kind, each so many times, as one `Pair`. They share their nodes, so shifts are alike."""

    infinite = 0.0

    def __init__(self, parts: Sequence[tuple[Mixture, int]]) -> None:
        self.parts = parts
        self.kind = parts[0][0].kind
        self.rate = np.array([[pair.rate] for pair, _ in parts])
        self.shift = np.array([[pair.shift] for pair, _ in parts])
        self.counts = np.array([float(count) for _, count in parts])
        self.steepest = float(self.shift.max())
        self.total = float(self.counts.sum())
        self.highest = sum(count * pair.highest for pair, count in parts)
        self._grids: dict[tuple[bool, float, float], Grid] = {}

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _line(self, real: bool) -> tuple[float, float]:
        """Height of the line of integration, and half the width of the strip around it."""
        # w vanishes at an angle of π; negative powers of it are kept within π/2, where |w| ≥ 1 - q
        angle = math.pi if self.kind == "remove" else math.pi / 2
        if real:
            return 0.0, min(3.0, 0.9 * angle / self.steepest)
        eta = min(2.0, angle / (2 * self.steepest))
        return (-eta if self.kind == "add" else eta), eta

    def _grid(self, real: bool, least: float, most: float) -> Grid:
        """Nodes for every order t with least ≤ Re t ≤ most; coarser on the real line, where logarithms do."""
        for key, grid in self._grids.items():
            serves = most <= key[2] <= 16 * max(most, 4.0) if real else most == key[2]  # far nodes would overflow
            if key[0] == real and key[1] <= least and serves:
                return grid
        if real:  # wide, so that searches over orders share their nodes
            least, most = min(least, 0.0), 1.3 * max(most, 1.0)
        if len(self._grids) > 8:
            self._grids.clear()
        accuracy = min(26.0 + math.log(self.total), 48.0) if real else min(36.0 + math.log(self.total), 60.0)
        grid = lay_grid(self.kind, self.rate, self.shift, self._line(real), least, most, accuracy)
        self._grids[real, least, most] = grid
        return grid

    # --- moments -------------------------------------------------------------------------------------------------

    def rough_log_moment(self, t: Reals) -> Reals:
        """log M at real orders without the bound on its error: for searches, whose outcome is certified afterwards."""
        grid = self._grid(True, float(t.min()), float(t.max()))
        out: Reals = self.counts @ self._logs(grid, exponents(self.kind, t))
        return out

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """As `Pair.log_moment`."""
        t = np.asarray(t, dtype=complex)
        order, real = t.real, not t.imag.any()
        least, most = float(order.min()), float(order.max())
        grid = self._grid(real, least, most)
        powers = exponents(self.kind, order if real else t)
        errors = self._errors(grid, exponents(self.kind, order if least < most else order[:1]))
        value, error = self._run(self._logs(grid, powers), errors, powers)
        return value.astype(complex), np.expm1(error)

    def on_line(self, tilt: float, spacing: float, count: int, *, exact: bool = False) -> tuple[Complexes, Reals]:
        """log M at tilt + ik·spacing, k < count, and log(1 + relative error).

        By direct sums where they are few or wanted to the last digit, else as matrix products.
        """
        grid = self._grid(False, tilt, tilt)
        powers = exponents(self.kind, tilt + 1j * spacing * np.arange(count))
        start = exponents(self.kind, np.array([tilt]))
        first = power(start, grid.logs)
        few = 3000 if exact else 8 if self.total < 100_000 else 200
        spread: Reals | float = 0.0
        if count <= few or float(first.real.max()) > 600.0:
            logs = self._logs(grid, powers)
        else:
            logs, spread = _products(grid, self.kind, first, spacing, count)
        return self._run(logs, self._errors(grid, start), powers, spread)

    def _run(
        self,
        logs: Complexes,
        errors: tuple[Reals, Reals],
        powers: tuple[Complexes, ...],
        spread: Reals | float = 0.0,
    ) -> tuple[Complexes, Reals]:
        """The run's log M and log(1 + relative error), from its pairs' log M and bounds on the error of their M."""
        fixed, slope = errors
        size = sum(np.abs(exponent) for exponent in powers)
        relative = (fixed + slope * size + spread) * np.exp(-logs.real)
        error = self.counts @ (np.log1p(relative) + (len(self.counts) + 4) * UNIT * np.abs(logs))
        return self.counts @ logs, np.where(np.isnan(error), math.inf, error)

    def _logs(self, grid: Grid, powers: tuple[Complexes, ...]) -> Complexes:
        """log M = log(1 + ∫ φ (w₊^a w₋^b - 1)), as ∫φ = 1: no digits are lost when M ≈ 1."""
        columns = max(1, _BLOCK // (len(self.counts) * len(grid.x)))
        if len(powers[0]) <= columns:
            return _log_sums(grid, power(powers, grid.logs))
        parts = [tuple(p[i : i + columns] for p in powers) for i in range(0, len(powers[0]), columns)]
        return np.concatenate([_log_sums(grid, power(part, grid.logs)) for part in parts], axis=1)

    def _errors(self, grid: Grid, powers: tuple[Reals, ...]) -> tuple[Reals, Reals]:
        """Bounds on the absolute error of M at real parts of orders: a fixed part, and one per |a| + |b|."""
        growth, half = math.exp(grid.eta**2 / 2), grid.edge - abs(grid.eta)
        steep = power(powers, grid.steepest)  # the modulus on the line itself is no larger
        largest = np.exp(steep + grid.log_cell)
        size, dropped = _sizes(grid, largest)
        strip = (size + 1) * (2 * math.exp(grid.edge**2 / 2) / math.expm1(2 * math.pi * half / grid.step))
        each = np.maximum(largest, grid.flat) @ grid.shaken(self.shift)[..., None]
        rounding = UNIT * growth * each[..., 0]
        if float(np.maximum.reduce(steep, axis=None)) > 640.0:  # sums of the powers themselves, scaled
            rounding += UNIT * growth * (len(grid.x) + 4000) * size
        return strip + growth * dropped, rounding

    # --- decay ---------------------------------------------------------------------------------------------------

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        """As `Pair.decay`: |M(tilt + iv)| ≤ e^{eta²/2} (M(tilt) - ∫ φ w₊^a w₋^b (1 - e^{bend - v·turn})), any eta."""
        s, q = self.shift[..., None], self.rate[..., None]
        grid = self._grid(True, tilt, tilt)
        powers = exponents(self.kind, np.array([tilt]))
        # turned lines stay so far from the zeros of w that the real line's nodes serve them, too
        most = (0.45 if self.kind == "remove" else 0.2) * min(math.pi / self.steepest, 4.0)
        eta = most * _ANGLES
        if self.total > 1:  # where the bound falls by e^_FALL, eta² is about that over the count
            best = math.log2(most / math.sqrt(_FALL / self.total))
            eta = eta[max(0, min(math.ceil(best - 1.5), 9)) : max(2, math.floor(best + 3.5))]
        bend = turn = np.zeros(1)
        angle = s * eta[:, None]
        low, sine, cosine = 4 * (1 - q) * np.sin(angle / 2) ** 2, np.sin(angle), np.cos(angle)
        for exponent, rise in zip(powers, grid.rises, strict=True):
            rise = np.minimum(rise, 1e100)[:, None, :]
            bend = bend + exponent / 2 * np.log1p(-low * (rise / (1 - q + rise) ** 2))
            turn = turn + np.arctan2(sine * rise, cosine * rise + (1 - q))
        log_weight = power(powers, grid.logs)[:, 0] + grid.log_flat
        top = np.maximum.reduce(log_weight, axis=1, keepdims=True)
        weight = np.exp(log_weight - top)  # of h·φ·w₊^a·w₋^b, which sums to M(tilt)
        scale = np.add.reduce(weight, axis=1, keepdims=True)
        unit = np.maximum(top, -700.0)
        largest = np.exp(power(powers, grid.steepest)[:, 0] + grid.log_cell - unit)
        size, dropped = (part / scale[:, 0] for part in _sizes(grid, largest, np.exp(-unit[:, 0])))
        width = min(grid.edge, math.pi / 2 / self.steepest) if self.kind == "remove" else grid.edge - float(eta[0])
        wrong = 4 * math.exp(width**2 / 2) / math.expm1(2 * math.pi * width / grid.step) * size + 2 * dropped + 1e-12
        steep = 4 + self.shift[:, 0] * (self.shift[:, 0] + float(max(-grid.x[0], grid.x[-1]))) - np.log1p(-q[:, 0, 0])
        length = 1 + sum(abs(float(exponent[0])) for exponent in powers)
        wrong += UNIT * (1 + size) * (64 + len(grid.x) + 16 * length * steep)
        falls = np.minimum(bend[:, None] - frequency[:, None, None] * turn[:, None], 600.0)
        shape = (len(self.counts), len(frequency) * len(eta), len(grid.x))
        left = -np.expm1(falls).reshape(shape) @ (weight / scale)[..., None]
        left = np.clip(left[..., 0] - wrong[:, None], 0.0, 1.0 - 1e-9).reshape(shape[0], len(frequency), len(eta))
        bound = (-np.log1p(-left) - eta**2 / 2).max(axis=2)
        out: Reals = self.counts @ np.maximum(0.0, bound * (1 - 1e-9))
        return out


def _sizes(grid: Grid, largest: Reals, unit: Reals | float = 1.0) -> tuple[Reals, Reals]:
    """Bounds on ∫ φ|w₊^a w₋^b| along any line of the strip, and on the parts of integral and sum without a node.

    On the cells next to a node the integrand is at most `largest` there, times h. `unit` is 1 in the units of that.
    """
    left_out = (1 + grid.span) * math.exp(-grid.cut)
    dropped = left_out * (unit + np.maximum.reduce(largest, axis=-1) / grid.step)
    return np.add.reduce(largest, axis=-1) + dropped, dropped


def _log_sums(grid: Grid, powers: Complexes) -> Complexes:
    """log of 1 + Σ weight·(e^power - 1), of which the weights alone sum to 1."""
    if float(powers.real.max()) < 650.0:
        return log1p(expm1(powers) @ grid.weight) if grid.eta else np.log1p(np.expm1(powers) @ grid.weight)
    lift = powers + grid.log_flat + (grid.eta**2 / 2 - 1j * grid.eta * grid.x if grid.eta else 0.0)
    top = lift.real.max(axis=-1)
    out: Complexes = np.log(np.exp(lift - top[..., None]).sum(axis=-1)) + top
    return out


def _products(grid: Grid, kind: Kind, first: Complexes, spacing: float, count: int) -> tuple[Complexes, Reals]:
    """log M at equally spaced orders from the powers at the first, and a bound on the rounding of M.

    With k = j·B + i the power is a product xy of a factor in j and one in i, and xy - 1 = (x-1)(y-1) + (x-1) + (y-1)
    keeps all digits when both are near 1.
    """
    block = max(1, math.isqrt(count))
    ways = -(-count // block)
    weight, sizes = grid.weight, np.abs(grid.weight)
    turn = grid.logs[0] if kind != "replace" else grid.logs[0] - grid.logs[1]
    turn = (-1j * spacing if kind == "add" else 1j * spacing) * turn[:, None, :]
    fine = expm1(np.arange(block)[:, None] * turn)
    coarse = expm1(first + (block * np.arange(ways))[:, None] * turn)
    m = (coarse * weight) @ fine.swapaxes(1, 2) + (coarse @ weight)[..., None] + (fine @ weight)[:, None]
    # |fine| ≤ 2, as no power grows along the line
    spread = 3 * (np.abs(coarse) @ sizes)[..., None] + (np.abs(fine) @ sizes)[:, None]
    shape = (len(m), block * ways)
    return log1p(m).reshape(shape)[:, :count], UNIT * (len(grid.x) + 64) * spread.reshape(shape)[:, :count]
