"""What any attack can achieve, from the privacy profile alone.

A profile is the curve delta(epsilon) of a run for its neighbours, the worse of the two directions. The run is
(epsilon, delta(epsilon))-private for *every* epsilon at once, and each of these pairs limits every test that decides
between two neighbouring data sets from the release (Wasserman and Zhou 2010; Dong, Roth and Su 2022):

    TPR <= e^epsilon FPR + delta        and        1 - FPR <= e^epsilon (1 - TPR) + delta.

The least over epsilon is the trade-off curve itself when the profile is exact, and is valid for any choice of
epsilons: more of them make the bound smaller, never wrong.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from privet._checks import between
from privet.errors import InvalidParameter

Profile = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From epsilons to upper bounds on delta."""

_ROUNDING = 1e-12  # relative; a handful of float operations on either side of each inequality
_HORIZON = 40.0  # e^-40 < 1e-17: beyond this epsilon nothing is left to gain
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def best_attack(
    profile: Profile,
    false_positive_rates: Sequence[float] | NDArray[np.float64],
    *,
    grid: int = 16,
    refinements: int = 12,
) -> NDArray[np.float64]:
    """Bound the true positive rate of every attack, at each of the false positive rates.

    Promise: no test between neighbouring data sets that raises false alarms at rate `f` is right more often than the
    number returned for `f`, if `profile` never lies below the truth.
    Theorem: see the head of this module. Both bounds are unimodal in epsilon (delta is convex in e^epsilon, and so is
    its perspective), so a coarse grid and golden sections around its best point find the least.

    Parameters
    ----------
    profile : from an array of epsilons to an array of deltas, for both directions
    false_positive_rates : probabilities, 0 and 1 included
    grid, refinements : epsilons to try for all rates together, and then for each; a matter of tightness only

    Examples
    --------
    With (1, 0)-privacy one false alarm in a hundred buys at most e true ones:

    >>> best_attack(implied_profile(epsilon=1.0, delta=0.0), [0.01], refinements=40).round(6)
    array([0.027183])
    """
    rates = np.asarray(false_positive_rates, dtype=float)
    if rates.ndim != 1 or not np.all((rates >= 0) & (rates <= 1)):
        raise InvalidParameter(
            f"Expected false positive rates in [0, 1], got {false_positive_rates!r}: they are probabilities. "
            "Pass a list such as [0.001, 0.01]."
        )
    known: dict[float, float] = {}  # epsilon -> delta, everything asked so far

    def ask(epsilons: Sequence[float]) -> None:
        new = [value for value in epsilons if value not in known]
        known.update(zip(new, np.clip(profile(np.array(new)), 0.0, 1.0).tolist(), strict=True) if new else ())

    end = _horizon(known, ask, rates)
    ask([end * place / grid for place in range(grid + 1)])
    for rate in rates if refinements else ():
        _refine(known, ask, float(rate), refinements)
    epsilons, deltas = np.array(list(known)), np.array(list(known.values()))
    best = np.array([_both_bounds(epsilons, deltas, float(rate)).min(initial=1.0) for rate in rates])
    return np.clip(best * (1 + _ROUNDING), rates, 1.0)


def _both_bounds(epsilons: NDArray[np.float64], deltas: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    found = np.exp(epsilons) * rate + deltas
    missed = np.exp(-epsilons) * np.maximum(0.0, 1.0 - rate - deltas)
    return np.stack((found, 1.0 - missed))


def _horizon(known: dict[float, float], ask: Callable[[Sequence[float]], None], rates: NDArray[np.float64]) -> float:
    """Return an epsilon beyond which no rate has anything to gain, by doubling."""
    least = float(rates.min(initial=1.0, where=rates > 0))
    negligible = min(1e-9, 1e-3 * least) if np.all(rates > 0) else 1e-12
    # e^epsilon FPR says nothing once it exceeds 1; e^-7 = 0.001 is as far as the second bound is worth following
    last = _HORIZON if np.any(rates == 0) else min(max(math.log(1 / least), 7.0), _HORIZON)
    end = last / 256
    while end < last:
        ask([end])
        if known[end] <= negligible:
            return end
        end *= 2
    return last


def _refine(known: dict[float, float], ask: Callable[[Sequence[float]], None], rate: float, times: int) -> None:
    """Ask around the best epsilon known for this rate, by golden sections of the bound that is the better there."""
    epsilons = np.array(sorted(known))
    bounds = _both_bounds(epsilons, np.array([known[value] for value in epsilons.tolist()]), rate)
    which, place = divmod(int(bounds.argmin()), epsilons.size)
    left, right = float(epsilons[max(place - 1, 0)]), float(epsilons[min(place + 1, epsilons.size - 1)])

    def bound(epsilon: float) -> float:
        ask([epsilon])
        return float(_both_bounds(np.array([epsilon]), np.array([known[epsilon]]), rate)[which, 0])

    inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    at_inner, at_outer = bound(inner), bound(outer)
    for _ in range(times - 2):
        if at_inner <= at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = right - _GOLDEN * (right - left)
            at_inner = bound(inner)
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + _GOLDEN * (right - left)
            at_outer = bound(outer)


def best_guess(profile: Profile, prior: float) -> float:
    """Bound how often anybody guesses rightly which of two neighbouring data sets was used.

    Promise: with probability `prior` for one of them, no guess from the release is right more often than this.
    Theorem: for p <= 1/2 a guess is right with probability (1 - p) + p (TPR - (1 - p)/p FPR), and the bracket is at
    most delta(ln((1 - p)/p)), by the definition of delta as a hockey-stick divergence. For p = 1/2 it is
    (1 + total variation distance)/2.

    Examples
    --------
    >>> round(best_guess(implied_profile(epsilon=1.0, delta=0.0), 0.5), 6)
    0.731059
    """
    prior = check_prior(prior)
    rarer = min(prior, 1.0 - prior)
    delta = float(profile(np.array([math.log((1.0 - rarer) / rarer)]))[0])
    return min(1.0, (1.0 - rarer + rarer * delta) * (1 + _ROUNDING))


def posterior(prior: float, *, epsilon: float) -> tuple[float, float]:
    """Return how low and how high a belief `prior` can be moved by odds of at most e^epsilon either way.

    Promise: an (epsilon, 0)-private release never moves the belief outside.
    Theorem: Bayes; odds are multiplied by the likelihood ratio, which lies in [e^-epsilon, e^epsilon].

    Examples
    --------
    >>> [round(belief, 3) for belief in posterior(0.5, epsilon=1.0)]
    [0.269, 0.731]
    """
    prior = check_prior(prior)
    shrink = math.exp(-epsilon)
    # p/(p + (1-p) e^epsilon) and p/(p + (1-p) e^-epsilon), without overflow
    return prior * shrink / (prior * shrink + 1.0 - prior), prior / (prior + (1.0 - prior) * shrink)


def implied_profile(*, epsilon: float, delta: float) -> Profile:
    """Return the profile that one pair (epsilon, delta) implies, when nothing else is known of the release.

    Promise: every (epsilon, delta)-private release has a profile at most this.
    Theorem: it is that of the worst such release: tell all with probability delta, else randomized response with odds
    e^epsilon (Kairouz, Oh and Viswanath 2015): delta' = 1 - (1 - delta)(1 + e^epsilon')/(1 + e^epsilon)
    for epsilon' below epsilon, and delta beyond.

    Examples
    --------
    >>> implied_profile(epsilon=1.0, delta=1e-6)(np.array([0.0, 2.0])).round(6)
    array([4.62118e-01, 1.00000e-06])
    """

    def profile(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        if math.isinf(epsilon):
            return np.ones_like(epsilons)
        # (1 + e^a)/(1 + e^b) = e^(a-b) (1 + e^-a)/(1 + e^-b): finite for any epsilon
        kept = np.exp(np.minimum(epsilons - epsilon, 0.0)) * (1 + np.exp(-epsilons)) / (1 + math.exp(-epsilon))
        below = 1.0 - (1.0 - delta) * kept + 4 * np.finfo(float).eps
        return np.where(epsilons < epsilon, np.minimum(1.0, np.maximum(delta, below)), delta)

    return profile


def check_prior(prior: float) -> float:
    """Refuse a prior that no release could move."""
    because = "it is the belief before the release, and certainty cannot be moved"
    return between("prior", prior, 0.0, 1.0, because=because, use="Use 0.5 for an attacker who has no idea.")
