"""What a careless user does gets one kind sentence, and no cell of the table in it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from privet import Budget, dp_gd, dp_sgd, glm
from privet.cli import main
from privet.clipping import Clip
from privet.errors import InvalidParameter, SmallEffectiveSample
from privet.estimators import LinearRegression, LogisticRegression, PrivateSearchCV, fit_table
from privet.ledger import Account
from privet.plan import gradient_plan
from privet.preprocessing import Number, Schema, Target, dump_schema

X = np.random.default_rng(0).uniform(0, 10, (300, 3)) + 0.123456
Y = X[:, 0] > 5


@pytest.mark.parametrize(
    ("table", "message"),
    [(X[:, 0], "Reshape your data"), (X[None], "dim 3"), (X + 1j, "Complex data not supported")],
)
def test_a_table_of_the_wrong_shape_is_refused_without_its_cells(table: np.ndarray, message: str) -> None:
    """scikit-learn's own messages would print the array."""
    with pytest.raises(InvalidParameter, match=message) as caught:
        LogisticRegression(bounds=(0, 10)).fit(table, Y)
    assert "." not in re.sub(r"\.reshape|\. |\.$", "", str(caught.value))  # no number with decimals, so no cell


@pytest.mark.parametrize(
    ("table", "target"),
    [
        (np.zeros((137, 0)), np.zeros(137)),
        ([1.0] * 136 + [[1.0]], np.zeros(137)),
        (np.zeros((137, 2)), np.zeros((137, 2))),
        (np.zeros((137, 2)), [[1.0, 2.0]] * 136 + [[1.0]]),
        (np.zeros((137, 2)), np.zeros(136)),
    ],
)
def test_a_wrong_shape_is_refused_without_the_number_of_rows(table: Any, target: Any) -> None:
    """Under "add_remove" it is private, and scikit-learn's own messages would tell it."""
    settings: dict[str, Any] = {"neighbours": "add_remove", "records": 100, "bounds": (0, 1)}
    model = LogisticRegression(classes=[0, 1], **settings)
    search = PrivateSearchCV(model, {"alpha": [0.0]}, neighbours="add_remove")
    for fit in (model.fit, LinearRegression(**settings).fit, search.fit):
        with pytest.raises(InvalidParameter) as caught:
            fit(table, target)
        assert not re.search("13[67]", str(caught.value))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 1e-9, "bounds": None, "solver": "gradient"}, "ranges can be learnt"),
        ({"max_iter": 1.5}, "whole number"),
        ({"max_iter": "many"}, "whole number"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(parameters: dict[str, Any], message: str) -> None:
    """Nothing is rounded silently, and the advice is about what the user said."""
    with pytest.raises(InvalidParameter, match=message):
        LogisticRegression(**{"bounds": (0, 10), **parameters}).fit(X, Y)


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")  # which the noise says now and then
def test_no_rows_are_refused_where_their_number_is_public_only() -> None:
    """Under "add_remove" an empty table trains on noise, as an error would show that it is empty."""
    with pytest.raises(InvalidParameter, match="0 sample"):
        LogisticRegression(bounds=(0, 10), classes=[False, True]).fit(X[:0], Y[:0])
    settings: dict[str, Any] = {"neighbours": "add_remove", "records": 300, "bounds": (0, 10)}
    model = LogisticRegression(classes=[False, True], **settings).fit(X[:0], Y[:0])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(LinearRegression(**settings, target_range=(0, 10)).fit(X[:0], X[:0, 0]).coef_).all()
    assert len(model.predict(X[:0])) == 0


def test_missing_labels_are_asked_for() -> None:
    """Both kinds of estimators say that y is needed."""
    for model in (LogisticRegression(), LinearRegression()):
        with pytest.raises(InvalidParameter, match="requires y to be passed"):
            model.fit(X, None)


def test_words_and_numbers_of_other_libraries_in_a_plan() -> None:
    """A word for a sampling scheme, a bound or a step size is refused; NumPy's whole numbers are taken."""
    problem = glm("logistic", X, Y, row_norm=1.0)
    budget = Budget(epsilon=1, delta=1e-6)
    wrong: Any = "poisson"
    with pytest.raises(InvalidParameter, match="sampling scheme"):
        dp_sgd(problem, budget=budget, steps=5, clip=1.0, sampling=wrong)
    with pytest.raises(InvalidParameter, match="way to bound"):
        gradient_plan(bounding=wrong, steps=5, records=300, neighbours="replace_one")
    with pytest.raises(InvalidParameter, match="step_size"):
        dp_gd(problem, budget=budget, steps=5, clip=1.0, step_size=wrong)
    with pytest.raises(InvalidParameter, match="name of a loss"):
        glm(3, X, Y, row_norm=1.0)  # type: ignore[call-overload]
    steps: Any = np.int64(5)
    plan = gradient_plan(bounding=Clip(clip=1.0), steps=steps, records=300, neighbours="replace_one")
    assert type(plan["gradients"].times) is int


def test_commands_on_an_empty_table_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows: `fit` refuses in one sentence, `predict` predicts nothing; a missing column prints no header."""
    monkeypatch.chdir(tmp_path)
    schema = Schema(
        columns={"age": Number(low=0, high=100)}, target=Target(column="ill", kind="label", values=("a", "b"))
    )
    Path("schema.toml").write_text(dump_schema(schema))
    with open("rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([("age", "ill"), *((i % 100, "ab"[i % 2]) for i in range(200))])
    Path("empty.csv").write_text("age,ill\n")
    Path("other.csv").write_text("ill\na\n")
    fit = ["--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "--out", "model"]
    run = CliRunner()
    refused = run.invoke(main, ["fit", "empty.csv", *fit])
    assert refused.exit_code == 2
    assert "Traceback" not in refused.output
    assert run.invoke(main, ["fit", "rows.csv", *fit[:-1], "other"]).exit_code == 0
    little = run.invoke(main, ["fit", "rows.csv", *fit[:3], "0.001", *fit[4:]])
    assert little.exit_code == 0
    assert little.stderr.startswith(
        "Note: Expected an effective sample size of some dozens"
    )  # one remark, no line of our code
    assert little.stderr.count("\n") == 1
    assert run.invoke(main, ["predict", "model", "empty.csv"]).output == "ill\n"
    missing = run.invoke(main, ["predict", "model", "other.csv"])
    assert missing.exit_code == 2
    assert missing.stdout == ""


def test_a_schema_that_cannot_be_learnt_says_so() -> None:
    """Open columns and next to no budget: the advice is to write them down; a constant needs none of them."""
    schema = Schema(columns={"age": Number()}, target=Target(column="ill", kind="label", values=("a", "b")))
    table, budget = {"age": [1, 2], "ill": ["a", "b"]}, Budget(epsilon=1e-9, delta=1e-6)
    with pytest.raises(InvalidParameter, match="write ranges and values"):
        fit_table(table, schema, budget=budget, account=Account(budget))
    with pytest.warns(SmallEffectiveSample, match="the model is a constant"):
        assert fit_table(table, schema, budget=budget).plan.names == ("class rates",)


def test_a_label_that_is_none_raises_nothing() -> None:
    """One record with a list for a label is emptied, as any other whose label is not in the public list."""
    labels = np.array(["no", "yes"] * 150, dtype=object)
    labels[7] = ["yes"]
    model = LogisticRegression(epsilon=9, bounds=(0, 11), classes=["no", "yes"]).fit(X, labels)
    assert np.isfinite(model.coef_).all()


def test_a_list_of_rows_has_a_public_width() -> None:
    """Declared by `bounds` for each feature, or read off most rows, as the guarantee then says; none is refused."""
    rows: list[Any] = X.tolist()
    rows[7], rows[8] = [1.0], "Jane Doe"
    said = "the number of columns, read off a list of rows, is public"
    classes = [False, True]
    for bounds, clause in (((0, 11), (said,)), (([0] * 3, [11] * 3), ())):
        model = LogisticRegression(epsilon=9, bounds=bounds, classes=classes)
        search = PrivateSearchCV(model, {"alpha": [0.0]}, epsilon=9)
        for fitted in (model.fit(rows, Y), search.fit(rows, Y)):
            assert tuple(c for c in fitted.guarantee_.assumptions if c == said) == clause
        assert model.n_features_in_ == 3
    assert said not in model.fit(X, Y).guarantee_.assumptions


def test_a_search_refuses_a_target_of_texts_as_a_fit_does() -> None:
    """By its declared type; a text among numbers is a missing target in both."""
    model = LinearRegression(epsilon=9, bounds=(0, 11), target_range=(0, 11))
    search = PrivateSearchCV(model, {"alpha": [0.0]}, epsilon=9)
    mixed: list[Any] = ["Jane Doe", *X[1:, 0].tolist()]
    for fit in (model.fit, search.fit):
        with pytest.raises(InvalidParameter, match="y to be numbers, got text"):
            fit(X, np.array(mixed))
        assert fit(X, mixed)
