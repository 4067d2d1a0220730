"""Sums over files against the same in memory: what encoding, a pass and an engine cost. Writes results/scale.md.

`make bench-scale`; some minutes and 12 GB of disk. Rounds are paired: what is compared is measured in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import multiprocessing
import os
import platform
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from descent_page import _table
from quiet import QUIET, undisturbed, watched

from privet.arrays import Vector
from privet.clipping import Clip
from privet.engines import Stream, parted_glm
from privet.engines.dask_engine import DaskEngine
from privet.engines.encoded_part import close_parts, open_part
from privet.engines.local_dask import local_client
from privet.engines.sources import source_blocks, source_parts
from privet.engines.tasks import Total
from privet.problems import LinearProblem, glm
from privet.problems.parted import Ask
from privet.sums import Table
from privet.sums.blocks import threads_at_most

COLUMNS = 40
NAMES = [f"x{j:02d}" for j in range(COLUMNS)]
RULE = Clip(clip=1.0)
RESULTS = Path(__file__).parent / "results"


def write_rows(folder: Path, rows: int, files: int) -> None:
    """Made-up rows and labels; floats whose lower bits are random, which do not compress."""
    for i in range(files):
        rng = np.random.default_rng(i)
        X = rng.normal(size=(rows // files, COLUMNS))
        table = pa.table({**dict(zip(NAMES, X.T, strict=True)), "y": (X[:, 0] > 0).astype(float)})
        pq.write_table(table, folder / f"{i:03d}.parquet", row_group_size=100_000, compression="zstd")


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def own_memory() -> float:
    """Memory of this process that is no file's, in MB."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon")) / 1e3


def grown(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and by how much the process's own memory grew at most, in MB."""
    before, most, done = own_memory(), [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            most[0] = max(most[0], own_memory() - before)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        return work(), most[0]
    finally:
        done.set()
        watcher.join()


def forget(paths: list[str]) -> None:
    """Drop files from the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_raw(paths: list[str]) -> None:
    """Read files from end to end."""
    buffer = bytearray(1 << 22)
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def decode(folder: Path) -> None:
    """Read and decode all of the source."""
    for part in source_parts(folder):
        for _ in source_blocks(part, [*NAMES, "y"], rows=200_000):
            pass


def step_from_source(folder: Path, theta: Vector) -> None:
    """A gradient that decodes and encodes the source anew."""
    for part in source_parts(folder):
        for block in source_blocks(part, [*NAMES, "y"], rows=200_000):
            glm("logistic", block.select(NAMES), block["y"], row_norm=8.0).gradient_sum(theta, rule=RULE)


def in_memory(problem: Any) -> LinearProblem:
    """The encoded rows of all parts as one table in memory."""
    parts = [open_part(part, problem.loss) for part in problem._parts.parts]
    first: Any = parts[0].table
    units = np.concatenate([part.table.units for part in parts])
    inverse = np.concatenate([part.table.inverse_norms for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    table = Table(units, inverse, step=first.step, row_norm=first.row_norm)
    return LinearProblem(problem.loss, table, labels, domain=problem.domain, ridge=problem.ridge)


def plain_process(parts: Any, loss: Any, theta: Vector, start: Any, rounds: int, answers: Any) -> None:
    """A process that sums its parts, told when to begin."""
    job = Total(Ask("gradient_sum", (theta,), (("rule", RULE),)), loss)
    shares = [(part, None) for part in parts]
    for _ in range(rounds + 1):
        start.wait()
        with threads_at_most(1):  # as a worker of one thread has
            answers.put(timed(lambda: job(shares))[0])
        start.wait()


@contextlib.contextmanager
def plain_processes(problem: Any, theta: Vector, count: int, rounds: int) -> Iterator[Callable[[], float]]:
    """A function that has so many processes without any engine pass over the rows, and tells their wall seconds."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(count + 1), context.Queue()
    parts = problem._parts.parts
    work = [
        context.Process(target=plain_process, args=(parts[i::count], problem.loss, theta, barrier, rounds, answers))
        for i in range(count)
    ]
    for process in work:
        process.start()

    def together() -> float:
        barrier.wait()
        found = max(answers.get() for _ in range(count))
        barrier.wait()
        return found

    yield together
    for process in work:
        process.join()


def side_by_side(problem: Any, count: int, rounds: int) -> tuple[list[dict[str, Any]], list[float]]:
    """Passes by Dask's workers and by plain processes, in turn, the first left out; and steps of nothing."""
    theta = np.linspace(-1, 1, COLUMNS)
    with plain_processes(problem, theta, count, rounds) as plain, local_client(count) as client:
        engine = problem._parts.engine = DaskEngine(client)
        found = []
        for _ in range(rounds + 1):
            (one, before), (other, after) = watched(plain), watched(lambda: engine_pass(problem, theta))
            found.append({"plain": one, "dask": other, "others": max(before, after)})
        nothing = partial(engine.run, len, [[]] * count)
        return found[1:], [timed(nothing)[0] for _ in range(20)][5:]


def engine_pass(problem: Any, theta: Vector) -> float:
    """Wall seconds of a pass."""
    return timed(lambda: problem.gradient_sum(theta, rule=RULE))[0]


def encoded(folder: Path) -> tuple[tuple[float, float], tuple[float, float], tuple[Any, float]]:
    """What decoding takes, then what encoding takes; the encoded rows, and the memory that took."""
    plain, made = timed(lambda: decode(folder)), []
    work = partial(parted_glm, "logistic", folder, "y", columns=NAMES, row_norm=8.0)
    return plain, timed(lambda: made.append(grown(work))), made[0]


def encodings(folder: Path) -> tuple[list[dict[str, Any]], Any]:
    """What encoding takes, beside reading and decoding the source, and the encoded rows."""
    decode(folder)  # into the page cache
    found: list[dict[str, Any]] = []
    problem = None
    for _ in range(3):
        problem = None  # whose files are deleted here, not below
        (plain, encoding, (problem, most)), others = watched(lambda: encoded(folder))
        found.append({"decode": plain, "encode": encoding, "memory": most, "others": others})
    return found, problem


def passes(problem: Any, theta: Vector, rounds: int) -> tuple[list[dict[str, Any]], bool]:
    """Passes over files and over the same rows in memory, in turn; and whether their sums are the same."""
    here = in_memory(problem)
    both = [lambda: problem.gradient_sum(theta, rule=RULE), lambda: here.gradient_sum(theta, rule=RULE)]
    found = []
    for _ in range(rounds):
        pair, others = watched(lambda: dict(zip(("away", "near"), map(timed, both), strict=True)))
        found.append({**pair, "others": others})
    return found, bool(np.array_equal(both[0]().units, both[1]().units))


def cold_passes(problem: Any, theta: Vector) -> list[dict[str, float]]:
    """Passes over files that are in no cache, and raw reads of them."""
    found, files = [], [part.path for part in problem._parts.parts]
    for _ in range(2):
        close_parts()
        forget(files)
        raw = timed(lambda: read_raw(files))[0]
        forget(files)
        found.append({"raw": raw, "pass": timed(lambda: problem.gradient_sum(theta, rule=RULE))[0]})
    return found


def out_of_core(folder: Path, rows: int, rounds: int) -> tuple[dict[str, Any], Any]:
    """Encoding, memory, warm and cold passes."""
    theta = np.linspace(-1, 1, COLUMNS)
    pairs, problem = encodings(folder)
    warm, same = passes(problem, theta, rounds)
    cold = cold_passes(problem, theta)
    source = timed(lambda: step_from_source(folder, theta))[0]
    size = sum(os.path.getsize(part.path) for part in problem._parts.parts)
    known = {"rows": rows, "bytes": rows * COLUMNS * 8, "encoded": size, "same": same, "source": source}
    return {**known, "pairs": pairs, "passes": warm, "cold": cold}, problem


def engines(problem: Any, rounds: int) -> dict[str, Any]:
    """Passes by Dask's workers and by plain processes, one and two of each; and steps of nothing, on Spark as well."""
    found: dict[str, Any] = {"empty": {}}
    for count in (1, 2):
        found[f"pairs {count}"], found["empty"][f"dask {count}"] = side_by_side(problem, count, rounds)
    problem._parts.engine = Stream()
    found["empty"].update(spark_steps())
    return found


def spark_steps() -> dict[str, list[float]]:
    """A step of nothing on two cores of Spark, the first ones left out; nothing where there is no Spark or no Java."""
    if find_spec("pyspark") is None or shutil.which("java") is None:
        return {}
    from pyspark.sql import SparkSession

    from privet.engines import SparkEngine

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the workers, which else take the first on the path
    settings = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        nothing = partial(SparkEngine(session, cores=2).run, len, [[]] * 2)
        return {"spark 2": [timed(nothing)[0] for _ in range(30)][10:]}
    finally:
        session.stop()


def page(results: dict[str, Any]) -> str:
    """The report."""
    core, some, facts = results["out of core"], results["engines"], results["facts"]
    empty = {name: 1e3 * statistics.median(values) for name, values in some["empty"].items()}
    passes, pairs = undisturbed(core["passes"]), {count: undisturbed(some[f"pairs {count}"]) for count in (1, 2)}
    warm = statistics.median(each["away"][0] for each in passes)
    ratio = statistics.median(each["away"][1] / each["near"][1] for each in passes)
    dask = {count: statistics.median(each["dask"] / each["plain"] for each in found) for count, found in pairs.items()}
    most = {
        "warm pass ÷ in memory, CPU": (ratio, 1.1),
        "cold pass ÷ raw read of the files": (min(each["pass"] / each["raw"] for each in core["cold"]), 1.25),
        "encoding ÷ decoding, wall": (min(each["encode"][0] / each["decode"][0] for each in core["pairs"]), 1.5),
        "encoding ÷ decoding, CPU": (min(each["encode"][1] / each["decode"][1] for each in core["pairs"]), 1.5),
        "own memory while encoding, MB": (max(each["memory"] for each in core["pairs"]), 500),
        "Dask, one worker ÷ one plain process": (dask[1], 1.15),
        "Dask, two workers ÷ two plain processes": (dask[2], 1 / 0.95),
        "a step of nothing on two Dask workers, ms": (empty["dask 2"], 25),
    }
    if "spark 2" in empty:
        most["a step of nothing on two cores of Spark, ms"] = empty["spark 2"], 500
    rows = [[name, f"{got:.3g}", f"at most {bar:.3g}", met(got <= bar)] for name, (got, bar) in most.items()]
    gain = core["source"] / warm
    rows.append(["a step from Parquet ÷ a warm pass", f"{gain:.3g}", "at least 10", met(gain >= 10)])
    rows.append(["same bits as in memory", "", "", met(core["same"])])
    ms = {
        (kind, count): f"{1e3 * statistics.median(each[kind] for each in found):.0f} ms"
        for count, found in pairs.items()
        for kind in ("dask", "plain")
    }
    worst = max(each["others"] for found in (passes, *pairs.values()) for each in found)
    used = f"{len(passes)} of {len(core['passes'])}", *(f"{len(pairs[k])} of {len(some[f'pairs {k}'])}" for k in pairs)
    said = [
        f"Written by `benchmarks/scale.py` ({facts['date']}); one run on one machine with {facts['cores']} cores, load",
        f"average {facts['load']} at the start. {core['rows']:,} rows of {COLUMNS} columns:",
        f"{core['bytes'] / 1e9:.1f} GB as floats, {core['encoded'] / 1e9:.2f} GB encoded.",
        "Ratios are medians of paired rounds, which took turns; the best of two for cold files and of three for",
        f"encoding. Rounds in which others took more than {QUIET:.0%} of a core are left out, or else the worst two",
        f"thirds: {used[0]} rounds are used for the warm pass, {used[1]} and {used[2]} for one and two workers;",
        f"others took at most {worst:.2f} cores in them.",
    ]
    more = [
        f"A warm pass takes {1e3 * warm:.0f} ms: {core['encoded'] / warm / 1e9:.1f} GB/s of encoded rows.",
        f"One and two Dask workers: {ms['dask', 1]} and {ms['dask', 2]};",
        f"one and two plain processes: {ms['plain', 1]} and {ms['plain', 2]}.",
    ]
    table = _table(["what", "measured", "bar", "met"], rows)
    return "\n\n".join(["# Tables that do not fit in memory", "\n".join(said), table, "\n".join(more)]) + "\n"


def met(it: bool) -> str:
    """Yes or no, the latter to be seen."""
    return "yes" if it else "**no**"


def main() -> None:
    """Measure, and write results."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=16_000_000)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument(
        "--folder", type=Path, help="where rows go; the system's folder for temporary files by default"
    )
    given = options.parse_args()
    facts = {
        "date": dt.date.today().isoformat(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name) / "source"
        folder.mkdir()
        write_rows(folder, given.rows, 8)
        core, problem = out_of_core(folder, given.rows, given.rounds)
        print(json.dumps(core), flush=True)
        results = {"facts": facts, "out of core": core, "engines": engines(problem, given.rounds)}
    RESULTS.joinpath("scale.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    RESULTS.joinpath("scale.md").write_text(page(results), encoding="utf-8")
    print(page(results))


if __name__ == "__main__":
    main()
