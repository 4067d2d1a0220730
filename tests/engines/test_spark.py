"""The contract of an engine, kept by Spark: on a cluster of two workers of its own, with two addresses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.engines import parted, whole_fits

from privet.data.people import label_of
from privet.engines import Files, spark_engine
from privet.engines.parted_glm import parted_glm
from privet.engines.spark_engine import SparkEngine
from privet.errors import EngineFailure, InvalidParameter
from privet.estimators import LinearRegression

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402
from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import SparkSession, functions  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java on this machine"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark", "ignore::ResourceWarning"),
]

# Workers cannot import the tests: what is sent from them is sent as it stands.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(parted)
cloudpickle.register_pickle_by_value(whole_fits)

CELL = "cell-of-nobody"  # letters: logs are full of numbers, of ports and processes and milliseconds
SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for Java that lives a minute


def started(log: Path, *command: str, address: str) -> subprocess.Popen[bytes]:
    """One of Spark's own programs, in a process group of its own."""
    home = Path(pyspark.__file__).parent
    known = {**os.environ, "SPARK_LOCAL_IP": address, "SPARK_HOME": str(home), "SPARK_DAEMON_JAVA_OPTS": SHORT}
    with open(log, "wb") as out:
        place = [str(home / "bin" / "spark-class"), *command, "--host", address, "--webui-port", "0"]
        return subprocess.Popen(place, env=known, stdout=out, stderr=out, start_new_session=True)


def awaited(log: Path, pattern: str) -> str:
    """What a program has written to its log, within a minute."""
    for _ in range(600):
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(log.read_text(errors="replace"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a cluster of two workers of one core, and where their logs are."""
    place = tmp_path_factory.mktemp("cluster")
    running = [started(place / "master", "org.apache.spark.deploy.master.Master", "--port", "0", address="127.0.0.1")]
    try:
        url = awaited(place / "master", r"Starting Spark master at (spark://\S+)")
        for address in ("127.0.0.1", "127.0.0.2"):
            settings = ["--cores", "1", "--memory", "1g", "--work-dir", str(place / "work"), url]
            worker = "org.apache.spark.deploy.worker.Worker"
            running.append(started(place / address, worker, *settings, address=address))
        for address in ("127.0.0.1", "127.0.0.2"):
            awaited(place / address, "(Successfully registered) with master")
        yield url, place / "work"
    finally:
        for process in reversed(running):
            os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait(timeout=30)


@pytest.fixture(scope="module")
def session(cluster: tuple[str, Path]) -> Iterator[SparkSession]:
    """A session on that cluster, which starts a slow task a second time."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT,
        "spark.executor.extraJavaOptions": SHORT,
        "spark.executor.memory": "512m",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",  # so that times of UTC are not those that are shown
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.speculation.quantile": "0.5",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(cluster[0])
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def engine(session: SparkSession) -> SparkEngine:
    return SparkEngine(session, cores=2)


@dataclass(frozen=True)
class Sum:
    """The sum of the whole numbers in Parquet files; what happens to it the first time that it is begun."""

    folder: str
    mishap: str = "none"
    victim: str = ""

    def __call__(self, paths: Sequence[str]) -> Any:
        import os
        import signal
        import time
        import uuid

        import numpy as np
        import pyarrow.parquet as pq

        total = np.zeros(3, dtype=np.int64)
        for path in paths:
            cells = pq.read_table(path)["id"].to_numpy()
            total += [np.sum(cells), np.sum(cells * cells), len(cells)]
            first = f"{self.folder}/{os.path.basename(path)}.begun"
            open(f"{self.folder}/{uuid.uuid4().hex}.start", "x").close()
            try:
                open(first, "x").close()
            except FileExistsError:
                continue
            if self.mishap == "worker":
                os.kill(os.getpid(), signal.SIGKILL)
            if path != self.victim:
                continue
            if self.mishap == "executor":  # the Java process above the one that workers are forked from
                with open(f"/proc/{os.getppid()}/stat") as file:
                    os.kill(int(file.read().split()[3]), signal.SIGKILL)
            time.sleep(100)
        return total


@dataclass(frozen=True)
class Raise:
    """A job that quotes what it read."""

    kind: type[BaseException]

    def __call__(self, paths: Sequence[str]) -> Any:
        raise self.kind(CELL)


@pytest.fixture
def bunches(tmp_path: Path) -> list[list[str]]:
    """Two bunches of two files each."""
    cells = np.arange(4000).reshape(4, 1000)
    paths = [str(tmp_path / f"{i}.parquet") for i in range(4)]
    for path, some in zip(paths, cells, strict=True):
        pq.write_table(pa.table({"id": some}), path)
    return [paths[:2], paths[2:]]


WHOLE = [np.arange(4000).sum(), (np.arange(4000) ** 2).sum(), 4000]


def starts(folder: Path) -> int:
    return len(list(folder.glob("*.start")))


def test_answers_come_one_a_bunch_in_order(engine: SparkEngine, bunches: list[list[str]], tmp_path: Path) -> None:
    """Each bunch has one answer, in order, from a task of its own, as in this process."""
    job = Sum(str(tmp_path))
    assert np.array_equal(engine.run(job, bunches), [job(bunch) for bunch in bunches])
    assert np.array_equal(sum(engine.run(job, [[p] for b in bunches for p in b])), WHOLE)
    assert engine.run(job, []) == []
    assert engine.run(len, [[bytes(3_000_000)], ["b", "c"]]) == [1, 2]  # places of a large batch


def test_workers_stay_and_are_as_many_as_cores(engine: SparkEngine) -> None:
    """Python processes live from step to step, so that what they opened stays open; cores are found by themselves."""

    def process(bunch: Sequence[str]) -> int:
        import os

        return os.getpid()

    assert len({found for _ in range(3) for found in engine.run(process, [["a"]] * 4)}) <= 2
    assert SparkEngine(engine.session).cores == 2


@pytest.mark.parametrize("mishap", ["worker", "slow", "executor"])
def test_faults_do_not_move_the_sum(mishap: str, engine: SparkEngine, bunches: list[list[str]], tmp_path: Path) -> None:
    """A worker or executor killed in mid-part, or a task run twice: the same sum, though parts were begun again."""
    began = time.monotonic()
    assert np.array_equal(sum(engine.run(Sum(str(tmp_path), mishap, bunches[0][0]), bunches)), WHOLE)
    assert starts(tmp_path) > 4
    assert time.monotonic() - began < 90  # nobody waited for the slow one


@pytest.mark.parametrize("kind", [ValueError, SystemExit, MemoryError])
def test_an_error_is_told_by_its_type_alone(
    kind: type[BaseException], engine: SparkEngine, cluster: tuple[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """What a job raises may quote a cell: neither the error, nor what Spark prints, nor a worker's log has it."""
    with pytest.raises(EngineFailure, match=kind.__name__) as caught:
        engine.run(Raise(kind), [["a"], ["b"]])
    said = "".join(capfd.readouterr())
    logs = [file for file in cluster[1].rglob("std*") if file.is_file()]
    assert len(logs) >= 4
    assert CELL not in str(caught.value) + said + "".join(log.read_text(errors="replace") for log in logs)


def test_an_answer_that_is_missing_or_double_is_refused(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If Spark brought an answer twice, or not at all, there is no sum."""
    whole = engine._answers
    for wrong in (lambda rows: rows[:1], lambda rows: [*rows, rows[0]], lambda rows: [rows[0], rows[0]]):
        monkeypatch.setattr(engine, "_answers", lambda task, n, wrong=wrong: wrong(whole(task, n)))
        with pytest.raises(EngineFailure, match="one answer from each task"):
            engine.run(len, [["a"], ["b"]])


def test_workers_are_looked_at(engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this version that see the folder pass; those of another, or that see no folder, are refused."""
    engine.check(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("privet.__version__", "7.7.7")
    with pytest.raises(EngineFailure, match=r"Expected privet 7\.7\.7 on every worker of Spark, got 0"):
        engine.check(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(spark_engine, "_seen", lambda path, seen=spark_engine._seen: seen(path + "elsewhere"))
    with pytest.raises(EngineFailure, match="a folder that every worker of Spark sees"):
        engine.check(tmp_path)


@dataclass(frozen=True)
class Hide:
    """A job after which its worker finds no privet, until it is given back."""

    hidden: bool

    def __call__(self, paths: Sequence[str]) -> None:
        import sys
        import time

        if self.hidden:
            sys.modules["privet"] = None  # type: ignore[assignment]
        else:
            sys.modules.pop("privet", None)
        time.sleep(0.3)


def test_workers_without_privet_are_named(engine: SparkEngine, tmp_path: Path) -> None:
    """A worker that cannot import privet answers so, and is refused in a sentence."""
    engine.run(Hide(True), [["a"]] * 4)
    try:
        with pytest.raises(EngineFailure, match="on every worker of Spark, got none"):
            engine.check(tmp_path)
    finally:
        engine.run(Hide(False), [["a"]] * 4)
    engine.check(tmp_path)


def test_a_cluster_that_does_not_answer_is_refused(session: SparkSession, tmp_path: Path) -> None:
    """Spark would wait for workers for ever; the engine waits as long as it is told."""
    with pytest.raises(EngineFailure, match=r"no answer within 0\.001 seconds"):
        SparkEngine(session, cores=1, wait=0.001).check(tmp_path)


def test_parts_sum_to_the_bits_of_memory(engine: SparkEngine, tmp_path: Path) -> None:
    """All kinds of sums over encoded parts, of all records and of a batch, are those in memory, to the last bit."""
    table = parted.made_rows()
    files = parted.write_files(table, tmp_path / "files", [0, 100, 101, 400, 700])
    names = [f"x{j}" for j in range(parted.COLUMNS)]
    found = parted_glm("logistic", files, "y", row_norm=2.0, columns=names, engine=engine, folder=tmp_path / "cache")
    here = parted.in_memory(table)
    assert parted.same(parted.answers(found), parted.answers(here))
    batch = np.random.default_rng(0).permutation(700)[:150]
    assert parted.same(parted.answers(found, batch), parted.answers(here, batch))


def test_a_fit_on_spark_is_the_fit_in_memory(engine: SparkEngine, session: SparkSession, tmp_path: Path) -> None:
    """An estimator fitted to what a frame was stored to has the coefficients of the fit in memory, bit for bit."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 3))
    y = X @ [1.0, 0.5, 0.0] + 0.1 * rng.normal(size=2000)
    frame = session.createDataFrame(pa.table({"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "y": y})).coalesce(1)
    files = engine.store(frame, tmp_path / "rows")
    known: dict[str, Any] = {"delta": 1e-6, "random_state": 1, "bounds": (-3, 3), "target_range": (-4, 4)}
    there = LinearRegression(1.0, **known).fit(Files(files, engine=engine, cache=tmp_path / "cache"), y="y")
    here = LinearRegression(1.0, **known).fit(X, y)
    assert np.array_equal(there.coef_, here.coef_)
    assert there.intercept_ == here.intercept_


class Fated(SparkEngine):
    """Spark, with a Python worker killed in the first job of a kind."""

    kind, mark = "", ""

    def run(self, job: Any, bunches: Any) -> list[Any]:
        return super().run(whole_fits.Struck(job, self.mark) if type(job).__name__ == self.kind else job, bunches)


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("name", whole_fits.FITS)
def test_people_weights_names_dates_and_intervals_are_those_in_memory(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    """A fit of a Spark frame with a worker killed meanwhile: coefficients, covariance, names, plan and guarantee."""
    told, _, kind = whole_fits.FITS[name]
    table, here = whole_fits.in_memory(name)
    engine = Fated(session, cores=2)
    engine.kind, engine.mark = kind, str(tmp_path / "killed")
    frame = session.createDataFrame(pa.table(table)).coalesce(1)
    assert told(Files(frame, engine=engine, cache=tmp_path / "rows")) == here
    assert (tmp_path / "killed").exists()
    assert [path for path in (tmp_path / "rows").rglob("*") if path.is_file()] == []


def test_a_part_that_changed_is_named(engine: SparkEngine, tmp_path: Path) -> None:
    """What privet itself says of a part comes back as it was said."""
    table = parted.made_rows()
    files = parted.write_files(table, tmp_path / "files", [0, 700])
    names = [f"x{j}" for j in range(parted.COLUMNS)]
    found = parted_glm("logistic", files, "y", row_norm=2.0, columns=names, engine=engine, folder=tmp_path / "cache")
    (part,) = (tmp_path / "cache").rglob("*.arrow")
    part.write_bytes(part.read_bytes())
    with pytest.raises(EngineFailure, match="a file that was changed"):
        found.row_sum()


def ids(files: Sequence[Path]) -> list[int]:
    return sorted(id for file in files for id in pq.read_table(file)["id"].to_pylist())


LABELS = ["7", "7.0", " 07", "bob", "bob ", "9007199254740993", "9007199254740992", None, "ann", "-1", "nan"]


def test_people_are_stored_whole(engine: SparkEngine, session: SparkSession, tmp_path: Path) -> None:
    """All rows of a person are in one file, however the label is written; files are for their owner alone."""
    rows = [(i, LABELS[i % len(LABELS)]) for i in range(300)]
    files = engine.store(
        session.createDataFrame(rows, "id long, `whose row` string"), tmp_path / "rows", groups="whose row"
    )
    assert len(files) > 1
    assert ids(files) == list(range(300))
    assert sorted(tmp_path.rglob("*.parquet")) == files
    assert {f.parent.stat().st_mode & 0o777 for f in files} == {0o700}
    assert {f.stat().st_mode & 0o777 for f in files} == {0o600}
    assert sorted(files[0].parent.iterdir()) == files  # no marks and checksums of Spark's own
    where: dict[str | None, set[Path]] = {}
    for file in files:
        for label in pq.read_table(file)["whose row"].to_pylist():
            where.setdefault(label_of(label), set()).add(file)
    assert {len(found) for found in where.values()} == {1}
    assert len(where) == 6
    numbers = session.createDataFrame([(i, 2**53 + i % 2 if i % 3 else None) for i in range(300)], "id long, who long")
    files = engine.store(numbers, tmp_path / "numbers", groups="who")
    stored = [set(pq.read_table(file)["who"].to_pylist()) for file in files]
    assert sum(2**53 in some for some in stored) == sum(2**53 + 1 in some for some in stored) == 1
    with pytest.raises(InvalidParameter, match="Expected one column 'whom'"):
        engine.store(numbers, tmp_path / "whom", groups="whom")


def undetermined(session: SparkSession, records: int) -> Any:
    """A frame whose rows are dealt out to four partitions at random, otherwise each time; Spark is not told so."""

    @functions.pandas_udf("long")  # type: ignore[untyped-decorator, unused-ignore]
    def anywhere(ids: pd.Series) -> pd.Series:
        return pd.Series(np.random.default_rng().integers(0, 1 << 40, len(ids)))

    frame = session.range(0, records, 1, 4).withColumn("place", anywhere("id"))
    return frame.repartition(4, "place")


def test_an_undetermined_lineage_is_stored_once(engine: SparkEngine, session: SparkSession, tmp_path: Path) -> None:
    """Sums over what was stored count each record once, though an executor is lost; read twice, the frame would not."""
    place = functions.spark_partition_id()
    first, second = (
        {
            row["id"]
            for row in undetermined(session, 4000).select("id", place.alias("part")).where(f"part = {part}").collect()
        }
        for part in (0, 1)
    )
    assert first & second  # what happens when each part is worked out for itself
    files = engine.store(undetermined(session, 4000), tmp_path / "rows")
    (tmp_path / "begun").mkdir()
    bunches = [[str(f) for f in files[:2]], [str(f) for f in files[2:]]]
    job = Sum(str(tmp_path / "begun"), "worker")
    assert np.array_equal(sum(engine.run(job, bunches)), WHOLE)
    assert starts(tmp_path / "begun") > len(files)


def test_a_frame_that_loses_an_executor_while_it_is_stored_has_no_record_twice(
    engine: SparkEngine, session: SparkSession, tmp_path: Path
) -> None:
    """Where shuffled rows are lost and come out otherwise, either nothing is stored or each record once.

    Mutant: with Spark's checks off, 4,063 rows were stored of 3,262 records out of 4,000.
    """
    once = str(tmp_path / "lost")

    def lose(batches: Any) -> Any:
        import os
        import signal
        import time

        from pyspark import TaskContext

        for batch in batches:
            context = TaskContext.get()
            if context.partitionId() == 3:
                time.sleep(3)  # others have been written by then
                try:
                    open(once, "x").close()
                except FileExistsError:
                    pass
                else:
                    with open(f"/proc/{os.getppid()}/stat") as file:
                        os.kill(int(file.read().split()[3]), signal.SIGKILL)
                    time.sleep(60)
            yield batch

    frame = undetermined(session, 4000).mapInArrow(lose, "id long, place long")
    try:
        files = engine.store(frame, tmp_path / "rows")
    except EngineFailure:
        assert not list((tmp_path / "rows").rglob("*"))
    else:
        assert ids(files) == list(range(4000))
    assert os.path.exists(once)


def test_a_spark_that_cannot_see_such_a_loss_is_refused(
    engine: SparkEngine, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the settings that have Spark compare what it made twice, no frame is stored."""
    monkeypatch.setattr(spark_engine, "_ALL_AGAIN", ["spark.sql.shuffle.noSuchSetting"])
    with pytest.raises(EngineFailure, match=r"Expected Spark 4\.3 or later"):
        engine.store(session.range(10), tmp_path / "rows")
    assert list((tmp_path / "rows").iterdir()) == []


def test_a_failed_cast_is_not_quoted(engine: SparkEngine, session: SparkSession, tmp_path: Path) -> None:
    """Spark quotes the cell that a cast failed on; the error raised here does not, and nothing half-written stays."""
    frame = session.createDataFrame([("1",), (CELL,)], "id string").select(functions.col("id").cast("int"))
    with pytest.raises(EngineFailure, match="Expected Spark to write") as caught:
        engine.store(frame, tmp_path / "rows")
    assert CELL not in str(caught.value)
    assert list((tmp_path / "rows").iterdir()) == []


def test_what_a_killed_writer_left_is_removed(engine: SparkEngine, session: SparkSession, tmp_path: Path) -> None:
    """The next one to store a frame in a folder removes rows that were half written."""
    half = tmp_path / "rows" / "0123.tmp"
    half.mkdir(parents=True)
    (half / "part-0.parquet").write_bytes(b"...")
    (tmp_path / "rows").chmod(0o700)
    files = engine.store(session.range(10), tmp_path / "rows")
    assert ids(files) == list(range(10))
    assert not half.exists()


@dataclass(frozen=True)
class Sleep:
    """A job that takes long."""

    begun: str

    def __call__(self, paths: Sequence[str]) -> None:
        import time

        open(self.begun, "w").close()
        time.sleep(60)


def test_a_session_that_is_stopped_is_a_failure(engine: SparkEngine, session: SparkSession, tmp_path: Path) -> None:
    """Whoever waits for an answer is told when the session ends, and so is whoever asks afterwards; nobody hangs."""
    begun = tmp_path / "begun"

    def stop() -> None:
        while not begun.exists():
            time.sleep(0.1)
        session.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(EngineFailure, match="What was charged stays charged"):
        engine.run(Sleep(str(begun)), [["a"]])
    stopping.join()
    for ask in (lambda: engine.run(len, [["a"]]), lambda: engine.check(tmp_path), lambda: SparkEngine(session).cores):
        with pytest.raises(EngineFailure):
            ask()
