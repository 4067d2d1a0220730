"""The contour accountant: delta(epsilon) as one line integral of the run's moment generating function.

With L the loss of the whole run under P and M(t) = E[e^{tL}; L < ∞] = Π M_j(t)^{count_j}, for every c > 0

    delta(epsilon) = P(L = ∞) + (1/2πi) ∫_{c-i∞}^{c+i∞} F(t) dt,      F(t) = M(t) e^{-t·epsilon} / (t(t+1)),

which :mod:`privet.accounting.contour.line` sums with a certified error. Proofs: docs/proofs/contour.md.
"""

import math

import numpy as np

from privet.accounting.contour.layout import ORDERS
from privet.accounting.contour.line import Line
from privet.accounting.contour.roots import Bracketing, largest_below, solve
from privet.accounting.contour.rough_epsilon import saddle_epsilon
from privet.accounting.pairs.pair import Reals
from privet.accounting.renyi_orders import (
    Run,
    best_order,
    chernoff_log_delta,
    gathered,
    infinite_mass,
    largest_loss,
    rough_log_moment,
)

_LEAST_TILT = 1e-9  # below it, no moment is finite that floats can hold: losses beyond all meaning
NOTHING = 1e-18  # a delta below this need not be known to many digits
_NO_FLOAT = -690.0  # log of what is hardly a float
_FURTHER = 14.0  # log of by how much delta may fall before the next line is laid


@np.errstate(all="ignore")  # what overflows becomes an infinite or undefined bound, and neither certifies anything
def contour_delta(
    steps: Run, epsilon: float, *, unseen: float = 0.0, kept: list[Bracketing] | None = None
) -> tuple[float, float] | None:
    """Certified (lower, upper) on delta(epsilon) in one direction; None where the line cannot be certified.

    `unseen` bounds the probability of outcomes that `steps` leave out. The line joins those that are `kept`, and is
    laid so that it serves larger epsilons, too.
    """
    steps = gathered(steps)
    infinite = infinite_mass(steps)
    if epsilon >= largest_loss(steps):
        return infinite * (1 - 1e-14), min(1.0, (infinite + unseen) * (1 + 1e-14))
    saddle = best_order(steps, "log_delta", epsilon)
    if saddle < _LEAST_TILT:
        return None
    log_orders = rough_log_moment(steps, saddle * ORDERS)
    log_bound = _about(saddle, log_orders, epsilon)
    if log_bound < _NO_FLOAT:
        log_bound = float(chernoff_log_delta(steps, epsilon, np.array([saddle]))[0])
        return infinite * (1 - 1e-14), (infinite + unseen) * (1 + 1e-14) + math.exp(max(-740.0, min(log_bound, 0.0)))
    line = None
    for further in (0.0,) if kept is None else (_FURTHER,) if unseen else (_FURTHER, 0.0):
        log_least = min(log_bound, 0.0) - 4.0 - further
        line = line or Line.laid(steps, saddle, epsilon, log_least, unseen=unseen, log_orders=log_orders)
    if line is None:
        return None
    lower, upper = line.lower(epsilon), line.upper(epsilon)
    if kept is not None:
        kept.append(line)
    finite = line.total(epsilon)
    if upper - lower - unseen > 1e-8 * upper and 0 < finite < math.exp(log_bound - 6.0):  # laid for too large a delta
        again = Line.laid(steps, saddle, epsilon, math.log(finite), exact=True, unseen=unseen, log_orders=log_orders)
        if again is not None:
            lower, upper = max(lower, again.lower(epsilon)), min(upper, again.upper(epsilon))
            if kept is not None:
                kept.append(again)
    return lower, upper


@np.errstate(all="ignore")
def contour_upper(steps: Run, epsilon: float, *, enough: float = 0.0, saddle: float | None = None) -> float:
    """As the upper end of `contour_delta`, in less time: 1 where no line can be certified.

    Where the Rényi bound is at most `enough`, that bound itself. `saddle` is about `best_order`, if that is known.
    """
    steps = gathered(steps)
    infinite = infinite_mass(steps) * (1 + 1e-14)
    if infinite >= 1.0 or epsilon >= largest_loss(steps):
        return min(1.0, infinite)
    if saddle is None:
        saddle = best_order(steps, "log_delta", epsilon)
    if saddle < _LEAST_TILT:
        return 1.0
    log_orders = rough_log_moment(steps, saddle * ORDERS)
    log_bound = min(_about(saddle, log_orders, epsilon), 0.0)
    if log_bound < _NO_FLOAT or infinite + math.exp(log_bound) <= enough:
        log_bound = min(float(chernoff_log_delta(steps, epsilon, np.array([saddle]))[0]), 0.0)
        bound = (infinite + math.exp(max(-740.0, log_bound))) * (1 + 1e-14)
        if bound <= enough or log_bound < _NO_FLOAT:
            return min(1.0, bound)
    line = Line.laid(steps, saddle, epsilon, log_bound - 4.0, one_sided=True, log_orders=log_orders)
    if line is None:
        return 1.0
    finite = line.total(epsilon)
    if line.slack(epsilon) > 1e-8 * line.upper(epsilon) and 0 < finite < math.exp(log_bound - 6.0):
        # laid for too large a delta
        args = steps, saddle, epsilon, math.log(finite)
        line = Line.laid(*args, exact=True, one_sided=True, log_orders=log_orders) or line
    return line.upper(epsilon)


def _about(saddle: float, log_orders: Reals, epsilon: float) -> float:
    """About the log of the Rényi bound on delta(epsilon) at the saddle, from log M at `ORDERS` of it."""
    return float(log_orders[4]) - saddle * epsilon - math.log1p(saddle) - saddle * math.log1p(1 / saddle)


@np.errstate(all="ignore")
def contour_epsilon(
    steps: Run, delta: float, *, unseen: float = 0.0, patient: bool = True, saddle: float | None = None
) -> tuple[float, float] | None:
    """Certified (lower, upper) on epsilon(delta) in one direction; None where the line cannot be certified.

    `unseen` bounds the probability of outcomes that `steps` leave out; it is far below delta. `patient` lays a wide
    bracket's line again with more digits. `saddle` is `best_order`, if that is known already.
    """
    steps = gathered(steps)
    infinite = infinite_mass(steps)
    if delta <= infinite * (1 + 1e-14):
        return (math.inf, math.inf) if delta < infinite * (1 - 1e-14) else (0.0, math.inf)
    log_delta = math.log(delta - infinite)
    if saddle is None:
        saddle = best_order(steps, "epsilon", log_delta)
    if saddle < _LEAST_TILT:
        return None
    log_orders = rough_log_moment(steps, saddle * ORDERS)
    start = max(0.997 * saddle_epsilon(saddle, log_orders[3:6], log_delta), 0.0)  # a little low
    line = Line.laid(steps, saddle, start, log_delta, unseen=unseen, log_orders=log_orders)
    upper = None if line is None else solve(line, delta, start)
    if line is None or upper is None:
        return None
    lower = largest_below(line, delta, upper)
    # laid too far off, or with too few digits: once more, where the answer is
    for exact in (False, True) if patient else (False,):
        if upper - lower <= 1e-7 * upper or (not exact and upper > 0.99 * start):
            continue
        near = 0.998 * max(lower, 0.5 * upper)
        again = Line.laid(steps, saddle, near, log_delta, exact=exact, unseen=unseen, log_orders=log_orders)
        better = None if again is None else solve(again, delta, upper)
        if again is not None and better is not None:
            lower, upper = max(lower, largest_below(again, delta, better)), min(upper, better)
    top = largest_loss(steps)  # beyond it only the infinite mass is left
    return lower, min(upper, top)
