"""The hockey stick of one step, from both sides: closed forms where there are any, else the tails of the pair.

Sampling turns the curve H_α(P ‖ Q) of the unsampled step into w·H_β(P ‖ Q) with β = 1 + (α − 1)/w: w = q when the
record leaves, as (1−q)Q + qP − αQ = q(P − βQ), and w = 1 − α(1−q) when it joins, as P − α((1−q)P + qQ) = w(P − βQ).
"""

import math
import sys

import numpy as np
from scipy.special import ndtr

from privet.accounting.interface import Bounds
from privet.accounting.numerics import bracketed_root
from privet.accounting.pairs.elementary import BoundedRangePair, DiscretePair, GaussianPair, LaplacePair
from privet.accounting.pairs.fixed_size import FixedSizePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Pair
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.accounting.theorems import gaussian_profile

_BLUR = 8 * UNIT
_DUST = 4e-323  # below 1e-292 a product rounds by half of the least float, not in proportion


def stick(pair: Pair, epsilon: float) -> Bounds:
    """Bounds on delta(epsilon) of one step in one direction."""
    low, high = (_end(pair, epsilon, side) for side in (-1, 1))
    least = 5e-324 if epsilon < pair.highest else 0.0  # what underflows is not 0
    return Bounds(max(0.0, min(low, high)), min(1.0, max(high, least)))


def _end(pair: Pair, epsilon: float, side: int) -> float:
    """delta(epsilon), rounded up (`side` 1) or down (-1); 0 where it is, or where it underflows."""
    found = _blurred(pair, epsilon, side)
    return max(0.0, found + side * _DUST) if found > 0 else 0.0


def _blurred(pair: Pair, epsilon: float, side: int) -> float:
    """The same where floats round in proportion. Sizes of pairs are rounded up, by a unit at most."""
    match pair:
        case GaussianPair(mu=mu):
            return _gaussian(mu, epsilon, side)
        case LaplacePair(distance=distance):
            return _laplace(distance, epsilon, side)
        case BoundedRangePair(epsilon=most):
            part = -math.expm1(-max(0.0, most - epsilon) / 2)
            return part * (part / -math.expm1(-most)) * (1 + side * _BLUR)
        case DiscretePair(losses=losses, masses=masses, infinite=infinite):
            gaps = [loss - epsilon + side * _BLUR * (abs(loss) + epsilon) for loss in losses]
            terms = [mass * -math.expm1(-gap) for gap, mass in zip(gaps, masses, strict=True) if gap > 0]
            return math.fsum([infinite, *terms]) * (1 + side * _BLUR)
        case SampledLaplacePair(rate=rate, distance=distance, kind=kind):
            weight = rate if kind == "remove" else _joining(rate, epsilon, side)
            return weight * _laplace(distance, _inner(weight, epsilon, side), side) * (1 + side * _BLUR)
        case FixedSizePair(rate=rate, shift=shift):
            return rate * _gaussian(shift, _inner(rate, epsilon, side), side) * (1 + side * _BLUR)
        case MixturePair(rate=rate, shift=shift, kind=kind) if kind != "replace":
            weight = rate if kind == "remove" else _joining(rate, epsilon, side)
            return weight * _gaussian(shift, _inner(weight, epsilon, side), side) * (1 + side * _BLUR)
        case MixturePair():
            return _changing(pair, epsilon, side)
    raise TypeError(f"{type(pair).__name__} has no closed form")


def _changing(pair: MixturePair, epsilon: float, side: int) -> float:
    """q(Φ(s−x) − Φ(−s−x)) − (e^ε − 1)(qΦ(−s−x) + (1−q)Φ(−x)), xi > x being where the loss exceeds ε.

    x is optimal, so that its rounding is of second order.
    """
    q, s, huge = pair.rate, pair.shift, epsilon > 690  # there e^ε times a tail that underflows tells nothing
    x = float(pair._threshold(np.array([epsilon + (huge and side < 0)]))[0])
    near, middle, far = (float(tail) for tail in ndtr(np.array([s - x, -x, -s - x])))
    if huge:  # at most P(L > ε), at least (1 − 1/e)·P(L > ε + 1)
        beyond = q * near + (1 - q) * middle
        return beyond * (1 + 1e-12) + 1e-300 if side > 0 else -math.expm1(-1) * beyond * (1 - 1e-12)
    gain, cost = q * (near - far), math.expm1(epsilon) * (q * far + (1 - q) * middle)
    # a normal tail is known to about 2x² units of rounding, and not at all where it underflows
    wrong = UNIT * (64 + 8 * (abs(x) + s) ** 2) * (q * (near + far) + cost)
    return max(0.0, gain - cost + side * (wrong + math.exp(epsilon) * 1e-322 + 1e-300))


def _gaussian(mu: float, epsilon: float, side: int) -> float:
    return gaussian_profile.delta_bounds(mu if side > 0 else mu * (1 - 2 * UNIT), epsilon)[side > 0]


def _laplace(distance: float, epsilon: float, side: int) -> float:
    gap = distance * (1 if side > 0 else 1 - 2 * UNIT) - epsilon
    return -math.expm1(-gap / 2) * (1 + side * _BLUR) if gap > 0 else 0.0


def _joining(rate: float, epsilon: float, side: int) -> float:
    """1 − e^epsilon (1 − q), at least 0."""
    end = -math.log1p(-rate)
    return -math.expm1(min(0.0, epsilon - end - side * (_BLUR * (epsilon + end) + _DUST)))


def _inner(weight: float, epsilon: float, side: int) -> float:
    """log(1 + (e^epsilon − 1)/weight), rounded to the other side: delta falls with it."""
    if weight == 0:
        return sys.float_info.max
    far = epsilon > 700 or math.expm1(epsilon) / weight == math.inf
    inner = epsilon - math.log(weight) if far else math.log1p(math.expm1(epsilon) / weight)
    return min(inner * (1 - side * _BLUR), sys.float_info.max)


def one_step_epsilon(pair: Pair, delta: float) -> Bounds:
    """Bounds on epsilon(delta) of one step in one direction."""
    if isinstance(pair, GaussianPair):
        low = gaussian_profile.epsilon_bounds(pair.mu * (1 - 2 * UNIT), delta)[0]
        return Bounds(low, gaussian_profile.epsilon_bounds(pair.mu, delta)[1])
    if delta < pair.infinite * (1 - 1e-15):
        return Bounds(math.inf, math.inf)

    def root(side: int) -> float:
        if _end(pair, 0.0, side) <= delta:
            return 0.0
        bottom, top = 0.0, 1.0
        while _end(pair, top, side) > delta:
            if top == sys.float_info.max:
                return math.inf if side > 0 else top
            bottom, top = top, min(2 * top, sys.float_info.max)
        safe, unsafe = bracketed_root(lambda e: _end(pair, e, side) - delta, top, bottom, tolerance=1e-14)
        return safe if side > 0 else unsafe

    high = root(1)
    return Bounds(min(root(-1), high), high)
