"""Contract of the Dask engine, against real workers: the same bits whoever works, dies or is slow, and nothing told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privet
from privet.errors import EngineFailure, InvalidParameter

pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")

import cloudpickle
from distributed import Client, LocalCluster
from distributed.protocol.pickle import dumps

from privet.engines.dask_engine import DaskEngine
from privet.engines.engine import bunched
from privet.engines.sealed_work import Sealed, done

# A cluster dies loudly: sockets of killed processes are collected when they are, and their loops say so.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

SECRET = "Jane-Doe-1971"


def once(mark: str) -> bool:
    """Whether this is the first call, over all processes."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def seen(path: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write("x")


@dataclass(frozen=True)
class Sum:
    """Whole numbers of files, weighed; `mishap` happens in the middle of the first bunch that is worked on."""

    weight: int = 3
    mishap: Callable[[], None] | None = None

    def __call__(self, files: Sequence[str]) -> Any:
        total: Any = np.zeros(5, dtype=np.int64)
        for file in files:
            total += self.weight * np.load(file, mmap_mode="r").astype(np.int64).sum(axis=0)
            if self.mishap is not None:
                self.mishap()
        return total


@dataclass(frozen=True)
class Killed:
    mark: str

    def __call__(self) -> None:
        if once(self.mark):
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Slow:
    mark: str
    seconds: float

    def __call__(self) -> None:
        seen(self.mark + ".starts")
        if once(self.mark):
            time.sleep(self.seconds)


@dataclass(frozen=True)
class Raises:
    error: Exception

    def __call__(self) -> None:
        raise self.error


def _last(bunch: Sequence[Any]) -> int:
    return int(bunch[0][-1])


@pytest.fixture(scope="module", autouse=True)
def _sent_whole() -> Iterator[None]:
    """Jobs of this file are sent by their code: workers cannot import tests."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def engine(dask_client: Client) -> DaskEngine:
    dask_client.wait_for_workers(1, timeout=60)  # of three, two may have been killed a moment ago
    return DaskEngine(dask_client)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    random, folder = np.random.default_rng(7), tmp_path_factory.mktemp("rows")
    paths = [str(folder / f"{i}.npy") for i in range(7)]
    for path in paths:
        np.save(path, random.integers(-(2**15), 2**15, size=(random.integers(1, 900), 5), dtype=np.int16))
    return paths


def total(engine: DaskEngine, job: Sum, files: list[str], count: int) -> list[int]:
    found: list[int] = sum(engine.run(job, bunched(files, count))).tolist()
    return found


@pytest.mark.medium
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_sums_are_the_same_bits_however_parts_are_dealt_out(engine: DaskEngine, files: list[str], count: int) -> None:
    """One bunch or many, on one worker or three: the sum of this process, and answers in the order of bunches."""
    assert total(engine, Sum(), files, count) == Sum()(files).tolist()
    alone = [Sum()(bunch).tolist() for bunch in bunched(files, count)]
    assert [answer.tolist() for answer in engine.run(Sum(), bunched(files, count))] == alone
    assert 1 <= engine.cores <= 3
    assert engine.run(Sum(), []) == []


@pytest.mark.medium
def test_a_worker_killed_in_mid_part_changes_no_sum(engine: DaskEngine, files: list[str], tmp_path: Path) -> None:
    """SIGKILL while a part is summed: its task runs elsewhere, and each record counts once."""
    mark = str(tmp_path / "killed")
    assert total(engine, Sum(mishap=Killed(mark)), files, 3) == Sum()(files).tolist()
    assert os.path.exists(mark)


@pytest.mark.medium
def test_a_straggler_that_is_run_twice_counts_once(engine: DaskEngine, files: list[str], tmp_path: Path) -> None:
    """A worker that the scheduler gives up while it works: its task is started a second time, and one answer counts."""
    mark = tmp_path / "slow"

    async def give_up(dask_scheduler: Any) -> None:
        (busy,) = (worker for worker in dask_scheduler.workers.values() if worker.processing)
        await dask_scheduler.remove_worker(busy.address, stimulus_id="straggler", close=False)

    def watch() -> None:
        while not mark.exists():
            time.sleep(0.02)
        engine._client.run_on_scheduler(give_up)

    watcher = threading.Thread(target=watch)
    watcher.start()
    found = total(engine, Sum(mishap=Slow(str(mark), 1.0)), files[:1], 1)
    watcher.join()
    assert found == Sum()(files[:1]).tolist()
    assert (tmp_path / "slow.starts").read_text() == "xx"


@pytest.mark.medium
@pytest.mark.parametrize("error", [ValueError(SECRET), KeyError(SECRET), OSError(5, SECRET), SystemExit(SECRET)])
def test_a_job_that_fails_tells_its_type_and_nothing_else(engine: DaskEngine, files: list[str], error: Any) -> None:
    """No cell is in the message, nor in what is chained to it, nor in any log of the cluster; nor are paths or θ."""
    with pytest.raises(EngineFailure, match=f"got {type(error).__name__}.* What was charged stays charged") as caught:
        engine.run(Sum(weight=271828, mishap=Raises(error)), [files])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    client = engine._client
    told = f"{caught.value!r} {client.get_worker_logs()} {client.get_scheduler_logs()}"
    assert "WorkFailed" in told
    for word in (SECRET, "271828", files[0]):
        assert word not in told


@pytest.mark.medium
def test_a_sentence_of_our_own_arrives_as_it_is(engine: DaskEngine, files: list[str]) -> None:
    """A part that was changed is refused by the job in a sentence, which holds no cell; it is the driver's too."""
    with pytest.raises(EngineFailure, match=r"^Expected the part as it was, got another\.$"):
        engine.run(Sum(mishap=Raises(EngineFailure("Expected the part as it was,\n got another."))), [files])


@pytest.mark.medium
def test_an_answer_that_cannot_be_sent_is_not_shown(engine: DaskEngine, files: list[str]) -> None:
    """Dask logs an answer that will not be pickled; ours is pickled inside, so that an exact sum is in no log."""
    with pytest.raises(EngineFailure, match=r"got TypeError|got PicklingError|got AttributeError"):
        engine.run(lambda bunch: (31415926, lambda: bunch, threading.Lock()), [files])
    client = engine._client
    assert "31415926" not in f"{client.get_worker_logs()} {client.get_scheduler_logs()}"


def test_closed_bytes_lie_beside_the_message() -> None:
    """Dask logs the first bytes of a message that a worker cannot read, e.g. for want of privet: ours are not in it."""
    beside: list[Any] = []
    message = dumps((done, Sealed(cloudpickle.dumps(SECRET))), buffer_callback=beside.append)
    assert SECRET.encode() not in message
    assert [SECRET.encode() in bytes(each) for each in beside] == [True]
    assert SECRET not in repr(Sealed(SECRET.encode()))


@pytest.mark.medium
def test_a_large_batch_is_sent_without_a_word(engine: DaskEngine) -> None:
    """Dask warns of large tasks, with their size; a batch has as many places as records drawn, which is private."""
    places = np.arange(1_500_000)  # 12 megabytes, above the 10 from which it warns
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert engine.run(_last, [[places]]) == [1_499_999]
    assert [each for each in told if "graph" in str(each.message)] == []


@pytest.mark.medium
def test_what_the_scheduler_shows_names_nothing(engine: DaskEngine, files: list[str]) -> None:
    """Keys of tasks are random and numbered by bunch, reprs are empty, whatever is sent."""

    def listed(dask_scheduler: Any) -> list[tuple[str, str]]:
        found = dask_scheduler.tasks.values()
        return [(str(task.key), f"{task!r} {task.run_spec!r} {task.group_key}") for task in found]

    shown: list[tuple[str, str]] = []
    mark = engine._client.submit(time.sleep, 0, key="mark")

    def watch() -> None:
        while not any(key.startswith("privet") for key, _ in shown):
            shown.extend(engine._client.run_on_scheduler(listed))

    watcher = threading.Thread(target=watch)
    watcher.start()
    engine.run(Sum(weight=271828, mishap=Slow(files[0] + ".slow", 0.5)), bunched(files, 3))
    watcher.join()
    mark.release()
    ours = [(key, told) for key, told in shown if key != "mark"]
    assert all(re.fullmatch(r"privet-[0-9a-f]{32}-[012]", key) for key, _ in ours)
    assert not any(word in told for _, told in ours for word in ("271828", ".npy", "Sum", "weight"))
    assert "npy" not in repr(engine)


@contextmanager
def process_of_a_cluster() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scheduler with a worker in a process of its own, and its address."""
    code = """
import sys
from distributed import LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp://")
print(cluster.scheduler_address, flush=True)
sys.stdin.read()
"""
    started = subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True)
    try:
        assert started.stdout is not None
        yield started, started.stdout.readline().strip()
    finally:
        started.send_signal(signal.SIGCONT)
        started.kill()
        started.communicate()


@pytest.mark.medium
def test_a_scheduler_that_is_silent_or_gone_is_a_failure_not_a_wait(files: list[str], tmp_path: Path) -> None:
    """A scheduler that is stopped, then killed, while a job runs: one sentence within seconds each time."""
    with process_of_a_cluster() as (process, address):
        known = DaskEngine(address)
        assert total(known, Sum(), files, 2) == Sum()(files).tolist()
        engine = DaskEngine(known._client, patience=1.0)
        for number, fate in enumerate((signal.SIGSTOP, signal.SIGKILL)):
            mark = tmp_path / f"slow{number}"

            def strike(mark: Path = mark, fate: signal.Signals = fate) -> None:
                while not mark.exists():
                    time.sleep(0.02)
                process.send_signal(fate)

            striker = threading.Thread(target=strike)
            striker.start()
            start = time.monotonic()
            with pytest.raises(EngineFailure, match=r"scheduler is gone, silent or closed.*What was charged stays"):
                engine.run(Sum(mishap=Slow(str(mark), 30.0 if fate == signal.SIGKILL else 0.5)), [files])
            assert time.monotonic() - start < 8
            striker.join()
            process.send_signal(signal.SIGCONT)
        with pytest.raises(EngineFailure, match="scheduler is gone"):
            engine.run(Sum(), [files])
        known.close()
    with pytest.raises(EngineFailure, match=r"Nothing was charged\. Check the address"):
        DaskEngine(address, patience=0.5)


@pytest.mark.medium
def test_a_cluster_without_workers_is_refused(files: list[str], tmp_path: Path) -> None:
    """An empty cluster is refused before anything is charged; one that loses its workers fails after `patience`."""
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        engine = DaskEngine(client, patience=0.6)
        assert engine.cores == 0
        with pytest.raises(EngineFailure, match=r"that has none.*Nothing was charged\. Start workers"):
            engine.check(tmp_path)
        with pytest.raises(EngineFailure, match=r"got none for 0\.6 seconds.*What was charged stays charged"):
            engine.run(Sum(), [files])


@pytest.mark.medium
def test_workers_are_asked_for_their_privet_and_for_the_folder(engine: DaskEngine, tmp_path: Path) -> None:
    """A worker without privet, with another version, or that does not see the folder: one sentence each, by address."""
    client = engine._client
    address = sorted(client.nthreads())[0]

    def without() -> None:
        import sys

        sys.kept, sys.modules["privet"] = sys.modules["privet"], None  # type: ignore[attr-defined, assignment]

    def restored() -> None:
        import sys

        sys.modules["privet"] = sys.kept  # type: ignore[attr-defined]

    def called(version: str) -> None:
        import privet

        privet.__version__ = version

    def blind(path: str) -> None:
        import builtins
        from io import open as known

        def missing(file: Any, *args: Any, **named: Any) -> Any:
            if str(file).startswith(path):
                raise FileNotFoundError(file)
            return open(file, *args, **named)

        builtins.open = missing if path else known

    engine.check(tmp_path)
    client.run(without, workers=[address])
    with pytest.raises(EngineFailure, match=rf"at {address}, got none: sums might differ\. Nothing was charged"):
        engine.check(tmp_path)
    client.run(restored, workers=[address])
    client.run(called, "0.0.1", workers=[address])
    with pytest.raises(EngineFailure, match=rf"at {address}, got version 0\.0\.1"):
        engine.check(tmp_path)
    client.run(called, privet.__version__, workers=[address])
    client.run(blind, str(tmp_path), workers=[address])
    with pytest.raises(EngineFailure, match=f"which {address} does not.*Name a folder on a shared drive"):
        engine.check(tmp_path)
    client.run(blind, "", workers=[address])
    engine.check(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EngineFailure, match="Expected a folder that can be written to"):
        engine.check(tmp_path / "nowhere")


def test_what_is_no_client_is_refused() -> None:
    """Something else than a client, or no patience, is a bad parameter."""
    with pytest.raises(InvalidParameter, match=r"Expected a distributed\.Client"):
        DaskEngine(3)
    with pytest.raises(InvalidParameter, match="Expected patience above 0"):
        DaskEngine("tcp://127.0.0.1:1", patience=0.0)
