"""Runs whose moments are made of absurdities: the contour accountant after leaving those outcomes out.

With a small rate and a small δ, outcomes of probability far below δ dominate E[e^{tL}] at every useful order t. Let
A be the event that some step's outcome lies beyond that step's cut. As the hockey stick is an expectation of a number
in [0, 1],

    E[(1 - e^{epsilon - L})₊; not A]  ≤  δ(epsilon)  ≤  E[(1 - e^{epsilon - L})₊; not A] + P(A),

and the left side is again a product measure, which :mod:`privet.accounting.contour` integrates. The cuts are such that
P(A) ≤ Σ count·P(xi > cut) is a negligible part of δ. docs/proofs/rare.md has the proof.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from privet.accounting.contour import Steps, contour_delta, contour_epsilon
from privet.accounting.pairs.cut import CutPair
from privet.accounting.pairs.mixture import MixturePair

__all__ = ["rare_delta", "rare_epsilon", "without_rare"]

_SHARES = (1e-8, 1e-6)


def without_rare(steps: Steps, probability: float) -> tuple[list[tuple[MixturePair | CutPair, int]], float] | None:
    """The steps without outcomes that occur in all with at most about `probability`, and the bound on that.

    None where no step is a mixture with losses that are unbounded from above.
    """
    mixtures = [(p, n) for p, n in steps if isinstance(p, MixturePair) and p.kind != "add"]
    if not mixtures:
        return None
    out, unseen = [], 0.0
    for pair, count in steps:
        if isinstance(pair, MixturePair) and pair.kind != "add":
            cut = CutPair(pair, _cut(pair, math.log(probability / len(mixtures) / count)))
            unseen += count * cut.beyond
            out.append((cut, count))
        else:
            out.append((pair, count))
    return out, unseen * (1 + 1e-14)


def _cut(pair: MixturePair, log_probability: float) -> float:
    """The xi beyond which P has about e^log_probability."""
    s, q = pair.shift, pair.rate
    low, high = 0.0, s + 60.0
    for _ in range(60):
        x = (low + high) / 2
        beyond = np.logaddexp(math.log1p(-q) + log_ndtr(-x), math.log(q) + log_ndtr(s - x))
        low, high = (x, high) if beyond > log_probability else (low, x)
    return high


def rare_delta(steps: Steps, epsilon: float, guess: float = 1.0) -> tuple[float, float] | None:
    """Certified (lower, upper) on delta(epsilon) in one direction, without absurd outcomes; `guess` is not too small."""
    best = None
    for _ in range(4):
        found = without_rare(steps, _SHARES[0] * max(guess, 1e-250))
        if found is None:
            return None
        try:
            bounds = contour_delta(found[0], epsilon, unseen=found[1])
        except OverflowError:
            return best
        if bounds is None:
            return best
        best = bounds if best is None else (max(best[0], bounds[0]), min(best[1], bounds[1]))
        if found[1] <= 1e-7 * best[1] or best[1] > 0.1 * guess:
            break
        guess = best[1]
    return best


def rare_epsilon(steps: Steps, delta: float) -> tuple[float, float] | None:
    """Certified (lower, upper) on epsilon(delta) in one direction, without absurd outcomes."""
    best = None
    for share in _SHARES:
        found = without_rare(steps, share * delta)
        if found is None:
            return None
        try:
            bounds = contour_epsilon(found[0], delta, unseen=found[1])
        except OverflowError:
            continue
        if bounds is not None:
            best = bounds if best is None else (max(best[0], bounds[0]), min(best[1], bounds[1]))
            if best[1] - best[0] <= 1e-6 * best[1]:
                break
    return best
