"""Slopes on whitened rows, shrunk by what their noise is known to be."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from privet.estimators.shrinking import shrunk_slopes, slope_noise
from privet.losses import Ridge
from privet.solvers import DPSGD

SOLVER = DPSGD(steps=4, clip=1.0, step_size=0.5, release="last")
PENALTY = Ridge(alpha=0.0)


def meter(stddev: float) -> Any:
    return SimpleNamespace(noise_stddev=lambda name: stddev, plan=SimpleNamespace(batch_size=lambda name: 1.0))


@pytest.mark.medium
@pytest.mark.parametrize("size", [0.0, 0.5, 2.0, 10.0])
def test_squared_errors_are_smaller_wherever_the_slopes_are(size: float) -> None:
    """4,000 draws of eight slopes of length `size` and noise 1: never larger on average, by three standard errors.

    Where there is nothing to find, three quarters of the error are gone: 2 of 8 directions are left.
    """
    rng, noise = np.random.default_rng(1), slope_noise(SOLVER, meter(1.0), pull=0.45)
    true = np.full(8, size / np.sqrt(8))
    gained = []
    for _ in range(4_000):
        theta = np.append(true + rng.normal(size=8), 3.0)
        found = shrunk_slopes(theta, SOLVER, meter(1.0 / noise), shrink=1.0, penalty=PENALTY)
        assert found[-1] == 3.0
        gained.append(np.square(theta[:-1] - true).sum() - np.square(found[:-1] - true).sum())
    assert np.mean(gained) > -3 * np.std(gained) / math.sqrt(4_000)
    if size == 0.0:
        assert np.mean(gained) > 5.5


def test_much_is_kept_of_what_stands_out() -> None:
    """Slopes of a hundred standard deviations lose less than a thousandth."""
    theta = np.append(np.full(5, 100.0), 1.0)
    found = shrunk_slopes(
        theta, SOLVER, meter(1.0 / slope_noise(SOLVER, meter(1.0), pull=0.45)), shrink=1.0, penalty=PENALTY
    )
    assert found[:-1] == pytest.approx(theta[:-1], rel=1e-3)


def test_two_slopes_and_what_a_penalty_holds_stay() -> None:
    """James and Stein need three directions; a penalty that counts pulls noise back by itself."""
    two, five = np.array([0.1, 0.1, 1.0]), np.append(np.full(5, 0.1), 1.0)
    assert shrunk_slopes(two, SOLVER, meter(1.0), shrink=1.0, penalty=PENALTY) is two
    assert shrunk_slopes(five, SOLVER, meter(1.0), shrink=1.0, penalty=Ridge(alpha=1.0)) is five
