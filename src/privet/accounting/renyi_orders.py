"""Moments of a whole run at real orders, the Rényi bounds that follow from them, and the order that suits best.

Counts are multiplied here only. The Rényi accountant uses these bounds as they are; the contour accountant to find its
saddle and to bound what lies beyond its line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Complexes, Pair, Reals
from privet.accounting.pairs.truncated_mixture import CutPair

Steps = Sequence[tuple[Pair, int]]

_NO_FLOAT = -800.0  # log of what is 0 to a float


def log_moment(steps: Steps, t: Complexes) -> tuple[Complexes, Reals]:
    """log M(t) of the whole run, and a bound on log(1 + relative error of M). Counts are multiplied here only."""
    value = np.zeros(t.shape, dtype=complex)
    error = np.zeros(t.shape)
    for pair, count in steps:
        one, relative = pair.log_moment(t)
        value += count * one
        error += count * np.log1p(relative)
    return value, error


def rough_log_moment(steps: Steps, t: Reals) -> Reals:
    """log M at real orders, for searches only; infinite where it is too large to compute."""
    value = np.zeros(t.shape)
    for pair, count in steps:
        try:
            z = t.astype(complex)
            one = pair.rough_log_moment(z) if isinstance(pair, MixturePair | CutPair) else pair.log_moment(z)[0]
        except OverflowError:
            if len(t) == 1:
                return np.array([math.inf])
            return np.concatenate([rough_log_moment(steps, order) for order in np.split(t, len(t))])
        value += count * one.real
    return np.where(np.isfinite(value), value, math.inf)


def infinite_mass(steps: Steps) -> float:
    """P(L = ∞) of the whole run."""
    if any(pair.infinite >= 1.0 for pair, _ in steps):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-pair.infinite) for pair, count in steps))


def largest_loss(steps: Steps) -> float:
    """What no finite loss of the whole run exceeds: the sum of the largest ones, rounded up."""
    return math.fsum(count * pair.highest for pair, count in steps) * (1 + 8 * UNIT)


def hook(t: Reals) -> Reals:
    """log of max over x of (1 - e^{-x})₊ e^{-tx}: the constant between a moment and a hockey stick."""
    out: Reals = -np.log1p(t) - t * np.log1p(1 / t)
    return out


@np.errstate(all="ignore")
def chernoff_log_delta(steps: Steps, epsilon: float, t: Reals) -> Reals:
    """log of the Rényi bound on delta(epsilon) at each order 1 + t, without the infinite mass."""
    value, error = log_moment(steps, t.astype(complex))
    rounding = 16 * UNIT * (1 + np.abs(value.real) + t * epsilon)
    return _or_infinite(value.real + error - t * epsilon + hook(t) + rounding)


@np.errstate(all="ignore")
def chernoff_epsilon(steps: Steps, log_delta: float, t: Reals) -> Reals:
    """The Rényi bound on epsilon at each order 1 + t, for the finite part of delta."""
    value, error = log_moment(steps, t.astype(complex))
    rounding = 16 * UNIT * (1 + np.abs(value.real) - log_delta)
    return _or_infinite((value.real + error + hook(t) - log_delta + rounding) / t)


def _or_infinite(bounds: Reals) -> Reals:
    """A bound that could not be computed bounds nothing."""
    return np.where(np.isnan(bounds), math.inf, bounds)


def best_order(steps: Steps, objective: str, target: float, *, fine: bool = False, near: float | None = None) -> float:
    """The t > 0 that about minimises a Rényi bound.

    `objective` "epsilon" takes a log delta as `target`; "log_delta" takes an epsilon. `near` is where to look first.
    """

    def at(t: Reals) -> Reals:
        with np.errstate(all="ignore"):
            value = rough_log_moment(steps, t) + hook(t)
        return (value - target) / t if objective == "epsilon" else value - t * target

    centre, ratio = (_first_order(steps, objective, target), 4.0) if near is None else (near, 1.4)
    for _ in range(80):
        grid = centre * ratio ** np.linspace(-1, 1, 7)
        values = at(grid)
        if objective == "log_delta" and values.min() < _NO_FLOAT:
            return float(grid[np.argmax(values < _NO_FLOAT)])  # higher orders say no more, and cost more
        i = int(np.argmin(values))
        if math.isinf(values[i]):
            centre /= 16.0
        elif i in (0, 6) and 1e-12 < centre < 1e12:
            centre, ratio = float(grid[i]), ratio if near is None else 4.0
        else:
            centre = float(grid[i])
            a, b, c = values[max(i - 1, 0)], values[i], values[min(i + 1, 6)]
            if 0 < i < 6 and math.isfinite(a + c) and a + c > 2 * b:  # the parabola's bottom, in log t
                centre *= ratio ** (float((a - c) / (a - 2 * b + c)) / 6)
            if ratio < (1.05 if fine else 2.0):
                break
            ratio **= 0.4
    return centre


def _first_order(steps: Steps, objective: str, target: float) -> float:
    """Where to start the search of `best_order`."""
    # as if the loss were normal: log M(t) = v·t(t+1)/2, epsilon ≈ v/2 + √(2v·log(1/delta)), t ≈ (epsilon - v/2)/v
    spread = max(1e-12, 2 * float(rough_log_moment(steps, np.array([0.5]))[0]) / 0.75)
    normal = math.sqrt(-2 * target / spread) if objective == "epsilon" else (target - spread / 2) / spread
    order = min(1e6, max(normal, 0.3 / math.sqrt(spread)))
    for (
        pair,
        _,
    ) in steps:  # one visit of the record has log M(t) ≥ (1+t)·log q + t(t+1)s²/2, whose best order is no larger
        if isinstance(pair, MixturePair) and pair.kind != "add":
            rarity = -math.log(pair.rate)
            one = math.sqrt(2 * (rarity - target)) if objective == "epsilon" else (target + rarity) / pair.shift
            order = min(order, max(one / pair.shift, 0.05))
    return order
