"""From delta to epsilon: certified roots of certified bounds; docs/proofs/contour.md, section 6."""

import math
from typing import Protocol


class Bracketing(Protocol):
    """Certified bounds on delta(epsilon), and its slope."""

    def upper(self, epsilon: float) -> float: ...
    def lower(self, epsilon: float) -> float: ...
    def slope(self, epsilon: float) -> float: ...


def solve(line: Bracketing, delta: float, start: float) -> float | None:
    """The least epsilon ≥ 0, to rounding, at which the line's upper bound is seen to be at most delta."""
    unsafe, safe, epsilon = -1.0, math.inf, start
    last: tuple[float, float] | None = None  # the epsilon before, and the rate at which log delta fell there
    goal = math.inf
    for look in range(1, 200):  # Newton on log delta, which is nearly straight, kept inside the bracket
        value = line.upper(epsilon)
        if value <= delta:
            safe = epsilon
            if value >= delta * (1 - 1e-10) or epsilon == 0.0:
                break
        else:
            unsafe = epsilon
        if math.isfinite(safe) and safe - unsafe <= 4e-16 * safe:
            break
        rate = -line.slope(epsilon) / max(value, 1e-300)
        # aim a hair to the safe side, so that the last step lands there
        change = (math.log(max(value, 1e-300) / delta) + 4e-12) / rate if rate > 0 else math.nan
        if last is not None and last[0] != epsilon:  # how the rate changed says how it will
            change /= 1 + min(max((rate - last[1]) / (epsilon - last[0]) * change / (2 * rate), -0.2), 0.2)
        last = epsilon, rate
        target, middle = max(0.0, epsilon + change), (max(unsafe, 0.0) + safe) / 2
        if look % 5 == 0:  # where delta falls off a cliff, or is no more than rounding, Newton may stall
            target, goal = math.nan if safe - unsafe > goal else target, (safe - unsafe) / 2
        if not unsafe < target < safe:
            target = middle if math.isfinite(safe) else 2 * epsilon + 1e-3
        epsilon = target
    return safe if math.isfinite(safe) else None


def largest_below(line: Bracketing, delta: float, upper: float) -> float:
    """An epsilon below `upper` at which delta is certainly not yet reached; 0 if there is none."""
    rate = max(-line.slope(upper), 1e-300)
    gap = 1.01 * (max(line.upper(upper), delta) - line.lower(upper)) / rate + 1e-15 * upper
    for _ in range(60):
        lower = upper - gap
        if lower <= 0:
            return 0.0
        if line.lower(lower) >= delta:
            return lower
        gap *= 2
    return 0.0
