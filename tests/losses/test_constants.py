from __future__ import annotations

import math

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.losses import (
    AbsoluteLoss,
    LinearRecords,
    LogisticLoss,
    MultinomialLoss,
    Ridge,
    SquaredLoss,
    gradient_bound,
    hessian_bound,
    prediction_bound,
)


def test_bounded_linear_regression_of_the_lecture() -> None:
    """With ‖x‖ ≤ X, |y| ≤ Y, ‖θ‖ ≤ Θ the squared loss has gradients up to 2X(Y + XΘ), and reaches it."""
    X, Y, theta = 2.0, 3.0, 5.0
    within = prediction_bound(row_norm=X, coefficient_norm=theta)
    loss = SquaredLoss(factor=2, label_bound=Y)
    bound = gradient_bound(loss, row_norm=X, prediction_bound=within)
    assert bound == 2 * X * (Y + X * theta)
    worst = LinearRecords(loss=loss).gradients(np.array([theta, 0.0]), np.array([[X, 0.0]]), np.array([-Y]))
    assert np.linalg.norm(worst) == bound


@pytest.mark.parametrize("classes", [2, 5])
def test_no_gradient_exceeds_the_bound(classes: int) -> None:
    """Random records within the row norm have gradients (Frobenius norm, for classes) within the bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    X *= 1.5 / np.linalg.norm(X, axis=1, keepdims=True)
    loss = MultinomialLoss(classes=classes)
    gradients = LinearRecords(loss=loss).gradients(rng.normal(0, 9, (4, classes)), X, rng.integers(0, classes, 500))
    assert gradients.shape == (500, 4, classes)
    bound = gradient_bound(loss, row_norm=1.5)
    assert bound is not None
    largest = np.sqrt(np.square(gradients).sum(axis=(1, 2))).max()
    assert 0.9 * bound < largest <= bound * (1 + 1e-14)


def test_hessian_bound_is_that_of_the_matrix() -> None:
    """curvature · x xᵀ has its largest eigenvalue below row_norm² × smoothness, with equality at z = 0."""
    x = np.array([3.0, 4.0])
    hessian = LogisticLoss().curvature([0.0], [1])[0] * np.outer(x, x)
    assert hessian_bound(LogisticLoss(), row_norm=5.0) == pytest.approx(np.linalg.eigvalsh(hessian)[-1])


def test_what_is_not_proven_stays_undeclared() -> None:
    """No Lipschitz constant, no gradient bound; no smoothness, no bound on the Hessian."""
    assert gradient_bound(SquaredLoss(), row_norm=1.0, prediction_bound=1.0) is None
    assert hessian_bound(AbsoluteLoss(), row_norm=1.0) is None
    assert prediction_bound(row_norm=1.0, coefficient_norm=math.inf) == math.inf


@pytest.mark.parametrize("row_norm", [0.0, -1.0, math.nan, math.inf, "1"])
def test_row_norm_is_checked(row_norm: float) -> None:
    """A row norm that is not positive and finite bounds nothing."""
    with pytest.raises(InvalidParameter, match="row_norm"):
        gradient_bound(LogisticLoss(), row_norm=row_norm)
    with pytest.raises(InvalidParameter, match="row_norm"):
        hessian_bound(LogisticLoss(), row_norm=row_norm)
    with pytest.raises(InvalidParameter, match="row_norm"):
        prediction_bound(row_norm=row_norm, coefficient_norm=1.0)


def test_records_and_pointwise_losses_agree_with_differences() -> None:
    """The gradients of LinearRecords are those of its values, coordinate by coordinate."""
    rng = np.random.default_rng(1)
    theta, X, y = rng.normal(size=3), rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    records = LinearRecords(loss=LogisticLoss())
    for j, e in enumerate(np.eye(3)):
        difference = (records.values(theta + 1e-6 * e, X, y) - records.values(theta - 1e-6 * e, X, y)) / 2e-6
        np.testing.assert_allclose(records.gradients(theta, X, y)[:, j], difference, atol=1e-9)


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_ridge_is_half_the_squared_norm(shape: tuple[int, ...]) -> None:
    """Value ½ alpha ‖θ‖², gradient alpha · θ, for coefficients of any shape; 0 is no penalty."""
    theta = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    ridge = Ridge(alpha=0.5)
    assert ridge.value(theta) == 0.25 * np.square(theta).sum()
    np.testing.assert_array_equal(ridge.gradient(theta), 0.5 * theta)
    assert Ridge(alpha=0).value(theta) == 0.0


@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf, "1", None])
def test_alpha_of_a_ridge_is_checked(alpha: float) -> None:
    """A negative or unreadable alpha is refused."""
    with pytest.raises(InvalidParameter, match="alpha"):
        Ridge(alpha=alpha)
