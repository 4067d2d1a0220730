"""People with many rows, of tables in files: whole people in each part, and the fit that memory has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.test_parts import Pickled

from privet import Budget
from privet.data.cells import Numbers
from privet.data.people import label_of, one_row_each, person_numbers, row_counts
from privet.engines import Files, Stream, people_parts
from privet.engines.block_source import BlockSource
from privet.engines.blocks_of_rows import FileRows, TargetColumn
from privet.engines.cache import Cache
from privet.engines.raw_files import mapped_batch
from privet.engines.sources import source_parts
from privet.errors import InvalidParameter
from privet.estimators import (
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    fit_table,
)
from privet.preprocessing import Category, Number, Schema, Target
from privet.randomness import fixed_seed_invalidates_guarantee

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
FIXED: dict[str, Any] = {"delta": 1e-6, "random_state": 1, "max_iter": 6}
MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(2.0, classes=[0, 1], **FIXED),
    "counts": lambda: PoissonRegressor(2.0, **FIXED),
    "huber": lambda: HuberRegressor(0.1, target_range=(-5, 5), **FIXED),
    "add_remove": lambda: LogisticRegression(2.0, classes=[0, 1], neighbours="add_remove", records=900, **FIXED),
}


def visits(records: int = 2_500) -> dict[str, list[Any]]:
    """Rows of about a third as many people, in no order; labels written in several ways, some missing."""
    rng = np.random.default_rng(records)
    X = rng.normal(size=(records, 2)) * [1.0, 20.0]
    person = rng.integers(0, records // 3, size=records)
    person[: records // 10] = 7  # who is often there
    ways: list[Callable[[int], str]] = [str, lambda i: f" 0{i} ", lambda i: f"{i}.0", lambda i: f"{i}e0"]
    who = [None if i % 50 == 3 else ways[i % 4](label) for i, label in enumerate(person.tolist())]
    who[9], who[11] = "nan", "Jane Doe"
    table = {"a": X[:, 0], "b": X[:, 1], "ill": (X[:, 0] + rng.normal(size=records) > 0).astype(int)}
    order = rng.permutation(records)
    return {**{name: column[order].tolist() for name, column in table.items()}, "who": [who[i] for i in order]}


def in_files(folder: Path, table: dict[str, Any]) -> Path:
    """The rows in three files, people's apart."""
    folder.mkdir()
    rows = pa.table(table)
    for i, (first, last) in enumerate(((0, 300), (300, 301), (301, rows.num_rows))):
        pq.write_table(rows.slice(first, last - first), folder / f"{i}.parquet", row_group_size=500)
    return folder


@pytest.fixture(params=[1 << 26, 2_000], ids=["few buckets", "many"])
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts people are dealt out to."""
    monkeypatch.setattr(people_parts, "_BYTES", request.param)


@pytest.mark.medium
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in ("huber",) else n for n in MODELS])
def test_people_in_files_are_fitted_as_in_memory(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noise, coefficients, plan and guarantee are those of arrays, however people are dealt out."""
    model = MODELS[name]
    table = visits()
    files = in_files(tmp_path / "files", table)
    pa.table(table).to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    here = model().fit(np.column_stack([table["a"], table["b"]]), table["ill"], groups=table["who"])
    assert here.guarantee_.unit == "person"
    for size, rows in ((1 << 26, tmp_path / "rows.csv"), (5_000, Files(files, engine=Pickled(3, twice=True)))):
        monkeypatch.setattr(people_parts, "_BYTES", size)
        there = model().fit(rows, "ill", groups="who")
        assert np.array_equal(there.coef_, here.coef_)
        assert np.array_equal(there.intercept_, here.intercept_)
        assert (there.plan_, there.guarantee_) == (here.plan_, here.guarantee_)


@pytest.mark.medium
def test_a_table_of_people_in_files_is_fitted_as_in_memory(tmp_path: Path) -> None:
    """Ranges and names are learnt from the same row of each person, and the same model follows."""
    table = visits(6_000)
    table["job"] = [
        "baker" if a > 0 else "smith" if b > 0 else "own" for a, b in zip(table["a"], table["b"], strict=True)
    ]
    table["ill"] = ["yes" if ill else "no" for ill in table["ill"]]
    files = in_files(tmp_path / "files", table)
    pa.table(table).to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    columns: Any = {"a": Number(), "b": Number(low=-1000, high=1000), "job": Category()}
    schema = Schema(columns=columns, target=Target(column="ill", kind="label", values=("no", "yes")))
    found = [
        fit_table(
            rows,
            schema,
            budget=Budget(epsilon=4, delta=1e-6),
            groups="who",
            random=fixed_seed_invalidates_guarantee(5),
        )
        for rows in (table, tmp_path / "rows.csv", Files(files, engine=Pickled(2, twice=True)))
    ]
    assert found[0].schema_.columns["job"] == Category(values=("baker", "own", "smith"))
    for model in found[1:]:
        assert np.array_equal(model.estimator_.coef_, found[0].estimator_.coef_)
        assert model.schema_ == found[0].schema_
        assert (model.plan, model.guarantee) == (found[0].plan, found[0].guarantee)


@pytest.mark.usefixtures("buckets")
def test_all_rows_of_a_person_are_in_one_part(tmp_path: Path) -> None:
    """In the order of the source, and in the order in which memory numbers people; nobody's are in none."""
    table = visits()
    parts = source_parts(in_files(tmp_path / "files", table))
    held = people_parts.people_parts(Pickled(2, twice=True), parts, Cache(None), columns=["a", "b"], groups="who")
    numbers = person_numbers(table["who"], hashed=True)
    assert held.people.sizes.tolist() == row_counts(numbers).tolist()
    first = 0
    for part, count in zip(held.parts, held.counts.tolist(), strict=True):
        rows = mapped_batch(part)
        mine = (numbers >= first) & (numbers < first + count)
        assert rows.column("a").to_pylist() == np.array(table["a"])[mine].tolist()
        assert (rows.column(held.column).to_numpy() + first).tolist() == numbers[mine].tolist()
        first += count
    assert len(list(held.cache.folder.iterdir())) == len(held.parts)  # and no other file is left


@pytest.mark.usefixtures("buckets")
def test_one_row_of_each_person_is_the_one_in_memory(tmp_path: Path) -> None:
    """Picked in files as in memory, so a person is in what is learnt first with one row, and only so."""
    table = visits()
    parts = source_parts(in_files(tmp_path / "files", table))
    held = people_parts.people_parts(Stream(), parts, Cache(None), columns=["a", "b", "ill"], groups="who")
    opener = FileRows(("a", "b"), "ill", TargetColumn("ill", Numbers()), people=held.column)
    source = BlockSource(Stream(), held.parts, opener, held.counts, held.cache, held.people)
    rows = one_row_each(person_numbers(table["who"], hashed=True), fixed_seed_invalidates_guarantee(3))
    picked = one_row_each(held.people, fixed_seed_invalidates_guarantee(3))
    found = source.at(picked)
    there = np.concatenate([mapped_batch(part).column("target").to_numpy() for part in found.parts])
    values = np.concatenate([mapped_batch(part).column("rows").values.to_numpy() for part in found.parts])
    assert sorted(values[::2].tolist()) == sorted(np.array(table["a"])[rows].tolist())
    assert len(there) == found.records == len(rows)
    assert source.at(picked) is found
    with pytest.raises(NotImplementedError):  # a person's rows must not be counted one by one
        source.totals([])
    with pytest.raises(NotImplementedError):
        source.met(2)


@pytest.mark.usefixtures("buckets")
def test_a_person_changes_its_own_part_alone(tmp_path: Path) -> None:
    """Neighbours: whatever the rows of one person become, in number and in kind, all others' are as they were."""
    table = visits(600)
    mine = [label_of(who) == "7" for who in table["who"]]
    other = {name: [cell for cell, own in zip(cells, mine, strict=True) if not own] for name, cells in table.items()}
    more: dict[str, Any] = {
        "a": [1e300, None, -0.0],
        "b": [0.0] * 3,
        "ill": [5, None, 1],
        "who": ["07", "7.0", "x" * 10_000],
    }
    other = {name: more[name] + cells for name, cells in other.items()}
    found = []
    for i, rows in enumerate((table, other)):
        parts = source_parts(in_files(tmp_path / str(i), rows))
        held = people_parts.people_parts(Stream(), parts, Cache(None), columns=["a", "b", "ill", "who"], groups="who")
        people: dict[Any, list[Any]] = {}
        for row in (row for part in held.parts for row in mapped_batch(part).to_pylist()):
            people.setdefault(label_of(row["who"]), []).append((row["a"], row["b"], row["ill"]))
        assert people.pop("7")
        people.pop(more["who"][2], None)
        found.append(people)
    assert found[0] == found[1]


def test_what_is_not_done_with_people_is_refused(tmp_path: Path) -> None:
    """Batches, weights beside groups, labels that are no column or dates, nobody at all: before anything is charged."""
    table = visits(200)
    files = in_files(tmp_path / "files", {**table, "day": pa.array(range(200), pa.int32()).cast(pa.date32())})
    known: Any = {"classes": [0, 1], **FIXED}
    for given, said in (
        ({"groups": table["who"]}, "name of a column"),
        ({"groups": "nothing"}, "one column 'nothing'"),
        ({"groups": "ill"}, "each once"),
        ({"groups": "who", "sample_weight": "a"}, "groups or weights, got both"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            LogisticRegression(**known).fit(files, "ill", **given)
    with pytest.raises(InvalidParameter, match="reads all records"):
        LogisticRegression(solver="sgd", **known).fit(files, "ill", groups="who")
    pq.write_table(pa.table({"a": [0.5], "ill": [1], "who": pa.array([3], pa.date32())}), tmp_path / "dates.parquet")
    with pytest.raises(InvalidParameter, match="Expected groups to hold numbers or texts, got dates"):
        LogisticRegression(**known).fit(tmp_path / "dates.parquet", "ill", groups="who")
    pq.write_table(pa.table({"a": [0.5], "ill": [1], "who": ["NA"]}), tmp_path / "nobody.parquet")
    with pytest.raises(InvalidParameter, match="somebody's"):
        LogisticRegression(**known).fit(tmp_path / "nobody.parquet", "ill", groups="who")
    model = LogisticRegression(neighbours="add_remove", records=100, **known)
    model.fit(tmp_path / "nobody.parquet", "ill", groups="who")
