"""Moments at complex orders of Poisson-sampled Gaussian steps, many steps of one kind at a time.

What is summed, and the notation, is in :mod:`privet.accounting.pairs.mixture`; docs/proofs/contour.md, section 3, has
the error bounds. Tables have a row a pair and a column an order.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.line_products import rises_on_line
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
        self.highest = math.fsum(count * pair.highest for pair, count in parts)
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

    def each(self, t: Complexes) -> tuple[Complexes, Reals]:
        """log M(t) of each pair, once, and a bound on its relative error: a row a pair."""
        t = np.asarray(t, dtype=complex)
        order, real = t.real, not t.imag.any()
        least, most = float(order.min()), float(order.max())
        grid = self._grid(real, least, most)
        powers = exponents(self.kind, order if real else t)
        errors = self._errors(grid, exponents(self.kind, order if least < most else order[:1]))
        return self._each(self._logs(grid, powers), errors, powers)

    def each_on_line(self, tilt: float, spacing: float, count: int, *, exact: bool = False) -> tuple[Complexes, Reals]:
        """As `each` at tilt + ik·spacing, k < count: by direct sums where they are few or wanted to the last digit."""
        grid = self._grid(False, tilt, tilt)
        powers = exponents(self.kind, tilt + 1j * spacing * np.arange(count))
        start = exponents(self.kind, np.array([tilt]))
        first = power(start, grid.logs)
        few = 3000 if exact else 8 if self.total < 100_000 else 200
        if count <= few or float(first.real.max()) > 600.0:
            return self._each(self._logs(grid, powers), self._errors(grid, start), powers)
        turn = grid.logs[0] if self.kind != "replace" else grid.logs[0] - grid.logs[1]
        turn = (-1j * spacing if self.kind == "add" else 1j * spacing) * turn
        m, spread = rises_on_line(first[:, 0], turn, grid.weight, count)  # as no power grows along the line
        return self._each(log1p(m), self._errors(grid, start), powers, spread)

    def _each(
        self,
        logs: Complexes,
        errors: tuple[Reals, Reals],
        powers: tuple[Complexes, ...],
        spread: Reals | float = 0.0,
    ) -> tuple[Complexes, Reals]:
        """log M of each pair, and its relative error, from bounds on the error of M."""
        fixed, slope = errors
        size = sum(np.abs(exponent) for exponent in powers)
        return logs, (fixed + slope * size + spread) * np.exp(-logs.real)

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """As `Pair.log_moment`."""
        value, error = self._run(*self.each(t))
        return value.astype(complex), np.expm1(error)

    def on_line(self, tilt: float, spacing: float, count: int, *, exact: bool = False) -> tuple[Complexes, Reals]:
        """log M at tilt + ik·spacing, k < count, and log(1 + relative error)."""
        return self._run(*self.each_on_line(tilt, spacing, count, exact=exact))

    def _run(self, logs: Complexes, relative: Reals) -> tuple[Complexes, Reals]:
        """The run's log M and log(1 + relative error) from those of its pairs."""
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
        powers_here = power(powers, [log.real for log in grid.logs])
        moduli = np.exp(powers_here + grid.log_flat)
        size, dropped = _sizes(grid, powers)
        strip = 2 * (size + 1) * (math.exp(grid.edge**2 / 2) / math.expm1(2 * math.pi * half / grid.step))
        each = np.maximum(moduli, np.exp(grid.log_flat)) @ grid.shaken(self.shift)[..., None]
        rounding = UNIT * growth * each[..., 0]
        if float(powers_here.max()) > 640.0:  # sums of the powers themselves, scaled
            rounding += UNIT * growth * (len(grid.x) + 4000) * moduli.sum(axis=-1)
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
            eta = eta[np.abs(np.log(eta / math.sqrt(_FALL / self.total))) < 2.1]
            eta = eta if len(eta) else most * _ANGLES[:3]
        bend = turn = np.zeros(1)
        angle = s * eta[:, None]
        low, sine, cosine = 4 * (1 - q) * np.sin(angle / 2) ** 2, np.sin(angle), np.cos(angle)
        for exponent, rise in zip(powers, grid.rises, strict=True):
            rise = np.minimum(rise, 1e100)[:, None, :]
            bend = bend + exponent / 2 * np.log1p(-low * rise / (1 - q + rise) ** 2)
            turn = turn + np.arctan2(sine * rise, cosine * rise + (1 - q))
        log_weight = grid.log_flat + power(powers, grid.logs)[:, 0]
        top = log_weight.max(axis=1, keepdims=True)
        weight = np.exp(log_weight - top)  # of h·φ·w₊^a·w₋^b, which sums to M(tilt)
        scale = weight.sum(axis=1)
        size, dropped = (part[:, 0] / scale for part in _sizes(grid, powers, np.maximum(top, -700.0)[..., None]))
        widest = float(eta.max())
        width = min(grid.edge, math.pi / 2 / self.steepest) if self.kind == "remove" else grid.edge - widest
        wrong = 4 * size * math.exp(width**2 / 2) / math.expm1(2 * math.pi * width / grid.step) + 2 * dropped + 1e-12
        steep = 4 + self.shift[:, 0] * (self.shift[:, 0] + float(np.abs(grid.x).max())) - np.log1p(-self.rate[:, 0])
        length = 1 + sum(abs(float(exponent[0])) for exponent in powers)
        wrong += UNIT * (1 + size) * (64 + len(grid.x) + 16 * length * steep)
        falls = np.minimum(bend[:, None] - frequency[:, None, None] * turn[:, None], 600.0)
        shape = (len(self.counts), len(frequency) * len(eta), len(grid.x))
        left = -np.expm1(falls).reshape(shape) @ (weight / scale[:, None])[..., None]
        left = np.clip(left[..., 0] - wrong[:, None], 0.0, 1.0 - 1e-9).reshape(shape[0], len(frequency), len(eta))
        bound = (-np.log1p(-left) - eta**2 / 2).max(axis=2)
        out: Reals = self.counts @ np.maximum(0.0, bound * (1 - 1e-9))
        return out


def _sizes(grid: Grid, powers: tuple[Reals, ...], log_unit: Reals | float = 0.0) -> tuple[Reals, Reals]:
    """Bounds on ∫ φ|w₊^a w₋^b| along any line of the strip, and on the parts of integral and sum without a node.

    Both in units of e^log_unit. On the cells next to a node the integrand is at most `largest` there, of which
    e^{h²/8} is for φ.
    """
    largest = np.exp(power(powers, grid.steepest) + (grid.log_flat + grid.step**2 / 8) - log_unit)
    unit = np.exp(-np.asarray(log_unit))[..., 0] if isinstance(log_unit, np.ndarray) else 1.0
    dropped = (1 + grid.span) * math.exp(-grid.cut) * (unit + largest.max(axis=-1) / grid.step)
    return largest.sum(axis=-1) + dropped, dropped


def _log_sums(grid: Grid, powers: Complexes) -> Complexes:
    """log of 1 + Σ weight·(e^power - 1), of which the weights alone sum to 1."""
    if float(powers.real.max()) < 650.0:
        return log1p(expm1(powers) @ grid.weight) if grid.eta else np.log1p(np.expm1(powers) @ grid.weight)
    lift = powers + grid.log_flat + (grid.eta**2 / 2 - 1j * grid.eta * grid.x if grid.eta else 0.0)
    top = lift.real.max(axis=-1)
    out: Complexes = np.log(np.exp(lift - top[..., None]).sum(axis=-1)) + top
    return out
