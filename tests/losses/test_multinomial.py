from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from privet.errors import InvalidParameter
from privet.losses import LogisticLoss, MultinomialLoss


@given(z=st.floats(-700, 700), y=st.sampled_from([0, 1]))
def test_two_classes_are_the_logistic_loss(z: float, y: int) -> None:
    """With predictions (0, z) it is the logistic loss of z, to 14 digits also where the loss is tiny."""
    wide, loss, plain = np.array([[0.0, z]]), MultinomialLoss(classes=2), LogisticLoss()
    np.testing.assert_allclose(loss.value(wide, [y]), plain.value([z], [y]), rtol=1e-14)
    np.testing.assert_allclose(loss.derivative(wide, [y])[:, 1], plain.derivative([z], [y]), rtol=2e-14)
    np.testing.assert_allclose(loss.curvature(wide, [y]), 2 * plain.curvature([z], [y]), rtol=2e-14)


def test_softmax_by_the_book() -> None:
    """Value and derivative are those of the textbook formulas; each derivative sums to 0."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(0, 5, (200, 5)), rng.integers(0, 5, 200)
    loss = MultinomialLoss(classes=5)
    np.testing.assert_allclose(loss.value(z, y), -log_softmax(z, axis=1)[np.arange(200), y], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(loss.derivative(z, y), softmax(z, axis=1) - np.eye(5)[y], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(loss.derivative(z, y).sum(axis=1), 0.0, atol=1e-15)


def test_curvature_bounds_every_eigenvalue_and_is_exact_where_promised() -> None:
    """It is never below the largest eigenvalue of diag(p) − p pᵀ, and equal to it for equal probabilities."""
    rng = np.random.default_rng(1)
    z = rng.normal(0, 3, (500, 4))
    p = softmax(z, axis=1)
    hessian = p[:, :, np.newaxis] * np.eye(4) - p[:, :, np.newaxis] * p[:, np.newaxis, :]
    curvature = MultinomialLoss(classes=4).curvature(z, np.zeros(500))
    assert np.all(np.linalg.eigvalsh(hessian)[:, -1] <= curvature * (1 + 1e-12))
    assert MultinomialLoss(classes=4).curvature(np.zeros((1, 4)), [0])[0] == 0.25


def test_shift_changes_nothing() -> None:
    """Adding one number to all predictions of a record leaves the loss alone."""
    loss, z = MultinomialLoss(classes=3), np.array([[1.0, 2.0, 4.0]])
    np.testing.assert_array_equal(loss.value(z, [1]), loss.value(z + 2.0**40, [1]))


def test_lipschitz_constant_shrinks_with_the_predictions() -> None:
    """At z = 0 it is at most √2 (1 − 1/K), for unbounded predictions √2."""
    loss = MultinomialLoss(classes=4)
    assert loss.lipschitz(0.0) == pytest.approx(math.sqrt(2) * 0.75)
    assert loss.lipschitz() == math.sqrt(2)


@pytest.mark.parametrize("classes", [1, 0, -3, 2.5, True, None, "3"])
def test_number_of_classes_is_checked(classes: int) -> None:
    """Fewer than two classes, or what is no whole number, is refused."""
    with pytest.raises(InvalidParameter, match="classes"):
        MultinomialLoss(classes=classes)


@pytest.mark.parametrize("shape", [(), (3,), (3, 2), (2, 3, 1)])
def test_predictions_must_have_a_column_a_class(shape: tuple[int, ...]) -> None:
    """Predictions of another width are refused before anything is mixed up."""
    with pytest.raises(InvalidParameter, match="4 columns"):
        MultinomialLoss(classes=4).value(np.zeros(shape), 0)
