"""Events: what ran, as an immutable tree that says nothing of its privacy cost.

An event's meaning never changes; a new meaning is a new event. Sizes are in units of the clip, so that the
same event can be asked about under any of the three neighbour relations (see :mod:`privet.privacy`). Where a size is in
another unit, which fits one relation only, the event says which: `.under`.
"""

from dataclasses import dataclass

from privet.accounting.event_algebra import (
    MOST_STEPS,
    Allocated,
    Composed,
    Event,
    FixedSizeSampled,
    NegativeBinomialTrials,
    PoissonSampled,
    PoissonTrials,
    Repeated,
    Under,
    count,
    real,
    relations,
)
from privet.errors import InvalidParameter

__all__ = [
    "MOST_STEPS",
    "Allocated",
    "Approximate",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "ExponentialMechanism",
    "FixedSizeSampled",
    "Gaussian",
    "KaryResponse",
    "Laplace",
    "NegativeBinomialTrials",
    "PoissonSampled",
    "PoissonTrials",
    "Pure",
    "RandomizedResponse",
    "Repeated",
    "Under",
    "ZeroConcentrated",
    "relations",
]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Gaussian(Event):
    """A clipped sum with Gaussian noise of standard deviation `noise_multiplier` × clip on every coordinate."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        real(self, "noise_multiplier", unit="noise stddev ÷ clip", up=False)

    def __repr__(self) -> str:
        return f"Gaussian(noise_multiplier={self.noise_multiplier!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Laplace(Event):
    """A sum clipped in l1 norm, with Laplace noise of scale `scale` × clip on every coordinate."""

    scale: float

    def __post_init__(self) -> None:
        real(self, "scale", unit="Laplace scale ÷ clip", up=False)

    def __repr__(self) -> str:
        return f"Laplace(scale={self.scale!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class RandomizedResponse(Event):
    """Each record answers a question, truly with odds e^epsilon : 1 against each other answer."""

    epsilon: float

    def __post_init__(self) -> None:
        real(self, "epsilon", unit="log odds of the true answer")

    def __repr__(self) -> str:
        return f"RandomizedResponse(epsilon={self.epsilon!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class KaryResponse(Event):
    """Each record gives one of `answers` answers, the true one with odds e^epsilon : 1 against each other one."""

    epsilon: float
    answers: int

    def __post_init__(self) -> None:
        real(self, "epsilon", unit="log odds of the true answer")
        count(self, "answers", least=2, because="with one answer there is no question", use="Count all answers.")

    def __repr__(self) -> str:
        return f"KaryResponse(epsilon={self.epsilon!r}, answers={self.answers!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class DiscreteLaplace(Event):
    """One whole-number sum of records within ±`clip` units each, plus noise z with P(z) ∝ exp(−|z| ÷ (scale × clip)).

    The scale is in units of the clip, as that of `Laplace` is; the clip is a whole number of units of the grid.
    """

    scale: float
    clip: int = 1

    def __post_init__(self) -> None:
        real(self, "scale", unit="Laplace scale ÷ clip", up=False)
        count(self, "clip", because="sums on a grid move by whole units", use="Use 1 for a count of records.")

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={self.scale!r}, clip={self.clip!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class DiscreteGaussian(Event):
    """A clipped sum on a grid, with discrete Gaussian noise on every coordinate, in the same grid.

    The noise is z with P(z) ∝ exp(−z²/2s²), s = noise_multiplier × clip; its standard deviation is a little below s.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        real(self, "noise_multiplier", unit="noise parameter ÷ clip", up=False)

    def __repr__(self) -> str:
        return f"DiscreteGaussian(noise_multiplier={self.noise_multiplier!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Pure(Event):
    """Any mechanism that is known to be (epsilon, 0)-private for the neighbours it is asked about under."""

    epsilon: float

    def __post_init__(self) -> None:
        real(self, "epsilon", unit="nats")

    def __repr__(self) -> str:
        return f"Pure(epsilon={self.epsilon!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Approximate(Event):
    """Any mechanism that is known to be (epsilon, delta)-private for the neighbours it is asked about under."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        real(self, "epsilon", unit="nats")
        real(self, "delta", unit="a probability")
        if self.delta >= 1:
            raise InvalidParameter(
                f"Expected delta below 1, got {self.delta!r}: such a mechanism may publish everything. "
                "Use the delta that its proof states."
            )

    def __repr__(self) -> str:
        return f"Approximate(epsilon={self.epsilon!r}, delta={self.delta!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ExponentialMechanism(Event):
    """A choice with probability ∝ exp(epsilon · score / (2 · sensitivity)): epsilon-bounded range."""

    epsilon: float

    def __post_init__(self) -> None:
        real(self, "epsilon", unit="nats")

    def __repr__(self) -> str:
        return f"ExponentialMechanism(epsilon={self.epsilon!r})"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ZeroConcentrated(Event):
    """Any mechanism that is known to be rho-zCDP for the neighbours it is asked about under."""

    rho: float

    def __post_init__(self) -> None:
        real(self, "rho", unit="zCDP's rho, mu²/2 for Gaussian noise")

    def __repr__(self) -> str:
        return f"ZeroConcentrated(rho={self.rho!r})"
