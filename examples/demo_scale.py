"""Ten million made-up rows: the same private fit in memory, out of core and on a cluster of two local workers.

Run with `make demo-scale`; some minutes and about 2 GB of disk. `python examples/demo_scale.py 1000000` is sooner.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.engines import Files, Stream
from privet.engines.dask_engine import DaskEngine
from privet.engines.local_dask import local_client
from privet.errors import FixedSeed
from privet.estimators import LogisticRegression

COLUMNS = 10
FILES = 10


def write_rows(folder: Path, records: int) -> None:
    """Made-up rows and labels, a file for every tenth of them."""
    slopes = np.linspace(1, -1, COLUMNS)
    for i in range(FILES):
        rng = np.random.default_rng(i)
        X = rng.normal(size=(records // FILES, COLUMNS))
        y = (X @ slopes + rng.logistic(size=len(X)) > 0).astype(np.int8)
        pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(COLUMNS)}, "y": y}), folder / f"{i}.parquet")


def own_memory() -> float:
    """Memory of this process that is no file's, in MB; where the system does not say, NaN."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3


def watched(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a fit returns, its seconds, and by how much the process's own memory grew at most."""
    before, peak, done = own_memory(), [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], own_memory() - before)

    watcher = threading.Thread(target=look)
    watcher.start()
    start = time.perf_counter()
    found = fit()
    taken = time.perf_counter() - start
    done.set()
    watcher.join()
    return found, taken, peak[0]


def model() -> LogisticRegression:
    """A fixed seed, so that fits can be compared bit for bit; it invalidates the guarantee, which says so."""
    warnings.simplefilter("ignore", FixedSeed)
    return LogisticRegression(epsilon=1, delta=1e-9, classes=[0, 1], random_state=0)


def in_memory(folder: Path) -> LogisticRegression:
    """Read all rows, then fit."""
    table = pq.read_table(folder)
    return model().fit(table.drop(["y"]).to_pandas(), table["y"].to_numpy())


def main(records: int) -> None:
    """Write the rows, fit them three ways, and compare."""
    with tempfile.TemporaryDirectory() as name, local_client(2) as client:
        folder = Path(name) / "rows"
        folder.mkdir()
        print(f"Writing {records:,} made-up rows of {COLUMNS} columns to {FILES} Parquet files ...", flush=True)
        write_rows(folder, records)
        ways: dict[str, Callable[[], LogisticRegression]] = {
            "out of core": lambda: model().fit(Files(folder, engine=Stream()), "y"),
            "two Dask workers": lambda: model().fit(Files(folder, engine=DaskEngine(client)), "y"),
            "in memory": lambda: in_memory(folder),
        }
        found = {}
        for way, fit in ways.items():
            found[way], taken, grown = watched(fit)
            print(f"{way:18} {taken:6.1f} s, own memory of this process at most {grown:6.0f} MB more", flush=True)
        here = found["in memory"]
        same = all(
            np.array_equal(each.coef_, here.coef_) and np.array_equal(each.intercept_, here.intercept_)
            for each in found.values()
        )
        print(
            f"Coefficients of all three are {'the same, bit for bit' if same else 'NOT THE SAME'}:", here.coef_.round(3)
        )
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
