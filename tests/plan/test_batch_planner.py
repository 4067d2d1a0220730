"""The planner: every row meets the budget and the compute, and larger batches are never noisier."""

from __future__ import annotations

import pytest

from privet.errors import InvalidParameter
from privet.plan import plan_training


def test_every_row_meets_budget_and_compute() -> None:
    """Batch × steps is at most what can be afforded, epsilon at most the budget's, steps at least as many as asked."""
    found = plan_training(records=2000, epsilon=2, delta=1e-6, compute=40_000, least_steps=50)
    assert [row.batch_size for row in found.rows] == [16, 32, 64, 128, 256, 512]
    for row in found.rows:
        assert row.batch_size * row.steps <= 40_000 < row.batch_size * (row.steps + 1)
        assert row.steps >= 50
        assert row.plan.guarantee().epsilon <= 2
        assert row.plan["gradients"].times == row.steps
        assert row.mean_noise == pytest.approx(row.noise_multiplier / row.batch_size / row.steps**0.5)


def test_the_chosen_batch_is_the_smallest_that_is_nearly_the_best() -> None:
    """Noise of the average falls with the batch; the mark is the first within a tenth of the least."""
    found = plan_training(records=2000, epsilon=2, delta=1e-6, compute=40_000, least_steps=50)
    noises = [row.mean_noise for row in found.rows]
    assert noises == sorted(noises, reverse=True)
    place = found.rows.index(found.chosen)
    assert noises[place] <= 1.1 * noises[-1]
    assert place == 0 or noises[place - 1] > 1.1 * noises[-1]
    assert str(found).count("<") == 1


def test_what_cannot_be_afforded_is_refused() -> None:
    """No batch of 16 in a hundred steps; no numbers that are none."""
    with pytest.raises(InvalidParameter, match="Raise compute"):
        plan_training(records=2000, epsilon=2, delta=1e-6, compute=1000)
    with pytest.raises(InvalidParameter, match="compute"):
        plan_training(records=2000, epsilon=2, delta=1e-6, compute=0)
