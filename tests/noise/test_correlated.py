"""Correlated noise, streamed: it is C⁻¹z, the sums keep their law on the lattice, and nothing of it is saved."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import toeplitz

from privet.accounting import toeplitz_sensitivity
from privet.errors import InvalidParameter
from privet.noise import (
    Banded,
    CorrelatedNoise,
    CorrelatedSums,
    InverseBanded,
    NoiseFilter,
    banded_inverse_square_root,
    banded_square_root,
    optimised_bands,
)
from privet.randomness import fixed_seed_invalidates_guarantee

STRATEGIES: list[Any] = [
    banded_square_root(5),
    banded_inverse_square_root(5),
    banded_inverse_square_root(12, momentum=0.9),
    optimised_bands(8, steps=50),
    Banded(coefficients=(1, -0.25, 0.5)),
    InverseBanded(coefficients=(1, 0.25, -0.5)),
    Banded(coefficients=(1,)),
    banded_inverse_square_root(60),
]
SUMS: dict[str, Any] = {"clip": 1.0, "step": 2.0**-41, "max_records": 8}


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_streamed_noise_is_the_dense_product(strategy: Any) -> None:
    """All steps together are C⁻¹z to 1e-10, C a dense matrix; more bands than steps change nothing."""
    fresh = np.random.default_rng(1).normal(size=(40, 3))
    noise = NoiseFilter(strategy, steps=40)
    streamed = np.array([noise.next(z) for z in fresh])
    dense = np.linalg.solve(np.tril(toeplitz(strategy.sum_coefficients(40))), fresh)
    assert np.abs(streamed - dense).max() <= 1e-10 * np.abs(dense).max()


def p_values(draw: Any, strategy: Any, stddev: float, steps: int = 40, size: int = 3_000) -> tuple[float, float]:
    """Of C·noise: whether its variance is stddev², and whether steps up to 6 apart are uncorrelated (two-sided)."""
    noise = np.array([draw() for _ in range(steps)])
    white = np.tril(toeplitz(strategy.sum_coefficients(steps))) @ noise / stddev
    spread = stats.chi2(white.size).cdf(float((white**2).sum()))
    lagged = [float((white[lag:] * white[:-lag]).sum()) / math.sqrt(white[lag:].size) for lag in range(1, 7)]
    return 2 * min(spread, 1 - spread), float(stats.chi2(6).sf(sum(value**2 for value in lagged)))


@pytest.mark.parametrize("strategy", [banded_square_root(5), banded_inverse_square_root(5)], ids=repr)
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "lattice"])
def test_noise_is_correlated_as_planned(strategy: Any, exact: bool) -> None:
    """C·noise is independent, of the planned size: 120,000 numbers, false alarms 2e-6 in all.

    A deviation of 2 % in size, or a correlation of 0.03 at one lag, is found with power 0.99.
    """
    random = fixed_seed_invalidates_guarantee(5)
    if exact:
        sums = CorrelatedSums(strategy, steps=40, size=3_000, noise_stddev=2.0, **SUMS)
        zeros = np.zeros(3_000, dtype=np.int64)
        found = p_values(lambda: sums.release(zeros, random=random), strategy, 2.0)
    else:
        noise = CorrelatedNoise(strategy, noise_stddev=2.0, steps=40, random=random)
        found = p_values(lambda: noise.next(3_000), strategy, 2.0)
    assert min(found) > 1e-6


@pytest.mark.parametrize("mutant", ["noise halved", "a band dropped", "never correlated"])
def test_mutants_are_caught(mutant: str) -> None:
    """Half the noise, a missing band and independent noise fail the test above."""
    strategy: Any = banded_inverse_square_root(5)
    used = {"a band dropped": strategy.coefficients[:-1], "never correlated": (1.0,)}.get(mutant, strategy.coefficients)
    stddev = 1.0 if mutant == "noise halved" else 2.0
    random = fixed_seed_invalidates_guarantee(5)
    noise = CorrelatedNoise(InverseBanded(coefficients=used), noise_stddev=stddev, steps=40, random=random)
    assert min(p_values(lambda: noise.next(3_000), strategy, 2.0)) < 1e-6


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_exact_releases_are_sums_plus_correlated_noise(strategy: Any) -> None:
    """With the same words, the releases of x less those of 0 are x, up to the lattice of the releases."""
    rng = np.random.default_rng(2)
    x = rng.integers(-(1 << 43), 1 << 43, size=(40, 4))
    found = []
    for data in (x, np.zeros_like(x)):
        random = fixed_seed_invalidates_guarantee(3)
        sums = CorrelatedSums(strategy, steps=40, size=4, noise_stddev=3.0, **SUMS)
        found.append(np.array([sums.release(row, random=random) for row in data]))
    grow = np.abs(strategy.noise_coefficients(40)).sum()
    assert np.abs(found[0] - found[1] - x * 2.0**-41).max() < 8 * 3.0 * 2.0**-20 * grow


def furthest(strategy: Any, step: float, noise: float, max_records: int) -> tuple[float, float]:
    """How far what gets noise moves at most over patterns of 3 steps, 3 apart, of 9: over the limit; and the payment.

    The record's share has one direction, so that the limit is attained but for rounding.
    """
    rng, steps, size = np.random.default_rng(4), 9, 5
    limit = toeplitz_sensitivity(strategy.bounds(steps), steps=steps, participations=3, separation=3)
    units = int(1 / step)
    base = rng.integers(-units * max_records // 2, units * max_records // 2, size=(60, steps, size))
    share = np.full(size, math.floor(units / math.sqrt(size)))
    most = 0.0
    for table in base:
        for chosen in ((0, 3, 6), (0,), (1, 4, 8)):
            moved = table.copy()
            moved[list(chosen)] += share
            weighed = []
            for data in (table, moved):
                sums = CorrelatedSums(
                    strategy, steps=steps, size=size, clip=1.0, noise_stddev=noise, step=step, max_records=max_records
                )
                weighed.append(np.array([sums._weighed(row >> sums._shift) * sums._unit for row in data]))
            most = max(most, float(np.linalg.norm(weighed[1] - weighed[0])))
    return most / limit, sums.noise_stddev / noise


@pytest.mark.medium
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize(
    ("step", "noise", "max_records"), [(2.0**-40, 3.0, 8), (2.0**-14, 3.0, 1 << 20), (2.0**-24, 3.0, 1 << 20)]
)
def test_rounding_moves_nothing_further_than_is_paid_for(
    strategy: Any, step: float, noise: float, max_records: int
) -> None:
    """What gets noise moves by at most sensitivity × clip × (noise drawn ÷ noise planned), whatever is rounded."""
    moves, paid = furthest(strategy, step, noise, max_records)
    assert moves <= paid * (1 + 1e-15)


@pytest.mark.medium
def test_rounding_has_to_be_paid_for() -> None:
    """On a coarse lattice sums do move further than the sensitivity: the payment is not for show."""
    moves, paid = furthest(banded_inverse_square_root(12, momentum=0.9), 2.0**-14, 3.0, 1 << 20)
    assert 1 + 1e-5 < moves < paid
    moves, paid = furthest(banded_square_root(5), 2.0**-24, 3.0, 1 << 20)
    assert 1 + 1e-6 < moves < paid


def test_whole_numbers_hold_the_largest_sums() -> None:
    """Sums at the capacity of 64 bits do not wrap round: their releases are near them."""
    for strategy in (banded_square_root(50), banded_inverse_square_root(50)):
        records, step = 1 << 20, 2.0**-41
        sums = CorrelatedSums(strategy, steps=200, size=1, clip=1.0, noise_stddev=1.0, step=step, max_records=records)
        top = np.array([1 << 61])
        found = [float(sums.release(top, random=fixed_seed_invalidates_guarantee(1))[0]) for _ in range(200)]
        assert np.abs(np.array(found) - records).max() < 100.0


def test_what_rounding_costs_is_charged_or_refused() -> None:
    """The noise drawn is above the noise planned, by 1e-5 at most for a usual run; a hopeless lattice is refused."""
    asked: dict[str, Any] = {"steps": 1_000, "size": 1_000, "clip": 1.0, "noise_stddev": 30.0}
    for strategy in (banded_square_root(100), banded_inverse_square_root(100)):
        sums = CorrelatedSums(strategy, step=2.0**-41, max_records=1_000, **asked)
        assert 30.0 < sums.noise_stddev < 30.0 * (1 + 1e-5)
        with pytest.raises(InvalidParameter, match="rounding"):
            CorrelatedSums(strategy, step=2.0**-8, max_records=1 << 53, **asked)


def test_one_step_too_many_is_refused() -> None:
    """What one record moves was computed for `steps`; the next is refused, by all three."""
    random = fixed_seed_invalidates_guarantee(1)
    strategy = banded_inverse_square_root(3)
    noise, sums = NoiseFilter(strategy, steps=2), CorrelatedSums(strategy, steps=2, size=1, noise_stddev=1.0, **SUMS)
    drawn = CorrelatedNoise(strategy, noise_stddev=1.0, steps=2, random=random)
    calls: list[Any] = [
        lambda: noise.next(np.zeros(1)),
        lambda: drawn.next(1),
        lambda: sums.release(np.zeros(1, dtype=np.int64), random=random),
    ]
    for call in calls:
        call()
        call()
        with pytest.raises(InvalidParameter, match="one more"):
            call()


def test_a_step_that_was_interrupted_ends_the_run() -> None:
    """After an interrupt inside a step no further noise comes: a record's next step would come too soon."""

    class Interrupted:
        invalidates_guarantee = True

        def words(self, count: int) -> Any:
            raise KeyboardInterrupt

    sums = CorrelatedSums(banded_square_root(3), steps=9, size=1, noise_stddev=1.0, **SUMS)
    zero = np.zeros(1, dtype=np.int64)
    with pytest.raises(KeyboardInterrupt):
        sums.release(zero, random=Interrupted())
    with pytest.raises(InvalidParameter, match="interrupted"):
        sums.release(zero, random=fixed_seed_invalidates_guarantee(1))
    noise = CorrelatedNoise(banded_square_root(3), noise_stddev=1.0, steps=9, random=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        noise.next(1)
    with pytest.raises(InvalidParameter, match="interrupted"):
        noise.next(1)


def test_noise_is_never_copied_or_saved() -> None:
    """Neither pickles nor copies; nothing of it is shown."""
    noise = CorrelatedNoise(banded_square_root(3), noise_stddev=1.0, steps=9)
    sums = CorrelatedSums(banded_square_root(3), steps=9, size=1, noise_stddev=1.0, **SUMS)
    noise.next(2)
    for state in (noise, sums, noise._filter):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                attempt(state)
    assert "private" in repr(sums._private)
