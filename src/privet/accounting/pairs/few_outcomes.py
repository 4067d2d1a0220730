"""Pairs of mechanisms with finitely many outcomes, and what sampling makes of them.

An outcome is (P-mass, Q-mass, loss), the loss infinite where Q has no mass.
"""

import math

from privet.accounting.pairs.elementary import DiscretePair, mixed_loss
from privet.accounting.pairs.pair import UNIT, Pair

EVERYTHING = DiscretePair((), (), 1.0)  # noise 0: the loss is infinite


def answers(epsilon: float, delta: float) -> DiscretePair:
    """The pair of all (epsilon, delta)-private mechanisms (Kairouz, Oh and Viswanath 2015)."""
    if epsilon == 0:
        return DiscretePair((0.0,), (1 - delta,), delta)
    heads = 1 / (1 + math.exp(-epsilon))
    tails = 1 / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    return DiscretePair((-epsilon, epsilon), ((1 - delta) * tails, (1 - delta) * heads), delta)


def kary_answers(epsilon: float, most: int) -> DiscretePair:
    """The pair of a response with `most` answers: two of them tell, by ±epsilon, and the others do not."""
    others = (most - 1) * math.exp(-epsilon)
    heads, tails = 1 / (1 + others), math.exp(-epsilon) / (1 + others)
    if epsilon == 0:
        return answers(0.0, 0.0)
    return _gathered([(-epsilon, tails), (0.0, (most - 2) * tails), (epsilon, heads)], 0.0)


def lattice_laplace(units: int, unit_loss: float) -> DiscretePair:
    """Discrete Laplace noise, P(z) ∝ e^{-|z|·unit_loss}, against itself moved by `units`.

    With r = e^{-unit_loss} the loss is (units − 2j)·unit_loss: at j = 0 with all z ≤ 0, of mass 1/(1 + r), at j = units
    with all z ≥ units, of mass r^units/(1 + r), and between with z = j, of mass r^j (1 − r)/(1 + r).
    """
    r = math.exp(-unit_loss)
    masses = [1 / (1 + r)]
    masses += [math.exp(-j * unit_loss) * -math.expm1(-unit_loss) / (1 + r) for j in range(1, units)]
    masses += [math.exp(-units * unit_loss) / (1 + r)]
    losses = [_up((units - 2 * j) * unit_loss, 0.0) for j in range(units + 1)]
    return _gathered(list(zip(losses, masses, strict=True)), 0.0)


def _outcomes(pair: DiscretePair) -> list[tuple[float, float, float]]:
    """(P-mass, Q-mass, loss) of every outcome, those that only one of the two can produce included."""
    # by symmetry of the pairs above, Q has at -loss what P has at loss, and as much that P never shows
    finite = [(p, q, x) for x, p, q in zip(pair.losses, pair.masses, reversed(pair.masses), strict=True)]
    only_q = pair.infinite
    return [*finite, (pair.infinite, 0.0, math.inf), (0.0, only_q, -math.inf)]


def _up(mixed: float, loss: float) -> float:
    """The mixed loss, rounded up: no larger one must occur, and it is above 0 where the unsampled one is."""
    return mixed + 8 * UNIT * abs(mixed) + (1e-323 if loss > 0 else 0.0)


def _gathered(losses: list[tuple[float, float]], infinite: float) -> DiscretePair:
    """A DiscretePair from (loss, P-mass) with equal losses merged."""
    table: dict[float, float] = {}
    for loss, mass in losses:
        if mass > 0:
            table[loss] = table.get(loss, 0.0) + mass
    order = sorted(table)
    return DiscretePair(tuple(order), tuple(table[k] for k in order), infinite)


def _leaving(pair: DiscretePair, rate: float) -> DiscretePair:
    """((1-q)Q + qP, Q): an outcome of ratio e^loss gets the ratio 1 + q(e^loss - 1)."""
    outcomes = _outcomes(pair)
    losses = [
        (_up(mixed_loss(rate, loss), loss), (1 - rate) * q + rate * p) for p, q, loss in outcomes if loss < math.inf
    ]
    return _gathered(losses, sum(rate * p for p, _, loss in outcomes if loss == math.inf))


def _joining(pair: DiscretePair, rate: float) -> DiscretePair:
    """(P, (1-q)P + qQ), with P and Q swapped as the pairs here are symmetric."""
    losses = [(_up(-mixed_loss(rate, -loss), loss), p) for p, _, loss in _outcomes(pair) if loss > -math.inf]
    return _gathered(losses, 0.0)


def sampled(pair: DiscretePair, rate: float) -> tuple[Pair, Pair]:
    """On Poisson batches, when the record leaves and when it joins."""
    return _leaving(pair, rate), _joining(pair, rate)


def fixed_answers(pair: DiscretePair, rate: float) -> DiscretePair:
    """As FixedSizePair: above 0 as when a record leaves, below 0 as when it joins, the rest at 0."""
    leaving, joining = _leaving(pair, rate), _joining(pair, rate)
    losses = [(x, m) for x, m in zip(leaving.losses, leaving.masses, strict=True) if x > 0]
    losses += [(x, m) for x, m in zip(joining.losses, joining.masses, strict=True) if x < 0]
    rest = 1 - leaving.infinite - sum(m for _, m in losses)
    return _gathered([*losses, (0.0, max(rest, 0.0))], leaving.infinite)
