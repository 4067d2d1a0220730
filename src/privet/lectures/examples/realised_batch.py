"""Why a batch must not be divided by its own size (Razaviyayn, lecture 11, from DP-GD to DP-SGD).

The lecture prints g = (1/|B|) Σ_{i in B} ∇ℓ(w, x_i). If each record joins the batch with probability q, the size |B|
is itself random and secret, and the accountants assume a *sum* of clipped gradients divided by the public number qn.
Divided by |B| instead, one more record changes the weight of all the others:

    everybody's gradient is −C, a newcomer's is +C. Without the newcomer the mean is −C, whatever |B| is;
    with the newcomer among k others it is −C + 2C/(k + 1), a move of 2C/(k + 1), where C/(qn) was accounted for.

The output is a Gaussian about a random centre, so its exact δ is an integral of mixtures. A batch of fixed size m is
different: m is public, a replaced record moves the mean by 2C/m at most, and that is what is accounted for.

>>> found = divided_by_realised_size()
>>> f"accountant {found.accountant:.2g}, true {found.true:.2g}, {found.true / found.accountant:.0f} times as much"
'accountant 1.2e-05, true 0.0065, 541 times as much'
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, ndtr

from privet.accounting import Gaussian, delta
from privet.lectures.measures import Vector

Mixture = tuple[Vector, Vector]  # centres and chances
_WIDTH = 0.01  # of the cells that outcomes are sorted into, in standard deviations of the noise


@dataclass(frozen=True, kw_only=True, slots=True)
class Leak:
    """Two deltas at one epsilon: what the accountant says of the sum, and what really is given away."""

    accountant: float
    true: float


def divided_by_realised_size(n: int = 1000, rate: float = 0.05, noise: float = 1.0, epsilon: float = 1.0) -> Leak:
    """Return δ when a Poisson batch is divided by its own size; an empty batch has mean 0.

    `true` is a lower bound on the true delta: outcomes are sorted into narrow cells, and an adversary who sees only
    the cell sees less.

    Parameters
    ----------
    n : records beside the newcomer
    rate : q, the chance of joining a batch
    noise : standard deviation of the noise ÷ (clip ÷ qn), as DP-SGD adds it to the mean
    epsilon : where δ is asked for

    Examples
    --------
    >>> found = divided_by_realised_size(rate=0.01)
    >>> f"{found.accountant:.1e} {found.true:.1e}"
    '2.7e-09 6.3e-04'
    """
    others = np.arange(n + 1.0)  # how many of the others are in the batch, and how likely
    chances = np.exp(
        gammaln(n + 1) - gammaln(others + 1) - gammaln(n - others + 1)
        + others * math.log(rate) + (n - others) * math.log1p(-rate)
    )  # fmt: skip
    likely = chances > 1e-18
    others, chances = others[likely], chances[likely]
    unit = rate * n / noise  # the clip, in standard deviations of the noise
    alone = np.where(others > 0, -unit, 0.0)  # the mean without the newcomer
    joined = unit * (1.0 - others) / (1.0 + others)  # and with
    without = (alone, chances)
    present = (np.append(alone, joined), np.append((1.0 - rate) * chances, rate * chances))
    return _leak(present, without, rate, noise, epsilon)


def divided_by_expected_size(n: int = 1000, rate: float = 0.05, noise: float = 1.0, epsilon: float = 1.0) -> Leak:
    """Return the same for the division by qn: the newcomer moves the mean by C/(qn), and the others do not move.

    >>> found = divided_by_expected_size()
    >>> abs(found.true / found.accountant - 1) < 1e-3
    True
    """
    without = (np.zeros(1), np.ones(1))
    present = (np.array([0.0, 1.0 / noise]), np.array([1.0 - rate, rate]))
    return _leak(present, without, rate, noise, epsilon)


def divided_by_fixed_size(
    n: int = 1000, batch: int = 50, noise: float = 1.0, epsilon: float = 1.0, *, divisor: float = 1.0
) -> Leak:
    """Return the same for `batch` of n records without replacement, one replaced, divided by `divisor` × `batch`.

    The others' gradients are those of the record that goes, where the lemma of amplification is an equality.

    >>> found = divided_by_fixed_size()
    >>> abs(found.true / found.accountant - 1) < 1e-3
    True
    """
    rate = batch / n
    moved = (np.array([0.0, 2.0 / (divisor * noise)]), np.array([1.0 - rate, rate]))
    kept = (np.zeros(1), np.ones(1))
    step = Gaussian(noise_multiplier=noise).without_replacement(batch=batch, records=n)
    true = max(_delta(moved, kept, epsilon), _delta(kept, moved, epsilon))
    return Leak(accountant=delta(step, epsilon=epsilon, neighbours="replace_one"), true=true)


def mixture_delta(first: Mixture, second: Mixture, epsilon: float) -> float:
    """Return δ(ε) of two mixtures of unit Gaussians, (centres, chances) each, by adding up narrow cells; from below.

    >>> from privet.accounting.theorems.gaussian_profile import profile
    >>> one, two = ((np.array([at]), np.ones(1)) for at in (0.0, 1.0))
    >>> abs(mixture_delta(one, two, 1.0) / profile(1.0, 1.0) - 1) < 1e-4
    True
    """
    return _delta(first, second, epsilon)


def _leak(present: Mixture, without: Mixture, rate: float, noise: float, epsilon: float) -> Leak:
    step = Gaussian(noise_multiplier=noise).poisson(rate=rate)
    true = max(_delta(present, without, epsilon), _delta(without, present, epsilon))
    return Leak(accountant=delta(step, epsilon=epsilon, neighbours="add_remove"), true=true)


def _delta(first: Mixture, second: Mixture, epsilon: float) -> float:
    """Σ over cells of (P − e^ε Q)₊ for two mixtures of unit Gaussians."""
    centres = np.concatenate([first[0], second[0]])
    edges = np.arange(centres.min() - 10.0, centres.max() + 10.0, _WIDTH)
    p, q = (_masses(edges, *mixture) for mixture in (first, second))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def _masses(edges: Vector, centres: Vector, chances: Vector) -> Vector:
    merged: dict[float, float] = {}
    for centre, chance in zip(centres.tolist(), chances.tolist(), strict=True):
        merged[centre] = merged.get(centre, 0.0) + chance
    total = np.zeros(edges.size - 1)
    for centre, chance in merged.items():
        first, last = np.searchsorted(edges, (centre - 10.0, centre + 10.0))
        near = edges[first:last] - centre
        # by the left tail on the left and the right tail on the right: no digits cancel
        total[first : last - 1] += chance * np.where(near[1:] < 0, np.diff(ndtr(near)), -np.diff(ndtr(-near)))
    return total
