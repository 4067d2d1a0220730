"""Poisson batches with a cap: what does not fit is left out at random."""

import math
from fractions import Fraction

import numpy as np

from privet._checks import directed, whole
from privet.accounting import events as ev
from privet.accounting.numerics import upward
from privet.accounting.theorems.composition import binomial


def truncated_poisson(event: ev.Event, *, rate: float, batch: int, records: int) -> ev.Event:
    """One step of `event` on a Poisson batch with a cap: if more than `batch` are drawn, so many are kept, at random.

    Promise: the step costs at most what the returned event costs, under each relation: the Poisson batch, plus a chance
    δ that nothing is promised, δ = rate × P(Bin(records, rate) ≥ batch).
    Theorem: docs/proofs/pairs.md, section 7: where fewer than `batch` *others* are drawn, the cap never acts; where
    more are, the record is kept with a chance of at most `rate`.

    Parameters
    ----------
    event : what runs on the batch, e.g. `Gaussian(noise_multiplier=1.1)`
    rate : probability that a record is drawn
    batch : the most that are kept, well above rate × records
    records : at least the number of records; public

    Examples
    --------
    >>> from privet.accounting import Gaussian, epsilon
    >>> step = Gaussian(noise_multiplier=1.0)
    >>> capped = truncated_poisson(step, rate=0.01, batch=200, records=10_000)
    >>> plain = step.poisson(rate=0.01)
    >>> [f'{epsilon(run * 100, delta=1e-6, neighbours="zero_out"):.4f}' for run in (plain, capped)]
    ['0.9542', '0.9542']
    """
    sampled = event.poisson(rate=rate)
    because, use = "a batch and a table hold whole numbers of records", "Use e.g. twice the expected batch."
    batch = whole("batch", batch, because=because, use=use)
    records = whole("records", records, least=batch, most=2**53, because=because, use=use)
    kept: float = sampled.rate  # type: ignore[attr-defined]  # as the event has rounded it
    if kept == 1:
        return sampled + ev.Gaussian(noise_multiplier=0.0)  # nothing is promised
    return sampled + ev.Approximate(epsilon=0.0, delta=upward(kept * _chance_of_reaching(batch, records, kept)))


def _chance_of_reaching(batch: int, records: int, rate: float) -> float:
    """P(Bin(records, rate) ≥ batch), rounded up; 1 unless the batch is above its mean."""
    if Fraction(rate) * records >= batch:
        return 1.0
    last = min(records, batch + 4096)
    j = np.arange(batch, last + 1, dtype=np.float64)
    off = 1e-13 + 2.0**-49 * (last - records * rate)
    terms = float(np.sum(binomial(j, records, rate))) * (1 + off)
    # beyond, terms fall at least by this ratio each
    ratio = directed(Fraction(records - last) * Fraction(rate) / ((last + 1) * (1 - Fraction(rate))), up=True)
    rest = float(binomial(j[-1:], records, rate)[0]) * (1 + off) * ratio / (1 - ratio)
    return min(1.0, max(upward(terms + rest), math.ulp(0.0)))
