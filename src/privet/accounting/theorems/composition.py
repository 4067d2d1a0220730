"""Composition: what several releases cost together, from the epsilon and delta of each.

All theorems here hold for *adaptive* composition: each release may be any function of the earlier outputs, so long as
its own (epsilon_i, delta_i) was fixed beforehand. When the epsilons themselves are chosen as one goes, use a filter
(:mod:`privet.accounting.filters`).

| name | theorem | total epsilon of T equal steps |
|---|---|---|
| basic | Dwork et al. 2006 | T ε₀ |
| advanced | Dwork, Rothblum and Vadhan 2010; constants of Kairouz, Oh and Viswanath 2017, theorem 3.5 | ε₀√(2T ln 1/δ′) + T ε₀ (e^ε₀ − 1)/(e^ε₀ + 1) |
| optimal | Kairouz, Oh and Viswanath 2017, theorem 3.3 | exact: no smaller one holds for all such mechanisms |

Results are rounded to the safe side (see :mod:`privet.accounting.numerics`).
"""  # noqa: E501  # one row a theorem

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet._checks import whole
from privet.accounting.numerics import bracketed_root, downward, upward
from privet.privacy import check_delta, check_epsilon

_EPS = 2.0**-52


class Cost(NamedTuple):
    """The claimed pair of one kind of step, and how often it runs."""

    epsilon: float
    delta: float = 0.0
    times: int = 1


def basic(costs: Iterable[Cost]) -> tuple[float, float]:
    """Return the sums (Σ epsilon, Σ delta), correctly rounded upwards.

    Theorem: Dwork et al. 2006; lecture 11, composition. Holds adaptively.

    Examples
    --------
    >>> basic([Cost(0.5, 1e-6, 10), Cost(1.0)])
    (6.0, 1e-05)
    """
    checked = [_check(cost) for cost in costs]
    return (
        _sum_up(Fraction(c.epsilon) * c.times for c in checked),
        min(1.0, _sum_up(Fraction(c.delta) * c.times for c in checked)),
    )


def advanced(costs: Iterable[Cost], slack: float) -> tuple[float, float]:
    """Return (epsilon, Σ delta + slack) by advanced composition, never more than basic composition's epsilon.

    epsilon = √(2 ln(1/slack) Σ ε_i²) + Σ ε_i (e^ε_i − 1)/(e^ε_i + 1), for steps that may differ.
    Theorem: Kairouz, Oh and Viswanath 2017, theorem 3.5. The lecture prints e^{ε+1} for the denominator e^ε + 1; that
    is false (T = 1000, ε = 0.3, slack = 1e-5: it says 74.1, the optimum is 83.5).

    Parameters
    ----------
    costs : the steps
    slack : in (0, 1), the delta that is given up for the better epsilon

    Examples
    --------
    >>> epsilon, delta = advanced([Cost(0.1, 0.0, 100)], slack=1e-6)
    >>> f"{epsilon:.12f}", delta
    ('5.756105519336', 1e-06)
    """
    checked = [_check(cost) for cost in costs]
    slack = check_delta(slack)
    total, delta = basic([*checked, Cost(0.0, slack)])
    size = math.hypot(*(math.sqrt(c.times) * c.epsilon for c in checked))
    drift = math.fsum(c.times * c.epsilon * math.tanh(c.epsilon / 2.0) for c in checked)
    return min(total, upward(math.sqrt(-2.0 * math.log(slack)) * size + drift)), delta


def advanced_epsilon(costs: Iterable[Cost], delta: float) -> float:
    """Return epsilon at a total `delta` by advanced composition; infinite if the steps' own deltas exceed it.

    What the steps' deltas leave over is the slack. With nothing left over, basic composition answers.

    Examples
    --------
    >>> advanced_epsilon([Cost(0.1, 0.0, 100)], delta=1e-6) == advanced([Cost(0.1, 0.0, 100)], slack=1e-6)[0]
    True
    >>> advanced_epsilon([Cost(0.1, 1e-6, 100)], delta=1e-6)
    inf
    """
    checked = [_check(cost) for cost in costs]
    left = Fraction(check_delta(delta)) - sum(Fraction(c.delta) * c.times for c in checked)
    if left < 0:
        return math.inf
    slack = math.nextafter(float(left), 0.0) if float(left) > left else float(left)
    return advanced(checked, slack)[0] if slack > 0.0 else basic(checked)[0]


def optimal_delta(epsilon_step: float, delta_step: float, steps: int, *, epsilon: float) -> float:
    """Return the exact delta at `epsilon` of `steps` (epsilon_step, delta_step)-private releases, rounded upwards.

    Theorem: Kairouz, Oh and Viswanath 2017, theorem 3.3. The worst such mechanism reveals all with probability δ₀, and
    else is randomized response, whose loss after T steps is (T − 2j) ε₀ with j binomial(T, 1/(1 + e^ε₀)). So

        1 − delta = (1 − δ₀)^T (1 − D),    D = Σ_j P(j) (1 − e^{ε − (T − 2j) ε₀})₊ ,

    a sum of non-negative terms. P(j) is taken by Loader's saddle-point form, to about 1e-15 (1 + |j − mean|) relative;
    only terms that matter are summed, the others are bounded and added. Cost: O(√T).

    Examples
    --------
    >>> f"{optimal_delta(1.0, 0.0, 1, epsilon=0.5):.12f}"   # e/(1+e) − e^0.5/(1+e)
    '0.287649136645'
    """
    costs = [_check(Cost(epsilon_step, delta_step, steps))]
    return _total_delta(costs, _unlike_stick(costs, check_epsilon(epsilon), 1), 1)


def optimal_epsilon(epsilon_step: float, delta_step: float, steps: int, *, delta: float) -> float:
    """Return the least epsilon at a total `delta` by optimal composition, rounded upwards; infinite if there is none.

    Promise: `optimal_delta` there is at most `delta`. Theorem: Kairouz, Oh and Viswanath 2017, theorem 3.3.

    Examples
    --------
    >>> f"{optimal_epsilon(0.3, 0.0, 1000, delta=1e-5):.1f}"
    '83.5'
    """
    return answers_epsilon([Cost(epsilon_step, delta_step, steps)], delta)[1]


def answers_delta(costs: Sequence[Cost], epsilon: float) -> tuple[float, float]:
    """Return (lower, upper) on the delta at `epsilon` of the worst steps with these costs, which may differ.

    Theorem: Murtagh and Vadhan 2016, theorem 1.5: the formula of `optimal_delta`, with one j for each kind of step. The
    kind that runs most often is summed as there, the others one outcome at a time, so few of those should run often.

    Examples
    --------
    >>> [f"{end:.9f}" for end in answers_delta([Cost(1.0, 0.1), Cost(2.0, 0.2)], 2.0)]
    ['0.573062638', '0.573062638']
    """
    checked = [_check(cost) for cost in costs]
    epsilon = check_epsilon(epsilon)
    low, high = (_total_delta(checked, _unlike_stick(checked, epsilon, sign), sign) for sign in (-1, 1))
    return min(low, high), high


def answers_epsilon(costs: Sequence[Cost], delta: float) -> tuple[float, float]:
    """Return (lower, upper) on the least epsilon at which the worst steps with these costs have `delta`.

    Whether all is revealed with a probability above `delta` is decided in exact arithmetic, for up to 256 steps.

    Examples
    --------
    >>> answers_epsilon([Cost(1.0, 0.1), Cost(2.0, 0.2)], 0.28)[1]
    3.0
    """
    checked, delta = [_check(cost) for cost in costs], check_delta(delta)
    top, lowest, highest = basic(checked)[0], _total_delta(checked, 0.0, -1), _total_delta(checked, 0.0, 1)
    if lowest <= delta < highest and sum(c.times for c in checked) <= 256:
        kept = math.prod((1 - Fraction(c.delta)) ** c.times for c in checked)
        lowest, highest = (1.0, 1.0) if 1 - kept > Fraction(delta) else (0.0, 0.0)
    if highest > delta:
        return (math.inf if lowest > delta else 0.0), math.inf

    def excess(epsilon: float, sign: int) -> float:
        # The log makes the curve nearly straight, and in this form has exactly the sign of value − delta.
        value = _total_delta(checked, _unlike_stick(checked, epsilon, sign), sign)
        return math.log1p(max((value - delta) / delta, -1.0 + 1e-15))

    def last(sign: int, most: float) -> tuple[float, float]:
        if excess(0.0, sign) <= 0.0:
            return 0.0, 0.0
        return (
            (most, most)
            if excess(most, sign) > 0.0
            else bracketed_root(lambda e: excess(e, sign), most, 0.0, tolerance=1e-13)
        )

    upper = last(1, top)[0]
    near = upper * (1 - 1e-9)
    return (near if excess(near, -1) > 0.0 else last(-1, upper)[1] * (1 - 1e-15)), upper


def _check(cost: Cost) -> Cost:
    epsilon, delta, times = Cost(*cost)
    times = whole("times", times, because="a run of that length does not exist", use="Pass the number of steps.")
    return Cost(check_epsilon(epsilon), check_delta(delta) if delta != 0.0 else 0.0, times)


def _sum_up(terms: Iterable[Fraction]) -> float:
    exact = sum(terms, Fraction(0))
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _total_delta(costs: Sequence[Cost], stick: float, sign: int) -> float:
    """Return 1 − Π (1 − δ_i)^T_i (1 − stick), rounded upwards (downwards if sign < 0), without cancellation."""
    revealed = -math.expm1(math.fsum(cost.times * math.log1p(-cost.delta) for cost in costs))
    if sign < 0:
        return downward(revealed + stick * (1.0 - revealed))
    return min(1.0, upward(revealed + stick * (1.0 - revealed) + stick * revealed * _EPS))


def _unlike_stick(costs: Sequence[Cost], epsilon: float, sign: int) -> float:
    """Return the expected (1 − e^{epsilon − loss})₊ of all answers together, rounded upwards (downwards)."""
    rare, *others = sorted(costs, key=lambda cost: cost.times)
    if not others:
        return _hockey_stick(rare.epsilon, rare.times, epsilon, sign)
    wrong = 1.0 / (1.0 + math.exp(min(rare.epsilon, 700.0)))
    j = np.arange(rare.times + 1.0)
    chance = binomial(j, rare.times, wrong) * (1.0 + sign * (1e-13 + 8.0 * _EPS * rare.times))
    loss = (rare.times - 2.0 * j) * rare.epsilon
    left = epsilon - loss - sign * 4.0 * _EPS * (np.abs(loss) + epsilon)
    return min(1.0, math.fsum(p * _unlike_stick(others, float(e), sign) for p, e in zip(chance, left, strict=True)))


def _hockey_stick(step: float, count: int, epsilon: float, sign: int = 1) -> float:
    """Return Σ_j P(j) (1 − e^{epsilon − (count − 2j) step})₊, an upper bound (sign < 0: a lower one), to rounding."""
    if epsilon >= count * step * (1.0 - 4.0 * _EPS) and Fraction(epsilon) >= count * Fraction(step):
        return 0.0
    most = -math.expm1(min(0.0, (epsilon - count * step) * (1.0 + sign * _EPS) - sign * 4.0 * _EPS * count * step))
    if step > 500.0:  # no loss exceeds count * step, which is off with a chance of count * e^{−step}
        return most if sign > 0 else max(0.0, most * (1.0 - count * math.exp(-step)))
    wrong = 1.0 / (1.0 + math.exp(step))
    spread = 1.0 + math.sqrt(count * wrong * (1.0 - wrong))
    if spread > 1e5:  # too many terms to sum: Hoeffding's bound on the chance of a loss above epsilon
        far = epsilon - count * step * math.tanh(step / 2.0) * (1.0 + 16.0 * _EPS)
        return 0.0 if sign < 0 else math.exp(-((far / step) ** 2) / (2.0 * count) * (1.0 - 1e-13)) if far > 0 else 1.0
    last = min(count, math.floor((count - epsilon / step) / 2.0) + 1)  # one more than needed, never one less
    # Terms rise to a peak near the tilted mean or `last`, and fall geometrically or faster away from it.
    centre = min(float(last), count * wrong)
    width = 16.0 * spread + 80.0
    first = max(0, math.floor(centre - width))
    end = min(last, math.ceil(centre + width))
    j = np.arange(first, end + 1, dtype=np.float64)
    gap = (count - 2.0 * j) * step
    gap = gap - epsilon + sign * 4.0 * _EPS * (np.abs(gap) + abs(epsilon))
    terms = binomial(j, count, wrong) * -np.expm1(-np.maximum(gap, 0.0))
    distance = max(abs(first - count * wrong), abs(end - count * wrong))
    total = float(np.sum(terms)) * (1.0 + sign * (1e-13 + 8.0 * _EPS * distance))
    return max(0.0, total) if sign < 0 else min(1.0, total + _neglected(first, end, last, count, wrong))


def _neglected(first: int, end: int, last: int, count: int, wrong: float) -> float:
    """Bound P(j < first) + P(end < j <= last) by geometric series from the terms at the ends of the window."""
    left = right = 0.0
    if first > 0:
        # P(j−1)/P(j) = j (1−p) / ((T−j+1) p) falls with j to the left, so it is at most its value at `first`.
        ratio = first * (1.0 - wrong) / ((count - first + 1) * wrong)
        here = float(binomial(np.array([float(first)]), count, wrong)[0])
        left = here * ratio / (1.0 - ratio) if ratio < 1.0 else 1.0
    if end < last:
        ratio = (count - end) * wrong / ((end + 1) * (1.0 - wrong))
        here = float(binomial(np.array([float(end)]), count, wrong)[0])
        right = here * ratio / (1.0 - ratio) if ratio < 1.0 else 1.0
    return 2.0 * (left + right) + 1e-300  # what underflowed is far below that


def binomial(j: NDArray[np.float64], count: int, wrong: float) -> NDArray[np.float64]:
    """Return C(count, j) wrong^j (1 − wrong)^(count − j) by Loader's saddle-point form (2000)."""
    rest = count - j
    right = 1.0 - wrong
    inside = (j > 0.0) & (rest > 0.0)
    a, b = np.where(inside, j, 1.0), np.where(inside, rest, 1.0)
    log = _stirling(np.array([float(count)])) - _stirling(a) - _stirling(b)
    log -= _deviance(a, count * wrong) + _deviance(b, count * right)
    middle = np.exp(log) * np.sqrt(count / (2.0 * math.pi * a * b))
    ends = np.where(j == 0.0, math.exp(count * math.log1p(-wrong)), math.exp(count * math.log(wrong)))
    return np.where(inside, middle, ends)


def _deviance(x: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Return x log(x/mean) + mean − x."""
    t = (x - mean) / mean
    return np.asarray(mean * ((1.0 + t) * np.log1p(t) - t), dtype=np.float64)


_SMALL = np.array(
    [0.0] + [math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi) for n in range(1, 16)]
)


def _stirling(n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log n! minus Stirling's formula: four terms of the series from 16 on, a table below."""
    inverse = 1.0 / np.maximum(n, 16.0)
    square = inverse * inverse
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))
    return np.where(n < 16.0, _SMALL[np.minimum(n, 15.0).astype(np.int64)], series)
