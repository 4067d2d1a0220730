"""How alike the answers to two tables must be that differ in so many records: what lower bounds draw on.

Two ways to be private, (ε, δ) and μ-Gaussian, and three numbers of each, all of them true for *every* mechanism that is
private in that way. Proofs: docs/proofs/lower.md, section 1 and 4.
"""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from privet import _checks
from privet.arrays import Vector
from privet.privacy import Neighbours, check_epsilon, sensitivity_factor

_WHY = "no mechanism is bounded by it"
_FAR = 600.0  # beyond it e^x is near the end of the floats, and two tables need not be alike at all


class Closeness(Protocol):
    """A promise of privacy for one record replaced, as lower bounds read it."""

    def under(self, neighbours: Neighbours) -> Self:
        """The promise for one record replaced that follows: what is replaced was zeroed out or removed between."""

    def overlap(self, k: int) -> float:
        """A lower bound on 1 − TV between the answers to two tables that differ in `k` records."""

    def loading(self, d: int) -> float:
        """κ: a bounded answer has E⟨w, x − p⟩ <= κ |w| with a record x of d fair-ish signs of mean p."""

    def quadratic(self, d: int, h: Vector) -> Vector:
        """What the same costs a mean squared error: the least of a² − 2h s(a)/d, from below, as a positive number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApproximateDP:
    """(epsilon, delta)-differential privacy; pure if delta is 0, the default.

    Examples
    --------
    >>> round(ApproximateDP(epsilon=1.0).overlap(1), 6)  # 2/(e + 1)
    0.537883
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        use = "Use 0 for pure privacy, or a delta well below 1/n."
        delta = _checks.between("delta", self.delta, 0, 1, closed=(True, False), because=_WHY, use=use)
        object.__setattr__(self, "delta", delta)

    def under(self, neighbours: Neighbours) -> "ApproximateDP":
        """Group privacy for two: (2ε, (1 + e^ε)δ)."""
        if sensitivity_factor(neighbours) == 2:
            return self
        delta = (1.0 + math.exp(min(self.epsilon, _FAR))) * self.delta
        return ApproximateDP(epsilon=2.0 * self.epsilon, delta=min(delta, 1.0 - 2.0**-53))

    def overlap(self, k: int) -> float:
        """e^{−mε} (o − 2δ_m), m = ⌊k/2⌋, δ_m = δ (e^{mε} − 1)/(e^ε − 1); o is 1, or 2(1 − δ)/(e^ε + 1) if k is odd."""
        half = k // 2
        apart = half * self.epsilon
        if self.epsilon > _FAR or apart > _FAR:
            return 0.0
        grown = self.delta * (math.expm1(apart) / math.expm1(self.epsilon) if self.epsilon > 0.0 else half)
        middle = 2.0 * (1.0 - self.delta) / (math.exp(self.epsilon) + 1.0) if k % 2 else 1.0
        return max(0.0, math.exp(-apart) * (middle - 2.0 * grown))

    def loading(self, d: int) -> float:
        """tanh(ε/2) √(1 + e^ε + 4dδ) + 4√d δ/(1 + e^ε)."""
        odds = 1.0 + math.exp(min(self.epsilon, _FAR))
        root = math.sqrt(odds + 4.0 * d * self.delta)
        return math.tanh(self.epsilon / 2.0) * root + 4.0 * math.sqrt(d) * self.delta / odds

    def quadratic(self, d: int, h: Vector) -> Vector:
        """(1 + e^ε) tanh²(ε/2) h²/d + (4dδ + 8hδ)/(1 + e^ε)."""
        odds = 1.0 + math.exp(min(self.epsilon, _FAR))
        own = odds * (math.tanh(self.epsilon / 2.0) * h) ** 2 / d
        return np.asarray(own + (4.0 * d + 8.0 * h) * self.delta / odds)


@dataclass(frozen=True, kw_only=True, slots=True)
class GaussianDP:
    """μ-Gaussian differential privacy: no easier to tell apart than N(0, 1) and N(μ, 1). What Gaussian noise gives.

    Examples
    --------
    >>> round(GaussianDP(mu=1.0).overlap(1), 6)  # 2Φ(−1/2)
    0.617075
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _checks.positive("mu", self.mu, because=_WHY, use="Use e.g. 0.25."))

    def under(self, neighbours: Neighbours) -> "GaussianDP":
        """Group privacy for two: 2μ."""
        return self if sensitivity_factor(neighbours) == 2 else GaussianDP(mu=2.0 * self.mu)

    def overlap(self, k: int) -> float:
        """2Φ(−kμ/2)."""
        return math.erfc(k * self.mu / math.sqrt(8.0))

    def loading(self, d: int) -> float:
        """The smaller of √χ² and √((μ²/4 + μ⁴/16)(2 + √(11χ²/3))), χ² = e^{μ²} − 1."""
        square = self.mu * self.mu
        if square > _FAR:
            return math.inf
        chi = math.sqrt(math.expm1(square))
        return min(chi, math.sqrt((square / 4.0 + square * square / 16.0) * (2.0 + math.sqrt(11.0 / 3.0) * chi)))

    def quadratic(self, d: int, h: Vector) -> Vector:
        """(e^{μ²} − 1) h²/d."""
        square = self.mu * self.mu
        return np.asarray((math.inf if square > _FAR else math.expm1(square)) * h * h / d)
