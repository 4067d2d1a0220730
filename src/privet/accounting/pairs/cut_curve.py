"""Outcomes up to a cut, on a curve in the complex plane that ends there.

Integrals over xi ≤ cut become integrals over the whole line by

    xi(v) = cut - κ·log(1 + e^{-v/κ}),      xi'(v) = 1/(1 + e^{v/κ}).

On Im v = y, 0 ≤ y ≤ κπ/2: 0 ≤ Im xi ≤ y, Re xi ≤ cut, and Re xi rises with Re v and with y, Im xi falls with Re v and
rises with y, |xi'| falls with Re v and rises with y. docs/proofs/rare.md, section 2.
"""

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Complexes, Reals

_LEFT = 60.0  # log of one over the size of φ left of the first node
_MOST_NODES = 20_000
_MOST_POWER = 600.0


@dataclass(slots=True)
class Nodes:
    """Equally spaced nodes on the curve Im v = height, with everything that does not depend on t."""

    tau: Reals  # Re v
    xi: Complexes
    log_weight: Complexes  # log of h·φ(xi)·xi'
    up: Complexes  # log w₊
    down: Complexes  # log w₋
    v_up: Complexes  # w₊ - 1
    v_down: Complexes  # w₋ - 1
    step: float
    kappa: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The outcomes xi ≤ cut of a "remove" or "replace" mixture."""

    pair: MixturePair
    cut: float

    @property
    def highest(self) -> float:
        """The loss at the cut, rounded up."""
        s, q, x = self.pair.shift, self.pair.rate, self.cut
        up = math.log1p(q * math.expm1(s * x - s * s / 2))
        down = math.log1p(q * math.expm1(-s * x - s * s / 2)) if self.pair.kind == "replace" else 0.0
        return up - down + 1e-13 * (abs(up) + abs(down) + q * s * abs(x))

    def laid(
        self, height: float, kappa: float, step: float, most: float, depth: float, count: int | None = None
    ) -> Nodes:
        """Nodes wide enough for orders 0 ≤ Re t ≤ most; near the cut, what is below e^-depth is dropped."""
        s, q, cut = self.pair.shift, self.pair.rate, self.cut
        if most * self.highest > _MOST_POWER:
            raise OverflowError(f"moments of order {most:.3g} are too large to compute")
        left = -math.sqrt(2 * _LEFT) - (s if self.pair.kind == "replace" else 0.0) - cut
        right = kappa * max(3.0, depth - cut * cut / 2 + (1 + most) * self.highest)
        count = count or int((right - left) / step) + 2
        if count > _MOST_NODES:
            raise OverflowError(f"an order of {most:.3g} needs {count} quadrature nodes")
        tau = left + step * np.arange(count)
        v = tau + 1j * height
        bend = log1p(np.exp(np.where(tau < 0, v, -v) / kappa))
        xi = cut + np.where(tau < 0, v, 0.0) - kappa * bend
        v_up = q * expm1(s * xi - s * s / 2)
        v_down = q * expm1(-s * xi - s * s / 2) if self.pair.kind == "replace" else np.zeros_like(v_up)
        log_weight = -xi * xi / 2 - np.where(tau < 0, 0.0, v / kappa) - bend + math.log(step / math.sqrt(2 * math.pi))
        return Nodes(tau, xi, log_weight, log1p(v_up), log1p(v_down), v_up, v_down, step, kappa)

    def at(self, kappa: float, tau: Reals, height: float) -> tuple[Reals, Reals, Reals]:
        """Re xi, Im xi and log |xi'| at v = tau + i·height, 0 ≤ height ≤ κπ/2."""
        angle = height / kappa
        ratio = np.exp(-np.abs(tau) / kappa)
        bend = np.log1p(2 * ratio * math.cos(angle) + ratio * ratio) / 2
        turn = np.where(
            tau < 0,
            np.arctan2(math.sin(angle), ratio + math.cos(angle)),
            np.arctan2(ratio * math.sin(angle), 1 + ratio * math.cos(angle)),
        )
        real = self.cut + np.minimum(tau, 0.0) - kappa * bend
        return real, kappa * turn, -bend - np.maximum(tau, 0.0) / kappa
