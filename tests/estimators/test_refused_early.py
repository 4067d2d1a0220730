"""What public facts refuse is refused before the table is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet.data import cells, csv_files
from privet.engines import Files, csv_cells
from privet.errors import InvalidParameter
from privet.estimators import LogisticRegression, fit_table
from privet.preprocessing import Number, Schema, Target

SCHEMA = Schema(columns={"age": Number(low=0, high=9)}, target=Target(column="ill", kind="label", values=("no", "yes")))
ROWS = 20_000
TABLE = {"age": [i % 10 for i in range(ROWS)], "ill": ["no", "yes"] * (ROWS // 2)}


class Read(AssertionError):
    """A row was."""


def unread(*_: Any, **__: Any) -> Any:
    raise Read


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader works: neither of cells in memory nor of rows of files."""
    read = cells.Reader.read

    def read_none(self: Any, given: Any) -> Any:
        return unread() if len(getattr(given, "codes", given)) else read(self, given)  # a header has no rows

    monkeypatch.setattr(cells.Reader, "read", read_none)
    monkeypatch.setattr(csv_files, "_pieces", unread)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", unread)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", unread)


def tables(folder: Path) -> dict[str, Any]:
    frame = pd.DataFrame(TABLE)
    frame.to_csv(folder / "a.csv", index=False)
    pq.write_table(pa.table(TABLE), folder / "a.parquet")
    return {"dict": TABLE, "pandas": frame, "arrow": pa.table(TABLE), "csv": folder / "a.csv",
            "parquet": folder / "a.parquet"}  # fmt: skip


@pytest.mark.parametrize("form", ["dict", "pandas", "arrow", "csv", "parquet"])
@pytest.mark.parametrize("delta", [1.5, 1.0, 0.0, -1e-6, float("nan")])
def test_a_delta_that_promises_nothing_reads_no_row(tmp_path: Path, unreadable: None, form: str, delta: float) -> None:
    """By `fit_table` and by an estimator."""
    table = tables(tmp_path)[form]
    with pytest.raises(InvalidParameter, match="delta"):
        fit_table(table, SCHEMA, epsilon=1, delta=delta)
    with pytest.raises(InvalidParameter, match="delta"):
        LogisticRegression(1.0, delta, classes=["no", "yes"]).fit(table, "ill")


@pytest.mark.parametrize("form", ["dict", "pandas", "arrow", "parquet"])
def test_a_delta_above_one_over_n_reads_no_row(tmp_path: Path, unreadable: None, form: str) -> None:
    """Where the number of rows is there to see and public."""
    with pytest.raises(InvalidParameter, match=r"Expected delta below 1/n = 5e-05, got 0\.001"):
        fit_table(tables(tmp_path)[form], SCHEMA, epsilon=1, delta=1e-3)


def test_a_delta_above_the_declared_number_of_rows_reads_no_row(tmp_path: Path, unreadable: None) -> None:
    """Under "add_remove", by the public guess, of CSV files too."""
    with pytest.raises(InvalidParameter, match="Expected delta below 1/n"):
        fit_table(tables(tmp_path)["csv"], SCHEMA, epsilon=1, delta=1e-3, neighbours="add_remove", records=ROWS)


@pytest.mark.parametrize("fits", ["table", "estimator"])
def test_a_csv_file_is_read_no_further_than_delta_could_be_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: str
) -> None:
    """A tenth of the rows is enough for a delta of ten over n; nothing of them is kept."""
    path, held = tables(tmp_path)["csv"], list[int]()
    real = csv_cells.csv_blocks

    def counted(*given: Any, **named: Any) -> Any:
        for block in real(*given, **{**named, "rows": 256}):
            held.append(len(block["age"]))
            yield block

    monkeypatch.setattr(csv_cells, "csv_blocks", counted)
    files = Files(path, cache=tmp_path / "cache", keep=True)
    run: Any = {
        "table": lambda: fit_table(files, SCHEMA, epsilon=1, delta=1e-3),
        "estimator": lambda: LogisticRegression(1.0, 1e-3, classes=["no", "yes"]).fit(files, "ill"),
    }[fits]
    with pytest.raises(InvalidParameter, match=r"Expected delta below 1/n, which is at most 0\.00\d+, got 0\.001"):
        run()
    assert 1000 < sum(held) < ROWS / 10
    assert not list((tmp_path / "cache").rglob("*.cells"))


@pytest.mark.medium
def test_under_add_remove_the_number_of_rows_is_not_told(tmp_path: Path) -> None:
    """There it is private: a file of many rows is read to its end, whatever delta is."""
    path = tables(tmp_path)["csv"]
    model = fit_table(path, SCHEMA, epsilon=1, delta=1e-3, neighbours="add_remove", records=500)
    assert np.isfinite(model.estimator_.coef_).all()


@pytest.mark.parametrize("name", ["nothing.toml", "."])
def test_a_schema_that_is_not_there_is_said(tmp_path: Path, unreadable: None, name: str) -> None:
    """In the house's words, before a row is read."""
    with pytest.raises(InvalidParameter, match=r"^Expected the path of a schema file, TOML or JSON, got no") as caught:
        fit_table(TABLE, tmp_path / name, epsilon=1, delta=1e-6)
    assert caught.value.__cause__ is None
