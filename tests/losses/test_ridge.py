"""Quadratic penalties: their derivatives, and a step that no steepness overshoots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.losses import QuadraticPenalty, Ridge

ROOTS: Any = [np.array([2.0, 0.0, 0.5]), np.array([[1.0, -2.0, 0.0], [0.5, 3.0, 0.0]]), 3.0 * np.eye(3)]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_gradient_is_the_derivative_of_the_value(root: Any, shape: tuple[int, ...]) -> None:
    """By differences, which are exact for a quadratic up to rounding; of several outputs, too."""
    rng, penalty = np.random.default_rng(0), QuadraticPenalty(root=root)
    theta, towards = rng.normal(size=shape), rng.normal(size=shape)
    slope = (penalty.value(theta + towards) - penalty.value(theta - towards)) / 2
    np.testing.assert_allclose((penalty.gradient(theta) * towards).sum(), slope, rtol=1e-12)


def test_a_multiple_of_the_identity_is_a_ridge() -> None:
    """The same value, gradient and alpha, as a matrix and as its diagonal."""
    theta = np.array([1.0, -2.0, 4.0])
    for root in (3.0 * np.eye(3), np.full(3, 3.0)):
        penalty = QuadraticPenalty(root=root)
        np.testing.assert_allclose(penalty.gradient(theta), Ridge(alpha=9.0).gradient(theta))
        assert penalty.value(theta) == pytest.approx(Ridge(alpha=9.0).value(theta))
        assert penalty.alpha == pytest.approx(9.0)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_softened_step_is_the_proximal_step(root: Any, size: float) -> None:
    """From θ along the softened gradient of loss and penalty: the point nearest to θ − ηg that the penalty lets be.

    There the slope of ½‖w − (θ − ηg)‖² + η penalty(w) is 0, however steep the penalty is.
    """
    penalty, step = QuadraticPenalty(root=size * root), 0.7
    theta, slope = np.array([1.0, -2.0, 4.0]), np.array([0.3, 0.1, -0.2])
    there = theta - step * penalty.softened(step)(slope + penalty.gradient(theta))
    left = there - (theta - step * slope) + step * penalty.gradient(there)
    np.testing.assert_allclose(left, 0.0, atol=1e-15 * penalty.alpha + 1e-12)
