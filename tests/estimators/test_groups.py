"""Estimators and tables of people with many rows: the guarantee is for a person, and little is lost."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Plain

from privet import Budget
from privet.cli import main
from privet.errors import InvalidParameter
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    fit_table,
    load_model,
)
from privet.plan import Meter
from privet.preprocessing import (
    Category,
    NameFinder,
    Number,
    RangeFinder,
    Schema,
    SchemaLearner,
    Target,
    dump_schema,
    learn_schema,
)
from privet.randomness import fixed_seed_invalidates_guarantee

Floats = NDArray[np.float64]


def crowd(people: int = 1500, rows: int = 5, seed: int = 0) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Rows of people who resemble themselves, in no order; features in [-1, 1], labels 0 and 1."""
    rng = np.random.default_rng(seed)
    own = np.repeat(rng.uniform(-0.6, 0.6, size=(people, 3)), rows, axis=0)
    X = np.clip(own + rng.uniform(-0.4, 0.4, size=own.shape), -1, 1)
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-X @ [6.0, -4.0, 2.0]))).astype(np.int64)
    order = rng.permutation(len(X))
    return X[order], y[order], np.repeat(np.arange(people), rows)[order]


def test_guarantee_is_for_a_person() -> None:
    """With groups the sentence says person, n is the number of people, and "one row" is assumed no more."""
    X, y, groups = crowd()
    model = LogisticRegression(epsilon=1.0, bounds=(-1, 1), classes=[0, 1]).fit(X, y, groups=groups)
    told = model.guarantee_.details
    assert model.guarantee_.unit == "person"
    assert "all rows of one person replaced" in told
    assert "a person has one row" not in told
    assert "a person has one row" in LogisticRegression(epsilon=1.0, bounds=(-1, 1)).fit(X, y).guarantee_.details


@pytest.mark.parametrize("bounds", [(-1, 1), None])
def test_little_is_lost_with_five_rows_a_person(bounds: Any) -> None:
    """At ε = 2, 1,500 people: accuracy within 2 points of the model without privacy, ranges given or learnt."""
    X, y, groups = crowd()
    ceiling = Plain().fit(X, y).score(X, y)
    model = LogisticRegression(epsilon=2.0, bounds=bounds, classes=[0, 1], random_state=3)
    assert model.fit(X, y, groups=groups).score(X, y) > ceiling - 0.02


@pytest.mark.medium
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_without_noise_worth_naming_it_is_the_pooled_model(form: Any) -> None:
    """Everybody having equally many rows, the mean over people is the mean over rows: scikit-learn's coefficients."""
    X, y, groups = crowd()
    model = LogisticRegression(epsilon=1e5, bounds=(-1, 1), classes=[0, 1], max_iter=100, random_state=1)
    assert np.abs(model.fit(form(X), y, groups=groups).coef_ - Plain(C=np.inf).fit(X, y).coef_).max() < 0.02


def test_people_weigh_the_same_however_many_rows_they_have() -> None:
    """One busy person with most of the rows does not decide: the intercept is the average of people."""
    y = np.concatenate([np.ones(900), np.zeros(300)])
    groups = np.concatenate([np.zeros(900), np.arange(1, 301)])
    X = np.zeros((1200, 1))
    settings: dict[str, Any] = {"bounds": (-1, 1), "target_range": (-1, 2), "random_state": 0}
    assert LinearRegression(epsilon=100.0, **settings).fit(X, y).intercept_ > 0.7
    assert LinearRegression(epsilon=100.0, **settings).fit(X, y, groups=groups).intercept_ < 0.05


@pytest.mark.parametrize("model", [LogisticRegression, LinearSVC, LinearRegression, HuberRegressor])
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_people_with_one_row_are_rows(model: Any) -> None:
    """With all labels distinct the fit is the plain one, bit for bit, whatever is learnt along the way."""
    X, y, _ = crowd(people=300, rows=1)
    names = np.array([f"person {i}" for i in np.random.default_rng(0).permutation(300)])
    one, other = (clone(model(random_state=5)).fit(X, y, groups=groups) for groups in (None, names))
    assert one.coef_.tolist() == other.coef_.tolist()
    assert np.asarray(one.intercept_).tolist() == np.asarray(other.intercept_).tolist()


@pytest.mark.parametrize("kind", ["numbers", "texts", "list", "missing"])
def test_order_of_rows_and_kind_of_labels_do_not_show(kind: str) -> None:
    """A permutation of the rows, or other names for the same people, change no bit of the fit; None is nobody's."""
    X, y, groups = crowd(people=60)
    model = LogisticRegression(epsilon=5.0, bounds=(-1, 1), classes=[0, 1], row_norm=None, random_state=2, max_iter=5)
    model.set_params(
        bounds=None, row_norm=2.0, solver="fixed_hessian"
    )  # nothing is learnt from a drawn row, so nothing follows the draw
    first = model.fit(X, y, groups=groups).coef_.tolist()
    labels: Any = {"numbers": groups, "texts": np.array([f"p{g}" for g in groups]), "list": groups.tolist()}.get(kind)
    if kind == "missing":
        X, y = np.vstack([X, np.ones((9, 3))]), np.append(y, [1] * 9)
        labels = [*groups.tolist(), *[None] * 9]
    order = np.random.default_rng(4).permutation(len(y))
    again = model.fit(X[order], y[order], groups=[labels[i] for i in order]).coef_.tolist()
    assert first == again


def test_a_person_of_many_rows_is_bounded_in_everything_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges and norms are learnt from one row of each person: 5,000 rows of one person add 1 to the histograms."""
    seen: list[dict[str, int]] = []
    genuine = RangeFinder.learn

    def spied(self: RangeFinder, values: Any, meter: Meter, **named: Any) -> Any:
        seen.append({name: len(column) for name, column in zip(self.columns, values, strict=True)})
        return genuine(self, values, meter, **named)

    monkeypatch.setattr(RangeFinder, "learn", spied)
    X, y, groups = crowd(people=150, rows=2)
    X, y, groups = np.vstack([X, np.full((5000, 3), 9.0)]), np.append(y, [1] * 5000), np.append(groups, [150] * 5000)
    LinearRegression(epsilon=5.0, solver="fixed_hessian").fit(X, y, groups=groups)
    assert seen == [{"y": 151}, {"x0": 151, "x1": 151, "x2": 151}, {"norm": 151, "centred norm": 151}]


def test_delta_is_compared_with_the_number_of_people() -> None:
    """Below one in the number of people, which is public, not of rows, which is not."""
    X, y, groups = crowd(people=100)
    model = LogisticRegression(epsilon=1.0, delta=0.009, bounds=(-1, 1), classes=[0, 1])
    assert model.fit(X, y, groups=groups).guarantee_.delta == 0.009
    with pytest.raises(InvalidParameter, match=r"below 1/n = 0\.01"):
        model.set_params(delta=0.02).fit(X, y, groups=groups)


def test_delta_of_counts_is_compared_with_the_number_of_people() -> None:
    """How many rows there are is private with groups, so no refusal of a Poisson regression may depend on it."""
    X, _, who = crowd(people=200)
    model = PoissonRegressor(epsilon=1, delta=2e-3, bounds=(-3, 3), target_range=(0, 9), max_iter=2)
    assert model.fit(X, np.ones(len(X)), groups=who).guarantee_.unit == "person"


def test_careless_groups_are_refused_in_public_terms() -> None:
    """Another number of labels, no label at all, a table: refused without a count of rows or a label."""
    X, y, groups = crowd(people=10)
    model = LogisticRegression(epsilon=1.0, bounds=(-1, 1), classes=[0, 1])
    for wrong, words in (
        (groups[:-1], "as many group labels as rows"),
        ([None] * 50, "at least one person"),
        (np.zeros((50, 2)), "one value a record"),
    ):
        with pytest.raises(InvalidParameter, match=words) as error:
            model.fit(X, y, groups=wrong)
        assert "50" not in str(error.value)
        assert "49" not in str(error.value)
    alone = LogisticRegression(epsilon=8.0, bounds=(-1, 1), classes=[0, 1], neighbours="add_remove", records=10)
    assert np.isfinite(alone.fit(X, y, groups=[None] * 50).coef_).all()  # how many there are is private there


COLUMNS: dict[str, Any] = {"age": Number(low=0, high=100), "job": Category(values=("baker", "smith"))}
SCHEMA = Schema(columns=COLUMNS, target=Target(column="ill", kind="label", values=("no", "yes")))


def visits(people: int = 1000, each: int = 4) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    age = np.clip(np.repeat(rng.uniform(0, 90, people), each) + rng.uniform(0, 10, people * each), 0, 100)
    job = np.repeat(rng.choice(["baker", "smith"], people), each)
    ill = np.where(age + 30 * (job == "smith") > 60, "yes", "no")
    patient = np.repeat([f"patient {i}" for i in range(people)], each)
    return {"patient": patient.tolist(), "age": age.tolist(), "job": job.tolist(), "ill": ill.tolist()}


@pytest.mark.parametrize("known", [True, False])
def test_a_table_of_people(known: bool, tmp_path: Path) -> None:
    """The column of groups is no feature even if the schema lists it; the saved model promises a person."""
    columns: dict[str, Any] = COLUMNS if known else {"age": Number(), "job": Category()}
    schema = Schema(columns={**columns, "patient": Category()}, target=SCHEMA.target)
    model = fit_table(visits(), schema, budget=Budget(epsilon=2, delta=1e-6), groups="patient")
    assert "patient" not in model.schema_.columns
    assert "patient 1" not in dump_schema(model.schema_)
    assert model.score(visits()) > 0.85
    assert model.guarantee.unit == "person"
    model.save(tmp_path)
    assert json.loads((tmp_path / "model.json").read_text())["guarantee"]["unit"] == "person"
    assert load_model(tmp_path).guarantee == model.guarantee


def test_names_are_learnt_from_one_row_of_each_person() -> None:
    """A person who holds 3,000 rows of a name of its own does not make it known; a name of many people is found."""
    table = {"who": ["busy"] * 3000 + [f"p{i}" for i in range(900)], "job": ["own"] * 3000 + ["baker"] * 900}
    schema = Schema(columns={"job": Category()}, ignored=("who",))
    budget = Budget(epsilon=1, delta=1e-6)
    assert learn_schema(table, schema, budget=budget).schema.columns["job"].values == ("baker", "own")  # type: ignore[union-attr]
    learnt = learn_schema(table, schema, budget=budget, groups="who")
    assert learnt.schema.columns["job"].values == ("baker",)  # type: ignore[union-attr]
    assert learnt.guarantee.unit == "person"
    with pytest.raises(InvalidParameter, match="must not be learnt from"):
        SchemaLearner(schema=Schema(columns={"who": Category()}), threshold_delta=1e-7, groups="who")


def test_what_is_learnt_reads_one_row_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges and names get as many rows as there are people."""
    rows: list[int] = []
    ranges, names = RangeFinder.learn, NameFinder.run

    def spied_ranges(self: RangeFinder, values: Any, meter: Meter, **sampled: Any) -> Any:
        rows.append(len(values[0]))
        return ranges(self, values, meter, **sampled)

    def spied_names(self: NameFinder, codes: Any, readers: Any, meter: Meter) -> Any:
        rows.append(len(codes["job"]))
        return names(self, codes, readers, meter)

    monkeypatch.setattr(RangeFinder, "learn", spied_ranges)
    monkeypatch.setattr(NameFinder, "run", spied_names)
    schema = Schema(columns={"age": Number(), "job": Category()}, ignored=("patient",))
    random = fixed_seed_invalidates_guarantee(1)
    learn_schema(visits(), schema, budget=Budget(epsilon=1, delta=1e-6), groups="patient", random=random)
    assert rows == [1000, 1000]


def test_target_cannot_be_whose_row_it_is() -> None:
    """Nor can a column that is not there."""
    with pytest.raises(InvalidParameter, match="another column than the target"):
        fit_table(visits(), SCHEMA, budget=Budget(epsilon=1, delta=1e-6), groups="ill")
    with pytest.raises(InvalidParameter, match="Expected one column 'nobody'"):
        fit_table(visits(), SCHEMA, budget=Budget(epsilon=1, delta=1e-6), groups="nobody")


def test_the_command_line_takes_groups(tmp_path: Path) -> None:
    """`privet fit --groups patient` prints a sentence about a person, saves it, and predicts without the column."""
    data = visits()
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(data), *zip(*data.values(), strict=True)])
    (tmp_path / "s.toml").write_text(dump_schema(SCHEMA))
    out = tmp_path / "model"
    files = [f"{tmp_path}/visits.csv", "--schema", f"{tmp_path}/s.toml", "--out", str(out)]
    result = CliRunner().invoke(main, ["fit", *files, *["--epsilon", "2", "--delta", "1e-6", "--groups", "patient"]])
    assert result.exit_code == 0, result.output
    assert "all rows of one person replaced by any others" in result.output
    assert load_model(out).guarantee.unit == "person"
    (tmp_path / "new.csv").write_text("age,job\n90,smith\n5,baker\n")
    assert CliRunner().invoke(main, ["predict", str(out), f"{tmp_path}/new.csv"]).output.split() == ["ill", "yes", "no"]
