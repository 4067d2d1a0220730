"""Adult fitted in memory, from files and on clusters, with the same noise: is it the same model?

Writes results/scale_adult.md:

    python benchmarks/scale_adult.py --data ../shared/data     # with Dask (distributed), and Spark if it is there

The seed is fixed, so the guarantee of these fits is void; what their plan costs with fresh noise is told instead.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import gzip
import hashlib
import json
import shutil
import tempfile
import time
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from accuracy_tables import SHARED
from descent_page import _table

from privet import Budget
from privet.accounting import epsilon
from privet.engines import Files
from privet.engines.dask_engine import DaskEngine
from privet.engines.local_dask import local_client
from privet.errors import FixedSeed
from privet.estimators import fit_table
from privet.preprocessing import Schema, parse_schema
from privet.randomness import fixed_seed_invalidates_guarantee

RESULTS = Path(__file__).parent / "results"
BUDGET = Budget(epsilon=1.0, delta=1e-6)
FILES = 4


def tables(data: Path) -> tuple[Schema, pa.Table, pa.Table]:
    """The schema of Adult, and its rows for training and for testing; numbers as numbers."""
    facts = tomllib.loads((data / "schemas.toml").read_text(encoding="utf-8"))["adult"]
    schema = parse_schema(json.dumps(facts), form="json")
    with gzip.open(data / "adult.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [*schema.columns, schema.target.column]  # type: ignore[union-attr]
    both = []
    for split in ("train", "test"):
        cells = {name: [row[name] for row in rows if row["split"] == split] for name in names}
        number = {name for name, fact in schema.columns.items() if hasattr(fact, "low")}
        both.append(pa.table({n: [float(c) for c in column] if n in number else column for n, column in cells.items()}))
    return schema, *both


def places(table: pa.Table, folder: Path, stack: ExitStack) -> Iterator[tuple[str, Any]]:
    """The rows wherever they may be."""
    yield "memory", table.to_pydict()
    edges = np.linspace(0, table.num_rows, FILES + 1).astype(int).tolist()
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir(mode=0o700)
        for i in range(FILES):
            part, path = table.slice(edges[i], edges[i + 1] - edges[i]), folder / kind / f"{i}.{kind}"
            pq.write_table(part, path) if kind == "parquet" else pacsv.write_csv(part, path)
        yield f"{kind.capitalize() if kind == 'parquet' else 'CSV'} files", folder / kind
    import dask.dataframe as dd

    client = stack.enter_context(local_client(2))
    yield "Parquet files on Dask", Files(folder / "parquet", engine=DaskEngine(client))
    frame = dd.from_pandas(table.to_pandas(), npartitions=3, sort=False)
    yield "a Dask frame", Files(frame, engine=DaskEngine(client))
    if find_spec("pyspark") is None or shutil.which("java") is None:
        return
    from pyspark.sql import SparkSession

    from privet.engines.spark_engine import SparkEngine

    session = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    stack.callback(session.stop)
    engine = SparkEngine(session, cores=2, wait=300)
    yield "Parquet files on Spark", Files(folder / "parquet", engine=engine)
    yield "a Spark frame", Files(session.createDataFrame(table).coalesce(1), engine=engine)


def told(model: Any, test: dict[str, Any], column: str) -> dict[str, Any]:
    """What a fit comes to: all coefficients as one word, the guarantee, the accuracy on rows that it did not see."""
    inner = model.estimator_
    numbers = np.concatenate([np.ravel(inner.coef_), np.ravel(inner.intercept_)])
    return {
        "coefficients": hashlib.sha256(numbers.tobytes()).hexdigest()[:16],
        "epsilon": epsilon(model.plan.event, delta=BUDGET.delta, neighbours=model.plan.neighbours),  # with fresh noise
        "plan": hashlib.sha256(repr(model.plan).encode()).hexdigest()[:16],
        "guarantee": hashlib.sha256(model.guarantee.details.encode()).hexdigest()[:16],
        "accuracy": float(np.mean(model.predict(test) == np.array(test[column]))),
    }


def page(results: dict[str, Any]) -> str:
    """The report."""
    rows = [
        [name, each["coefficients"], each["plan"], f"{each['epsilon']:.6f}", f"{each['accuracy']:.2%}"]
        for name, each in results["fits"].items()
    ]
    alike = "All of them are the same, bit for bit." if results["same"] else "**They are not the same.**"
    said = [
        f"Written by `benchmarks/scale_adult.py` ({results['date']}): `fit_table` on the {results['records']:,} rows",
        "of Adult for training, with ranges and code books of its schema, at most ε = 1 at δ = 1e-6. The seed is fixed",
        "for this comparison, so ε is what the plan costs with fresh noise. Coefficients and plan are shown by",
        f"hashes of all their bits; accuracy is on the {results['tests']:,} test rows. {alike}",
    ]
    heads = ["rows in", "coefficients", "plan", "ε", "accuracy"]
    return "\n\n".join(["# Adult on every engine", "\n".join(said), _table(heads, rows)]) + "\n"


def main() -> None:
    """Fit, compare, and write results."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=SHARED, help="the folder with adult.csv.gz and schemas.toml")
    schema, train, test = tables(options.parse_args().data)
    seen = test.to_pydict()
    fits: dict[str, Any] = {}
    warnings.simplefilter("ignore", FixedSeed)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        for where, rows in places(train, Path(name), stack):
            start = time.perf_counter()
            model = fit_table(rows, schema, budget=BUDGET, random=fixed_seed_invalidates_guarantee(1))
            fits[where] = told(model, seen, schema.target.column)  # type: ignore[union-attr]
            print(f"{where}: {fits[where]}, {time.perf_counter() - start:.0f} s", flush=True)
    first, *others = fits.values()
    same = all(other == first for other in others)
    counts = {"records": train.num_rows, "tests": test.num_rows}
    results = {"date": dt.date.today().isoformat(), **counts, "same": same, "fits": fits}
    RESULTS.joinpath("scale_adult.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    RESULTS.joinpath("scale_adult.md").write_text(page(results), encoding="utf-8")
    print(page(results))
    if not same:
        raise SystemExit("The fits are not the same.")


if __name__ == "__main__":
    main()
