"""What several releases cost when each may have been chosen after seeing those before: the rules of an account."""

import math
from functools import lru_cache

import numpy as np

from privet.accounting import Composed, Event
from privet.accounting.filters import RenyiFilter
from privet.accounting.moment_bounds import gdp
from privet.accounting.pairs.dominating import directions
from privet.accounting.renyi_orders import log_moment
from privet.accounting.theorems.conversions import renyi_epsilon
from privet.errors import NoProvenBound
from privet.ledger.terms import Terms
from privet.privacy import Neighbours


def price(events: list[Event], terms: Terms) -> float:
    """The least epsilon, at the budget's delta, whose filter would have admitted all of `events` in any order.

    Both rules grow with every event and look at sums only, so "it is at most the budget's" is a filter.
    """
    if not events:
        return 0.0
    if terms.filter == "gaussian":
        return _by_gaussian(Composed(parts=tuple(events)), terms.neighbours, terms.budget.delta)
    orders = RenyiFilter(epsilon=terms.budget.epsilon, delta=terms.budget.delta).orders
    exponents = np.asarray(orders) - 1.0
    total = np.zeros(len(orders))
    for event in events:
        total = np.nextafter(total + np.asarray(_moments(event, terms.neighbours, orders)), math.inf)
    if np.isinf(total).all():
        return math.inf
    return renyi_epsilon(exponents, total, delta=terms.budget.delta / len(orders) * (1 - 1e-14))


def _by_gaussian(run: Event, neighbours: Neighbours, delta: float) -> float:
    try:
        return gdp(run, neighbours, delta, None).upper
    except NoProvenBound:
        raise NoProvenBound("""Expected releases with a Gaussian-DP bound (Gaussian noise on all records, or pure
            epsilon), got another: this account adds up Gaussian DP only. Open it with filter='renyi'.""") from None


@lru_cache(maxsize=1024)
def _moments(event: Event, neighbours: Neighbours, orders: tuple[float, ...]) -> tuple[float, ...]:
    """log moments at each order − 1, of the worse direction, rounded up; infinite where there is none."""
    worst = np.zeros(len(orders))
    for way in directions(event, neighbours):
        if any(pair.infinite for pair, _ in way.steps):
            raise NoProvenBound("""Expected releases with Rényi moments, got one that may fail outright with some
                probability: no order bounds it. Charge the rest, and keep that probability apart from this account's
                delta.""")
        worst = np.maximum(worst, [_moment(way.steps, order - 1.0) for order in orders])
    return tuple(worst.tolist())


def _moment(steps: tuple[object, ...], t: float) -> float:
    try:
        with np.errstate(all="ignore"):
            value, error = log_moment(steps, np.array([complex(t)]))  # type: ignore[arg-type]  # steps of a direction
    except OverflowError:
        return math.inf
    found = float(value[0].real + error[0])
    return max(0.0, found * (1 + 1e-13)) if math.isfinite(found) else math.inf
