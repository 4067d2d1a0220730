"""Composition theorems as accountants, over each step's own (epsilon, delta)."""

import math
from collections.abc import Callable

from privet.accounting import events as ev
from privet.accounting.both_directions import paired
from privet.accounting.interface import Bounds, Pricer, no_theorem
from privet.accounting.pairs.dominating import leaves
from privet.accounting.single_step import one_step_epsilon
from privet.accounting.theorems import composition
from privet.privacy import Neighbours


def _costs(run: ev.Event, neighbours: Neighbours, delta: float, name: str) -> list[composition.Cost]:
    """Each part at its own price: pure parts at delta 0, the others at an equal share of `delta`."""
    ways = paired(run, neighbours, name)
    counts = [count for _, count in ways[0].steps]
    pairs = [[way.steps[i][0] for way in ways] for i in range(len(counts))]
    finite = [max(pair.highest for pair in both) < math.inf for both in pairs]
    sharing = sum(count for count, pure in zip(counts, finite, strict=True) if not pure)
    costs = []
    for count, both, pure in zip(counts, pairs, finite, strict=True):
        if pure:
            own = max(pair.infinite for pair in both)
            highest = max(0.0, *(pair.highest for pair in both)) if own < 1 else math.inf
            costs.append(composition.Cost(highest, own if own < 1 else 0.0, count))
        else:
            share = delta / sharing * (1 - 1e-14)
            costs.append(composition.Cost(max(one_step_epsilon(pair, share).upper for pair in both), share, count))
    return costs


def by_theorem(price: Callable[[ev.Event, Neighbours, float], float]) -> Pricer:
    """An accountant from a theorem that gives epsilon at a delta; the other way round by bisection."""

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

    return pricer


def basic_epsilon(run: ev.Event, neighbours: Neighbours, delta: float) -> float:
    """Epsilon by adding up."""
    costs = _costs(run, neighbours, delta, "basic")
    if any(math.isinf(cost.epsilon) for cost in costs):
        return math.inf
    epsilon, spent = composition.basic(costs)
    return epsilon if spent <= delta else math.inf


_SHARES = (0.5, 0.9, 0.999)  # of delta for the steps themselves; the rest is slack of the theorem


def advanced_epsilon(run: ev.Event, neighbours: Neighbours, delta: float) -> float:
    """Epsilon by advanced composition, at the best of a few ways to share delta; never above basic."""
    found = [basic_epsilon(run, neighbours, delta)]
    for share in _SHARES:
        costs = _costs(run, neighbours, share * delta, "advanced")
        if not any(math.isinf(cost.epsilon) for cost in costs):
            found.append(composition.advanced_epsilon(costs, delta))
    return min(found)


def optimal_epsilon(run: ev.Event, neighbours: Neighbours, delta: float) -> float:
    """Epsilon by optimal composition of equal steps, at the best of a few ways to share delta."""
    if len(leaves(run, neighbours)) > 1:
        raise no_theorem("optimal", "the parts are unlike, for which the optimum is #P-hard")
    found = [advanced_epsilon(run, neighbours, delta)]
    for share in _SHARES:
        (cost,) = _costs(run, neighbours, share * delta, "optimal")
        if math.isfinite(cost.epsilon):
            found.append(composition.optimal_epsilon(cost.epsilon, cost.delta, cost.times, delta=delta))
    return min(found)
