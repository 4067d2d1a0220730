"""What a step would take on a thousand cores: a model of three costs, each measured on this machine.

    python benchmarks/scale_model.py               from the costs in results/scale_model.json
    python benchmarks/scale_model.py --measure     measure them first, some minutes; with Dask and Spark installed

A step of n tasks is taken to last  start + n × task + bytes ÷ (cores × rate):  what the driver does once, what it does
for each task one after the other, and the pass over the rows, which all cores share. All three are CPU seconds, which a
busy machine inflates less than seconds on the wall. What is not in it: the network, stragglers, and reads from a disk.
Writes results/scale_model.json, results/scale_model.md and docs/images/scale.svg.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import pickle
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROWS, COLUMNS = 1_000_000_000, 100
BYTES = 2 * ROWS * COLUMNS
MACHINE = 16  # cores that share a task, where a task is a machine
CORES = 1_000
Costs = dict[str, Any]


def main() -> None:
    """Measure if asked to, then write page and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure the costs first")
    options = parser.parse_args()
    path = HERE / "results" / "scale_model.json"
    if options.measure:
        path.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    costs = json.loads(path.read_text(encoding="utf-8"))
    (HERE / "results" / "scale_model.md").write_text(page(costs), encoding="utf-8")
    figure_file = HERE.parent / "docs" / "images" / "scale.svg"
    figure_file.parent.mkdir(exist_ok=True)
    write_figure(costs, figure_file)
    print(page(costs))


# The model.


def step(costs: Costs, engine: str, tasks: float, cores: float) -> float:
    """Seconds of a step over all rows."""
    dispatch = costs[engine]
    return dispatch["start"] + tasks * (dispatch["task"] + costs["answer"]) + compute(costs) / cores


def compute(costs: Costs) -> float:
    """Seconds that one core would take for a step over all rows."""
    return BYTES / costs["rate"]


def best(costs: Costs, engine: str, cores_a_task: int) -> tuple[int, float]:
    """How many tasks make a step shortest, out of at most `CORES` cores, and how long it is."""
    return min(
        ((n, step(costs, engine, n, n * cores_a_task)) for n in range(1, CORES // cores_a_task + 1)),
        key=lambda each: each[1],
    )


def page(costs: Costs) -> str:
    """What was measured, and what follows."""
    lines = [
        "# A step over 10⁹ × 100 rows, on paper",
        "",
        f"Measured {costs['when']} on {costs['machine']}, load {costs['load']}: CPU seconds, as others were at work.",
        "",
        "| cost | measured |",
        "|---|---|",
        f"| one core over encoded rows | {costs['rate'] / 1e9:.2f} GB/s ({compute(costs):.0f} s for all rows) |",
        f"| the driver reads a gradient and adds it | {1e6 * costs['answer']:.0f} µs |",
        f"| the driver reads a matrix of second moments and adds it | {1e6 * costs['moments']:.0f} µs |",
    ]
    for engine in ("dask", "spark"):
        found = costs[engine]
        lines += [
            f"| {engine.title()} {found['version']}: an empty step of two tasks, on the wall | {found['wall']:.3f} s |",
            f"| {engine.title()}: the driver, once a step | {1e3 * found['start']:.1f} ms |",
            f"| {engine.title()}: the driver, for each task | {1e3 * found['task']:.2f} ms |",
        ]
    lines += ["", "| engine | a task is | tasks | cores | a step |", "|---|---|---|---|---|"]
    for engine in ("dask", "spark"):
        for size, what in ((1, "a core"), (MACHINE, f"a machine of {MACHINE} cores")):
            for tasks in sorted({best(costs, engine, size)[0], CORES // size}):
                seconds = step(costs, engine, tasks, tasks * size)
                lines.append(f"| {engine.title()} | {what} | {tasks} | {tasks * size} | {seconds:.2f} s |")
    return "\n".join(lines) + "\n"


def write_figure(costs: Costs, path: Path) -> None:
    """Seconds of a step against cores."""
    import matplotlib as mpl

    from privet.report.canvas import FAINT, canvas, styles

    cores = np.unique(np.geomspace(1, CORES, 200).round())
    with canvas("A step over 10⁹ × 100 rows", "a model, from costs measured on one busy machine of two cores") as (
        figure,
        axes,
    ):
        kinds = [("dask", 1), ("spark", 1), ("dask", MACHINE), ("spark", MACHINE)]
        for (engine, size), style in zip(kinds, styles(), strict=False):
            at = cores[cores >= size]
            what = "core" if size == 1 else f"{size} cores"
            seconds = [step(costs, engine, n / size, n) for n in at]
            axes.plot(at, seconds, label=f"{engine.title()}, a task for each {what}", **style)
            tasks, least = best(costs, engine, size)
            axes.plot([tasks * size], [least], "o", color=style["color"])
        axes.plot(cores, compute(costs) / cores, color=FAINT, linestyle=":", label="the pass over the rows alone")
        axes.set(xscale="log", yscale="log", xlabel="cores", ylabel="seconds a step")
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        ticks = [0.1, 1, 10, 100]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.legend(loc="lower left", fontsize=9.5)
    with mpl.rc_context({"svg.hashsalt": "privet", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


# The costs.


def measured() -> Costs:
    """All costs, and where they were measured."""
    found: Costs = {
        "when": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }
    for name, measure in (
        ("rate", kernel),
        ("answer", answer),
        ("moments", lambda: answer(COLUMNS**2)),
        ("dask", dask),
        ("spark", spark),
    ):
        found[name] = measure()
        print(name, found[name], flush=True)
    return found


def kernel() -> float:
    """Bytes of encoded rows that one core takes a clipped gradient over in a second: the best of many passes."""
    from threadpoolctl import threadpool_limits

    from privet.clipping import Clip
    from privet.losses import loss_named
    from privet.sums import bounded_table, glm_sum

    rng = np.random.default_rng(0)
    table = bounded_table(rng.standard_normal((400_000, COLUMNS)), row_norm=10.0)
    y = (rng.random(400_000) < 0.5).astype(float)
    theta, derivative = 0.1 * rng.standard_normal(COLUMNS), loss_named("logistic").derivative
    with threadpool_limits(1):
        times = [cpu(lambda: glm_sum(derivative, table, y, theta, rule=Clip(clip=0.5), threads=1)) for _ in range(15)]
    return float(table.units.nbytes / min(times[1:]))


def answer(numbers: int = COLUMNS) -> float:
    """Seconds to read an answer of so many numbers and add it."""
    sent, total = pickle.dumps(np.arange(numbers)), np.zeros(numbers, dtype=np.int64)

    def add() -> None:
        for _ in range(1000):
            np.add(total, pickle.loads(sent), out=total)

    return min(cpu(add) for _ in range(9)) / 1000


def dask() -> Costs:
    """What client and scheduler cost, which live in this process; two workers have processes of their own."""
    import distributed

    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:

        def run(tasks: int) -> None:
            client.gather(client.map(nothing, range(tasks), pure=False))

        found = dispatch(run, time.process_time, (2, 100, 200, 400))
    return {"version": distributed.__version__, **found}


def spark() -> Costs:
    """What this process and the driver's Java cost; two executors have processes of their own."""
    import pyspark
    from pyspark.sql import SparkSession

    from privet.engines.spark_engine import SparkEngine

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.executor.memory": "512m"}
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    engine, java = SparkEngine(session, cores=2), session.sparkContext._gateway.proc.pid

    def clock() -> float:
        with open(f"/proc/{java}/stat") as file:
            spent = file.read().rsplit(")", 1)[1].split()[11:13]
        return time.process_time() + sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")

    found = dispatch(lambda tasks: engine.run(len, [["part"]] * tasks), clock, (2, 25, 50, 100))
    session.stop()
    return {"version": pyspark.__version__, **found}


def dispatch(run: Callable[[int], Any], clock: Callable[[], float], sizes: tuple[int, ...]) -> Costs:
    """What a step costs the driver, once and for each task: a line through medians; and how long a short one takes."""
    for _ in range(3):
        run(sizes[-1])
    taken, walls = [], []
    for size in sizes:
        spent = []
        for _ in range(9 if size == sizes[0] else 3):
            before, began = clock(), time.perf_counter()
            run(size)
            spent.append(clock() - before)
            if size == sizes[0]:
                walls.append(time.perf_counter() - began)
        taken.append(statistics.median(spent))
    task, start = np.polyfit(sizes, taken, 1)
    return {"task": float(task), "start": max(0.0, float(start)), "wall": statistics.median(walls), "cpu": taken}


def nothing(number: int) -> int:
    """A task that does nothing."""
    return number


def cpu(action: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    before = time.process_time()
    action()
    return time.process_time() - before


if __name__ == "__main__":
    main()
