"""Runs whose moments are made of absurdities: line integrals after leaving those outcomes out.

With a small rate and a small δ, outcomes of probability far below δ dominate E[e^{tL}] at every useful order t. Let
A be the event that some step's outcome lies beyond that step's cut. As the hockey stick is an expectation of a number
in [0, 1],

    E[(1 - e^{epsilon - L})₊; not A]  ≤  δ(epsilon)  ≤  E[(1 - e^{epsilon - L})₊; not A] + P(A),

and the left side is again a product measure, which :mod:`privet.accounting.contour.integral` integrates. The cuts are
such that P(A) ≤ Σ count·P(xi > cut) is a negligible part of δ. Where that is not enough,
:mod:`privet.accounting.contour.big_steps` tells big steps from small ones. docs/proofs/rare.md has the proofs.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeGuard

import numpy as np
from scipy.special import log_ndtr

from privet.accounting.contour.big_steps import MOST_RATE, Levels
from privet.accounting.contour.integral import NOTHING, contour_delta, contour_epsilon
from privet.accounting.contour.roots import Bracketing
from privet.accounting.contour.rough_epsilon import bulk_variance, normal_epsilon, one_step_delta, one_step_epsilon
from privet.accounting.pairs.fixed_size import CutFixedSize, FixedSizePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import Moments, Pair
from privet.accounting.pairs.truncated_mixture import CutPair
from privet.accounting.renyi_orders import Steps, best_order, rough_log_moment

Bracket = tuple[float, float]

_NARROW = 5e-6  # a bracket of this relative width needs no second look
_FAIR = 1e-4  # one of this width that levels gave does not, either: no other line was seen to be sharper there
_SHARE = 1e-8  # of δ that the neglected outcomes may make up
_MOST_GUESS = 0.9  # of δ
_FEW = 0.05  # visits of a record, below which the loss is nearly an atom


@np.errstate(all="ignore")
def line_epsilon(steps: Steps, delta: float) -> Bracket | None:
    """Certified (lower, upper) on epsilon(delta) by line integrals, in one direction; None if there is none."""
    if surely_free(steps, delta):
        return 0.0, 0.0
    alone = _alone(steps)
    rare = partial(rare_epsilon, steps, delta), _NARROW if alone is None else _FAIR
    if alone is None:
        attempts = [(partial(contour_epsilon, steps, delta), _NARROW), rare]
    elif _nearly_atomic(*alone, delta):
        attempts = [rare, (partial(contour_epsilon, steps, delta), _NARROW)]
    else:
        saddle = best_order(steps, "epsilon", math.log(delta))
        plain = partial(contour_epsilon, steps, delta, saddle=saddle)
        attempts = [(partial(plain, patient=False), _NARROW), rare, (plain, _NARROW)]
        if _cancels(*alone, delta, saddle):
            attempts = attempts[1:]
    best: Bracket | None = None
    for attempt, enough in attempts:
        best = _common(best, _quietly(attempt))
        if _narrow(best, enough):
            break
    return best


@np.errstate(all="ignore")
def line_delta(steps: Steps, epsilon: float, kept: list[Bracketing] | None = None) -> Bracket | None:
    """Certified (lower, upper) on delta(epsilon) by line integrals, in one direction; None if there is none.

    `kept` are lines and levels of the same steps laid before: one that is sharp at `epsilon`, too, answers, or that
    shows delta to be next to nothing; else a new one joins them.
    """
    for known in kept[-2:] if kept else ():
        lower, upper = known.lower(epsilon), known.upper(epsilon)
        if upper - lower <= _NARROW * upper or upper < NOTHING:
            return lower, upper
    best: Bracket | None = None
    if kept and isinstance(kept[-1], Levels):  # where no line alone was sharp
        best = _quietly(partial(rare_delta, steps, epsilon, min(1.0, kept[-1].upper(epsilon)), kept))
        if _narrow(best) or (best is not None and best[1] < NOTHING):
            return best
        return _common(best, contour_delta(steps, epsilon, kept=kept))
    best = contour_delta(steps, epsilon, kept=kept)
    if not _narrow(best) and not (best is not None and best[1] < NOTHING):
        guess = 1.0 if best is None else best[1]
        best = _common(best, _quietly(partial(rare_delta, steps, epsilon, guess, kept)))
    return best


@np.errstate(all="ignore")
def rare_epsilon(steps: Steps, delta: float) -> Bracket | None:
    """Certified (lower, upper) on epsilon(delta) in one direction, without absurd outcomes; None if there is none."""
    alone = _alone(steps)
    best: Bracket | None = None
    guess = 0.0
    if alone:
        guess = math.hypot(one_step_epsilon(*alone, delta), normal_epsilon(*alone, delta, cap=1.5))
        best = _by_levels(*alone, delta, guess)
        if _narrow(best, _FAIR):
            return best
    found = without_rare(steps, _SHARE * delta)
    if found is None:
        return best
    cut = _quietly(partial(contour_epsilon, found[0], delta, unseen=found[1], patient=False))
    best = _common(best, cut)
    if alone and not _narrow(best):
        guess = cut[1] if cut is not None and cut[1] < 2 * cut[0] else guess
        best = _common(best, _by_levels(*alone, delta, guess))
    return best


@np.errstate(all="ignore")
def rare_delta(
    steps: Steps, epsilon: float, guess: float = 1.0, kept: list[Bracketing] | None = None
) -> Bracket | None:
    """Certified (lower, upper) on delta(epsilon) in one direction; `guess` is not much too small."""
    alone = _alone(steps) if epsilon > 0 else None
    best: Bracket | None = None
    if alone is not None:
        best = _levelled(*alone, epsilon, min(guess, alone[1] * one_step_delta(alone[0], epsilon)), kept)
        if _narrow(best) or (best is not None and best[1] < NOTHING):
            return best
    for _ in range(4):
        found = without_rare(steps, _SHARE * max(guess, 1e-250))
        if found is None:
            return best
        cut = _quietly(partial(contour_delta, found[0], epsilon, unseen=found[1], kept=kept))
        best = _common(best, cut)
        if cut is None or _narrow(best) or found[1] <= 1e-7 * cut[1] or cut[1] > 0.1 * guess:
            break
        guess = cut[1]
    if alone is None or best is None or _narrow(best, _FAIR):
        return best
    return _common(best, _levelled(*alone, epsilon, best[1], kept))


def _levelled(
    pair: MixturePair, count: int, epsilon: float, guess: float, kept: list[Bracketing] | None
) -> Bracket | None:
    """delta(epsilon) by levels, the last of which join those that are `kept`."""
    best: Bracket | None = None
    levels: Levels | None = None
    for _ in range(3):
        again = Levels.laid(pair, count, epsilon, min(guess, _MOST_GUESS)) if guess > 1e-290 else None
        if again is None:
            break
        levels, better = again, (again.lower(epsilon), again.upper(epsilon))
        best = _common(best, better)
        if _narrow(best) or 0.5 * guess < better[1] < 2 * guess:
            break
        guess = better[1]
    if kept is not None and levels is not None:
        kept.append(levels)
    return best


def without_rare(steps: Steps, probability: float) -> tuple[list[tuple[Moments, int]], float] | None:
    """The steps without outcomes that occur in all with at most about `probability`, and the bound on that.

    None where no step is a mixture at a rate up to one half whose loss is unbounded from above.
    """
    cuttable = [(pair, count) for pair, count in steps if _cuttable(pair)]
    if not cuttable:
        return None
    out: list[tuple[Moments, int]] = [(pair, count) for pair, count in steps if not _cuttable(pair)]
    unseen = 0.0
    for pair, count in cuttable:
        side = MixturePair(pair.rate, pair.shift, "remove") if isinstance(pair, FixedSizePair) else pair
        cut = CutPair(side, _cut(side, math.log(probability / len(cuttable) / count)))
        unseen += count * cut.beyond
        out.append((CutFixedSize(pair, cut) if isinstance(pair, FixedSizePair) else cut, count))
    return out, unseen * (1 + 1e-14)


def surely_free(steps: Steps, delta: float) -> bool:
    """Whether the run is (0, delta)-private because total variations add up to no more than delta."""
    total = 0.0
    for pair, count in steps:
        if not isinstance(pair, MixturePair):
            return False
        half = pair.shift if pair.kind == "replace" else pair.shift / 2
        total += count * pair.rate * math.erf(half / math.sqrt(2.0))
    return total * (1 + 1e-13) <= delta


def _alone(steps: Steps) -> tuple[MixturePair, int] | None:
    """The run's only pair, if it is one that levels know."""
    pair, count = steps[0]
    return (pair, count) if len(steps) == 1 and isinstance(pair, MixturePair) and _rare(pair) else None


def _cuttable(pair: Pair) -> TypeGuard[MixturePair | FixedSizePair]:
    """Whether outcomes beyond a cut can be left out of it."""
    fixed = isinstance(pair, FixedSizePair) and pair.rate <= MOST_RATE
    return fixed or (isinstance(pair, MixturePair) and _rare(pair))


def _rare(pair: MixturePair) -> bool:
    """Whether cuts and levels know it: "add" needs none, and at rates near 1 their logs of w₋ have no digits left."""
    return pair.kind != "add" and pair.rate <= MOST_RATE


def _by_levels(pair: MixturePair, count: int, delta: float, guess: float) -> Bracket | None:
    best: Bracket | None = None
    for _ in range(3):
        levels = Levels.laid(pair, count, guess, delta) if guess > 0 else None
        better = None if levels is None else _quietly(partial(levels.epsilon, delta, guess))
        if better is None:
            break
        best = _common(best, better)
        if _narrow(best) or abs(better[1] - guess) < 1e-3 * guess:
            break
        guess = better[1]
    return best


# --- guesses: only the order of attempts, and where they start, depends on them ---------------------------------------


def _cut(pair: MixturePair, log_probability: float) -> float:
    """The xi beyond which P has about e^log_probability."""
    s, q = pair.shift, pair.rate
    low, high = 0.0, s + 60.0
    for _ in range(60):
        x = (low + high) / 2
        beyond = np.logaddexp(math.log1p(-q) + log_ndtr(-x), math.log(q) + log_ndtr(s - x))
        low, high = (x, high) if beyond > log_probability else (low, x)
    return high


def _cancels(pair: MixturePair, count: int, delta: float, order: float) -> bool:
    """Whether the plain line's integrand is likely to be very much larger than its integral, δ.

    As if the loss were normal, or all of it in one step.
    """
    spread = math.sqrt(bulk_variance(pair, count))
    if spread > 0.2 or (pair.shift > 1.05 and pair.rate > 5e-4):
        return False
    epsilon = normal_epsilon(pair, count, delta)
    if pair.shift > 1.05:
        epsilon = max(epsilon, one_step_epsilon(pair, count, delta))
    log_moment = float(rough_log_moment(((pair, count),), np.array([order]))[0])
    return log_moment - order * epsilon - math.log1p(order) - math.log(delta) > 13.5


def _nearly_atomic(pair: MixturePair, count: int, delta: float) -> bool:
    """Whether the record is seldom seen, so that the loss is nearly an atom, and one big step decides."""
    visits = pair.rate * count
    if visits < _FEW or visits > 1 or pair.shift < 0.35:
        return visits < _FEW
    return one_step_epsilon(pair, count, delta) > 20 * math.sqrt(bulk_variance(pair, count, cap=1.5))


# --- brackets ---------------------------------------------------------------------------------------------------------


def _narrow(bounds: Bracket | None, width: float = _NARROW) -> bool:
    return bounds is not None and bounds[1] - bounds[0] <= width * bounds[1]


def _common(one: Bracket | None, other: Bracket | None) -> Bracket | None:
    """What two brackets have in common; if nothing, one of them is wrong, and neither is used alone."""
    if one is None or other is None:
        return one or other
    lower, upper = max(one[0], other[0]), min(one[1], other[1])
    return (lower, upper) if lower <= upper else (min(one[0], other[0]), max(one[1], other[1]))


def _quietly(price: Callable[[], Bracket | None]) -> Bracket | None:
    """None where something is beyond what floats can hold: that is no bound."""
    try:
        return price()
    except (ArithmeticError, ValueError):
        return None
