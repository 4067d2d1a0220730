"""The best of a random number of trials: what the whole search costs, from what one trial costs.

Run a mechanism Q a random number K of times and release the best output only (Liu and Talwar 2019; Papernot and
Steinke 2022). With f the generating function of K and q the chance that a trial ranks below y, the search releases y
with density Q(y) f'(q). For neighbours, f'(q) and f'(q') differ by a factor of at most e^c, so

    δ_search(ε) ≤ E[K] · δ_Q(ε − c).

For the truncated negative binomial law c = (1 + shape) x, where x ≥ 0 solves stop·(e^x − 1) = (1 − stop)·δ_Q(x). As δ_Q
is 0 from ε on for an ε-private trial, x ≤ ε, and c gives back Liu and Talwar's 3ε (geometric law), and 2ε (logarithmic
law). For the Poisson law c = E[K]·δ_Q(0), or their theorem 6 if that is less. A fixed K would cost K times a trial.
Proof: docs/proofs/selection.md.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from privet._checks import is_number, shown
from privet.accounting import events as ev
from privet.accounting.both_directions import contour, fourier
from privet.accounting.closed_forms import closed
from privet.accounting.interface import Bounds, Uncertified
from privet.accounting.moment_bounds import renyi
from privet.accounting.numerics import SLACK, bracketed_root, downward, upward
from privet.accounting.pairs.dominating import directions, known_by_moments_only, leaves
from privet.accounting.pairs.pair import Reals
from privet.accounting.pairs.selected import log_mean_trials
from privet.accounting.renyi_orders import chernoff_epsilon, chernoff_log_delta
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours

LAWS = {"logarithmic": 0.0, "geometric": 1.0}
"""Shapes of the truncated negative binomial law that have names."""

_NEAR = 1e-10  # relative; to which x is solved for, on the safe side
_ORDERS = np.geomspace(0.25, 4096.0, 57)


def random_trials(event: ev.Event, *, mean: float, law: str = "logarithmic") -> ev.Event:
    """The event of a search: the best of a secret, random number of trials of `event`, `mean` of them on average.

    The more the number of trials varies, the less it tells: "logarithmic" costs least but often stops after one trial;
    "geometric" varies less; "poisson" least, and with chance e^-mean there is no trial at all.

    Parameters
    ----------
    event : one trial, candidate drawn at random, its score included
    mean : expected number of trials, above 1 (above 0 for "poisson")
    law : "logarithmic", "geometric" or "poisson"

    Examples
    --------
    >>> from privet.accounting import Gaussian, epsilon
    >>> trial = Gaussian(noise_multiplier=10.0)
    >>> for run in (trial, random_trials(trial, mean=10), trial * 10):
    ...     print(f'{epsilon(run, delta=1e-6, neighbours="add_remove"):.3f}')
    0.397
    0.585
    1.368
    """
    positive = is_number(mean) and 0 < mean <= 1e6
    if law == "poisson" and positive:
        return ev.PoissonTrials(event=event, mean=float(mean))
    if law not in LAWS or not positive or mean <= 1:
        raise InvalidParameter(
            "Expected mean above 1 (and at most 1e6) and law 'logarithmic', 'geometric' or 'poisson', got "
            f"{shown(mean)} and {law!r}: the number of trials must be random, or each costs its full epsilon. "
            "Use mean=10."
        )
    shape, target = LAWS[law], math.log(float(mean))
    log_stop = bracketed_root(lambda x: target - log_mean_trials(shape, math.exp(x)), -50.0, -1e-12, tolerance=1e-12)[0]
    stop = max(round(math.ldexp(math.exp(log_stop), 40)), 1) * 2.0**-40  # few bits: quick to draw with
    return ev.NegativeBinomialTrials(event=event, shape=shape, stop=min(stop, 1 - 2.0**-40))


def mean_trials(search: ev.Event) -> float:
    """The expected number of trials of a search, rounded up.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> round(mean_trials(random_trials(Gaussian(noise_multiplier=10.0), mean=10)), 6)
    10.0
    """
    match search:
        case ev.PoissonTrials(mean=mean):
            return float(mean)
        case ev.NegativeBinomialTrials(shape=shape, stop=stop):
            return upward(math.exp(log_mean_trials(shape, stop)))
    raise InvalidParameter(
        f"Expected the event of a search, got {search!r}: it has no number of trials. "
        "Use random_trials(event, mean=10)."
    )


def sole_search(run: ev.Event, neighbours: Neighbours) -> ev.Event | None:
    """The search that is all of the run, if it is one."""
    parts = leaves(run, neighbours)
    (leaf, count), *others = parts
    is_one = not others and count == 1 and isinstance(leaf, ev.NegativeBinomialTrials | ev.PoissonTrials)
    return leaf if is_one else None


def selection(run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """Bounds for one search alone, as at the top of this file; the lower end is that of one trial.

    Some order of the outputs attains it: one by which all trials rank alike.
    """
    search = sole_search(run, neighbours)
    if not isinstance(search, ev.NegativeBinomialTrials | ev.PoissonTrials):
        raise NoProvenBound(
            "Expected one search by random_trials, got another run: this theorem is for a search alone. "
            "Use accountant='auto'."
        )
    mean, shift = mean_trials(search), selection_shift(search, neighbours)
    poisson = isinstance(search, ev.PoissonTrials)
    if delta is not None:
        share = downward(min(delta / mean, delta))
        inner = _priced(search.event, neighbours, share, None)
        upper = upward(inner.upper + shift)
        lower = 0.0 if poisson else _priced(search.event, neighbours, delta, None).lower
    else:
        asked = epsilon or 0.0
        lower = 0.0 if poisson else _priced(search.event, neighbours, None, asked).lower
        left = asked - shift - SLACK * (asked + shift)
        upper = 1.0 if left < 0 else min(1.0, upward(mean * _priced(search.event, neighbours, None, left).upper))
    if isinstance(search, ev.PoissonTrials):
        upper = min(upper, _poisson_by_moments(search, neighbours, delta, epsilon))
    return Bounds(min(lower, upper), upper)


def selection_shift(search: ev.Event, neighbours: Neighbours) -> float:
    """c, by which the random number of trials moves epsilon; the factor E[K] on delta comes on top.

    Examples
    --------
    >>> from privet.accounting import Pure
    >>> geometric = random_trials(Pure(epsilon=0.1), mean=1e5, law="geometric")
    >>> f'{selection_shift(geometric, "add_remove"):.4f}'          # Liu and Talwar: at most 2 × 0.1
    '0.2000'
    """
    match search:
        case ev.PoissonTrials(event=inner, mean=mean):
            return upward(mean * _priced(inner, neighbours, None, 0.0).upper)
        case ev.NegativeBinomialTrials(event=inner, shape=shape, stop=stop):
            return upward((1 + shape) * _log_ratio(inner, stop, neighbours))
    raise InvalidParameter(
        f"Expected the event of a search, got {search!r}: nothing is selected. Use random_trials(event, mean=10)."
    )


def _log_ratio(inner: ev.Event, stop: float, neighbours: Neighbours) -> float:
    """The least x, rounded up, with stop·(e^x − 1) ≥ (1 − stop)·δ(x)."""

    def short(x: float) -> float:
        return (1 - stop) * _priced(inner, neighbours, None, x).upper * (1 + SLACK) - stop * math.expm1(x) * (1 - SLACK)

    if short(0.0) <= 0:
        return 0.0
    most = -math.log(stop) * (1 + 1e-12) + 1e-12  # there e^x − 1 ≥ (1 − stop)/stop, whatever the trial
    return most if short(most) > 0 else bracketed_root(short, most, 0.0, tolerance=_NEAR)[0]


def _poisson_by_moments(
    search: ev.PoissonTrials, neighbours: Neighbours, delta: float | None, epsilon: float | None
) -> float:
    """Theorem 6, with the trial's exact chance δ̂ at e^ε̂ = λ/(λ − 1); the best of a grid of orders."""
    try:
        ways = directions(search.event, neighbours)
    except NoProvenBound:
        return math.inf if delta is not None else 1.0
    if any(pair.infinite for way in ways for pair, _ in way.steps):
        return math.inf if delta is not None else 1.0
    log_mean = upward(math.log(search.mean)) if search.mean > 1 else math.log(search.mean) + 1e-15
    chances = [upward(_priced(search.event, neighbours, None, downward(math.log1p(1 / t))).upper) for t in _ORDERS]
    penalty = search.mean * np.array(chances)
    bounds = []
    for way in ways:
        if delta is not None:
            found = _each(partial(chernoff_epsilon, way.steps, math.log(delta)))
            bounds.append(found + log_mean / _ORDERS + penalty)
        else:
            found = _each(partial(chernoff_log_delta, way.steps, epsilon or 0.0))
            bounds.append(found + log_mean + penalty * _ORDERS)
    best = float(np.min(np.max(bounds, axis=0)))
    if delta is not None:
        return upward(max(best, 0.0) + 1e-12)
    return 1.0 if best >= 0 else upward(math.exp(max(best + 1e-11, -690.0)))


def _each(bound: Callable[[Reals], Reals]) -> Reals:
    """A bound at each of the orders; infinite at one that is too large to compute."""

    def at(order: Reals) -> Reals:
        try:
            return bound(order)
        except OverflowError:
            return np.array([math.inf])

    return np.concatenate([at(order) for order in np.split(_ORDERS, len(_ORDERS))])


def _priced(inner: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None) -> Bounds:
    """One trial, by the first accountant that certifies it; a search inside a search by its moments."""
    if delta is not None and delta < 1e-300:  # beyond what the engines certify
        return renyi(inner, neighbours, delta, None) if delta > 1e-307 else Bounds(0.0, math.inf)
    ways = directions(inner, neighbours)
    if not known_by_moments_only(ways):
        for price in (closed, contour, fourier):
            try:
                with np.errstate(all="ignore"):
                    found = price(inner, neighbours, delta, epsilon)
            except (Uncertified, ArithmeticError, ValueError):  # NoProvenBound is a ValueError
                continue
            if not math.isnan(found.upper):
                return found
    return renyi(inner, neighbours, delta, epsilon)
