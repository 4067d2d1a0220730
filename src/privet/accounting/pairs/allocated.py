"""Random allocation: a record takes part in one of T steps, drawn uniformly; the privacy loss of all T together.

With s = 1/σ and W₁, …, W_T independent and log-normal, W = exp(sZ − s²/2), the likelihood ratio of the T outputs with
the record to those without it is S = (W₁ + … + W_T)/T. All curves follow from the law of S under Q, as
H(k) = E_Q(S − k)₊ when the record leaves and E_Q(1 − kS)₊ when it joins: both convex in S. docs/proofs/allocation.md
has the proofs.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from privet.accounting.pairs.lognormal_mean import mean_above, mean_below
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

LEAST_SHIFT, MOST_SHIFT = 0.01, 10.0
"""1/σ must lie between: beyond, neither the octaves nor their points would suffice."""

MOST_BATCHES = 10**7
"""More cannot be told apart: the relative error of a mass, times so many, is 1e-5."""

_BLOCK = 32


@dataclass(frozen=True, slots=True)
class AllocatedPair:
    """The mean over t of N(e_t, σ²I_T) against N(0, σ²I_T), shift = 1/σ ("remove"), or the reverse ("add").

    Its tails are those of a law with a curve above the pair's, so they serve for upper bounds; those of `lower` are
    of a law with a curve below it.
    """

    steps: int
    shift: float
    kind: Literal["remove", "add"]
    is_lower: bool = False
    atoms: tuple[float, ...] = ()

    @property
    def lower(self) -> "AllocatedPair":
        """The pair whose tails serve for lower bounds."""
        return replace(self, is_lower=True)

    @property
    def is_empty(self) -> bool:
        """Whether no law below was found."""
        return not len(_outcomes(self).losses)

    @property
    def infinite(self) -> float:
        return _outcomes(self).infinite

    @property
    def lowest(self) -> float:
        return float(_outcomes(self).losses[0])

    @property
    def highest(self) -> float:
        return math.inf  # of the true loss; that of the law above it ends

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        found = _outcomes(self)
        place = np.searchsorted(found.losses, loss, side="right")
        return found.p_above[place], found.q_above[place]

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        found = _outcomes(self)
        place = np.searchsorted(found.losses, loss, side="right")
        return found.p_below[place], found.q_below[place]

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """At real orders only, and from above: t must be positive."""
        if np.any(t.imag):
            raise OverflowError("the law of an allocation is known from above, not exactly: no line integral")
        found = _outcomes(self)
        exponents = np.multiply.outer(t.real, found.losses) + found.log_masses
        top = exponents.max(axis=-1)
        value = np.log(np.exp(exponents - top[..., None]).sum(axis=-1)) + top
        return value.astype(complex), 1e-12 * (1 + np.abs(top))

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return np.zeros_like(frequency)


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Losses in order, log of their P-masses, tails between them, and P(L = ∞)."""

    losses: Reals
    log_masses: Reals
    p_above: Reals
    q_above: Reals
    p_below: Reals
    q_below: Reals
    infinite: float


@lru_cache(maxsize=8)
def _outcomes(pair: AllocatedPair) -> _Outcomes:
    # the shift was rounded up
    law = mean_below(pair.shift * (1 - 4 * UNIT), pair.steps) if pair.is_lower else mean_above(pair.shift, pair.steps)
    positive = law.ratios > 0
    x, q = law.ratios[positive], law.masses[positive]
    losses, p = np.log(x), q * x
    infinite = law.dropped_moment
    if pair.kind == "add":
        losses, p, q = -losses[::-1], q[::-1], p[::-1]
        infinite = law.dropped + float(law.masses[~positive].sum())
    return _Outcomes(
        losses=losses,
        log_masses=np.log(p),
        p_above=_sums(p[::-1])[::-1],
        q_above=_sums(q[::-1])[::-1],
        p_below=_sums(p),
        q_below=_sums(q),
        infinite=0.0 if pair.is_lower else infinite * 1.001,
    )


def _sums(masses: Reals) -> Reals:
    """0 and all running sums, in blocks of blocks: off by 32 units of rounding a level, of which there are four."""
    if len(masses) <= _BLOCK:
        return np.append(0.0, np.cumsum(masses))
    table = np.zeros((-(-len(masses) // _BLOCK), _BLOCK))
    table.ravel()[: len(masses)] = masses
    inner = np.cumsum(table, axis=1)
    inner += _sums(inner[:, -1])[:-1, None]
    return np.append(0.0, inner.ravel()[: len(masses)])
