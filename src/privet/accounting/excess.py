"""By how much a run overspends a budget, as the searches of :mod:`privet.accounting.calibrate` see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from privet.accounting import events as ev
from privet.accounting.accountants import ACCOUNTANTS
from privet.accounting.contour.integral import contour_upper
from privet.accounting.pairs.dominating import directions, known_by_moments_only
from privet.accounting.query import ask
from privet.errors import NoProvenBound
from privet.privacy import Neighbours


class Price:
    """By how much the run at a value overspends: log(certified delta ÷ budget)."""

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
        self._seen: dict[float, float] = {}

    def run(self, value: float) -> ev.Event:
        return self.family(round(value) if self.whole else value)  # type: ignore[arg-type]  # callers say which

    def excess(self, value: float) -> float:
        """By the best accountant, in both directions."""
        if value not in self._seen:
            run = self.run(value)
            spent, _ = ask(run, self.neighbours, "auto", None, self.epsilon, tight=False)
            if self.is_unclear(spent.lower, spent.upper):
                spent, _ = ask(run, self.neighbours, "auto", None, self.epsilon)
            self._seen[value] = self.log_ratio(spent.upper)
        return self._seen[value]

    def is_unclear(self, lower: float, upper: float, width: float = 1e-6) -> bool:
        """Whether a bracket of delta, wider than `width`, does not tell on which side of the budget the truth is."""
        return lower <= self.delta < upper * (1 - width)

    def log_ratio(self, spent: float) -> float:
        return math.log(max(spent, 1e-300) / self.delta)

    def meets(self, value: float) -> bool:
        """Whether `epsilon`, asked at delta, is within the budget."""
        return ask(self.run(value), self.neighbours, "auto", self.delta, None)[0].upper <= self.epsilon

    def costs_more(self, value: float, other: float) -> bool:
        """Whether the first value costs more: where delta is 1 at both, epsilon still tells them apart."""
        here, there = (ask(self.run(v), self.neighbours, "auto", self.delta, None)[0].upper for v in (value, other))
        return here > there


class OneWay:
    """`Price.excess` by the contour in one direction, the worse one at first sight: quick, and never more than it."""

    def __init__(self, price: Price) -> None:
        self.price = price
        self.worse: int | None = None
        self._by_contour: dict[tuple[object, ...], bool] = {}  # what runs are made of, and whether the contour has them
        self._saddle: float | None = None
        self._seen: dict[float, float] = {}
        self._last = math.nan

    def __call__(self, value: float) -> float:
        if value not in self._seen:
            self._seen[value] = self._price(value)
            self._last = value
        return self._seen[value]

    def is_crossed(self) -> bool:
        """Whether the other direction has become the worse one since they were compared, and by itself overspends."""
        if self.worse is None:
            return False
        ways = directions(self.price.run(self._last), self.price.neighbours)
        other = contour_upper(ways[(1 - self.worse) % len(ways)].steps, self.price.epsilon, enough=self.price.delta)
        return other is not None and other.upper > self.price.delta

    def turned(self) -> OneWay:
        """The same in the other direction."""
        other = OneWay(self.price)
        other.worse, other._by_contour = 1 - (self.worse or 0), self._by_contour
        return other

    def _price(self, value: float) -> float:
        price, run = self.price, self.price.run(value)
        if not isinstance(run, ev.Event):
            return price.excess(value)  # which says what is wrong
        ways = directions(run, price.neighbours)
        made = tuple((type(pair), count == 1) for pair, count in ways[0].steps)
        if made not in self._by_contour:
            self._by_contour[made] = self._is_for_contour(run)
        if not self._by_contour[made]:
            return price.excess(value)
        far = price.delta * math.exp(-20.0)  # so far below the budget, the Rényi bound is near enough
        way = ways[(self.worse or 0) % len(ways)]
        look = contour_upper(way.steps, price.epsilon, near=self._saddle, enough=far)
        if self.worse is None and look is not None and len(ways) > 1:
            other = contour_upper(ways[1].steps, price.epsilon, enough=look.upper)
            self.worse = int(other is not None and other.upper > look.upper)
            look = other if self.worse else look
        if look is None or price.is_unclear(look.upper - look.width, look.upper, 3e-8):
            return price.excess(value)
        self._saddle = look.saddle if look.saddle > 0 else None
        return price.log_ratio(look.upper)

    def _is_for_contour(self, run: ev.Event) -> bool:
        """Whether `ask` would leave this to the contour."""
        price = self.price
        if known_by_moments_only(directions(run, price.neighbours)):
            return False
        try:
            ACCOUNTANTS["closed"](run, price.neighbours, None, price.epsilon)
        except NoProvenBound:
            return True
        return False


def attempts(price: Price) -> Iterator[tuple[Callable[[float], float], int]]:
    """Prices to search with, and how often to step aside if the result is not confirmed; the last cannot miss."""
    quick = OneWay(price)
    yield quick, 6
    if quick.is_crossed():
        yield quick.turned(), 6
    yield price.excess, 40
