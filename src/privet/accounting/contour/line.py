"""One vertical line of the contour integral: its nodes, what it says of delta, and what it leaves out.

The trapezoid rule with step Δ on the line Re t = c gives exactly Σ_k e^{ckP} delta(epsilon + kP), P = 2π/Δ: every
term is non-negative, so the rule's own error has a sign and what it returns is an upper bound. What is cut off
(|k| > K) is bounded by the pairs' `decay`; where the loss is nearly atomic and nothing decays, the missing terms are
summed exactly by an integral along Im t = (K + 1/2)Δ (:mod:`privet.accounting.contour.fermi_tail`). Proofs:
docs/proofs/contour.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from privet.accounting.contour.fermi_tail import Tail, fermi_tail
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals
from privet.accounting.pairs.truncated_mixture import CutPair
from privet.accounting.renyi_orders import Steps, hook, infinite_mass, largest_loss, log_moment, rough_log_moment

_DIGITS = 21.0  # natural log of the relative accuracy aimed at
_MOST_NODES = 6000
_MANY_NODES = 4500  # beyond this, see whether the tail is cheaper


@dataclass(slots=True)
class Line:
    """The nodes of one vertical line, which answer at any epsilon near the one it was laid for."""

    steps: Steps
    tilt: float
    spacing: float
    nodes: Complexes
    log_m: Complexes
    error: Reals
    log_cut: float  # log of the bound on |M| beyond the last node
    tail: Tail | None
    infinite: float
    orders: Reals  # real orders above the tilt, and log M with its error there: they bound the aliases
    log_orders: Reals
    one_sided: bool = False  # whether `log_orders` are without their error, so that nothing is known from below
    unseen: float = 0.0  # probability of what the steps leave out: counted in full in the upper bound, not in the lower
    mass: float = 1.0  # a bound on the mass of the measure whose transform is M
    _last: tuple[float, Complexes] = field(default=(math.nan, np.empty(0)), init=False, repr=False)  # latest terms

    @classmethod
    def laid(
        cls,
        steps: Steps,
        saddle: float,
        epsilon: float,
        log_delta: float,
        *,
        exact: bool = False,
        one_sided: bool = False,
        unseen: float = 0.0,
    ) -> Line | None:
        """Lay a line for delta(epsilon) ≈ e^log_delta; None if its truncation cannot be certified.

        `exact` spends time to lose fewer digits, for where the integral is much smaller than its integrand. A
        `one_sided` line is laid in less time, and says nothing from below.
        """
        try:
            line = _lay(steps, saddle, epsilon, log_delta, exact, one_sided)
        except OverflowError:  # an order too high to compute
            return None
        if line is not None:
            line.unseen = unseen
        return line

    def upper(self, epsilon: float) -> float:
        """A certified upper bound on delta(epsilon)."""
        total, slack = self._sum(epsilon)
        return min(1.0, (self.infinite + self.unseen + total + slack) * (1 + 1e-14))

    def lower(self, epsilon: float) -> float:
        """A certified lower bound on delta(epsilon)."""
        if self.one_sided:
            return 0.0
        total, slack = self._sum(epsilon)
        return (self.infinite + max(0.0, total - slack - self._aliases(epsilon))) * (1 - 1e-14)

    def width(self, epsilon: float) -> float:
        """By how much `upper` may exceed the truth; certified unless the line is one-sided."""
        return 2 * self._sum(epsilon)[1] + self._aliases(epsilon)

    def total(self, epsilon: float) -> float:
        """The trapezoid sum: the finite part of delta(epsilon), neither bounded from above nor below."""
        return self._sum(epsilon)[0]

    def slope(self, epsilon: float) -> float:
        """d delta / d epsilon of the trapezoid sum."""
        f = self._terms(epsilon)
        g = -self.nodes * f
        out = float(self.spacing / (2 * math.pi) * (g[0].real + 2 * g[1:].real.sum()))
        return out + (self.tail.slope(epsilon) if self.tail else 0.0)

    def _terms(self, epsilon: float) -> Complexes:
        if epsilon != self._last[0]:
            self._last = epsilon, np.exp(self.log_m - self.nodes * epsilon) / (self.nodes * (1 + self.nodes))
        return self._last[1]

    def _sum(self, epsilon: float) -> tuple[float, float]:
        f = self._terms(epsilon)
        size = np.abs(f)
        unit = self.spacing / (2 * math.pi)
        total = unit * (f[0].real + 2 * f[1:].real.sum())
        rounding = 8 * UNIT * (size * (4 + np.abs(self.nodes) * epsilon + np.abs(self.log_m)))
        log_size = self.log_m.real - self.tilt * epsilon - np.log(np.abs(self.nodes * (1 + self.nodes)))
        missing = np.exp(np.minimum(log_size + self.error, 700.0)) * -np.expm1(-self.error) + rounding
        slack = unit * (missing[0] + 2 * missing[1:].sum())
        if self.tail is None:
            reach = self.nodes[-1].imag
            slack += math.exp(min(700.0, self.log_cut - self.tilt * epsilon)) / (math.pi * reach)
        else:
            more, wrong = self.tail.sum(epsilon)
            total, slack = total + more, slack + wrong
        return float(total), float(slack) * (1 + 1e-9)  # bounds are rounded, too

    def _aliases(self, epsilon: float) -> float:
        """A bound on Σ_{k≠0} e^{ckP} delta(epsilon + kP)."""
        c, period = self.tilt, 2 * math.pi / self.spacing
        left = self.mass / math.expm1(min(700.0, c * period))
        top = largest_loss(self.steps)
        if epsilon + period >= top:
            return left
        t, log_m = self.orders[self.orders > c], self.log_orders[self.orders > c]
        logs = log_m - t * epsilon + hook(t) - np.log(np.expm1(np.minimum(700.0, (t - c) * period)))
        return left + float(np.exp(min(700.0, logs.min())))


def _tilt_and_period(
    steps: Steps, epsilon: float, log_delta: float, saddle: float, orders: Reals, log_orders: Reals
) -> tuple[float, float]:
    """The tilt c ≤ saddle for which the least period P makes all aliases negligible.

    Left of epsilon they are below e^{-cP}; right of it below e^{-(t-c)P} times the Rényi bound at any order t > c.
    A heavy upper tail falls hardly faster than e^{-saddle·P}; a smaller c then buys a smaller P.
    """
    tilts = saddle * np.linspace(0.4, 1.02, 13)
    left = (_DIGITS - log_delta) / tilts
    top = largest_loss(steps)
    bounds = log_orders - orders * epsilon + hook(orders)
    gap = orders - tilts[:, None]
    right = np.where(gap > 0, (bounds - log_delta + _DIGITS) / np.where(gap > 0, gap, 1.0), math.inf).min(axis=1)
    period = np.where(epsilon + left >= top, left, np.maximum(left, right))
    best = int(np.argmin(period))
    return float(tilts[best]), float(period[best])  # an infinite period means that no order bounds the upper tail


def _on_line(steps: Steps, tilt: float, spacing: float, nodes: Complexes, exact: bool) -> tuple[Complexes, Reals]:
    """`log_moment` on equally spaced nodes, by the faster way where its rounding is harmless."""
    value = np.zeros(nodes.shape, dtype=complex)
    error = np.zeros(nodes.shape)
    for pair, count in steps:
        if isinstance(pair, MixturePair | CutPair) and len(nodes) > (3000 if exact else 24 if count < 100_000 else 200):
            one, relative = pair.log_moments(tilt, spacing, len(nodes))
        else:
            one, relative = pair.log_moment(nodes)
        value += count * one
        error += count * np.log1p(relative)
    return value, error


def _lay(steps: Steps, saddle: float, epsilon: float, log_delta: float, exact: bool, one_sided: bool) -> Line | None:
    orders = saddle * np.array([0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.2])
    with np.errstate(all="ignore"):
        if one_sided:
            log_orders = rough_log_moment(steps, orders)
        else:
            moments, wrong = log_moment(steps, orders.astype(complex))
            log_orders = np.where(np.isfinite(moments.real + wrong), moments.real + wrong, math.inf)
    c, period = _tilt_and_period(steps, epsilon, log_delta, saddle, orders, log_orders)
    if not math.isfinite(period):
        return None
    log_m = float(rough_log_moment(steps, np.array([c]))[0])
    spacing = 2 * math.pi / period
    # reach: the bound on the rest, e^{log M(c) - decay - c·epsilon} / (π·reach), below e^{-_DIGITS} of delta
    last, log_cut, tail = 0, math.inf, None
    for few, many in ((5, 80), (90, _MOST_NODES)):
        counts = np.unique(np.ceil(np.geomspace(few, many, 14)))
        fall = sum((count * pair.decay(c, spacing * counts) for pair, count in steps), np.zeros_like(counts))
        rest = log_m - fall - c * epsilon - np.log(math.pi * spacing * counts)
        enough = np.flatnonzero(rest < log_delta - _DIGITS)
        if len(enough):
            last, log_cut = int(counts[enough[0]]), -float(fall[enough[0]])
            break
    if not last or last > _MANY_NODES:
        tail = fermi_tail(steps, c, spacing, epsilon, log_delta - _DIGITS)
        if tail is not None and (not last or tail.first < last / 2):
            last = tail.first - 1
        elif last:
            tail = None
        else:
            return None
    nodes = c + 1j * spacing * np.arange(last + 1)
    values, error = _on_line(steps, c, spacing, nodes, exact)
    log_cut += float(values[0].real + error[0])
    infinite = infinite_mass(steps)
    return Line(steps, c, spacing, nodes, values, error, log_cut, tail, infinite, orders, log_orders, one_sided)


class Bracketing(Protocol):
    """Certified bounds on delta(epsilon), and its slope."""

    def upper(self, epsilon: float) -> float: ...
    def lower(self, epsilon: float) -> float: ...
    def slope(self, epsilon: float) -> float: ...


def solve(line: Bracketing, delta: float, start: float) -> float | None:
    """The least epsilon ≥ 0, to rounding, at which the line's upper bound is seen to be at most delta."""
    unsafe, safe, epsilon = -1.0, math.inf, start
    for _ in range(200):  # Newton on log delta, which is nearly straight, kept inside the bracket
        value = line.upper(epsilon)
        if value <= delta:
            safe = epsilon
            if value >= delta * (1 - 1e-11) or epsilon == 0.0:
                break
        else:
            unsafe = epsilon
        if math.isfinite(safe) and safe - unsafe <= 4e-16 * safe:
            break
        rate = -line.slope(epsilon) / max(value, 1e-300)
        # aim a hair to the safe side, so that the last step lands there
        change = (math.log(max(value, 1e-300) / delta) + 4e-12) / rate if rate > 0 else math.nan
        target = max(0.0, epsilon + change)
        if not unsafe < target < safe:
            target = (max(unsafe, 0.0) + safe) / 2 if math.isfinite(safe) else 2 * epsilon + 1e-3
        epsilon = target
    return safe if math.isfinite(safe) else None


def largest_below(line: Bracketing, delta: float, upper: float) -> float:
    """An epsilon below `upper` at which delta is certainly not yet reached; 0 if there is none."""
    value = line.upper(upper)
    rate = max(-line.slope(upper), 1e-300)
    gap = 1.01 * max(value - line.lower(upper), delta - line.lower(upper)) / rate + 1e-15 * upper
    for _ in range(60):
        lower = upper - gap
        if lower <= 0:
            return 0.0
        if line.lower(lower) >= delta:
            return lower
        gap *= 2
    return 0.0
