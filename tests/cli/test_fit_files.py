from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from privet.cli import main

SCHEMA = """
[columns.age]
kind = "number"
range = [0, 100]

[target]
column = "ill"
kind = "label"
values = ["no", "yes"]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two Parquet files and a schema."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, size=4000)
    ill = np.where(age + 10 * rng.normal(size=4000) > 50, "yes", "no")
    (tmp_path / "data").mkdir()
    for i in range(2):
        rows = slice(2000 * i, 2000 * (i + 1))
        pq.write_table(pa.table({"age": age[rows], "ill": ill[rows]}), tmp_path / "data" / f"{i}.parquet")
    (tmp_path / "table.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "broken.parquet").write_text("Jane Doe", encoding="utf-8")
    return tmp_path


def fitted(files: Path, table: str, *more: str) -> tuple[int, str]:
    """Exit code and output of `privet fit`."""
    told = ["--schema", str(files / "table.toml"), "--epsilon", "1", "--delta", "1e-6", "--out", str(files / "model")]
    result = CliRunner().invoke(main, ["fit", table, *told, *more])
    return result.exit_code, result.stdout or result.output


@pytest.mark.parametrize("table", ["data", "data/*.parquet", "data/0.parquet"])
def test_parquet_files_are_fitted(files: Path, table: str) -> None:
    """A folder, a pattern or a file of Parquet rows makes a model; encoded rows are gone afterwards."""
    code, said = fitted(files, str(files / table), "--cache", str(files / "rows"), "--json")
    assert code == 0, said
    assert json.loads(said)["epsilon"] <= 1
    assert (files / "model" / "model.json").is_file()
    assert list((files / "rows").iterdir()) == []


@pytest.mark.parametrize("table", ["data.csv", "csv", "csv/*.csv"])
def test_csv_files_are_fitted(files: Path, table: str) -> None:
    """So do CSV files, with or without a folder for their cells, which are gone afterwards."""
    rows = pq.read_table(files / "data").to_pylist()
    (files / "csv").mkdir()
    for name, part in (("data", rows), ("csv/0", rows[:1500]), ("csv/1", rows[1500:])):
        lines = ["age,ill", *(f"{row['age']},{row['ill']}" for row in part)]
        (files / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    for more in ([], ["--cache", str(files / "rows")]):
        code, said = fitted(files, str(files / table), "--json", *more)
        assert code == 0, said
        assert json.loads(said)["epsilon"] <= 1
    assert list((files / "rows").iterdir()) == []


@pytest.mark.parametrize(
    ("table", "more", "said"),
    [
        ("data/*.parquet", ["--engine", "dask"], "--scheduler"),
        ("data/*.parquet", ["--scheduler", "tcp://here:1"], "--scheduler"),
        ("nothing/*.parquet", [], "got none"),
        ("table.toml", ["--cache", "rows"], "one column 'age'"),
        ("nothing/*.csv", [], "got none"),
        ("data.csv", ["--engine", "dask"], "--scheduler"),
        ("nothing.csv", [], "no file"),
        ("broken.parquet", [], "got 'broken.parquet', which cannot be read"),
    ],
)
def test_what_cannot_be_fitted_is_refused(files: Path, table: str, more: list[str], said: str) -> None:
    """In words, with no model half written."""
    code, output = fitted(files, str(files / table), *more)
    assert code != 0
    assert said in output
    assert "Jane" not in output
    assert not (files / "model").exists()


def test_a_fit_with_a_journal_goes_on_from_it(files: Path) -> None:
    """The same command again returns what was released; another budget is another run, and is refused."""
    told = ["--journal", str(files / "fit.journal"), "--json"]
    models = []
    for _ in range(2):
        code, said = fitted(files, str(files / "data"), *told)
        assert code == 0, said
        models.append((files / "model" / "model.json").read_text())
    assert models[0] == models[1]
    code, said = fitted(files, str(files / "data"), *told, "--epsilon", "2")
    assert code != 0
    assert "Expected the journal of this run" in said
