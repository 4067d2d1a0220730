"""Dask frames written once: every record in one file, a person's rows together, whole or not at all, nothing told."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.errors import EngineFailure, InvalidParameter

pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")

import cloudpickle
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
from distributed import Client

from privet.data import person_numbers
from privet.engines import dask_files
from privet.engines.dask_engine import DaskEngine
from privet.engines.half_folders import half_folder
from privet.engines.plain_columns import arrow_types, person_keys, plain_frame

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

SECRET = "Jane-Doe-1971"


@pytest.fixture(scope="module", autouse=True)
def _sent_whole() -> Iterator[None]:
    """Functions of this file are sent by their code: workers cannot import tests."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def engine(dask_client: Client) -> DaskEngine:
    dask_client.wait_for_workers(1, timeout=60)
    return DaskEngine(dask_client)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def table(rows: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(5)
    who = random.integers(0, 40, rows)
    spelt = [[str(w), f"0{w}", f" {w} ", f"{w}.0"][i % 4] if w else None for i, w in enumerate(who.tolist())]
    jobs = pd.Categorical(random.choice(["baker", "smith"], rows))
    return pd.DataFrame({"id": np.arange(rows), "age": random.normal(size=rows), "job": jobs, "who": spelt})


@pytest.mark.medium
def test_a_frame_is_written_once_for_its_owner_alone(engine: DaskEngine, tmp_path: Path) -> None:
    """A file for each partition, every row in one of them, modes 0700 and 0600, nothing left beside them."""
    frame = table()
    files = engine.store(dd.from_pandas(frame, npartitions=3), tmp_path / "rows")
    assert [file.name for file in files] == ["00000.parquet", "00001.parquet", "00002.parquet"]
    found = pd.concat([pd.read_parquet(file) for file in files])
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True).astype({"job": "category"}), frame, check_dtype=False, check_categorical=False
    )
    assert mode(tmp_path / "rows") == 0o700
    assert {mode(file) for file in files} == {0o600}
    assert list(tmp_path.iterdir()) == [tmp_path / "rows"]


@pytest.mark.medium
def test_a_persons_rows_are_in_one_file_however_the_label_is_spelt(engine: DaskEngine, tmp_path: Path) -> None:
    """With `groups`, "7", "07", " 7 " and "7.0" are one person, as `person_numbers` says, and in one file."""
    frame = table()
    files = engine.store(dd.from_pandas(frame, npartitions=4), tmp_path / "rows", groups="who")
    parts = [pd.read_parquet(file).assign(file=i) for i, file in enumerate(files)]
    found = pd.concat(parts).sort_values("id", ignore_index=True)
    assert list(found.columns) == ["id", "age", "job", "who", "file"]
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["age"].tolist() == frame["age"].tolist()
    people = person_numbers(found["who"])
    assert people.max() > 30
    assert all(len(set(found["file"][people == person])) == 1 for person in range(people.max() + 1))
    assert sum(len(part) > 0 for part in parts) > 1


@pytest.mark.medium
def test_rows_of_a_lineage_that_changes_are_not_written_twice(engine: DaskEngine, tmp_path: Path) -> None:
    """A worker dies, and what is worked out again comes out otherwise: all is written anew, each record once."""
    chance, killed = tmp_path / "chance", tmp_path / "killed"
    chance.write_text("0")

    def made(place: int) -> pd.DataFrame:
        turn = int(chance.read_text())
        if place == 3 and not killed.exists():
            killed.touch()
            chance.write_text("1")
            os.kill(os.getpid(), signal.SIGKILL)
        return pd.DataFrame({"id": [i for i in range(40) if (i + turn) % 4 == place]})

    frame = dd.from_map(made, range(4), meta=pd.DataFrame({"id": np.zeros(0, dtype=np.int64)}))
    files = engine.store(frame, tmp_path / "rows")
    assert killed.exists()
    assert sorted(pd.concat([pd.read_parquet(file) for file in files])["id"].tolist()) == list(range(40))


@pytest.mark.medium
def test_workers_that_keep_dying_leave_no_files(engine: DaskEngine, tmp_path: Path, monkeypatch: Any) -> None:
    """After three times with other workers at the end than at the start, one sentence, and nothing is there."""
    staff = iter("abcdef")
    monkeypatch.setattr(engine, "_staff", lambda: frozenset(next(staff)))
    with pytest.raises(EngineFailure, match=r"got 3 times some that died or left.*Nothing was charged"):
        engine.store(dd.from_pandas(table(8), npartitions=1), tmp_path / "rows")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_cells_that_do_not_fit_are_missing_and_never_told(engine: DaskEngine, tmp_path: Path) -> None:
    """A text in a column of numbers is a missing cell: it stops nothing, and is in no log of the cluster."""

    def odd(part: pd.DataFrame) -> pd.DataFrame:
        return part.astype({"age": object}).assign(age=[SECRET, *part["age"][1:]], who=[3, *part["who"][1:]])

    frame = dd.from_pandas(table(8), npartitions=2)
    frame = frame.map_partitions(odd, meta=frame._meta)
    files = engine.store(frame, tmp_path / "rows", groups="who")
    found = pd.concat([pd.read_parquet(file) for file in files]).sort_values("id", ignore_index=True)
    assert found["age"].isna().tolist() == [i in (0, 4) for i in range(8)]
    assert found["who"].tolist()[::4] == ["3", "3"]
    client = engine._client
    assert SECRET not in f"{client.get_worker_logs()} {client.get_scheduler_logs()}"


@pytest.mark.medium
def test_a_frame_that_cannot_be_worked_out_tells_no_cell(engine: DaskEngine, tmp_path: Path) -> None:
    """An error of the user's own lineage is known to the driver by its type alone, and leaves no half folder."""
    frame = dd.from_pandas(table(8), npartitions=2)

    def broken(part: pd.DataFrame) -> pd.DataFrame:
        raise ValueError(SECRET)

    with pytest.raises(EngineFailure, match="got ValueError") as caught:
        engine.store(frame.map_partitions(broken, meta=frame._meta), tmp_path / "rows")
    assert SECRET not in repr(caught.value)
    assert caught.value.__context__ is None
    assert list(tmp_path.iterdir()) == []
    less = dd.from_delayed([part[["id"]] for part in frame.to_delayed()], meta=frame._meta, verify_meta=False)
    with pytest.raises(EngineFailure, match="Expected the columns that the frame declares"):
        engine.store(less, tmp_path / "rows")


@pytest.mark.medium
def test_what_a_killed_writer_left_is_removed_by_the_next(engine: DaskEngine, tmp_path: Path) -> None:
    """Half a folder of a process that is dead goes; that of one at work stays."""
    code = f"""
import os, signal
from pathlib import Path
from privet.engines.half_folders import half_folder
with half_folder(Path({str(tmp_path / "rows")!r})) as half:
    (half / "00000.parquet").write_bytes(b"half a file")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    (dead,) = (path for path in tmp_path.iterdir() if path.is_dir())
    with half_folder(tmp_path / "rows") as alive:
        engine.store(dd.from_pandas(table(8), npartitions=1), tmp_path / "rows")
        assert not dead.exists()
        assert alive.exists()
        assert mode(alive) == 0o700
    assert list(tmp_path.iterdir()) == [tmp_path / "rows"]


@pytest.mark.medium
def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A frame of another kind, a folder that is in use, no column of people: refused on public facts."""
    frame, ways = dd.from_pandas(table(8), npartitions=1), {"client": None, "awaited": None, "staff": None}

    def store(frame: Any, folder: Path, groups: str | None = None) -> None:
        dask_files.write_frame(frame, folder, groups=groups, **ways)  # type: ignore[arg-type]

    with pytest.raises(InvalidParameter, match="Expected a Dask DataFrame, got DataFrame"):
        store(table(8), tmp_path / "rows")
    with pytest.raises(InvalidParameter, match="Expected one column 'person' in the frame, got none"):
        store(frame, tmp_path / "rows", "person")
    (tmp_path / "used").write_text("")
    with pytest.raises(InvalidParameter, match="Expected a new or empty folder"):
        store(frame, tmp_path)
    days = pd.DataFrame({"day": pd.to_datetime(["2026-01-01"])})
    with pytest.raises(InvalidParameter, match="'day' to hold numbers or texts, got dates"):
        store(dd.from_pandas(days, npartitions=1), tmp_path / "rows", "day")


def test_columns_of_one_name_or_of_no_file_type_are_refused() -> None:
    """Two columns of one name, no column, and a type that Parquet lacks are refused by what is declared."""
    with pytest.raises(InvalidParameter, match="got several 'a'"):
        arrow_types(pd.DataFrame(np.zeros((0, 2)), columns=["a", "a"]))
    with pytest.raises(InvalidParameter, match="got no column"):
        arrow_types(pd.DataFrame())
    with pytest.raises(InvalidParameter, match="got 'a' of type complex128"):
        arrow_types(pd.DataFrame({"a": np.zeros(0, dtype=complex)}))


def test_keys_agree_with_the_numbers_of_people() -> None:
    """Two rows have one key just where `person_numbers` gives them one number, for labels of any kind."""
    labels = [
        7,
        7.0,
        "7",
        "07",
        " 7",
        "7.0",
        True,
        "True",
        "ann",
        "Ann",
        2**53 + 1,
        str(2**53),
        0.5,
        ".5",
        -1,
        None,
        "NA",
    ]
    keys, people = person_keys(labels), person_numbers(labels)
    known = people >= 0
    same = people[known][:, None] == people[known]
    assert np.array_equal(keys[known][:, None] == keys[known], same)
    assert keys[~known].tolist() == np.flatnonzero(~known).tolist()


def test_cells_are_judged_alone() -> None:
    """What a cell becomes does not depend on its neighbours: column by column as cell by cell."""
    cells = [1, 2.0, 2.5, "3", None, float("nan"), True, 2**70, b"x", {}, "\ud800"]
    for kind in (pa.int64(), pa.float64(), pa.string(), pa.bool_()):
        frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
        whole = plain_frame(frame, {"a": kind}, None, None)["a"].tolist()
        alone = [plain_frame(frame.iloc[[i]], {"a": kind}, None, None)["a"].tolist()[0] for i in range(len(cells))]
        assert repr(whole) == repr(alone), kind
