"""Where a line of the contour integral lies, how fine it is, and how far it reaches."""

import math

import numpy as np

from privet.accounting.pairs.pair import Reals
from privet.accounting.renyi_orders import Run, hook, thinned

DIGITS = 21.0  # natural log of the relative accuracy aimed at
_MOST_NODES = 6000
_REACHES = [np.unique(np.ceil(np.geomspace(few, many, 14))) for few, many in ((5, 80), (90, _MOST_NODES))]
_TILTS = np.linspace(0.4, 1.02, 13)
ORDERS = np.array([0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.2])  # of the saddle
_GAPS = ORDERS - _TILTS[:, None]
_GAPS[_GAPS <= 0] = math.nan
_ABOVE = [int(np.isnan(gaps).sum()) for gaps in _GAPS]  # the first order above each tilt
_FURTHER = np.array([1.0, 1.25, 1.6, 2.2, 3.5])  # of how far the line of a normal loss reaches


def tilt_and_period(
    epsilon: float, log_delta: float, saddle: float, top: float, log_orders: Reals
) -> tuple[float, float, Reals]:
    """The tilt c ≤ saddle for which the least period P makes all aliases negligible; `top` is the largest loss.

    Left of epsilon they are below e^{-cP}; right of it below e^{-(t-c)P} times the Rényi bound at any order t > c.
    A heavy upper tail falls hardly faster than e^{-saddle·P}; a smaller c then buys a smaller P. Third, the best of
    these orders, and the one before it.
    """
    orders = saddle * ORDERS
    left = (DIGITS - log_delta) / saddle / _TILTS
    bounds = log_orders - orders * epsilon + hook(orders) + (DIGITS - log_delta)
    rights = bounds / _GAPS
    period = np.maximum(left, np.fmin.reduce(rights, axis=1) / saddle)
    if math.isfinite(top):
        period = np.where(epsilon + left >= top, left, period)
    best = int(period.argmin())
    first = _ABOVE[best]
    order = max(first, first + int(rights[best, first:].argmin()) - 1)
    return float(saddle * _TILTS[best]), float(period[best]), orders[order : order + 2]


def reach(
    steps: Run, tilt: float, spacing: float, log_size: float, log_least: float, guess: float
) -> tuple[int, float]:
    """How many nodes until e^{log_size - decay} / (π·reach) is below e^log_least, and that decay; 0 if too many."""

    def reached(run: Run, counts: Reals) -> tuple[Reals, Reals]:
        fall = sum((count * pair.decay(tilt, spacing * counts) for pair, count in run), np.zeros_like(counts))
        return np.flatnonzero(log_size - fall - np.log(math.pi * spacing * counts) < log_least), fall

    few = thinned(steps)
    first = [np.ceil(_FURTHER * max(guess / spacing, 5.0))] if guess < 200 * spacing else []
    reaches = first + _REACHES
    for i, counts in enumerate(reaches):
        enough, fall = reached(few, counts)
        if len(enough) and few is not steps:  # a guess, confirmed with all pairs
            candidates = np.concatenate([counts[enough[0] :], *reaches[i + 1 :]])
            for counts in np.split(candidates, range(4, len(candidates), 4)):
                enough, fall = reached(steps, counts)
                if len(enough):
                    break
        if len(enough):
            return int(counts[enough[0]]), float(fall[enough[0]])
    return 0, 0.0
