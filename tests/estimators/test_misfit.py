from __future__ import annotations

import csv
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.model_selection import GridSearchCV, cross_val_score

from privet import Budget
from privet.cli import main
from privet.errors import FixedSeed, RepeatedFit, SchemaMisfit, SmallEffectiveSample
from privet.estimators import IndependentFolds, LinearRegression, LogisticRegression, PrivateSearchCV, fit_table
from privet.ledger import Account
from privet.preprocessing import Category, Number, Schema, Target, dump_schema, parse_schema, schema_skeleton
from privet.randomness import fixed_seed_invalidates_guarantee

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(2000, 2))
Y = X[:, 0] > 0
MODEL = LogisticRegression(1.0, bounds=(-1, 1), classes=[False, True])


def penguins(n: int) -> dict[str, list[Any]]:
    """A table of two species, by chance."""
    mass = RNG.uniform(2000, 6000, n)
    return {
        "mass": mass.tolist(),
        "day": ["2020-01-01"] * n,
        "species": np.where(mass > 4000, "Gentoo", "Adelie").tolist(),
    }


def schema(*labels: str, **columns: Any) -> Schema:
    known = {"mass": Number(low=0, high=10_000), **columns}
    return Schema(columns=known, target=Target(column="species", kind="label", values=labels))


def told(run: Any, kind: type[Warning]) -> list[str]:
    """What a call warns of, of one kind."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [str(warning.message) for warning in found if warning.category is kind]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_classes_that_do_not_fit_the_labels_are_said(epsilon: float) -> None:
    """Labels of another case, or missing targets, leave nothing to learn from: what was released of rows tells.

    Rows are centred at the first epsilon, whitened at the others. By chance it is said in one of 3e6 fits at most.
    """
    X = np.random.default_rng(1).uniform(-1, 1, size=(8_000, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    right = LogisticRegression(epsilon, bounds=(-1, 1), classes=["no", "yes"])
    wrong = LogisticRegression(epsilon, bounds=(-1, 1), classes=["No", "Yes"])
    missing = LinearRegression(epsilon, bounds=(-1, 1), target_range=(-1, 1))
    assert told(lambda: right.fit(X, y), SchemaMisfit) == []
    assert told(lambda: missing.fit(X, X[:, 0]), SchemaMisfit) == []
    cases: list[tuple[Any, Any]] = [(wrong, y), (missing, np.full(len(X), np.nan))]
    for model, labels in cases:
        (said,) = told(partial(model.fit, X, labels), SchemaMisfit)
        assert "got fewer than half, by what was released of them" in said
        assert model.guarantee_.epsilon <= epsilon
    assert wrong.plan_ == right.plan_


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (schema("adelie", "gentoo"), "'species' (one of its values)"),
        (schema("Adelie", "Gentoo", day=Number(low=0, high=1e9)), "'day' (a number)"),
        (schema("Adelie", "Gentoo", day=Category(values=("monday",))), "'day' (one of its values)"),
    ],
)
def test_a_schema_that_does_not_fit_is_said_once(facts: Schema, named: str) -> None:
    """Labels spelt otherwise, a date declared a number: the column is named, by a count that the budget paid for.

    The seed is fixed; a miss has probability below 0.03 a run.
    """
    known: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "random": fixed_seed_invalidates_guarantee(3)}
    models: list[Any] = []
    [said] = told(lambda: models.append(fit_table(penguins(2000), facts, **known)), SchemaMisfit)
    assert f"got next to none in {named}, by a noisy count" in said
    assert "spelling and case" in said
    assert "usable targets" in models[0].plan.names
    assert models[0].plan.guarantee().epsilon <= 1
    assert told(lambda: fit_table(penguins(2000), facts, **known, count_usable=False), SchemaMisfit) == []


def test_a_schema_that_fits_is_not_warned_of_however_few_the_records() -> None:
    """From 1 to 3,000 rows, 20 fits with a fixed seed: a false alarm has probability below 0.02 in all."""
    random = fixed_seed_invalidates_guarantee(5)
    for rows in (1, 30, 300, 800, 3000):
        for neighbours in ("replace_one", "zero_out"):
            for epsilon in (0.3, 3.0):
                known: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "neighbours": neighbours, "random": random}
                facts = schema("Adelie", "Gentoo")
                assert told(lambda k=known, n=rows, f=facts: fit_table(penguins(n), f, **k), SchemaMisfit) == []


def test_the_command_says_it_and_refits_and_a_nameless_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`privet fit` notes what does not fit, and a second fit into a folder; a column without a name is ignored."""
    monkeypatch.chdir(tmp_path)
    data = penguins(2000)
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *data])
        writer.writerows(enumerate_rows(data))
    shown = CliRunner().invoke(main, ["schema", "table.csv", "--target", "species"])
    assert '"" =' not in shown.stdout
    assert "has no name" in shown.stderr
    assert "index=False" in shown.stderr
    Path("table.toml").write_text(dump_schema(schema("adelie", "gentoo")))
    fit = ["fit", "table.csv", "--schema", "table.toml", "--epsilon", "9", "--delta", "1e-6", "--out", "model"]
    first, second = CliRunner().invoke(main, fit), CliRunner().invoke(main, fit)
    assert first.exit_code == second.exit_code == 0, first.output
    assert "next to none in 'species'" in first.stderr
    assert "has no name" in first.stderr
    assert "with one, which is replaced" not in first.stderr
    assert second.stderr.count("with one, which is replaced") == 1


def enumerate_rows(data: dict[str, list[Any]]) -> list[list[Any]]:
    return [[place, *row] for place, row in enumerate(zip(*data.values(), strict=True))]


def test_a_schema_passes_over_columns_without_a_name() -> None:
    """The skeleton leaves them out, and a file that lists one as ignored, or has not filled it in, is read."""
    skeleton = schema_skeleton(["", "Unnamed: 0", "age", "y"], target="y")
    assert '"" =' not in skeleton
    assert '"Unnamed: 0" = { kind = "ignored" }' in skeleton
    for text in ('"" = { kind = "?" }', '"" = { kind = "ignored" }'):
        found = parse_schema(f'[columns]\n{text}\n"age" = {{ kind = "number" }}')
        assert list(found.columns) == ["age"]
        assert found.ignored == ()


def test_a_fixed_seed_is_warned_of() -> None:
    """In words, by every way to pass it."""
    table, facts = penguins(2000), schema("Adelie", "Gentoo")
    seeded = LogisticRegression(1.0, bounds=(-1, 1), classes=[False, True], random_state=0)
    search = PrivateSearchCV(MODEL, {"alpha": [0.0]}, epsilon=9, mean_trials=1.5, random_state=0)
    for run in (
        lambda: seeded.fit(X, Y),
        lambda: search.fit(X, Y),
        lambda: type(fit_table(table, facts, epsilon=1, delta=1e-6))(facts, epsilon=1, delta=1e-6, random_state=0).fit(
            table
        ),
    ):
        [said] = told(run, FixedSeed)
        assert "got 0: whoever knows a seed" in said
    assert told(lambda: MODEL.fit(X, Y), FixedSeed) == []


def test_searches_of_scikit_learn_are_warned_of_unless_an_account_adds_up() -> None:
    """Once a place, by what called the fit; the guarantee of such a fit says that it is not alone."""
    grid = GridSearchCV(MODEL, {"alpha": [0.0, 0.1]}, cv=IndependentFolds(2))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        grid.fit(X, Y)
    [said] = [warning for warning in found if warning.category is RepeatedFit]
    assert "Use PrivateSearchCV" in str(said.message)
    assert said.filename == __file__
    assert "other fits on these records" in grid.best_estimator_.guarantee_.details
    assert told(lambda: cross_val_score(MODEL, X, Y, cv=IndependentFolds(2)), RepeatedFit) != []
    account = Account(Budget(epsilon=9, delta=1e-6))
    charged = LogisticRegression(1.0, bounds=(-1, 1), classes=[False, True], account=account)
    assert told(lambda: cross_val_score(charged, X, Y, cv=IndependentFolds(2)), RepeatedFit) == []
    assert told(lambda: MODEL.fit(X, Y), RepeatedFit) == []
    assert "other fits" not in MODEL.guarantee_.details


def test_saving_into_a_folder_again_is_warned_of(tmp_path: Path) -> None:
    """Another fit into the same folder, not the same model once more."""
    facts = schema("Adelie", "Gentoo")
    one, other = (fit_table(penguins(2000), facts, epsilon=1, delta=1e-6) for _ in range(2))
    assert told(lambda: one.save(tmp_path), RepeatedFit) == []
    assert told(lambda: one.save(tmp_path), RepeatedFit) == []
    [said] = told(lambda: other.save(tmp_path), RepeatedFit)
    assert "which adds them up" in said


def test_rows_of_people_are_not_counted() -> None:
    """A person of many rows would count many times: with groups nothing is bought, and nothing said."""
    data = penguins(3000)
    data["who"] = [f"p{place % 1500}" for place in range(3000)]
    known: dict[str, Any] = {"epsilon": 20, "delta": 1e-6, "groups": "who"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallEffectiveSample)
        model = fit_table(data, schema("adelie", "gentoo"), **known)
    assert model.guarantee.unit == "person"
    assert not {"usable targets", "usable records"} & set(model.plan.names)
    assert model.usable_ == {}
