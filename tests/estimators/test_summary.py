from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from privet import Budget
from privet.accounting import Gaussian, compare
from privet.cli import main
from privet.errors import InvalidParameter
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PrivateSearchCV,
    QuantileRegressor,
    Ridge,
    TableModel,
    fit_table,
    load_model,
    plan_table,
)
from privet.ledger import Account
from privet.plan import Plan, Presences, Release
from privet.preprocessing import Category, Number, Schema, Target, write_schema
from privet.report import meaning

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, size=(4000, 2))
WILD = "<script>alert(1)</script>"
FRAME = pandas.DataFrame({"age": X[:, 0], WILD: X[:, 1]})
LABELS = np.where(X[:, 0] > 5, "yes", "no")
SCHEMA = Schema(
    columns={"age": Number(low=0, high=10), WILD: Number(), "pay": Number(low=0, high=9, log=True), "job": Category()},
    target=Target(column="ill", kind="label", values=("no", "yes")),
)
AGES = Schema(columns={"age": Number(low=0, high=10)}, target=SCHEMA.target)


def table() -> dict[str, list[Any]]:
    jobs = np.where(X[:, 1] > 5, "<b>smith</b>", "baker").tolist()
    dose = (X[:, 0] / 2 + 3 + RNG.normal(size=4000) / 4).tolist()
    return {
        "dose": dose,
        "age": X[:, 0].tolist(),
        WILD: X[:, 1].tolist(),
        "pay": [3] * 4000,
        "job": jobs,
        "ill": LABELS.tolist(),
    }


def test_a_summary_has_coefficients_by_name_what_was_learnt_and_the_promise() -> None:
    """In the data's own units: the numbers are those of `coef_`, the ranges those that were used."""
    model = LogisticRegression(5.0, bounds=(0, 10), classes=["no", "yes"]).fit(FRAME, LABELS)
    told = model.summary()
    assert [row[0] for row in told.rows] == ["age", WILD, "(intercept)"]
    assert [float(row[1]) for row in told.rows] == pytest.approx([*model.coef_[0], *model.intercept_], rel=1e-4)
    assert told.rows[0][2] == f"{model.ranges_[0][0]:.5g} to {model.ranges_[1][0]:.5g}"
    assert "log odds of yes against no" in str(told)
    assert str(told) == repr(told)
    assert str(told).endswith(f"Guarantee: {model.guarantee_}")
    unnamed = Ridge(5.0, bounds=(0, 10)).fit(X, X[:, 0]).summary()
    assert [row[0] for row in unnamed.rows] == ["x0", "x1", "(intercept)"]
    assert "learnt within the budget" in str(unnamed)


def test_a_summary_has_standard_errors_where_they_were_bought() -> None:
    """With `inference`, and the reason where it was refused."""
    sure = LinearRegression(8.0, bounds=(0, 10), target_range=(0, 10), inference=0.5).fit(X, X[:, 0])
    told = sure.summary()
    assert told.head[2:4] == ("std. error", "0.95 interval")
    assert float(told.rows[0][2]) == pytest.approx(sure.standard_errors_[0], rel=0.01)
    sure.refusal_ = "Refused: as a test has it."
    assert "Refused: as a test has it." in str(sure.summary())
    assert "std. error" not in sure.summary().head


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (LinearSVC(5.0, classes=[0, 1, 2]), np.digitize(X[:, 0], [3, 6]), "each class's score"),
        (PoissonRegressor(5.0, target_range=(0, 20)), np.round(X[:, 0]), "logarithm of the rate"),
        (QuantileRegressor(5.0, quantile=0.9, target_range=(0, 10)), X[:, 0], "the 0.9 quantile"),
        (HuberRegressor(5.0, fit_intercept=False), X[:, 0], "units of the target"),
        (LogisticRegression(5.0, class_weight="balanced", classes=[0, 1]), X[:, 0] > 8, "Classes weigh 0: "),
        (HuberRegressor(0.01, target_range=(0, 10)), X[:9, 0], "the model is a constant"),
    ],
)
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_every_estimator_has_a_summary(model: Any, y: Any, said: str) -> None:
    """It says what a coefficient is of, in text and as HTML."""
    told = model.fit(X[: len(y)], y.astype(float if y.dtype == float else int)).summary()
    assert said in str(told)
    assert len(told.rows) == 2 + model.fit_intercept
    assert told.title in told._repr_html_()


def test_a_search_sums_up_its_best_model() -> None:
    """Under the guarantee of the search."""
    search = PrivateSearchCV(LogisticRegression(bounds=(0, 10), classes=["no", "yes"]), {"alpha": [0.0]}, epsilon=5)
    search.fit(X, LABELS)
    assert search.summary().guarantee == search.guarantee_
    assert "log odds" in search._repr_html_()


def test_a_fitted_model_adds_to_what_scikit_learn_shows() -> None:
    """The diagram stays, the summary is below, escaped; with display="text" there is no HTML; pipelines work."""
    model = LogisticRegression(5.0, bounds=(0, 10), classes=["no", "yes"])
    plain = model._repr_html_()
    assert "log odds" not in plain
    model.fit(FRAME, LABELS)
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-" in shown
        assert shown.count("log odds") == 1
        assert "&lt;script&gt;alert(1)" in shown
        assert WILD not in shown
    assert "sk-" in make_pipeline(model)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_everything_that_is_shown_in_a_notebook_is_text() -> None:
    """Plan, Comparison, Meaning, Schema, Account, models of tables: small tables without somebody else's tags."""
    plan = Plan(
        releases=(Release(name=WILD, of="rows", bound=Presences(), noise_multiplier=9.0),),
        neighbours="zero_out",
        records=9,
    )
    account = Account(Budget(epsilon=3, delta=1e-6))
    account.charge(Gaussian(noise_multiplier=9.0), neighbours="replace_one", label=WILD)
    model = fit_table(table(), SCHEMA, epsilon=9, delta=1e-6)
    compared = compare(Gaussian(noise_multiplier=9.0), delta=1e-6, neighbours="zero_out")
    told = meaning(model.guarantee)
    shown = [each._repr_html_() for each in (plan, account, SCHEMA, model.schema_, compared, told, model)]
    assert all("<table" in each and WILD not in each for each in shown)
    assert all("&lt;script&gt;alert(1)" in each for each in (*shown[:4], shown[6]))
    assert "&lt;b&gt;smith" in shown[3]
    assert "<b>smith" not in "".join(shown)
    assert "to be learnt" in shown[2]
    assert "Kairouz" in shown[4]
    assert "at most" in shown[5]


def test_show_prints_the_summary_of_a_saved_model(tmp_path: Path) -> None:
    """`privet show` says of a file what the model said, with the guarantee in full; also of standard errors."""
    dose = Schema(columns=AGES.columns, target=Target(column="dose", kind="number", low=0, high=10))
    models = {
        "labels": fit_table(table(), SCHEMA, epsilon=9, delta=1e-6),
        "sure": fit_table(table(), dose, LinearRegression(inference=0.5), epsilon=9, delta=1e-6),
        "svm": fit_table(table(), SCHEMA, LinearSVC(alpha=0.5), epsilon=9, delta=1e-6),
    }
    for name, model in models.items():
        model.save(tmp_path / name)
        loaded = load_model(tmp_path / name)
        assert str(loaded.summary()) == str(model.summary())
        assert loaded.predict(table()).tolist() == model.predict(table()).tolist()
        told = CliRunner().invoke(main, ["show", str(tmp_path / name)])
        assert told.exit_code == 0, told.output
        body = str(model.summary()).removesuffix(f"Guarantee: {model.guarantee}")
        assert told.output.strip() == body + model.guarantee.details
        record = json.loads(CliRunner().invoke(main, ["show", str(tmp_path / name), "--json"]).output)
        assert record["epsilon"] <= 9
        assert record["coefficients"][0]["name"] == "age"
    assert "0.95 interval" in str(models["sure"].summary())
    assert "log1p(pay)" in str(models["labels"].summary())
    assert "Learnt within the budget" in str(models["labels"].summary())


def test_fit_table_takes_what_a_user_has(tmp_path: Path) -> None:
    """Numbers for the budget, the path of a schema, an estimator with its parameters, an account."""
    write_schema(AGES, tmp_path / "table.toml")
    account = Account(Budget(epsilon=9, delta=1e-5))
    model = fit_table(table(), tmp_path / "table.toml", epsilon=3, delta=1e-6, account=account)
    assert len(account.charges) == 1
    assert model.plan == plan_table(str(tmp_path / "table.toml"), records=4000, epsilon=3, delta=1e-6)
    svm = fit_table(table(), SCHEMA, LinearSVC(2.0, 1e-7, alpha=0.5, class_weight={"yes": 2.0}))
    assert (svm.plan.budget, type(svm.estimator_), svm.estimator_.alpha) == (
        Budget(epsilon=2, delta=1e-7),
        LinearSVC,
        0.5,
    )
    assert svm.estimator_.class_weight_ == {0: 0.5, 1: 1.0}
    assert svm.plan == plan_table(SCHEMA, svm.estimator, records=4000)
    assert svm.score(table()) > 0.9
    over = fit_table(table(), SCHEMA, LinearSVC(2.0), epsilon=1, delta=1e-6)
    assert over.plan.budget == Budget(epsilon=1, delta=1e-6)


def test_a_model_of_a_table_clones() -> None:
    """A clone is unfitted, has the same parameters, and shares the account; scikit-learn's tools take it."""
    account = Account(Budget(epsilon=30, delta=1e-5))
    model = fit_table(table(), AGES, LinearSVC(alpha=0.5), epsilon=3, delta=1e-6, account=account)
    copy = clone(model)
    assert isinstance(copy, TableModel)
    assert not hasattr(copy, "guarantee_")
    assert (copy.schema, copy.epsilon, copy.estimator.alpha) == (AGES, 3, 0.5)
    assert copy.account is account
    again = copy.fit(table())
    assert again.plan == model.plan
    assert len(account.charges) == 2
    assert cross_val_score(clone(model), pandas.DataFrame(table()), cv=2).mean() > 0.9
    assert len(account.charges) == 4


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({}, "Expected epsilon=... and delta=..."),
        ({"epsilon": 1}, "Expected epsilon=... and delta=..."),
        ({"epsilon": 1, "budget": Budget(epsilon=1, delta=1e-6)}, "which of them may be spent"),
        ({"estimator": Ridge()}, "an estimator for a target of kind 'label', got Ridge"),
        ({"estimator": LinearSVC(bounds=(0, 1))}, "an estimator without bounds"),
        ({"estimator": LinearSVC(classes=["a", "b"])}, "an estimator without classes"),
        ({"estimator": LinearSVC(neighbours="add_remove")}, "an estimator without neighbours"),
        ({"estimator": LinearSVC(class_weight={"maybe": 1.0})}, "labels that the schema lists, got 'maybe'"),
        ({"estimator": object()}, "one of privet's estimators or None, got object"),
        ({"schema": 3}, "a Schema, or the path of a schema file, got int"),
    ],
)
def test_what_cannot_be_meant_is_refused(known: dict[str, Any], message: str) -> None:
    """Before the table is read: a budget twice or not at all, another kind of model, facts said twice."""
    with pytest.raises(InvalidParameter, match=message):
        fit_table(None, **{"schema": SCHEMA, **known})


@pytest.mark.parametrize(("high", "said"), [(1e5, "learnt within the budget"), (9.0, "as declared")])
def test_a_table_says_of_its_target_s_range_what_became_of_it(high: float, said: str) -> None:
    """A declared range a thousand times too wide is replaced by one that was learnt, and is not called declared."""
    rng = np.random.default_rng(2)
    table = {"age": rng.uniform(0, 100, size=4_000), "wait": rng.uniform(0, 9, size=4_000)}
    schema = Schema(
        columns={"age": Number(low=0, high=100)}, target=Target(column="wait", kind="number", low=0, high=high)
    )
    told = str(fit_table(table, schema, epsilon=1, delta=1e-6).summary())
    assert next(line for line in told.splitlines() if line.startswith("The target is")).endswith(f", {said}.")
