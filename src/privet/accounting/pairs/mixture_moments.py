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
from privet.accounting.pairs.mixture_grid import Grid, Kind, exponents, lay_grid, power, rough_nodes
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_REAL, _LINE, _EXACT = 26.0, 31.0, 36.0  # digits, in natural logs, of nodes on the real line and on turned ones
_BLOCK = 200_000  # numbers worked on at a time
_FEW = 5000  # numbers up to which direct sums take less time than products
_SQUARED, _MANY_NODES = 400, 64  # orders up to which, and nodes from which on, powers by squaring are exact enough
_FALL = 40.0  # about how far a run decays where its line is cut
_ANGLES = 2.0 ** -np.arange(0.0, 11.0)
_NONE = np.zeros(0)


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
        shifts = [pair.shift for pair, _ in parts]
        self.ends = max(shifts), min(shifts), max(pair.rate for pair, _ in parts)
        self.steepest = self.ends[0]
        self.total = float(self.counts.sum())
        self.highest = math.fsum(count * pair.highest for pair, count in parts)
        self._grids: dict[tuple[float, float, float], Grid] = {}
        self._rough = -1.0, _NONE, _NONE  # the largest order that is served, log of h·φ, log w

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _line(self, real: bool) -> tuple[float, float]:
        """Height of the line of integration, and half the width of the strip around it."""
        # w vanishes at an angle of π; negative powers of it are kept within π/2, where |w| ≥ 1 - q
        angle = math.pi if self.kind == "remove" else math.pi / 2
        if real:
            return 0.0, min(3.0, 0.9 * angle / self.steepest)
        eta = min(2.0, angle / (2 * self.steepest))
        return (-eta if self.kind == "add" else eta), eta

    def _grid(self, digits: float, least: float, most: float) -> Grid:
        """Nodes for every order t with least ≤ Re t ≤ most: on the real line for `_REAL` digits, else a turned one."""
        for key, grid in self._grids.items():  # far nodes would overflow
            serves = key[0] == digits or (digits == _LINE and key[0] == _EXACT)
            if serves and key[1] <= least and most <= key[2] <= 16 * max(most, 4.0):
                return grid
        if len(self._grids) > 8:
            self._grids.clear()
        if digits == _REAL:  # for any order that is asked for
            least, most = min(least, 0.0), max(most, 1.0)
        accuracy = digits + min(math.log(self.total), 24.0)
        grid = lay_grid(self.kind, self.rate, self.shift, self._line(digits == _REAL), self.ends, least, most, accuracy)
        self._grids[digits, least, most] = grid
        return grid

    def prepare(self, tilt: float, most: float, *, exact: bool) -> None:
        """Lay the nodes for a line at a tilt and for real orders up to `most`, which decay and line then share."""
        self._grid(_EXACT if exact else _LINE, tilt, most if self._is_near(most) else tilt)

    def _is_near(self, most: float) -> bool:
        """Whether nodes for real orders up to `most` may be added to a line's: no power of w there is too large."""
        s, _, q = self.ends
        return (1 + most) * max(0.0, math.log(q) + s * (9.0 + s * (1 + most))) < 500.0

    # --- moments -------------------------------------------------------------------------------------------------

    def rough_log_moment(self, t: Reals) -> Reals:
        """log M at real orders without the bound on its error: for searches, whose outcome is certified afterwards."""
        most = float(t.max())
        if not most <= self._rough[0] <= 16 * max(most, 4.0):
            accuracy, most = _REAL + min(math.log(self.total), 24.0), 1.3 * max(most, 1.0)
            half = self._line(True)[1]
            self._rough = most, *rough_nodes(self.kind, self.rate, self.shift, half, self.ends, most, accuracy)
        _, log_flat, logs = self._rough
        powers = power(exponents(self.kind, t), logs)
        if float(powers.max()) < 650.0:
            out: Reals = self.counts @ np.log1p(np.expm1(powers) @ np.exp(log_flat))
        else:
            powers += log_flat
            top = np.maximum.reduce(powers, axis=-1)
            out = self.counts @ (top + np.log(np.add.reduce(np.exp(powers - top[..., None]), axis=-1)))
        return out

    def each(self, t: Complexes) -> tuple[Complexes, Reals]:
        """log M(t) of each pair, once, and a bound on its relative error: a row a pair."""
        t = np.asarray(t, dtype=complex)
        order, real = t.real, not t.imag.any()
        least, most = float(order.min()), float(order.max())
        grid = self._grid(_REAL if real else _EXACT, least, most)
        powers = exponents(self.kind, order if real else t)
        errors = self._errors(grid, exponents(self.kind, order if least < most else order[:1]))
        return self._each(self._logs(grid, powers), errors, powers)

    def each_on_line(
        self, tilt: float, spacing: float, count: int, beyond: Reals = _NONE, *, exact: bool = False, fine: bool = False
    ) -> tuple[Complexes, Reals]:
        """As `each` at tilt + ik·spacing, k < count, then at the real orders `beyond`.

        By direct sums where they are few or `exact`, wanted to the last digit, else as matrix products; `fine` takes
        as many nodes as `exact` does.
        """
        if len(beyond) and not self._is_near(float(beyond[-1])):
            logs, relative = self.each_on_line(tilt, spacing, count, exact=exact, fine=fine)
            more, wrong = self.each(beyond.astype(complex))
            return np.concatenate([logs, more], axis=1), np.concatenate([relative, wrong], axis=1)
        digits = _EXACT if exact or fine else _LINE
        grid = self._grid(digits, tilt, float(beyond[-1]) if len(beyond) else tilt)
        orders = np.concatenate([tilt + 1j * spacing * np.arange(count), beyond])
        powers, real = exponents(self.kind, orders), exponents(self.kind, np.concatenate([[tilt], beyond]))
        first = power(real, grid.logs)
        few = 3000 if exact else max(200 if self.total >= 100_000 else 8, _FEW // (first.shape[0] * first.shape[2]))
        spread: Reals | float
        if count <= few or float(first.real.max()) > 600.0:
            logs, spread = self._logs(grid, powers), 0.0
        else:
            logs, spread = _products(grid, self.kind, first, spacing, count)
        fixed, slope = self._errors(grid, real)
        if len(beyond):  # all of the line has the errors of its first order
            which = np.maximum(np.arange(1 - count, 1 + len(beyond)), 0)
            fixed, slope = fixed[:, which], slope[:, which]
        return self._each(logs, (fixed, slope), powers, spread)

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

    def on_line(
        self, tilt: float, spacing: float, count: int, beyond: Reals = _NONE, *, exact: bool = False
    ) -> tuple[Complexes, Reals]:
        """log M at tilt + ik·spacing, k < count, then at the real orders `beyond`, and log(1 + relative error)."""
        return self._run(*self.each_on_line(tilt, spacing, count, beyond, exact=exact))

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
        grid = self._grid(_LINE, tilt, tilt)  # every second of its nodes, at their real parts
        powers = exponents(self.kind, np.array([tilt]))
        # turned lines stay so far from the zeros of w that such nodes serve them, too
        most = (0.45 if self.kind == "remove" else 0.2) * min(math.pi / self.steepest, 4.0)
        eta = most * _ANGLES
        if self.total > 1:  # where the bound falls by e^_FALL, eta² is about that over the count
            best = math.log2(most / math.sqrt(_FALL / self.total))
            eta = eta[max(0, min(math.ceil(best - 1.5), 9)) : max(2, math.floor(best + 2.5))]
        angle = s * eta[:, None]
        low, sine, cosine = 4 * (1 - q) * np.sin(angle / 2) ** 2, np.sin(angle), np.cos(angle)
        rise = np.minimum(grid.rises[:, :, None, ::2], 1e100)
        bends = np.log1p(-low * (rise / (1 - q + rise) ** 2))
        bend = bends[0] * (float(powers[0][0]) / 2)
        if len(powers) > 1:
            bend += bends[1] * (float(powers[1][0]) / 2)
        turn = np.add.reduce(np.arctan2(sine * rise, cosine * rise + (1 - q)), axis=0)
        log_weight = power(powers, grid.plain[..., ::2])[:, 0] + grid.log_flat[::2]
        top = np.maximum.reduce(log_weight, axis=1, keepdims=True)
        weight = np.exp(log_weight - top)  # of h·φ·w₊^a·w₋^b, which sums to M(tilt)/2
        scale = np.add.reduce(weight, axis=1, keepdims=True)
        unit = np.maximum(top, -700.0)
        largest = np.exp(power(powers, grid.steepest)[:, 0] + grid.log_cell - unit)
        size, dropped = (part / (2 * scale[:, 0]) for part in _sizes(grid, largest, np.exp(-unit[:, 0])))
        width = min(grid.edge, math.pi / 2 / self.steepest) if self.kind == "remove" else grid.edge - float(eta[0])
        farthest = max(-float(grid.x[0]), float(grid.x[-1]))
        steep = 4 + self.steepest * (self.steepest + farthest) - math.log1p(-self.ends[2])
        length = 1 + sum(abs(float(exponent[0])) for exponent in powers)
        rounding = UNIT * (64 + len(grid.x) + 16 * length * steep)
        wrong = (4 * math.exp(width**2 / 2) / math.expm1(math.pi * width / grid.step) + rounding) * size
        wrong += 2 * dropped + (1e-12 + rounding)
        falls = np.minimum(bend[:, None] - frequency[:, None, None] * turn[:, None], 600.0)
        shape = (len(self.counts), len(frequency) * len(eta), rise.shape[-1])
        left = -np.expm1(falls).reshape(shape) @ (weight / scale)[..., None]
        left = np.minimum(np.maximum(left[..., 0] - wrong[:, None], 0.0), 1.0 - 1e-9)
        bound = np.maximum.reduce((-np.log1p(-left)).reshape(-1, len(frequency), len(eta)) - eta**2 / 2, axis=2)
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
    """log M at equally spaced orders from the powers at the first, then at those of the other ones; and their rounding.

    No power grows along the line.
    """
    turn = grid.logs[0] if kind != "replace" else grid.logs[0] - grid.logs[1]
    turn = (-1j * spacing if kind == "add" else 1j * spacing) * turn
    squared = count <= _SQUARED and len(grid.x) >= _MANY_NODES
    m, spread = rises_on_line(first[:, 0], turn, grid.weight, count, squared=squared)
    if first.shape[1] > 1:
        others = expm1(first[:, 1:])
        sizes = np.abs(others) @ np.abs(grid.weight)
        m = np.concatenate([m, others @ grid.weight], axis=1)
        spread = np.concatenate([spread, UNIT * (len(grid.x) + 64) * sizes], axis=1)
    return log1p(m), spread
