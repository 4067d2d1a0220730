"""A smooth window on the outcomes of a step: what is big, and what is not.

With Φ the normal distribution function and a blur ω, an outcome xi counts as beyond a threshold x with weight
Φ((xi - x)/ω): an entire function, so that integrals can still be moved into the complex plane. A `Window` has

    M(t) = ∫_{xi ≤ cut} p (1 - Φ((xi - high)/ω)) e^{t·loss},
    B(t) = ∫_{xi ≤ cut} p (Φ((xi - low)/ω) - Φ((xi - high)/ω)) e^{t·loss},

p the density of the step: M is all up to `high`, and B the part of it beyond `low`, both measures. B decays quickly in
Im t however atomic the step is. docs/proofs/rare.md, section 4, has the error bounds.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import erfc, ndtr

from privet.accounting.pairs.complex_functions import expm1
from privet.accounting.pairs.cut_curve import Curve, Nodes
from privet.accounting.pairs.line_products import rises_of
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_STRIP = 38.0  # log of one over the trapezoid error aimed at, relative to what is integrated
_SPECIAL = 1e-13  # relative error of the complex error function


def _normal(z: Complexes) -> Complexes:
    """Φ(z)."""
    out: Complexes = 0.5 * erfc(-z * math.sqrt(0.5))
    return out


@dataclass(frozen=True, slots=True)
class Window:
    """Outcomes of one step up to `cut`, blurred thresholds `low` < `high`; `high` is infinite in the topmost window."""

    pair: MixturePair
    cut: float
    low: float
    high: float
    blur: float
    tilt: float  # the Re t for which the nodes are laid
    depth: float  # log of one over the size below which the integrand near the cut may be dropped
    _laid: list[tuple[Nodes, Complexes, Complexes]] = field(default_factory=list, repr=False, compare=False)

    @property
    def _curve(self) -> Curve:
        return Curve(self.pair, self.cut)

    @property
    def _top(self) -> float:
        """How far from the real line everything is integrated: w₊ and w₋ stay in the right half plane."""
        return min(2.5, math.pi / 2 / self.pair.shift)

    @property
    def mass(self) -> float:
        """B(0), rounded up: P(xi + ω·Z > low)."""
        s, q, wide = self.pair.shift, self.pair.rate, math.hypot(1.0, self.blur)
        return float((1 - q) * ndtr(-self.low / wide) + q * ndtr((s - self.low) / wide)) * (1 + 1e-12)

    def _nodes(self) -> tuple[Nodes, Complexes, Complexes]:
        """Nodes of the curve at half height, and the weights of M and of B there."""
        if not self._laid:
            top = self._top
            step = math.pi * top / (top * top / 2 + (top / self.blur) ** 2 / 2 + _STRIP)
            nodes = self._curve.laid(top / 2, 2 * top / math.pi, step, self.tilt, self.depth)
            weight = np.exp(nodes.log_weight)
            low, high = self._beyond(nodes.xi)
            self._laid.append((nodes, weight * self._below(nodes.xi, high), weight * low))
        return self._laid[0]

    def _below(self, xi: Complexes, beyond: Complexes) -> Complexes:
        if math.isinf(self.high):
            return np.ones_like(xi)
        return np.where(xi.real > self.high, _normal((self.high - xi) / self.blur), 1 - beyond)

    def _beyond(self, xi: Complexes) -> tuple[Complexes, Complexes]:
        """The factor of B, and Φ((xi - high)/ω)."""
        low = _normal((xi - self.low) / self.blur)
        if math.isinf(self.high):
            return low, np.zeros_like(low)
        high = _normal((xi - self.high) / self.blur)
        right = _normal((self.high - xi) / self.blur) - _normal((self.low - xi) / self.blur)
        return np.where(2 * xi.real > self.low + self.high, right, low - high), high

    def _exponents(self, t: Complexes) -> tuple[Complexes, Complexes]:
        return 1 + t, -t if self.pair.kind == "replace" else np.zeros_like(t)

    @property
    def _cut_off(self) -> float:
        """∫φ of what M leaves out."""
        if math.isinf(self.high):
            return float(ndtr(-self.cut))
        return float(ndtr(-self.high / math.hypot(1.0, self.blur)))

    def moments(self, t: Complexes) -> tuple[Complexes, Complexes]:
        """M(t) - 1 and B(t), without the bounds of `errors`."""
        nodes, most, beyond = self._nodes()
        a, b = self._exponents(t)
        power = np.multiply.outer(a, nodes.up)
        if self.pair.kind == "replace":
            power += np.multiply.outer(b, nodes.down)
        rise = expm1(power)
        return rise @ most - self._cut_off, rise @ beyond + beyond.sum()

    def moments_on_line(self, spacing: float, count: int) -> tuple[Complexes, Complexes]:
        """`moments` at tilt + ik·spacing, k < count, as a matrix product; see `MixturePair.log_moments`."""
        nodes, most, beyond = self._nodes()
        block = max(1, math.isqrt(count))
        turn = nodes.up - nodes.down
        a, b = self._exponents(np.array([self.tilt]))
        turn = (1j * spacing * turn)[None]
        start = expm1(a[0] * nodes.up + b[0] * nodes.down)[None]
        fine = rises_of(turn, block + 1, squared=True)
        coarse = rises_of(block * turn, -(-count // block), start, fine[block:], squared=True)
        fine = fine[:block]
        found = []
        for weight in (most, beyond):
            m = (coarse * weight) @ fine.T + (coarse @ weight)[:, None] + fine @ weight
            found.append(m.ravel()[:count])
        return found[0] - self._cut_off, found[1] + beyond.sum()

    # --- what can go wrong -------------------------------------------------------------------------------------

    def errors(self, orders: Reals) -> Reals:
        """Bounds on the errors at each Re t in `orders`, a row each: of M, fixed and per |a| + |b|; of B likewise."""
        nodes, most, beyond = self._nodes()
        s, q, top = self.pair.shift, self.pair.rate, self._top
        rule = 1 / math.expm1(math.pi * top / nodes.step)
        wrong_m, wrong_b = self._ends(nodes, top / 2, orders)
        for edge in (0.0, top):
            size_m, size_b = self._sizes(nodes.tau, edge, orders)
            wrong_m, wrong_b = wrong_m + rule * size_m, wrong_b + rule * size_b
        # rounding: of the logs, of xi itself, of the weights and sums, and of the complex error function
        a, b = (w.real for w in self._exponents(orders.astype(complex)))
        moduli = np.multiply.outer(a, nodes.up.real) + np.multiply.outer(b, nodes.down.real)
        moduli = np.exp(np.minimum(moduli, 700.0))
        size = np.abs(nodes.xi)
        moved_up, moved_down = np.abs(nodes.v_up + q), np.abs(nodes.v_down + q) * (self.pair.kind == "replace")
        place = size + self.cut + nodes.kappa
        logs = np.abs(nodes.up) + np.abs(nodes.down)
        logs += s * place * (moved_up * np.exp(-nodes.up.real) + moved_down * np.exp(-nodes.down.real))
        each = 4 * UNIT * (64 + 16 * size * size + len(size))
        weight_m, weight_b = np.abs(most), np.abs(beyond)
        slope_m = np.maximum(1.0, moduli) @ (weight_m * logs * each)
        slope_b = np.maximum(1.0, moduli) @ (weight_b * logs * each)
        special = np.exp(nodes.log_weight.real) * self._bells(nodes.xi) * (8 * UNIT * place / self.blur + _SPECIAL)
        wrong_b = wrong_b + (1 + moduli) @ (weight_b * (each + _SPECIAL) + special)
        if math.isfinite(self.high):
            wrong_m = wrong_m + (1 + moduli) @ special
            wrong_m = wrong_m + float(ndtr(-self.cut) * ndtr((self.high - self.cut) / self.blur))
        return np.stack([wrong_m + 1e-12 * self._cut_off, slope_m, wrong_b, slope_b], axis=1)

    def _bells(self, xi: Complexes) -> Reals:
        """|φ| + |Φ|, the latter on its small side, at both thresholds: what errors of xi or of Φ are multiplied by."""
        total = np.full(len(xi), 1e-290)  # what underflows is lost altogether
        for threshold in (self.low, self.high):
            if math.isfinite(threshold):
                z = (xi - threshold) / self.blur
                growth = np.exp(np.minimum(z.imag**2 / 2, 600.0))
                total += growth * (np.exp(-(z.real**2) / 2) + ndtr(-np.abs(z.real)))
        return total

    def _factors(self, left: Reals, right: Reals, turn: Reals) -> tuple[Reals, Reals]:
        """log of bounds on the factors of M and of B for left ≤ Re xi ≤ right, 0 ≤ Im xi ≤ turn."""
        growth = (turn / self.blur) ** 2 / 2
        with np.errstate(divide="ignore"):
            up = np.log(ndtr((right - self.low) / self.blur) + 1e-300)
            if math.isinf(self.high):
                return np.zeros_like(growth), growth + up
            down = np.log(ndtr((self.high - left) / self.blur) + 1e-300)
        return growth + down, growth + np.minimum(up, down)

    def _flat(self, left: Reals, right: Reals, turn: Reals) -> Reals:
        """log of a bound on |φ| for left ≤ Re xi ≤ right, 0 ≤ Im xi ≤ turn."""
        near = np.where((left < 0) & (right > 0), 0.0, np.minimum(np.abs(left), np.abs(right)))
        out: Reals = (turn**2 - near**2) / 2 - math.log(2 * math.pi) / 2
        return out

    def _powers(self, right: Reals, turn: Reals, orders: Reals) -> Reals:
        """log of a bound on |w₊^a w₋^b| for Re xi ≤ right, 0 ≤ Im xi ≤ turn and t ≥ 0 real; a row for each order."""
        s, q = self.pair.shift, self.pair.rate
        out: Reals = np.multiply.outer(1 + orders, np.log1p(q * np.expm1(s * right - s * s / 2)))
        if self.pair.kind == "replace":
            shrunk = q * np.exp(np.minimum(-s * right - s * s / 2, 600.0))
            least = np.log((1 - q + shrunk * np.cos(s * turn)) ** 2 + (shrunk * np.sin(s * turn)) ** 2) / 2
            out -= np.multiply.outer(orders, least)
        return out

    def _cells(self, tau: Reals, height: float) -> tuple[Reals, Reals, Reals, Reals]:
        """Re xi at both ends of each cell, the largest Im xi in it, and log of a bound on its ∫|xi'|."""
        kappa = 2 * self._top / math.pi
        real, turn, slope = self._curve.at(kappa, tau, height)
        weight = slope + math.log(tau[1] - tau[0])
        weight[-1] = math.log(kappa) - tau[-1] / kappa  # all that lies right of the last node: |xi'| ≤ e^{-tau/κ}
        return real, np.append(real[1:], self.cut), turn, weight

    def _sizes(self, tau: Reals, edge: float, orders: Reals) -> tuple[Reals, Reals]:
        """Bounds on ∫ |φ xi' g (w^a - 1)| and ∫ |φ xi' b w^a| along Im v = edge: upper Riemann sums."""
        left, right, turn, weight = self._cells(tau, edge)
        factor_m, factor_b = self._factors(left, right, turn)
        powers = np.exp(np.minimum(self._powers(right, turn, orders), 700.0))
        flat = self._flat(left, right, turn) + weight
        # left of the first node |xi'| ≤ 1 and Re xi ≤ cut + tau, and the powers are no larger than there
        start, reach = np.array([self.cut + tau[0]]), np.array([edge])
        rest_m, rest_b = self._left(start, reach, orders)
        return (1 + powers) @ np.exp(factor_m + flat) + rest_m, powers @ np.exp(factor_b + flat) + rest_b

    def _left(self, start: Reals, reach: Reals, orders: Reals) -> tuple[Reals, Reals]:
        """Bounds on the same over all Re xi ≤ start, 0 ≤ Im xi ≤ reach: all factors but that of M are largest there."""
        size = math.exp(float(reach[0]) ** 2 / 2) * float(ndtr(start[0]))
        powers = np.exp(self._powers(start, reach, orders))[:, 0]
        growth = math.exp((float(reach[0]) / self.blur) ** 2 / 2)
        part = float(ndtr((start[0] - self.low) / self.blur))  # what lies left of `high` is no less further left
        return size * growth * (1 + powers), size * growth * part * powers

    def _ends(self, nodes: Nodes, height: float, orders: Reals) -> tuple[Reals, Reals]:
        """What the trapezoid sums leave out left and right of their nodes."""
        tau = nodes.tau[[0, -1]]
        real, turn, _ = self._curve.at(nodes.kappa, tau, height)
        left_m, left_b = self._left(np.array([self.cut + tau[0]]), np.array([height]), orders)
        last, cut, bend = real[1:], np.array([self.cut]), turn[1:]
        factor_m, factor_b = (math.exp(float(f[0])) for f in self._factors(last, cut, bend))
        powers = np.exp(np.minimum(self._powers(cut, bend, orders)[:, 0], 700.0))
        weight = nodes.kappa * math.exp(float(self._flat(last, cut, bend)[0]) - tau[1] / nodes.kappa)
        return left_m + weight * factor_m * (1 + powers), left_b + weight * factor_b * powers

    def decay(self, frequency: Reals) -> Reals:
        """log of a bound on |B(tilt + iv)| that holds for all v ≥ frequency."""
        s, q, order = self.pair.shift, self.pair.rate, np.array([self.tilt])
        start = max(self.low - 12 * self.blur, -9.0)
        step = self.blur / 4
        if 12 / self.blur < start + 3:
            return np.full(len(frequency), math.inf)
        end = 16 * 2 * self._top / math.pi
        tau = start - self.cut + step * np.arange(int((self.cut - start + end) / step) + 2)
        best = np.full(len(frequency), math.inf)
        for height in self._top * np.array([1.0, 0.7, 0.45, 0.25, 0.1]):
            left, right, turn, weight = self._cells(tau, height)
            size = self._flat(left, right, turn) + self._powers(right, turn, order)[0]
            size += self._factors(left, right, turn)[1] + weight
            after = np.append(turn[1:], 0.0)  # Im xi falls, and arg w rises with both Re xi and Im xi
            rho = q * np.exp(s * left - s * s / 2)
            bend = np.arctan2(rho * np.sin(s * after), 1 - q + rho * np.cos(s * after))
            if self.pair.kind == "replace":
                rho = q * np.exp(np.minimum(-s * right - s * s / 2, 600.0))
                bend += np.arctan2(rho * np.sin(s * after), 1 - q + rho * np.cos(s * after))
            begin, reach = left[:1], np.array([height])
            missed = self._flat(begin, begin, reach) + self._powers(begin, reach, order)[0]
            # to the left it falls by more than e per unit of tau; only Φ at `low` is used, which falls as well
            missed += self._factors(begin - 1e9, begin, reach)[1] + 1.0
            keep = size > size.max() - 80.0
            total = np.exp(size[keep] - np.multiply.outer(frequency, bend[keep])).sum(axis=1)
            best = np.minimum(best, total + np.exp(missed) + np.exp(size[~keep]).sum())
        out: Reals = np.log(best) + 1e-9
        return out
