from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor as Plain
from sklearn.metrics import d2_pinball_score

from privet.errors import InvalidParameter
from privet.estimators import QuantileRegressor

KNOWN: dict[str, Any] = {"bounds": ([0, 0], [10, 1]), "target_range": (-2, 14)}


def data(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(n, 2)) * [1, 0.1]
    return X, X @ [0.3, -1.0] + rng.exponential(size=n)


@pytest.mark.medium
@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_with_a_vast_budget_it_is_scikit_learns(quantile: float) -> None:
    """At epsilon = 1e6 the pinball loss is scikit-learn's to 1e-3 of it, and the coefficients to 0.05.

    The kink is rounded over 0.24 here, and the residuals are exponential with mean 1: that, not noise, is the rest.
    """
    X, y = data()
    plain = Plain(quantile=quantile, alpha=0, solver="highs").fit(X, y)
    fitted = QuantileRegressor(epsilon=1e6, quantile=quantile, random_state=1, **KNOWN).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, plain.coef_, atol=0.05)
    assert fitted.score(X, y) > d2_pinball_score(y, plain.predict(X), alpha=quantile) - 1e-3
    sharper = QuantileRegressor(epsilon=1e6, quantile=quantile, width=0.01, random_state=1, **KNOWN).fit(X, y)
    assert np.abs(sharper.coef_ - plain.coef_).max() < 0.02


@pytest.mark.medium
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_at_epsilon_one_the_share_below_is_the_quantile(quantile: float) -> None:
    """With 8,000 rows: within 0.05 of the quantile, and D² at least 0.85 of scikit-learn's."""
    X, y = data(8000)
    y = X @ [0.3, -1.0] + np.random.default_rng(1).normal(size=8000)
    fitted = QuantileRegressor(epsilon=1, quantile=quantile, random_state=1, **KNOWN).fit(X, y)
    assert (y <= fitted.predict(X)).mean() == pytest.approx(quantile, abs=0.05)
    plain = Plain(quantile=quantile, alpha=0, solver="highs").fit(X[:2000], y[:2000])
    assert fitted.score(X, y) > 0.85 * d2_pinball_score(y, plain.predict(X), alpha=quantile)


@pytest.mark.medium
def test_an_outlier_moves_the_median_no_more_than_any_record() -> None:
    """Targets beyond the range count as its end, missing ones as nothing; the median hardly moves."""
    X, y = data()
    plain = QuantileRegressor(epsilon=1e6, random_state=1, **KNOWN).fit(X, y)
    y[:20] = [np.nan, np.inf, -np.inf, 1e300] * 5
    bad = QuantileRegressor(epsilon=1e6, random_state=1, **KNOWN).fit(X, y)
    np.testing.assert_allclose(bad.predict(X), plain.predict(X), atol=0.05)


@pytest.mark.parametrize("parameters", [{"quantile": 0.0}, {"quantile": 1.0}, {"quantile": "median"}, {"width": 0.0}])
def test_what_is_no_quantile_is_refused(parameters: dict[str, Any]) -> None:
    """Quantiles lie between 0 and 1, and the kink has a width."""
    X, y = data(50)
    with pytest.raises(InvalidParameter, match=r"level|width"):
        QuantileRegressor(**{**KNOWN, **parameters}).fit(X, y)


def test_the_budget_is_met() -> None:
    """All of it is spent, and no more."""
    X, y = data(1000)
    assert 0.299 < QuantileRegressor(epsilon=0.3, **KNOWN).fit(X, y).guarantee_.epsilon <= 0.3


@pytest.mark.parametrize("width", [0.01, 0.03, 0.3])
def test_a_target_without_residuals_is_found_whatever_the_width(width: float) -> None:
    """Where all residuals are within the width the loss bends most: steps must not go round in circles there.

    The mutant: steps for a curvature of 5, whatever the width, end 2.7e-3 away at width 0.03 (12 of 12 runs).
    """
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 3))
    y = X @ [3.0, -2.0, 0.0] + 0.5
    unit, bounds = np.array([10.0, 0.1, 1.0]), ([-5, -3.1, -1], [15, -2.9, 1])
    model = QuantileRegressor(epsilon=1e6, bounds=bounds, target_range=(-6, 6), width=width, random_state=1)
    fitted = model.set_params(max_iter=200).fit(X * unit + [5.0, -3.0, 0.0], y)
    np.testing.assert_allclose(fitted.coef_ * unit, [3, -2, 0], atol=2e-3)
