"""The privacy cost of a tilted objective: what one record can change in the law of its exact minimiser."""

from __future__ import annotations

import math

from privet.accounting.numerics import downward, upward
from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu
from privet.privacy import Neighbours, check_neighbours


def tilt_epsilon(*, noise_multiplier: float, jacobian: float, delta: float, neighbours: Neighbours) -> float:
    """The epsilon of the exact minimiser of a tilted objective at `delta`; rounded upwards.

    With μ = 1/noise_multiplier, H the Gaussian profile and J = `jacobian`, δ(ε) is at most
    max(H(μ, ε − J), 2 H(μ, ε)) if a record is zeroed out, added or removed and ε − J ≥ μ²/2, and at most 2 H(2μ, ε − J)
    if one is replaced and (ε − J)² ≥ 4μ⁴ + 4μ².
    Theorem: docs/proofs/perturbation.md, section 3. The first sharpens Redberg, Koskela and Wang 2023 ("Improving
    the privacy and practicality of objective perturbation"), who have 2 H(μ, ε + log(1 − smoothness/strength)), and is
    attained for small J; the second extends it to records replaced.

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
