"""Jobs on Spark: each bunch is one task of a DataFrame, so that a session of Spark Connect will do as well."""

import contextlib
import pickle
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import privet
from privet.engines.cache import Cache
from privet.engines.engine import Engine, Job
from privet.errors import EngineFailure, InvalidParameter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWERS = "bunch long, answer binary, failure string"
_FILES_A_CORE = 4  # of a table that is dealt out by people
# Should a lost shuffle come out otherwise when it is made again, then all that was made from it is made again as well,
# or the job fails: else a record may be in a file of the first time and in one of the second, or in none.
_ALL_AGAIN = [
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
    "spark.sql.shuffle.orderIndependentChecksum.enableQueryLevelRollbackOnMismatch",
]


class SparkEngine(Engine):
    """The workers of a Spark session that the user has. Only paths, coefficients and integers go there and back.

    Promise: a bunch's answer counts once, though its task failed and was tried again, or was run twice (speculation):
    every bunch is one partition, of which Spark keeps one result, and answers are numbered and counted here. What a
    job raises comes back as the name of its type; its message, which may quote a cell, stays in the worker.

    Parameters
    ----------
    session : the session, classic or of Spark Connect; its Python workers need privet, of this version, and pyarrow
    cores : how many tasks run at once; by default, what Spark would split a range into
    wait : how many seconds `check` waits for a first sign of the workers

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> SparkEngine(SparkSession.builder.getOrCreate()).run(len, [["a", "b"], ["c"]])  # doctest: +SKIP
    [2, 1]
    """

    def __init__(self, session: "SparkSession", *, cores: int | None = None, wait: float = 60.0) -> None:
        if cores is not None and not (isinstance(cores, int) and cores >= 1):
            raise InvalidParameter(f"""Expected at least one core, got {cores!r}: parts are dealt out to so many tasks.
                Pass a whole number, or None to ask Spark.""")
        self.session = session
        self._cores, self._wait = cores, wait

    @cached_property
    def _found_cores(self) -> int:
        from pyspark.sql import functions

        try:
            places = self.session.range(1 << 16).select(functions.spark_partition_id().alias("place"))
            return 1 + int(places.agg({"place": "max"}).collect()[0][0])
        except Exception as error:  # noqa: BLE001  # Spark raises what it likes, and may quote what it read
            raise _gone(error) from None

    @property
    def cores(self) -> int:
        return self._cores or self._found_cores

    def check(self, folder: Path) -> None:
        tasks = 2 * self._patiently(lambda: self.cores)
        with tempfile.NamedTemporaryFile(dir=Path(folder).absolute(), prefix=".seen-") as token:
            answers = self._patiently(lambda: self._answers(_seen(token.name), tasks))
        for _, seen, version in answers:
            if version != privet.__version__:
                raise EngineFailure(f"""Expected privet {privet.__version__} on every worker of Spark, got
                    {version or "none"}: other code could mean other sums. Install it there, or point PYSPARK_PYTHON to
                    a Python that has it.""")
            if not seen:
                raise EngineFailure(f"""Expected a folder that every worker of Spark sees, got {str(folder)!r}: parts
                    are files, which workers open by their path. Name a folder on a disk that all of them share.""")

    def run(self, job: Job, bunches: Sequence[Sequence[Any]]) -> list[Any]:
        from pyspark import cloudpickle

        if not bunches:
            return []
        try:
            task = _task(cloudpickle.dumps(job), [pickle.dumps(list(bunch)) for bunch in bunches])
            rows = self._answers(task, len(bunches))
        except Exception as error:  # noqa: BLE001  # as above
            raise _gone(error) from None
        for _, _, failure in rows:
            if failure is not None:
                raise _failed(failure)
        found = {int(bunch): bytes(answer) for bunch, answer, _ in rows}
        if len(rows) != len(bunches) or sorted(found) != list(range(len(bunches))):
            raise EngineFailure("""Expected one answer from each task of Spark, got one twice or none: records would be
                counted twice, or not at all. What was charged stays charged. Start again, from a new session.""")
        return [pickle.loads(found[bunch]) for bunch in range(len(bunches))]  # noqa: S301  # from the user's own cluster

    def store(self, frame: "DataFrame", folder: Path, *, groups: str | None = None) -> list[Path]:
        if groups is not None and frame.columns.count(groups) != 1:
            raise InvalidParameter(f"""Expected one column {groups!r} in the frame, got {frame.columns.count(groups)}:
                it says whose row it is. Rename it in the frame, or name another.""")
        cache = Cache(folder, keep=True)
        self.check(Path(folder))
        names = cache.made(lambda half: self._written(frame, half, groups))
        return [cache.folder / name for name in names]

    def _written(self, frame: "DataFrame", half: Path, groups: str | None) -> list[str]:
        """Write a frame's rows into an empty folder, once; the names of the files."""
        try:
            with _all_again(frame.sparkSession):
                frame = _as_shown(frame)
                if groups is not None:
                    frame = frame.repartition(_FILES_A_CORE * self.cores, _person(frame, groups))
                # Not by `as_uri`: Spark takes a path letter for letter. Never more than one file for each partition.
                frame.write.mode("append").option("maxRecordsPerFile", 0).parquet(f"file://{half.absolute()}")
            files = sorted(half.glob("part-*.parquet"))
            if not files or len({file.name.split("-")[1] for file in files}) < len(files):
                raise FileNotFoundError  # or a partition twice
            for other in set(half.iterdir()) - set(files):  # checksums and marks of Spark's own
                shutil.rmtree(other) if other.is_dir() else other.unlink()
            for file in files:
                file.chmod(0o600)
        except EngineFailure:
            raise
        except Exception as error:  # noqa: BLE001  # a failed cast quotes the cell that it failed on
            raise EngineFailure(f"""Expected Spark to write the frame to {str(half.parent)!r}, got
                {type(error).__name__}: nothing is kept, and nothing was released. See Spark's own log, which may quote
                cells, and try again.""") from None
        return [file.name for file in files]

    def _answers(self, task: Callable[[Any], Any], tasks: int) -> list[Any]:
        """What a function of so many numbers answers, each number in a task of its own."""
        # A range of n rows in n slices: one stage, no shuffle, so that nothing is there to be merged or split.
        return list(self.session.range(0, tasks, 1, tasks).mapInArrow(task, _ANSWERS).collect())

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """What `ask` returns, unless no worker does anything for too long: Spark itself would wait for ever."""
        found: list[Any] = []
        tag = f"privet-{uuid.uuid4().hex}"

        def asking() -> None:
            try:
                self.session.addTag(tag)
                found.append(ask())
            except Exception as error:  # noqa: BLE001  # as above; raised below, by its name
                found.append(error)

        thread = threading.Thread(target=asking, daemon=True)
        thread.start()
        thread.join(self._wait)
        if not found:
            with contextlib.suppress(Exception):
                self.session.interruptTag(tag)
            raise EngineFailure(f"""Expected workers of Spark, got no answer within {self._wait:g} seconds: the cluster
                is empty, or busy. Start workers, or pass a longer wait.""")
        if isinstance(found[0], EngineFailure):
            raise found[0]
        if isinstance(found[0], Exception):
            raise EngineFailure(f"""Expected Python workers of Spark that start, got {type(found[0]).__name__}: no sum
                can be taken. Point PYSPARK_PYTHON to a Python of this version with privet and pyarrow.""")
        return found[0]

    def __repr__(self) -> str:
        return f"SparkEngine(cores={self._cores})" if self._cores else "SparkEngine()"


# What goes to workers is made inside of functions, so that it is sent as it stands, not as a name in privet: a worker
# without privet can answer that it has none.


def _task(job: bytes, bunches: list[bytes]) -> Callable[[Any], Iterator[Any]]:
    """What a worker does with the numbers of bunches; it never raises, and tells of an error its type alone."""

    def work(batches: Any) -> Any:
        import pickle

        import pyarrow as pa

        columns = [("bunch", pa.int64()), ("answer", pa.binary()), ("failure", pa.string())]
        for batch in batches:
            for bunch in batch.column(0).to_pylist():
                try:
                    from privet.sums.blocks import threads_at_most  # in here, as privet may be missing

                    with threads_at_most(1):  # the cluster gives every core a task
                        answer = pickle.dumps(pickle.loads(job)(pickle.loads(bunches[bunch])))  # noqa: S301
                    failure = None
                except BaseException as error:  # noqa: BLE001
                    kind = type(error)
                    ours = kind.__module__ == "privet.errors" and kind.__name__ == "EngineFailure"
                    answer, failure = None, str(error) if ours else kind.__name__
                row = {"bunch": bunch, "answer": answer, "failure": failure}
                yield pa.RecordBatch.from_pylist([row], pa.schema(columns))

    return work


def _seen(path: str) -> Callable[[Any], Iterator[Any]]:
    """What a worker answers when it is looked at: whether it sees a file, and the version of its privet."""

    def look(batches: Any) -> Any:
        import os

        import pyarrow as pa

        columns = [("bunch", pa.int64()), ("answer", pa.binary()), ("failure", pa.string())]
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    import privet

                    version = str(privet.__version__)
                except Exception:  # noqa: BLE001
                    version = None
                seen = b"seen" if os.path.exists(path) else None
                row = {"bunch": number, "answer": seen, "failure": version}
                yield pa.RecordBatch.from_pylist([row], pa.schema(columns))

    return look


def _person(frame: "DataFrame", groups: str) -> Any:
    """A column that is the same for rows of one person, however the label is written: a hash of it as text."""
    import pandas as pd
    from pyspark.sql import functions, types

    def hashes(labels: pd.Series) -> pd.Series:
        import hashlib

        from privet.data.people import label_of

        def hashed(cell: Any) -> int:
            label = label_of(cell) or ""
            found = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            return int.from_bytes(found, "little", signed=True)

        codes, cells = pd.factorize(labels, use_na_sentinel=False)
        return pd.Series([hashed(cell) for cell in cells], dtype="int64").take(codes).reset_index(drop=True)

    column = _column(frame, groups)
    # As text already in Spark: pandas would read whole numbers with gaps as floats, and so two ids as one and as two.
    text = column if isinstance(frame.schema[groups].dataType, types.BinaryType) else column.cast("string")
    return functions.pandas_udf(hashes, "long")(text)


def _column(frame: "DataFrame", name: str) -> Any:
    """A column by its name, whatever signs that has."""
    return frame[f"`{name.replace('`', '``')}`"]


def _as_shown(frame: "DataFrame") -> "DataFrame":
    """The frame with times as Spark shows them, in the session's zone: in a file they would be those of UTC."""
    from pyspark.sql import types

    zoned = [field.name for field in frame.schema.fields if isinstance(field.dataType, types.TimestampType)]
    return frame.withColumns({name: _column(frame, name).cast("timestamp_ntz") for name in zoned}) if zoned else frame


@contextlib.contextmanager
def _all_again(session: "SparkSession") -> Iterator[None]:
    """Have Spark work out again all that follows from a shuffle that came out otherwise the second time."""
    try:
        before = {key: session.conf.get(key) for key in _ALL_AGAIN}
    except Exception:  # noqa: BLE001  # no such setting
        raise EngineFailure("""Expected Spark 4.3 or later, which sees whether a lost shuffle comes out otherwise
            the second time, got one that does not: records could be stored twice. Use a newer Spark.""") from None
    try:
        for key in _ALL_AGAIN:
            session.conf.set(key, "true")
        yield
    finally:
        for key, value in before.items():
            with contextlib.suppress(Exception):  # a session that is gone
                session.conf.set(key, value)


def _failed(failure: str) -> EngineFailure:
    """What is said of a job that raised: a sentence of ours, or the name of a type."""
    if not failure.isidentifier():
        return EngineFailure(failure)
    return EngineFailure(f"""Expected every task to end on the workers of Spark, got {failure} in one: there is no sum.
        What was charged stays charged. Look at that worker (disk, memory, files), then start again.""")


def _gone(error: Exception) -> EngineFailure:
    """What is said when Spark itself gives up."""
    return EngineFailure(f"""Expected answers from Spark, got {type(error).__name__}: the session or its workers are
        gone, and there is no sum. What was charged stays charged. Start again, from a new session.""")
