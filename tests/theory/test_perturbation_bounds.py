from __future__ import annotations

import math

import numpy as np
import pytest

from privet.theory import exponential_mechanism_bound, logistic_lipschitz, output_perturbation_bound


def test_logistic_constants_meet_the_reference_table() -> None:
    """lipschitz_cube and logistic_lipschitz_on_ball of the reference table (mpmath, 15 digits)."""
    assert logistic_lipschitz(d=9) == pytest.approx(3.16227766016838, rel=1e-14)
    assert logistic_lipschitz(d=9, radius=1) == pytest.approx(3.03385686655846, rel=1e-14)


def test_logistic_constant_is_a_supremum() -> None:
    """At the corner of the cube and of the ball the gradient norm equals the constant; elsewhere it is below."""
    d, radius = 3, 0.7
    x = np.ones(d + 1)
    theta = -radius * x / math.sqrt(d + 1)
    norm = np.linalg.norm(x) / (1.0 + math.exp(float(x @ theta)))
    assert norm == pytest.approx(logistic_lipschitz(d=d, radius=radius), rel=1e-14)
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = np.append(rng.uniform(-1, 1, d), 1.0)
        theta = rng.standard_normal(d + 1)
        theta *= radius * rng.uniform() / np.linalg.norm(theta)
        assert np.linalg.norm(x) / (1.0 + math.exp(float(x @ theta))) <= logistic_lipschitz(d=d, radius=radius)


def test_output_perturbation_adds_noise_and_regulariser() -> None:
    """G σ √d + λR²/2, and never above G × diameter."""
    known = {"distance": 2.0, "diameter": 3.0, "lipschitz": 5.0, "d": 9}
    found = output_perturbation_bound(**known, regularisation=0.1, noise_stddev=0.01)  # type: ignore[arg-type]
    assert found.value == pytest.approx(5 * 0.01 * 3 + 0.1 * 4 / 2, rel=1e-12)
    assert output_perturbation_bound(**known, regularisation=1e3, noise_stddev=1e3).value == pytest.approx(15.0)  # type: ignore[arg-type]


def test_exponential_mechanism_is_dimension_over_exponent() -> None:
    """d/β, and never above G × diameter."""
    found = exponential_mechanism_bound(diameter=3, lipschitz=5, d=7, exponent=100)
    assert found.value == pytest.approx(0.07, rel=1e-12)
    assert exponential_mechanism_bound(diameter=3, lipschitz=5, d=7, exponent=0.1).value == pytest.approx(15.0)
