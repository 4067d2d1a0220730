"""What `alpha` means: scikit-learn's penalty, in the data's own units, whatever the solver or the geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import linear_model as plain

from privet.arrays import Vector
from privet.errors import InvalidParameter
from privet.estimators import LinearRegression, LogisticRegression, PoissonRegressor, QuantileRegressor, Ridge
from privet.solvers import DPSGD, OutputPerturbation

ALPHAS = [1.0, 1e2, 1e4, 1e6]


def table(seed: int, rows: int = 4_000) -> tuple[Vector, Vector]:
    """Correlated features in units from a tenth to fifty, off centre, and a linear target with errors."""
    rng, mix = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(4, 4))
    X = rng.uniform(-1, 1, size=(rows, 4)) @ mix * [1, 10, 0.1, 50] + [0, 5, 0, 100]
    return X, X @ [1, -0.2, 10, 0.03] + rng.normal(size=rows)


X, Y = table(0)
KNOWN: dict[str, Any] = {"epsilon": 1e6, "bounds": (X.min(axis=0), X.max(axis=0)), "random_state": 0}
RANGE = (Y.min() - 1, Y.max() + 1)
SPREAD = X.std(axis=0)


def apart(one: Any, other: Any) -> float:
    """The largest difference of two models' coefficients, for features of standard deviation 1."""
    return float(np.abs((one.coef_ - other.coef_) * SPREAD).max())


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("solver", "within"), [("auto", 1e-3), ("fixed_hessian", 3e-3), ("gradient", 0.05)])
def test_ridge_is_scikit_learns_as_epsilon_grows(alpha: float, solver: str, within: float) -> None:
    """Coefficients and intercept, for a penalty that does nothing and one that leaves next to nothing, by each solver.

    Differences are of coefficients for features of standard deviation 1, of which the longest is 2.
    """
    found = Ridge(alpha=alpha, target_range=RANGE, solver=solver, **KNOWN).fit(X, Y)
    wanted = plain.Ridge(alpha=alpha).fit(X, Y)
    assert apart(found, wanted) < within
    assert float(np.abs(found.predict(X) - np.clip(wanted.predict(X), *RANGE)).max()) < 4 * within


@pytest.mark.parametrize("records", [2_000, 3_000, 4_000, 8_000])
def test_a_wrong_guess_of_the_records_leaves_the_penalty_as_it_is(records: int) -> None:
    """It divides losses and penalty alike, so that the minimiser does not depend on it."""
    found = Ridge(alpha=1e3, target_range=RANGE, neighbours="add_remove", records=records, **KNOWN).fit(X, Y)
    assert apart(found, plain.Ridge(alpha=1e3).fit(X, Y)) < 5e-3


def test_ridge_is_scikit_learns_without_an_intercept() -> None:
    """Where the target's range is centred at 0, as its middle is what features of 0 predict."""
    found = Ridge(alpha=1e3, target_range=(-20, 20), fit_intercept=False, bounds_exact=True, **KNOWN).fit(X, Y)
    assert apart(found, plain.Ridge(alpha=1e3, fit_intercept=False).fit(X, Y)) < 1e-3


def test_weights_leave_the_penalty_as_it_is() -> None:
    """Σ v ℓ + penalty: what weights are divided by, the penalty is divided by."""
    weights = np.random.default_rng(1).uniform(0, 3, size=len(Y))
    found = Ridge(alpha=1e4, target_range=RANGE, max_weight=3, **KNOWN).fit(X, Y, sample_weight=weights)
    assert apart(found, plain.Ridge(alpha=1e4).fit(X, Y, sample_weight=weights)) < 1e-3


@pytest.mark.medium
@pytest.mark.parametrize("alpha", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 4.0}, "balanced"])
def test_logistic_alpha_is_the_inverse_of_scikit_learns_c(alpha: float, class_weight: Any) -> None:
    """Of two classes, whitened and recalibrated, with weights of classes or without: to 2 % of the longest slope."""
    y = (np.quantile(Y, 0.8) < Y).astype(int)
    found = LogisticRegression(alpha=alpha, class_weight=class_weight, max_iter=300, **KNOWN).fit(X, y)
    assert {"second moment 1", "calibration"} <= set(found.plan_.names)
    wanted = plain.LogisticRegression(C=1 / alpha, class_weight=class_weight, max_iter=10_000, tol=1e-8).fit(X, y)
    assert apart(found, wanted) < 0.02 * float(np.abs(wanted.coef_ * SPREAD).max())


@pytest.mark.medium
def test_several_classes_are_penalised_as_scikit_learn_does() -> None:
    """All slopes of all classes, by a penalty that matters."""
    y = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    found = LogisticRegression(alpha=1e4, **KNOWN).fit(X, y)
    assert apart(found, plain.LogisticRegression(C=1e-4, max_iter=10_000, tol=1e-8).fit(X, y)) < 0.02


@pytest.mark.parametrize("alpha", [1.0, 1e2, 1e4])
def test_poisson_alpha_is_scikit_learns_times_the_records(alpha: float) -> None:
    """Scikit-learn's is beside the average there, ours beside the sum as everywhere; counts have their own units."""
    counts = np.random.default_rng(1).poisson(np.exp(0.3 * (X - X.mean(axis=0)) / SPREAD @ [1, -1, 0.5, 0] + 1))
    found = PoissonRegressor(alpha=alpha, target_range=(0, 60), **KNOWN).fit(X, counts)
    assert apart(found, plain.PoissonRegressor(alpha=alpha / len(X), max_iter=10_000, tol=1e-9).fit(X, counts)) < 5e-3


def test_units_of_the_target_are_in_the_quantiles_penalty() -> None:
    """A pinball loss grows with the target's unit and ‖coef‖² with its square: alpha/10 for targets times 10."""
    one = QuantileRegressor(alpha=1e3, target_range=RANGE, **KNOWN).fit(X, Y)
    ten = QuantileRegressor(alpha=1e2, target_range=np.multiply(10, RANGE), **KNOWN).fit(X, 10 * Y)
    np.testing.assert_allclose(ten.coef_, 10 * one.coef_, rtol=1e-6)
    assert apart(one, QuantileRegressor(target_range=RANGE, **KNOWN).fit(X, Y)) > 0.1


@pytest.mark.medium
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_the_default_ridge_costs_nothing(epsilon: float) -> None:
    """Nothing declared: on fresh rows R² is that of least squares with the same noise, to 0.01, whitened like it.

    The penalty of 0.01 on the scaled problem that was the default before fell short by 0.16 to 0.23 on a like table.
    """
    train, fresh = table(1), table(2)
    ridge, least = (model(epsilon, 1e-6, random_state=3).fit(*train) for model in (Ridge, LinearRegression))
    assert ridge.plan_ == least.plan_
    assert abs(ridge.score(*fresh) - least.score(*fresh)) < 0.01
    assert ridge.score(*fresh) > 0.5


@pytest.mark.parametrize("solver", ["newton", "objective", "output", OutputPerturbation(clip=0.1, radius=1.0)])
def test_solvers_whose_noise_rests_on_the_penalty_refuse_it(solver: Any) -> None:
    """Before anything is read: a penalty in the data's units is not as strong in every direction."""
    with pytest.raises(InvalidParameter, match="alpha=0"):
        Ridge(epsilon=1, solver=solver).plan(records=4_000, columns=3)


def test_a_penalty_without_bounds_leaves_nothing_but_the_constant() -> None:
    """At alpha = 1e300, and of a column in units of 1e-200: finite, and its coefficient 0 in all but name."""
    tiny = X * np.array([1, 1e-200, 1, 1])
    known: dict[str, Any] = {
        "epsilon": 1e3,
        "bounds": (tiny.min(axis=0), tiny.max(axis=0)),
        "target_range": RANGE,
        "random_state": 0,
    }
    for solver in ("auto", "fixed_hessian", "gradient", DPSGD(steps=20, clip=0.5)):
        model = Ridge(alpha=1e300, bounds_exact=True, solver=solver, **known).fit(tiny, Y)
        assert np.isfinite(model.coef_).all()
        assert float(np.abs(model.predict(tiny) - model.predict(tiny).mean()).max()) < 1e-3
