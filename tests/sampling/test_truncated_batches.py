"""Poisson batches with a cap: drawn as they are priced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet import Budget
from privet.accounting import Gaussian, epsilon, truncated_poisson
from privet.clipping import Clip
from privet.errors import InvalidParameter, NoProvenBound
from privet.plan import Meter, gradient_plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Poisson, Sampling, TruncatedPoisson

NOISE = Gaussian(noise_multiplier=1.0)


@pytest.mark.medium
def test_sizes_are_binomial_up_to_the_cap_and_members_alike() -> None:
    """20 records, rate 0.3, cap 6, 6,000 steps: sizes by chi-square, members by binomial tests, false positives 1e-6.

    A tenth more of full batches, or a record drawn a sixth too often, is seen with power 0.99. Mutant: the first six
    of those drawn are kept, in place of six at random.
    """
    random, scheme = fixed_seed_invalidates_guarantee(1), TruncatedPoisson(sampling_rate=0.3, batch=6)
    plain = Poisson(sampling_rate=0.3)
    batches: list[Any] = [scheme.indices(20, step, random) for step in range(6000)]
    mutant: list[Any] = [plain.indices(20, step, random)[:6] for step in range(6000)]  # type: ignore[index]
    law = stats.binom(20, 0.3)
    chances = np.append(law.pmf(range(6)), law.sf(5))
    expected = 6000 * np.append(chances[0] + chances[1], chances[2:])

    def sizes(drawn: list[Any]) -> Any:
        counts = np.bincount([len(batch) for batch in drawn], minlength=7)
        assert len(counts) == 7
        return np.append(counts[0] + counts[1], counts[2:])

    def rarest(drawn: list[Any]) -> float:
        rate = float(chances @ np.arange(7)) / 20
        counts = np.bincount(np.concatenate(drawn), minlength=20)
        return 20 * min(float(stats.binomtest(int(k), 6000, rate).pvalue) for k in counts)

    assert stats.chisquare(sizes(batches), expected).pvalue > 1e-6
    assert rarest(batches) > 1e-6
    assert rarest(mutant) < 1e-6
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)


def test_its_event_is_the_accountants_and_its_delta_is_charged() -> None:
    """A generous cap costs nothing that shows; a tight one costs δ; without a chance to act it is plain Poisson."""
    asked: dict[str, Any] = {"steps": 100, "records": 10_000, "neighbours": "zero_out"}
    wide, tight = (TruncatedPoisson(sampling_rate=0.01, batch=batch) for batch in (200, 150))
    assert wide.event(NOISE, **asked) == truncated_poisson(NOISE, rate=0.01, batch=200, records=10_000) * 100
    prices = [
        epsilon(scheme.event(NOISE, **asked), delta=1e-6, neighbours="zero_out")
        for scheme in (Poisson(sampling_rate=0.01), wide, tight)
    ]
    assert prices[0] <= prices[1] < prices[0] + 1e-6
    assert prices[2] > prices[1] + 1e-3
    never = TruncatedPoisson(sampling_rate=0.01, batch=10_000)
    assert never.event(NOISE, **asked) == NOISE.poisson(rate=0.01) * 100


def test_where_the_number_of_records_is_private_a_bound_on_it_is_needed() -> None:
    """Under add_remove the cap is priced for the declared bound; a larger table is refused, its size unsaid."""
    scheme = TruncatedPoisson(sampling_rate=0.01, batch=180)
    with pytest.raises(NoProvenBound, match="most_records"):
        scheme.event(NOISE, steps=1, records=10_000, neighbours="add_remove")
    bounded = TruncatedPoisson(sampling_rate=0.01, batch=180, most_records=12_000)
    for guess in (1, 10_000, 50_000):
        event = bounded.event(NOISE, steps=1, records=guess, neighbours="add_remove")
        assert event == truncated_poisson(NOISE, rate=0.01, batch=180, records=12_000) * 1
    random = fixed_seed_invalidates_guarantee(2)
    assert len(bounded.indices(12_000, 0, random)) <= 180  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="12,000 records, got more") as refusal:
        bounded.indices(12_001, 0, random)
    assert "12,001" not in str(refusal.value)
    larger = bounded.event(NOISE, steps=1, records=15_000, neighbours="zero_out")
    assert larger == truncated_poisson(NOISE, rate=0.01, batch=180, records=15_000) * 1


def test_it_is_a_scheme_with_public_numbers() -> None:
    """The divisor is rate × records, the most is the cap; empty tables and batches are batches."""
    scheme = TruncatedPoisson(sampling_rate=0.3, batch=np.int64(6))  # type: ignore[arg-type]  # on purpose
    assert isinstance(scheme, Sampling)
    assert repr(scheme) == "TruncatedPoisson(sampling_rate=0.3, batch=6, most_records=None)"
    assert (scheme.batch_size(20), scheme.most(20), scheme.most(4)) == (6.0, 6, 4)
    random = fixed_seed_invalidates_guarantee(3)
    assert len(scheme.indices(0, 0, random)) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"sampling_rate": 1.0}, {"sampling_rate": 0}, {"batch": 0}, {"batch": 2.0}, {"most_records": 0}]
)
def test_what_is_no_such_scheme_is_refused(wrong: dict[str, Any]) -> None:
    """A rate below 1, and whole numbers of records."""
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        TruncatedPoisson(**({"sampling_rate": 0.1, "batch": 5} | wrong))


def test_a_plan_with_a_cap_meets_its_budget_and_runs() -> None:
    """Calibrated with the δ of the cap inside; the meter draws batches that fit."""
    scheme = TruncatedPoisson(sampling_rate=0.01, batch=160, most_records=10_000)
    plan = gradient_plan(
        bounding=Clip(clip=1.0), sampling=scheme, steps=50, records=10_000, neighbours="add_remove"
    ).calibrated(Budget(epsilon=1, delta=1e-6))
    uncapped = gradient_plan(
        bounding=Clip(clip=1.0), sampling=Poisson(sampling_rate=0.01), steps=50, records=10_000, neighbours="add_remove"
    ).calibrated(Budget(epsilon=1, delta=1e-6))
    assert plan.guarantee().epsilon <= 1
    assert plan["gradients"].noise_multiplier > uncapped["gradients"].noise_multiplier
    batch = Meter(plan, random=fixed_seed_invalidates_guarantee(4)).open("gradients", count=10_000)
    assert batch is not None
    assert 50 < len(batch) <= 160


def test_a_cap_that_acts_too_often_is_refused() -> None:
    """No noise meets a budget whose δ the cap has spent."""
    plan = gradient_plan(
        bounding=Clip(clip=1.0),
        sampling=TruncatedPoisson(sampling_rate=0.01, batch=110),
        steps=50,
        records=10_000,
        neighbours="zero_out",
    )
    with pytest.raises(InvalidParameter, match="found none"):
        plan.calibrated(Budget(epsilon=1, delta=1e-6))
