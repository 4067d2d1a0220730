"""How accurate private models are at their defaults, beside what they are measured against; one machine, one go.

    python benchmarks/accuracy.py                everything, about forty minutes
    python benchmarks/accuracy.py --quick        two runs, small tables, to see that it runs
    python benchmarks/accuracy.py --no-peers     privet alone
    python benchmarks/accuracy.py --only adult,mnist
    python benchmarks/accuracy.py --only probabilities --keep     one section anew, the others as they were
    python benchmarks/accuracy.py --dev --only small,diabetes     training rows only, to choose settings by
    python benchmarks/accuracy.py --page         the page anew, from the numbers that are there

Writes results/accuracy.json (all numbers) and results/accuracy.md (bars and tables); with `--dev` nothing. `make
bench-accuracy` prepares the two environments: privet's, and one for the peer, which needs an older scikit-learn. Data
come from ../shared/data if they are there, else from scikit-learn. Costs are measured first, alone; then privet's runs
and the peer's share the machine, one thread each. The noise is the system's, as users get it: no two runs of this file
agree to the last digit. Splits and tables that are made up follow from fixed seeds.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import sklearn
from accuracy_costs import limits, memory, times
from accuracy_dev import dev
from accuracy_page import page
from accuracy_peering import finish_peer, start_peer
from accuracy_runs import Wanted, measure
from accuracy_sections import RUNS, Shelf, cases
from accuracy_tables import EPSILONS, FLOORS, SHARED, SLOW, Table, large, small, without_ranges
from accuracy_tall import tall
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
SECTIONS = ("costs", "small", "tables", *RUNS, "tall")
Results = dict[str, Any]


def main() -> None:
    """Measure, then write the two result files; or only print, of training rows."""
    options = _options()
    if options.page:
        kept = json.loads((options.output / "accuracy.json").read_text(encoding="utf-8"))
        (options.output / "accuracy.md").write_text(page(kept), encoding="utf-8")
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    asked = options.only.split(",") if options.only else []
    sections = [s for s in SECTIONS if s in asked] or [s for s in SECTIONS if s != "tall" or options.tall]
    names = [name for name in asked if name not in SECTIONS] or None
    wanted = Wanted(runs=options.runs, epsilons=_floats(options.epsilons), relations=_relations(options.relations))
    with threadpool_limits(1):
        if options.dev:
            chosen = [s for s in sections if s not in ("costs", "tall")] if asked else ["small"]
            dev(chosen, Shelf(data=options.data, dev=True), names, wanted)
            if "tall" in sections:
                print(json.dumps(tall(rounds=options.runs or 2), indent=1))
            return
    if options.quick:
        names = names or ["adult", "bank", "california_housing", "diamonds", "wine", "diabetes"]
        wanted = Wanted(runs=2, epsilons=wanted.epsilons, relations=wanted.relations)
    _write(options, sections, names, wanted)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two runs, small tables, to see that it runs")
    parser.add_argument("--dev", action="store_true", help="fit and score on training rows; print, write nothing")
    parser.add_argument("--runs", type=int, help="private runs of each cell; 10 of a table, or as the section has it")
    parser.add_argument("--only", help=f"names of tables and sections ({', '.join(SECTIONS)}), with commas between")
    parser.add_argument("--epsilons", help="with commas between; of the sections beside costs, small and tables")
    parser.add_argument("--relations", help="zero_out, replace_one, add_remove; likewise")
    parser.add_argument("--no-peers", action="store_true", help="privet alone")
    parser.add_argument("--tall", action="store_true", help="time two million rows as well")
    parser.add_argument("--keep", action="store_true", help="keep the sections that are not measured now")
    parser.add_argument("--data", type=Path, default=SHARED, help="where the shared tables are")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--page", action="store_true", help="write the page anew, from the numbers that are there")
    return parser.parse_args()


def _floats(text: str | None) -> tuple[float, ...] | None:
    return tuple(float(part) for part in text.split(",")) if text else None


def _relations(text: str | None) -> tuple[Neighbours, ...] | None:
    found = tuple(text.split(",")) if text else None
    if found and not set(found) <= set(get_args(Neighbours)):
        raise SystemExit(f"--relations knows {', '.join(get_args(Neighbours))}")
    return found  # type: ignore[return-value]


def _write(options: argparse.Namespace, sections: Sequence[str], names: list[str] | None, wanted: Wanted) -> None:
    """Measure the sections on test rows and write both files."""
    options.output.mkdir(parents=True, exist_ok=True)
    runs, start, path = wanted.runs or 10, time.perf_counter(), options.output / "accuracy.json"
    first = {"costs", "small", "tables"} & set(sections)
    main_tables = large(options.data, names) if first else []
    small_tables = small(main_tables) if "small" in sections else []
    results: Results = json.loads(path.read_text(encoding="utf-8")) if options.keep and path.exists() else {}
    results["facts"] = _facts(runs, main_tables, options.data)

    def keep(name: str, found: Any) -> None:
        results[name] = found
        results.setdefault("dates", {})[name] = results["facts"]["date"]
        results["facts"]["seconds"] = round(time.perf_counter() - start)
        path.write_text(_dumped(results), encoding="utf-8")

    if "costs" in sections:
        keep("costs", costs(main_tables, quick=options.quick))
    with tempfile.TemporaryDirectory() as folder:
        timed = [*small_tables, *(main_tables if "tables" in sections else [])]
        peer = start_peer(Path(folder), timed, runs) if timed and not options.no_peers else None
        try:
            with threadpool_limits(1):
                if "small" in sections:
                    keep("small", {t.name: accuracy(t, runs) for t in small_tables})
                if "tables" in sections:
                    keep("tables", {t.name: accuracy(t, runs) for t in main_tables})
                    keep("learnt", {t.name: learnt_ranges(t, runs) for t in main_tables if t.raw})
                shelf = Shelf(data=options.data)
                for section in [s for s in sections if s in RUNS]:
                    keep(section, measure(cases(section, shelf, names), wanted, RUNS[section]))
            if timed and not (options.keep and options.no_peers):
                print("waiting for the peer", flush=True)
                keep("peer", finish_peer(peer, Path(folder)))
        finally:
            if peer is not None and peer.poll() is None:
                peer.kill()
                peer.wait()
    if "tall" in sections:
        keep("tall", tall(rounds=wanted.runs or 3))
    (options.output / "accuracy.md").write_text(page(results), encoding="utf-8")
    print(f"Wrote {options.output / 'accuracy.md'} after {time.perf_counter() - start:.0f} s")


def _dumped(results: Results) -> str:
    """JSON, with each row of a section on a line of its own."""
    parts = []
    for name, value in results.items():
        rows = isinstance(value, list)
        text = "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]" if rows else json.dumps(value, indent=1)
        parts.append(f'"{name}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _facts(runs: int, tables: Sequence[Table], data: Path) -> Results:
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 2),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "scikit-learn": sklearn.__version__,
        "runs": runs,
        "epsilons": list(EPSILONS),
        "shared": any(table.name in FLOORS for table in tables) if tables else (data / "schemas.toml").exists(),
    }


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


if __name__ == "__main__":
    main()
