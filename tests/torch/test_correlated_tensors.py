"""Correlated noise on tensors: C⁻¹z over all parameters and steps, and refusals."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz

from privet.errors import InvalidParameter
from privet.noise import banded_inverse_square_root, banded_square_root, rounded_gaussian
from privet.randomness import fixed_seed_invalidates_guarantee

torch: Any = pytest.importorskip("torch")

from privet.torch import CorrelatedTensors  # noqa: E402


class Drawn:
    """Independent noise that remembers what it drew."""

    def __init__(self) -> None:
        self.random, self.seen = fixed_seed_invalidates_guarantee(1), []  # type: ignore[var-annotated]

    def fill(self, out: Any, stddev: float) -> None:
        values = rounded_gaussian(self.random, 2.0**30, out.numel()) * (stddev * 2.0**-30)
        out.copy_(torch.from_numpy(values))
        self.seen.append(out.double().numpy().copy())


@pytest.mark.parametrize("strategy", [banded_square_root(5), banded_inverse_square_root(5)], ids=repr)
def test_tensors_get_the_dense_product(strategy: Any) -> None:
    """Over 30 steps and two parameters the noise is C⁻¹z, to the rounding of float32."""
    fresh = Drawn()
    noise = CorrelatedTensors(strategy, steps=30, fresh=fresh)
    added = []
    for _ in range(30):
        weights, bias = torch.ones(3, 2), torch.ones(2)
        noise.add_([weights, bias], 2.0)
        added.append(torch.cat([weights.view(-1), bias]).double().numpy() - 1)
    dense = np.linalg.solve(np.tril(toeplitz(strategy.sum_coefficients(30))), np.array(fresh.seen))
    assert np.abs(np.array(added) - dense).max() < 1e-5


def test_what_does_not_fit_the_plan_is_refused() -> None:
    """Other sizes, another noise, half precision, one step too many, copies."""
    noise = CorrelatedTensors(banded_square_root(3), steps=2, fresh=Drawn())
    noise.add_([torch.zeros(4)], 1.0)
    for tensors, stddev in (([torch.zeros(5)], 1.0), ([torch.zeros(4)], 2.0), ([torch.zeros(2), torch.zeros(2)], 1.0)):
        with pytest.raises(InvalidParameter, match="same parameters"):
            noise.add_(tensors, stddev)
    with pytest.raises(InvalidParameter, match="float32"):
        noise.add_([torch.zeros(4, dtype=torch.float16)], 1.0)
    noise.add_([torch.zeros(4)], 1.0)
    with pytest.raises(InvalidParameter, match="one more"):
        noise.add_([torch.zeros(4)], 1.0)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(noise)
