"""Whole fits for tests of clusters: people, weights, learnt names, dates and intervals, in memory or elsewhere."""

from __future__ import annotations

import datetime as dt
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privet import Budget
from privet.engines import Files
from privet.estimators import LogisticRegression, fit_table
from privet.preprocessing import Category, Date, Number, Schema, Target
from privet.randomness import fixed_seed_invalidates_guarantee

FIXED: dict[str, Any] = {"delta": 1e-6, "random_state": 1, "bounds": (-5, 5), "bounds_exact": True}


def made_table(records: int = 2_400) -> dict[str, Any]:
    """Two features, labels, whose row it is (written in several ways), weights, names and times; some cells odd."""
    rng = np.random.default_rng(records)
    X = rng.normal(size=(records, 2))
    person = rng.integers(0, records // 3, size=records).tolist()
    weight = rng.uniform(0, 3, size=records)
    weight[[3, 40, 1_900]] = np.nan, -1.0, 0.0
    job = np.array(["baker", " smith ", "judge"], dtype=object)[rng.integers(0, 3, size=records)]
    job[[11, 2_000]] = "Jane Doe's own", None
    return {
        "a": X[:, 0].tolist(),
        "b": X[:, 1].tolist(),
        "ill": (X[:, 0] + rng.normal(size=records) > 0).astype(int).tolist(),
        "who": [None if i % 50 == 3 else (f" 0{p}" if i % 2 else f"{p}.0") for i, p in enumerate(person)],
        "weight": weight.tolist(),
        "job": job.tolist(),
        "seen": [None if h % 9 == 0 else dt.datetime(2019, 1, 1) + dt.timedelta(hours=37 * h) for h in person],
    }


def fitted(model: Any, rows: Any, beside: dict[str, str]) -> list[Any]:
    """All that a fit to features a and b tells, with columns `beside` them."""
    if isinstance(rows, Files):
        found = model.fit(rows, "ill", **beside)
    else:
        found = model.fit(
            np.column_stack([rows["a"], rows["b"]]), rows["ill"], **{k: rows[c] for k, c in beside.items()}
        )
    told = [found.coef_.tolist(), np.ravel(found.intercept_).tolist(), found.plan_, found.guarantee_]
    return [*told, found.covariance_.tolist()] if model.inference else told


def _people(rows: Any) -> list[Any]:
    told = fitted(LogisticRegression(2.0, classes=[0, 1], max_iter=4, **FIXED), rows, {"groups": "who"})
    assert told[3].unit == "person"
    return told


def _weighted(rows: Any) -> list[Any]:
    return fitted(
        LogisticRegression(1.0, classes=[0, 1], max_weight=2.0, max_iter=4, **FIXED), rows, {"sample_weight": "weight"}
    )


def _intervals(rows: Any) -> list[Any]:
    return fitted(LogisticRegression(8.0, classes=[0, 1], inference=0.5, max_iter=4, **FIXED), rows, {})


def _names(rows: Any) -> list[Any]:
    seen = Date(low="2019-06-01", high="2021-12-31", parts=("season", "hour"), missing="indicator")
    columns: Any = {"a": Number(), "job": Category(), "seen": seen}
    schema = Schema(columns=columns, target=Target(column="ill", kind="label", values=("0", "1")))
    known: Any = {"budget": Budget(epsilon=4, delta=1e-6), "random": fixed_seed_invalidates_guarantee(5)}
    found = fit_table(rows, schema, LogisticRegression(max_iter=4), groups="who", **known)
    assert found.schema_.columns["job"] == Category(values=("baker", "judge", "smith"))
    return [found.estimator_.coef_.tolist(), found.schema_, found.plan, found.guarantee]


Told = Callable[[Any], list[Any]]
FITS: dict[str, tuple[Told, list[str], str]] = {  # what it tells, the columns it needs, a job to be struck by a fault
    "people": (_people, ["a", "b", "ill", "who"], "Gather"),
    "weights": (_weighted, ["a", "b", "ill", "weight"], "Encode"),
    "intervals": (_intervals, ["a", "b", "ill"], "Total"),
    "names": (_names, ["a", "ill", "who", "job", "seen"], "_Meet"),
}


def in_memory(name: str) -> tuple[dict[str, Any], list[Any]]:
    """The columns that a fit needs, and what it tells of them."""
    told, columns, _ = FITS[name]
    table = {column: cells for column, cells in made_table().items() if column in columns}
    return table, told(table)


@dataclass(frozen=True)
class Struck:
    """A job whose worker is killed once, when all is done but the answer."""

    job: Callable[[Sequence[Any]], Any]
    mark: str

    def __call__(self, bunch: Sequence[Any]) -> Any:
        answer = self.job(bunch)
        if not os.path.exists(self.mark):
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
