"""The parameter that just meets a budget: noise, steps, rate, or any other single number."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from privet.accounting import events as ev
from privet.accounting.excess import Excess
from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_delta, check_epsilon, check_neighbours

_TOLERANCES = (1e-9,) * 5 + (1e-7,) * 3 + (4e-7,)  # how near to the least value the answer is, after so many looks
_CLOSE = 0.01  # logarithm by which a guess may be off


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
    excess = Excess(family, epsilon, delta, neighbours, whole)
    axis = _oriented(excess, float(max(1, round(start))) if whole else start, low, high)
    guess, slope = _guess(excess, axis)
    found = _whole_root(excess, axis, guess) if whole else _real_root(excess, axis, guess, slope)
    if math.isnan(found):
        raise InvalidParameter(
            f"Expected a parameter at which the run meets epsilon={epsilon:g}, delta={delta:g}, found none "
            f"between {axis.low:g} and {axis.high:g}: the budget would be overspent. Widen `between`, or the budget."
        )
    return round(found) if whole else found


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


@dataclass(slots=True)
class _Axis:
    """The parameter on a logarithmic axis along which runs cost less: u = ±log(value), between its ends."""

    sign: float
    start: float
    low: float
    high: float

    def value(self, u: float) -> float:
        """The parameter at u, an end where u is at an end or beyond it."""
        return min(max(math.exp(min(self.sign * u, 700.0)), self.low), self.high)

    def at(self, value: float) -> float:
        return self.sign * math.log(value)

    @property
    def ends(self) -> tuple[float, float]:
        """The end where runs cost most, and the one where they cost least."""
        one, other = self.at(self.low), self.at(self.high)
        return min(one, other), max(one, other)

    def refused(self, value: float, accepted: float, accepts: Callable[[float], bool]) -> None:
        """Move an end to where the family begins to refuse values."""
        for _ in range(60):
            middle = math.sqrt(accepted * value)
            if middle in (accepted, value):
                break
            accepted, value = (middle, value) if accepts(middle) else (accepted, middle)
        rounded = float(f"{accepted:.9g}")
        end = rounded if accepts(rounded) else accepted
        self.low, self.high = (end, self.high) if value < accepted else (self.low, end)


def _oriented(excess: Excess, start: float, low: float, high: float) -> _Axis:
    """Which way is down, seen at the nearest values whose costs differ."""
    excess.run(start)  # let the user see why the family refuses its own start
    for octaves in (1, 4, 16, 64):
        up, down = min(start * 2.0**octaves, high), max(start * 2.0**-octaves, low)
        if excess.whole:
            up, down = float(math.floor(up)), float(math.ceil(down))
        for less, more in ((start, up), (down, start)):
            found = excess.costs_less(more, less) if excess.accepts(less) and excess.accepts(more) else None
            if found is not None:
                return _Axis(1.0 if found else -1.0, start, low, high)
    return _Axis(1.0, start, start, start)  # nothing tells them apart, so none is better than where the search begins


def _guess(excess: Excess, axis: _Axis) -> tuple[float, float]:
    """About where the budget is met, by guesses alone, and the slope of the excess there."""
    seen = _Seen()
    u, last = axis.at(axis.start), axis.start
    for _ in range(40):
        value = axis.value(u)
        try:
            seen.add(u, excess.rough(value))
        except InvalidParameter:
            axis.refused(value, last, excess.accepts)
            seen.limit, u = 8.0, min(max(u, axis.ends[0]), axis.ends[1])
            continue
        last = value
        if abs(seen.points[u]) <= _CLOSE or seen.width() <= _CLOSE / 2:
            break
        following = min(max(seen.proposal(-1.0), axis.ends[0]), axis.ends[1])
        if following in seen.points:
            break
        u = following
    return u, min(seen.slope(-1.0), -1.0)  # too steep a slope costs a look, too flat a one leads far away


class _Seen:
    """What a search has seen of a falling function: points, and the nearest ones on either side of its root."""

    def __init__(self) -> None:
        self.points: dict[float, float] = {}
        self.safe, self.unsafe = math.inf, -math.inf
        self.limit = 0.75  # the furthest step, in logarithms, while the root is not yet between two points
        self._widths: list[float] = []

    def add(self, u: float, excess: float) -> None:
        self.points[u] = excess
        if excess <= 0:
            self.safe = min(self.safe, u)
        else:
            self.unsafe = max(self.unsafe, u)
        self._widths.append(self.width())

    def width(self) -> float:
        """How far the two sides are apart; negative where they contradict a falling function."""
        return self.safe - self.unsafe

    def slope(self, default: float) -> float:
        """The slope at the root, by the two points nearest to it, or `default`; never 0."""
        finite = sorted((p for p in self.points.items() if math.isfinite(p[1])), key=lambda p: abs(p[1]))[:2]
        if len(finite) < 2 or finite[0][1] == finite[1][1]:
            return default
        slope = (finite[0][1] - finite[1][1]) / (finite[0][0] - finite[1][0])
        return slope if slope < 0 else default

    def proposal(self, default_slope: float) -> float:
        """Where to look next: inverse interpolation, kept between the sides, and bisection where that stalls."""
        if math.isfinite(self.width()):
            u = self._crossing(default_slope)
            stalled = len(self._widths) > 3 and self._widths[-1] > 0.5 * self._widths[-4]
            inside = self.unsafe < u < self.safe
            return u if inside and not stalled else (self.safe + self.unsafe) / 2
        here = self.unsafe if math.isinf(self.safe) else self.safe
        self.limit *= 2
        step = -self.points[here] / self.slope(default_slope)  # beyond all points, a straight line is safest
        return here + min(max(step, -self.limit), self.limit)

    def _crossing(self, default_slope: float) -> float:
        """Where the function is 0, by the three points at which it is nearest to it; NaN if they cannot tell."""
        points = sorted((p for p in self.points.items() if math.isfinite(p[1])), key=lambda p: abs(p[1]))[:3]
        if not points:
            return math.nan
        if len({excess for _, excess in points}) < max(2, len(points)):
            return points[0][0] - points[0][1] / default_slope
        root = 0.0
        for u, excess in points:
            root += u * math.prod(other / (other - excess) for _, other in points if other != excess)
        return root


def _real_root(excess: Excess, axis: _Axis, u: float, slope: float) -> float:
    """The least u whose run is surely within the budget, to the tolerance; NaN if there is none."""
    seen, last, look = _Seen(), axis.start, 0
    for _ in range(80):
        u = min(max(u, axis.ends[0]), axis.ends[1])
        try:
            over = excess.quick(axis.value(u))
        except InvalidParameter:
            axis.refused(axis.value(u), last, excess.accepts)
            continue
        last = axis.value(u)
        seen.add(u, over)
        slope = seen.slope(slope)
        near, look = _TOLERANCES[min(look, len(_TOLERANCES) - 1)], look + 1
        if over <= 0 and (over >= slope * near or u - seen.unsafe <= near or u == axis.ends[0]):
            if excess.sure(axis.value(u)) <= 0:
                return axis.value(u)
            excess.way += 1  # another direction is the worse one, or needs another accountant
            seen, look = _Seen(), 0
            continue
        if over > 0 and u == axis.ends[1]:
            return math.nan
        if seen.width() <= 0:  # a bound that is looser here than next to it
            seen = _Seen()
            seen.add(u, over)
        u = seen.proposal(slope)
        u = u + 0.4 * near if u + 0.4 * near < seen.safe else u  # a hair to the safe side
    return math.nan


def _whole_root(excess: Excess, axis: _Axis, u: float) -> float:
    """As `_real_root`, on whole numbers: the answer is surely within the budget, and its neighbour is not."""
    seen: dict[float, float] = {}

    def over(value: float) -> bool:
        if value not in seen:
            seen[value] = excess.quick(value)
            if seen[value] <= 0:
                seen[value] = excess.sure(value)
        return seen[value] > 0

    low, high = math.ceil(axis.low), math.floor(axis.high)
    cheap, dear = (high, low) if axis.sign > 0 else (low, high)
    value = float(min(max(round(axis.value(u)), low), high))
    step = 1.0
    while not over(value) and value != dear and step < 1e16:  # walk to the last value that is too dear, or the end
        safe, value = value, min(max(value - axis.sign * step, low), high)
        if over(value):
            return _between(over, seen, safe, value)
        step *= 2
    if not over(value):
        return value
    step = 1.0
    while value != cheap:
        unsafe, value = value, min(max(value + axis.sign * step, low), high)
        if not over(value):
            return _between(over, seen, value, unsafe)
        step *= 2
    return math.nan


def _between(over: Callable[[float], bool], seen: dict[float, float], safe: float, unsafe: float) -> float:
    """The safe one of two neighbouring whole numbers between which the budget is just met."""
    bisect = False
    while abs(unsafe - safe) > 1:
        f_safe, f_unsafe = seen[safe], seen[unsafe]
        share = f_safe / (f_safe - f_unsafe) if math.isfinite(f_safe - f_unsafe) else 0.5
        middle = (safe + unsafe) / 2 if bisect else safe + min(max(share, 0.02), 0.98) * (unsafe - safe)
        value = min(max(float(round(middle)), min(safe, unsafe) + 1), max(safe, unsafe) - 1)
        width = abs(unsafe - safe)
        safe, unsafe = (safe, value) if over(value) else (value, unsafe)
        bisect = abs(unsafe - safe) > width / 2
    return safe
