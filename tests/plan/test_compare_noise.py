"""Comparing noise: errors are those of dense matrices, at the budget; the best way is the best of the table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz

from privet import Budget
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.noise import Banded, banded_inverse_square_root
from privet.plan import best_noise, compare_noise, gradient_plan
from privet.sampling import Cyclic, CyclicPoisson, Poisson

RUN: dict[str, Any] = {"steps": 40, "records": 1_000, "neighbours": "zero_out"}


def test_rows_are_the_dense_errors_at_the_budget() -> None:
    """Noise as the plan is calibrated, standard deviations of running sums by dense matrices, over the batch size."""
    strategy, budget = banded_inverse_square_root(5), Budget(epsilon=2, delta=1e-6)
    ways: dict[str, Any] = {"independent": (Cyclic(batch=100), None), "correlated": (Cyclic(batch=100), strategy)}
    table = compare_noise(ways, budget=budget, **RUN)
    each: list[Any] = [Banded(coefficients=(1,)), strategy]
    for row, used in zip(table.rows, each, strict=True):
        noise = gradient_plan(bounding=Clip(clip=1.0), sampling=Cyclic(batch=100), correlation=used, **RUN)
        assert row.noise_multiplier == pytest.approx(noise.calibrated(budget)["gradients"].noise_multiplier, rel=1e-6)
        rows = np.linalg.norm(np.tri(40) @ np.linalg.inv(np.tril(toeplitz(used.sum_coefficients(40)))), axis=1)
        assert row.worst == pytest.approx(row.noise_multiplier * rows.max() / 100, rel=1e-9)
        assert row.mean == pytest.approx(row.noise_multiplier * math.sqrt((rows**2).mean()) / 100, rel=1e-9)
    gain = table.rows[0].mean / table.rows[1].mean
    assert gain > 1
    assert f"{gain:.2f}×" in str(table)


@pytest.mark.medium
def test_the_best_way_is_no_worse_than_independent_noise() -> None:
    """More budget asks for more bands; one band is Poisson sampling's own noise; errors never exceed that."""
    bands = []
    for epsilon in (0.2, 8.0):
        budget = Budget(epsilon=epsilon, delta=1e-6)
        sampling, strategy = best_noise(batch=50, budget=budget, **RUN)
        assert strategy.bands <= sampling.groups
        assert sampling.batch_size(1_000) == pytest.approx(50)
        ways: dict[str, Any] = {"one": (Poisson(sampling_rate=0.05), None), "best": (sampling, strategy)}
        table = compare_noise(ways, budget=budget, **RUN)
        assert table.rows[1].mean <= table.rows[0].mean * (1 + 1e-6)
        bands.append(strategy.bands)
    assert bands[0] < bands[1]
    same: dict[str, Any] = {
        "Poisson": (Poisson(sampling_rate=0.05), None),
        "one band": (CyclicPoisson(sampling_rate=0.05, groups=1), Banded(coefficients=(1,))),
    }
    first, second = compare_noise(same, budget=Budget(epsilon=1, delta=1e-6), **RUN).rows
    assert first.noise_multiplier == pytest.approx(second.noise_multiplier, rel=1e-5)


def test_batches_of_more_than_all_records_are_refused() -> None:
    """A batch is at most the public number of records."""
    with pytest.raises(InvalidParameter, match="batch"):
        best_noise(batch=2_000, budget=Budget(epsilon=1, delta=1e-6), **RUN)
