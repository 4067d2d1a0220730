"""epsilon as a guess: where searches start, and in which order engines are tried. No bound rests on it."""

import math

import numpy as np

from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Reals
from privet.accounting.renyi_orders import Steps, best_order, chernoff_epsilon, rough_log_moment

_LEAST_ORDER = 1e-9  # below it, moments are beyond floats


@np.errstate(all="ignore")
def rough_epsilon(steps: Steps, delta: float, *, near: float) -> float:
    """About epsilon(delta) in one direction: to a percent where the loss is smooth, to a fifth where it is not.

    Far from `near` the quickest guess will do.
    """
    apart = _apart(steps, delta)
    if apart < near / 2 or 2 * near < apart < math.inf:
        return apart
    saddle = best_order(steps, "epsilon", math.log(delta))
    if saddle <= _LEAST_ORDER:
        return max(0.0, apart)
    smooth = saddle_epsilon(saddle, rough_log_moment(steps, saddle * np.array([0.9, 1.0, 1.1])), math.log(delta))
    return max(0.0, apart if apart < 0.8 * smooth else smooth)


@np.errstate(all="ignore")
def ordered_epsilon(steps: Steps, delta: float) -> float:
    """A number that falls with the noise and rises with rates and steps, as epsilon(delta) does, within a factor."""
    apart = _apart(steps, delta)
    if apart < math.inf:
        return apart
    return float(chernoff_epsilon(steps, math.log(delta), np.array([best_order(steps, "epsilon", math.log(delta))]))[0])


def _apart(steps: Steps, delta: float) -> float:
    """As if the loss of a single sampled Gaussian came from one big step or from many small ones; else infinite."""
    pair, count = steps[0]
    if len(steps) > 1 or not isinstance(pair, MixturePair) or pair.kind == "add":
        return math.inf
    cap = 1.5 if pair.rate * count < 1 else 20.0
    return math.hypot(one_step_epsilon(pair, count, delta), normal_epsilon(pair, count, delta, cap=cap))


def saddle_epsilon(saddle: float, values: Reals, log_delta: float) -> float:
    """The saddle-point value of the contour integral, solved for epsilon; it may be negative.

    `values` are log M at 0.9, 1 and 1.1 of the saddle.
    """
    below, here, above = map(float, values)
    curved = 100 * (below - 2 * here + above)  # variance times saddle²
    log_factor = 0.5 * math.log(2 * math.pi * (max(curved, 1e-12) if curved < math.inf else 1e-12))
    log_factor = max(log_factor + math.log1p(saddle), math.log1p(saddle) + saddle * math.log1p(1 / saddle))
    return (here - log_factor - log_delta) / saddle


def normal_epsilon(pair: MixturePair, count: int, delta: float, *, cap: float = 20.0) -> float:
    """As if the loss were normal with the variance of its bulk."""
    variance = bulk_variance(pair, count, cap=cap)
    return variance / 2 + math.sqrt(variance) * max(math.sqrt(-2 * math.log(delta)) - 1.5, 0.1)


def bulk_variance(pair: MixturePair, count: int, *, cap: float = 20.0) -> float:
    """About the variance of the loss of `count` steps; `cap` on (1/σ)² leaves its far tail out."""
    wide = min(pair.shift**2, cap)
    return count * pair.rate**2 * (4 * math.sinh(wide) if pair.kind == "replace" else math.expm1(wide))


def one_step_epsilon(pair: MixturePair, count: int, delta: float) -> float:
    """epsilon as if all but one step cost nothing; 0 if that is none."""
    low, high = -40.0, 8.0  # natural logs
    if count * one_step_delta(pair, math.exp(low)) < delta:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        above = count * one_step_delta(pair, math.exp(middle)) > delta
        low, high = (middle, high) if above else (low, middle)
    return math.exp(low)


def one_step_delta(pair: MixturePair, epsilon: float) -> float:
    """δ(epsilon) of a single step: P(L > epsilon) - e^epsilon·Q(L > epsilon), written so that little cancels."""
    q, s = pair.rate, pair.shift
    rise = math.expm1(min(epsilon, 700.0))
    if pair.kind == "replace":
        log_k = math.log1p(-q) - math.log(q) + s * s / 2 + epsilon / 2 + math.log(-math.expm1(-epsilon) / 2)
        x = (epsilon / 2 + (log_k + math.log(2) if log_k > 18 else math.asinh(math.exp(log_k)))) / s
        return q * (_upper(x - s) - (1 + rise) * _upper(x + s)) - (1 - q) * rise * _upper(x)
    x = (math.log(rise + q) - math.log(q)) / s + s / 2
    return q * _upper(x - s) - (q + rise) * _upper(x)


def _upper(x: float) -> float:
    """P(xi > x) of a standard normal."""
    return 0.5 * math.erfc(x * math.sqrt(0.5))
