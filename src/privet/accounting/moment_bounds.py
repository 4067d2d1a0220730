"""Accountants that know a run by moments or by one number: Rényi, zCDP, Gaussian DP."""

import math
from collections.abc import Callable

import numpy as np

from privet.accounting import events as ev
from privet.accounting.interface import Bounds, no_theorem
from privet.accounting.pairs.dominating import Steps, directions, leaves, sensitivity
from privet.accounting.pairs.elementary import BoundedRangePair, ConcentratedBound
from privet.accounting.pairs.pair import Reals
from privet.accounting.renyi_orders import best_order, chernoff_epsilon, chernoff_log_delta, infinite_mass, largest_loss
from privet.accounting.theorems import conversions, gaussian_profile
from privet.privacy import Neighbours


def renyi(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """An upper bound by Rényi moments at the best order."""
    worst = 0.0
    for way in directions(run, neighbours):
        found = _moments(way.steps, delta, epsilon)
        plain = _concentrated(way.steps)
        if plain != way.steps:
            found = min(found, _moments(plain, delta, epsilon))
        worst = max(worst, found)
    return Bounds(0.0, worst)


def _moments(steps: Steps, delta: float | None, epsilon: float | None) -> float:
    """The same in one direction."""
    infinite = infinite_mass(steps) * (1 + 1e-14)
    top = largest_loss(steps)  # no finite loss is larger
    if infinite >= (delta if delta is not None else 1.0):
        return math.inf if delta is not None else 1.0
    if delta is not None:
        log_delta = math.log(delta - infinite)
        bound, order = _at_best(lambda t: chernoff_epsilon(steps, log_delta, t), steps, "epsilon", log_delta)
        return max(0.0, min(top, bound * (1 + 1e-14) + 1e-14 / order))
    at = epsilon or 0.0
    if at >= top:
        return infinite
    bound, order = _at_best(lambda t: chernoff_log_delta(steps, at, t), steps, "log_delta", at)
    log = max(-740.0, bound + 1e-13 * (1 + order * at))  # what underflows is not 0
    return min(1.0, infinite + math.exp(min(0.0, log)))


def _at_best(bound: Callable[[Reals], Reals], steps: Steps, objective: str, target: float) -> tuple[float, float]:
    """A bound at about its best order, and that order; at a smaller one where rounding leaves nothing of the first."""
    order = best_order(steps, objective, target, fine=True)
    for _ in range(12):
        found = float(bound(np.array([order]))[0])
        if found < math.inf:
            break
        order /= 4
    return found, order


def _concentrated(steps: Steps) -> Steps:
    """The run with what is known of exponential mechanisms from concentrated DP, docs/proofs/pairs.md, section 10.

    Their dominating pair has the worst loss at each k, which no one mechanism has at all: over many it costs more.
    """
    return tuple(
        (ConcentratedBound(conversions.bounded_range_rho(pair.epsilon)), count)
        if isinstance(pair, BoundedRangePair)
        else (pair, count)
        for pair, count in steps
    )


def _pure_epsilon(leaf: ev.Event, neighbours: Neighbours) -> float | None:
    """The epsilon of a part that is pure, if it is."""
    match leaf:
        case ev.Laplace(scale=scale):
            return sensitivity(neighbours) / scale if scale else math.inf
        case ev.Pure(epsilon=epsilon) | ev.ExponentialMechanism(epsilon=epsilon):
            return float(epsilon)
        case ev.DiscreteLaplace(scale=scale):
            return sensitivity(neighbours) / scale if scale else math.inf
        case ev.RandomizedResponse(epsilon=epsilon) | ev.KaryResponse(epsilon=epsilon) if neighbours != "add_remove":
            return float(epsilon)
    return None


def _rho(leaf: ev.Event, neighbours: Neighbours) -> float:
    match leaf:
        case ev.Gaussian(noise_multiplier=noise) | ev.DiscreteGaussian(noise_multiplier=noise):
            return conversions.gaussian_rho(sensitivity(neighbours) / noise) if noise else math.inf
        case ev.ZeroConcentrated(rho=rho):
            return float(rho)
        case ev.ExponentialMechanism(epsilon=epsilon):
            return conversions.bounded_range_rho(float(epsilon))
    pure = _pure_epsilon(leaf, neighbours)
    if pure is None:
        raise no_theorem("zcdp", f"{leaf!r} has no zCDP bound")
    return conversions.pure_rho(pure) if math.isfinite(pure) else math.inf


def zcdp(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """An upper bound by zero-concentrated DP."""
    directions(run, neighbours)
    rho = math.fsum(count * _rho(leaf, neighbours) for leaf, count in leaves(run, neighbours)) * (1 + 1e-15)
    if rho == 0:
        return Bounds(0.0, 0.0)
    if math.isinf(rho):
        return Bounds(0.0, math.inf if delta is not None else 1.0)
    if delta is not None:
        return Bounds(0.0, conversions.zcdp_epsilon(rho, delta=delta))
    gap = (epsilon or 0.0) - rho
    return Bounds(0.0, math.exp(max(-740.0, -gap / rho * gap / 4 * (1 - 1e-13))) if gap > 0 else 1.0)


def gdp(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """An upper bound by Gaussian DP."""
    directions(run, neighbours)
    sizes = []
    for leaf, count in leaves(run, neighbours):
        if isinstance(leaf, ev.Gaussian):
            mu = sensitivity(neighbours) / leaf.noise_multiplier if leaf.noise_multiplier else math.inf
        else:
            pure = _pure_epsilon(leaf, neighbours)
            if pure is None:
                raise no_theorem("gdp", f"{leaf!r} has no Gaussian-DP bound (a central limit is not one)")
            mu = conversions.pure_mu(pure) if math.isfinite(pure) else math.inf
        sizes.append(math.sqrt(count) * mu)
    mu = math.hypot(*sizes) * (1 + 1e-15)
    if math.isinf(mu):
        return Bounds(0.0, math.inf if delta is not None else 1.0)
    high = (
        gaussian_profile.epsilon_bounds(mu, delta)
        if delta is not None
        else gaussian_profile.delta_bounds(mu, epsilon or 0.0)
    )
    return Bounds(0.0, high[1])
