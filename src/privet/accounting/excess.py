"""By how much a run overspends a budget, as the search of :mod:`privet.accounting.calibrate` sees it."""

import math
from collections.abc import Callable

from privet.accounting import events as ev
from privet.accounting.both_directions import contour_epsilon_bounds
from privet.accounting.contour.rough_epsilon import ordered_epsilon, rough_epsilon
from privet.accounting.interface import Uncertified
from privet.accounting.pairs.dominating import Direction, directions
from privet.accounting.query import ask, is_lined
from privet.errors import InvalidParameter
from privet.privacy import Neighbours

_SMALL = 1e-6  # below such a budget, the logarithm of epsilon is too steep to search in
_NARROW = 2e-5  # a bracket of this relative width tells enough, also to `ask`


class Excess:
    """log(epsilon of the run at a value ÷ budget): at most 0 where the budget is met.

    Of three kinds: `rough` is a guess; `quick` looks in one direction; `sure` is what the run is certified to cost.
    """

    def __init__(
        self,
        family: Callable[[float], ev.Event] | Callable[[int], ev.Event],
        epsilon: float,
        delta: float,
        neighbours: Neighbours,
        whole: bool,
    ) -> None:
        self.family, self.epsilon, self.delta = family, epsilon, delta
        self.neighbours, self.whole = neighbours, whole
        self.way = 0  # the direction in which `quick` looks
        self._lined: dict[tuple[object, ...], bool] = {}  # what runs are made of, and whether lines are for them

    def run(self, value: float) -> ev.Event:
        """The run at a value."""
        return self.family(round(value) if self.whole else value)  # type: ignore[arg-type]  # callers say which

    def accepts(self, value: float) -> bool:
        """Whether the family has a run at a value."""
        try:
            self.run(value)
        except InvalidParameter:
            return False
        return True

    def sure(self, value: float) -> float:
        """By the best accountant, in both directions."""
        if self.epsilon < _SMALL:
            return _log_ratio(ask(self.run(value), self.neighbours, "auto", None, self.epsilon)[0].upper, self.delta)
        return _log_ratio(ask(self.run(value), self.neighbours, "auto", self.delta, None)[0].upper, self.epsilon)

    def quick(self, value: float) -> float:
        """By line integrals in one direction: at most `sure`, and equal to it where that direction is the worse one."""
        ways = self._ways(value)
        if ways is None or self.way >= len(ways):
            return self.sure(value)
        try:
            low, high = contour_epsilon_bounds(ways[self.way].steps, self.delta)
        except (Uncertified, ArithmeticError, ValueError):
            return self.sure(value)
        over, width = _log_ratio(high, self.epsilon), (high - low) / high if high else 0.0
        return over if width <= max(_NARROW, 0.1 * abs(over)) else self.sure(value)

    def rough(self, value: float) -> float:
        """By a guess, which serves to find the neighbourhood of the answer."""
        ways = self._ways(value)
        if ways is None:
            return self.sure(value)
        way = ways[min(self.way, len(ways) - 1)]
        return _log_ratio(rough_epsilon(way.steps, self.delta, near=self.epsilon), self.epsilon)

    def costs_less(self, value: float, other: float) -> bool | None:
        """Whether the run at the first value costs less than at the other; None where nothing tells them apart."""
        ways = self._ways(value), self._ways(other)
        if ways[0] is None or ways[1] is None:  # guesses and exact costs, as of a rate of 1, are not to be mixed
            here, there = self.sure(value), self.sure(other)
        else:
            here, there = (max(ordered_epsilon(way.steps, self.delta) for way in both) for both in ways if both)
        return here < there if here < there or here > there else None

    def _ways(self, value: float) -> tuple[Direction, ...] | None:
        """The run's directions, if `ask` leaves it to line integrals."""
        run = self.run(value)
        if self.epsilon < _SMALL or not isinstance(run, ev.Event):
            return None  # the latter is for `ask` to refuse
        ways = directions(run, self.neighbours)
        made = tuple((type(pair), count == 1) for pair, count in ways[0].steps)
        if made not in self._lined:
            self._lined[made] = is_lined(run, self.neighbours)
        return ways if self._lined[made] else None


def _log_ratio(spent: float, budget: float) -> float:
    """log(spent ÷ budget), positive if and only if more was spent than there is."""
    if math.isnan(spent):
        return math.inf
    if spent <= budget:
        return min(0.0, math.log(spent / budget)) if spent > 0 else -math.inf
    return max(math.log(spent) - math.log(budget), 1e-300)
