"""Moments of a whole run at real orders, the Rényi bounds that follow from them, and the order that suits best.

Counts are multiplied here only. The Rényi accountant uses these bounds as they are; the contour accountant to find its
saddle and to bound what lies beyond its line.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from privet.accounting.pairs.atoms import Atoms
from privet.accounting.pairs.crowd import Crowd
from privet.accounting.pairs.elementary import BoundedRangePair, DiscretePair, LaplacePair
from privet.accounting.pairs.fixed_size import FixedSizePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.mixture_moments import Mixtures
from privet.accounting.pairs.pair import UNIT, Complexes, Moments, Pair, Reals
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.accounting.pairs.truncated_mixture import CutPair

Steps = Sequence[tuple[Pair, int]]
Run = Sequence[tuple[Moments, int]]
Gathered = tuple[tuple[Moments, int], ...]

_TOGETHER = 64  # mixture pairs worked on at a time
_SAMPLE = 12  # of which so many serve for guesses
_LONG = 10**9
_AROUND = np.linspace(-1, 1, 9)
_WIDE = 4.0**_AROUND

_NO_FLOAT = -800.0  # log of what is 0 to a float


def gathered(steps: Run) -> Gathered:
    """The same run with like pairs together, so that NumPy works on many at a time."""
    steps = tuple(steps)
    return _gathered(steps) if any(_family(pair) for pair, _ in steps) else steps


@lru_cache(maxsize=4)
def _gathered(steps: Gathered) -> Gathered:
    families: dict[tuple[object, ...], list[tuple[Any, int]]] = {}
    for pair, count in steps:
        families.setdefault(_family(pair), []).append((pair, count))
    out = families.pop((), [])
    for family, alike in families.items():
        if family[0] is MixturePair:
            alike.sort(key=lambda part: part[0].shift)
            out += [(Mixtures(alike[i : i + _TOGETHER]), 1) for i in range(0, len(alike), _TOGETHER)]
        elif family[0] is DiscretePair:
            for size in sorted({count for _, count in alike}):
                out.append((Atoms([pair for pair, count in alike if count == size], size), 1))
        else:
            long = max(count for _, count in alike) > _LONG  # alone, a pair's moments keep more digits
            out += alike if long or len(alike) == 1 else [(Crowd(alike), 1)]
    return tuple(out)


def _family(pair: Moments) -> tuple[object, ...]:
    """What pairs that are worked on together have in common; empty for those that are not."""
    match pair:
        case MixturePair(shift=shift, kind=kind):
            return MixturePair, kind, math.frexp(shift)[1]
        case FixedSizePair(shift=shift):
            return FixedSizePair, math.frexp(shift)[1]
        case SampledLaplacePair(kind=kind):
            return SampledLaplacePair, kind
        case DiscretePair() | LaplacePair() | BoundedRangePair():
            return (type(pair),)
    return ()


@lru_cache(maxsize=4)
def thinned(steps: Gathered) -> Gathered:
    """Few of a gathered run's pairs in place of all, for guesses."""
    mixed = [part for pair, _ in steps if isinstance(pair, Mixtures | Crowd) for part in pair.parts]
    if len(mixed) <= _SAMPLE:
        return steps
    some = mixed[:: -(-len(mixed) // _SAMPLE)]
    factor = sum(count for _, count in mixed) / sum(count for _, count in some)
    others = [(pair, count) for pair, count in steps if not isinstance(pair, Mixtures | Crowd)]
    return _gathered((*others, *((pair, max(1, round(count * factor))) for pair, count in some)))


def log_moment(steps: Run, t: Complexes) -> tuple[Complexes, Reals]:
    """log M(t) of the whole run, and a bound on log(1 + relative error of M). Counts are multiplied here only."""
    value = np.zeros(t.shape, dtype=complex)
    error = np.zeros(t.shape)
    for pair, count in gathered(steps):
        one, relative = pair.log_moment(t)
        value += count * one
        error += count * np.log1p(relative)
    return value, error


def rough_log_moment(steps: Run, t: Reals) -> Reals:
    """log M at real orders, for searches only; infinite where it is too large to compute."""
    value = np.zeros(t.shape)
    for pair, count in gathered(steps):
        try:
            if isinstance(pair, Mixtures | Crowd):
                one = pair.rough_log_moment(t)
            elif isinstance(pair, CutPair):
                one = pair.rough_log_moment(t.astype(complex))
            else:
                one = pair.log_moment(t.astype(complex))[0]
        except OverflowError:
            if len(t) == 1:
                return np.array([math.inf])
            return np.concatenate([rough_log_moment(steps, order) for order in np.split(t, len(t))])
        value += count * one.real
    return np.where(np.isfinite(value), value, math.inf)


def infinite_mass(steps: Run) -> float:
    """P(L = ∞) of the whole run."""
    masses = [(pair.infinite, count) for pair, count in steps if pair.infinite]
    if any(mass >= 1.0 for mass, _ in masses):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-mass) for mass, count in masses))


def largest_loss(steps: Run) -> float:
    """What no finite loss of the whole run exceeds: the sum of the largest ones, rounded up."""
    return math.fsum(count * pair.highest for pair, count in steps) * (1 + 8 * UNIT)


def hook(t: Reals) -> Reals:
    """log of max over x of (1 - e^{-x})₊ e^{-tx}: the constant between a moment and a hockey stick."""
    out: Reals = -np.log1p(t) - t * np.log1p(1 / t)
    return out


@np.errstate(all="ignore")
def chernoff_log_delta(steps: Run, epsilon: float, t: Reals) -> Reals:
    """log of the Rényi bound on delta(epsilon) at each order 1 + t, without the infinite mass."""
    value, error = log_moment(steps, t.astype(complex))
    rounding = 16 * UNIT * (1 + np.abs(value.real) + t * epsilon)
    return _or_infinite(value.real + error - t * epsilon + hook(t) + rounding)


@np.errstate(all="ignore")
def chernoff_epsilon(steps: Run, log_delta: float, t: Reals) -> Reals:
    """The Rényi bound on epsilon at each order 1 + t, for the finite part of delta."""
    value, error = log_moment(steps, t.astype(complex))
    rounding = 16 * UNIT * (1 + np.abs(value.real) - log_delta)
    return _or_infinite((value.real + error + hook(t) - log_delta + rounding) / t)


def _or_infinite(bounds: Reals) -> Reals:
    """A bound that could not be computed bounds nothing."""
    return np.where(np.isnan(bounds), math.inf, bounds)


def best_order(steps: Run, objective: str, target: float, *, fine: bool = False) -> float:
    """The t > 0 that about minimises a Rényi bound.

    `objective` "epsilon" takes a log delta as `target`; "log_delta" takes an epsilon.
    """
    steps = thinned(gathered(steps))

    def at(t: Reals) -> Reals:
        with np.errstate(all="ignore"):
            value = rough_log_moment(steps, t) + hook(t)
        return (value - target) / t if objective == "epsilon" else value - t * target

    centre, ratio = _first_order(steps, objective, target), 4.0
    last = len(_AROUND) - 1
    for _ in range(80):
        grid = centre * (_WIDE if ratio == 4.0 else ratio**_AROUND)
        values = at(grid)
        if objective == "log_delta" and values.min() < _NO_FLOAT:
            return float(grid[np.argmax(values < _NO_FLOAT)])  # higher orders say no more, and cost more
        i = int(np.argmin(values))
        if math.isinf(values[i]):
            centre /= 16.0
        elif i in (0, last) and 1e-12 < centre < 1e12:
            centre = float(grid[i])
        else:
            centre = float(grid[i])
            a, b, c = values[max(i - 1, 0)], values[i], values[min(i + 1, last)]
            if 0 < i < last and math.isfinite(a + c) and a + c > 2 * b:  # the parabola's bottom, in log t
                centre *= ratio ** (float((a - c) / (a - 2 * b + c)) / last)
            if ratio < (1.05 if fine else 5.0):
                break
            ratio **= 0.4
    return centre


def _first_order(steps: Run, objective: str, target: float) -> float:
    """Where to start the search of `best_order`."""
    # as if the loss were normal: log M(t) = v·t(t+1)/2, epsilon ≈ v/2 + √(2v·log(1/delta)), t ≈ (epsilon - v/2)/v
    spread, most = 1e-12, 1e6
    for pair, count in steps:
        if not isinstance(pair, Mixtures):
            # below 0 where a chance δ of the pair is infinite, and left out of its moments
            spread += max(0.0, count * 2 * float(rough_log_moment([(pair, 1)], np.array([0.5]))[0]) / 0.75)
            continue
        for part, times in pair.parts:
            q, s = part.rate, part.shift
            variance = min(q * q * math.expm1(min(s * s, 300.0)), q * s * s)
            spread += times * variance * (4 if part.kind == "replace" else 1)
            if part.kind != "add":  # one visit has log M(t) ≥ (1+t)·log q + t(t+1)s²/2, whose best order is no larger
                rarity = -math.log(q)
                one = math.sqrt(2 * (rarity - target)) if objective == "epsilon" else (target + rarity) / s
                most = min(most, max(one / s, 0.05))
    normal = math.sqrt(-2 * target / spread) if objective == "epsilon" else (target - spread / 2) / spread
    return min(most, max(normal, 0.3 / math.sqrt(spread)))
