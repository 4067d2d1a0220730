"""Accountants that know a run by moments or by one number: Rényi, zCDP, Gaussian DP."""

import math

import numpy as np

from privet.accounting import events as ev
from privet.accounting.interface import Bounds, no_theorem
from privet.accounting.pairs.dominating import directions, leaves, sensitivity
from privet.accounting.renyi_orders import best_order, chernoff_epsilon, chernoff_log_delta, infinite_mass, largest_loss
from privet.accounting.theorems import conversions, gaussian_profile
from privet.privacy import Neighbours


def renyi(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """An upper bound by Rényi moments at the best order."""
    worst = 0.0
    for way in directions(run, neighbours):
        infinite = infinite_mass(way.steps) * (1 + 1e-14)
        top = largest_loss(way.steps)  # no finite loss is larger
        if infinite >= (delta if delta is not None else 1.0):
            worst = math.inf if delta is not None else 1.0
        elif delta is not None:
            log_delta = math.log(delta - infinite)
            order = best_order(way.steps, "epsilon", log_delta, fine=True)
            bound = float(chernoff_epsilon(way.steps, log_delta, np.array([order]))[0])
            worst = max(worst, min(top, bound * (1 + 1e-14) + 1e-14 / order))
        elif (epsilon or 0.0) >= top:
            worst = max(worst, infinite)
        else:
            order = best_order(way.steps, "log_delta", epsilon or 0.0, fine=True)
            bound = float(chernoff_log_delta(way.steps, epsilon or 0.0, np.array([order]))[0])
            log = max(-740.0, bound + 1e-13 * (1 + order * (epsilon or 0.0)))  # what underflows is not 0
            worst = max(worst, min(1.0, infinite + math.exp(min(0.0, log))))
    return Bounds(0.0, max(0.0, worst))


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
