"""Amplification by sampling: a release on a secret random part of the records costs less.

Lemma (Balle, Barthe and Gaboardi 2018; lecture 13, lemma 1.2): a step that is (ε, δ)-private, run on a random batch
which no one is told, is (ln(1 + q(e^ε − 1)), q δ)-private, where q is the probability that a given record is in it:
the rate of Poisson sampling for neighbours "add_remove", or batch ÷ records of a uniform batch of fixed size for
"replace_one"; the step itself must be (ε, δ)-private under the same relation. The lemma is tight for one step; for
many steps the accountants do better. If the batch becomes known, nothing is gained.
Results are rounded to the safe side (see :mod:`privet.accounting.numerics`).
"""

import math
from collections.abc import Callable

from privet._checks import between
from privet.accounting.numerics import bracketed_root, downward, upward
from privet.errors import RuleOutOfRange
from privet.privacy import check_delta, check_epsilon

SHORTCUT_LIMIT = 1.25643120862616
"""Just below 1.2564312086261697, the root of e^x − 1 = 2x: up to there the shortcut is true at every rate."""


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return (ln(1 + rate (e^epsilon − 1)), rate × delta), what the step costs on a secret batch, rounded upwards.

    Theorem: the lemma of this module; an equality in the direction from present to absent.
    Edges: rate 1 returns the step's own epsilon and delta.

    Parameters
    ----------
    epsilon, delta : what the step costs when its batch is known; delta may be 0
    rate : in (0, 1], the probability that a given record is in the batch

    Examples
    --------
    >>> epsilon, delta = amplified(0.5, 1e-5, 1e-5)      # the 0.001 % survey of lecture 13, exercise 1.3
    >>> f"{epsilon:.10e} {delta:.3e}"
    '6.4871916651e-06 1.000e-10'
    """
    epsilon, rate = check_epsilon(epsilon), _check_rate(rate)
    delta = check_delta(delta) if delta != 0.0 else 0.0
    if rate == 1.0:
        return epsilon, delta
    least = 5e-324 if delta > 0.0 else 0.0  # should the product underflow
    return min(epsilon, upward(_amplify(epsilon, rate))), max(upward(rate * delta), least)


def rate_for(epsilon: float, *, target: float) -> float:
    """Return the largest rate at which an `epsilon`-private step costs at most `target`, rounded downwards.

    q = (e^target − 1)/(e^epsilon − 1), at most 1. Lecture 13 has q = target for epsilon = 1, which is up to
    e − 1 = 1.718 times too much.

    Examples
    --------
    >>> f"{rate_for(1.0, target=0.1):.12f}"
    '0.061207024560'
    """
    epsilon, target = check_epsilon(epsilon), check_epsilon(target)
    if target >= epsilon:
        return 1.0
    log = target - epsilon  # (e^target − 1)/(e^epsilon − 1) = e^{target−epsilon} (1 − e^{−target})/(1 − e^{−epsilon})
    rate = math.exp(log) * (math.expm1(-target) / math.expm1(-epsilon)) * (1.0 - 4e-16 * (epsilon + target))
    return _settle(rate, lambda q: q <= 0.0 or amplified(epsilon, 0.0, q)[0] <= target)


def base_epsilon_for(target: float, *, rate: float) -> float:
    """Return the largest epsilon of a step that costs at most `target` when sampled at `rate`, rounded downwards.

    ε = ln(1 + (e^target − 1)/rate), the lemma read backwards.

    Examples
    --------
    >>> f"{base_epsilon_for(0.1, rate=0.0612070245600891):.12f}"
    '1.000000000000'
    """
    target, rate = check_epsilon(target), _check_rate(rate)
    if rate == 1.0:
        return target
    # ln(1 + (e^x − 1)/q) = x + ln(1 + (1 − q)(1 − e^{−x})/q)
    base = target + math.log1p(-math.expm1(-target) * (1.0 - rate) / rate)
    return _settle(base, lambda e: amplified(e, 0.0, rate)[0] <= target)


def shortcut(epsilon: float, rate: float) -> float:
    """Return 2 × rate × epsilon, the lecture's simplification of the lemma, where it is true; refuse elsewhere.

    Theorem: ln(1 + q(e^ε − 1)) <= 2qε for every q exactly when ε <= 1.25643…, for a given q up to
    `shortcut_limit(q)`, for q >= 1/2 always. Lecture 11 states it for ε < 1.

    Examples
    --------
    >>> f"{shortcut(1.0, 0.01):.4f} against {amplified(1.0, 0.0, 0.01)[0]:.4f}"
    '0.0200 against 0.0170'
    >>> shortcut(3.0, 0.01)
    Traceback (most recent call last):
        ...
    privet.errors.RuleOutOfRange: 2 × rate × epsilon is false at epsilon = 3, rate = 0.01: it says 0.06, but the step \
costs 0.174672. It is true up to epsilon = 1.27767 at this rate. Use amplified(3.0, 0.0, 0.01).
    """
    epsilon, rate = check_epsilon(epsilon), _check_rate(rate)
    true = amplified(epsilon, 0.0, rate)[0]
    claimed = upward(2.0 * rate * epsilon)
    if true > claimed:
        raise RuleOutOfRange(
            f"2 × rate × epsilon is false at epsilon = {epsilon:g}, rate = {rate:g}: it says {claimed:g}, but the step "
            f"costs {true:.6g}. It is true up to epsilon = {shortcut_limit(rate):.6g} at this rate. "
            f"Use amplified({epsilon!r}, 0.0, {rate!r})."
        )
    return claimed


def shortcut_limit(rate: float | None = None) -> float:
    """Return the largest epsilon for which the shortcut is true: at `rate`, or at every rate if none is given.

    Examples
    --------
    >>> shortcut_limit(), shortcut_limit(0.5)
    (1.25643120862616, inf)
    >>> f"{shortcut_limit(0.25):.9f}"      # 2 ln 3
    '2.197224577'
    """
    if rate is None:
        return SHORTCUT_LIMIT
    rate = _check_rate(rate)
    if rate >= 0.5:  # at q = 1/2: (1 + e^ε)/2 <= e^ε, and larger q only helps
        return math.inf
    high = 2.0
    while _amplify(high, rate) <= 2.0 * rate * high:
        high *= 2.0
    # Below the universal limit nothing need be solved, and the difference there drowns in rounding for tiny rates.
    return bracketed_root(lambda e: upward(_amplify(e, rate)) / (2.0 * rate) - e, SHORTCUT_LIMIT * (1 - 1e-12), high)[0]


def _amplify(epsilon: float, rate: float) -> float:
    if epsilon < 600.0:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1.0 - rate) * math.exp(-epsilon))


def _settle(value: float, holds: Callable[[float], bool]) -> float:
    """Step `value` down by `SLACK` until `holds`: one or two steps, as the formulas are inverses of each other."""
    value = downward(value)
    while not holds(value):
        value = downward(value)
    return value


def _check_rate(rate: float) -> float:
    because = "it is the probability that a record is in the batch"
    return between("rate", rate, 0.0, 1.0, closed=(False, True), because=because, use="Use batch ÷ records.")
