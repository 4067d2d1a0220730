"""Correlated noise in a plan: priced for its batches, refused where nothing is proven, and run as planned."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz

from privet import Budget, Plan
from privet.accounting import Gaussian, Pure, delta, epsilon, matrix_mechanism
from privet.clipping import Adaptive, Clip, LatticeSum
from privet.errors import InvalidParameter, NoProvenBound
from privet.noise import Banded, InverseBanded, banded_inverse_square_root, banded_square_root
from privet.plan import Histograms, Meter, Release, plan_from_json, plan_to_json
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Cyclic, CyclicPoisson, FixedSize, FullBatch, OneRecord, Poisson, Strided

ROOT = banded_square_root(4)
STEPS = Release(
    name="gradients",
    of="gradients",
    bound=Clip(clip=2.0),
    times=12,
    noise_multiplier=3.0,
    sampling=Cyclic(batch=25),
    correlation=banded_inverse_square_root(4),
)


def planned(neighbours: Any = "zero_out", **changes: Any) -> Plan:
    return Plan(releases=(replace(STEPS, **changes),), records=100, neighbours=neighbours)


def dense(strategy: Any, steps: int = 12) -> Any:
    return np.tril(toeplitz(strategy.sum_coefficients(steps)))


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("strategy", [ROOT, banded_inverse_square_root(4), Banded(coefficients=(1,))], ids=repr)
@pytest.mark.parametrize(
    ("sampling", "passes", "apart"), [(Cyclic(batch=25), 3, 4), (Strided(batch=34), 4, 3), (FullBatch(), 12, 1)]
)
def test_public_batches_are_priced_by_their_pattern(
    neighbours: Any, strategy: Any, sampling: Any, passes: int, apart: int
) -> None:
    """The price is that of the dense matrix mechanism of all steps with passes and distance of the scheme."""
    plan = planned(neighbours, sampling=sampling, correlation=strategy)
    run = matrix_mechanism(dense(strategy), noise_multiplier=3.0, participations=passes, separation=apart)
    wanted = epsilon(run, delta=1e-6, neighbours=neighbours)
    assert 0.98 * wanted <= plan.guarantee(delta=1e-6).epsilon <= wanted * (1 + 1e-6)  # the dense bound may be loose
    if isinstance(strategy, Banded) and strategy.bands == 1:
        plain = planned(neighbours, sampling=sampling, correlation=None).guarantee(delta=1e-6)
        assert plan.guarantee(delta=1e-6).epsilon == pytest.approx(plain.epsilon, rel=1e-9)


@pytest.mark.parametrize("sampling", [Poisson(sampling_rate=0.1), FixedSize(batch=9), OneRecord()], ids=repr)
def test_sampling_that_is_not_proven_to_amplify_is_refused(sampling: Any) -> None:
    """Poisson and fixed-size batches have no price with correlated noise, and no meter runs them."""
    plan = planned(sampling=sampling)
    with pytest.raises(NoProvenBound, match="correlated"):
        plan.guarantee(delta=1e-6)
    with pytest.raises(NoProvenBound, match="correlated"):
        Meter(plan)


@pytest.mark.parametrize("sampling", [Cyclic(batch=25), CyclicPoisson(sampling_rate=0.5, groups=4)], ids=repr)
def test_batches_by_place_refuse_add_remove(sampling: Any) -> None:
    """A record that joins would move others."""
    with pytest.raises(NoProvenBound, match="add_remove"):
        planned("add_remove", sampling=sampling, correlation=ROOT).guarantee(delta=1e-6)


def test_amplified_strategies_are_priced_as_their_blocks() -> None:
    """⌈12/5⌉ sampled releases of a column's norm; fewer groups than bands, or an inverse with bands, are refused."""
    plan = planned(sampling=CyclicPoisson(sampling_rate=0.5, groups=5), correlation=ROOT)
    norm = math.sqrt(sum(c * c for c in ROOT.coefficients))
    run = Gaussian(noise_multiplier=3.0 / norm).poisson(rate=0.5) * 3
    assert plan.guarantee(delta=1e-6).epsilon == pytest.approx(
        epsilon(run, delta=1e-6, neighbours="zero_out"), rel=1e-6
    )
    for strategy, groups in ((ROOT, 3), (banded_inverse_square_root(4), 5)):
        with pytest.raises(NoProvenBound, match="groups"):
            planned(sampling=CyclicPoisson(sampling_rate=0.5, groups=groups), correlation=strategy).guarantee(delta=0.1)


def test_fewer_groups_than_bands_would_cost_more_than_their_blocks() -> None:
    """At rate 1 two steps of a record that share a row move C·x further than two that do not: why it is refused."""
    flat = Banded(coefficients=(1, 1, 1))
    run = matrix_mechanism(dense(flat, 6), noise_multiplier=3.0, participations=3, separation=2)
    blocks = Gaussian(noise_multiplier=3.0 / math.sqrt(3)) * 3
    assert epsilon(run, delta=1e-6, neighbours="zero_out") > epsilon(blocks, delta=1e-6, neighbours="zero_out")


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one"])
def test_no_simulated_run_beats_its_amplified_price(neighbours: Any) -> None:
    """The likelihood ratios of 200,000 simulated runs give a delta at most the priced one, and near it.

    4 steps, 2 bands, 2 groups, so that a record may join steps 0 and 2; all four patterns are mixed. The estimate is
    off by 0.0012 (one standard error); three of them are allowed, false alarms 0.003 with a fixed seed.
    """
    c, rate, sigma, count, level = (1.0, 0.75), 0.4, 1.5, 200_000, 0.3
    strategy = dense(Banded(coefficients=c), 4)
    patterns = [(np.array([a, 0, b, 0]), rate ** (a + b) * (1 - rate) ** (2 - a - b)) for a in (0, 1) for b in (0, 1)]
    other = -1.0 if neighbours == "replace_one" else 0.0
    rng = np.random.default_rng(7)

    def density(u: Any, sign: float) -> Any:
        shifts = [(p, np.exp(-((u - sign * strategy @ x) ** 2).sum(axis=1) / (2 * sigma**2))) for x, p in patterns]
        return sum(p * value for p, value in shifts)

    drawn = rng.choice(4, size=count, p=[p for _, p in patterns])
    u = np.array([strategy @ x for x, _ in patterns])[drawn] + sigma * rng.normal(size=(count, 4))
    losses = np.log(density(u, 1.0) / density(u, other))
    estimate = float(np.maximum(0.0, 1 - np.exp(level - losses)).mean())
    run = Release(
        name="sums",
        of="sums",
        bound=Clip(clip=1.0),
        times=4,
        noise_multiplier=sigma,
        sampling=CyclicPoisson(sampling_rate=rate, groups=2),
        correlation=Banded(coefficients=c),
    ).event(records=10, neighbours=neighbours)
    priced = delta(run, epsilon=level, neighbours=neighbours)
    assert priced - 0.02 < estimate <= priced + 3 * 0.0012
    cheaper = delta(
        Gaussian(noise_multiplier=sigma).poisson(rate=rate) * 2, epsilon=level, neighbours=neighbours
    )  # a mutant that forgets the band
    assert estimate > cheaper + 3 * 0.0012


def test_plans_with_correlated_noise_calibrate_and_meet_their_budget() -> None:
    """Calibration lands within 1e-4 below the budget, alone and beside other releases, under each scheme."""
    budget = Budget(epsilon=2, delta=1e-6)
    counts = Release(name="ranges", of="octaves", bound=Histograms(columns=2))
    for sampling in (Cyclic(batch=25), FullBatch(), CyclicPoisson(sampling_rate=0.5, groups=4)):
        free = replace(STEPS, noise_multiplier=math.nan, sampling=sampling, correlation=ROOT)
        for releases, shares in (((free,), {}), ((counts, free), {"ranges": 0.1})):
            plan = Plan(releases=releases, records=100, neighbours="zero_out").calibrated(budget, shares=shares)
            assert 2 * (1 - 1e-4) <= plan.guarantee().epsilon <= 2
            assert "share" not in str(plan)  # its part of the budget is not times ÷ noise²
    assert any("correlated" in sentence for sentence in plan.guarantee().assumptions)


@pytest.mark.parametrize("strategy", [ROOT, banded_inverse_square_root(5)], ids=repr)
def test_plans_with_correlated_noise_are_read_back_unchanged(strategy: Any) -> None:
    """JSON keeps strategy and scheme; plans of independent noise are written as ever."""
    for sampling in (Cyclic(batch=25), CyclicPoisson(sampling_rate=0.5, groups=4)):
        plan = planned(correlation=strategy, sampling=sampling)
        assert plan_from_json(plan_to_json(plan)) == plan
    assert "correlation" not in plan_to_json(planned(correlation=None))


@pytest.mark.parametrize(
    "changes",
    [
        {"correlation": "square root"},
        {"correlation": (1.0, 0.5)},
        {"bound": Adaptive(clip=1.0, count_noise=20.0)},
        {"bound": Histograms()},
        {"mechanism": Pure(epsilon=1.0)},
    ],
    ids=repr,
)
def test_what_correlated_noise_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    """What is no strategy; clips that move; counts; other mechanisms."""
    with pytest.raises(InvalidParameter, match=r"correlat"):
        replace(STEPS, **changes)


# -- the meter ---------------------------------------------------------------------------------------------------------


def total(units: Any, clip: float = 2.0, step: float = 2.0**-40) -> LatticeSum:
    return LatticeSum(units=np.asarray(units, dtype=np.int64), step=step, clip=clip)


@pytest.mark.parametrize("strategy", [ROOT, banded_inverse_square_root(4)], ids=repr)
def test_the_meter_draws_the_planned_correlated_noise(strategy: Any) -> None:
    """C times the noise of a run has the planned size and is uncorrelated in time; an independent draw is not.

    24,000 numbers: the spread is known to 0.5 %, correlations to 0.7 %; five standard errors are allowed.
    """
    for correlation, white in ((strategy, True), (None, False)):
        meter = Meter(planned(correlation=correlation), random=fixed_seed_invalidates_guarantee(2))
        noise = []
        for _ in range(12):
            meter.open("gradients", count=100)
            noise.append(meter.noisy("gradients", total(np.zeros(2_000))))
        meter.finish()
        z = dense(strategy) @ np.array(noise) / (3.0 * 2.0)
        assert bool(abs(z.std() - 1) < 5 * 0.005) is white
        assert (abs(float((z[1:] * z[:-1]).mean())) < 5 * 0.007) is white


def test_a_correlated_release_cannot_be_left_out_or_changed_midway() -> None:
    """Skipping, another lattice, another size, a matrix, and going on after a failed step are refused."""

    def begun() -> Meter:
        meter = Meter(planned())
        meter.open("gradients", count=100)
        meter.noisy("gradients", total([0, 0]))
        return meter

    with pytest.raises(InvalidParameter, match="leave out"):
        begun().skip("gradients")
    for wrong in (total([0, 0], step=2.0**-41), total([0, 0, 0])):
        meter = begun()
        meter.open("gradients", count=100)
        with pytest.raises(InvalidParameter, match="one lattice"):
            meter.noisy("gradients", wrong)
        meter.open("gradients", count=100)
        with pytest.raises(InvalidParameter, match="left out"):
            meter.noisy("gradients", total([0, 0]))
    meter = begun()
    meter.open("gradients", count=100)
    with pytest.raises(InvalidParameter, match="symmetric"):
        meter.noisy_symmetric("gradients", total([[0]]))


def test_a_run_in_two_parts_is_charged_as_two() -> None:
    """After a crash the steps that ran cost less than the whole would have; those that are left are added in full."""
    first, rest = replace(STEPS, times=5), replace(STEPS, name="the rest", times=7)
    both = Plan(releases=(first, rest), records=100, neighbours="zero_out")
    parts = [Plan(releases=(part,), records=100, neighbours="zero_out") for part in (first, rest)]
    assert both.event == parts[0].event + parts[1].event
    begun, left = (part.guarantee(delta=1e-6).epsilon for part in parts)
    assert begun < planned().guarantee(delta=1e-6).epsilon
    assert both.guarantee(delta=1e-6).epsilon > max(begun, left)


CUTS = [(), (1,), (3,), (4,), (5,), (7,), (2, 5), (3, 4, 6)]


def cut(strategy: Any, at: tuple[int, ...], steps: int = 8) -> Any:
    """C of a run whose correlation began anew at these steps."""
    found = dense(strategy, steps)
    for step in at:
        found[step:, :step] = 0
    return found


@pytest.mark.parametrize("at", CUTS, ids=str)
@pytest.mark.parametrize(
    "strategy",
    [
        ROOT,
        banded_inverse_square_root(3),
        Banded(coefficients=(1, -0.5, 0.75)),
        InverseBanded(coefficients=(1, 0.5, -0.9)),
    ],
    ids=repr,
)
def test_a_correlation_that_begins_anew_costs_no_more(strategy: Any, at: tuple[int, ...]) -> None:
    """One record moves C′x by no more than the whole run is priced for: all patterns, signs and places of 8 steps."""
    for apart in (1, 2, 3, 4):
        plan = planned(times=8, sampling=Cyclic(batch=-(-100 // apart)), correlation=strategy)
        priced = 3.0 / plan.event.noise_multiplier  # type: ignore[attr-defined]
        for first in range(apart):
            columns = cut(strategy, at)[:, first::apart]
            signs = np.array(np.meshgrid(*[[-1, 0, 1]] * columns.shape[1])).reshape(columns.shape[1], -1)
            assert np.linalg.norm(columns @ signs, axis=0).max() <= priced
    assert all(np.linalg.norm(cut(strategy, at), axis=0) <= np.linalg.norm(dense(strategy, 8)[:, 0]) * (1 + 1e-12))


@pytest.mark.parametrize("strategy", [ROOT, banded_inverse_square_root(4)], ids=repr)
def test_a_resumed_meter_begins_its_correlation_anew_on_the_batches_that_are_next(strategy: Any) -> None:
    """C′ times the noise of both parts is white, of the planned size; C times it is not; steps read what was planned.

    24,000 numbers: the spread is known to 0.5 %, correlations to 0.7 %; five standard errors are allowed.
    """
    noise, read = [], []
    for first, last, seed in ((0, 5, 2), (5, 12, 3)):
        meter = Meter(planned(correlation=strategy), random=fixed_seed_invalidates_guarantee(seed))
        meter.resume(first, clips={})
        for _ in range(first, last):
            read.append(meter.open("gradients", count=100).tolist())  # type: ignore[union-attr]
            noise.append(meter.noisy("gradients", total(np.zeros(2_000))))
    meter.finish()
    assert read == [list(range(25 * (step % 4), 25 * (step % 4) + 25)) for step in range(12)]
    anew = dense(strategy)
    anew[5:, :5] = 0
    for matrix, white in ((anew, True), (dense(strategy), False)):
        z = matrix @ np.array(noise) / (3.0 * 2.0)
        at_the_cut = abs(float((z[5] * z[4]).mean())) < 5 * 0.023 and abs(z[5].std() - 1) < 5 * 0.016
        assert bool(at_the_cut and abs(z.std() - 1) < 5 * 0.005) is white
    with pytest.raises(InvalidParameter, match="new meter"):
        meter.resume(12, clips={})


def test_no_state_of_a_strategy_is_hidden() -> None:
    """Equal coefficients are equal strategies: what a plan says of its noise is all of it."""
    assert InverseBanded(coefficients=[1, -0.5]) == InverseBanded(coefficients=(1.0, -0.5))  # type: ignore[arg-type]
    assert hash(planned()) == hash(planned())
