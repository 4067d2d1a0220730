"""A pipeline that learns from the rows before our fit sees them is noticed, and said (docs/footguns.md, 41)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from privet.errors import UnaccountedTransformer
from privet.estimators import IndependentFolds, LinearRegression, LogisticRegression, PrivateSearchCV
from privet.preprocessing import Number, Schema, TableEncoder

X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
Y = X @ [1.0, -1.0]
MODEL = LinearRegression(2.0, bounds=(-1, 1), target_range=(-2, 2))


class Duck:
    """Transforms as scikit-learn's do, and says nothing of itself."""

    def fit(self, X: Any, y: Any = None) -> Duck:
        return self

    def transform(self, X: Any) -> Any:
        return X / np.abs(X).max()


@pytest.mark.parametrize(
    ("pipeline", "named"),
    [
        (make_pipeline(StandardScaler(), MODEL), "StandardScaler"),
        (make_pipeline(FunctionTransformer(), PCA(2), MinMaxScaler(), MODEL), "PCA, MinMaxScaler"),
        (make_pipeline(StandardScaler(), make_pipeline(Normalizer(), MODEL)), "StandardScaler"),
        (Pipeline([("duck", Duck()), ("model", MODEL)]), "Duck"),
        (TransformedTargetRegressor(MODEL, transformer=StandardScaler()), "StandardScaler"),
    ],
)
def test_what_learns_before_us_is_warned_of_and_in_the_guarantee(pipeline: Any, named: str) -> None:
    """One outlier moved a slope from 1.70 to 2e-6 while epsilon = 1 was printed: now it is said."""
    with pytest.warns(UnaccountedTransformer, match=f"got rows from {named} in") as told:
        pipeline.fit(X, Y)
    assert "scale features themselves" in str(told[0].message)
    fitted = pipeline
    while not hasattr(fitted, "guarantee_"):
        fitted = fitted.regressor_ if isinstance(fitted, TransformedTargetRegressor) else fitted.steps[-1][1]
    assert f"what {named} learnt in the pipeline before this model is public" in fitted.guarantee_.details


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.RepeatedFit")
def test_searches_say_it_too() -> None:
    """A grid over a pipeline, and our own search inside one."""
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), MODEL), {"linearregression__alpha": [0.1]}, cv=IndependentFolds(2)
    )
    with pytest.warns(UnaccountedTransformer):
        grid.fit(X, Y)
    assert "StandardScaler learnt" in grid.best_estimator_[-1].guarantee_.details
    search = PrivateSearchCV(MODEL, {"alpha": [0.1, 0.2]}, epsilon=9, mean_trials=2)
    with pytest.warns(UnaccountedTransformer):
        found = make_pipeline(StandardScaler(), search).fit(X, Y)
    assert "StandardScaler learnt" in found[-1].guarantee_.details


class Stateless(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Says of itself that it needs no fit."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Stateless:
        return self

    def transform(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize("steps", [(), ("passthrough",), (Normalizer(), FunctionTransformer(np.tanh)), (Stateless(),)])
def test_what_learns_nothing_is_no_matter(steps: tuple[Any, ...]) -> None:
    """Transformers without a fit, and a fit that stands alone, though a pipeline was fitted before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnaccountedTransformer)
        fitted = make_pipeline(*steps, MODEL).fit(X, Y)[-1]
    assert "pipeline" not in fitted.guarantee_.details


def test_our_own_encoder_is_public() -> None:
    """A `TableEncoder` is fitted on no row, so that a pipeline with it needs no warning."""
    schema = Schema(columns={"a": Number(low=-1, high=1), "b": Number(low=-1, high=1)})
    table = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
    model = LogisticRegression(2.0, row_norm=1.0, fit_intercept=False, classes=[False, True])
    fitted = make_pipeline(TableEncoder(schema), model).fit(table, Y > 0)
    assert "pipeline" not in fitted[-1].guarantee_.details
