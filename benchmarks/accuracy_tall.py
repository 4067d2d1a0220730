"""CPU time of a fit of two million rows and twenty columns, encode included, beside scikit-learn's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic

from privet import Budget
from privet.estimators import LinearRegression, LogisticRegression, fit_table
from privet.preprocessing import Number, Schema, Target

Results = dict[str, Any]
ROWS, COLUMNS = 2_000_000, 20
MOST = 1.5


def tall(*, rounds: int, rows: int = ROWS) -> Results:
    """CPU seconds, in turn: scikit-learn's fit, privet's with ranges and without, and privet's from named columns.

    Of least squares, the same with ranges; its ratio is to scikit-learn's own least squares.
    """
    rng = np.random.default_rng(20)
    X = np.clip(rng.standard_normal((rows, COLUMNS)), -4.0, 4.0)
    score = X @ rng.normal(0, 0.5, COLUMNS)
    y = (rng.random(rows) < expit(score - 0.5)).astype(np.int64)
    number = np.clip(score + rng.standard_normal(rows), -8.0, 8.0)
    columns = {f"x{place}": X[:, place] for place in range(COLUMNS)}
    schema = Schema(
        columns={name: Number(low=-4, high=4) for name in columns},
        target=Target(column="y", kind="label", values=("0", "1")),
    )
    model: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "classes": [0, 1]}
    table, budget = columns | {"y": y}, Budget(epsilon=1.0, delta=1e-8)
    ways: dict[str, Callable[[], Any]] = {
        "scikit-learn": lambda: PlainLogistic().fit(X, y),
        "declared": lambda: LogisticRegression(bounds=(-4, 4), **model).fit(X, y),
        "learnt": lambda: LogisticRegression(**model).fit(X, y),
        "table": lambda: fit_table(table, schema, budget=budget),
        "scikit-learn, least squares": lambda: PlainLinear().fit(X, number),
        "least squares": lambda: LinearRegression(1.0, 1e-8, bounds=(-4, 4), target_range=(-8, 8)).fit(X, number),
    }
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, fit in ways.items():
            start = time.process_time()
            fit()
            spent[way].append(time.process_time() - start)
    best = {way: min(found) for way, found in spent.items()}
    ratios = {way: best[way] / best["scikit-learn"] for way in ("declared", "learnt", "table")}
    ratios["least squares"] = best["least squares"] / best["scikit-learn, least squares"]
    return {"rows": rows, "columns": COLUMNS, "cpu": spent, "ratios": ratios}
