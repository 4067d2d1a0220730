from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet.accounting import Gaussian, guarantee
from privet.errors import InvalidParameter, NoProvenBound
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Poisson, Sampling, Strided

ALL: list[Sampling] = [FullBatch(), Poisson(sampling_rate=0.3), FixedSize(batch=4), OneRecord(), Cyclic(batch=4)]


def drawn(scheme: Sampling, count: int, steps: int, seed: int = 1) -> list[Any]:
    random = fixed_seed_invalidates_guarantee(seed)
    return [scheme.indices(count, step, random) for step in range(steps)]


def inclusion_p_value(scheme: Sampling, rate: float, count: int, steps: int) -> float:
    """The least p value over records of how often each was drawn, times their number (Bonferroni)."""
    counts = np.zeros(count, dtype=int)
    for batch in drawn(scheme, count, steps):
        counts[batch] += 1
    return min(1.0, count * min(float(stats.binomtest(int(k), steps, rate).pvalue) for k in counts))


@pytest.mark.medium
@pytest.mark.parametrize(
    ("scheme", "rate"), [(Poisson(sampling_rate=0.3), 0.3), (FixedSize(batch=4), 0.2), (OneRecord(), 0.05)]
)
def test_every_record_is_drawn_as_often_as_priced(scheme: Sampling, rate: float) -> None:
    """Inclusion counts of 20 records over 4,000 steps pass a binomial test.

    False-positive rate 1e-6 (Bonferroni); a rate that is off by a fifth is seen with power above 0.99.
    """
    assert inclusion_p_value(scheme, rate, 20, 4000) > 1e-6


def test_poisson_batch_sizes_are_binomial_and_pairs_independent() -> None:
    """Sizes over 4,000 steps fit the binomial law (chi-square, false-positive rate 1e-6), and so does a pair."""
    batches = drawn(Poisson(sampling_rate=0.3), 10, 4000)
    sizes = np.bincount([len(b) for b in batches], minlength=11)
    expected = 4000 * stats.binom.pmf(np.arange(11), 10, 0.3)
    tail = expected < 10
    observed = np.append(sizes[~tail], sizes[tail].sum())
    assert stats.chisquare(observed, np.append(expected[~tail], expected[tail].sum())).pvalue > 1e-6
    both = sum(1 for b in batches if 2 in b and 7 in b)
    assert stats.binomtest(both, 4000, 0.09).pvalue > 1e-6


def test_batches_are_drawn_anew_each_step() -> None:
    """Two steps share a batch no more often than chance: 100 batches of 4 in 1,000 are all different."""
    for scheme in (FixedSize(batch=4), Poisson(sampling_rate=0.01)):
        batches = [tuple(b.tolist()) for b in drawn(scheme, 1000, 100)]
        assert len(set(batches)) >= 98  # FPR below 1e-6: P(a shared batch) < 1e-5 a pair


@pytest.mark.parametrize("scheme", ALL, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("count", [4, 5, 17])
def test_indices_are_distinct_and_within_the_table(scheme: Sampling, count: int) -> None:
    """Every batch names records that exist, each once, and no more than `most`."""
    for batch in drawn(scheme, count, 30):
        if batch is None:
            continue
        assert len(set(batch.tolist())) == len(batch) <= (scheme.most(count) or 0)
        assert all(0 <= i < count for i in batch)


@pytest.mark.parametrize("count", [1, 4, 9, 10, 11])
def test_a_cyclic_pass_reads_each_record_once(count: int) -> None:
    """One pass covers all; the number of releases that a record meets is the one that is priced."""
    scheme = Cyclic(batch=4)
    passes = -(-count // 4)
    batches = drawn(scheme, count, 2 * passes + 1)
    assert sorted(np.concatenate(batches[:passes]).tolist()) == list(range(count))
    assert [b.tolist() for b in batches[passes : 2 * passes]] == [b.tolist() for b in batches[:passes]]
    counts = np.bincount(np.concatenate(batches), minlength=count)
    event = scheme.event(Gaussian(noise_multiplier=1.0), steps=len(batches), records=count, neighbours="zero_out")
    assert event == Gaussian(noise_multiplier=1.0) * int(counts.max())


def test_a_cyclic_batch_is_not_priced_as_poisson() -> None:
    """Without random batches there is no amplification: the price of an epoch is that of a full release."""
    noise = Gaussian(noise_multiplier=2.0)
    cyclic = Cyclic(batch=10).event(noise, steps=10, records=100, neighbours="zero_out")
    poisson = Poisson(sampling_rate=0.1).event(noise, steps=10, records=100, neighbours="zero_out")
    prices = [guarantee(e, delta=1e-5, neighbours="zero_out").epsilon for e in (cyclic, poisson, noise)]
    assert prices[0] == prices[2] > prices[1]
    with pytest.raises(NoProvenBound, match="cyclic"):
        Cyclic(batch=10).event(noise, steps=10, records=100, neighbours="add_remove")


def test_a_fixed_size_is_not_priced_as_poisson() -> None:
    """Each scheme emits its own event; under add_remove a fixed size has no proven bound."""
    noise = Gaussian(noise_multiplier=1.0)
    event = FixedSize(batch=5).event(noise, steps=7, records=50, neighbours="replace_one")
    assert event == noise.without_replacement(batch=5, records=50) * 7
    assert OneRecord().event(noise, steps=7, records=50, neighbours="replace_one") == (
        noise.without_replacement(batch=1, records=50) * 7
    )
    assert (
        Poisson(sampling_rate=0.5).event(noise, steps=7, records=50, neighbours="zero_out")
        == noise.poisson(rate=0.5) * 7
    )
    assert FullBatch().event(noise, steps=7, records=50, neighbours="add_remove") == noise * 7
    with pytest.raises(NoProvenBound):
        guarantee(
            FixedSize(batch=5).event(noise, steps=7, records=50, neighbours="add_remove"),
            delta=1e-5,
            neighbours="add_remove",
        )


def test_a_poisson_batch_costs_what_the_batch_costs() -> None:
    """At n = 10^8 no array of length n is made: the peak is below 100 kB for a batch of about 256."""
    random = fixed_seed_invalidates_guarantee(3)
    scheme = Poisson(sampling_rate=256e-8)
    scheme.indices(10**8, 0, random)
    tracemalloc.start()
    try:
        batch = scheme.indices(10**8, 1, random)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert batch is not None
    assert 150 < len(batch) < 400
    assert peak < 100_000


def test_divisors_are_public_and_never_the_realised_size() -> None:
    """The divisor depends on the declared number of records alone."""
    assert [scheme.batch_size(20) for scheme in ALL] == [20.0, 6.0, 4.0, 1.0, 4.0]
    assert Cyclic(batch=50).batch_size(20) == 20.0


def test_empty_data_and_empty_batches_are_batches() -> None:
    """No records, or none that joined, is an empty batch, not an error."""
    random = fixed_seed_invalidates_guarantee(4)
    for step in range(5):
        for count in (0, 1):
            assert len(Poisson(sampling_rate=1e-9).indices(count, step, random)) == 0  # type: ignore[arg-type]
    assert Poisson(sampling_rate=1).indices(5, 0, random) is None
    assert len(Cyclic(batch=3).indices(0, 2, random)) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan"), float("inf"), "0.1", None])
def test_rates_that_are_no_probability_are_refused(rate: Any) -> None:
    """A rate lies in (0, 1]."""
    with pytest.raises(InvalidParameter, match="rate"):
        Poisson(sampling_rate=rate)


@pytest.mark.parametrize("batch", [0, -1, 2.0, True, "3", None])
def test_batches_that_are_no_number_of_records_are_refused(batch: Any) -> None:
    """A batch is a whole number of at least 1, and without replacement no more than there are records."""
    for make in (FixedSize, Cyclic):
        with pytest.raises(InvalidParameter, match="batch"):
            make(batch=batch)
    with pytest.raises(InvalidParameter, match="at most the public number of records"):
        FixedSize(batch=5).event(Gaussian(noise_multiplier=1.0), steps=1, records=4, neighbours="zero_out")
    assert FixedSize(batch=np.int64(3)).batch_size(5) == 3.0  # type: ignore[arg-type]


def test_schemes_hold_no_state_that_could_be_logged() -> None:
    """A scheme is a value of public fields; drawing leaves no trace of indices in it."""
    for scheme in ALL:
        before = repr(scheme)
        drawn(scheme, 9, 3)
        assert repr(scheme) == before
        assert not hasattr(scheme, "__dict__")


def test_numbers_of_numpy_make_the_same_scheme() -> None:
    """A scheme holds plain numbers, whoever made them, and so does its event; a Boolean is no number."""
    assert repr(Poisson(sampling_rate=np.float64(0.5))) == repr(Poisson(sampling_rate=0.5))
    assert repr(FixedSize(batch=np.int64(4))) == "FixedSize(batch=4)"  # type: ignore[arg-type]  # on purpose
    for wrong in (lambda: Poisson(sampling_rate=True), lambda: Cyclic(batch=True)):
        with pytest.raises(InvalidParameter, match="got True"):
            wrong()


@pytest.mark.parametrize(
    ("count", "batch"), [(0, 3), (7, 3), (1000, 130), (20_000, 4100), (20_000, 20_000), (9_999, 5_000)]
)
def test_a_strided_pass_reads_each_record_once(count: int, batch: int) -> None:
    """The batches of a pass are disjoint and hold all records, none more than is said; and each is from all over."""
    scheme, random = Strided(batch=batch), fixed_seed_invalidates_guarantee(1)
    batches = max(1, -(-count // batch))
    parts = [scheme.indices(count, step, random) for step in range(batches)]
    assert np.sort(np.concatenate(parts)).tolist() == list(range(count))  # type: ignore[arg-type]
    assert max(len(part) for part in parts) <= scheme.most(count)  # type: ignore[arg-type, operator]
    again = scheme.indices(count, batches, random)
    assert again.tolist() == parts[0].tolist()  # type: ignore[union-attr]
    if count >= 1000:
        means = [float(np.mean(part)) for part in parts]  # type: ignore[arg-type]
        assert max(means) - min(means) <= count / 10
