"""How accurate private models are at their defaults, beside what they are measured against; one machine, one go.

    python benchmarks/accuracy.py                everything, about a quarter of an hour
    python benchmarks/accuracy.py --quick        two runs, small tables, to see that it runs
    python benchmarks/accuracy.py --no-peers     privet alone
    python benchmarks/accuracy.py --only adult,mnist
    python benchmarks/accuracy.py --page         the page anew, from the numbers that are there

Writes results/accuracy.json (all numbers) and results/accuracy.md (bars and tables). `make bench-accuracy` prepares the
two environments: privet's, and one for the peer, which needs an older scikit-learn. Data come from ../shared/data if
they are there, else from scikit-learn. Costs are measured first, alone; then privet's runs and the peer's share the
machine, one thread each. The noise is the system's, as users get it: no two runs of this file agree to the last digit.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from accuracy_costs import limits, memory, times
from accuracy_page import page
from accuracy_tables import EPSILONS, FLOORS, SHARED, Table, large, small, without_ranges
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

from privet.accounting import Gaussian, calibrate
from privet.accounting import epsilon as price
from privet.estimators import fit_table
from privet.privacy import Budget, Neighbours

HERE = Path(__file__).resolve().parent
PEER_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
SLOW = ("kddcup99_10pct", "mnist")
Results = dict[str, Any]


def main() -> None:
    """Measure, then write the two result files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two runs, small tables, to see that it runs")
    parser.add_argument("--runs", type=int, help="private runs of each cell; 10 unless told")
    parser.add_argument("--only", help="names of tables, with commas between")
    parser.add_argument("--no-peers", action="store_true", help="privet alone")
    parser.add_argument("--data", type=Path, default=SHARED, help="where the shared tables are")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--page", action="store_true", help="write the page anew, from the numbers that are there")
    options = parser.parse_args()
    if options.page:
        kept = json.loads((options.output / "accuracy.json").read_text(encoding="utf-8"))
        (options.output / "accuracy.md").write_text(page(kept), encoding="utf-8")
        return
    options.output.mkdir(parents=True, exist_ok=True)
    runs = options.runs or (2 if options.quick else 10)
    start = time.perf_counter()
    warnings.simplefilter("ignore", ConvergenceWarning)

    names = options.only.split(",") if options.only else None
    if options.quick and names is None:
        names = ["adult", "bank", "california_housing", "diamonds", "wine", "diabetes"]
    main_tables = large(options.data, names)
    small_tables = small(main_tables)
    print(f"read and encoded {len(main_tables)} tables and {len(small_tables)} small ones", flush=True)
    results: Results = {
        "facts": {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "load": round(os.getloadavg()[0], 2),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "scikit-learn": sklearn.__version__,
            "runs": runs,
            "epsilons": list(EPSILONS),
            "shared": any(table.name in FLOORS for table in main_tables),
        }
    }

    def keep(name: str, found: Any) -> None:
        results[name] = found
        results["facts"]["seconds"] = round(time.perf_counter() - start)
        (options.output / "accuracy.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    keep("costs", costs(main_tables, quick=options.quick))
    with tempfile.TemporaryDirectory() as folder:
        peer = None if options.no_peers else start_peer(Path(folder), [*small_tables, *main_tables], runs)
        try:
            with threadpool_limits(1):
                keep("small", {t.name: accuracy(t, runs) for t in small_tables})
                keep("tables", {t.name: accuracy(t, runs) for t in main_tables})
                keep("learnt", {t.name: learnt_ranges(t, runs) for t in main_tables if t.raw})
            print("waiting for the peer", flush=True)
            keep("peer", finish_peer(peer, Path(folder)))
        finally:
            if peer is not None and peer.poll() is None:
                peer.kill()
                peer.wait()
    (options.output / "accuracy.md").write_text(page(results), encoding="utf-8")
    print(f"Wrote {options.output / 'accuracy.md'} after {time.perf_counter() - start:.0f} s")


def costs(tables: Sequence[Table], *, quick: bool) -> Results:
    """Time and memory of a fit, and coefficients at epsilon = 1e6."""
    print("costs", flush=True)
    labels = [table for table in tables if table.classes]
    timed = [table for table in labels if table.classes == 2]
    return {
        "times": {table.name: times(table, rounds=2 if quick else 5) for table in timed},
        "memory": {table.name: memory(table) for table in labels},
        "limits": limits([table for table in tables if table.name not in SLOW]),
    }


def accuracy(table: Table, runs: int) -> Results:
    """Test accuracy, or R², of every run; the non-private ceiling and the guess that looks at no feature."""
    print(f"{table.title}: {len(table.X):,} rows, {table.X.shape[1]} columns", flush=True)
    scores: Results = {}
    spent = []
    wanted = ["zero_out", "replace_one"] + ([] if table.name in SLOW else ["twice"])
    for relation in wanted:
        scores[relation] = {}
        for epsilon in EPSILONS:
            budget = twice_the_noise(epsilon, table.delta) if relation == "twice" else epsilon
            neighbours: Neighbours = "replace_one" if relation == "replace_one" else "zero_out"
            found = []
            for _ in range(runs):
                begin = time.perf_counter()
                model = table.model(budget, neighbours).fit(table.X, table.y)
                spent.append(time.perf_counter() - begin)
                found.append(float(model.score(table.X_test, table.y_test)))
            scores[relation][str(epsilon)] = found
    return {
        "title": table.title,
        "rows": len(table.X),
        "columns": table.X.shape[1],
        "classes": table.classes,
        "delta": table.delta,
        "floors": table.floors,
        "issue_ceiling": FLOORS[table.name][1] if table.name in FLOORS else None,
        "ceiling": ceiling(table),
        "guess": guess(table),
        "scores": scores,
        "seconds": float(np.median(spent)),
    }


def twice_the_noise(epsilon: float, delta: float) -> float:
    """The epsilon whose noise under zero_out is twice that of `epsilon`: what replace_one may cost."""
    noise = calibrate(lambda s: Gaussian(noise_multiplier=s), epsilon=epsilon, delta=delta, neighbours="zero_out")
    return price(Gaussian(noise_multiplier=2 * noise), delta=delta, neighbours="zero_out")


def ceiling(table: Table) -> float:
    """scikit-learn's defaults without privacy on the same features, in [-1, 1]; predictions kept in range, as ours."""
    X, X_test = table.features(table.X), table.features(table.X_test)
    if not table.classes:
        return float(r2_score(table.y_test, np.clip(PlainLinear().fit(X, table.y).predict(X_test), -1.0, 1.0)))
    model = PlainLogistic(max_iter=100 if table.name == "mnist" else 300).fit(X, table.y)
    return float(model.score(X_test, table.y_test))


def guess(table: Table) -> float:
    """The commonest class, or the mean, of the training rows."""
    model = DummyClassifier() if table.classes else DummyRegressor()
    return float(model.fit(table.X[:, :1], table.y).score(table.X_test[:, :1], table.y_test))


def learnt_ranges(table: Table, runs: int) -> Results:
    """The same table when the ranges of its numbers are learnt, from the same budget."""
    print(f"{table.title}, ranges learnt", flush=True)
    assert table.schema is not None
    schema = without_ranges(table.schema)
    found: Results = {}
    for epsilon in EPSILONS:
        budget = Budget(epsilon=epsilon, delta=table.delta)
        fits = (fit_table(table.raw, schema, budget=budget, neighbours="zero_out") for _ in range(runs))
        found[str(epsilon)] = [model.score(table.raw_test) for model in fits]
    return found


def start_peer(folder: Path, tables: Sequence[Table], runs: int) -> subprocess.Popen[bytes] | None:
    """Hand the tables over and let diffprivlib begin, in its own process and environment."""
    if not PEER_PYTHON.exists():
        print("no .venv-peers: `make bench-accuracy` builds it; going on without the peer")
        return None
    free = shutil.disk_usage(folder).free
    orders = []
    for table in sorted(tables, key=lambda t: t.X.size):
        if 4 * (table.X.size + table.X_test.size) > free / 2:
            continue
        np.savez(
            folder / f"{table.name}.npz",
            X=table.features(table.X).astype(np.float32),
            X_test=table.features(table.X_test).astype(np.float32),
            y=table.y,
            y_test=table.y_test,
            low=table.low,
        )
        orders.append(peer_order(table, runs))
    (folder / "orders.json").write_text(json.dumps(orders), encoding="utf-8")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([PEER_PYTHON, HERE / "accuracy_peer.py", folder], env=environment)


def peer_order(table: Table, runs: int) -> Results:
    """What the peer may choose among; wider where it is fast, and one run a setting where it is very slow."""
    order = {"name": table.name, "classes": table.classes, "epsilons": EPSILONS, "trials": 3, "runs": runs}
    if not table.classes:
        grid: list[Results] = [{"columns": "all"}, {"columns": "numbers"}]
    elif table.name == "mnist":
        grid = [{"C": c, "data_norm": table.norm / 3} for c in (1e-5, 1e-4, 1e-3, 1e-2)]
        grid.append({"C": 1e-4, "data_norm": table.norm / 6})
        order |= {"trials": 1, "runs": 0}
    else:
        norms = [table.norm] if table.bounds is None else [table.norm, table.norm / 3]
        grid = [{"C": c, "data_norm": n, "max_iter": 200} for n in norms for c in (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)]
        order |= {"trials": 1} if table.name in SLOW else {}
    return order | {"grid": grid}


def finish_peer(peer: subprocess.Popen[bytes] | None, folder: Path, patience: float = 1800.0) -> Results:
    """What the peer has found; what it has not within half an hour is left out."""
    if peer is None:
        return {}
    try:
        peer.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        print("the peer is not done; what it has is kept")
    answers = folder / "answers.json"
    return dict(json.loads(answers.read_text(encoding="utf-8"))) if answers.exists() else {}


if __name__ == "__main__":
    main()
