"""A line of few nodes for a record that joins sampled batches: a bound on delta from moments of w - 1 in closed form.

When a record joins, L = -log w under N(0, 1), w ≥ 1 - q, and M(t) = E[w^{-t}] is a Taylor polynomial in w - 1 up to a
remainder that is bounded for all complex t. It is known to a percent or so, not to many digits: enough to see that this
direction is the better one, in less time than any quadrature. docs/proofs/contour.md, section 3.
"""

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.accounting.pairs.mixture import MixturePair

_TERMS = 10  # moments of w - 1
_MOST_SHIFT, _MOST_RATE, _MOST_ORDER = 3.0, 0.9, 1e5
_MOST_NODES = 24
_MOST_PARTS = 8  # beyond it, quadrature with NumPy is quicker
_CUT = 0.01  # of delta that may lie beyond the last node
_UNSEEN = 7.0  # natural log of how small the aliases are to be
_STEP = 0.05  # of an order, for slopes


@dataclass(slots=True)
class _Joining:
    """`count` steps at rate q and shift s, and E[(w - 1)^k] for k ≤ `_TERMS`."""

    rate: float
    shift: float
    count: int
    moments: list[float]

    def rough_log_moment(self, t: float) -> float:
        """About log M(t) at a real order."""
        factor, rise = 1.0, 0.0
        for k in range(1, 5):
            factor *= -(t + k - 1) / k
            rise += factor * self.moments[k]
        return self.count * math.log1p(max(rise, -0.5))

    def log_moment(self, t: complex) -> tuple[complex, float]:
        """log of M(t) of all the steps, and a bound on log(1 + relative error of M)."""
        left, least = math.exp(-t.real * math.log1p(-self.rate)), 1 - self.rate
        factor, rise, size = 1 + 0j, 0j, 0.0
        best, found, wrong = math.inf, 0j, math.inf
        for k in range(1, _TERMS + 1):
            factor *= -(t + (k - 1)) / k
            term = abs(factor) * self.moments[k]
            rest = term * left / least**k
            if k >= 4 and k % 2 == 0 and rest < best:
                best, found, wrong = rest, rise, rest * (1 + 1e-6) + 1e-12 * size + 1e-15
            rise += factor * self.moments[k]
            size += term
        m = 1 + found
        return self.count * cmath.log(m), self.count * math.log1p(wrong / abs(m))

    def decay(self, tilt: float, frequency: float, moment: float) -> float:
        """A lower bound on log(M(tilt) / |M(tilt + iv)|), v ≥ frequency, of all steps; `moment` ≥ M(tilt) of one."""
        q, s, c = self.rate, self.shift, tilt
        along, grown = frequency * s * q, math.exp(s * s)
        angle = min(s * along / (1 + along * along * grown), 1.0)
        bend = 1 - math.cos(angle)
        once = q * math.exp(-(c + 1) * math.log1p(q * math.expm1(s * s))) * (1 - 1e-9)
        twice = q * q * grown * math.exp(-(c + 2) * math.log1p(-q)) * (1 + 1e-9)
        turned = min(frequency * math.sin(angle) - c * bend / (1 - bend / 2), once / twice)
        gain = turned * (once - turned * twice / 2) / moment if turned > 0 else 0.0
        return max(0.0, self.count * (-math.log1p(-min(gain, 0.999)) * (1 - 1e-9) - (angle / s) ** 2 / 2 - 1e-15))


def joining_upper(steps: Sequence[tuple[MixturePair, int]], epsilon: float, delta: float) -> float:
    """An upper bound on delta(epsilon) of "add" steps, meant to be compared with `delta`; infinite if there is none.

    Examples
    --------
    >>> steps = [(MixturePair(0.1, 0.25, "add"), 1000)]
    >>> bound = joining_upper(steps, 3.44434, 1e-5)
    >>> 5e-6 < bound < 6e-6
    True
    """
    if epsilon <= 0 or len(steps) > _MOST_PARTS:
        return math.inf
    if any(p.kind != "add" or p.shift > _MOST_SHIFT or p.rate > _MOST_RATE for p, _ in steps):
        return math.inf
    parts = [_Joining(p.rate, p.shift, n, _moments(p.rate, p.shift)) for p, n in steps]
    try:
        return _upper(parts, epsilon, delta)
    except (ArithmeticError, ValueError):  # beyond what floats can hold
        return math.inf


def _moments(rate: float, shift: float) -> list[float]:
    """E[(w - 1)^k]: q^k times those of e^y - 1, of which each is a sum of positive multiples of those before it."""
    grown, e = math.exp(shift * shift), math.expm1(shift * shift)
    found = [1.0, 0.0]
    for n in range(1, _TERMS):
        before = sum(math.comb(n, k) * grown**k * e ** (n - k) * found[k] for k in range(n))
        found.append(math.expm1(n * shift * shift) * found[n] + before)
    return [rate**k * moment for k, moment in enumerate(found)]


def _upper(parts: list[_Joining], epsilon: float, delta: float) -> float:
    tilt, variance = _tilt(parts, epsilon)
    if not (variance > 0 and tilt < _MOST_ORDER):
        return math.inf
    period = max((_UNSEEN - math.log(delta)) / tilt, 4.2 * math.sqrt(variance))
    spacing = 2 * math.pi / period
    here = [part.log_moment(complex(tilt)) for part in parts]
    log_size = sum(log_m.real + wrong for log_m, wrong in here)
    single = [
        math.exp((log_m.real + wrong) / p.count) * (1 + 1e-12) for p, (log_m, wrong) in zip(parts, here, strict=True)
    ]
    for last in range(2, _MOST_NODES):
        reach = last * spacing
        fall = sum(part.decay(tilt, reach, m) for part, m in zip(parts, single, strict=True))
        cut = math.exp(log_size - fall - tilt * epsilon) / (math.pi * reach)
        if cut < _CUT * delta:
            break
    else:
        return math.inf
    total, slack = 0.0, cut
    for k in range(last + 1):
        t = complex(tilt, k * spacing)
        values = here if k == 0 else [part.log_moment(t) for part in parts]
        log_m, wrong = sum(value for value, _ in values), sum(error for _, error in values)
        term = cmath.exp(log_m - t * epsilon) / (t * (1 + t)) * (spacing / math.pi / (1 if k else 2))
        total += term.real
        slack += abs(term) * (math.expm1(wrong) + 1e-15 * (8 + abs(log_m) + abs(t) * epsilon))
    return (total + slack) * (1 + 1e-12) + 1e-12 * slack


def _tilt(parts: list[_Joining], epsilon: float) -> tuple[float, float]:
    """About where M(t)e^{-t·epsilon}/(t(t+1)) is least, and its log's second derivative there: no bound needs them."""
    spread = sum(part.count * part.moments[2] for part in parts)
    t, curved = max((epsilon - spread / 2) / spread, 0.3 / math.sqrt(spread)), 0.0
    for _ in range(3):
        step = _STEP * t
        low, here, high = (
            sum(part.rough_log_moment(x) for part in parts) - math.log(x) - math.log1p(x)
            for x in (t - step, t, t + step)
        )
        curved = (low - 2 * here + high) / step**2
        if not curved > 0:
            return t, 0.0
        change = (epsilon - (high - low) / (2 * step)) / curved
        t = min(max(t + change, t / 2), 2 * t)
        if abs(change) < 0.03 * t:
            break
    return t, curved
