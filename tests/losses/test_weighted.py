from __future__ import annotations

import numpy as np
import pytest

from privet.losses import LogisticLoss, Loss, MultinomialLoss, SquaredLoss, WeightedLoss

LOSSES: list[Loss] = [LogisticLoss(labels="zero_one"), MultinomialLoss(classes=3), SquaredLoss(factor=1.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_weight_multiplies_value_derivative_and_curvature(loss: Loss) -> None:
    """Each is that of the loss times the record's weight, and the constants are the loss's own."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=50 if loss.outputs == 1 else (50, loss.outputs))
    y, v = rng.integers(0, 2, 50).astype(float), rng.uniform(0, 1, 50)
    weighted, pairs = WeightedLoss(loss=loss), np.column_stack([y, v])
    np.testing.assert_array_equal(weighted.value(z, pairs), v * loss.value(z, y))
    wide = v if loss.outputs == 1 else v[:, None]
    np.testing.assert_array_equal(weighted.derivative(z, pairs), wide * loss.derivative(z, y))
    np.testing.assert_array_equal(weighted.curvature(z, pairs), v * loss.curvature(z, y))
    assert (weighted.lipschitz(2.0), weighted.smoothness(2.0)) == (loss.lipschitz(2.0), loss.smoothness(2.0))
    assert (weighted.convex, weighted.outputs) == (loss.convex, loss.outputs)


def test_weights_beyond_one_or_bad_are_not_admissible() -> None:
    """A pair is admissible if its label is and its weight lies in [0, 1]; nothing warns."""
    pairs = np.array([[1, 0], [1, 1], [1, 1.01], [1, -0.1], [1, np.nan], [1, np.inf], [2, 0.5], [np.nan, 0.5]])
    loss = WeightedLoss(loss=LogisticLoss(labels="zero_one"))
    assert loss.admissible(pairs).tolist() == [True, True, *[False] * 6]
    loss.value(np.zeros(8), pairs), loss.derivative(np.zeros(8), pairs), loss.curvature(np.zeros(8), pairs)
