from __future__ import annotations

import math

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.theory import (
    average_iterate_bound,
    glm_population_bound,
    lipschitz_gap,
    uniform_convergence_gap,
    uniform_convergence_sample_size,
)


def test_sample_size_meets_the_reference_table() -> None:
    """uniform_convergence_n of the reference table: 2303 records for 1000 concepts, 0.05, 0.01."""
    assert uniform_convergence_sample_size(concepts=1000, accuracy=0.05, failure_probability=0.01) == 2303


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("concepts", [1, 7, 10**9])
@pytest.mark.parametrize("accuracy", [0.3, 0.01])
def test_gap_and_sample_size_are_inverse(concepts: int, accuracy: float, two_sided: bool) -> None:
    """The returned size is enough, and one record fewer is not."""
    n = uniform_convergence_sample_size(
        concepts=concepts, accuracy=accuracy, failure_probability=0.05, two_sided=two_sided
    )

    def gap(n: int) -> float:
        return uniform_convergence_gap(n=n, concepts=concepts, failure_probability=0.05, two_sided=two_sided)

    assert gap(n) <= accuracy * (1 + 1e-12)
    assert n == 1 or gap(n - 1) > accuracy * (1 - 1e-12)


def test_finite_class_gap_covers_thresholds() -> None:
    """Twenty thresholds on uniform records: the gap fails in at most a share beta of samples.

    2000 samples; the measured share is 0.1 % where 5 % are allowed, so a right bound is called wrong with
    probability below 1e-9.
    """
    rng, n, grid = np.random.default_rng(0), 200, np.linspace(0.05, 0.95, 20)
    gap = uniform_convergence_gap(n=n, concepts=20, failure_probability=0.05)
    records = rng.uniform(size=(2000, n, 1))
    seen = (records <= grid).mean(axis=1)
    assert ((grid - seen).max(axis=1) > gap).mean() <= 0.05


@pytest.mark.medium
def test_population_bound_covers_logistic_regression() -> None:
    """The largest L_D − L_X over a ball is on average at most 2GR/√n.

    300 samples of n = 50 in 2 dimensions, the ball by a grid of 400 points; the measured mean is under a third of the
    bound, over 50 standard errors below it.
    """
    rng, n, radius = np.random.default_rng(1), 50, 2.0
    angles, lengths = np.meshgrid(np.linspace(0, 2 * math.pi, 40), np.linspace(0.2, radius, 10))
    w = np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=-1).reshape(-1, 2)

    def losses(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        x = rng.standard_normal((count, 2))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = np.where(rng.uniform(size=count) < 1 / (1 + np.exp(-2 * x[:, 0])), 1.0, -1.0)
        return np.asarray(np.logaddexp(0.0, -(x @ w.T) * y[:, None]).mean(axis=0))

    population = losses(40_000)
    worst = np.array([(population - losses(n)).max() for _ in range(300)])
    bound = glm_population_bound(empirical=0.0, n=n, radius=radius, lipschitz=1.0).value
    assert worst.mean() + 4 * worst.std() / math.sqrt(300) <= bound


def test_population_bound_keeps_what_was_assumed() -> None:
    """The assumptions of the empirical bound are carried over, its value added."""
    empirical = average_iterate_bound(steps=100, distance=1, lipschitz=1, d=2, noise_stddev=0.1)
    found = glm_population_bound(empirical=empirical, n=400, radius=1.0, lipschitz=1.0)
    assert found.value == pytest.approx(empirical.value + 0.1, rel=1e-12)
    assert set(empirical.assumptions) < set(found.assumptions)


def test_lipschitz_gap_shrinks_like_root_d_over_n() -> None:
    """Falls with n, rises with d, and is the formula at its best net."""
    known = {"radius": 1.0, "lipschitz": 1.0, "failure_probability": 0.05}
    here = lipschitz_gap(n=10_000, d=10, **known)
    assert lipschitz_gap(n=1_000_000, d=10, **known) < here / 5
    assert lipschitz_gap(n=10_000, d=40, **known) > here
    nets = [math.sqrt(2 * (math.log(40) + 10 * math.log1p(2 / g)) / 1e4) + 2 * g for g in np.geomspace(1e-6, 1, 400)]
    assert min(nets) <= here * (1 + 1e-12) <= 1.05 * min(nets)


def test_nonsense_is_refused() -> None:
    """Probabilities outside (0, 1), an accuracy that no sample has, empty classes."""
    with pytest.raises(InvalidParameter):
        uniform_convergence_sample_size(concepts=10, accuracy=0.1, failure_probability=1.0)
    with pytest.raises(InvalidParameter, match="2\\*\\*53"):
        uniform_convergence_sample_size(concepts=10, accuracy=1e-12, failure_probability=0.1)
    with pytest.raises(InvalidParameter):
        uniform_convergence_gap(n=10, concepts=0, failure_probability=0.1)
