"""What many checks share: the audit's grid, how often a rule is false on it, and from where on."""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from privet.accounting.theorems.gaussian_profile import delta_bounds, largest_mu, profile
from privet.lectures.noise_rules import rule

EPSILONS: tuple[float, ...] = (*np.geomspace(0.01, 10, 31).round(12).tolist(), 0.5, 2.0, 5.0)
DELTAS: tuple[float, ...] = tuple(10.0**-k for k in range(1, 13))
PAIRS: tuple[tuple[float, float], ...] = tuple((e, d) for e in EPSILONS for d in DELTAS)
"""The audit's grid: 34 epsilons in [0.01, 10], 12 deltas, 408 pairs."""

_FRONTIERS = (1e-1, 1e-3, 1e-5, 1e-8, 1e-12)

Multiplier = Callable[[float, float], float]
"""Noise ÷ (√steps × sensitivity) that a rule asks for at (epsilon, delta)."""


def scaled(name: str, constant: float, steps: int = 1) -> Multiplier:
    """Return the multiplier of a lecture's rule for `steps` steps, times a constant.

    >>> scaled("lemma_1_1", 0.5)(1.0, 1e-5) == rule("lemma_1_1").multiplier(1.0, 1e-5, 1) / 2
    True
    """
    return lambda e, d: constant * rule(name).multiplier(e, d, steps) / math.sqrt(steps)


def false_points(
    multiplier: Multiplier, pairs: Sequence[tuple[float, float]] = PAIRS
) -> tuple[tuple[float, float], ...]:
    """Return the pairs at which noise of that multiplier certainly is not (epsilon, delta)-private.

    Exact: T Gaussian releases are one, with μ = 1/multiplier, and the Gaussian profile is known to 1e-13.

    >>> len(false_points(lambda e, d: math.sqrt(2 * math.log(1 / d)) / e)), len(PAIRS)
    (18, 408)
    """

    def false(e: float, d: float) -> bool:
        if pairs is PAIRS and abs(exact_ratio(multiplier, e, d) - 1.0) > 1e-9:  # μ is known, to 1e-12
            return exact_ratio(multiplier, e, d) < 1.0
        return delta_bounds(1.0 / multiplier(e, d), e)[0] > d

    return tuple((e, d) for e, d in pairs if false(e, d))


@cache
def exact_mu(epsilon: float, delta: float) -> float:
    """Return `largest_mu`, found once: nine checks ask for it on the same grid.

    >>> exact_mu(1.0, 1e-5) == largest_mu(1.0, 1e-5)
    True
    """
    return largest_mu(epsilon, delta)


def least_ratio(multiplier: Multiplier) -> float:
    """Return the least `exact_ratio` on the grid."""
    return min(exact_ratio(multiplier, e, d) for e, d in PAIRS)


def exact_ratio(multiplier: Multiplier, epsilon: float, delta: float) -> float:
    """Return the rule's noise ÷ the least noise that is (epsilon, delta)-private; below 1 means not private.

    >>> f"{exact_ratio(lambda e, d: math.sqrt(math.log(1 / d)) / e, 1.0, 1e-5):.3f}"
    '0.910'
    """
    return multiplier(epsilon, delta) * exact_mu(epsilon, delta)


def first_false(multiplier: Multiplier, delta: float, *, most: float = 1000.0) -> float:
    """Return the epsilon from which on the rule is false at `delta`, to 1e-9 relative; infinite beyond `most`.

    For rules that ask for μ = cε, which are true up to one epsilon and false from there on.

    >>> f"{first_false(lambda e, d: math.sqrt(2 * math.log(1 / d)) / e, 1e-5):.2f}"
    '7.97'
    """
    low, high = 1e-6, most

    def false(epsilon: float) -> bool:
        return profile(1.0 / multiplier(epsilon, delta), epsilon) > delta

    if not false(high):
        return math.inf
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if false(middle) else (middle, high)
    return high


def first_falses(multiplier: Multiplier) -> dict[str, float]:
    """Return `first_false` at five deltas, by name."""
    return {f"first_false_at_{d:.0e}": first_false(multiplier, d) for d in _FRONTIERS}
