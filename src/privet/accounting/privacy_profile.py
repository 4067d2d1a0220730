"""delta as a function of epsilon, at many points for little more than a few cost."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privet.accounting import events as ev
from privet.accounting.both_directions import LineCurve
from privet.accounting.pairs.dominating import directions
from privet.accounting.query import WIDE, ask, is_lined, told
from privet.privacy import Neighbours, check_epsilon


def profile(
    run: ev.Event, epsilons: Sequence[float] | NDArray[np.float64], *, neighbours: Neighbours, accountant: str = "auto"
) -> NDArray[np.float64]:
    """delta(epsilon), each a certified upper bound, at each of `epsilons`; it never rises with epsilon.

    Many points cost little more than a few: they share their line integrals. What is below 1e-18 may be known to be no
    more than that.

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> [f"{d:.4f}" for d in profile(Gaussian(noise_multiplier=1.0), [0.0, 1.0], neighbours="add_remove")]
    ['0.3829', '0.1269']
    """
    points = np.array([check_epsilon(float(e)) for e in epsilons])
    asked = _in_company if accountant == "auto" else _one_by_one
    order = np.argsort(points, kind="stable")
    found = np.empty(len(points))
    # delta falls with epsilon, so a bound at a smaller epsilon holds at a larger one as well
    found[order] = np.minimum.accumulate(asked(run, neighbours, points[order], accountant))
    return found


def _one_by_one(run: ev.Event, neighbours: Neighbours, points: NDArray[np.float64], accountant: str) -> list[float]:
    return [told(*ask(run, neighbours, accountant, None, float(e)))[0].upper for e in points]


def _in_company(run: ev.Event, neighbours: Neighbours, points: NDArray[np.float64], accountant: str) -> list[float]:
    """`_one_by_one` by lines that serve several points, where lines are what answers."""
    if not is_lined(run, neighbours):
        return _one_by_one(run, neighbours, points, accountant)
    curve = LineCurve(directions(run, neighbours))
    looks = [curve.upper(float(e), WIDE) for e in points]
    return [
        _one_by_one(run, neighbours, np.array([e]), accountant)[0] if look is None else look
        for e, look in zip(points, looks, strict=True)
    ]
