"""Runs of one case after another: what is fitted to what, and what is measured of it.

A case is a table, a setting and what to fit; its runs differ in the noise. When settings are chosen (`dev`), each run
takes another fifth of the training rows to score on, or another seed of a table that is made up.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from accuracy_private import private_constants
from accuracy_tables import Table
from scipy.special import logit
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, log_loss, r2_score

from privet.errors import PrivetError
from privet.estimators import LogisticRegression, PoissonRegressor, QuantileRegressor, TableModel
from privet.privacy import Neighbours

Results = dict[str, Any]
Fit = Callable[[Table, float, Neighbours], Any]
LEAST = 1e-15  # the least probability that a logarithm is taken of
KEPT = 20  # runs whose scores are all kept
BOTH: tuple[Neighbours, ...] = ("zero_out", "replace_one")


def declared(table: Table, epsilon: float, neighbours: Neighbours) -> Any:
    """The estimator at its defaults, with the table's public facts."""
    return table.model(epsilon, neighbours).fit(table.X, table.y)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Case:
    """One line of a section. `table` gives what the run of that number is fitted to."""

    section: str
    name: str  # of the table, to ask for it by
    table: Callable[[int], Table]
    fit: Fit = declared
    setting: str = ""
    epsilons: tuple[float, ...] = (0.1, 1.0)
    relations: tuple[Neighbours, ...] = BOTH
    share: float = 1.0  # of the section's runs
    probabilities: bool = False
    private: bool = False  # whether private constants are measured beside it
    ends: tuple[float, float] | None = None  # the target's declared range, for those
    balanced: bool = False  # classes count alike when probabilities are measured, as they do in the fit


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What of the cases is asked for on the command line; None is all, or as the case has it."""

    runs: int | None = None
    epsilons: tuple[float, ...] | None = None
    relations: tuple[Neighbours, ...] | None = None


def measure(cases: Iterable[Case], wanted: Wanted, runs: int) -> list[Results]:
    """A row of results for each case, relation and epsilon; `runs` unless told otherwise."""
    found: list[Results] = []
    for case in cases:
        if not found or found[-1]["name"] != case.name:
            print(f"{case.section}: {case.name}", file=sys.stderr, flush=True)
        found += _measured(case, wanted, wanted.runs or max(2, round(runs * case.share)))
    return found


def _measured(case: Case, wanted: Wanted, runs: int) -> list[Results]:
    pairs = list(itertools.product(wanted.relations or case.relations, wanted.epsilons or case.epsilons))
    found: dict[Any, list[dict[str, float]]] = {pair: [] for pair in pairs}
    for run in range(runs):
        table = case.table(run)
        for pair in pairs:
            found[pair].append(_one(case, table, *pair))
    known = {"section": case.section, "name": case.name, "setting": case.setting, "title": table.title}
    size = {"classes": table.classes, "rows": len(table.X)}
    return [known | size | {"relation": r, "epsilon": e} | summary(runs_of) for (r, e), runs_of in found.items()]


def summary(found: Sequence[dict[str, float]]) -> Results:
    """What is kept of the runs: of every measure the mean over those that have it, and how the scores lie.

    `lost` is how far the worst run is below the constant, `below` the share of runs that are.
    """
    scores = np.array([run["score"] for run in found])
    lost = np.array([run["guess"] for run in found]) - scores
    row: Results = {"runs": len(found), "worst": float(scores.min()), "median": float(np.median(scores))}
    row |= {"sd": float(scores.std(ddof=1)) if len(found) > 1 else None}
    row |= {"lost": float(lost.max()), "below": float((lost > 0).mean())}
    for name in dict.fromkeys(name for run in found for name in run):
        values = [run[name] for run in found if name in run and not math.isnan(run[name])]
        row[name] = float(np.mean(values)) if values else None
    slopes = [run["slope"] for run in found if "slope" in run and not math.isnan(run["slope"])]
    if slopes:
        row["slopes"] = [min(slopes), max(slopes)]
    if len(found) <= KEPT:
        row["scores"] = [float(score) for score in scores]
    return {name: _short(value) for name, value in row.items()}


def _short(value: Any) -> Any:
    """Six digits, which is more than the noise leaves."""
    if isinstance(value, list):
        return [_short(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _one(case: Case, table: Table, relation: Neighbours, epsilon: float) -> dict[str, float]:
    """One fit and what it is worth; one that is refused counts as the guess, and as failed."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = case.fit(table, epsilon, relation)
        except PrivetError:
            model = None
    spent = time.process_time() - start
    guess = constant(model, table)
    if model is None:
        return {"score": guess, "guess": guess, "warned": 1.0, "cpu": spent, "failed": 1.0}
    score = model.score(table.raw_test) if isinstance(model, TableModel) else model.score(table.X_test, table.y_test)
    said = any(issubclass(w.category, UserWarning) for w in told)
    found = {"score": float(score), "guess": guess, "warned": float(said), "cpu": spent, "failed": 0.0}
    if case.private:
        found |= private_constants(model, table, epsilon, relation, case.ends)
    return found | (probabilities(model, table, balanced=case.balanced) if case.probabilities else {})


def constant(model: Any, table: Table) -> float:
    """What the best constant of the training rows scores, in the estimator's own score."""
    y, y_test = table.y, table.y_test
    if table.classes:
        return float(np.mean(y_test == np.bincount(y.astype(int)).argmax()))
    if isinstance(model, PoissonRegressor):
        return float(d2_tweedie_score(y_test, np.full(len(y_test), y.mean()), power=1))
    if isinstance(model, QuantileRegressor):
        level = model.quantile
        return float(d2_pinball_score(y_test, np.full(len(y_test), np.quantile(y, level)), alpha=level))
    return float(r2_score(y_test, np.full(len(y_test), y.mean())))


def probabilities(model: LogisticRegression, table: Table, *, balanced: bool = False) -> dict[str, float]:
    """Log-loss and the constant's; slope and offset of calibration, mean and rate of the second class if there are two.

    Where classes are to count alike, every one of them has the same weight in all of it, and the constant is 1/classes.
    The log-loss without weights is kept beside it.
    """
    y, classes = table.y_test.astype(int), np.arange(table.classes)
    P = np.clip(model.predict_proba(table.X_test), LEAST, 1.0)
    rates = np.bincount(table.y.astype(int), minlength=table.classes) / len(table.y)
    weights = (1 / np.maximum(np.bincount(y, minlength=table.classes), 1))[y] if balanced else np.ones(len(y))
    guess = np.full(table.classes, 1 / table.classes) if balanced else np.maximum(rates, LEAST)
    found = {
        "loss": log_loss(y, P / P.sum(axis=1, keepdims=True), sample_weight=weights, labels=classes),
        "guess_loss": float(-np.average(np.log(guess)[y], weights=weights)),
        "plain_loss": log_loss(y, P / P.sum(axis=1, keepdims=True), labels=classes),
    }
    if table.classes > 2:
        return found
    slope, offset = calibration(P[:, 1], y, weights)
    return found | {
        "slope": slope,
        "offset": offset,
        "mean": float(np.average(P[:, 1], weights=weights)),
        "rate": float(np.average(y, weights=weights)),
    }


def calibration(p: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of the labels on the log odds that were predicted."""
    odds = logit(np.clip(p, LEAST, 1 - 1e-12))[:, None]
    if np.ptp(odds) < 1e-9:  # the same for all: nothing to be steep about
        return float("nan"), float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unit = odds.std()
        line = PlainLogistic(C=np.inf, solver="newton-cholesky", max_iter=200)
        line.fit((odds - odds.mean()) / unit, y, sample_weight=weights / weights.mean())
    slope = float(line.coef_[0, 0] / unit)
    return slope, float(line.intercept_[0] - slope * odds.mean())


def resampled(source: Callable[[int], Table], rows: int) -> Callable[[int], Table]:
    """Bootstraps: so many training rows, drawn with repetition, anew for every run."""

    def drawn(run: int) -> Table:
        table = source(run)
        return table.of(np.random.default_rng([rows, run]).integers(len(table.X), size=rows))

    return drawn
