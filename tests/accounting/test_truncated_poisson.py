"""Poisson batches with a cap: the chance of reaching it, and a brute-force run on worst tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from privet.accounting import Approximate, Composed, Gaussian, delta, epsilon, truncated_poisson
from privet.accounting.pairs.pair import Reals
from privet.errors import InvalidParameter

STEP = Gaussian(noise_multiplier=1.0)


@pytest.mark.parametrize(("rate", "batch", "records"), [(0.1, 20, 100), (0.01, 3, 20), (0.5, 70, 100), (0.25, 40, 40)])
def test_the_chance_of_a_full_batch_is_that_of_exact_arithmetic(rate: float, batch: int, records: int) -> None:
    """delta is at least rate × P(Bin ≥ batch) in fractions, and hardly more."""
    run = truncated_poisson(STEP, rate=rate, batch=batch, records=records)
    assert isinstance(run, Composed)
    chance = run.parts[1]
    assert isinstance(chance, Approximate)
    q = Fraction(rate)
    truth = q * sum(math.comb(records, j) * q**j * (1 - q) ** (records - j) for j in range(batch, records + 1))
    assert truth <= Fraction(chance.delta) <= truth * Fraction(1 + 1e-9)


def _density(table: list[float], cap: int, rate: float, x: Reals) -> Reals:
    """One noisy sum of a capped Poisson batch, all batches and all subsets that are kept summed up."""
    total = np.zeros_like(x)
    for drawn in itertools.product((0, 1), repeat=len(table)):
        chosen = [value for value, into in zip(table, drawn, strict=True) if into]
        chance = math.prod(rate if into else 1 - rate for into in drawn)
        kept = list(itertools.combinations(chosen, min(cap, len(chosen))))
        for subset in kept:
            total += chance / len(kept) * norm.pdf(x, sum(subset), 1.0)
    return total


@pytest.mark.medium
@pytest.mark.parametrize("others", [0.0, -1.0, 1.0])
@pytest.mark.parametrize(("cap", "at"), [(1, 0.1), (3, 0.1), (1, 0.5), (3, 0.5), (3, 1.5)])
def test_no_table_costs_more_than_the_bound(others: float, cap: int, at: float) -> None:
    """Five records, a cap of 1 or 3: both directions of losing, zeroing out or replacing one stay below delta."""
    x = np.linspace(-14.0, 14.0, 2801)
    run = truncated_poisson(STEP, rate=0.4, batch=cap, records=5)
    for neighbours, other in (("add_remove", []), ("zero_out", [0.0]), ("replace_one", [-1.0])):
        p, q = (_density([*table, *[others] * 4], cap, 0.4, x) for table in ([1.0], other))
        worst = max(float(np.maximum(a - math.exp(at) * b, 0.0).sum() * (x[1] - x[0])) for a, b in ((p, q), (q, p)))
        assert worst <= delta(run, epsilon=at, neighbours=neighbours)  # type: ignore[arg-type]


def test_a_cap_that_always_acts_promises_little() -> None:
    """With the cap below the mean, a record that is kept is told with the chance of its coin; nonsense is refused."""
    run = truncated_poisson(STEP, rate=0.5, batch=10, records=100)
    assert epsilon(run, delta=0.49, neighbours="zero_out") == math.inf
    assert math.isinf(epsilon(truncated_poisson(STEP, rate=1, batch=10, records=100), delta=0.9, neighbours="zero_out"))
    with pytest.raises(InvalidParameter, match="records"):
        truncated_poisson(STEP, rate=0.5, batch=10, records=9)


def test_a_generous_cap_is_free() -> None:
    """At twice the expected batch the cap costs nothing to be seen, for each relation that the step has a pair for."""
    for neighbours in ("add_remove", "zero_out", "replace_one"):
        capped = truncated_poisson(STEP, rate=0.01, batch=200, records=10_000) * 100
        plain = STEP.poisson(rate=0.01) * 100
        prices = [epsilon(run, delta=1e-6, neighbours=neighbours) for run in (plain, capped)]
        assert prices[0] <= prices[1] * (1 + 1e-9) <= prices[0] * (1 + 1e-6)
