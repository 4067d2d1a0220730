from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.metrics import log_loss

from privet.clipping import LatticeSum
from privet.errors import InvalidParameter
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
)
from privet.estimators.weights import balanced, class_count_release, class_factors, record_weights
from privet.plan import Histograms, Meter, Plan, Reach
from privet.privacy import Neighbours

ALL: list[Any] = [LogisticRegression, LinearSVC, LinearRegression, HuberRegressor, PoissonRegressor, QuantileRegressor]
SHORT = {"row_norm": 4.0, "fit_intercept": False}


def data(model: Any, n: int = 4000) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    score = X @ [2.0, -1.0] + 0.5 * X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    if model in (LogisticRegression, LinearSVC):
        return X, rng.random(n) < 1 / (1 + np.exp(-2 * score)), {"classes": [False, True]}
    if model is PoissonRegressor:
        return X, rng.poisson(np.exp(score / 2)), {"target_range": (0, 40)}
    return X, score, {"target_range": (-4, 4)}


@pytest.mark.medium
@pytest.mark.parametrize("model", ALL)
def test_a_weight_of_two_is_the_row_twice(model: Any) -> None:
    """With a vast budget, weights 0, 1 and 2 give the model of rows left out, kept and doubled, to 2e-3.

    Rows are so short that no gradient is clipped: a weight comes before the clip, and a doubled row has two of them.
    """
    X, y, known = data(model)
    weights = np.random.default_rng(1).integers(0, 3, len(y)) * (X[:, 0] > X[:, 1] - 1)
    settings: dict[str, Any] = {"epsilon": 1e6, "max_iter": 150, "random_state": 1, **SHORT, **known}
    weighted = model(**settings).fit(X, y, sample_weight=weights)
    repeated = model(**settings).fit(X.repeat(weights, axis=0), y.repeat(weights))
    plain = model(**settings).fit(X, y)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-3)
    assert np.abs(weighted.coef_ - plain.coef_).max() > 4e-3  # so weights are not ignored


@pytest.mark.parametrize("solver", ["fixed_hessian", "gradient", "sgd", "newton", "objective", "output"])
def test_every_solver_heeds_weights(solver: str) -> None:
    """Half of the rows carry the opposite answer and no weight: each solver learns from the others alone."""
    X, y, known = data(LogisticRegression)
    wrong = np.arange(len(y)) % 2 == 0
    model = LogisticRegression(epsilon=20, bounds=(-1, 1), solver=solver, random_state=1, **known)
    fitted = model.fit(X, y ^ wrong, sample_weight=np.where(wrong, 0.0, 3.0))
    assert fitted.score(X[~wrong], y[~wrong]) > 0.75


@pytest.mark.parametrize("model", [LogisticRegression, LinearRegression])
def test_a_bad_weight_empties_its_record(model: Any) -> None:
    """Negative, infinite and missing weights neither raise nor warn, and count as a weight of 0 does."""
    X, y, known = data(model)
    weights = np.ones(len(y))
    settings: dict[str, Any] = {"row_norm": 2.0, "random_state": 3, "max_weight": 1.0, **known}
    weights[:4] = 0.0
    empty = model(**settings).fit(X, y, sample_weight=weights)
    weights[:4] = [-1.0, np.nan, np.inf, -np.inf]
    bad = model(**settings).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(bad.coef_, empty.coef_)


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("class_weight", [None, {True: 5.0}])
def test_no_weight_lets_a_record_move_what_is_released_by_more_than_the_clip(
    neighbours: Neighbours, class_weight: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole fits on neighbouring tables, the moment and the first gradient differ by their sensitivity at most.

    Only these two releases see the same public past; the later gradients have the same bound, see
    tests/problems/test_weighted.py.
    """
    sums: list[tuple[LatticeSum, float]] = []
    close = Meter._close_sum

    def spied(self: Meter, name: str, total: LatticeSum) -> Any:
        bound = self.plan[name].bound
        sums.append((total, bound.sensitivity(neighbours) if isinstance(bound, Reach) else most * bound.clip))
        return close(self, name, total)

    monkeypatch.setattr(Meter, "_close_sum", spied)
    X, y, known = data(LogisticRegression, 30)

    def released(rows: list[int], weights: list[float]) -> list[tuple[LatticeSum, float]]:
        model = LogisticRegression(
            neighbours=neighbours,
            records=30 if neighbours == "add_remove" else None,
            row_norm=1.0,
            max_weight=2.0,
            class_weight=class_weight,
            max_iter=1,
            solver="fixed_hessian",
            **known,
        )
        sums.clear()
        model.fit(X[rows], y[rows], sample_weight=weights)
        return list(sums)

    weights = np.random.default_rng(2).uniform(0, 3, 30).tolist()
    for place, heavy in [(0, 1e300), (1, 2.0), (2, 0.0), (3, np.nan), (4, np.inf)]:
        first = [*weights[:place], heavy, *weights[place + 1 :]]
        rows, other, most = list(range(30)), list(range(30)), 1.0
        if neighbours == "add_remove":
            other, second = [*other[:place], *other[place + 1 :]], [*first[:place], *first[place + 1 :]]
        elif neighbours == "zero_out":
            second = [*first[:place], np.nan, *first[place + 1 :]]
        else:
            most, other[place] = 2.0, 29
            second = [*first[:place], 1.7, *first[place + 1 :]]
        pairs = list(zip(released(rows, first), released(other, second), strict=True))
        assert len(pairs) == 2
        for (one, reach), (two, _) in pairs:
            assert np.linalg.norm(one.value - two.value) <= reach * (1 + 1e-12)


def test_public_class_weights_do_what_scikit_learns_do() -> None:
    """With a vast budget {label: weight} gives scikit-learn's weighted model, to 5e-3, where nothing is clipped."""
    X, y, _ = data(LogisticRegression)
    weights = {False: 1.0, True: 4.0}
    plain = PlainLogistic(C=np.inf, class_weight=weights, tol=1e-8, fit_intercept=False).fit(X, y)
    settings: dict[str, Any] = {"class_weight": weights, "max_iter": 300, **SHORT}
    private = LogisticRegression(epsilon=1e6, **settings).fit(X, y)
    np.testing.assert_allclose(private.coef_, plain.coef_, atol=5e-3)
    assert private.class_weight_ == {False: 0.25, True: 1.0}
    assert "`class_weight` are public" in private.guarantee_.details


@pytest.mark.medium
def test_balanced_weights_are_bought() -> None:
    """The counts are one more release under the same budget, and a rare class is found thanks to them.

    The seeds are fixed: in the median of five runs. One run alone falls below once in 25 times.
    """
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(20_000, 2))
    y = rng.random(20_000) < 0.08 / (1 + np.exp(-4 * X[:, 0]))
    settings: dict[str, Any] = {"bounds": (-1, 1), "classes": [False, True]}
    plain = LogisticRegression(**settings).fit(X, y)
    fair = LogisticRegression(class_weight="balanced", **settings).fit(X, y)
    assert fair.guarantee_.epsilon <= 1
    assert repr(fair.plan_.event).count("Gaussian") == repr(plain.plan_.event).count("Gaussian") + 1
    assert fair.class_weight_[True] == 1.0
    assert 0.02 < fair.class_weight_[False] < 0.08
    assert plain.predict(X).mean() < 0.01
    fits = [LogisticRegression(class_weight="balanced", random_state=k, **settings).fit(X, y) for k in range(5)]
    assert np.median([fit.predict(X)[X[:, 0] > 0].mean() for fit in fits]) > 0.7


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_class_counts_move_by_no_more_than_is_priced(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all tables of two records, the exact counts of neighbours are at most the release's sensitivity apart."""
    seen: list[np.ndarray] = []

    def spy(self: Meter, name: str, units: np.ndarray) -> np.ndarray:
        self._close(name, units.size)
        seen.append(units)
        return units.astype(float)

    monkeypatch.setattr(Meter, "noisy_counts", spy)
    plan = Plan(releases=(class_count_release(3, 1.0),), neighbours=neighbours)

    def counts(places: list[float]) -> np.ndarray:
        balanced(np.array(places), 3, Meter(plan))
        return seen[-1]

    labels = [0.0, 1.0, 2.0, np.nan]
    for one in labels:
        for two in [np.nan] if neighbours == "zero_out" else labels:
            other = [2.0] if neighbours == "add_remove" else [2.0, two]
            assert np.linalg.norm(counts([2.0, one]) - counts(other)) <= Histograms().sensitivity(neighbours) + 1e-12


def test_a_bound_read_off_the_weights_is_said_to_be_public() -> None:
    """The guarantee tells a bound that was given from one that was read off."""
    X, y, known = data(LinearRegression, 500)
    weights = np.full(len(y), 2.0)
    read = LinearRegression(bounds=(-1, 1), **known).fit(X, y, sample_weight=weights)
    assert "the largest weight, read off `sample_weight`, is public" in read.guarantee_.details
    given = LinearRegression(bounds=(-1, 1), max_weight=5, **known).fit(X, y, sample_weight=weights)
    assert "the bound `max_weight` is public" in given.guarantee_.details
    assert "read off" not in given.guarantee_.details


def test_weights_that_cannot_be_used_are_refused() -> None:
    """Shapes, types and public parameters; never a weight of a record, and none is quoted."""
    with pytest.raises(InvalidParameter, match="sample_weight to hold one value a record"):
        record_weights(np.ones(3), 4, most=None)
    with pytest.raises(InvalidParameter, match="zero weights only"):
        record_weights([0.0, -3.0, np.nan], 3, most=None)
    for most in (0.0, -1.0, np.inf, np.nan, "1", True):
        with pytest.raises(InvalidParameter, match="max_weight"):
            record_weights([1.0], 1, most=most)  # type: ignore[arg-type]
    assert record_weights([0.0], 1, most=1.0) is not None  # private, so no error
    for wrong in ("fair", [1.0, 2.0], 3):
        with pytest.raises(InvalidParameter, match="'balanced' or a dictionary"):
            class_factors(wrong, np.array([0, 1]))
    for pair in ({2: 1.0}, {0: -1.0}, {0: np.nan}, {0: 0.0, 1: 0.0}, {0: "1"}):
        with pytest.raises(InvalidParameter, match="class"):
            class_factors(pair, np.array([0, 1]))


def test_people_with_weights_are_refused_before_anything_is_learnt() -> None:
    """Class counts are noisy enough for a row, not for a person with many: none is left behind by a fit that fails."""
    X, y, known = data(LogisticRegression, 300)
    groups = np.arange(300) // 10
    model = LogisticRegression(bounds=(-1, 1), class_weight="balanced", **known)
    with pytest.raises(InvalidParameter, match="groups or weights"):
        model.fit(X, y, groups=groups)
    assert not hasattr(model, "class_weight_")
    X, y, known = data(LinearRegression, 300)
    line = LinearRegression(bounds=(-1, 1), **known)
    with pytest.raises(InvalidParameter, match="groups or weights"):
        line.fit(X, y, sample_weight=np.ones(300), groups=groups)
    assert not hasattr(line, "ranges_")


def test_weights_of_an_earlier_fit_do_not_stay() -> None:
    """They were paid by the earlier guarantee, which is gone."""
    X, y = np.random.default_rng(0).uniform(size=(300, 2)), np.arange(300) % 2
    model = LogisticRegression(epsilon=9, bounds=(0, 1), classes=[0, 1], class_weight="balanced").fit(X, y)
    assert set(model.class_weight_) == {0, 1}
    assert not hasattr(model.set_params(class_weight=None).fit(X, y), "class_weight_")


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_rare_classes_are_balanced_by_the_intercept() -> None:
    """One of 100 at epsilon 1: classes that count alike have a mean of 0.5, and their log-loss is below a guess's.

    Five fixed seeds. By weights, log-loss was above that of a guess in all five.
    """
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(size=(40_000, 8)), -4, 4)
    score = X @ rng.normal(size=8) * 0.6 - 6.2
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)
    assert 0.005 < y.mean() < 0.02
    weights = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    for seed in range(5):
        model = LogisticRegression(
            epsilon=1, bounds=(-4, 4), class_weight="balanced", classes=[0, 1], random_state=seed
        )
        chance = model.fit(X, y).predict_proba(X)[:, 1]
        assert np.average(chance, weights=weights) == pytest.approx(0.5, abs=0.1)
        assert log_loss(y, chance, sample_weight=weights) < 0.6
        assert model.class_weight_[1] == 1.0
        assert model.class_weight_[0] < 0.05
