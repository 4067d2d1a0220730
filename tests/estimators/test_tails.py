from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy import sparse
from sklearn.base import clone
from tests.engines.test_fits_in_parts import in_files
from tests.engines.test_parts import Pickled
from tests.estimators import test_transcripts
from tests.estimators.test_transcripts import CELLS, Transcript, fitted, most_moved, planned

from privet import Budget
from privet.cli import main
from privet.engines import Files
from privet.errors import InvalidParameter
from privet.estimators import HuberRegressor, LinearRegression, LogisticRegression, fit_table, load_model, plan_table
from privet.preprocessing import Category, Number, Schema, Target, write_schema
from privet.preprocessing.tails import Root
from privet.randomness import fixed_seed_invalidates_guarantee

RNG = np.random.default_rng(8)
X = np.column_stack([RNG.lognormal(4, 1.5, 6_000), RNG.normal(3, 2, 6_000), 9 * RNG.standard_t(1.5, 6_000)])
SCORE = np.log(X[:, 0]) - 4 + 0.3 * X[:, 1] - np.arcsinh(X[:, 2] / 5)
Y = SCORE + RNG.normal(0, 0.5, 6_000)
line = partial(LinearRegression, 8.0, random_state=3)


def test_bent_columns_are_shown_and_used() -> None:
    """Which columns, how, and their coefficients; predictions are by both, of sparse rows and missing values too."""
    clip, bend = line().fit(X, Y), line(tails="bend").fit(X, Y)
    assert clip.transforms_ == (None, None, None)
    assert not clip.tail_coef_.any()
    assert [each is not None for each in bend.transforms_] == [True, False, True]
    assert bend.coef_.shape == bend.tail_coef_.shape == (3,)
    assert bend.tail_coef_.astype(bool).tolist() == [True, False, True]
    assert bend.plan_ == bend.plan(records=6_000, columns=3)
    assert bend.plan_.names == clip.plan_.names
    assert bend.score(X, Y) > clip.score(X, Y) + 0.05
    low, high = bend.ranges_
    kept = np.clip(X, low, high)
    maps = [(j, each) for j, each in enumerate(bend.transforms_) if each is not None]
    wanted = kept @ bend.coef_ + sum(each(kept[:, j]) * bend.tail_coef_[j] for j, each in maps) + bend.intercept_
    np.testing.assert_allclose(bend.predict(X), np.clip(wanted, *bend.target_range_))
    np.testing.assert_allclose(bend.predict(sparse.csr_matrix(X)), bend.predict(X))
    assert np.isfinite(bend.predict([[np.nan] * 3, [np.inf, 0, -np.inf]])).all()


def test_several_classes_have_bent_columns_too() -> None:
    """One coefficient a class and column, those of light columns 0."""
    y = np.digitize(SCORE, [-1, 1])
    model = LogisticRegression(8.0, classes=[0, 1, 2], tails="bend", random_state=3).fit(X, y)
    assert model.tail_coef_.shape == model.coef_.shape == (3, 3)
    assert model.tail_coef_.any(axis=0).tolist() == [True, False, True]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize(
    "given", [{"inference": 0.5}, {"bounds": (-1e4, 1e4), "bounds_exact": True}, {"row_norm": 1e4}]
)
def test_nothing_is_bent_where_it_would_not_be_honest(given: dict[str, Any]) -> None:
    """With intervals, exact bounds, a bound on rows, a named solver, and of sparse tables, a fit is as with "clip"."""
    for table in (X, sparse.csr_matrix(X)) if not given.get("inference") else (X,):
        bend, clip = (line(tails=tails, **given).fit(table, Y) for tails in ("bend", "clip"))
        assert bend.transforms_ == (None,) * 3
        assert np.array_equal(bend.coef_, clip.coef_)
        assert bend.plan_ == clip.plan_
    assert line(tails="bend").fit(sparse.csr_matrix(X), Y).transforms_ == (None,) * 3
    assert line(tails="bend", solver="gradient").fit(X, Y).transforms_ == (None,) * 3


def test_nothing_is_bent_where_the_solver_samples() -> None:
    """The plan of a tall table, by its rows or its schema, is the one of "clip"; of a shorter one it is not."""
    budget = Budget(epsilon=8, delta=1e-8)
    for rows, same in ((1_200_000, True), (6_000, False)):
        plans = [line(delta=1e-8, tails=tails).plan(records=rows, columns=2) for tails in ("clip", "bend")]
        tables = [plan_table(SCHEMA, records=rows, budget=budget, tails=tails) for tails in ("clip", "bend")]
        assert (plans[0] == plans[1]) == same
        assert (tables[0] == tables[1]) == same


def test_declared_ranges_are_bent_by_what_is_learnt_inside() -> None:
    """In their own unit; not about a point other than 0."""
    model = line(tails="bend", bounds=([0, -50, -1e6], [1e6, 50, 1e6])).fit(X, Y)
    maps: Any = model.transforms_
    assert maps[1] is None
    assert 0.1 < maps[0].unit / np.median(X[:, 0]) < 0.6
    assert 0.1 < maps[2].unit / np.median(np.abs(X[:, 2])) < 0.6
    far = line(tails="bend", bounds=([1e3, -50, -1e6], [1e6, 50, 1e6])).fit(X + np.array([1e3, 0, 0]), Y)
    assert far.transforms_[0] is None
    assert far.transforms_[2] is not None


def test_tails_of_another_kind_are_refused() -> None:
    """Before anything is read."""
    with pytest.raises(InvalidParameter, match="tails"):
        line(tails="log").fit(None, None)  # type: ignore[arg-type]  # which is what is refused


def test_a_fit_of_files_is_the_fit_in_memory(tmp_path: Path) -> None:
    """With the same noise, to the last bit, bent columns included."""
    few, target = X[:3_000], Y[:3_000]
    files = in_files(tmp_path / "files", few, target)
    here = line(tails="bend").fit(few, target)
    there = line(tails="bend").fit(Files(files, engine=Pickled(3, twice=True)), "y")
    assert here.tail_coef_.any()
    for name in ("coef_", "tail_coef_", "intercept_"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    assert here.transforms_ == there.transforms_
    assert here.plan_ == there.plan_


def check(neighbours: Any, patch: pytest.MonkeyPatch) -> None:
    """Fit neighbours with odd cells on one transcript, and compare."""
    rows = np.random.default_rng(5).lognormal(0, 2, size=(test_transcripts.ROWS, 3))
    patch.setattr(test_transcripts, "REST", rows * [1, 30, -1])
    transcript = Transcript(patch)
    more = {"records": test_transcripts.ROWS} if neighbours == "add_remove" else {}
    settings: Any = {"neighbours": neighbours, "random_state": 1, "max_iter": 3, **more}
    model = LogisticRegression(30.0, classes=[0, 1], tails="bend", **settings)
    among: dict[str, list[Any]] = {"add_remove": [None], "zero_out": CELLS[:1], "replace_one": CELLS}
    found = {}
    for cells in [*among[neighbours], *CELLS]:
        found[str(cells)] = transcript.of(partial(fitted, model, cells, "records"))
        assert sum(each is not None for each in model.transforms_) >= 2
    limits, most = planned(model), dict.fromkeys(planned(model), Fraction(0))
    for one in among[neighbours]:
        for other in CELLS:
            for name, moved in most_moved(found[str(one)], found[str(other)]).items():
                assert moved <= limits[name], name
                most[name] = max(most[name], moved)
    assert {"ranges: octaves", "second moment 1", "gradients"} <= set(most)
    assert all(moved > 0 for moved in most.values())


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_one_record_moves_no_release_by_more_than_is_planned(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole fits with bent columns: in fractions, and each of the releases moves."""
    check(neighbours, monkeypatch)


@pytest.mark.medium
def test_a_map_that_follows_the_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: values bent by the mean of those beside them, so that a record changes other rows."""
    right = Root.__call__
    monkeypatch.setattr(Root, "__call__", lambda self, values: right(self, values / (1 + np.abs(values).mean())))
    with pytest.raises(AssertionError, match=r"moment|mean|norms|gradients"):
        check("replace_one", monkeypatch)


def columns_of(rows: Any, target: Any) -> dict[str, Any]:
    """The rows as a table with a category before its numbers."""
    jobs = np.where(np.arange(len(rows)) % 2, "baker", "smith")
    return {"job": jobs, "paid": rows[:, 0], "grade": rows[:, 1], "owed": rows[:, 2], "y": target}


SCHEMA = Schema(
    columns={
        "job": Category(values=("baker", "smith")),
        "paid": Number(),
        "grade": Number(low=-50, high=50),
        "owed": Number(low=-1e6, high=1e6),
    },
    target=Target(column="y", kind="number"),
)


def test_tables_are_bent_kept_and_loaded(tmp_path: Path) -> None:
    """By open ranges and declared ones; a saved model predicts the same, one without bent columns is as it was."""
    table, budget = columns_of(X, Y), Budget(epsilon=8, delta=1e-6)
    known: Any = {"budget": budget, "random": fixed_seed_invalidates_guarantee(4)}
    model = fit_table(table, SCHEMA, tails="bend", **known)
    assert set(model.bent) == {"paid", "owed"}
    assert model.estimator_.tail_coef_.astype(bool).tolist() == [False, False, True, False, True]
    assert model.plan == plan_table(SCHEMA, records=6_000, budget=budget, tails="bend")
    model.save(tmp_path / "bent")
    loaded = load_model(tmp_path / "bent")
    assert np.array_equal(loaded.predict(table), model.predict(table))
    assert loaded.bent == model.bent
    assert loaded.tails == "bend"
    assert str(loaded.summary()) == str(model.summary())
    assert '"version": 3' in (tmp_path / "bent" / "model.json").read_text(encoding="utf-8")
    plain = fit_table(table, SCHEMA, **known)
    assert model.score(table) > plain.score(table) + 0.05
    assert plain.bent == {}
    plain.save(tmp_path / "plain")
    kept = (tmp_path / "plain" / "model.json").read_text(encoding="utf-8")
    assert '"version": 2' in kept
    assert "roots" not in kept


def test_a_summary_names_bent_columns() -> None:
    """With both coefficients, as the one of the column alone would mislead; nothing is said where none is bent."""
    model = line(tails="bend").fit(X, Y)
    said = str(model.summary())
    first, last = model.tail_coef_[[0, 2]]
    first_map, _, last_map = model.transforms_
    assert f"together: x0 by {first:.5g} for x -> {first_map}, x2 by {last:.5g} for x -> {last_map}.\n" in said
    assert [row[1] for row in model.summary().rows[:3]] == [f"{value:.5g}" for value in model.coef_]
    assert "tail_coef_" not in str(line().fit(X, Y).summary())


def test_a_table_is_bent_for_the_estimator_that_is_given() -> None:
    """Unless it has intervals or a named solver, or says itself what is done about tails, which is refused."""
    table = columns_of(X[:3_000], Y[:3_000])

    def of(estimator: Any, tails: Any = "bend") -> Any:
        known: Any = {"epsilon": 8, "delta": 1e-6, "tails": tails, "random": fixed_seed_invalidates_guarantee(4)}
        return fit_table(table, SCHEMA, estimator, **known)

    model = of(HuberRegressor())
    assert set(model.bent) == {"paid", "owed"}
    assert clone(model).tails == "bend"
    for plain in (LinearRegression(inference=0.5), LinearRegression(solver="gradient")):
        bend, clip = of(plain), of(plain, "clip")
        assert bend.bent == {}
        assert bend.plan == clip.plan
        assert np.array_equal(bend.estimator_.coef_, clip.estimator_.coef_)
    with pytest.raises(InvalidParameter, match="without tails"):
        of(LinearRegression(tails="bend"))
    with pytest.raises(InvalidParameter, match="tails"):
        of(None, "log")


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_one_record_of_a_table_moves_no_release_by_more_than_is_planned(
    neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole fits of tables with bent columns, one transcript: in fractions, and each of the releases moves."""
    rows = np.random.default_rng(5).lognormal(0, 2, size=(test_transcripts.ROWS, 3)) * [1, 30, -1]
    target = Target(column="y", kind="label", values=("0", "1"))
    schema = Schema(columns={"a": Number(), "b": Number(), "c": Number(low=-1e9, high=1e9)}, target=target)
    transcript = Transcript(monkeypatch)
    known: Any = {"epsilon": 30, "delta": 1e-6, "neighbours": neighbours, "tails": "bend"}
    known |= {"records": test_transcripts.ROWS} if neighbours == "add_remove" else {}
    models = []

    def fit(cells: Any) -> None:
        more = rows if cells is None else np.vstack([cells, rows])
        labels = ["1" if row[0] > 1 else "0" for row in rows]
        labels = labels if cells is None else ["" if np.isnan(cells).all() else "1", *labels]
        table = dict(zip("abc", more.T, strict=True)) | {"y": labels}
        random = fixed_seed_invalidates_guarantee(1)
        models.append(fit_table(table, schema, LogisticRegression(max_iter=3), random=random, **known))

    bases: list[Any] = [None] if neighbours == "add_remove" else CELLS
    found = {str(cells): transcript.of(partial(fit, cells)) for cells in [*bases, *CELLS]}
    assert all(len(model.bent) >= 2 for model in models)
    limits = planned(models[0])
    most = dict.fromkeys(limits, Fraction(0))
    for one in bases:
        for other in CELLS:
            for name, moved in most_moved(found[str(one)], found[str(other)]).items():
                assert moved <= limits[name], name
                most[name] = max(most[name], moved)
    assert {"ranges: octaves", "usable records", "second moment 1", "gradients"} <= set(most)
    assert all(moved > 0 for moved in most.values()), most


def test_a_table_in_files_is_bent_as_in_memory(tmp_path: Path) -> None:
    """With the same noise, to the last bit."""
    table = columns_of(X[:3_000], Y[:3_000])
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=700)
    known: Any = {"budget": Budget(epsilon=8, delta=1e-6), "tails": "bend"}
    here, there = (
        fit_table(given, SCHEMA, random=fixed_seed_invalidates_guarantee(4), **known)
        for given in (table, Files(tmp_path / "rows.parquet"))
    )
    assert here.bent
    assert here.bent == there.bent
    assert np.array_equal(here.estimator_.tail_coef_, there.estimator_.tail_coef_)
    assert np.array_equal(here.estimator_.coef_, there.estimator_.coef_)


def test_the_command_says_which_columns_are_bent(tmp_path: Path) -> None:
    """`privet fit --tails bend` names them, and its model predicts by them."""
    table = columns_of(X, Y)
    write_schema(SCHEMA, tmp_path / "schema.toml")
    csv = "\n".join([",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))])
    (tmp_path / "rows.csv").write_text(csv + "\n", encoding="utf-8")
    command = ["fit", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "8"]
    command += ["--delta", "1e-6", "--tails", "bend", "--out", str(tmp_path / "model")]
    said = CliRunner().invoke(main, command)
    assert said.exit_code == 0, said.output
    assert "Bent: paid has a second column, " in said.output
    assert set(load_model(tmp_path / "model").bent) == {"paid", "owed"}
