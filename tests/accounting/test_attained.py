"""A lower end is proven, by a table that attains it, or absent."""

from __future__ import annotations

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from scipy.stats import norm

from privet.accounting import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    Gaussian,
    KaryResponse,
    Laplace,
    PoissonTrials,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
    bounds,
    guarantee,
    random_trials,
)
from privet.accounting.accountants import ACCOUNTANTS
from privet.accounting.attained import attained
from privet.accounting.pairs.pair import Reals
from privet.errors import NoProvenBound
from privet.privacy import Neighbours

NOISE, STEPS = 1.5, 3
SUM = Gaussian(noise_multiplier=NOISE)
LAPLACE = Laplace(scale=NOISE)

# What attains the lower end (docs/proofs/pairs.md, section 5), or None: then there must be none.
PROOFS: dict[Event, str | None] = {
    SUM: "one record at the clip",
    LAPLACE: "one record at the clip",
    SUM.under("replace_one"): "the sensitivity that is described",
    RandomizedResponse(epsilon=0.7): "two answers",
    KaryResponse(epsilon=0.7, answers=5): "two of the answers",
    DiscreteLaplace(scale=NOISE, clip=2): "one record at the clip",
    DiscreteLaplace(scale=NOISE, clip=2).poisson(rate=0.2): "one record at the clip, the others zeros",
    DiscreteLaplace(scale=NOISE).without_replacement(batch=2, records=20): "the others zeros or opposed",
    (SUM + SUM).poisson(rate=0.2): "one record at the clip in both, the others zeros",
    SUM.poisson(rate=0.2): "one record at the clip, the others zeros",
    LAPLACE.poisson(rate=0.2): "one record at the clip, the others zeros",
    SUM.without_replacement(batch=2, records=20): "one record at the clip, the others zeros or opposed",
    LAPLACE.without_replacement(batch=2, records=20): "one record at the clip, the others zeros or opposed",
    random_trials(SUM, mean=4): "all trials tie, so one of them is released",
    random_trials(SUM.without_replacement(batch=2, records=20), mean=4): "as above, twice",
    Pure(epsilon=0.7): None,
    DiscreteGaussian(noise_multiplier=NOISE): None,
    Approximate(epsilon=0.7, delta=1e-9): None,
    ZeroConcentrated(rho=0.1): None,
    ExponentialMechanism(epsilon=0.7): None,
    PoissonTrials(event=SUM, mean=4.0): None,
    random_trials(Pure(epsilon=0.1), mean=4): None,
    Pure(epsilon=0.7).poisson(rate=0.2): None,
    Approximate(epsilon=0.7, delta=1e-9).poisson(rate=0.2): None,
    ExponentialMechanism(epsilon=0.7).poisson(rate=0.2): None,
    Pure(epsilon=0.7).without_replacement(batch=2, records=20): None,
    Approximate(epsilon=0.7, delta=1e-9).without_replacement(batch=2, records=20): None,
    ExponentialMechanism(epsilon=0.7).without_replacement(batch=2, records=20): None,
}
# Theorems that bound from above only; selection is asked by "auto".
ONE_SIDED = {"renyi", "zcdp", "gdp", "basic", "advanced", "optimal"}


def check(event: Event, accountant: str, ask: dict[str, float]) -> None:
    for neighbours in get_args(Neighbours):
        if event == SUM.under("replace_one") and neighbours != "replace_one":
            continue
        try:
            found = bounds(event, neighbours=neighbours, accountant=accountant, **ask)
        except NoProvenBound:
            continue
        if PROOFS[event] is None or accountant in ONE_SIDED:
            assert found.lower == 0
        elif accountant == "auto":
            assert 0 < found.lower <= found.upper


@pytest.mark.medium
@pytest.mark.parametrize("accountant", ["auto", "closed", "renyi", "zcdp", "gdp", "basic"])
@pytest.mark.parametrize("event", PROOFS, ids=repr)
def test_every_lower_end_is_proven_or_absent(event: Event, accountant: str) -> None:
    """bounds(event).lower is 0 unless the table above says by what it is attained, under each relation."""
    check(event, accountant, {"delta": 1e-3})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
@pytest.mark.parametrize("accountant", ["auto", *ACCOUNTANTS])
@pytest.mark.parametrize("event", PROOFS, ids=repr)
def test_every_lower_end_is_proven_or_absent_by_every_accountant(event: Event, accountant: str) -> None:
    """As above, for all accountants and for both questions."""
    for ask in ({"delta": 1e-3}, {"epsilon": 0.05}):
        check(event, accountant, ask)


@pytest.mark.parametrize("event", PROOFS, ids=repr)
def test_the_sentence_has_a_bracket_only_where_both_ends_are_proven(event: Event) -> None:
    """Where nothing is proven from below, the guarantee says "at most"."""
    text = guarantee(
        event, delta=1e-3, neighbours="replace_one" if "poisson" not in repr(event) else "zero_out"
    ).details
    assert ("at most" in text) == (PROOFS[event] is None)
    assert ("true epsilon in [" in text) == (PROOFS[event] is not None)


def test_only_what_is_attained_counts() -> None:
    """Parts known by a bound add to the upper end only; alone, they leave no lower end."""
    alone = bounds(SUM * STEPS, delta=1e-5, neighbours="zero_out")
    both = bounds(SUM * STEPS + Pure(epsilon=0.5), delta=1e-5, neighbours="zero_out")
    assert both.lower == alone.lower
    assert both.upper > alone.upper
    assert attained(Pure(epsilon=0.5) * 4, "zero_out") == ()


def _hockey_stick(table: list[float], other: list[float], batch: int, epsilon: float) -> float:
    """delta(epsilon) of one noisy sum of `batch` records drawn from `table` against `other`, by the midpoint rule."""
    x = np.linspace(-12.0, 12.0, 48_001)

    def density(records: list[float]) -> Reals:
        sums = [sum(chosen) for chosen in itertools.combinations(records, batch)]
        mean: Reals = np.mean([norm.pdf(x, total, NOISE) for total in sums], axis=0)
        return mean

    return float(np.maximum(density(table) - math.exp(epsilon) * density(other), 0.0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_fixed_size_batches_have_a_lower_end_that_a_table_attains(epsilon: float) -> None:
    """One step on 2 of 5: opposed records cost what the upper end says; zeros what Poisson batches cost."""
    step = SUM.without_replacement(batch=2, records=5)
    low, high = bounds(step, epsilon=epsilon, neighbours="replace_one")
    truth = _hockey_stick([1.0, -1, -1, -1, -1], [-1.0] * 5, 2, epsilon)
    assert low == pytest.approx(truth, rel=1e-6)
    assert high == pytest.approx(truth, rel=1e-6)
    emptied = bounds(step, epsilon=epsilon, neighbours="zero_out")
    assert emptied.lower == pytest.approx(_hockey_stick([1.0, 0, 0, 0, 0], [0.0] * 5, 2, epsilon), rel=1e-6)
    assert emptied.upper == high


def test_the_lower_end_of_fixed_size_batches_is_below_the_pair() -> None:
    """Over many steps the bracket is as wide as what is not known; it was closed, and held something else."""
    run = SUM.without_replacement(batch=100, records=10_000) * 300
    low, high = bounds(run, delta=1e-6, neighbours="replace_one")
    attaining = Gaussian(noise_multiplier=NOISE / 2).poisson(rate=0.01) * 300
    assert low == pytest.approx(bounds(attaining, delta=1e-6, neighbours="zero_out").lower, rel=1e-12)
    assert low < 0.99 * high
