"""Cyclic Poisson batches: a record joins the steps of its group only, as often as priced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet.accounting import Gaussian
from privet.errors import InvalidParameter, NoProvenBound
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import CyclicPoisson, Sampling


@pytest.mark.medium
def test_every_record_joins_its_own_steps_as_often_as_priced() -> None:
    """20 records, 3 groups, 6,000 steps: never a step of another group; counts pass a binomial test.

    False-positive rate 1e-6 (Bonferroni); a rate that is off by a fifth is seen with power above 0.99.
    """
    scheme: Sampling = CyclicPoisson(sampling_rate=0.3, groups=3)
    random, counts = fixed_seed_invalidates_guarantee(1), np.zeros(20, dtype=int)
    for step in range(6_000):
        batch = scheme.indices(20, step, random)
        assert batch is not None
        assert (batch % 3 == step % 3).all()
        counts[batch] += 1
    assert 20 * min(float(stats.binomtest(int(k), 2_000, 0.3).pvalue) for k in counts) > 1e-6


def test_edges() -> None:
    """More groups than records leave steps empty; rate 1 reads the group; sizes and divisors are public."""
    random = fixed_seed_invalidates_guarantee(1)
    scheme = CyclicPoisson(sampling_rate=1, groups=4)
    found: list[Any] = [scheme.indices(3, step, random) for step in range(5)]
    assert [batch.tolist() for batch in found] == [[0], [1], [2], [], [0]]
    assert scheme.batch_size(100) == 25.0
    assert scheme.most(10) == 3
    empty = CyclicPoisson(sampling_rate=0.5, groups=4).indices(3, 3, random)
    assert empty is not None
    assert empty.size == 0


def test_the_price_is_of_the_steps_of_one_group() -> None:
    """⌈steps ÷ groups⌉ sampled releases; "add_remove" is refused."""
    scheme = CyclicPoisson(sampling_rate=0.2, groups=4)
    one = Gaussian(noise_multiplier=1.0)
    assert scheme.event(one, steps=10, records=100, neighbours="replace_one") == one.poisson(rate=0.2) * 3
    with pytest.raises(NoProvenBound, match="groups"):
        scheme.event(one, steps=10, records=100, neighbours="add_remove")


@pytest.mark.parametrize(("rate", "groups"), [(0.0, 2), (1.5, 2), (0.1, 0), (0.1, 2.5), ("a", 1), (0.1, True)])
def test_what_is_no_scheme_is_refused(rate: Any, groups: Any) -> None:
    """Rates outside (0, 1] and numbers of groups that are not whole."""
    with pytest.raises(InvalidParameter, match=r"sampling_rate|groups"):
        CyclicPoisson(sampling_rate=rate, groups=groups)
