"""Every estimator on few rows and little budget, beside the constant that looks at no feature: in its own score."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from accuracy_runs import Case
from accuracy_tables import Table

from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from privet.privacy import Neighbours

ROWS = (300, 1_000, 3_500)
EPSILONS = (0.05, 0.1, 1.0)
TEST_ROWS, COLUMNS = 4_000, 8
NINE_TENTHS: dict[str, Any] = {"quantile": 0.9}
ESTIMATORS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "logistic": (LogisticRegression, "labels", {"classes": [0, 1]}),
    "several": (LogisticRegression, "classes", {"classes": [0, 1, 2, 3]}),
    "svc": (LinearSVC, "labels", {"classes": [0, 1]}),
    "linear": (LinearRegression, "numbers", {"target_range": (-8.0, 8.0)}),
    "ridge": (Ridge, "numbers", {"target_range": (-8.0, 8.0)}),
    "huber": (HuberRegressor, "outliers", {"target_range": (-50.0, 50.0)}),
    "quantile": (QuantileRegressor, "skewed", {"target_range": (-5.0, 30.0)}),
    "quantile_90": (QuantileRegressor, "skewed", {"target_range": (-5.0, 30.0)} | NINE_TENTHS),
    "poisson": (PoissonRegressor, "counts", {"target_range": (0.0, 80.0)}),
}
SIGNALS = {"no signal": 0.0, "weak": 0.25, "clear": 1.0}


def constant(*, dev: bool) -> list[Case]:
    """The cases: estimator, how much signal, how many rows, ranges declared or learnt."""
    ways = itertools.product(ESTIMATORS, SIGNALS, ROWS, ("declared", "learnt"))
    return [
        Case(
            section="constant",
            name=name,
            setting=f"{words}, {rows:,} rows, {way}",
            table=_drawn(ESTIMATORS[name][1], SIGNALS[words], rows, dev),
            fit=functools.partial(_fitted, name=name, learnt=way == "learnt"),
            epsilons=EPSILONS,
            relations=("replace_one",),
            share=1.0 if way == "declared" else 0.2,
            private=True,
            ends=ESTIMATORS[name][2].get("target_range") if way == "declared" else None,
        )
        for name, words, rows, way in ways
    ]


def _fitted(table: Table, epsilon: float, neighbours: Neighbours, *, name: str, learnt: bool) -> Any:
    estimator, _, facts = ESTIMATORS[name]
    known = {k: v for k, v in facts.items() if not (learnt and k == "target_range")}
    model = estimator(epsilon=epsilon, delta=table.delta, neighbours=neighbours, **known)
    return model.set_params(bounds=None if learnt else table.bounds).fit(table.X, table.y)


def _drawn(kind: str, signal: float, rows: int, dev: bool) -> Callable[[int], Table]:
    """Another table for every run; other ones for choosing settings."""
    return lambda run: replace(_table(kind, signal, rows, 10_000 * dev + run), title=f"{kind}, {rows:,} rows")


def _table(kind: str, signal: float, rows: int, seed: int) -> Table:
    rng, total = np.random.default_rng([len(kind), rows, seed]), rows + TEST_ROWS
    z = rng.standard_normal((total, COLUMNS)) @ (np.eye(COLUMNS) + 0.4 * rng.standard_normal((COLUMNS, COLUMNS)))
    X = np.clip(z / z.std(axis=0), -4, 4)
    slopes = rng.standard_normal((COLUMNS, 4))
    scores = X @ slopes
    scores *= signal / scores.std(axis=0)
    classes = 0
    if kind == "labels":
        y, classes = (rng.random(total) < 1 / (1 + np.exp(0.8 - 2 * scores[:, 0]))).astype(np.int64), 2
    elif kind == "classes":
        y, classes = np.argmax(2 * scores + [0.6, 0.3, 0, 0] + rng.gumbel(size=(total, 4)), axis=1), 4
    elif kind == "numbers":
        y = np.clip(scores[:, 0] + rng.standard_normal(total), -8, 8)
    elif kind == "outliers":
        y = np.clip(scores[:, 0] + rng.standard_t(3, total), -50, 50)
    elif kind == "skewed":
        y = np.clip(scores[:, 0] + rng.exponential(size=total), -5, 30)
    else:  # counts with a long tail, 2.9 on average
        rates = 2.9 * np.exp(0.7 * scores[:, 0] - (0.7 * signal) ** 2 / 2) * rng.gamma(1.0, size=total)
        y = np.minimum(rng.poisson(rates), 80).astype(float)
    return Table(
        name=kind,
        title=kind,
        X=X[:rows],
        y=y[:rows],
        X_test=X[rows:],
        y_test=y[rows:],
        classes=classes,
        low=np.full(COLUMNS, -1.0),
        bounds=(np.full(COLUMNS, -4.0), np.full(COLUMNS, 4.0)),
    )
