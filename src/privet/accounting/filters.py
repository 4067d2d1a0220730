"""Privacy filters: budgets for steps whose noise, rate or number is chosen as one goes.

Composition theorems and the contour and Fourier accountants bound a run that was fixed beforehand. When the cost of
the next step may depend on what earlier steps released, one needs a *filter*: it is asked before each step, and
whatever it admits, in whatever order an adversary chooses, stays within (ε, δ).

Why moments. Let L be the loss so far and K_i(t) the log moment of step i, chosen from the outputs before it. For a
fixed t > 0, exp(tL − Σ K_i(t)) is a supermartingale, so E[e^{tL}] <= e^B if Σ K_i(t) <= B is never exceeded (Feldman
and Zrnic 2021; Lécuyer 2021), and δ follows as in :func:`privet.accounting.theorems.conversions.renyi_delta`.
Adaptivity costs nothing, constants included (Whitehouse, Ramdas, Rogers and Wu 2023, who treat zCDP).

Why not the tight accountants. The natural filter, "admit while the δ(ε) of everything so far, composed, is at most
δ", is not valid: an adversary who sees a large loss may pick next the step that costs much at that loss and little in
the composed curve (arXiv 2602.06756, arXiv 2602.15815). For the same reason the *best* Rényi order must not be chosen
afterwards for free. A vector of m orders is sound when each order answers for δ/m: the run ends within the limit of
some order t, and Σ_t E[(1 − e^{ε−L})₊; the limit of t held] <= m · δ/m.

A filter is a value: `spend` returns the next one. To make it a ledger, keep it somewhere that survives a crash.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet._checks import is_number
from privet.accounting.theorems.conversions import zcdp_tight_rho
from privet.errors import InvalidParameter, Overspent
from privet.privacy import check_delta, check_epsilon

LogMoments = ArrayLike | Callable[[NDArray[np.float64]], ArrayLike]
"""K(t) = log E[e^{tL}], the worse direction: an array with one entry for each order, or a function of t = order − 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RenyiFilter:
    """Admit steps, chosen adaptively, while some Rényi order still proves (epsilon, delta) for all of them.

    Promise: any sequence of admitted steps is (epsilon, delta)-private together, however it was chosen.
    Theorem: Feldman and Zrnic 2021, Lécuyer 2021, with δ/m for each of m orders (this module, "Why moments").
    Edges: an infinite moment rules its order out for good; a step of cost 0 is always admitted.

    Parameters
    ----------
    epsilon, delta : the budget
    orders : Rényi orders above 1, chosen before the data is seen; none given means five orders that suit steps of
        about Gaussian shape
    spent : Σ K_i(order − 1), one entry for each order; nothing at first

    Examples
    --------
    >>> start = RenyiFilter(epsilon=1.0, delta=1e-5)
    >>> step = lambda t: t * (1 + t) / 2 * 0.01            # Gaussian noise, mu = 0.1
    >>> start.admits(step), start.spend(step).spend(step).admits(step)
    (True, True)
    >>> start.admits(lambda t: 100 * step(t))
    False
    """

    epsilon: float
    delta: float
    orders: tuple[float, ...] = ()
    spent: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        if not self.orders:
            object.__setattr__(self, "orders", _suitable_orders(self.epsilon, self.delta))
        if not all(is_number(order) and order > 1.0 for order in self.orders):
            raise InvalidParameter(
                f"Expected finite Rényi orders above 1, got {self.orders!r}: "
                "no bound follows from others. Use e.g. orders=(8.0, 16.0, 32.0)."
            )
        if not self.spent:
            object.__setattr__(self, "spent", (0.0,) * len(self.orders))
        _check_moments(np.asarray(self.spent, dtype=np.float64), len(self.orders))

    @property
    def exponents(self) -> NDArray[np.float64]:
        """The t = order − 1 at which log moments are asked."""
        return np.asarray(self.orders, dtype=np.float64) - 1.0

    @property
    def limits(self) -> tuple[float, ...]:
        """The most that each order may sum to: tε + ln(δ/m) + (1 + t) ln(1 + t) − t ln t, rounded downwards."""
        t = self.exponents
        gain = t * self.epsilon + t * np.log1p(1.0 / t) + np.log1p(t)
        loss = math.log(len(self.orders)) - math.log(self.delta)
        return tuple((gain - loss - 1e-14 * (gain + loss)).tolist())

    def admits(self, cost: LogMoments) -> bool:
        """Return whether a step with these log moments still fits the budget."""
        return self._fits(self._after(cost))

    def spend(self, cost: LogMoments) -> "RenyiFilter":
        """Return the filter after a step with these log moments; refuse a step that does not fit."""
        after = self._after(cost)
        if not self._fits(after):
            raise Overspent(
                f"Expected a step that fits what is left of (epsilon, delta) = ({self.epsilon:g}, {self.delta:g}), got "
                "one that exceeds it at every order: the promise would be broken. Add noise, or stop here."
            )
        return replace(self, spent=after)

    def _after(self, cost: LogMoments) -> tuple[float, ...]:
        moments = np.asarray(cost(self.exponents) if callable(cost) else cost, dtype=np.float64)
        _check_moments(moments, len(self.orders))
        spent = np.asarray(self.spent)
        return tuple(np.where(moments > 0.0, np.nextafter(spent + moments, math.inf), spent).tolist())

    def _fits(self, after: tuple[float, ...]) -> bool:
        return not any(after) or any(total <= limit for total, limit in zip(after, self.limits, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class ZeroConcentratedFilter:
    """Admit steps, chosen adaptively, while their zCDP costs sum to at most `limit`.

    Promise: any sequence of admitted steps is (epsilon, delta)-private together, however it was chosen.
    Theorem: Whitehouse, Ramdas, Rogers and Wu 2023. All orders keep their limits at once, K(t) <= t(1 + t) × limit, so
    the best order is known beforehand and no δ is split.

    Parameters
    ----------
    epsilon, delta : the budget
    spent : Σ ρ_i; nothing at first

    Examples
    --------
    >>> start = ZeroConcentratedFilter(epsilon=1.0, delta=1e-5)
    >>> after = start.spend(0.01).spend(0.01)
    >>> after.admits(0.01), after.admits(0.02), start.spent
    (True, False, 0.0)
    """

    epsilon: float
    delta: float
    spent: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        _check_moments(np.asarray([self.spent], dtype=np.float64), 1)

    @property
    def limit(self) -> float:
        """The largest rho that is (epsilon, delta)-private by the tight conversion, rounded downwards."""
        return zcdp_tight_rho(self.epsilon, delta=self.delta)

    def admits(self, cost: float) -> bool:
        """Return whether a step of this rho still fits the budget."""
        after = self._after(cost)
        return after == 0.0 or after <= self.limit

    def spend(self, cost: float) -> "ZeroConcentratedFilter":
        """Return the filter after a step of this rho; refuse a step that does not fit."""
        if not self.admits(cost):
            raise Overspent(
                f"Expected a step with rho of at most {max(0.0, self.limit - self.spent):g}, what is left of "
                f"(epsilon, delta) = ({self.epsilon:g}, {self.delta:g}), got {cost:g}: the promise would be broken. "
                "Add noise, or stop here."
            )
        return replace(self, spent=self._after(cost))

    def _after(self, cost: float) -> float:
        _check_moments(np.asarray([cost], dtype=np.float64), 1)
        return math.nextafter(self.spent + cost, math.inf) if cost > 0.0 else self.spent


def _suitable_orders(epsilon: float, delta: float) -> tuple[float, ...]:
    """Return five orders around the one at which Gaussian steps fit longest."""
    t = np.geomspace(1e-3, 1e7, 1001)
    log = -math.log(delta) + math.log(5.0)
    best = float(t[np.argmax((t * epsilon + t * np.log1p(1.0 / t) + np.log1p(t) - log) / (t * (1.0 + t)))])
    return tuple(1.0 + best * factor for factor in (0.25, 0.5, 1.0, 2.0, 4.0))


def _check_moments(moments: NDArray[np.float64], size: int) -> None:
    if moments.shape != (size,) or not np.all(moments >= 0.0):
        raise InvalidParameter(
            f"Expected {size} cost(s) of at least 0, got {moments.tolist()!r}: "
            "log moments and rho of a release are never negative or NaN. Pass one for each order."
        )
