from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.parted import COLUMNS, answers, in_memory, made_rows, same, write_files

from privet import Budget
from privet.engines import Cache, Stream, parted_glm
from privet.engines.encoded_part import close_parts
from privet.engines.engine import Engine, bunched
from privet.engines.live_folders import lock_of
from privet.engines.part import Fingerprint, Part
from privet.engines.tasks import Encode, EncodedParts
from privet.errors import EngineFailure, InvalidParameter
from privet.losses import AppendOne
from privet.problems.parted import dealt
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import fixed_hessian_descent, newton_descent


class Pickled(Stream):
    """As a cluster does: jobs, parts and answers are sent, and bunches are as many as it has cores."""

    def __init__(self, cores: int, *, twice: bool = False) -> None:
        self._cores, self._twice = cores, twice

    @property
    def cores(self) -> int:
        return self._cores

    def run(self, job: Any, bunches: Any) -> list[Any]:
        sent = pickle.dumps(job)
        found = [pickle.dumps(pickle.loads(sent)(pickle.loads(pickle.dumps(bunch)))) for bunch in bunches]
        if self._twice:  # every task is run twice, and the second answer counts
            found = [pickle.dumps(pickle.loads(sent)(bunch)) for bunch in bunches]
        return [pickle.loads(each) for each in found]


EDGES = {"one": [0, 700], "three": [0, 100, 101, 700], "with empty": [0, 350, 350, 700]}


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("engine", [Stream(), Pickled(3), Pickled(2, twice=True)], ids=["stream", "three", "twice"])
def test_sums_over_parts_are_those_in_memory(tmp_path: Path, edges: list[int], engine: Engine) -> None:
    """Every sum over files is that of the same rows in memory to the last bit, however they are dealt out."""
    table = made_rows()
    files = write_files(table, tmp_path / "files", edges)
    names = [f"x{j}" for j in range(COLUMNS)]
    parted = parted_glm("logistic", files, "y", row_norm=2.0, columns=names, engine=engine)
    here = in_memory(table)
    assert same(answers(parted), answers(here))
    batch = np.random.default_rng(0).permutation(700)[:150]
    assert same(answers(parted, batch), answers(here, batch))
    assert (parted.records, parted.shape, parted.lipschitz) == (here.records, here.shape, here.lipschitz)


def test_sums_over_people_in_parts_are_those_in_memory(tmp_path: Path) -> None:
    """So are sums in which a person's whole share is bounded, where no person is in two files."""
    table = made_rows()
    who = table["who"]
    cuts = [i for i in range(1, 700) if who[i] != who[i - 1]]
    files = write_files(table, tmp_path / "files", [0, cuts[100], cuts[101], cuts[200], 700])
    names = [f"x{j}" for j in range(COLUMNS)]
    parted = parted_glm("logistic", files, "y", row_norm=2.0, columns=names, groups="who", engine=Pickled(2))
    here = in_memory(table, groups=who)
    assert (parted.unit, parted.records) == ("person", here.records)
    assert parted.assumptions == (*here.assumptions, "all rows of a person are in one file")
    assert same(answers(parted), answers(here))


@pytest.mark.parametrize("solver", [fixed_hessian_descent, newton_descent])
def test_a_fit_in_parts_is_the_fit_in_memory(tmp_path: Path, solver: Any) -> None:
    """With the same noise, coefficients and guarantee are the same, bit for bit; with an intercept, too."""
    table = made_rows()
    files = write_files(table, tmp_path / "files", EDGES["three"])
    names = [f"x{j}" for j in range(COLUMNS)]
    more: Any = {"features": AppendOne(), "ridge": 0.01}
    both = [
        parted_glm("logistic", files, "y", row_norm=2.0, columns=names, engine=Pickled(3), **more),
        in_memory(table, **more),
    ]
    results = [
        solver(
            problem,
            budget=Budget(epsilon=2, delta=1e-6),
            steps=5,
            clip=1.0,
            random=fixed_seed_invalidates_guarantee(5),
        )
        for problem in both
    ]
    assert np.array_equal(results[0].coef, results[1].coef)
    assert results[0].guarantee == results[1].guarantee


def test_a_part_that_changed_stops_the_run(tmp_path: Path) -> None:
    """A file that was touched, or is gone, is refused before it is read."""
    files = write_files(made_rows(), tmp_path / "files", EDGES["three"])
    names = [f"x{j}" for j in range(COLUMNS)]
    for harm in (lambda path: os.utime(path, ns=(0, 0)), os.unlink):
        parted = parted_glm("logistic", files, "y", row_norm=2.0, columns=names)
        parted.moment_sum()
        harm(parted._parts.parts[1].path)  # type: ignore[attr-defined]  # the parts as they are
        with pytest.raises(EngineFailure, match="charged"):
            parted.moment_sum()


def test_what_is_written_is_for_its_owner_and_goes_when_it_should(tmp_path: Path) -> None:
    """Files have mode 600 in a folder of mode 700; they go with the problem, or stay if asked."""
    files = write_files(made_rows(), tmp_path / "files", EDGES["three"])
    names = [f"x{j}" for j in range(COLUMNS)]
    for keep in (False, True):
        parted = parted_glm("logistic", files, "y", row_norm=2.0, columns=names, folder=tmp_path / "rows", keep=keep)
        (folder,) = (path for path in (tmp_path / "rows").iterdir() if path.is_dir())
        modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        assert modes == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        del parted
        close_parts()
        assert folder.exists() == keep


def _killed(folder: Path) -> None:
    def work(where: Path) -> None:
        (where / "half").write_bytes(b"...")
        os.kill(os.getpid(), signal.SIGKILL)

    Cache(folder).made(work)


def test_what_a_killed_encoder_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Rows of an encoder that was killed do not stay; those of one at work do."""
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(tmp_path / "rows",))
    (tmp_path / "rows").mkdir(mode=0o700)
    process.start()
    process.join()
    assert len([path for path in (tmp_path / "rows").iterdir() if path.is_dir()]) == 1
    cache = Cache(tmp_path / "rows")
    assert cache.made(lambda where: (Cache(tmp_path / "rows"), where.exists()))[1]
    assert {path.name for path in (tmp_path / "rows").iterdir()} == {cache.folder.name, f"{cache.folder.name}.alive"}


def _killed_later(folder: Path | None) -> None:
    cache = Cache(folder)
    cache.made(lambda where: (where / "rows").write_bytes(b"..."))
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("named", [True, False])
def test_rows_of_a_run_that_was_killed_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Encoded rows do not outlive their process in a folder of one's own or in the system's; those in use, or to be
    kept, or of another machine, stay.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root = tmp_path / "rows" if named else None
    alive, kept = Cache(root), Cache(root, keep=True)
    for cache in (alive, kept):
        cache.made(lambda where: (where / "rows").write_bytes(b"..."))
    for _ in range(2):
        process = multiprocessing.get_context("fork").Process(target=_killed_later, args=(root,))
        process.start()
        process.join()
    left = sorted(set(tmp_path.rglob("rows")) - {tmp_path / "rows"})
    assert len(left) == 3  # the second process has removed what the first left
    (dead,) = (path for path in left if path.parent not in (alive.folder, kept.folder))
    lock = lock_of(dead.parent if named else dead.parent.parent)
    told = lock.read_bytes()
    lock.write_bytes(b"another machine")
    Cache(root).close()
    assert dead.exists()
    lock.write_bytes(told)
    last = Cache(root)
    assert not dead.exists()
    assert not lock.exists()
    assert all((cache.folder / "rows").exists() for cache in (alive, kept))
    for cache in (alive, last):
        cache.close()
    assert sorted(set(tmp_path.rglob("rows")) - {tmp_path / "rows"}) == [kept.folder / "rows"]
    assert list(tmp_path.rglob("*.alive*")) == []


def test_a_part_says_what_became_of_it(tmp_path: Path) -> None:
    """Changed, gone, or not to be looked at: each is another sentence, so that its cause can be found."""
    path = tmp_path / "rows" / "0.arrow"
    path.parent.mkdir()
    path.write_bytes(b"...")
    part = Part(str(path), Fingerprint.of(str(path)))
    part.check()
    path.write_bytes(b"....")
    with pytest.raises(EngineFailure, match="got a file that was changed"):
        part.check()
    path.unlink()
    with pytest.raises(EngineFailure, match="got a file that is gone"):
        part.check()
    path.parent.rmdir()
    path.parent.touch()
    with pytest.raises(EngineFailure, match="got NotADirectoryError"):
        part.check()


def test_a_folder_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """Encoded rows go into no folder that others may read."""
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(InvalidParameter, match="nobody else may read"):
        Cache(tmp_path / "open")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": "nothing"}, "one column 'nothing'"),
        ({"columns": ["x0", "y"]}, "must not be learnt from themselves"),
        ({"columns": ["x0", "x0"]}, "each once"),
        ({"source": "missing/*.parquet"}, "got none"),
    ],
)
def test_bad_input_is_refused_before_rows_are_read(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """Each in one sentence, which holds no cell, and nothing is left behind."""
    files = write_files(made_rows(), tmp_path / "files", EDGES["three"])
    given: dict[str, Any] = {"source": files, "y": "y", "columns": ["x0", "x1"]} | change
    with pytest.raises(InvalidParameter, match=said):
        parted_glm("logistic", given["source"], given["y"], row_norm=1.0, columns=given["columns"])


def test_files_of_unlike_columns_are_refused(tmp_path: Path) -> None:
    """A file with other columns or types than the first is named and refused."""
    files = write_files(made_rows(), tmp_path / "files", EDGES["three"])
    pq.write_table(pa.table({"x0": ["text"], "y": [1.0]}), files / "zzz.parquet")
    with pytest.raises(InvalidParameter, match="zzz"):
        parted_glm("logistic", files, "y", row_norm=1.0)


def test_no_part_is_counted_twice() -> None:
    """A list of parts that names one twice is refused."""
    part: Any = type("P", (), {"path": "same"})()
    with pytest.raises(EngineFailure, match="twice"):
        EncodedParts(Stream(), [part, part], np.ones(2, dtype=np.int64))


def test_nothing_that_is_shown_tells_of_rows(tmp_path: Path) -> None:
    """Reprs of problems, parts and jobs hold no count, no size and no coefficient."""
    files = write_files(made_rows(), tmp_path / "files", EDGES["one"])
    parted = parted_glm("logistic", files, "y", row_norm=2.0, columns=["x0"])
    shown = repr(parted) + repr(parted._parts) + repr(Encode(len, "somewhere"))  # type: ignore[arg-type]
    size = str(os.stat(parted._parts.parts[0].path).st_size)  # type: ignore[attr-defined]
    shown += repr([repr(part).split("'")[2] for part in parted._parts.parts])  # type: ignore[attr-defined]
    assert "700" not in shown
    assert size not in shown


def test_items_are_dealt_out_once_each() -> None:
    """Bunches hold every item once, in order, none empty; places in parts are those of the whole."""
    for count in (1, 2, 3, 7, 50):
        bunches = bunched(list(range(20)), count)
        assert [item for bunch in bunches for item in bunch] == list(range(20))
        assert min(map(len, bunches)) >= 1
    places = np.random.default_rng(2).permutation(30)[:20]
    counts = np.array([4, 0, 16, 10])
    found = [part + start for part, start in zip(dealt(places, counts), np.cumsum(counts) - counts, strict=True)]
    assert sorted(np.concatenate(found).tolist()) == sorted(places.tolist())


def test_an_encoder_that_is_slow_is_not_taken_for_dead(tmp_path: Path) -> None:
    """A folder whose encoder is alive in another process is left alone."""
    (tmp_path / "rows").mkdir(mode=0o700)

    def slow(where: Path) -> None:
        (where / "half").write_bytes(b"...")
        time.sleep(60.0)

    process = multiprocessing.get_context("fork").Process(target=Cache(tmp_path / "rows", keep=True).made, args=(slow,))
    process.start()
    while not list((tmp_path / "rows").glob("*.tmp/half")):
        time.sleep(0.01)
    Cache(tmp_path / "rows")
    assert list((tmp_path / "rows").glob("*.tmp/half"))
    process.kill()
    process.join()
