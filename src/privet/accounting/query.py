"""What does a run cost? The questions people ask, answered by the best accountant that has a proof."""

from __future__ import annotations

import math
import warnings

import numpy as np

from privet.accounting import events as ev
from privet.accounting.accountants import ACCOUNTANTS, THEOREMS, Bounds, Uncertified
from privet.accounting.contour.integral import NOTHING
from privet.accounting.pairs.dominating import directions, known_by_moments_only, leaves
from privet.accounting.selection import mean_trials, selection, sole_search
from privet.errors import InvalidParameter, LooseBound, NoProvenBound
from privet.privacy import Guarantee, Neighbours, check_delta, check_epsilon, check_neighbours

WIDE = 2e-5  # a bracket wider than this, relatively, is worth asking a second engine
_LOOSE = 1e-5  # a bracket wider than this, relatively, is worth a warning


def epsilon(run: ev.Event, *, delta: float, neighbours: Neighbours, accountant: str = "auto") -> float:
    """The least epsilon, rounded up, for which the run is certified (epsilon, delta)-private.

    Promise: never below the truth, rounding included, whatever the data and whatever later steps made of earlier
    outputs. Theorem: see `guarantee`, whose sentence names it. Unit: nats.

    Parameters
    ----------
    run : an event, e.g. `Gaussian(noise_multiplier=1.1).poisson(rate=0.01) * 1000`
    delta : in (0, 1); well below one over the number of records
    neighbours : "replace_one", "zero_out" or "add_remove"
    accountant : "auto" for the tightest that is valid, or a name from `compare`

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> run = Gaussian(noise_multiplier=1.1).poisson(rate=256 / 60_000) * 14_062
    >>> f'{epsilon(run, delta=1e-5, neighbours="add_remove"):.8f}'
    '2.38159692'
    """
    return told(*ask(run, neighbours, accountant, check_delta(delta), None))[0].upper


def delta(run: ev.Event, *, epsilon: float, neighbours: Neighbours, accountant: str = "auto") -> float:
    """The least delta, rounded up, for which the run is certified (epsilon, delta)-private.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> run = Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1000
    >>> f'{delta(run, epsilon=1.0, neighbours="add_remove"):.9f}'
    '0.002612421'
    """
    return told(*ask(run, neighbours, accountant, None, check_epsilon(epsilon)))[0].upper


def bounds(
    run: ev.Event,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    neighbours: Neighbours,
    accountant: str = "auto",
) -> Bounds:
    """A certified interval that holds the true epsilon at `delta`, or the true delta at `epsilon`.

    Truth means: of the dominating pairs (docs/proofs/pairs.md), which are attained by some data set except for
    fixed-size batches and the exponential mechanism.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> low, high = bounds(Gaussian(noise_multiplier=1.0), delta=1e-5, neighbours="add_remove")
    >>> low <= 4.3771780956812245 <= high, high / low - 1 < 1e-9
    (True, True)
    """
    if (delta is None) == (epsilon is None):
        raise InvalidParameter(
            f"Expected exactly one of delta and epsilon, got delta={delta!r} and epsilon={epsilon!r}: "
            "one is given, the other is the answer. Drop one of them."
        )
    checked_delta = check_delta(delta) if delta is not None else None
    checked_epsilon = check_epsilon(epsilon) if epsilon is not None else None
    return told(*ask(run, neighbours, accountant, checked_delta, checked_epsilon))[0]


def guarantee(run: ev.Event, *, delta: float, neighbours: Neighbours, accountant: str = "auto") -> Guarantee:
    """The promise of a run as a value whose `str` is a sentence to sign, with what it rests on.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> promise = guarantee(Gaussian(noise_multiplier=5.0) * 10, delta=1e-6, neighbours="replace_one")
    >>> promise.accountant, f"{promise.epsilon:.4f}"
    ('closed', '6.3993')
    """
    found, name = told(*ask(run, neighbours, accountant, check_delta(delta), None))
    return Guarantee(
        epsilon=found.upper,
        delta=float(delta),
        neighbours=neighbours,
        accountant=name,
        theorem=THEOREMS[name],
        lower=found.lower,
        sampling=_description(run, neighbours),
        assumptions=_assumptions(run, neighbours),
    )


def ask(
    run: ev.Event,
    neighbours: Neighbours,
    accountant: str,
    delta: float | None,
    epsilon: float | None,
    *,
    tight: bool = True,
) -> tuple[Bounds, str]:
    """The bounds on whichever of delta and epsilon is None, and the name of the accountant that found them.

    Without `tight`, the first engine that certifies anything answers: enough to see on which side of a target it is.
    """
    if not isinstance(run, ev.Event):
        raise InvalidParameter(
            f"Expected an event, got {type(run).__name__}: only events have a privacy cost. "
            "Start from Gaussian(noise_multiplier=...) or another event."
        )
    check_neighbours(neighbours)
    delta = None if delta is None else float(delta)  # a float of fewer bits would round what is computed from it
    epsilon = None if epsilon is None else float(epsilon)
    if accountant == "auto":
        return _best(run, neighbours, delta, epsilon, tight)
    if accountant not in ACCOUNTANTS:
        raise InvalidParameter(
            f"Expected accountant to be 'auto' or one of {', '.join(map(repr, ACCOUNTANTS))}, got {accountant!r}: "
            "an accountant that is not known has no theorem. Use 'auto'."
        )
    try:
        found = ACCOUNTANTS[accountant](run, neighbours, delta, epsilon)
    except (Uncertified, ArithmeticError):
        raise NoProvenBound(
            f"Expected a run that the {accountant!r} accountant can certify, got {run!r}: its loss is made of atoms, "
            "or beyond what floats can hold. Use accountant='auto' or 'fourier'."
        ) from None
    return found, accountant


def _best(
    run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None, tight: bool
) -> tuple[Bounds, str]:
    """The tightest accountant that is valid: closed form, else contour, else Fourier; Rényi where nothing else is."""
    if sole_search(run, neighbours) is not None:
        return selection(run, neighbours, delta, epsilon), "selection"
    ways = directions(run, neighbours)
    if known_by_moments_only(ways):
        return ACCOUNTANTS["renyi"](run, neighbours, delta, epsilon), "renyi"
    try:
        return ACCOUNTANTS["closed"](run, neighbours, delta, epsilon), "closed"
    except NoProvenBound:
        pass
    found, name = _tried("contour", run, neighbours, delta, epsilon), "contour"
    if found is None and epsilon is not None:
        loose = _tried("renyi", run, neighbours, delta, epsilon)
        if loose is not None and loose.upper < NOTHING:
            return loose, "renyi"
    if found is None:
        found, name = _tried("fourier", run, neighbours, delta, epsilon), "fourier"
    if found is None:
        found = Bounds(0.0, math.inf if delta is not None else 1.0)
    if name == "contour" and not tight:
        return found, name
    if name == "contour" and _width(found) > WIDE:
        other = _tried("fourier", run, neighbours, delta, epsilon)
        if other is not None:
            name = "fourier" if other.upper < found.upper else name
            found = _both_hold(found, other)
    if _width(found) > WIDE:  # few steps with few outcomes: a theorem may be sharper than a lattice
        for other_name in ("renyi", "basic", "optimal") if delta is not None else ("renyi",):
            loose = _tried(other_name, run, neighbours, delta, epsilon)
            if loose is not None and found.lower <= loose.upper < found.upper:
                found, name = Bounds(found.lower, loose.upper), other_name
    return found, name


def _tried(
    name: str, run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None
) -> Bounds | None:
    """One accountant's bounds; None if it has none, also where a loss is beyond what floats can hold."""
    try:
        with np.errstate(all="ignore"):
            found = ACCOUNTANTS[name](run, neighbours, delta, epsilon)
    except (Uncertified, ArithmeticError, ValueError):  # NoProvenBound is a ValueError
        return None
    return None if math.isnan(found.lower) or math.isnan(found.upper) else found


def _width(found: Bounds) -> float:
    """Relative width of a bracket; infinite where the upper end is and the lower is not."""
    if math.isinf(found.upper):
        return 0.0 if math.isinf(found.lower) else math.inf
    return (found.upper - found.lower) / found.upper if found.upper else 0.0


def _both_hold(one: Bounds, other: Bounds) -> Bounds:
    """The common part of two brackets that hold the truth; if they have none, one is wrong, and neither is used."""
    lower, upper = max(one.lower, other.lower), min(one.upper, other.upper)
    if lower <= upper * (1 + 1e-12):
        return Bounds(min(lower, upper), upper)
    return Bounds(min(one.lower, other.lower), max(one.upper, other.upper))


def told(found: Bounds, name: str) -> tuple[Bounds, str]:
    """Say so where a bracket of the engines is wider than usual; the loose theorems give no lower end to judge by."""
    engine = name in ("contour", "fourier") or (name in ("renyi", "basic", "optimal") and found.lower > 0)
    if engine and _width(found) > _LOOSE and found.upper > NOTHING:
        warnings.warn(
            f"The bound {found.upper:.6g} is certified, but all that is known of the truth is that it lies in "
            f"[{found.lower:.6g}, {found.upper:.6g}].",
            LooseBound,
            stacklevel=3,
        )
    return found, name


def _description(run: ev.Event, neighbours: Neighbours) -> str:
    """What ran, as the clause of a sentence."""
    return "; ".join(
        f"{count:,} release{'s' if count > 1 else ''} of {_words(leaf, neighbours)}"
        for leaf, count in leaves(run, neighbours)
    )


def _words(leaf: ev.Event, neighbours: Neighbours) -> str:
    match leaf:
        case ev.Gaussian(noise_multiplier=noise):
            return f"Gaussian noise (noise multiplier {noise:g})"
        case ev.Laplace(scale=scale):
            return f"Laplace noise (scale {scale:g} × clip)"
        case ev.PoissonSampled(event=inner, rate=rate):
            return f"{_words(inner, neighbours)} on Poisson batches (rate {rate:g})"
        case ev.FixedSizeSampled(event=inner, batch=batch, records=records):
            return f"{_words(inner, neighbours)} on batches of {batch:,} out of {records:,} without replacement"
        case ev.NegativeBinomialTrials(event=inner) | ev.PoissonTrials(event=inner):
            law = "Poisson" if isinstance(leaf, ev.PoissonTrials) else f"negative binomial of shape {leaf.shape:g}"
            trial = _description(inner, neighbours)
            return f"the best of {mean_trials(leaf):.4g} trials on average ({law}), a trial being {trial}"
    return repr(leaf)


def _assumptions(run: ev.Event, neighbours: Neighbours) -> tuple[str, ...]:
    kinds = [leaf for leaf, _ in leaves(run, neighbours)]
    inner = [leaf.event if isinstance(leaf, ev.PoissonSampled | ev.FixedSizeSampled) else leaf for leaf in kinds]
    found = []
    if any(isinstance(leaf, ev.Gaussian | ev.Laplace) for leaf in inner):
        found.append("each record's contribution is clipped before summation and the noise is drawn as described")
    if any(isinstance(leaf, ev.PoissonSampled | ev.FixedSizeSampled) for leaf in kinds):
        found.append("batches are drawn afresh at each step and stay secret")
    if any(isinstance(leaf, ev.NegativeBinomialTrials | ev.PoissonTrials) for leaf in kinds):
        found.append("trials are alike and independent, their number is drawn as described and stays secret")
        for leaf in kinds:
            if isinstance(leaf, ev.NegativeBinomialTrials | ev.PoissonTrials):
                found.extend(_assumptions(leaf.event, neighbours))
    declared = ev.Pure | ev.Approximate | ev.ExponentialMechanism
    if any(isinstance(leaf, ev.PoissonSampled) and isinstance(leaf.event, declared) for leaf in kinds):
        found.append("a record that is zeroed out leaves the rest of its batch as it is")
    if any(isinstance(leaf, ev.Pure | ev.Approximate | ev.ZeroConcentrated) for leaf in inner):
        found.append("the stated guarantees of the declared parts hold for this neighbour relation")
    if ev.relations(run):
        found.append("noise multipliers are stated for this neighbour relation, and hold for no other")
    return tuple(dict.fromkeys(found))
