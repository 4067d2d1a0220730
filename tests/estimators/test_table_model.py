from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from privet import Budget
from privet.cli import main
from privet.errors import InvalidParameter, SmallEffectiveSample
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    QuantileRegressor,
    fit_table,
    load_model,
    plan_table,
)
from privet.ledger import Account
from privet.preprocessing import Category, Number, Schema, Target, dump_schema
from privet.randomness import fixed_seed_invalidates_guarantee

BUDGET = Budget(epsilon=2.0, delta=1e-6)
COLUMNS: dict[str, Any] = {"age": Number(low=0, high=100), "job": Category(values=("baker", "smith", "nurse"))}
LABELS = Schema(columns=COLUMNS, target=Target(column="ill", kind="label", values=("no", "yes")))
NUMBERS = Schema(columns=COLUMNS, target=Target(column="pay", kind="number", low=0, high=200))
COUNTS = Schema(columns=COLUMNS, target=Target(column="visits", kind="count", low=0, high=60))


def table(n: int = 6000) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, n)
    job = rng.choice(["baker", "smith", "nurse"], n)
    ill = np.where(age + 30 * (job == "smith") > 60, "yes", "no")
    pay = 20 + age + 40 * (job == "nurse")
    visits = np.round(np.exp(age / 30 + (job == "nurse") - 0.5))
    columns = {"age": age, "job": job, "ill": ill, "pay": pay, "visits": visits}
    return {name: column.tolist() for name, column in columns.items()}


@pytest.mark.parametrize("schema", [LABELS, NUMBERS, COUNTS])
def test_a_saved_model_is_data_and_predicts_the_same(schema: Schema, tmp_path: Path) -> None:
    """model.json holds numbers and names only; loaded, it predicts, scores and promises what it did."""
    data = table()
    model = fit_table(data, schema, budget=BUDGET)
    assert model.score(data) > 0.85
    path = model.save(tmp_path / "model")
    assert json.loads(path.read_text())["format"] == "privet model"
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(data).tolist() == model.predict(data).tolist()
    assert loaded.guarantee == model.guarantee
    assert loaded.plan == model.plan
    assert loaded.schema_ == model.schema_


def test_what_the_schema_leaves_open_is_learnt_within_the_budget() -> None:
    """Open ranges and code books are learnt, shown in the schema, and paid for by the same budget."""
    schema = Schema(columns={"age": Number(), "job": Category()}, target=LABELS.target)
    model = fit_table(table(), schema, budget=BUDGET)
    assert not model.schema_.unknown
    assert model.guarantee.epsilon <= 2.0
    assert "Approximate" in repr(model.plan.event)
    assert model.score(table()) > 0.85


def test_a_fixed_seed_invalidates_the_guarantee_also_when_saved(tmp_path: Path) -> None:
    """The stamp survives the file."""
    model = fit_table(table(), LABELS, budget=BUDGET, random=fixed_seed_invalidates_guarantee(1))
    model.save(tmp_path)
    assert str(load_model(tmp_path).guarantee).startswith("NOT PRIVATE: fixed seed")


def test_set_params_after_fit_changes_nothing_that_is_saved(tmp_path: Path) -> None:
    """What a file says is of the fit: budget, relation, ranges, classes and promise, whatever was set since."""
    model = fit_table(table(), LABELS, budget=BUDGET)
    before = model.save(tmp_path / "before").read_text()
    model.estimator_.set_params(
        epsilon=99.0, delta=0.4, neighbours="add_remove", bounds=(-9, 9), classes=[7, 8], alpha=3.0, records=5
    )
    assert model.save(tmp_path / "after").read_text() == before
    loaded = load_model(tmp_path / "after")
    assert (loaded.guarantee, loaded.plan.budget) == (model.guarantee, BUDGET)
    assert loaded.predict(table()).tolist() == model.predict(table()).tolist()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Schema(columns=COLUMNS), "schema with a target"),
    ],
)
def test_targets_that_no_model_fits_are_refused(schema: Schema, message: str) -> None:
    """No target: refused with what to write."""
    with pytest.raises(InvalidParameter, match=message):
        fit_table(table(50), schema, budget=BUDGET)


def test_other_files_are_not_taken_for_models(tmp_path: Path) -> None:
    """A model.json of another format or version is refused."""
    (tmp_path / "model.json").write_text('{"format": "privet model", "version": 99}')
    with pytest.raises(InvalidParameter, match="version 2"):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text("not JSON")
    with pytest.raises(InvalidParameter, match="version 2"):
        load_model(tmp_path)


def test_numbers_have_no_probabilities() -> None:
    """predict_proba is for labels."""
    model = fit_table(table(500), NUMBERS, budget=BUDGET)
    with pytest.raises(InvalidParameter, match="Use predict"):
        model.predict_proba(table(5))


def test_the_commands_fit_and_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`privet schema`, `fit` and `predict` go from a CSV file to predictions, with the guarantee printed."""
    monkeypatch.chdir(tmp_path)
    data = table()
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data)
        writer.writerows(zip(*data.values(), strict=True))
    Path("table.toml").write_text(dump_schema(LABELS))
    run = CliRunner()
    skeleton = run.invoke(main, ["schema", "table.csv", "--target", "ill"])
    assert skeleton.exit_code == 0
    assert '"age"' in skeleton.output
    fit = ["fit", "table.csv", "--schema", "table.toml", "--epsilon", "1", "--delta", "1e-6", "--out", "model"]
    told = run.invoke(main, fit)
    assert told.exit_code == 0, told.output
    assert "differentially private" in told.output
    assert "model.json" in told.output
    record = json.loads(run.invoke(main, [*fit, "--json"]).stdout)
    assert record["epsilon"] <= 1
    predicted = run.invoke(main, ["predict", "model", "table.csv"]).output.splitlines()
    assert predicted[0] == "ill"
    assert set(predicted[1:]) == {"no", "yes"}
    odds = run.invoke(main, ["predict", "model", "table.csv", "--proba"]).output.splitlines()
    assert odds[0] == "no,yes"
    wrong = run.invoke(main, [*fit, "--target", "pay"])
    assert wrong.exit_code == 2
    assert "declare the target" in wrong.output


@pytest.mark.parametrize("wild", ["=cmd()", "+1+1", "-2+3", "@SUM(A1)"])
def test_predictions_are_no_formulas(wild: str, tmp_path: Path) -> None:
    """A class or column that a spreadsheet would run gets an apostrophe; numbers and plain names stay as they are."""
    data = {"age": [0.0, 100.0] * 500, wild: [wild, "-1.5"] * 500}
    target = Target(column=wild, kind="label", values=(wild, "-1.5"))
    schema = Schema(columns={"age": Number(low=0, high=100)}, target=target)
    fit_table(data, schema, budget=Budget(epsilon=50, delta=1e-6)).save(tmp_path)
    (tmp_path / "new.csv").write_text("age\n0\n100\n")
    for options, lines in (([], [[f"'{wild}"], [f"'{wild}"], ["-1.5"]]), (["--proba"], [[f"'{wild}", "-1.5"]])):
        shown = CliRunner().invoke(main, ["predict", str(tmp_path), str(tmp_path / "new.csv"), *options]).output
        assert list(csv.reader(shown.splitlines()))[: len(lines)] == lines


def far(n: int, seed: int) -> dict[str, Any]:
    """Numbers far from 0 that a column explains, one that says nothing, and a name."""
    rng = np.random.default_rng([seed, 11])
    age = rng.uniform(20, 60, size=n)
    score = 650 + age - 40 + 3 * rng.normal(size=n)
    return {"age": age, "dues": rng.normal(size=n), "job": ["baker"] * n, "score": score}


OPEN = Schema(
    columns={"age": Number(), "dues": Number(), "job": Category()}, target=Target(column="score", kind="number")
)


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("ends", [(None, None), (0.0, 1e5)])
def test_a_target_far_from_0_is_found_as_by_an_estimator(ends: tuple[float | None, float | None]) -> None:
    """650 ± 12, 300 records at epsilon 1, nothing declared or a range far too wide: mean R² of 8 fits, .78 and .85.

    By octaves alone, [512, 1024), it was .36 and .52.
    """
    target = Target(column="score", kind="number", low=ends[0], high=ends[1])
    schema = Schema(columns=OPEN.columns, target=target)
    scores = []
    for seed in range(8):
        random = fixed_seed_invalidates_guarantee(seed)
        model = fit_table(far(300, seed), schema, epsilon=1, delta=1e-6, random=random)
        assert {"target: octaves", "target: bins"} <= set(model.plan.names)
        low, high = model.schema_.known_target.low, model.schema_.known_target.high
        assert low is not None
        assert high is not None
        assert high - low < 300
        assert "score" in model.learnt_
        scores.append(model.score(far(2_000, seed + 100)))
    assert np.mean(scores) > 0.7


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("kind", ["number", "count", "label"])
def test_of_next_to_no_records_a_table_learns_a_constant(kind: Any, declared: bool, tmp_path: Path) -> None:
    """With all of the budget, though ranges of features are open; it is saved, and what was learnt is the target."""
    known: dict[str, Any] = {"label": {"values": ("no", "yes")}}.get(kind, {"low": 0, "high": 9000} if declared else {})
    schema = Schema(columns=OPEN.columns, target=Target(column="score", kind=kind, **known))
    data, epsilon = far(400, 1), 0.05 if kind == "label" else 0.2
    if kind == "label":
        data["score"] = ["yes"] * 390 + ["no"] * 10
    elif kind == "count":
        data["score"] = np.rint(data["score"])
    with pytest.warns(SmallEffectiveSample, match="the model is a constant") as told:
        model = fit_table(data, schema, epsilon=epsilon, delta=1e-6)
    assert len(told) == 1
    assert set(model.plan.names) <= {"target: reach", "constant", "class rates"}
    assert plan_table(schema, records=400, epsilon=epsilon, delta=1e-6) == model.plan
    assert not model.schema_.unknown
    assert len(set(model.predict(data).tolist())) == 1
    assert model.learnt_ == (() if kind == "label" or declared else ("score",))
    if kind == "number" and not declared:
        assert "whatever the row, learnt within the budget." in str(model.summary())
    assert "No feature was looked at" in str(model.summary())
    assert any("nothing but the target was looked at" in said for said in model.guarantee.assumptions)
    model.save(tmp_path)
    assert load_model(tmp_path).predict(data).tolist() == model.predict(data).tolist()
    assert load_model(tmp_path).schema_ == model.schema_


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_the_command_says_what_was_learnt_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that is a constant, what it predicts; no range of a column that was not looked at."""
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(dump_schema(OPEN))
    data = far(300, 1)
    with open("rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([tuple(data), *zip(*data.values(), strict=True)])
    fit = ["fit", "rows.csv", "--schema", "schema.toml", "--delta", "1e-6", "--out"]
    told = CliRunner().invoke(main, [*fit, "few", "--epsilon", "0.2"]).output
    assert [line.split(" ")[1] for line in told.splitlines() if line.startswith("Learnt")] == ["score"]
    assert ", whatever the row." in told
    told = CliRunner().invoke(main, [*fit, "many", "--epsilon", "2"]).output
    assert [line.split(" ")[1] for line in told.splitlines() if line.startswith("Learnt")] == [*OPEN.columns, "score"]


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("schema", [LABELS, NUMBERS])
def test_a_table_of_which_no_name_is_learnt_is_fitted(schema: Schema, tmp_path: Path) -> None:
    """A code that three records share, and no other column: there is no feature to learn from, and no traceback."""
    data = {**table(900), "code": [f"n{place // 3}" for place in range(900)]}
    model = fit_table(data, Schema(columns={"code": Category()}, target=schema.target), epsilon=0.5, delta=1e-6)
    assert model.schema_.columns["code"] == Category(values=(), missing="indicator")
    assert len(set(model.predict(data).tolist())) == 1
    model.save(tmp_path)
    assert load_model(tmp_path).predict(data).tolist() == model.predict(data).tolist()


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("kind", ["number", "count"])
def test_a_table_is_scored_by_its_true_targets(kind: Any) -> None:
    """Not by those cut to what was found: of a constant that is one number, and all would be right."""
    data = far(200, 1)
    data["score"] = np.rint(data["score"]) - 600
    schema = Schema(columns=OPEN.columns, target=Target(column="score", kind=kind))
    model = fit_table(data, schema, epsilon=0.3, delta=1e-6, random=fixed_seed_invalidates_guarantee(1))
    truth, rows = data["score"], np.zeros((200, model.estimator_.coef_.size))
    assert model.score(data) == pytest.approx(model.estimator_.score(rows, truth))
    assert model.score(data) < 0


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [HuberRegressor(), QuantileRegressor(), LinearRegression()])
def test_no_prediction_is_beyond_a_declared_range(model: Any) -> None:
    """Waiting times from 0 on: a range about where most are, in a declared one, began below 0 in 20 fits of 20."""
    rng = np.random.default_rng(4)
    age, wait = rng.uniform(0, 9, size=400), rng.exponential(3.0, size=400)
    ends = Target(column="wait", kind="number", low=0, high=500)
    schema = Schema(columns={"age": Number(low=0, high=9)}, target=ends)
    for seed in range(4):
        random = fixed_seed_invalidates_guarantee(seed)
        found = fit_table({"age": age, "wait": wait}, schema, model, epsilon=1, delta=1e-6, random=random)
        low, high = found.estimator_.target_range_
        assert 0 <= low < high <= 500
        assert (found.schema_.known_target.low, found.schema_.known_target.high) == (low, high)


def test_a_plan_beside_an_account_is_known_beforehand() -> None:
    """There are noisy sums alone; without one, draws as well."""
    data, account = far(300, 1), Account(Budget(epsilon=9, delta=1e-4))
    said: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "account": account}
    schema = Schema(columns={name: OPEN.columns[name] for name in ("age", "dues")}, target=OPEN.target)
    plan = plan_table(schema, records=300, **said)
    assert not account.charges
    assert fit_table(data, schema, **said).plan == plan
    assert "part kept" in plan_table(schema, records=300, epsilon=1, delta=1e-6).names
    assert "part kept" not in plan.names
