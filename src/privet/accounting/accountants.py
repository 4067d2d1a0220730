"""The accountants by name: each prices a run by one theorem, or says why that theorem does not apply.

| name | theorem | prices |
|---|---|---|
| closed | Balle and Wang 2018; hockey stick of one step; Kairouz, Oh and Viswanath 2017 | Gaussian runs, one step, equal (epsilon, delta) steps |
| contour | docs/proofs/contour.md | every run with dominating pairs whose loss is not made of many atoms |
| fourier | docs/proofs/fourier.md; the lectures' accountant | every run with dominating pairs |
| renyi | Mironov 2017, conversion of Canonne, Kamath and Steinke 2020 | everything |
| zcdp | Bun and Steinke 2016 | Gaussian, pure, bounded-range and zCDP parts without sampling |
| gdp | Dong, Roth and Su 2022 | Gaussian and pure parts without sampling |
| basic, advanced, optimal | Dwork et al. 2006; Kairouz, Oh and Viswanath 2017 | parts with an epsilon of their own; optimal: equal ones |
"""  # noqa: E501  # one row an accountant

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privet.accounting import composition, conversions, gaussian
from privet.accounting import events as ev
from privet.accounting.contour import (
    Steps,
    best_order,
    chernoff_epsilon,
    chernoff_log_delta,
    contour_delta,
    contour_epsilon,
    infinite_mass,
)
from privet.accounting.fourier import fourier_delta, fourier_epsilon
from privet.accounting.numerics import bracketed_root
from privet.accounting.pairs.base import Pair
from privet.accounting.pairs.dominating import Direction, directions, leaves
from privet.accounting.pairs.simple import ConcentratedBound, GaussianPair
from privet.errors import NoProvenBound
from privet.privacy import Neighbours

__all__ = ["ACCOUNTANTS", "THEOREMS", "Bounds", "Uncertified", "price_delta", "price_epsilon"]


class Bounds(NamedTuple):
    """An interval that holds the truth; `lower` is 0 where an accountant proves nothing from below.

    Examples
    --------
    >>> Bounds(lower=1.0, upper=1.5).upper
    1.5
    """

    lower: float
    upper: float


class Uncertified(Exception):
    """This engine cannot certify this run; another one must. A signal between accountants, never seen by users."""


THEOREMS = {
    "closed": "exact closed form",
    "contour": "certified contour integral of the moments, docs/proofs/contour.md",
    "fourier": "dominating and dominated lattice laws composed by FFT, docs/proofs/fourier.md",
    "renyi": "Rényi moments, Mironov 2017 with the conversion of Canonne, Kamath and Steinke 2020",
    "zcdp": "concentrated DP, Bun and Steinke 2016",
    "gdp": "Gaussian DP, Dong, Roth and Su 2022",
    "basic": "basic composition, Dwork et al. 2006",
    "advanced": "advanced composition, Kairouz, Oh and Viswanath 2017, theorem 3.5",
    "optimal": "optimal composition, Kairouz, Oh and Viswanath 2017, theorem 3.3",
}


def _no(name: str, why: str) -> NoProvenBound:
    return NoProvenBound(
        f"Expected a run that the {name!r} accountant has a theorem for, got one where {why}: "
        "its number would not be a bound. Use accountant='auto'."
    )


# --- closed forms ---------------------------------------------------------------------------------------------------


def _stick(pair: Pair, epsilon: float) -> tuple[float, float]:
    """(lower, upper) on the hockey stick of one step; the threshold is optimal, so its rounding is of second order."""
    p, q = (float(tail[0]) for tail in pair.above(np.array([epsilon])))
    scaled = math.exp(min(epsilon, 700.0)) * q if q else 0.0
    value, slack = pair.infinite + p - scaled, 3e-14 * (pair.infinite + p + scaled)
    return max(pair.infinite * (1 - 1e-15), value - slack, 0.0), min(1.0, max(value + slack, 0.0))


def _one_step_epsilon(pair: Pair, delta: float) -> Bounds:
    if isinstance(pair, GaussianPair):
        return Bounds(*gaussian.epsilon_bounds(pair.mu, delta))
    if delta < pair.infinite * (1 - 1e-15):
        return Bounds(math.inf, math.inf)

    def root(side: int) -> float:
        if _stick(pair, 0.0)[side] <= delta:
            return 0.0
        top = 1.0
        while _stick(pair, top)[side] > delta:
            top *= 2.0
            if top > 1e6:
                return math.inf
        safe, unsafe = bracketed_root(lambda e: _stick(pair, e)[side] - delta, top, 0.0, tolerance=1e-14)
        return safe if side else unsafe

    return Bounds(min(root(0), root(1)), root(1))


def _equal_answers(run: ev.Event, neighbours: Neighbours) -> tuple[composition.Cost, ...]:
    """The one (epsilon, delta) whose equal, unsampled copies make up the run, if so."""
    parts = leaves(run)
    if len(parts) != 1:
        return ()
    leaf, count = parts[0]
    match leaf:
        case ev.Pure(epsilon=epsilon) | ev.RandomizedResponse(epsilon=epsilon):
            directions(run, neighbours)  # refuses what has no pair
            return (composition.Cost(float(epsilon), 0.0, count),)
        case ev.Approximate(epsilon=epsilon, delta=delta):
            return (composition.Cost(float(epsilon), float(delta), count),)
    return ()


def _gaussian_mu(ways: tuple[Direction, ...]) -> float | None:
    """mu of a run of Gaussian steps only: T Gaussian releases are exactly one, with mu² = Σ mu_i²."""
    pairs = ways[0].steps
    if len(ways) > 1 or not all(isinstance(pair, GaussianPair) for pair, _ in pairs):
        return None
    total = math.fsum(count * pair.mu**2 for pair, count in pairs if isinstance(pair, GaussianPair))
    return math.sqrt(total) * (1 + 4e-16)


def _closed(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    ways = directions(run, neighbours)
    mu = _gaussian_mu(ways)
    if mu is not None:
        if delta is not None:
            low, high = gaussian.epsilon_bounds(mu, delta)
            return Bounds(low * (1 - 1e-14), high)
        low, high = gaussian.delta_bounds(mu, epsilon or 0.0)
        return Bounds(low * (1 - 1e-12), high)
    for cost in _equal_answers(run, neighbours):
        if delta is not None:
            high = composition.optimal_epsilon(cost.epsilon, cost.delta, cost.times, delta=delta)
            low = high * (1 - 1e-9) if math.isfinite(high) else _infinite_from_below(ways[0].steps, delta)
            if math.isfinite(high) and high > 0:
                there = composition.optimal_delta(cost.epsilon, cost.delta, cost.times, epsilon=low)
                low = low if there * (1 - 1e-10) > delta else 0.0
            return Bounds(low, high)
        high = composition.optimal_delta(cost.epsilon, cost.delta, cost.times, epsilon=epsilon or 0.0)
        return Bounds(high * (1 - 1e-9), high)
    if all(len(way.steps) == 1 and way.steps[0][1] == 1 for way in ways):
        pairs = [way.steps[0][0] for way in ways]
        if not any(isinstance(pair, ConcentratedBound) for pair in pairs):
            if delta is not None:
                return _worst([_one_step_epsilon(pair, delta) for pair in pairs])
            return _worst([Bounds(*_stick(pair, epsilon or 0.0)) for pair in pairs])
    raise _no("closed", "neither all parts are Gaussian, nor is there one step only, nor are all steps equal answers")


def _infinite_from_below(steps: Steps, delta: float) -> float:
    return math.inf if infinite_mass(steps) * (1 - 1e-14) > delta else 0.0


def _worst(bounds: list[Bounds]) -> Bounds:
    return Bounds(float(max(b.lower for b in bounds)), float(max(b.upper for b in bounds)))


# --- engines --------------------------------------------------------------------------------------------------------


def _paired(run: ev.Event, neighbours: Neighbours, name: str) -> tuple[Direction, ...]:
    ways = directions(run, neighbours)
    if any(isinstance(pair, ConcentratedBound) for way in ways for pair, _ in way.steps):
        raise _no(name, "a part is known by its zCDP only, which does not determine its loss")
    return ways


def _contour(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    return _engine(run, neighbours, delta, epsilon, "contour", _contour_epsilon, _contour_delta)


def _fourier(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    return _engine(run, neighbours, delta, epsilon, "fourier", fourier_epsilon, fourier_delta)


def _contour_epsilon(steps: Steps, delta: float) -> tuple[float, float]:
    found = contour_epsilon(steps, delta)
    if found is None:
        raise Uncertified
    return found


def _contour_delta(steps: Steps, epsilon: float) -> tuple[float, float]:
    found = contour_delta(steps, epsilon)
    if found is None:
        raise Uncertified
    return found


Engine = Callable[[Steps, float], tuple[float, float]]


def _engine(
    run: ev.Event,
    neighbours: Neighbours,
    delta: float | None,
    epsilon: float | None,
    name: str,
    epsilon_by: Engine,
    delta_by: Engine,
) -> Bounds:
    """Price the worse direction; the other is dropped early where its Rényi bound shows that it is the better."""
    ways = _paired(run, neighbours, name)
    if any(pair.infinite == 1.0 for way in ways for pair, _ in way.steps):
        return Bounds(math.inf, math.inf) if delta is not None else Bounds(1.0, 1.0)
    worst = Bounds(0.0, 0.0)
    for way in ways:
        if delta is not None:
            if worst.lower > 0 and _surely_below(way.steps, worst.lower, delta):
                continue
            low, high = epsilon_by(way.steps, delta)
        else:
            low, high = delta_by(way.steps, epsilon or 0.0)
        worst = Bounds(max(worst.lower, float(low)), max(worst.upper, float(high)))
    return worst


def _surely_below(steps: Steps, epsilon: float, delta: float) -> bool:
    """Whether a Rényi bound already proves delta(epsilon) ≤ delta in this direction."""
    infinite = infinite_mass(steps)
    if epsilon >= sum(count * pair.highest for pair, count in steps):
        return infinite * (1 + 1e-14) <= delta
    order = best_order(steps, "log_delta", epsilon)
    bound = float(chernoff_log_delta(steps, epsilon, np.array([order]))[0])
    return infinite + math.exp(min(bound, 0.0)) <= delta * (1 - 1e-14)


# --- moments --------------------------------------------------------------------------------------------------------


def _renyi(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    worst = 0.0
    for way in directions(run, neighbours):
        infinite = infinite_mass(way.steps) * (1 + 1e-14)
        if infinite >= (delta if delta is not None else 1.0):
            worst = math.inf if delta is not None else 1.0
        elif delta is not None:
            log_delta = math.log(delta - infinite)
            order = best_order(way.steps, "epsilon", log_delta, fine=True)
            bound = float(chernoff_epsilon(way.steps, log_delta, np.array([order]))[0])
            worst = max(worst, bound * (1 + 1e-14) + 1e-14 / order)
        else:
            order = best_order(way.steps, "log_delta", epsilon or 0.0, fine=True)
            bound = float(chernoff_log_delta(way.steps, epsilon or 0.0, np.array([order]))[0])
            worst = max(worst, min(1.0, infinite + math.exp(min(0.0, bound + 1e-13 * (1 + order * (epsilon or 0.0))))))
    return Bounds(0.0, max(0.0, worst))


def _pure_epsilon(leaf: ev.Event, neighbours: Neighbours) -> float | None:
    """The epsilon of a part that is pure, if it is."""
    sensitivity = 2.0 if neighbours == "replace_one" else 1.0
    match leaf:
        case ev.Laplace(scale=scale):
            return sensitivity / scale if scale else math.inf
        case ev.Pure(epsilon=epsilon) | ev.ExponentialMechanism(epsilon=epsilon):
            return float(epsilon)
        case ev.RandomizedResponse(epsilon=epsilon) if neighbours != "add_remove":
            return float(epsilon)
    return None


def _rho(leaf: ev.Event, neighbours: Neighbours) -> float:
    sensitivity = 2.0 if neighbours == "replace_one" else 1.0
    match leaf:
        case ev.Gaussian(noise_multiplier=noise):
            return conversions.gaussian_rho(sensitivity / noise) if noise else math.inf
        case ev.ZeroConcentrated(rho=rho):
            return float(rho)
        case ev.ExponentialMechanism(epsilon=epsilon):
            return conversions.bounded_range_rho(float(epsilon))
    pure = _pure_epsilon(leaf, neighbours)
    if pure is None:
        raise _no("zcdp", f"{leaf!r} has no zCDP bound")
    return conversions.pure_rho(pure) if math.isfinite(pure) else math.inf


def _zcdp(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    directions(run, neighbours)
    rho = math.fsum(count * _rho(leaf, neighbours) for leaf, count in leaves(run)) * (1 + 1e-15)
    if math.isinf(rho):
        return Bounds(0.0, math.inf if delta is not None else 1.0)
    if delta is not None:
        return Bounds(0.0, conversions.zcdp_epsilon(rho, delta=delta))
    gap = (epsilon or 0.0) - rho
    return Bounds(0.0, math.exp(-(gap**2) / (4 * rho) * (1 - 1e-13)) if gap > 0 else 1.0 if rho else 0.0)


def _gdp(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    directions(run, neighbours)
    sensitivity = 2.0 if neighbours == "replace_one" else 1.0
    squares = []
    for leaf, count in leaves(run):
        if isinstance(leaf, ev.Gaussian):
            mu = sensitivity / leaf.noise_multiplier if leaf.noise_multiplier else math.inf
        else:
            pure = _pure_epsilon(leaf, neighbours)
            if pure is None:
                raise _no("gdp", f"{leaf!r} is not known to be Gaussian-DP (a central limit theorem is not a bound)")
            mu = conversions.pure_mu(pure) if math.isfinite(pure) else math.inf
        squares.append(count * mu * mu)
    mu = math.sqrt(math.fsum(squares)) * (1 + 1e-15)
    if math.isinf(mu):
        return Bounds(0.0, math.inf if delta is not None else 1.0)
    high = gaussian.epsilon_bounds(mu, delta) if delta is not None else gaussian.delta_bounds(mu, epsilon or 0.0)
    return Bounds(0.0, high[1])


# --- composition theorems over each step's own (epsilon, delta) ----------------------------------------------------


def _costs(run: ev.Event, neighbours: Neighbours, delta: float, name: str) -> list[composition.Cost]:
    """Each part at its own price: pure parts at delta 0, the others at an equal share of `delta`."""
    ways = _paired(run, neighbours, name)
    parts = leaves(run)
    pairs = [[way.steps[i][0] for way in ways] for i in range(len(parts))]
    finite = [max(pair.highest for pair in both) < math.inf for both in pairs]
    sharing = sum(count for (_, count), pure in zip(parts, finite, strict=True) if not pure)
    costs = []
    for (_, count), both, pure in zip(parts, pairs, finite, strict=True):
        if pure:
            own = max(pair.infinite for pair in both)
            costs.append(composition.Cost(max(0.0, *(pair.highest for pair in both)), own, count))
        else:
            share = delta / sharing * (1 - 1e-15)
            costs.append(composition.Cost(max(_one_step_epsilon(pair, share).upper for pair in both), share, count))
    return costs


def _by_theorem(name: str, price: Callable[[ev.Event, Neighbours, float], float]) -> Pricer:
    def pricer(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
        if delta is not None:
            return Bounds(0.0, price(run, neighbours, delta))
        # the least delta, by bisection in its logarithm, at which the theorem's epsilon is small enough
        target = epsilon or 0.0

        def excess(log_delta: float) -> float:
            return price(run, neighbours, math.exp(log_delta)) - target

        low, high = math.log(1e-300), math.log1p(-1e-12)
        if not excess(high) <= 0:
            return Bounds(0.0, 1.0)
        if excess(low) <= 0:
            return Bounds(0.0, 1e-300)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
        return Bounds(0.0, math.exp(high))

    pricer.__name__ = f"_{name}"
    return pricer


Pricer = Callable[[ev.Event, Neighbours, float | None, float | None], Bounds]


def _basic(run: ev.Event, neighbours: Neighbours, delta: float) -> float:
    costs = _costs(run, neighbours, delta, "basic")
    if any(math.isinf(cost.epsilon) for cost in costs):
        return math.inf
    epsilon, spent = composition.basic(costs)
    return epsilon if spent <= delta * (1 + 1e-12) else math.inf


def _advanced(run: ev.Event, neighbours: Neighbours, delta: float) -> float:
    costs = _costs(run, neighbours, delta / 2, "advanced")
    if any(math.isinf(cost.epsilon) for cost in costs):
        return math.inf
    return composition.advanced_epsilon(costs, delta)


def _optimal(run: ev.Event, neighbours: Neighbours, delta: float) -> float:
    costs = _costs(run, neighbours, delta / 2, "optimal")
    if len(costs) > 1:
        raise _no("optimal", "the parts are unlike, for which the optimum is #P-hard")
    if math.isinf(costs[0].epsilon):
        return math.inf
    return composition.optimal_epsilon(costs[0].epsilon, costs[0].delta, costs[0].times, delta=delta)


ACCOUNTANTS: dict[str, Pricer] = {
    "closed": _closed,
    "contour": _contour,
    "fourier": _fourier,
    "renyi": _renyi,
    "zcdp": _zcdp,
    "gdp": _gdp,
    "basic": _by_theorem("basic", _basic),
    "advanced": _by_theorem("advanced", _advanced),
    "optimal": _by_theorem("optimal", _optimal),
}


def price_epsilon(name: str, run: ev.Event, neighbours: Neighbours, delta: float) -> Bounds:
    """Bounds on epsilon(delta) by the accountant of that name."""
    return ACCOUNTANTS[name](run, neighbours, delta, None)


def price_delta(name: str, run: ev.Event, neighbours: Neighbours, epsilon: float) -> Bounds:
    """Bounds on delta(epsilon) by the accountant of that name."""
    return ACCOUNTANTS[name](run, neighbours, None, epsilon)
