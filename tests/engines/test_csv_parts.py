"""CSV files out of core: read once, a block at a time, and each cell as in memory."""

from __future__ import annotations

import csv
import gc
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.test_parts import Pickled

from privet import Budget
from privet.data import read
from privet.data.cells import Numbers, Texts
from privet.data.csv_files import CsvFile, csv_blocks
from privet.engines import Files, csv_cells
from privet.engines.cache import Cache
from privet.engines.raw_files import mapped_batch
from privet.errors import EngineFailure, InvalidParameter
from privet.estimators import LinearRegression, LogisticRegression, fit_table
from privet.preprocessing import Category, Number, Schema, Target
from privet.randomness import fixed_seed_invalidates_guarantee

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
NAMES = ("age", "job", "wage", "ill", "note")
SCHEMA = Schema(
    columns={"age": Number(), "job": Category(values=("baker", "smith")), "wage": Number(low=0, high=9000)},
    target=Target(column="ill", kind="label", values=("no", "yes")),
)
ODD: dict[str, bytes] = {
    "text in numbers": b"Jane Doe,baker,Jane Doe,yes,a\n",
    "beyond floats": b"1" + b"0" * 400 + b",smith,-1e999,no,b\n",
    "quoted giant": b'31,"' + b"x,\n" * 100_000 + b'",40,no,c\n',
    "NUL": b"3\x001,ba\x00ker,40,no\x00,d\n",
    "not UTF-8": b"\xff31,sm\xffith,\xed\xa0\x80,no,e\n",
    "ragged": b"31\n31,smith,40,no,f,g,h\n,,,,\n\n",
    "open quote": b'31,"smith,40,no,i\n',
    "blanks": b" 31 , smith ,\t40, yes ,j\n",
    "other line end": b"31,smith\r44,40,no,k\n",
    "quoted quotes": b'"31","smi""th","40","no","""\n"\n',
}


def lines(records: int) -> list[str]:
    """Rows as text, of people whose age and wage tell whether they are ill."""
    rng = np.random.default_rng(records)
    age, wage = rng.normal(40, 12, size=records).round(3), rng.uniform(0, 5000, size=records).round(2)
    job = np.array(["baker", "smith", "unlisted", ""])[rng.integers(0, 4, size=records)]
    ill = np.where(age - wage / 500 + 5 * rng.normal(size=records) > 35, "yes", "no")
    return [f"{a},{j},{w},{i},Jane Doe" for a, j, w, i in zip(age, job, wage, ill, strict=True)]


def written(folder: Path, rows: list[str], *more: bytes) -> list[Path]:
    """The rows in three files of unlike size, odd ones in the second."""
    folder.mkdir()
    head = ",".join(NAMES).encode() + b"\n"
    bodies = ["\n".join(part).encode() for part in (rows[:700], rows[700:701], rows[701:])]
    bodies[1] += b"\n" + b"".join(more)
    paths = [folder / f"{i}.csv" for i in range(3)]
    for path, body in zip(paths, bodies, strict=True):
        path.write_bytes(head + body)
    return paths


def in_memory(paths: list[Path]) -> dict[str, Any]:
    """All cells of the files, as texts, as the reader of CSV has them in memory."""
    tables = [read(path, {name: Texts() for name in NAMES}) for path in paths]
    return {name: np.concatenate([table[name] for table in tables]) for name in NAMES}


@pytest.mark.medium
def test_csv_files_are_fitted_as_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a folder or a pattern of them, whatever cells hold and wherever blocks end: to the last bit."""
    paths = written(tmp_path / "rows", lines(2_500), *ODD.values())
    whole = tmp_path / "whole.csv.gz"
    bodies = [path.read_bytes().split(b"\n", 1)[1].rstrip(b"\n") for path in paths]
    whole.write_bytes(gzip.compress(b"\n".join([",".join(NAMES).encode(), *bodies])))

    def fitted(table: Any) -> Any:
        return fit_table(
            table, SCHEMA, budget=Budget(epsilon=4, delta=1e-8), random=fixed_seed_invalidates_guarantee(9)
        )

    here = fitted(in_memory(paths))
    pattern = Files(tmp_path / "rows/*.csv", engine=Pickled(2, twice=True))
    for letters, table in ((1, str(tmp_path / "rows")), (1 << 26, whole), (1 << 26, pattern)):
        monkeypatch.setattr(csv_cells, "_BYTES", letters)  # 1 for blocks of 256 rows
        there = fitted(table)
        assert np.array_equal(there.estimator_.coef_, here.estimator_.coef_)
        assert there.schema_ == here.schema_
        assert (there.plan, there.guarantee) == (here.plan, here.guarantee)


@pytest.mark.medium
@pytest.mark.parametrize("kind", [LogisticRegression, LinearRegression])
def test_estimators_take_a_csv_file(tmp_path: Path, kind: Any) -> None:
    """All columns but the target are features; a cell that is no number is missing, as it is in a list of rows."""
    paths = written(tmp_path / "rows", lines(2_500), *ODD.values())
    found = in_memory(paths)
    y = "ill" if kind is LogisticRegression else "wage"
    X = np.column_stack([Numbers().read(found[name]) for name in NAMES if name != y])
    known = {"classes": ["no", "yes"]} if kind is LogisticRegression else {}
    here, there = (kind(2.0, 1e-6, bounds=(-10, 10_000), random_state=3, **known) for _ in range(2))
    here.fit(X, found[y].tolist())
    there.fit(tmp_path / "rows", y=y)
    assert np.array_equal(there.coef_, here.coef_)
    assert there.guarantee_ == here.guarantee_
    assert there.feature_names_in_.tolist() == [name for name in NAMES if name != y]


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
def test_an_odd_record_changes_no_other(tmp_path: Path, odd: bytes) -> None:
    """Neighbours: with and without it, the other records' cells are the same, and nothing is raised."""
    rows = lines(900)
    cells = []
    for i, more in enumerate((b"", odd)):
        paths = written(tmp_path / str(i), rows, more)
        parts = Files([str(p) for p in paths]).opened(columns=NAMES, texts=("job", "ill", "note"))
        cells.append([row for part in parts[0] for row in mapped_batch(part).to_pylist()])
    plain, other = cells
    count = len(other) - len(plain)
    assert 1 <= count <= 3
    assert str(other[:701] + other[701 + count :]) == str(plain)  # NaN is NaN


def test_blocks_end_anywhere(tmp_path: Path) -> None:
    """Where a block ends, by rows or by letters, moves no cell."""
    path = written(tmp_path / "rows", lines(2_000), *ODD.values())[1]
    path.write_bytes(path.read_bytes() + "\n".join(lines(1_000)).encode())
    readers: dict[str, Any] = {"age": Numbers(), "note": Texts()}
    whole = read(path, readers)
    for rows, letters, least in ((256, 1 << 30, 4), (600, 1 << 30, 2), (1 << 20, 400_000, 1), (1 << 20, 1 << 30, 1)):
        blocks = list(csv_blocks(path, readers, rows=rows, letters=letters))
        assert len(blocks) >= least
        assert all(len(block["age"]) <= rows for block in blocks)
        for name, cells in whole.items():
            assert str(np.concatenate([block[name] for block in blocks]).tolist()) == str(cells.tolist())


def test_files_of_cells_are_for_their_owner_and_gone_afterwards(tmp_path: Path) -> None:
    """Nobody else may read them, their names tell nothing, and a file without rows has a part of none."""
    path = tmp_path / "none.csv"
    path.write_text("age,ill", encoding="utf-8")
    parts, cache = Files(path, cache=tmp_path / "cells").opened(texts=("ill",))
    assert [mapped_batch(part).num_rows for part in parts] == [0]
    assert {Path(part.path).stat().st_mode & 0o777 for part in parts} == {0o600}
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    cache.close()
    assert list((tmp_path / "cells").iterdir()) == []


def test_what_cannot_be_read_is_refused_by_public_facts(tmp_path: Path) -> None:
    """Another header, another format, no header, no such column, a file cut off: in words, none of them a cell's."""
    first, *_ = written(tmp_path / "rows", lines(800))
    other = tmp_path / "other.csv"
    other.write_text("age,job\n1,Jane Doe\n", encoding="utf-8")
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    parquet = tmp_path / "a.parquet"
    parquet.write_bytes(b"PAR1")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(first.read_bytes())[:-200])
    twice = tmp_path / "twice.csv"
    twice.write_text("age,age\n1,Jane Doe\n", encoding="utf-8")
    for paths, columns, said in (
        ([first, other], NAMES, "same header"),
        ([first, parquet], NAMES, "one format"),
        ([empty], None, "first line"),
        ([first], ("nothing",), "one column 'nothing'"),
        ([twice], None, "several of that name"),
        ([tmp_path / "nothing.csv"], None, "got none"),
        ([cut], NAMES, "to its end"),
    ):
        with pytest.raises((InvalidParameter, EngineFailure), match=said) as told:
            Files(paths, cache=tmp_path / "cells").opened(columns=columns)
        assert "Jane" not in str(told.value)
        assert told.value.__context__ is None
    del told  # which holds what was open where it was raised
    gc.collect()
    assert list((tmp_path / "cells").iterdir()) == []


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else some records might be counted twice, others not at all."""
    paths = written(tmp_path / "rows", lines(800))
    real = csv_blocks

    def changing(read: CsvFile, *given: Any, **named: Any) -> Any:
        yield from real(read, *given, **named)
        with open(read.path, "a", encoding="utf-8") as file:
            csv.writer(file).writerow(["Jane Doe"])

    monkeypatch.setattr(csv_cells, "csv_blocks", changing)
    with pytest.raises(EngineFailure, match="changed"):
        csv_cells.csv_parts([str(paths[0])], Pickled(1), Cache(None))


def test_long_texts_are_not_held_in_memory(tmp_path: Path) -> None:
    """A column of notes takes the memory of a block, however many there are: 10 MB of text in a fraction of that."""
    import tracemalloc

    path = tmp_path / "notes.csv"
    text = io.StringIO()
    csv.writer(text).writerows([["age", "note"], *([i, f"{i:8d}" * 1_250] for i in range(1_000))])
    path.write_text(text.getvalue(), encoding="utf-8")
    del text
    tracemalloc.start()
    blocks = csv_blocks(path, {"age": Numbers(), "note": Texts()}, rows=1 << 20, letters=1 << 18)
    assert sum(len(block["age"]) for block in blocks) == 1_000
    assert tracemalloc.get_traced_memory()[1] < 8e6
    tracemalloc.stop()
