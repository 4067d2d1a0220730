"""The parameter that just meets a budget: noise, steps, rate, or any other single number."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from privet.accounting import events as ev
from privet.accounting.numerics import bracketed_root
from privet.accounting.query import ask
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_delta, check_epsilon, check_neighbours

__all__ = ["calibrate"]

_TOLERANCE = 1e-9


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
    family : from the parameter to an event, monotone in price
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
    check_epsilon(epsilon)
    check_delta(delta)
    check_neighbours(neighbours)

    @cache
    def excess(value: float) -> float:
        run = family(round(value) if whole else value)  # type: ignore[arg-type]  # callers say which by `whole`
        spent, _ = ask(run, neighbours, "auto", None, epsilon, tight=False)
        if spent.lower <= delta < spent.upper * (1 - 1e-6):  # too wide to tell
            spent, _ = ask(run, neighbours, "auto", None, epsilon)
        return math.log(max(spent.upper, 1e-300) / delta)

    def dearer(value: float, other: float) -> bool:  # where delta is 1 at both, or 0, epsilon still tells them apart
        runs = [family(round(v) if whole else v) for v in (value, other)]  # type: ignore[arg-type]
        here, there = (ask(run, neighbours, "auto", delta, None)[0].upper for run in runs)
        return here > there

    low, high = _domain(between, whole)
    start = min(max(1.0, low), high) if between is None else math.sqrt(low * high)
    if whole:
        start = float(max(1, round(start)))
    safe, unsafe = _bracket(excess, dearer, start, low, high, whole)
    if math.isnan(safe):
        raise InvalidParameter(
            f"Expected a parameter at which the run meets epsilon={epsilon:g}, delta={delta:g}, found none "
            f"between {low:g} and {high:g}: the budget would be overspent. Widen `between`, or the budget."
        )
    if not math.isnan(unsafe):
        safe = _whole_root(excess, safe, unsafe) if whole else _real_root(excess, safe, unsafe)
    return round(safe) if whole else _settled(family, safe, unsafe, epsilon, delta, neighbours)  # type: ignore[arg-type]


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
    dearer: Callable[[float, float], bool],
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
    up, down = min(start * 2, high), max(start / 2, low)
    if whole:
        down = float(math.floor(down))
    above, below = at(up) if up > start else math.nan, math.nan
    if math.isnan(above):
        below = at(down) if down < start else math.nan
        more_is_safer = not math.isnan(below) and below > here
    else:
        more_is_safer = above < here or (above == here and dearer(start, up))
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


def _real_root(excess: Callable[[float], float], safe: float, unsafe: float) -> float:
    """Illinois steps in the logarithm of the parameter, in which log delta is nearly straight."""
    far = 32.0  # away from 0, so that a relative tolerance on the logarithm is one on the parameter
    ends = {math.log(safe) + far: safe, math.log(unsafe) + far: unsafe}

    def at(x: float) -> float:
        return excess(ends[x] if x in ends else math.exp(x - far))

    end, _ = bracketed_root(at, *ends, tolerance=_TOLERANCE / 4 / far)
    return ends[end] if end in ends else math.exp(end - far)


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


def _settled(
    family: Callable[[float], ev.Event],
    safe: float,
    unsafe: float,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
) -> float:
    """Step away from the unsafe side until `epsilon` itself, asked at `delta`, agrees."""
    step = math.copysign(_TOLERANCE / 8, safe - unsafe) if not math.isnan(unsafe) else 0.0
    for _ in range(40):
        if ask(family(safe), neighbours, "auto", delta, None)[0].upper <= epsilon or step == 0.0:
            return safe
        safe *= 1 + step
        step *= 2
    raise InvalidParameter(
        f"Expected a family whose price is monotone near {safe:g}, found none that meets epsilon={epsilon:g}: "
        "no value can be certified. Pass `between` with an interval in which it is."
    )
