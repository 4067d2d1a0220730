"""The two numerical engines as accountants: both directions, the worse one counts."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from privet.accounting import events as ev
from privet.accounting.contour.few_nodes import joining_upper
from privet.accounting.contour.integral import NOTHING, contour_upper
from privet.accounting.contour.rare_outcomes import line_delta, line_epsilon
from privet.accounting.contour.roots import Bracketing
from privet.accounting.fourier.brackets import fourier_delta, fourier_epsilon
from privet.accounting.interface import Bounds, Uncertified, no_theorem
from privet.accounting.pairs.dominating import Direction, directions, has_allocation, known_by_moments_only
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Pair
from privet.accounting.renyi_orders import Steps, best_order, chernoff_log_delta, infinite_mass, largest_loss
from privet.privacy import Neighbours

_COARSE = 1 << 14  # points of a lattice


def paired(run: ev.Event, neighbours: Neighbours, name: str) -> tuple[Direction, ...]:
    """The run's dominating pairs, both ways; a refusal if a part has none."""
    ways = directions(run, neighbours)
    if known_by_moments_only(ways):
        raise no_theorem(name, "a part is known by its moments only, which do not determine its loss")
    if has_allocation(ways):
        raise no_theorem(name, "a part is a random allocation, whose loss is known between two laws only")
    return ways


def contour(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """Bounds by the contour integral; raises Uncertified where it has none."""
    return _engine(run, neighbours, delta, epsilon, "contour", contour_epsilon_bounds, _contour_delta)


def fourier(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """Bounds by lattice laws and the fast Fourier transform."""
    return _engine(run, neighbours, delta, epsilon, "fourier", fourier_epsilon, fourier_delta)


@lru_cache(maxsize=16)
def contour_epsilon_bounds(steps: tuple[tuple[Pair, int], ...], delta: float) -> tuple[float, float]:
    """Certified (lower, upper) on epsilon(delta) in one direction; raises Uncertified where there is none."""
    found = line_epsilon(steps, delta)
    if found is None:
        raise Uncertified
    return found


def _contour_delta(steps: Steps, epsilon: float) -> tuple[float, float]:
    found = line_delta(steps, epsilon)
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
    """Bound the worse direction; the other is dropped where one look at the first's lower end shows it to be better."""
    ways = paired(run, neighbours, name)
    if any(pair.infinite == 1.0 for way in ways for pair, _ in way.steps):
        return Bounds(math.inf, math.inf) if delta is not None else Bounds(1.0, 1.0)
    worst = Bounds(0.0, 0.0)
    for way in ways if delta is not None or epsilon else _unlike_at_nothing(ways):
        if delta is not None and delta < infinite_mass(way.steps) * (1 - 1e-12):
            return Bounds(math.inf, math.inf)
        if delta is not None:
            if worst.lower > 0 and _surely_below(way.steps, worst.lower, delta, delta_by):
                continue
            low, high = epsilon_by(way.steps, delta)
        else:
            low, high = delta_by(way.steps, epsilon or 0.0)
        if delta is None and (epsilon or 0.0) < largest_loss(way.steps):
            high = max(high, 5e-324)  # what underflows is not 0
        worst = Bounds(max(worst.lower, float(low)), max(worst.upper, float(high)))
    return worst


def _unlike_at_nothing(ways: tuple[Direction, ...]) -> tuple[Direction, ...]:
    """Those of both directions that differ at epsilon = 0, where delta is the total variation."""
    mixed = all(isinstance(pair, MixturePair) for way in ways for pair, _ in way.steps)
    return ways[:1] if mixed else ways  # P and Q of a mixture pair change places from one direction to the other


def _surely_below(steps: Steps, epsilon: float, delta: float, delta_by: Engine) -> bool:
    """Whether delta(epsilon) ≤ delta in this direction, by one look at that epsilon: quicker than solving for it."""
    infinite = infinite_mass(steps)
    if epsilon >= largest_loss(steps):
        return infinite * (1 + 1e-14) <= delta
    if delta_by is _contour_delta:
        below, order = _quickly_below(steps, epsilon, delta - infinite)
        return below or contour_upper(steps, epsilon, enough=delta, saddle=order) <= delta
    order = best_order(steps, "log_delta", epsilon)
    bound = float(chernoff_log_delta(steps, epsilon, np.array([order]))[0])
    return infinite + math.exp(min(bound, 0.0)) <= delta * (1 - 1e-14)


def _quickly_below(steps: Steps, epsilon: float, delta: float) -> tuple[bool, float | None]:
    """The same from few moments of w, where a record joins sampled batches: by a Rényi bound, else by a short line.

    Second, a good order for a longer one.
    """
    parts = [(pair, count) for pair, count in steps if isinstance(pair, MixturePair) and pair.kind == "add"]
    if len(parts) < len(steps) or delta <= 0:
        return False, None

    def log_ratio(t: float) -> float:
        moment = math.fsum(count * pair.quick_log_moment(t) for pair, count in parts)
        return moment * (1 + 1e-14) - t * epsilon - math.log1p(t) - t * math.log1p(1 / t) - math.log(delta)

    order = epsilon / math.fsum(count * pair.quick_log_moment(0.5) / 0.375 for pair, count in parts)
    found = log_ratio(order)
    step = 1.3 if log_ratio(1.1 * order) < found else 0.77
    for _ in range(6):
        if found < -1e-12 * (1 + order * epsilon):
            return True, order
        before, found = found, log_ratio(order * step)
        if found >= before:
            break
        order *= step
    else:
        order = math.inf
    known = order * max(pair.rate for pair, _ in parts) < 0.3
    return joining_upper(parts, epsilon, delta) <= delta, order if known else None


def _roughly_above(steps: Steps, epsilon: float) -> float:
    """An upper bound on delta(epsilon) by a coarse lattice, to see that a direction is not the worse one."""
    try:
        return float(fourier_delta(steps, epsilon, points=_COARSE)[1])
    except (ArithmeticError, ValueError):
        return math.inf


class LineCurve:
    """delta(epsilon) of a run, whose lines are kept: one that was laid for one epsilon often serves the next."""

    def __init__(self, ways: tuple[Direction, ...]) -> None:
        self.ways = ways
        self._kept: tuple[list[Bracketing], ...] = tuple([] for _ in ways)

    def upper(self, epsilon: float, width: float) -> float | None:
        """A certified upper bound on delta(epsilon), at most `width` above the truth, relatively; else None."""
        worst = 0.0
        ways = self.ways if epsilon else _unlike_at_nothing(self.ways)
        for way, lines in zip(ways, self._kept, strict=False):
            if worst and any(line.upper(epsilon) <= worst for line in lines[-2:]):
                continue
            try:
                found = line_delta(way.steps, epsilon, lines)
            except (ArithmeticError, ValueError):  # a loss beyond what floats can hold
                return None
            if found is None or found[1] - found[0] > width * max(found[1], NOTHING / width):
                if worst and _roughly_above(way.steps, epsilon) <= worst:
                    continue
                return None
            worst = max(worst, found[1])
        return worst
