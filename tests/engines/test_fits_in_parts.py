from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.test_parts import Pickled

from privet import Budget
from privet.engines import Files, Stream
from privet.errors import InvalidParameter
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    fit_table,
)
from privet.estimators.outline import Size, outlined
from privet.ledger import Account
from privet.preprocessing import Category, Number, Schema, Target
from privet.randomness import fixed_seed_invalidates_guarantee

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
SCALES = np.array([1.0, 3.0, 0.5, 10.0])


def made(records: int) -> tuple[Any, Any, Any]:
    """Rows of unlike scale, some cells odd, their scores, and noise."""
    rng = np.random.default_rng(records)
    X = rng.normal(size=(records, 4)) * SCALES + [0, 5, 0, 20]
    score = ((X - [0, 5, 0, 20]) / SCALES) @ [1.0, 0.5, 0.0, 0.3]
    X[5, 1], X[7, 0] = np.nan, np.inf
    return X, score, rng.normal(size=records)


def in_files(folder: Path, X: Any, y: Any) -> Path:
    """The rows in three files of unlike sizes."""
    folder.mkdir()
    table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": y})
    edges = [0, len(y) // 5, len(y) // 5 + 1, len(y)]
    for i in range(3):
        part = table.slice(edges[i], edges[i + 1] - edges[i])
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=max(100, len(y) // 7))
    return folder


Kind = tuple[Callable[..., Any], Callable[[Any, Any], Any]]
FIXED: dict[str, Any] = {"delta": 1e-6, "random_state": 1}
SHORT: dict[str, Any] = {**FIXED, "max_iter": 8}  # each step is the same again
WIDE = ([-4, -8, -3, -20], [400, 18, 3, 60])
MODELS: dict[str, Kind] = {
    "logistic": (
        lambda: LogisticRegression(1.0, classes=["no", "yes"], **SHORT),
        lambda s, e: np.where(s + e > 0, "yes", "no"),
    ),
    "balanced": (
        lambda: LogisticRegression(1.0, classes=[0, 1], bounds=WIDE, class_weight="balanced", **SHORT),
        lambda s, e: (s + e > 1).astype(int),
    ),
    "several": (lambda: LogisticRegression(1.0, classes=[0, 1, 2], **SHORT), lambda s, e: np.digitize(s + e, [-1, 1])),
    "few": (lambda: LogisticRegression(0.1, classes=[0, 1], **SHORT), lambda s, e: (s + e > 1).astype(int)),
    "few, several": (lambda: LinearSVC(0.1, classes=[0, 1, 2], **SHORT), lambda s, e: np.digitize(s + e, [-1, 1])),
    "a vote": (lambda: LogisticRegression(0.01, classes=[0, 1, 2], **SHORT), lambda s, e: np.digitize(s + e, [0, 1])),
    "hinge": (lambda: LinearSVC(1.0, classes=[0, 1], **SHORT), lambda s, e: (s + e > 0).astype(int)),
    "linear": (lambda: LinearRegression(1.0, **SHORT), lambda s, e: s + e / 2),
    "ridge": (lambda: Ridge(1.0, alpha=3.0, target_range=(-9, 900), **SHORT), lambda s, e: s + e / 2),
    "huber": (lambda: HuberRegressor(0.1, target_range=(-5, 5), **SHORT), lambda s, e: s + e / 2),
    "quantile": (lambda: QuantileRegressor(1.0, quantile=0.9, **SHORT), lambda s, e: s + e / 2),
    "counts": (lambda: PoissonRegressor(0.1, **SHORT), lambda s, e: np.floor(np.exp(s / 2 + e))),
    "add_remove": (
        lambda: LogisticRegression(1.0, classes=[0, 1], neighbours="add_remove", records=2500, **SHORT),
        lambda s, e: (s + e > 0).astype(int),
    ),
}


def same_fit(model: Callable[..., Any], X: Any, y: Any, *tables: Any) -> None:
    """Whether a fit of each table has the coefficients, plan and guarantee of that in memory."""
    here = model().fit(X, y)
    for table in tables:
        there = model().fit(table, "y")
        assert np.array_equal(there.coef_, here.coef_)
        assert np.array_equal(there.intercept_, here.intercept_)
        assert there.plan_ == here.plan_
        assert there.guarantee_ == here.guarantee_
        assert there.feature_names_in_.tolist() == [f"x{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)
def test_a_fit_of_files_is_the_fit_in_memory(tmp_path: Path, kind: Kind) -> None:
    """With the same noise, coefficients, plan and guarantee are those of the rows in memory, on any engine."""
    model, target = kind
    X, score, noise = made(2_500)
    y = target(score, noise)
    files = in_files(tmp_path / "files", X, y)
    same_fit(model, X, y, str(files), Files(files, engine=Pickled(3, twice=True)))


KNOWN: dict[str, Any] = {"inference": 0.5, "bounds": ([-6, -20, -4, -40], [6, 30, 4, 80]), **FIXED}
INFERRED: dict[str, Kind] = {
    "logistic": (lambda: LogisticRegression(4.0, classes=[0, 1], **KNOWN), MODELS["hinge"][1]),
    "declared": (  # too narrow, and refused
        lambda: LinearRegression(4.0, inference=0.5, bounds=([-2, -4, -3, -5], [4, 14, 3, 45]), **FIXED),
        MODELS["linear"][1],
    ),
    "add_remove": (
        lambda: HuberRegressor(8.0, target_range=(-8, 8), neighbours="add_remove", records=4000, **KNOWN),
        MODELS["huber"][1],
    ),
}


@pytest.mark.medium
@pytest.mark.parametrize("kind", INFERRED.values(), ids=INFERRED)
def test_intervals_in_files_are_those_in_memory(tmp_path: Path, kind: Kind) -> None:
    """With the same noise, coefficients and their covariance are those of the rows in memory; so is a refusal."""
    model, target = kind
    X, score, noise = made(4_000)
    X[11:14, 2], X[50:53, 3] = np.nan, 1e9  # rows that are altered, and counted
    y = target(score, noise)
    files = in_files(tmp_path / "files", X, y)
    here = model().fit(X, y)
    assert bool(here.refusal_) == (model is INFERRED["declared"][0])
    for table in (files, Files(files, engine=Pickled(3, twice=True))):
        there = model().fit(table, "y")
        assert np.array_equal(there.coef_, here.coef_)
        assert np.array_equal(there.covariance_, here.covariance_, equal_nan=True)
        assert there.refusal_ == here.refusal_
        assert (there.plan_, there.guarantee_) == (here.plan_, here.guarantee_)


def test_a_fit_of_a_tall_table_samples_the_same_records(tmp_path: Path) -> None:
    """Where most is learnt from a sample, the sample is the one that is drawn in memory."""
    X, score, noise = made(1_200_000)
    X, y = X[:, :2], (score + noise > 0).astype(int)
    files = in_files(tmp_path / "files", X, y)
    model = partial(LogisticRegression, 8.0, 1e-8, classes=[0, 1], random_state=1)
    assert outlined(model(), Size(records=len(y), columns=2)).rate < 1
    same_fit(model, X, y, Files(files, engine=Pickled(2)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y": [1, 2]}, "name of a column"),
        ({"groups": ["a"]}, "name of a column"),
        ({"sample_weight": [1.0]}, "name of a column"),
        ({"sample_weight": "y"}, "each once"),
        ({"sample_weight": "nothing"}, "one column 'nothing'"),
        ({"y": "nothing"}, "one column 'nothing'"),
    ],
)
def test_what_is_not_done_on_files_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    """Before a row is read, in one sentence."""
    X, score, _ = made(100)
    files = in_files(tmp_path / "files", X, (score > 0).astype(int))
    with pytest.raises(InvalidParameter, match=said):
        LogisticRegression(classes=[0, 1]).fit(files, **({"y": "y"} | given))
    with pytest.raises(InvalidParameter, match="classes"):
        LogisticRegression().fit(files, "y")
    with pytest.raises(InvalidParameter, match="solver by gradients"):
        LogisticRegression(classes=[0, 1], solver="objective").fit(files, "y")


def test_text_columns_are_refused_by_their_type(tmp_path: Path) -> None:
    """A column that is declared text is refused by its name; no cell is told."""
    pq.write_table(pa.table({"job": ["Jane Doe"], "y": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidParameter, match="'job'") as told:
        LogisticRegression(classes=[0, 1]).fit(tmp_path / "a.parquet", "y")
    assert "Jane" not in str(told.value)


def test_targets_of_text_are_refused_by_their_type(tmp_path: Path) -> None:
    """A regressor refuses a column of text before a row is read, as it does in memory; a classifier takes it."""
    pq.write_table(pa.table({"x": [0.5] * 300, "y": ["no", "yes", "Jane Doe"] * 100}), tmp_path / "a.parquet")
    for model in (LinearRegression(1.0, **FIXED), PoissonRegressor(1.0, **FIXED)):
        with pytest.raises(InvalidParameter, match="got text"):
            model.fit(tmp_path / "a.parquet", "y")
    LogisticRegression(1.0, classes=["no", "yes"], **FIXED).fit(tmp_path / "a.parquet", "y")


def test_rows_are_gone_after_a_fit(tmp_path: Path) -> None:
    """Nothing stays in the folder that a fit was given, and the model needs no files."""
    X, score, noise = made(2_500)
    y = score + noise
    files = in_files(tmp_path / "files", X, y)
    model = LinearRegression(1.0, **FIXED).fit(Files(files, cache=tmp_path / "rows", engine=Stream()), "y")
    assert list((tmp_path / "rows").iterdir()) == []
    assert model.predict(pa.table({f"x{j}": X[:3, j] for j in range(4)})).shape == (3,)


@pytest.mark.parametrize("records", [2_500, pytest.param(1_200_000, marks=pytest.mark.slow)], ids=["few", "sampled"])
@pytest.mark.parametrize("open_ranges", [True, False], ids=["open", "declared"])
def test_a_table_in_files_is_fitted_as_in_memory(tmp_path: Path, records: int, open_ranges: bool) -> None:
    """By a schema, too: ranges learnt, open or inside declared ones, and categories, missing and odd cells alike."""
    rng = np.random.default_rng(3)
    age = rng.normal(40, 12, size=records)
    job = np.array(["baker", "smith", "unlisted"])[rng.integers(0, 3, size=records)]
    table = {
        "age": [None if i % 97 == 0 else value for i, value in enumerate(age.tolist())],
        "job": job.tolist(),
        "ill": np.where(age + 5 * rng.normal(size=records) > 42, "yes", "no").tolist(),
        "note": ["Jane Doe"] * records,
    }
    ends: Any = {} if open_ranges else {"low": -1000.0, "high": 100_000.0}
    schema = Schema(
        columns={"age": Number(**ends), "job": Category(values=("baker", "smith"))},
        target=Target(column="ill", kind="label", values=("no", "yes")),
    )
    for i, part in enumerate((slice(0, 1000), slice(1000, None))):
        pq.write_table(pa.table({name: cells[part] for name, cells in table.items()}), tmp_path / f"{i}.parquet")
    budget = Budget(epsilon=4, delta=1e-8)
    found = [
        fit_table(rows, schema, budget=budget, random=fixed_seed_invalidates_guarantee(9))
        for rows in (table, Files(tmp_path, engine=Pickled(2)), tmp_path)
    ]
    for model in found[1:]:
        assert np.array_equal(model.estimator_.coef_, found[0].estimator_.coef_)
        assert model.schema_ == found[0].schema_
        assert (model.plan, model.guarantee) == (found[0].plan, found[0].guarantee)


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_names_in_files_are_learnt_as_in_memory(tmp_path: Path, neighbours: Any) -> None:
    """Categories and labels without their values: the names shown, and all that follows, are those in memory."""
    rng = np.random.default_rng(3)
    records = 6_000
    code = rng.integers(0, 4, size=records)
    job = np.array(["baker", " smith ", "Jane Doe's own", "judge"], dtype=object)[np.where(code == 2, 0, code)]
    job[[11, 4_000]] = "Jane Doe's own", None
    table = {
        "age": rng.normal(40, 12, size=records).tolist(),
        "code": [None if i == 7 else c for i, c in enumerate(code.tolist())],  # names that are whole numbers
        "job": job.tolist(),
        "ill": np.where(code + rng.normal(size=records) > 1.5, "yes", "no").tolist(),
    }
    columns: Any = {"age": Number(), "code": Category(), "job": Category(missing="indicator")}
    schema = Schema(columns=columns, target=Target(column="ill", kind="label"))
    for i, part in enumerate((slice(0, 1000), slice(1000, None))):
        pq.write_table(pa.table({name: cells[part] for name, cells in table.items()}), tmp_path / f"{i}.parquet")
    pa.table(table).to_pandas().astype({"code": "Int64"}).to_csv(tmp_path / "all.csv", index=False)
    known: Any = {"budget": Budget(epsilon=4, delta=1e-6), "neighbours": neighbours}
    known |= {"records": records} if neighbours == "add_remove" else {}
    found = [
        fit_table(rows, schema, random=fixed_seed_invalidates_guarantee(9), **known)
        for rows in (table, Files(tmp_path, engine=Pickled(2, twice=True)), tmp_path / "all.csv")
    ]
    assert found[0].schema_.columns["job"] == Category(values=("baker", "judge", "smith"), missing="indicator")
    assert found[0].schema_.columns["code"] == Category(values=("0", "1", "2", "3"))
    for model in found[1:]:
        assert np.array_equal(model.estimator_.coef_, found[0].estimator_.coef_)
        assert model.schema_ == found[0].schema_
        assert (model.plan, model.guarantee) == (found[0].plan, found[0].guarantee)


def test_nobodys_name_shows(tmp_path: Path) -> None:
    """Neighbours: a name that one record alone holds, whatever it is, is not shown, and raises nothing."""
    odd = ["Jane Doe", "x" * 100_000, "", " ", "\x00", "1e400", None]
    budget = Budget(epsilon=2, delta=1e-6)
    schema = Schema(columns={"job": Category()}, target=Target(column="y", kind="label", values=("0", "1")))
    for i, name in enumerate(odd):
        file = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table({"job": ["baker", "smith"] * 400 + [name], "y": ["0", "1"] * 400 + ["0"]}), file)
        model = fit_table(file, schema, budget=budget, random=fixed_seed_invalidates_guarantee(i))
        assert model.schema_.columns["job"] == Category(values=("baker", "smith"))


def test_columns_of_a_table_are_refused_before_an_account_is_charged(tmp_path: Path) -> None:
    """A column of dates is refused by its declared type, and nothing is spent on it."""
    days = pa.array([0, 1], pa.date32())
    pq.write_table(pa.table({"born": days, "y": ["0", "1"]}), tmp_path / "a.parquet")
    schema = Schema(columns={"born": Number()}, target=Target(column="y", kind="label", values=("0", "1")))
    account = Account(Budget(epsilon=9, delta=1e-5))
    with pytest.raises(InvalidParameter, match="'born'"):
        fit_table(tmp_path / "a.parquet", schema, budget=Budget(epsilon=1, delta=1e-6), account=account)
    assert account.charges == ()
