"""One big step among many small ones: runs whose loss is nearly an atom plus rare large jumps.

There the line integral neither decays nor has a tilt that suits all outcomes. So outcomes are told apart by size:
thresholds x_0 < x_1 < …, blurred so that all stays analytic, and with μ_j a step's measure up to x_j

    P^T = μ_0^T + Σ_j (μ_j^T - μ_{j-1}^T) + what is left out,

every part a measure. μ_0^T (no step beyond x_0) cannot reach epsilon, by a Rényi bound. Part j has a step between
x_{j-1} and x_j and none beyond: its losses are of one scale, its line integral has a tilt of its own, and decays as
B_j = M_j - M_{j-1} does. docs/proofs/rare.md, section 4, has the proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from privet.accounting.contour.line import Line
from privet.accounting.contour.roots import largest_below, solve
from privet.accounting.pairs.blurred_window import Window
from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.cut_curve import Curve
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals
from privet.accounting.pairs.truncated_mixture import CutPair
from privet.accounting.renyi_orders import hook

MOST_RATE = 0.5  # beyond it w₋ may be near 0, and 1 + (w₋ - 1) loses digits that no bound here counts

_DIGITS = 20.0  # natural log of the relative accuracy aimed at
_SHARE = 1e-9  # of δ that each kind of neglected outcome may make up
_MOST_SHIFT = 12.0  # beyond it, grids would be too fine
_MOST_LEVELS = 14
_MOST_NODES = 3000
_RATIO = 5.0  # of the largest losses of two neighbouring levels
_EDGE = 17.0  # log of how much the tilt may enlarge what is neglected at a cut
_CANCELLED = 9.0  # log of the ratio of integrand to integral that is put up with


@dataclass(frozen=True, slots=True)
class Levels:
    """A run of one mixture pair, which answers at any epsilon near the one it was laid for."""

    lines: tuple[Line, ...]
    unseen: float  # probability of all that is left out
    order: float  # t > 0, and log of a bound on E[e^{tL}] of the part without big steps
    log_small: float

    @classmethod
    @np.errstate(all="ignore")
    def laid(cls, pair: MixturePair, count: int, epsilon: float, delta: float) -> "Levels | None":
        """Levels for δ(epsilon) ≈ delta; None where they cannot be certified."""
        if pair.shift > _MOST_SHIFT or pair.rate > MOST_RATE:
            return None
        try:
            return _lay(pair, count, epsilon, math.log(delta))
        except (ArithmeticError, ValueError):  # orders or probabilities beyond what floats can hold
            return None

    def upper(self, epsilon: float) -> float:
        """A certified upper bound on δ(epsilon)."""
        small = math.exp(min(0.0, self.log_small - self.order * epsilon + float(hook(np.array([self.order]))[0])))
        return min(1.0, (sum(line.upper(epsilon) for line in self.lines) + self.unseen + small) * (1 + 1e-13))

    def lower(self, epsilon: float) -> float:
        """A certified lower bound on δ(epsilon)."""
        return sum(line.lower(epsilon) for line in self.lines) * (1 - 1e-13)

    def slope(self, epsilon: float) -> float:
        """d δ / d epsilon, about."""
        return sum(line.slope(epsilon) for line in self.lines)

    def epsilon(self, delta: float, start: float) -> tuple[float, float] | None:
        """Certified (lower, upper) on epsilon(delta)."""
        upper = solve(self, delta, start)
        return None if upper is None else (largest_below(self, delta, upper), upper)


def _beyond(pair: MixturePair, x: float) -> float:
    """P(xi > x), rounded up."""
    s, q = pair.shift, pair.rate
    return float((1 - q) * ndtr(-x) + q * ndtr(s - x)) * (1 + 1e-12)


def _place(pair: MixturePair, loss: float) -> float:
    return float(pair._threshold(np.array([loss]))[0])


@dataclass(frozen=True, slots=True)
class _Rough:
    """Moments at real orders by a plain sum, for searches only."""

    pair: MixturePair
    blur: float

    def logs(self, cut: float, low: float, high: float, t: Reals) -> tuple[Reals, Reals]:
        """log M and log B at the orders t."""
        s, q = self.pair.shift, self.pair.rate
        x = np.linspace(-8.0 - s, cut, max(100, int((cut + 8 + s) / min(0.1, self.blur / 3))))
        up = np.log1p(q * np.expm1(s * x - s * s / 2))
        loss = up - np.log1p(q * np.expm1(-s * x - s * s / 2)) if self.pair.kind == "replace" else up
        weight = np.exp(up - x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        weight[-1] /= 2
        above = ndtr((x - high) / self.blur) if math.isfinite(high) else np.zeros_like(x)
        rise = np.expm1(np.minimum(np.multiply.outer(t, loss), 650.0))
        out = float(ndtr(-high / math.hypot(1.0, self.blur))) if math.isfinite(high) else 0.0
        beyond = weight * np.where(x > high, ndtr((high - x) / self.blur), ndtr((x - low) / self.blur) - above)
        beyond = np.maximum(beyond, 0.0)
        return np.log1p(rise @ (weight * (1 - above)) - out), np.log(rise @ beyond + beyond.sum() + 1e-300)


def _lay(pair: MixturePair, count: int, epsilon: float, log_delta: float) -> Levels | None:
    top = min(2.5, math.pi / 2 / pair.shift)
    rough = _Rough(pair, top / math.sqrt(20.0))
    allowed = _SHARE * math.exp(log_delta)

    def threshold(cut: float) -> float:
        """The blurred threshold below `cut` that leaves next to nothing beyond it."""
        share = allowed / 10 / (count * _beyond(pair, cut))
        return cut - rough.blur * max(1.0, -float(ndtri(min(0.1, max(share, 1e-300)))))

    last = pair.shift + 1.0  # beyond the last cut, everything is neglected
    while count * _beyond(pair, last) > allowed:
        last += 0.05
    first = _first_cut(rough, count, epsilon, log_delta, threshold)
    if first is None or first >= last:
        return None
    low = threshold(first)
    order, log_small = _small(pair, count, first, low, rough, epsilon)
    unseen = count * _beyond(pair, last)
    lines: list[Line] = []
    cuts = [first]
    while cuts[-1] < last:
        following = _place(pair, _RATIO * Curve(pair, cuts[-1]).highest)
        cuts.append(last if following > last - 0.3 / pair.shift else following)
    todo = cuts[:0:-1]
    before = first
    while todo:
        if len(lines) + len(todo) > _MOST_LEVELS:
            return None
        cut = todo[-1]
        high = math.inf if cut == last else threshold(cut)
        line = _level(rough, count, cut, low, high, epsilon, log_delta)
        if line is None:  # its losses are of too many scales
            middle = _place(pair, math.sqrt(Curve(pair, before).highest * Curve(pair, cut).highest))
            if not before < middle < cut - 0.02:
                return None
            todo.append(middle)
            continue
        todo.pop()
        lines.append(line)
        # small steps beyond their cut: below their blurred threshold, but not in any part
        unseen += count * _beyond(pair, before) * float(ndtr((low - before) / rough.blur)) * (1 + 1e-12)
        before, low = cut, high
    if before != last:  # whatever the reason: parts would be missing
        return None
    return Levels(tuple(lines), unseen * (1 + 1e-13), order, log_small)


def _first_cut(
    rough: _Rough, count: int, epsilon: float, log_delta: float, threshold: Callable[[float], float]
) -> float | None:
    """The largest cut below which all steps together surely stay below epsilon."""
    t = np.geomspace(3.0, 300.0, 24) / epsilon

    def fits(cut: float) -> bool:
        log_m, _ = rough.logs(cut, 0.0, threshold(cut), t)
        return bool((count * log_m - t * epsilon + hook(t)).min() < log_delta - _DIGITS - 1.0)

    low, high = _place(rough.pair, epsilon / 1000), _place(rough.pair, epsilon)
    low = max(low, -2.0)
    if low >= high or not fits(low):
        return None
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _small(
    pair: MixturePair, count: int, cut: float, high: float, rough: _Rough, epsilon: float
) -> tuple[float, float]:
    """An order t, and log of a bound on E[e^{tL}] of the part in which no step is beyond `high`."""
    t = np.geomspace(3.0, 300.0, 24) / epsilon
    log_m, _ = rough.logs(cut, 0.0, high, t)
    order = float(t[int(np.argmin(count * log_m - t * epsilon + hook(t)))])
    window = Window(pair, cut, high - 1.0, high, rough.blur, order, 50.0)
    m, _ = window.moments(np.array([complex(order)]))
    fixed, slope = window.errors(np.array([order]))[0, :2]
    log_m0 = math.log1p(float(m[0].real) + fixed + slope * (1 + 2 * order))
    return order, count * (log_m0 + 1e-13 * abs(log_m0))


def _level(
    rough: _Rough, count: int, cut: float, low: float, high: float, epsilon: float, log_delta: float
) -> Line | None:
    """The line of the part with a step between `low` and `high` and none beyond; None if it needs too many nodes."""
    pair = rough.pair
    t = np.geomspace(0.2 / max(epsilon, Curve(pair, cut).highest), 80.0 / epsilon, 32)
    t = t[t * Curve(pair, cut).highest < 250.0]
    if len(t) < 4:
        return None
    log_m, log_b = rough.logs(cut, low, high, t)
    sizes = math.log(count) + log_b + (count - 1) * log_m - t * epsilon
    mass = min(1.0, count * Window(pair, cut, low, high, rough.blur, 0.0, 0.0).mass)
    left = np.maximum(_DIGITS - log_delta + math.log(mass), 2.0) / t
    gap = t[None, :] - t[:, None]
    right = np.where(gap > 0, (sizes + hook(t) - log_delta + _DIGITS) / np.where(gap > 0, gap, 1.0), math.inf)
    period = np.maximum(left, right.min(axis=1))
    excess = sizes - log_delta - np.log1p(t)
    fair = excess < max(_CANCELLED, float(excess.min()) + 0.1)
    # the edge at the cut, which decays slowly: about _SHARE·δ at tilt 0, more at others
    smooth = fair & (t * (Curve(pair, cut).highest - epsilon) < _EDGE)
    best = int(np.argmin(np.where(smooth if smooth.any() else fair, period, math.inf)))
    if not math.isfinite(period[best]) or excess[best] > 16.0:
        return None
    tilt, spacing = float(t[best]), 2 * math.pi / float(period[best])
    depth = 26.0 - log_delta - tilt * epsilon + math.log(count) + (count - 1) * float(log_m[best])
    window = Window(pair, cut, low, high, rough.blur, tilt, min(90.0, max(depth - math.log(min(1.0, tilt)), 10.0)))
    orders = np.concatenate([[tilt], t[np.argsort(right[best])[:2]]])
    orders = orders[np.concatenate([[True], np.isfinite(np.sort(right[best])[:2])])]
    # how far the line must reach
    log_rest = math.log(count) + (count - 1) * float(log_m[best]) - tilt * epsilon
    counts = np.unique(np.ceil(np.geomspace(4, _MOST_NODES, 20)))
    fall = window.decay(spacing * counts)
    enough = np.flatnonzero(log_rest + fall - np.log(math.pi * spacing * counts) < log_delta - _DIGITS)
    if not len(enough):
        return None
    reach = int(counts[enough[0]])
    nodes = tilt + 1j * spacing * np.arange(reach + 1)
    errors = window.errors(orders)
    logs_m, logs_b = _certified(window, orders, errors)
    log_f, error = _difference(window, count, nodes, spacing, errors[0])
    above = orders[1:]
    return Line(
        [(CutPair(pair, cut), count)],
        tilt,
        spacing,
        nodes,
        log_f,
        error,
        math.log(count) + (count - 1) * float(logs_m[0]) + float(fall[enough[0]]),
        None,
        0.0,
        above,
        math.log(count) + logs_b[1:] + (count - 1) * logs_m[1:],
        mass=mass,
    )


def _certified(window: Window, orders: Reals, errors: Reals) -> tuple[Reals, Reals]:
    """Upper bounds on log M and log B at real orders."""
    m, b = window.moments(orders.astype(complex))
    size = 1 + 2 * orders
    log_m: Reals = np.log1p(m.real + errors[:, 0] + errors[:, 1] * size)
    log_b: Reals = np.log(np.maximum(b.real, 0.0) + errors[:, 2] + errors[:, 3] * size)
    return log_m + 1e-15 * np.abs(log_m), log_b + 1e-14 * np.abs(log_b)


def _difference(window: Window, count: int, nodes: Complexes, spacing: float, errors: Reals) -> tuple[Complexes, Reals]:
    """log of M^count - (M - B)^count on the line, and log(1 + a bound on its relative error)."""
    m, b = window.moments_on_line(spacing, len(nodes))
    fixed_m, slope_m, fixed_b, slope_b = errors
    length = 1 + 2 * np.abs(nodes)
    wrong_m, wrong_b = fixed_m + slope_m * length, fixed_b + slope_b * length
    log_m = log1p(m)
    z = count * log1p(-b / (1 + m))
    part = -expm1(z)
    part = np.where(np.abs(part) < 1e-280, 1e-280, part)
    most = np.maximum(np.abs(1 + m), np.abs(1 + m - b)) + wrong_m + wrong_b
    log_scale = (count - 1) * np.log(most) - count * log_m.real
    wrong = np.exp(np.minimum(log_scale, 600.0)) * count * (wrong_b + count * np.abs(b) * wrong_m / most)
    rounding = 16 * UNIT * (4 + count * np.abs(log_m) + np.abs(z)) * (np.abs(part) + np.abs(z) * np.exp(z.real))
    relative = (wrong + rounding + 2e-280) / np.abs(part)
    return count * log_m + np.log(part), np.log1p(relative)
