"""One vertical line of the contour integral: its nodes, what it says of delta, and what it leaves out.

The trapezoid rule with step Δ on the line Re t = c gives exactly Σ_k e^{ckP} delta(epsilon + kP), P = 2π/Δ: every
term is non-negative, so the rule's own error has a sign and what it returns is an upper bound. What is cut off
(|k| > K) is bounded by the pairs' `decay`; where the loss is nearly atomic and nothing decays, the missing terms are
summed exactly by an integral along Im t = (K + 1/2)Δ (:mod:`privet.accounting.contour.fermi_tail`). Proofs:
docs/proofs/contour.md.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from privet.accounting.contour.fermi_tail import Tail, fermi_tail
from privet.accounting.contour.layout import DIGITS, ORDERS, reach, tilt_and_period
from privet.accounting.pairs.atoms import Atoms
from privet.accounting.pairs.crowd import Crowd
from privet.accounting.pairs.elementary import GaussianPair
from privet.accounting.pairs.fixed_size import CutFixedSize, FixedSizePair
from privet.accounting.pairs.mixture_moments import Mixtures
from privet.accounting.pairs.pair import UNIT, Complexes, Reals
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.accounting.pairs.truncated_mixture import CutPair
from privet.accounting.renyi_orders import (
    Run,
    gathered,
    hook,
    infinite_mass,
    largest_loss,
    rough_log_moment,
)

_FEW_NODES = 150  # up to which exponentials cost less than products of them
_MANY_NODES = 4500  # beyond this, see whether the tail is cheaper
_CANCELS = 8.0  # log of the ratio of integrand to integral from which on more digits are wanted
_BLURRED = 1e-6  # the relative accuracy aimed at where a normal step is added
_MOST_BLURRED = 24_000  # nodes
_MOST_BLUR = 1e-2  # relative to delta, about what a normal step may add
_MANY_KINDS, _MANY_STEPS = 8, 10**8  # from which on runs that do not decay are not left to the Fourier accountant


@dataclass(slots=True)
class Line:
    """The nodes of one vertical line, which answer at any epsilon near the one it was laid for."""

    steps: Run
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
    unseen: float = 0.0  # probability of what the steps leave out: counted in full in the upper bound, not in the lower
    mass: float = 1.0  # a bound on the mass of the measure whose transform is M
    blur: float = 0.0  # variance of the normal step that was added so that M decays: at least as much is lost by it
    _top: float = field(init=False, repr=False)  # the largest finite loss
    _unit: Reals = field(init=False, repr=False)  # Δ/2π, twice for a node and its conjugate
    _below: Complexes = field(init=False, repr=False)  # 1/(t(t+1))
    _log_size: float = field(init=False, repr=False)  # of the largest |M|, the unit of what follows
    _flat: Complexes = field(init=False, repr=False)  # M/(t(t+1))
    _wrong: tuple[float, float] = field(init=False, repr=False)  # its errors, and the rounding per epsilon
    _log_right: Reals = field(init=False, repr=False)  # log of the aliases right of epsilon, before e^{-t·epsilon}
    _last: tuple[float, Complexes, float, float] = field(init=False, repr=False)  # latest epsilon, terms, sum and slack

    def __post_init__(self) -> None:
        self._top = largest_loss(self.steps)
        self._unit = np.full(len(self.nodes), self.spacing / math.pi)
        self._unit[0] /= 2
        self._below = 1 / (self.nodes * (1 + self.nodes))
        far = np.minimum(700.0, (self.orders - self.tilt) * (2 * math.pi / self.spacing))
        self._log_right = self.log_orders + hook(self.orders) - np.log(np.expm1(far))
        self._log_size = float(self.log_m.real.max())
        self._flat = np.exp(self.log_m - self._log_size) * self._below
        self._wrong = self._errors()
        self._last = math.nan, self._below, math.nan, math.nan

    def _errors(self) -> tuple[float, float]:
        """What is wrong, missing or rounded in M/(t(t+1)), in all; and how much more is rounded per epsilon."""
        sizes = np.abs(self._flat) * self._unit
        wrong = float((np.expm1(np.minimum(self.error, 700.0)) + 8 * UNIT * (4 + np.abs(self.log_m))) @ sizes)
        if self.tail is None:
            wrong += math.exp(min(700.0, self.log_cut - self._log_size)) / (math.pi * self.nodes[-1].imag)
        return wrong + 1e-300, 8 * UNIT * float(np.abs(self.nodes) @ sizes)

    def _turned(self, epsilon: float) -> Complexes:
        """e^{-i·epsilon·Im t} at the nodes, which are equally spaced: of many, as products of few."""
        count = len(self.nodes)
        if count <= _FEW_NODES:
            return np.exp(self.nodes.imag * (-1j * epsilon))
        block = math.isqrt(count)
        fine = np.exp(self.nodes.imag[:block] * (-1j * epsilon))
        coarse = np.exp(self.nodes.imag[::block] * (-1j * epsilon))
        return np.multiply.outer(coarse, fine).ravel()[:count]

    @classmethod
    def laid(
        cls,
        steps: Run,
        saddle: float,
        epsilon: float,
        log_delta: float,
        *,
        exact: bool = False,
        one_sided: bool = False,
        unseen: float = 0.0,
        log_orders: Reals | None = None,
    ) -> "Line | None":
        """Lay a line for delta(epsilon) ≈ e^log_delta; None if its truncation cannot be certified.

        `exact` spends time to lose fewer digits, for where the integral is much smaller than its integrand. A
        `one_sided` line is laid in less time, and says nothing from below. `log_orders` is about log M at
        `ORDERS` of the saddle, if that is known.
        """
        steps = gathered(steps)
        try:
            with np.errstate(all="ignore"):
                if log_orders is None:
                    log_orders = rough_log_moment(steps, saddle * ORDERS)
                line = _lay(steps, saddle, epsilon, log_delta, log_orders, exact, one_sided)
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
        """A certified lower bound on delta(epsilon); that of a one-sided line is 0."""
        total, slack = self._sum(epsilon)
        found = total - slack - self._aliases(epsilon) - self._blurred(epsilon)
        return (self.infinite + max(0.0, found)) * (1 - 1e-14)

    def slack(self, epsilon: float) -> float:
        """A bound on all errors of the trapezoid sum but the aliases."""
        return self._sum(epsilon)[1]

    def total(self, epsilon: float) -> float:
        """The trapezoid sum: the finite part of delta(epsilon), neither bounded from above nor below."""
        return self._sum(epsilon)[0]

    def slope(self, epsilon: float) -> float:
        """d delta / d epsilon of the trapezoid sum."""
        self._sum(epsilon)
        out = -float((self.nodes * self._last[1]).real @ self._unit)
        return out + (self.tail.slope(epsilon) if self.tail else 0.0)

    def _sum(self, epsilon: float) -> tuple[float, float]:
        """The trapezoid sum, and a bound on all its errors but the aliases."""
        if epsilon == self._last[0]:
            return self._last[2:]
        size = math.exp(min(700.0, self._log_size - self.tilt * epsilon))
        f = self._flat * (size * self._turned(epsilon))
        total = float(f.real @ self._unit)
        slack = size * (self._wrong[0] + self._wrong[1] * epsilon)
        if self.tail is not None:
            more, wrong = self.tail.sum(epsilon)
            total, slack = total + more, slack + wrong
        self._last = epsilon, f, total, slack * (1 + 1e-9)  # bounds are rounded, too
        return self._last[2:]

    def _blurred(self, epsilon: float) -> float:
        """A bound on what the normal step adds to delta(epsilon): blur·e^{blur/8} times the density of the loss."""
        if not self.blur:
            return 0.0
        self._sum(epsilon)
        sizes = np.exp(np.minimum(self.log_m.real - self.tilt * epsilon + self.error, 700.0))
        wrong = (16 * UNIT * (4 + np.abs(self.nodes) * epsilon + np.abs(self.log_m)) - np.expm1(-self.error)) * sizes
        density = float((self._last[1] / self._below).real @ self._unit) + float(wrong @ self._unit)
        reach = float(self.nodes[-1].imag)
        beyond = math.exp(min(700.0, self.log_cut - self.tilt * epsilon)) / (math.pi * self.blur * reach)
        return self.blur * math.exp(self.blur / 8) * (1 + 1e-13) * (density + beyond)

    def _aliases(self, epsilon: float) -> float:
        """A bound on Σ_{k≠0} e^{ckP} delta(epsilon + kP)."""
        c, period = self.tilt, 2 * math.pi / self.spacing
        left = self.mass / math.expm1(min(700.0, c * period))
        gap = epsilon + period - self._top - self.blur / 2
        if gap >= 0 and not self.blur:
            return left
        if gap > 0 and c * period - gap * gap / (2 * self.blur) < -700.0:  # a normal tail beyond the largest loss
            return left + 1e-300
        if not len(self.orders):
            return math.inf
        return left + math.exp(min(700.0, float((self._log_right - self.orders * epsilon).min())))


def _on_line(
    steps: Run, tilt: float, spacing: float, nodes: Complexes, beyond: Reals, exact: bool
) -> tuple[Complexes, Reals]:
    """`log_moment` on equally spaced nodes and at orders beyond, by the faster way where its rounding is harmless."""
    value = np.zeros(len(nodes) + len(beyond), dtype=complex)
    error = np.zeros(len(nodes) + len(beyond))
    for pair, count in steps:
        if isinstance(pair, Mixtures):
            one, wrong = pair.on_line(tilt, spacing, len(nodes), beyond, exact=exact)
            value, error = value + one, error + wrong
            continue
        if isinstance(pair, Atoms | Crowd):
            one, wrong = pair.on_line(tilt, spacing, len(nodes))
        elif isinstance(pair, CutPair) and len(nodes) > (3000 if exact else 24 if count < 100_000 else 200):
            one, relative = pair.log_moments(tilt, spacing, len(nodes))
            one, wrong = count * one, count * np.log1p(relative)
        elif isinstance(pair, FixedSizePair | CutFixedSize | SampledLaplacePair) and len(nodes) > 24:
            one, relative = pair.log_moments(tilt, spacing, np.arange(len(nodes)))
            one, wrong = count * one, count * np.log1p(relative)
        else:
            one, relative = pair.log_moment(nodes)
            one, wrong = count * one, count * np.log1p(relative)
        value[: len(nodes)] += one
        error[: len(nodes)] += wrong
        if len(beyond):
            one, relative = pair.log_moment(beyond.astype(complex))
            value[len(nodes) :] += count * one
            error[len(nodes) :] += count * np.log1p(relative)
    return value, error


def _lay(
    steps: Run, saddle: float, epsilon: float, log_delta: float, log_orders: Reals, exact: bool, one_sided: bool
) -> Line | None:
    orders = saddle * ORDERS
    c, period, beyond = tilt_and_period(epsilon, log_delta, saddle, largest_loss(steps), log_orders)
    beyond = beyond[:0] if one_sided else beyond
    if not math.isfinite(period):
        return None
    spacing = 2 * math.pi / period
    # the bound on the rest, e^{log M(c) - decay - c·epsilon} / (π·reach), is to be below e^{-DIGITS} of delta
    log_size = float(np.interp(c, orders, log_orders)) - c * epsilon
    for pair, _ in steps:
        if isinstance(pair, Mixtures) and len(beyond):
            pair.prepare(c, float(beyond[-1]), exact=log_size - log_delta > _CANCELS)
    variance = max(1e-300, float(log_orders[3] - 2 * log_orders[4] + log_orders[5]) / (0.1 * saddle) ** 2)
    normal = math.sqrt(2 * max(log_size - log_delta + DIGITS, 1.0) / variance)
    last, fall = reach(steps, c, spacing, log_size, log_delta - DIGITS, normal)
    tail, blur = None, 0.0
    if not last or last > _MANY_NODES:
        tail = fermi_tail(steps, c, spacing, epsilon, log_delta - DIGITS)
        if tail is not None and (not last or tail.first < last / 2):
            last = tail.first - 1
        elif last:
            tail = None
        else:
            if exact or epsilon <= 0 or not _is_crowded(steps):
                return None
            blur, last, fall = _blur(c, spacing, epsilon, log_size - log_delta + DIGITS)
            if not (1 + c) ** 2 * blur < _MOST_BLUR:
                return None
            steps = (*steps, (GaussianPair(math.sqrt(blur)), 1))
    nodes = c + 1j * spacing * np.arange(last + 1)
    values, error = _on_line(steps, c, spacing, nodes, beyond, exact)
    log_cut = float(values[0].real + error[0]) - fall
    bounds = (values.real + error)[last + 1 :]
    known = np.isfinite(bounds)
    line = values[: last + 1], error[: last + 1], log_cut, tail, infinite_mass(steps), beyond[known], bounds[known]
    return Line(steps, c, spacing, nodes, *line, blur=blur)


def _is_crowded(steps: Run) -> bool:
    """Whether a lattice would take long, or have no digits left: many unlike steps, very many, or rare outcomes."""
    if any(isinstance(pair, CutFixedSize) for pair, _ in steps):
        return True
    batches = [pair for pair, _ in steps if isinstance(pair, Mixtures | Atoms | Crowd)]
    alone = [(1, count) for pair, count in steps if not isinstance(pair, Mixtures | Atoms | Crowd)]
    sizes = [*alone, *((len(pair.parts), max(count for _, count in pair.parts)) for pair in batches)]
    return sum(kinds for kinds, _ in sizes) >= _MANY_KINDS or max(count for _, count in sizes) >= _MANY_STEPS


def _blur(tilt: float, spacing: float, epsilon: float, fall: float) -> tuple[float, int, float]:
    """The variance of a normal step whose moments fall by e^-fall in a number of nodes; that number, and the fall."""
    blur = _BLURRED * epsilon / (1 + tilt)  # so that epsilon is known to about that part of it
    last = min(_MOST_BLURRED, math.ceil(math.sqrt(2 * fall / blur) / spacing))
    reach = spacing * last
    blur = max(blur, 2 * fall / reach**2)
    return blur, last, blur * reach**2 / 2 * (1 - 8 * UNIT)
