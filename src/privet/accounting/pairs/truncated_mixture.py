"""Mixture pairs without their absurd outcomes: all of a step but what lies right of a cut.

At small rates and small δ, E[e^{tL}] is made of outcomes far beyond anything that could matter at that δ: the line
integral then is a small difference of huge numbers. Leaving out the outcomes xi > cut, whose probability is counted
in full elsewhere (:mod:`privet.accounting.contour.rare_outcomes`), makes every moment finite and the saddle a sane one:

    M(t) = ∫_{-∞}^{cut} φ w₊^a w₋^b dxi,      xi(v) = cut - κ·log(1 + e^{-v/κ}).

In v it is an integral over the whole line, which is turned to Im v = eta as in :mod:`~privet.accounting.pairs.mixture`:
0 ≤ Im xi ≤ Im v, so that |w₊^{iu} w₋^{-iu}| ≤ 1 for every u ≥ 0. docs/proofs/rare.md has the error bounds.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.cut_curve import Curve, Nodes
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_DEPTH = 50.0  # log of one over the size below which nodes near the cut are dropped
_STRIP = 48.0  # log of one over the trapezoid error aimed at
_BLOCK = 200_000


@dataclass(frozen=True, slots=True)
class CutPair:
    """A "remove" or "replace" mixture, restricted to outcomes xi ≤ cut: a measure of mass 1 - beyond."""

    pair: MixturePair
    cut: float
    infinite: float = 0.0
    atoms: tuple[float, ...] = ()
    _grids: dict[tuple[bool, float], Nodes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def lowest(self) -> float:
        return self.pair.lowest

    @property
    def highest(self) -> float:
        return self._curve.highest

    @property
    def beyond(self) -> float:
        """P(xi > cut), rounded up."""
        return float(self._cut_masses()[0] * (1 + 1e-12))

    @property
    def _curve(self) -> Curve:
        return Curve(self.pair, self.cut)

    @property
    def _changes(self) -> bool:
        return self.pair.kind == "replace"

    def _cut_masses(self) -> tuple[float, float, float]:
        """∫ φw₊, ∫ φ and ∫ φw₋ over what is cut off."""
        s, q, x = self.pair.shift, self.pair.rate, self.cut
        flat = float(ndtr(-x))
        return (1 - q) * flat + q * float(ndtr(s - x)), flat, (1 - q) * flat + q * float(ndtr(-s - x))

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        p, q = self.pair.above(np.minimum(loss, self.highest))
        p_cut, q_cut = self.pair.above(np.array([self.highest]))
        return p - p_cut, q - q_cut

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        return self.pair.below(np.minimum(loss, self.highest))

    # --- the curve ---------------------------------------------------------------------------------------------

    def _strip(self, real: bool) -> tuple[float, float]:
        """Height of the line of integration, and how far from Im v = 0 its strip reaches."""
        angle = math.pi / 2 if self._changes else math.pi
        if real:
            return 0.0, min(3.0, 0.9 * angle / self.pair.shift)
        top = min(4.0, angle / self.pair.shift)
        return top / 2, top

    def _nodes(self, real: bool, most: float) -> Nodes:
        """Nodes fine and wide enough for every order t with 0 ≤ Re t ≤ most."""
        if real:  # rounded, so that searches over orders share their nodes
            most = 4.0 ** math.ceil(math.log2(max(most, 1e-9)) / 2)
        key = (real, most)
        nodes = self._grids.get(key)
        if nodes is None:
            if len(self._grids) > 32:
                self._grids.clear()
            height, top = self._strip(real)
            half = top if real else height
            step = 2 * math.pi * half / (top * top / 2 + _STRIP)
            nodes = self._grids[key] = self._curve.laid(height, 2 * top / math.pi, step, most, _DEPTH)
        return nodes

    # --- moments -----------------------------------------------------------------------------------------------

    def _exponents(self, t: Complexes) -> tuple[Complexes, Complexes]:
        return 1 + t, -t if self._changes else np.zeros_like(t)

    def _power(self, a: Complexes, b: Complexes, up: Complexes, down: Complexes) -> Complexes:
        out: Complexes = np.multiply.outer(a, up)
        if self._changes:
            out += np.multiply.outer(b, down)
        return out

    def _missing(self, a: Complexes, b: Complexes) -> Complexes:
        """∫ φ (1 + a(w₊-1) + b(w₋-1)) over what is cut off: with it, the linear terms integrate to 0."""
        p, flat, q = self._cut_masses()
        out: Complexes = flat * (1 - a - b) + a * p + b * q
        return out

    def rough_log_moment(self, t: Complexes) -> Complexes:
        """log M(t) without the bound on its error: for searches, whose outcome is certified afterwards."""
        nodes = self._nodes(not t.imag.any(), float(t.real.max()))
        a, b = self._exponents(t)
        rows = max(1, _BLOCK // len(nodes.tau))
        parts = [self._block(nodes, a[i : i + rows], b[i : i + rows]) for i in range(0, len(t), rows)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _block(self, nodes: Nodes, a: Complexes, b: Complexes) -> Complexes:
        if not a.imag.any():
            linear = self._power(a.real, b.real, nodes.v_up.real, nodes.v_down.real)
            power = self._power(a.real, b.real, nodes.up.real, nodes.down.real)
            m = (np.expm1(power) - linear) @ np.exp(nodes.log_weight.real) - self._missing(a.real, b.real)
            real: Complexes = np.log1p(m).astype(complex)
            return real
        linear, power = self._power(a, b, nodes.v_up, nodes.v_down), self._power(a, b, nodes.up, nodes.down)
        return log1p((expm1(power) - linear) @ np.exp(nodes.log_weight) - self._missing(a, b))

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        t = np.asarray(t, dtype=complex)
        value = self.rough_log_moment(t)
        nodes = self._nodes(not t.imag.any(), float(t.real.max()))
        orders, which = np.unique(t.real, return_inverse=True)
        fixed, slope = self._bounds(nodes, orders)
        a, b = self._exponents(t)
        size = np.abs(a) + np.abs(b)
        error = (fixed[which] + slope[which] * size) * np.exp(-value.real) + 4 * UNIT * np.abs(value)
        return value, np.where(np.isnan(error), math.inf, error)

    def log_moments(self, tilt: float, spacing: float, count: int) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing, k < count, as one matrix product; see `MixturePair.log_moments`."""
        block = max(1, math.isqrt(count))
        t = tilt + 1j * spacing * np.arange(count)
        a, b = self._exponents(t)
        nodes = self._nodes(False, tilt)
        turn = nodes.up - nodes.down
        weight = np.exp(nodes.log_weight)
        fine = expm1(np.multiply.outer(1j * spacing * np.arange(block), turn))
        start = a[0] * nodes.up + b[0] * nodes.down
        coarse = expm1(start + np.multiply.outer(1j * spacing * block * np.arange(-(-count // block)), turn))
        m = (coarse * weight) @ fine.T + (coarse @ weight)[:, None] + fine @ weight
        sizes = np.abs(weight)
        spread = (np.abs(coarse) * sizes) @ np.abs(fine).T + (np.abs(coarse) @ sizes)[:, None] + np.abs(fine) @ sizes
        fixed, slope = self._bounds(nodes, np.array([tilt]))
        error = fixed[0] + slope[0] * (np.abs(a) + np.abs(b)) + UNIT * (len(turn) + 64) * spread.ravel()[:count]
        value = log1p(m.ravel()[:count] - self._cut_masses()[1])
        return value, error * np.exp(-value.real) + 4 * UNIT * np.abs(value)

    # --- what can go wrong -------------------------------------------------------------------------------------

    def _sizes(self, nodes: Nodes, low: float, high: float, orders: Reals) -> tuple[Reals, float, float]:
        """Bounds on ∫ |φ xi' g(xi)| along Im v = y, any low ≤ y ≤ high, for g = w₊^a w₋^b at each order, 1 and w - 1.

        Upper Riemann sums: each factor is monotone in tau, and is taken at the worse end of each cell.
        """
        s, q = self.pair.shift, self.pair.rate
        refined = 3
        tau = nodes.tau[0] + nodes.step / refined * np.arange(refined * (len(nodes.tau) - 1) + 1)
        inner, _, _ = self._curve.at(nodes.kappa, tau, low)
        outer, height, slope = self._curve.at(nodes.kappa, tau, high)
        left, right = inner[:-1], outer[1:]
        near = np.where((left < 0) & (right > 0), 0.0, np.minimum(np.abs(left), np.abs(right)))
        log_size = (height[:-1] ** 2 - near**2) / 2 + slope[:-1] + math.log(nodes.step / refined)
        # what lies beyond both ends: |xi'| ≤ 1 and Re xi ≤ cut + tau on the left, |xi'| ≤ e^{-tau/κ} on the right
        start, end = self.cut + tau[0], float(inner[-1])
        log_ends = np.array(
            [
                high * high / 2 + math.log(float(ndtr(start)) + 1e-300) + math.log(2 * math.pi) / 2,
                height[-1] ** 2 / 2 - min(end, self.cut) ** 2 / 2 + math.log(nodes.kappa) - tau[-1] / nodes.kappa,
            ]
        )
        right = np.concatenate([right, [start, self.cut]])
        turn = np.concatenate([height[:-1], [high, height[-1]]]) * s
        log_size = np.concatenate([log_size, log_ends]) - math.log(2 * math.pi) / 2
        grown = np.exp(s * right - s * s / 2)
        most_up = np.log1p(q * np.expm1(s * right - s * s / 2))
        shrunk = q * np.exp(-s * right - s * s / 2)
        least_down = np.log((1 - q + shrunk * np.cos(turn)) ** 2 + (shrunk * np.sin(turn)) ** 2) / 2
        a, b = (w.real for w in self._exponents(orders.astype(complex)))
        with np.errstate(over="ignore"):
            powers = np.exp(np.minimum(self._power(a, b, most_up, least_down) + log_size, 700.0)).sum(axis=1)
        flat = np.exp(log_size)
        moved = q * float(flat @ (1 + grown))
        if self._changes:
            flat[-2] = math.exp(high * high / 2) * float(ndtr(start + s))  # φ·w₋ lies around -s
            left_end = np.concatenate([left, [0.0, end]])
            moved += q * float(flat @ (1 + np.exp(np.minimum(-s * left_end, 700.0))))
        return powers, float(flat.sum()), moved

    def _bounds(self, nodes: Nodes, orders: Reals) -> tuple[Reals, Reals]:
        """Bounds on the absolute error of M at each Re t in `orders`: a fixed part, and one per |a| + |b|."""
        s, q = self.pair.shift, self.pair.rate
        height, top = self._strip(not nodes.xi.imag.any())
        rule = 1 / math.expm1(2 * math.pi * (height or top) / nodes.step)
        fixed, slope = np.zeros_like(orders), 0.0
        for edge in (0.0, top) if height else (top, top):
            powers, flat, moved = self._sizes(nodes, edge, edge, orders)
            fixed, slope = fixed + rule * (powers + flat), slope + rule * moved
        ends_fixed, ends_slope = self._ends(nodes, height, orders)
        a, b = (w.real for w in self._exponents(orders.astype(complex)))
        flat_nodes = np.exp(nodes.log_weight.real)
        moduli = np.exp(np.minimum(self._power(a, b, nodes.up.real, nodes.down.real), 700.0)) * flat_nodes
        size = np.abs(nodes.xi)
        moved_up, moved_down = np.abs(nodes.v_up + q), np.abs(nodes.v_down + q) * self._changes
        shaken = s * (size + self.cut + nodes.kappa)  # xi is rounded, too
        logs = np.abs(nodes.up) + np.abs(nodes.down)
        logs += shaken * (moved_up * np.exp(-nodes.up.real) + moved_down * np.exp(-nodes.down.real))
        each = np.maximum(moduli, flat_nodes) * logs
        each += flat_nodes * (np.abs(nodes.v_up) + np.abs(nodes.v_down) + shaken * (moved_up + moved_down))
        rounding = UNIT * (each @ (256 + 16 * size * size + len(size)))
        cut_off = 1e-12 * sum(self._cut_masses())
        return fixed + ends_fixed + cut_off, slope + ends_slope + rounding + cut_off

    def _ends(self, nodes: Nodes, height: float, orders: Reals) -> tuple[Reals, float]:
        """What the trapezoid sum leaves out left and right of its nodes: fixed, and per |a| + |b|."""
        s, q = self.pair.shift, self.pair.rate
        start, last = self.cut + float(nodes.tau[0]), float(nodes.tau[-1])
        growth = math.exp(height * height / 2)
        a, b = (w.real for w in self._exponents(orders.astype(complex)))
        real, _, _ = self._curve.at(nodes.kappa, nodes.tau[[0, -1]], 0.0)  # Re xi is least there
        _, turned, _ = self._curve.at(nodes.kappa, nodes.tau[[0, -1]], height)
        fixed, slope = np.zeros_like(orders), 0.0
        weights = (
            growth * float(ndtr(start)),
            nodes.kappa * math.exp(-last / nodes.kappa + (turned[1] ** 2 - real[1] ** 2) / 2),
        )
        for weight, x, turn in zip(weights, (start, self.cut), (height, float(turned[1])), strict=True):
            up = math.log1p(q * math.expm1(s * x - s * s / 2))
            shrunk = q * math.exp(min(-s * x - s * s / 2, 700.0))
            down = math.log(abs(complex(1 - q + shrunk * math.cos(s * turn), shrunk * math.sin(s * turn))))
            fixed = fixed + weight * (1 + np.exp(np.minimum(a * up + b * down, 700.0)))
            slope += weight * q * (1 + math.exp(s * x - s * s / 2))
        if self._changes:  # φ·w₋ lies around -s
            slope += q * growth * (float(ndtr(start + s)) + weights[1] * math.exp(-s * min(float(real[1]), 0.0)))
        return fixed, slope

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        """As `Pair.decay`: |M(tilt + iv)| ≤ ∫ |f(tau + iy)| e^{-v·turn} dtau for every small height y."""
        angle = math.pi / 4 if self._changes else math.pi / 2
        top = min(4.0, angle / self.pair.shift)
        heights = 0.5 * top * 2.0 ** -np.arange(0.0, 11.0)
        width = top - heights[0]
        step = 2 * math.pi * width / (top * top / 2 + 38.0)
        base = self._curve.laid(0.0, top / angle, step, tilt, _DEPTH)
        tilted = np.array([tilt])
        a, b = (w.real[0] for w in self._exponents(tilted.astype(complex)))
        log_f = base.log_weight.real + a * base.up.real + b * base.down.real
        bend, turn = np.empty((len(heights), len(log_f))), np.empty((len(heights), len(log_f)))
        for i, height in enumerate(heights):
            nodes = self._curve.laid(height, base.kappa, step, tilt, _DEPTH, len(log_f))
            bend[i] = nodes.log_weight.real + a * nodes.up.real + b * nodes.down.real - log_f
            turn[i] = nodes.up.imag - nodes.down.imag
        weight = np.exp(log_f)
        total = float(weight.sum())
        falls = np.minimum(bend[None] - frequency[:, None, None] * turn[None], 600.0)
        left = -np.expm1(falls) @ (weight / total)
        powers, _, _ = self._sizes(base, 0.0, top, tilted)
        ends, _ = self._ends(base, heights[0], tilted)
        wrong = (2 * float(powers[0]) / math.expm1(2 * math.pi * width / step) + 2 * float(ends[0])) / total
        far = float(np.abs(base.xi).max())  # rounding: of the logs, of xi itself (see `_bounds`), and of the sums
        steep = (1 + a - b) * self.pair.shift + far
        wrong += UNIT * (1 + float(powers[0]) / total) * (256 + len(log_f) + 16 * steep * (far + self.cut + base.kappa))
        left = np.clip(left - 2 * wrong - 1e-12, 0.0, 1.0 - 1e-9)
        best: Reals = (-np.log1p(-left)).max(axis=1) * (1 - 1e-9)
        return best
