"""The parameter that just meets a budget: noise, steps, rate, or any other single number."""

from __future__ import annotations

import math
from collections.abc import Callable

from privet.accounting import events as ev
from privet.accounting.excess import Price, attempts
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_delta, check_epsilon, check_neighbours

_TOLERANCE = 1e-9
_DEEP = -60.0  # log of a share of the budget below which prices only say that they are small


def calibrate(
    family: Callable[[float], ev.Event] | Callable[[int], ev.Event],
    *,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    between: tuple[float, float] | None = None,
    whole: bool = False,
) -> float:
    """The value at which `family(value)` just meets (epsilon, delta), on the safe side.

    Promise: the run at the returned value is certified (epsilon, delta)-private, and a value 1e-6 further (or one
    whole number further, with `whole`) is not, unless it is an end of `between` or of what `family` accepts. If more
    of the parameter is more private (noise), the least such value is returned; if less (rate, steps), the largest.

    Parameters
    ----------
    family : from the parameter to an event, monotone in its privacy cost
    epsilon, delta : the budget
    neighbours : "replace_one", "zero_out" or "add_remove"
    between : where to look; by default, everywhere above 0 that `family` accepts
    whole : whether the parameter is a whole number, such as a number of steps

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> noise = calibrate(lambda s: Gaussian(noise_multiplier=s).poisson(rate=0.01) * 5_000,
    ...                   epsilon=3, delta=1e-5, neighbours="add_remove")
    >>> f"{noise:.6f}"
    '1.210886'
    >>> calibrate(lambda k: Gaussian(noise_multiplier=2.0) * k, whole=True,
    ...           epsilon=3, delta=1e-5, neighbours="add_remove")
    2
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_neighbours(neighbours)

    low, high = _domain(between, whole)
    start = min(max(1.0, low), high) if between is None else math.sqrt(low * high)
    if whole:
        start = float(max(1, round(start)))
    price = Price(family, epsilon, delta, neighbours, whole)
    safe = math.nan
    for excess, tries in attempts(price):
        safe, unsafe = _bracket(excess, price.costs_more, start, low, high, whole)
        if math.isnan(safe):
            raise InvalidParameter(
                f"Expected a parameter at which the run meets epsilon={epsilon:g}, delta={delta:g}, found none "
                f"between {low:g} and {high:g}: the budget would be overspent. Widen `between`, or the budget."
            )
        if not math.isnan(unsafe):
            safe = _whole_root(excess, safe, unsafe) if whole else _real_root(excess, safe, unsafe)
        if whole and price.excess(safe) <= 0:
            return round(safe)
        settled = math.nan if whole else _settled(price, safe, unsafe, tries)
        if not math.isnan(settled):
            return settled
    raise InvalidParameter(
        f"Expected a family whose privacy cost is monotone near {safe:g}, found none that meets epsilon={epsilon:g}: "
        "no value can be certified. Pass `between` with an interval in which it is."
    )


def _domain(between: tuple[float, float] | None, whole: bool) -> tuple[float, float]:
    if between is None:
        return (1.0, 1e15) if whole else (1e-9, 1e15)
    low, high = between
    if not 0 < low < high < math.inf:
        raise InvalidParameter(
            f"Expected between to be two positive numbers in order, got {between!r}: there is nothing to search. "
            "Pass (least, most), e.g. (0.1, 100)."
        )
    return float(low), float(high)


def _bracket(
    excess: Callable[[float], float],
    costs_more: Callable[[float, float], bool],
    start: float,
    low: float,
    high: float,
    whole: bool,
) -> tuple[float, float]:
    """A safe and an unsafe value next to each other on a doubling scale; NaN where there is none."""

    def at(value: float) -> float:
        try:
            return excess(value)
        except InvalidParameter:
            return math.nan

    here = at(start)
    if math.isnan(here):
        excess(start)  # let the user see why the family refuses its own start
    up = min(start * 2, high)
    above = at(up) if up > start else math.nan
    more_is_safer = _more_is_safer(at, costs_more, start, low, high, whole)
    # walk towards the crossing
    factor = 2.0 if (here > 0) == more_is_safer else 0.5
    last, value = start, start
    while True:
        value = min(max(value * factor, low), high)
        if whole:
            value = float(math.floor(value))
        if value == last:
            return (last, math.nan) if here <= 0 else (math.nan, last)
        price = above if value == up and factor > 1 else at(value)
        if math.isnan(price):
            return (last, math.nan) if here <= 0 else (math.nan, last)
        if (price > 0) != (here > 0):
            return (value, last) if price <= 0 else (last, value)
        last, here = value, price
        factor = factor**2 if abs(math.log2(factor)) < 8 and abs(price) > 20 else factor


def _more_is_safer(
    at: Callable[[float], float],
    costs_more: Callable[[float, float], bool],
    start: float,
    low: float,
    high: float,
    whole: bool,
) -> bool:
    """Which way is down, seen at the nearest values whose prices differ.

    Where delta is 1 at both, or so small that its bounds are no longer in order, epsilon tells them apart.
    """
    for octaves in (1, 4, 16, 64):
        up, down = min(start * 2.0**octaves, high), max(start * 2.0**-octaves, low)
        if whole:
            up, down = float(math.floor(up)), float(math.ceil(down))
        for less, more in ((start, up), (down, start)):
            prices = at(less), at(more)
            if less == more or any(map(math.isnan, prices)):
                continue
            if prices[0] != prices[1] and min(prices) > _DEEP:
                return prices[1] < prices[0]
            if costs_more(less, more) or costs_more(more, less):
                return costs_more(less, more)
    return False


def _real_root(excess: Callable[[float], float], safe: float, unsafe: float) -> float:
    """Inverse interpolation in the logarithm of the parameter, in which log delta is nearly straight.

    The safe end is returned once the two, both seen, are within `_TOLERANCE` / 4 of each other.
    """
    values = {math.log(safe): safe, math.log(unsafe): unsafe}
    a, b = values
    prices = {a: excess(safe), b: excess(unsafe)}
    near = _TOLERANCE / 4
    for step in range(200):
        if abs(a - b) <= near:
            break
        x = _crossing(prices) if step < 8 or step % 2 else math.nan
        # a hair to the safe side of the crossing, or across it if the safe end is there already
        x += math.copysign(0.4 * near, a - b if abs(x - a) > near / 2 else b - a)
        if not min(a, b) < x < max(a, b):
            x = (a + b) / 2
        if x in (a, b):
            break
        values[x] = math.exp(x)
        prices[x] = excess(values[x])
        a, b = (x, b) if prices[x] <= 0 else (a, x)
    return values[a]


def _crossing(prices: dict[float, float]) -> float:
    """Where the price is 0, by the three points at which it is nearest to it; NaN if they cannot tell."""
    points = sorted(prices.items(), key=lambda point: abs(point[1]))[:3]
    if len({price for _, price in points}) < len(points):
        return math.nan
    root = 0.0
    for x, price in points:
        others = [other for _, other in points if other != price]
        root += x * math.prod(other / (other - price) for other in others)
    return root


def _whole_root(excess: Callable[[float], float], safe: float, unsafe: float) -> float:
    """As `_real_root`, on whole numbers."""
    f_safe, f_unsafe = excess(safe), excess(unsafe)
    bisect = False
    while abs(unsafe - safe) > 1:
        share = f_safe / (f_safe - f_unsafe) if f_safe != f_unsafe else 0.5
        middle = math.exp(math.log(safe) + min(max(share, 0.02), 0.98) * (math.log(unsafe) - math.log(safe)))
        middle = (safe + unsafe) / 2 if bisect else middle
        value = min(max(float(round(middle)), min(safe, unsafe) + 1), max(safe, unsafe) - 1)
        width = abs(unsafe - safe)
        price = excess(value)
        if price <= 0:
            safe, f_safe = value, price
        else:
            unsafe, f_unsafe = value, price
        bisect = abs(unsafe - safe) > width / 2
    return safe


def _settled(price: Price, safe: float, unsafe: float, tries: int) -> float:
    """Step away from the unsafe side until `epsilon` itself, asked at `delta`, agrees; NaN if it never does."""
    step = math.copysign(_TOLERANCE / 8, safe - unsafe) if not math.isnan(unsafe) else 0.0
    for _ in range(tries):
        if price.meets(safe) or (step == 0.0 and price.excess(safe) <= 0):
            return safe
        if step == 0.0:
            break
        safe *= 1 + step
        step *= 2
    return math.nan
