"""The estimators are scikit-learn's, but for a check that would make a record visible, and two that want no noise."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from privet.errors import InvalidParameter
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)

CLASSIFIERS = [LogisticRegression, LinearSVC]
REGRESSORS = [LinearRegression, Ridge, HuberRegressor, PoissonRegressor, QuantileRegressor]
ALL: list[Any] = [*CLASSIFIERS, *REGRESSORS]


NOISY = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
"""They compare two fits on 15 rows to seven digits, and noise differs; test_weights.py does so with a vast budget."""


def by_design(estimator: Any) -> dict[str, str]:
    """Checks that expect an error where an error would show a record."""
    found = {"check_dtype_object": "one cell that is no number is missing; an error would tell that there is one"}
    if type(estimator) in REGRESSORS:
        found["check_supervised_y_no_nan"] = "a target of NaN zeroes its record out; an error would tell"
    return found


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([model(max_iter=3) for model in ALL], expected_failed_checks=by_design)  # type: ignore[untyped-decorator]
def test_scikit_learns_own_checks_pass(estimator: Any, check: Callable[[Any], None]) -> None:
    """Each of scikit-learn's checks passes, but for those named above; none asks for a score, so few steps will do."""
    if getattr(check, "func", check).__name__ in NOISY:  # a function or a partial of one
        pytest.skip("weights are exact up to noise, which differs with the number of rows")
    check(estimator)


def data(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, X @ [3.0, -2.0, 0.0] + 0.5


def target_for(model: Any, y: np.ndarray) -> Any:
    """A target of the model's kind: labels, counts or numbers."""
    if model is PoissonRegressor:
        return np.random.default_rng(1).poisson(np.exp(y / 2)).astype(float)
    return y > 0.5 if model in CLASSIFIERS else y


def facts_for(model: Any) -> dict[str, Any]:
    """What is public of such a target."""
    if model in CLASSIFIERS:
        return {"classes": [0, 1]}
    return {"target_range": (0, 50) if model is PoissonRegressor else (-6, 6)}


@pytest.mark.parametrize("model", ALL)
def test_the_guarantee_meets_the_budget_and_says_what_it_assumes(model: Any) -> None:
    """`guarantee_` is at most what was asked for, under the relation asked for, and names its assumptions."""
    X, y = data()
    target = target_for(model, y)
    fitted = model(epsilon=0.7, delta=1e-7, neighbours="zero_out", bounds=(-1, 1)).fit(X, target)
    assert fitted.guarantee_.epsilon <= 0.7
    assert fitted.guarantee_.delta == 1e-7
    assert fitted.guarantee_.neighbours == "zero_out"
    assert "ranges in `bounds` are public" in fitted.guarantee_.details
    assert "one row" in fitted.guarantee_.details


@pytest.mark.medium
@pytest.mark.parametrize("model", ALL)
def test_ranges_that_are_learnt_are_paid_for(model: Any) -> None:
    """Without `bounds` the event has more releases, and the total still meets the budget."""
    X, y = data()
    target = target_for(model, y)
    given = model(epsilon=1, bounds=(-1, 1), **facts_for(model)).fit(X, target)
    learnt = model(epsilon=1).fit(X, target)
    assert learnt.guarantee_.epsilon <= 1
    assert set(given.plan_.names) < set(learnt.plan_.names)


def test_a_fixed_seed_repeats_the_run_and_invalidates_the_guarantee() -> None:
    """`random_state` is for tests: the same coefficients, and a guarantee that promises nothing."""
    X, y = data()
    one, two = (LogisticRegression(bounds=(-1, 1), random_state=3).fit(X, y > 0) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert str(one.guarantee_).startswith("NOT PRIVATE: fixed seed")
    assert one.guarantee_.epsilon == np.inf
    free = LogisticRegression(bounds=(-1, 1)).fit(X, y > 0)
    assert (free.coef_ != LogisticRegression(bounds=(-1, 1)).fit(X, y > 0).coef_).all()


@pytest.mark.medium
@pytest.mark.parametrize("model", ALL)
def test_much_budget_finds_the_plain_solution(model: Any) -> None:
    """At epsilon = 1e6 with enough iterations a linear target is found, in the data's own units."""
    X, y = data()
    moved = X * [10.0, 0.1, 1.0] + [5.0, -3.0, 0.0]
    bounds = ([-5, -3.1, -1], [15, -2.9, 1])
    if model in CLASSIFIERS:
        fitted = model(epsilon=1e6, bounds=bounds, max_iter=200).fit(moved, y > 0.5)
        assert fitted.score(moved, y > 0.5) > 0.98
        direction = fitted.coef_[0] * [10.0, 0.1, 1.0]
        np.testing.assert_allclose(direction / np.linalg.norm(direction), np.array([3, -2, 0]) / 13**0.5, atol=0.02)
        return
    if model is PoissonRegressor:
        return  # test_counts.py compares it with scikit-learn's
    fitted = model(epsilon=1e6, bounds=bounds, target_range=(-6, 6), alpha=0.0, max_iter=200).fit(moved, y)
    np.testing.assert_allclose(fitted.coef_ * [10.0, 0.1, 1.0], [3, -2, 0], atol=2e-3)
    np.testing.assert_allclose(fitted.predict(moved), y, atol=5e-3)


def test_sparse_and_dense_tables_give_the_same_model() -> None:
    """With ranges symmetric about 0, CSR rows are the dense rows, where neither are centred."""
    X, y = data()
    X[np.abs(X) < 0.5] = 0.0
    model = LogisticRegression(bounds=(-1, 1), solver="fixed_hessian", random_state=1)
    dense, thin = clone(model).fit(X, y > 0), clone(model).fit(sparse.csr_matrix(X), y > 0)
    np.testing.assert_allclose(dense.coef_, thin.coef_)
    np.testing.assert_allclose(dense.decision_function(X), thin.decision_function(sparse.csr_matrix(X)))


@pytest.mark.filterwarnings("ignore::privet.errors.RepeatedFit")
def test_they_work_in_pipelines_searches_and_pickles() -> None:
    """clone, Pipeline, cross_val_score and pickle keep parameters and models."""
    X, y = data()
    model = LogisticRegression(epsilon=2, bounds=(-1, 1))
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(make_pipeline(FunctionTransformer(), model), X, y > 0.5, cv=3).mean() > 0.9
    fitted = model.fit(X, y > 0.5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_frames_keep_their_names() -> None:
    """pandas and polars frames give `feature_names_in_`; other columns are refused at predict time."""
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"], index=np.zeros(len(X)))
    fitted = LogisticRegression(bounds=(-1, 1)).fit(frame, y > 0)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["b", "a", "c"]])


def test_several_classes_share_one_budget() -> None:
    """Three classes cost what two do, and are told apart."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(6000, 2))
    y = np.array(["left", "right", "up"])[np.argmax(X @ np.array([[-1, 1, 0], [-0.5, -0.5, 1]]), axis=1)]
    for model in CLASSIFIERS:
        fitted = model(epsilon=1, bounds=(-1, 1), classes=["left", "right", "up"]).fit(X, y)
        assert fitted.guarantee_.epsilon <= 1
        assert fitted.score(X, y) > 0.85
        assert fitted.coef_.shape == (3, 2)


@pytest.mark.parametrize("model", ALL)
def test_bad_cells_are_neutral_and_never_quoted(model: Any) -> None:
    """Odd cells neither raise nor warn; a column that is declared to be text is refused without a word of it."""
    X, y = data(500)
    target: Any = target_for(model, y).astype(float)
    X[0, 0], X[1, 1], X[2] = np.nan, np.inf, -np.inf
    if model in REGRESSORS:
        target[3], target[4] = np.nan, np.inf
    fitted = model(bounds=(-1, 1), **facts_for(model)).fit(X, target)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(np.asarray(fitted.predict(X[:2]), dtype=float)).all()
    words = X.astype(object)
    words[7, 1], words[8, 0], words[9, 2] = "Jane Doe", 10**400, {}
    assert np.isfinite(model(bounds=(-1, 1), **facts_for(model)).fit(words, target).coef_).all()
    with pytest.raises(ValueError, match="Expected X to be numbers") as caught:
        model(bounds=(-1, 1)).fit(words.astype(str), target)
    assert "Jane" not in str(caught.value)


def test_labels_outside_the_declared_classes_count_as_nothing() -> None:
    """An unlisted label empties its record instead of making a new class."""
    X, y = data()
    labels = np.where(y > 0.5, "yes", "no").astype(object)
    labels[5] = "Jane Doe"
    fitted = LogisticRegression(bounds=(-1, 1), classes=["no", "yes"], random_state=1).fit(X, labels)
    assert list(fitted.classes_) == ["no", "yes"]
    assert "Jane" not in fitted.guarantee_.details


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "positive epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.01}, "below 1/n"),
        ({"delta": 0.0}, "delta"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"bounds": (1, 0)}, "low at most high"),
        ({"bounds": ([0, 0], [1, 1])}, "bounds"),
        ({"classes": [1]}, "at least two classes"),
        ({"random_state": np.random.default_rng(0)}, "cryptographic"),
        ({"neighbours": "add_remove"}, "records"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_parameters_are_refused_kindly(parameters: dict[str, Any], message: str) -> None:
    """What promises nothing is refused before anything is learnt, with what was expected."""
    X, y = data(500)
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**{"bounds": (-1, 1), **parameters}).fit(X, y > 0)


def test_a_declared_number_of_records_is_compared_with_delta_before_any_row_is_read() -> None:
    """Under "add_remove" the public guess alone counts: not the number of rows, and before they are looked at."""

    class Unreadable:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("a row was read")

    model = LogisticRegression(epsilon=1, delta=1e-3, neighbours="add_remove", records=1000, classes=[0, 1])
    with pytest.raises(InvalidParameter, match=r"delta below 1/n = 0\.001"):
        model.fit(Unreadable(), Unreadable())
    X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 1))
    few = LogisticRegression(5, 1e-3, neighbours="add_remove", records=900, classes=[0, 1], bounds=(-1, 1), max_iter=2)
    assert few.fit(X, (X[:, 0] > 0).astype(int)).guarantee_.delta == 1e-3  # 2000 rows are nobody's business
