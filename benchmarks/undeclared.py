"""Regressors with nothing declared, on a few hundred rows: how far the worst of many fits is below the constant.

Diabetes with every regressor that fits it, its bootstraps, and a made-up table whose mass of birds is predicted. The
bar: at ε = 1 no run below the constant by more than 0.05, and the median within 0.1 of that of declared ranges.

Run: python benchmarks/undeclared.py [--runs 200] [--dev]   # --dev: folds of training rows, and other seeds
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_dev import lines
from accuracy_made import penguins
from accuracy_runs import Case, Wanted, measure, resampled
from accuracy_sections import BOOTSTRAPS, Shelf
from accuracy_tables import SHARED, Table
from threadpoolctl import threadpool_limits

from privet.estimators import HuberRegressor, LinearRegression, QuantileRegressor, Ridge
from privet.privacy import Neighbours

MODELS: dict[str, Any] = {
    "linear": LinearRegression,
    "ridge": Ridge,
    "huber": HuberRegressor,
    "quantile": QuantileRegressor,
}
TARGETS = {"diabetes": (25.0, 346.0), "birds": (2500.0, 6500.0)}


def birds(seed: int) -> Table:
    """The mass of made-up penguins by their three other measures."""
    table = penguins(seed)
    low, high = table.bounds
    known: dict[str, Any] = {"X": table.X[:, :3], "X_test": table.X_test[:, :3], "low": table.low[:3]}
    known |= {"y": table.X[:, 3], "y_test": table.X_test[:, 3], "classes": 0, "schema": None, "raw": {}, "raw_test": {}}
    return replace(table, name="birds", title="made up, mass of birds", bounds=(low[:3], high[:3]), **known)


def in_own_unit(table: Table) -> Table:
    """Diabetes with its target from 25 to 346, which the shelf has scaled to [−1, 1]."""
    return replace(table, y=table.y * 160.5 + 185.5, y_test=table.y_test * 160.5 + 185.5)


def fitted(table: Table, epsilon: float, neighbours: Neighbours, *, model: Any, way: str) -> Any:
    """The estimator at its defaults, with ranges or without."""
    facts = {"bounds": table.bounds, "target_range": TARGETS[table.name]} if way == "declared" else {}
    return model(epsilon=epsilon, delta=table.delta, neighbours=neighbours, **facts).fit(table.X, table.y)


def cases(data: Path, *, dev: bool) -> list[Case]:
    """The cases: estimator, table, how many rows, ranges learnt or declared."""
    shelf = Shelf(data=data, dev=dev)
    source = shelf("diabetes")
    tables = {"diabetes": lambda run: in_own_unit(source(run))}
    tables |= {"birds": functools.cache(lambda run: birds(1 + run % 5 if dev else 0))}
    found = []
    for name, table in tables.items():
        sizes = {"": table} | {f", {rows:,} rows": resampled(table, rows) for rows in BOOTSTRAPS}
        for words, model in MODELS.items():
            for (size, each), way in ((s, w) for s in sizes.items() for w in ("learnt", "declared")):
                fit = functools.partial(fitted, model=model, way=way)
                share = 1.0 if way == "learnt" else 0.2
                common: dict[str, Any] = {"section": "undeclared", "relations": ("replace_one",), "epsilons": (1.0,)}
                found.append(
                    Case(name=words, table=each, fit=fit, setting=f"{way}, {name}{size}", share=share, **common)
                )
    return found


def main() -> None:
    """Print a line a case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", help="names of estimators, with commas between")
    parser.add_argument("--dev", action="store_true", help="folds of training rows, and other seeds")
    parser.add_argument("--data", type=Path, default=SHARED)
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(MODELS)
    np.seterr(all="ignore")
    with threadpool_limits(1):
        rows = measure([c for c in cases(options.data, dev=options.dev) if c.name in chosen], Wanted(), options.runs)
    print("\n".join(lines(rows)))
    for row in rows:
        if row["setting"].startswith("learnt"):
            other = next(
                r
                for r in rows
                if (r["name"], r["setting"]) == (row["name"], row["setting"].replace("learnt", "declared"))
            )
            met = row["lost"] <= 0.05 and row["median"] >= other["median"] - 0.1
            print(
                f"{'reached    ' if met else 'NOT REACHED'} {row['name']}, {row['setting']}: "
                f"worst {-row['lost']:+.3f}, median {row['median']:.3f} (declared {other['median']:.3f})"
            )


if __name__ == "__main__":
    main()
