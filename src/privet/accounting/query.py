"""What does a run cost? The questions people ask, answered by the best accountant that has a proof."""

import math
import warnings

import numpy as np

from privet._pages import page
from privet.accounting import events as ev
from privet.accounting.accountants import ACCOUNTANTS, THEOREMS, Bounds, Uncertified
from privet.accounting.allocation import allocation, allocation_below
from privet.accounting.attained import attained
from privet.accounting.contour.integral import NOTHING
from privet.accounting.pairs.dominating import directions, has_allocation, has_range, known_by_moments_only
from privet.accounting.selection import selection, sole_search
from privet.accounting.words import assumptions, description, in_short
from privet.errors import InvalidParameter, LooseBound, NoProvenBound, PrivetError
from privet.privacy import Guarantee, Neighbours, check_delta, check_epsilon, check_neighbours

WIDE = 2e-5  # a bracket wider than this, relatively, is worth asking a second engine
_NARROW = 1e-7  # one wider than this is worth asking the Rényi theorems, which take a millisecond
_LOOSE = 1e-5  # a bracket wider than this, relatively, is worth a warning
_ROUNDING = f"NumPy and SciPy compute as exactly as section 7 of {page('docs/proofs/contour.md')} says"


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

    Truth means: what the mechanisms that ran cost at worst, over all tables. The lower end is 0 where nothing is proven
    from below: the loose theorems have none, and parts that are known by a bound only (`Pure`, `Approximate`,
    `ZeroConcentrated`, `ExponentialMechanism`) count nothing. For fixed-size batches it is what certain tables cost,
    below the upper end by more than rounding. docs/proofs/pairs.md, section 5.

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
    found, _ = told(*ask(run, neighbours, accountant, checked_delta, checked_epsilon))
    return Bounds(_proven(found, run, neighbours, accountant, checked_delta, checked_epsilon), found.upper)


def guarantee(run: ev.Event, *, delta: float, neighbours: Neighbours, accountant: str = "auto") -> Guarantee:
    """The promise of a run as a value: one line as `str`, and with what it rests on, a sentence to sign, as `details`.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> promise = guarantee(Gaussian(noise_multiplier=5.0) * 10, delta=1e-6, neighbours="replace_one")
    >>> promise.accountant, f"{promise.epsilon:.4f}"
    ('closed', '6.3993')
    """
    delta = check_delta(delta)
    found, name = told(*ask(run, neighbours, accountant, delta, None))
    return Guarantee(
        epsilon=found.upper,
        delta=delta,
        neighbours=neighbours,
        accountant=name,
        theorem=THEOREMS[name],
        lower=_proven(found, run, neighbours, accountant, delta, None),
        sampling=description(run, neighbours),
        releases=in_short(run, neighbours),
        assumptions=(
            *assumptions(run, neighbours),
            *([_ROUNDING] if name in ("contour", "fourier", "allocation") else []),
        ),
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
        with np.errstate(all="ignore"):
            found = ACCOUNTANTS[accountant](run, neighbours, delta, epsilon)
        if math.isnan(found.lower) or math.isnan(found.upper):
            raise Uncertified
    except (Uncertified, ArithmeticError, ValueError) as error:
        if isinstance(error, PrivetError):
            raise
        raise NoProvenBound(
            f"Expected a run that the {accountant!r} accountant can certify, got {run!r}: its loss is made of atoms, "
            "or beyond what floats can hold. Use accountant='auto' or 'fourier'."
        ) from None
    return found, accountant


def _proven(
    found: Bounds, run: ev.Event, neighbours: Neighbours, accountant: str, delta: float | None, epsilon: float | None
) -> float:
    """The lower end that some two tables attain; 0 where none is known to."""
    ways = directions(run, neighbours)
    allocated = has_allocation(ways)
    runs = attained(run, neighbours) if found.lower > 0 or allocated or has_range(ways) else ()
    if runs == ((run, neighbours),) and not allocated:
        return found.lower
    lowest = 0.0
    for part, relation in runs:
        try:
            if has_allocation(directions(part, relation)):
                low = allocation_below(part, relation, delta, epsilon)
            else:
                low = ask(part, relation, accountant, delta, epsilon)[0].lower
            lowest = max(lowest, low)
        except NoProvenBound:  # an accountant that was asked for by name may have nothing for this part
            continue
    return min(lowest, found.upper)


def _best(
    run: ev.Event, neighbours: Neighbours, delta: float | None, epsilon: float | None, tight: bool
) -> tuple[Bounds, str]:
    """The tightest that is valid: closed form, else contour, else Fourier, or a cheap theorem where that says less."""
    if sole_search(run, neighbours) is not None:
        return selection(run, neighbours, delta, epsilon), "selection"
    ways = directions(run, neighbours)
    if known_by_moments_only(ways):
        return ACCOUNTANTS["renyi"](run, neighbours, delta, epsilon), "renyi"
    if has_allocation(ways):
        return allocation(run, neighbours, delta, epsilon), "allocation"
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
    if name == "contour" and _width(found) > WIDE and not (epsilon is not None and found.upper < NOTHING):
        other = _tried("fourier", run, neighbours, delta, epsilon)
        if other is not None:
            name = "fourier" if other.upper < found.upper else name
            found = _both_hold(found, other)
    ranged = has_range(ways)
    # few steps with few outcomes: a theorem may be sharper than a lattice
    if name == "fourier" or _width(found) > _NARROW or ranged:
        stepwise = delta is not None and (_width(found) > WIDE or ranged)  # which may take a tenth of a second
        for other_name in ("renyi", "basic", "optimal") if stepwise else ("renyi",):
            loose = _tried(other_name, run, neighbours, delta, epsilon)
            if loose is not None and (ranged or found.lower <= loose.upper) and loose.upper < found.upper:
                found, name = Bounds(0.0 if ranged else found.lower, loose.upper), other_name
    return found, name


def is_lined(run: ev.Event, neighbours: Neighbours) -> bool:
    """Whether `ask` leaves a run to line integrals: there is no closed form, and they know no less than moments."""
    ways = directions(run, neighbours)
    if sole_search(run, neighbours) is not None or known_by_moments_only(ways) or has_allocation(ways):
        return False
    if has_range(ways):
        return False
    try:
        ACCOUNTANTS["closed"](run, neighbours, None, 1.0)
    except NoProvenBound:
        return True
    return False


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
