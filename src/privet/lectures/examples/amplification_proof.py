"""The proof of amplification, line by line, on a real distribution (Razaviyayn, lecture 11; Wu, exercise 1.4).

A is a count with Gaussian noise, S a secret random batch, D a small table of zeros and ones, D' = D and one more
record x = 1. All batches are enumerated, so every probability below is known to rounding. For an event O

    P(A(S(D')) in O)
      = γ P(A(S(D')) in O | x in S) + (1 − γ) P(A(S(D')) in O | x not in S)                (1) split
     <= γ (e^ε P(A(S(D)) in O) + δ) + (1 − γ) P(A(S(D)) in O)                              (2) A is (ε, δ)-private
      = (1 − γ + γ e^ε) P(A(S(D)) in O) + γ δ                                              (3)

and P(A(S(D')) in O | x not in S) = P(A(S(D)) in O), as the others join without looking at x. The event taken is the
one on which the two ends are nearest to each other, over all events made of narrow cells.

>>> lines = poisson()
>>> f"{lines.left:.6f} = {lines.split:.6f} <= {lines.step_private:.6f} = {lines.right:.6f}"
'0.067126 = 0.067126 <= 0.083938 = 0.083938'
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from privet.accounting.theorems.gaussian_profile import delta_bounds
from privet.lectures.measures import Vector

Batches = list[tuple[float, tuple[int, ...]]]
"""Every batch, as the chance of it and its members."""

_EDGES = np.linspace(-14.0, 26.0, 4001)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """The proof's lines at its worst event, and how far they are from failing over all events.

    `worst` is the least δ' for which P' <= (1 − γ + γe^ε) P + δ' at every event, in units of the claimed γδ: at most 1
    if the lemma holds; `worst_back` is the same with D and D' swapped. `gap` is how far (1) is from an equality.
    """

    left: float
    split: float
    step_private: float
    right: float
    worst: float
    worst_back: float
    gap: float


def poisson(
    table: Sequence[int] = (1, 0, 1, 1, 0, 0, 1, 0),
    rate: float = 0.2,
    noise: float = 1.0,
    epsilon: float = 1.0,
    claimed_rate: float | None = None,
) -> Lines:
    """Follow the proof for Poisson batches: D' has one record more, and each joins with probability `rate` = γ.

    Parameters
    ----------
    table : D, zeros and ones
    rate : γ
    noise : standard deviation of the noise that A adds to its count; δ is then that of a Gaussian with μ = 1/noise
    epsilon : ε of A on a known batch
    claimed_rate : γ in what is claimed; `rate` unless one wants to see it refused

    Examples
    --------
    >>> lines = poisson()
    >>> lines.worst <= 1, lines.worst_back <= 1, poisson(claimed_rate=0.1).worst > 1
    (True, True, True)
    >>> f"{poisson(table=(0,) * 8).worst:.9f}"  # nobody else counts: the lemma is an equality
    '1.000000000'
    """
    n = len(table)
    without = _poisson_batches(n, rate)
    present = [(rate * c, (*b, n)) for c, b in without], [((1 - rate) * c, b) for c, b in without]
    claimed = rate if claimed_rate is None else claimed_rate
    return _follow((*table, 1), present, _law(table, without, noise), claimed, noise, epsilon)


def fixed_size(
    table: Sequence[int] = (1, 0, 1, 1, 0, 0, 1, 0),
    batch: int = 2,
    noise: float = 1.0,
    epsilon: float = 1.0,
    claimed_rate: float | None = None,
) -> Lines:
    """Do the lecture's exercise: all batches of one size are equally likely, and a record is replaced.

    D' is D with its last record turned into a 1; γ = batch/n. Now P(· | x not in S) is not P(A(S(D)) in O) but its
    part without x, and (2) needs one step more: a batch with x becomes one without by replacing x by another member,
    so P(· | x in S) <= e^ε P(· | x not in S) + δ as well, and e^ε P + δ is at least either.

    >>> lines = fixed_size()
    >>> lines.worst <= 1, lines.worst_back <= 1, fixed_size(claimed_rate=0.125).worst > 1
    (True, True, True)
    """
    n = len(table)
    chance = 1.0 / math.comb(n, batch)
    batches = [(chance, b) for b in combinations(range(n), batch)]
    present = [(c, b) for c, b in batches if n - 1 in b], [(c, b) for c, b in batches if n - 1 not in b]
    claimed = batch / n if claimed_rate is None else claimed_rate
    return _follow((*table[:-1], 1), present, _law((*table[:-1], 0), batches, noise), claimed, noise, epsilon)


def _follow(
    table: Sequence[int], batches: tuple[Batches, Batches], old: Vector, rate: float, noise: float, epsilon: float
) -> Lines:
    """The lines for D' = `table`, its batches with x and without, and `old`, the law of A(S(D))."""
    inside, outside = (_law(table, part, noise) for part in batches)  # each times the chance of its case
    new = _law(table, [*batches[0], *batches[1]], noise)
    delta = delta_bounds(1.0 / noise, epsilon)[1]
    factor = 1.0 - rate + rate * math.exp(epsilon)
    event = new > factor * old
    p_new, p_old = float(new[event].sum()), float(old[event].sum())
    return Lines(
        left=p_new,
        split=float(inside[event].sum() + outside[event].sum()),
        step_private=rate * (math.exp(epsilon) * p_old + delta) + (1.0 - rate) * p_old,
        right=factor * p_old + rate * delta,
        worst=float(np.maximum(new - factor * old, 0.0).sum()) / (rate * delta),
        worst_back=float(np.maximum(old - factor * new, 0.0).sum()) / (rate * delta),
        gap=float(np.abs(new - inside - outside).max()),
    )


def _poisson_batches(n: int, rate: float) -> Batches:
    return [
        (rate**size * (1.0 - rate) ** (n - size), batch)
        for size in range(n + 1)
        for batch in combinations(range(n), size)
    ]


def _law(table: Sequence[int], batches: Batches, noise: float) -> Vector:
    """Chances that a noisy count of a random batch falls into each cell."""
    counts = [0.0] * (len(table) + 1)
    for chance, batch in batches:
        counts[sum(table[i] for i in batch)] += chance
    return np.asarray(sum(chance * np.diff(ndtr((_EDGES - k) / noise)) for k, chance in enumerate(counts) if chance))
