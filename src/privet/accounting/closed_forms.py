"""Closed forms: runs of Gaussian steps, of answers, of few equal Laplace steps; and any single step."""

import math
import sys
from collections.abc import Callable

import numpy as np

from privet.accounting import events as ev
from privet.accounting.interface import Bounds, no_theorem, worst
from privet.accounting.numerics import bracketed_root
from privet.accounting.pairs.dominating import Direction, directions, has_allocation, leaves
from privet.accounting.pairs.elementary import GaussianPair, LaplacePair
from privet.accounting.pairs.pair import UNIT, Reals
from privet.accounting.pairs.selected import MomentsOnly
from privet.accounting.renyi_orders import largest_loss
from privet.accounting.single_step import one_step_epsilon, stick
from privet.accounting.theorems import composition, gaussian_profile
from privet.privacy import Neighbours

_UP = 1 + 8 * UNIT
_MOST_UNLIKE = 1000  # outcomes of all answers but the commonest
_MOST_ANSWERS = 10**8  # the binomial sum has about the root of that many terms; beyond, the contour is quicker


def _answers(run: ev.Event, neighbours: Neighbours) -> list[composition.Cost]:
    """The (epsilon, delta) of each part of a run of unsampled answers, few of them unlike; else none."""
    costs = []
    for leaf, count in leaves(run, neighbours):
        match leaf:
            case ev.Pure(epsilon=epsilon) | ev.RandomizedResponse(epsilon=epsilon):
                costs.append(composition.Cost(float(epsilon), 0.0, count))
            case ev.Approximate(epsilon=epsilon, delta=delta):
                costs.append(composition.Cost(float(epsilon), float(delta), count))
            case _:
                return []
    counts = sorted(cost.times for cost in costs)
    return costs if math.prod(count + 1 for count in counts[:-1]) <= _MOST_UNLIKE else []


def _gaussian_mu(ways: tuple[Direction, ...]) -> float | None:
    """mu of a run of Gaussian steps only, rounded up: T Gaussian releases are exactly one, with mu² = Σ mu_i²."""
    pairs = ways[0].steps
    if len(ways) > 1 or not all(isinstance(pair, GaussianPair) for pair, _ in pairs):
        return None
    if len(pairs) == 1 and pairs[0][1] == 1 and isinstance(pairs[0][0], GaussianPair):
        return pairs[0][0].mu  # as it is, so that no theorem of single steps undercuts it by a rounding
    return math.hypot(*(math.sqrt(count) * pair.mu for pair, count in pairs if isinstance(pair, GaussianPair))) * _UP


def closed(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """Bounds by an exact formula, where there is one."""
    ways = directions(run, neighbours)
    mu = _gaussian_mu(ways)
    if mu is not None:
        below = mu * (1 - 20 * UNIT)
        if delta is not None:
            low, high = (gaussian_profile.epsilon_bounds(x, delta)[side] for side, x in enumerate((below, mu)))
            return Bounds(min(low, sys.float_info.max), high)
        low, high = (gaussian_profile.delta_bounds(x, epsilon or 0.0)[side] for side, x in enumerate((below, mu)))
        return Bounds(low * (1 - UNIT), high)
    costs = _answers(run, neighbours)
    if costs and max(cost.times for cost in costs) <= _MOST_ANSWERS:
        if delta is not None:
            return Bounds(*composition.answers_epsilon(costs, delta))
        return Bounds(*composition.answers_delta(costs, epsilon or 0.0))
    laplace = _few_laplace(ways)
    if laplace is not None:
        found = _solved(lambda e, side: _laplace_end(*laplace, e, side), largest_loss(ways[0].steps), delta, epsilon)
        if found is not None:
            return found
    if all(len(way.steps) == 1 and way.steps[0][1] == 1 for way in ways):
        pairs = [way.steps[0][0] for way in ways]
        if not any(isinstance(pair, MomentsOnly) for pair in pairs) and not has_allocation(ways):
            if delta is not None:
                return worst([one_step_epsilon(pair, delta) for pair in pairs])
            return worst([stick(pair, epsilon or 0.0) for pair in pairs])
    raise no_theorem("closed", "the run is neither Gaussian, nor one step, nor of few unlike answers")


@np.errstate(all="ignore")  # what overflows fails the check at the end
def _laplace_stick(distance: float, count: int, epsilon: float) -> tuple[float, float] | None:
    """(lower, upper) on delta(epsilon) of `count` equal Laplace steps; None where the sum loses too many digits.

    M(t) = ((1+t)e^{td} + t·e^{-(1+t)d})/(1+2t); expand the power of the numerator. The term with j factors of the
    second kind has the exponential e^{t·x}, x = (count - 2j)d - epsilon. For x ≤ 0 its line integral is 0; for x > 0
    it is the integral over a circle around -1/2 that holds the poles -1, -1/2 and 0, where the trapezoid rule errs by
    at most the integrand's size on a smaller and on a larger circle times a geometric factor.
    """
    j = np.arange(count // 2 + 1)
    x = (count - 2 * j) * distance - epsilon
    j, x = j[x > 0], x[x > 0]
    if not len(j):
        return 0.0, 0.0
    log_choose = np.array([math.log(math.comb(count, int(i))) for i in j])

    def log_size(radius: Reals) -> Reals:  # the largest modulus on circles, a row a term, a column a radius
        left = np.where(j == 0, -1.0, j - 1.0)[:, None]
        other = np.where(left < 0, np.log(np.maximum(radius - 0.5, 1e-9)), np.log(radius + 0.5))
        main = (count - j - 1.0)[:, None] * np.log(radius + 0.5) + left * other
        size: Reals = main + np.log(radius) - count * np.log(2 * radius) + x[:, None] * (radius - 0.5)
        return size

    radii = np.geomspace(1.0, 1e14, 200)[None, :]
    radius = radii[0, np.argmin(log_size(radii), axis=1)][:, None]
    nodes = 512
    turn = np.exp(2j * math.pi * np.arange(nodes) / nodes)[None, :]
    t = radius * turn - 0.5
    scale = (log_choose - j * distance)[:, None]
    power = (count - j - 1.0)[:, None] * np.log(1 + t) + (j - 1.0)[:, None] * np.log(t) + x[:, None] * t
    terms = np.exp(power - count * np.log(2 * radius * turn) + scale) * radius * turn
    value = float(terms.real.sum() / nodes)
    alias = np.exp(scale + log_size(0.6 * np.ones_like(radius)) + nodes * np.log(0.6 / radius))
    alias += np.exp(scale + log_size(1.5 * radius) - nodes * math.log(1.5))
    rounding = 4e-16 * (count + 64) * float((np.abs(terms) * (1 + x[:, None] * np.abs(t))).sum() / nodes)
    slack = 4 * float(alias.sum()) + rounding
    return (value - slack, value + slack) if slack < 1e-9 * value else None


def _laplace_end(distance: float, count: int, epsilon: float, side: int) -> float | None:
    """One end of `_laplace_stick`, the rounding of its differences (count - 2j)·distance - epsilon put into epsilon."""
    blur = 8 * UNIT * (count * distance + epsilon)
    found = _laplace_stick(distance, count, epsilon - blur if side else epsilon + blur)
    return None if found is None else found[side]


def _few_laplace(ways: tuple[Direction, ...]) -> tuple[float, int] | None:
    """Distance and count of a run of few equal Laplace steps, if it is one."""
    (pair, count), *others = ways[0].steps
    few = isinstance(pair, LaplacePair) and not others and len(ways) == 1 and 1 < count <= 64
    return (pair.distance, count) if few and isinstance(pair, LaplacePair) else None


def _solved(
    stick: Callable[[float, int], float | None], top: float, delta: float | None, epsilon: float | None
) -> Bounds | None:
    """Bounds from a falling curve with a lower end (side 0) and an upper one; None where it answers None."""

    def at(value: float, side: int) -> float:
        found = stick(value, side)
        if found is None:
            raise ArithmeticError
        return found

    try:
        if delta is None:
            return Bounds(max(0.0, at(epsilon or 0.0, 0)), at(epsilon or 0.0, 1))
        if at(0.0, 1) <= delta:
            return Bounds(0.0, 0.0)
        if at(top, 1) > delta:  # no loss exceeds `top`; what is left there is rounding
            upper = top
        else:
            upper = bracketed_root(lambda e: at(e, 1) - delta, top, 0.0, tolerance=1e-14)[0]
        near = upper * (1 - 1e-9)  # where the lower end has most likely not come down to delta yet
        start = near if at(near, 0) > delta else 0.0
        lower = 0.0
        if start > 0 or at(0.0, 0) > delta:
            lower = bracketed_root(lambda e: at(e, 0) - delta, upper if start > 0 else top, start, tolerance=1e-14)[1]
    except ArithmeticError:
        return None
    return Bounds(lower, upper)
