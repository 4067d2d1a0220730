"""The price of a tilted objective: what one record can change in the law of its exact minimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Approximate, Event, Gaussian
from privet.accounting.numerics import downward, upward
from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu
from privet.clipping.rules import FloatArray
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_neighbours
from privet.randomness import Random

__all__ = ["InsideObjective", "Tilted", "tilt_epsilon", "tilt_multiplier"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tilted:
    """How one record is bounded inside a tilted objective: by a clip on its gradient, and its loss's smoothness.

    Examples
    --------
    >>> Tilted(clip=1.0, strength=2.5, tolerance=1e-9, blur=1e-6).clip
    1.0
    """

    clip: float
    strength: float
    tolerance: float
    blur: float

    def factor(self, norms: FloatArray) -> FloatArray | None:
        return None

    def describe(self) -> str:
        return (
            f"the loss is convex and as smooth as it declares, each gradient is clipped to norm {self.clip:g}, the sum "
            f"of losses has a penalty of strength {self.strength:g}, the minimiser is computed to within "
            f"{self.tolerance:.3g}, which is certified, and noise of standard deviation {self.blur:.3g} hides the rest"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class InsideObjective:
    """All records once, inside an objective with a random linear term; what a `Plan` needs to price that.

    A mechanism `Gaussian(noise_multiplier=σ/clip)` means here that the tilt has standard deviation σ.
    `jacobian` is log(1 + smoothness/strength). The blur, Gaussian noise for what the solver left over, costs
    (`blur_epsilon`, `blur_delta`) by itself, and basic composition adds it.

    Examples
    --------
    >>> inside = InsideObjective(jacobian=0.05, delta=1e-6, blur_epsilon=0.04, blur_delta=1e-8)
    >>> inside.event(Gaussian(noise_multiplier=10.0), steps=1, records=100, neighbours="replace_one")
    Approximate(epsilon=0.9..., delta=1.01...e-06)
    """

    jacobian: float
    delta: float
    blur_epsilon: float
    blur_delta: float

    def indices(self, count: int, step: int, random: Random) -> NDArray[np.int64] | None:
        return None

    def event(self, mechanism: Event, *, steps: int, records: int, neighbours: Neighbours) -> Event:
        if steps != 1 or not isinstance(mechanism, Gaussian):
            raise InvalidParameter(
                f"Expected one Gaussian tilt, got {steps} of {type(mechanism).__name__}: the proof is for one. "
                "Solve again with a budget of its own."
            )
        tilt = tilt_epsilon(
            noise_multiplier=mechanism.noise_multiplier,
            jacobian=self.jacobian,
            delta=self.delta,
            neighbours=neighbours,
        )
        return Approximate(epsilon=upward(tilt + self.blur_epsilon), delta=upward(self.delta + self.blur_delta))

    def batch_size(self, records: int) -> float:
        return float(records)

    def most(self, records: int) -> int | None:
        return records


def tilt_epsilon(*, noise_multiplier: float, jacobian: float, delta: float, neighbours: Neighbours) -> float:
    """The epsilon of the exact minimiser of a tilted objective at `delta`; rounded upwards.

    With μ = 1/noise_multiplier, H the Gaussian profile and J = `jacobian`, δ(ε) is at most
    max(H(μ, ε − J), 2 H(μ, ε)) if a record is emptied, added or removed and ε − J ≥ μ²/2, and at most 2 H(2μ, ε − J)
    if one is exchanged and (ε − J)² ≥ 4μ⁴ + 4μ².
    Theorem: docs/proofs/perturbation.md, section 3. The first sharpens Redberg, Koskela and Wang 2023 ("Improving
    the privacy and practicality of objective perturbation"), who have 2 H(μ, ε + log(1 − smoothness/strength)), and is
    attained for small J; the second extends it to records exchanged.

    Parameters
    ----------
    noise_multiplier : standard deviation of the tilt ÷ clip
    jacobian : log(1 + smoothness/strength), both of the sum: what the change of variables can add

    Examples
    --------
    >>> known = dict(noise_multiplier=8.0, jacobian=0.05, delta=1e-6)
    >>> [round(tilt_epsilon(**known, neighbours=name), 4) for name in ("add_remove", "replace_one")]
    [0.5539, 1.1484]
    """
    mu = upward(1.0 / noise_multiplier)
    if check_neighbours(neighbours) == "replace_one":
        gaussian = epsilon_bounds(2.0 * mu, delta / 2.0)[1]
        return upward(jacobian + max(gaussian, 2.0 * mu * math.sqrt(1.0 + mu * mu)))
    inside = jacobian + max(epsilon_bounds(mu, delta)[1], mu * mu / 2.0)
    return upward(max(inside, epsilon_bounds(mu, delta / 2.0)[1]))


def tilt_multiplier(*, epsilon: float, jacobian: float, delta: float, neighbours: Neighbours) -> float:
    """The least noise multiplier of a tilt that meets (epsilon, delta), rounded upwards; infinite if none does.

    The inverse of `tilt_epsilon`.

    Examples
    --------
    >>> round(tilt_multiplier(epsilon=1.0, jacobian=0.05, delta=1e-6, neighbours="replace_one"), 4)
    9.1579
    """
    left = downward(epsilon) - upward(jacobian)
    if left <= 0.0:
        return math.inf
    left = downward(left)
    if check_neighbours(neighbours) == "replace_one":
        convex = left / math.sqrt(2.0 * (1.0 + math.hypot(1.0, left)))  # where left² = 4μ⁴ + 4μ²
        largest = min(largest_mu(left, delta / 2.0) / 2.0, convex)
    else:
        largest = min(largest_mu(left, delta), largest_mu(downward(epsilon), delta / 2.0), math.sqrt(2.0 * left))
    return upward(upward(1.0 / downward(largest))) if largest > 0.0 else math.inf
