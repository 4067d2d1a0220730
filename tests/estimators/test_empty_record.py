"""The empty record, all of whose cells are missing, adds exactly nothing to any release (docs/footguns.md, 74)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from privet import Budget, glm, per_record
from privet.clipping import Adaptive, Automatic, Clip, LatticeSum
from privet.errors import SchemaMisfit
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    fit_table,
)
from privet.estimators.scoring import scores
from privet.losses import AppendOne, LinearRecords, LogisticLoss, MultinomialLoss
from privet.noise import add_gaussian
from privet.plan import meter as room
from privet.preprocessing import (
    Category,
    Date,
    Number,
    Schema,
    Target,
    private_categories,
    private_moments,
    private_ranges,
)
from privet.problems import GroupedProblem, LinearProblem
from privet.sums import curvature_sum, norm_counts, sandwich_sums

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")  # nothing is there to learn

ROWS = 1200
EMPTY = np.full((ROWS, 3), np.nan)
SPARSE = sparse.csr_matrix((np.full(3 * ROWS, np.nan), np.tile(np.arange(3), ROWS), np.arange(0, 3 * ROWS + 1, 3)))
NOBODY = np.full(ROWS, np.nan)
PEOPLE = np.arange(ROWS) // 2
RANGES: Any = {"bounds": (-1, 1)}


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> list[NDArray[Any]]:
    """All whole numbers that noise is added to while a test runs."""
    seen: list[NDArray[Any]] = []

    def listened(units: Any, **named: Any) -> Any:
        seen.append(np.array(units))
        return add_gaussian(units, **named)

    monkeypatch.setattr(room, "add_gaussian", listened)
    return seen


CASES: list[Any] = [
    (LogisticRegression(4, classes=[0, 1]), {}),
    (LogisticRegression(4, classes=[0, 1], solver="output", **RANGES), {}),
    (LogisticRegression(4, classes=[0, 1], solver="gradient", **RANGES, max_iter=2), {}),
    (LogisticRegression(4, classes=[0, 1], fit_intercept=False), {}),
    (LogisticRegression(4, classes=[0, 1, 2], class_weight="balanced"), {}),
    (LogisticRegression(8, classes=[0, 1], inference=0.5), {}),
    (LogisticRegression(4, classes=[0, 1], max_weight=2.0), {"sample_weight": np.ones(ROWS)}),
    (LogisticRegression(4, classes=[0, 1]), {"groups": PEOPLE}),
    (LinearSVC(4, classes=[0, 1, 2]), {}),
    (LinearRegression(4), {}),
    (LinearRegression(20, inference=0.5), {}),
    (Ridge(4, **RANGES, target_range=(0, 1)), {}),
    (HuberRegressor(4), {"groups": PEOPLE}),
    (PoissonRegressor(4), {}),
    (QuantileRegressor(4), {}),
]


QUICK = [(*case, EMPTY) for case in CASES[::3]] + [(*CASES[0], SPARSE)]
REST = [(*case, table) for i, case in enumerate(CASES) for table in (EMPTY, SPARSE) if i % 3 or (i and table is SPARSE)]


@pytest.mark.filterwarnings("ignore::privet.errors.SchemaMisfit")  # which is said of such tables
@pytest.mark.parametrize(
    ("model", "given", "table"), QUICK + [pytest.param(*case, marks=pytest.mark.medium) for case in REST]
)
def test_every_release_of_every_fit(model: Any, given: Any, table: Any, sums: list[NDArray[Any]]) -> None:
    """Of a table of empty records, each sum that noise is added to is exactly zero: ranges, norms, counts, gradients.

    Mutant: a row norm of 0 that has a bin, as it had (moves by 1.414 where 1 is declared).
    """
    model.set_params(neighbours="zero_out").fit(table, NOBODY, **given)
    assert len(sums) >= len(model.plan_.releases)
    assert not any(units.any() for units in sums)
    assert not scores(model, table, NOBODY).any()  # held out by a search


@pytest.mark.parametrize("kind", ["label", "number", "count"])
def test_every_release_of_a_table(kind: Any, sums: list[NDArray[Any]]) -> None:
    """Ranges, names and targets that a schema leaves open, and the fit after them."""
    target = Target(column="t", kind=kind, values=("no", "yes") if kind == "label" else None)
    schema = Schema(columns={"a": Number(), "b": Category()}, target=target)
    table = {"a": [None] * ROWS, "b": [None] * ROWS, "t": [None] * ROWS}
    with pytest.warns(SchemaMisfit, match="'t'"):  # nothing can be read, which a count says
        model = fit_table(table, schema, budget=Budget(epsilon=4, delta=1e-6), neighbours="zero_out")
    assert {"usable targets", "usable records"} <= set(model.plan.names)
    assert sums
    assert not any(units.any() for units in sums)


def test_every_release_of_a_table_with_dates(sums: list[NDArray[Any]]) -> None:
    """A date that is not there adds nothing, neither its time nor what the calendar says."""
    born = Date(low="2000-01-01", high="2020-12-31", parts=("season", "month", "weekday", "hour"))
    schema = Schema(columns={"a": born}, target=Target(column="t", kind="label", values=("no", "yes")))
    table = {"a": [None] * ROWS, "t": [None] * ROWS}
    with pytest.warns(SchemaMisfit, match="'t'"):
        fit_table(table, schema, budget=Budget(epsilon=4, delta=1e-6), neighbours="zero_out")
    assert sums
    assert not any(units.any() for units in sums)


def test_preprocessing_by_itself(sums: list[NDArray[Any]]) -> None:
    """Ranges, moments and names."""
    table = {"a": [None, np.nan, "?"]}
    noise: Any = {"noise_multiplier": 5.0, "neighbours": "zero_out"}
    private_ranges(table, columns=["a"], **noise)
    private_moments(table, ranges={"a": (0, 1)}, **noise)
    private_categories({"a": [None] * 3}, columns=["a"], threshold_delta=1e-7, **noise)
    assert len(sums) == 4
    assert not any(units.any() for units in sums)


class Deaf:
    """A loss that pays no attention to its record, so that only the problem can tell that there is none."""

    def values(self, theta: Any, X: Any, y: Any) -> Any:
        return np.full(len(X), np.sum(theta))

    def gradients(self, theta: Any, X: Any, y: Any) -> Any:
        return np.tile(theta, (len(X), 1))


def problem(kind: str, empty: int) -> Any:
    """Forty records, and empty ones among them."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40).astype(float)
    at = rng.integers(0, 41, empty)
    X, y = np.insert(X, at, np.nan, axis=0), np.insert(y, at, np.nan)
    if kind == "per record":
        return per_record(LinearRecords(loss=LogisticLoss()), X, y, shape=2)
    if kind == "deaf":
        return per_record(Deaf(), X, y, shape=2)
    if kind == "people":
        return glm("logistic", X, y, row_norm=2.0, groups=np.insert(np.arange(40) // 3, at, 99))
    loss = MultinomialLoss(classes=3) if kind == "multinomial" else LogisticLoss()
    return glm(loss, X, y, row_norm=2.0, features=AppendOne() if kind == "constant" else None)


@pytest.mark.parametrize("kind", ["plain", "constant", "multinomial", "people", "per record", "deaf"])
def test_every_sum_of_every_problem(kind: str) -> None:
    """Sums with empty records are those without, to the last bit: gradients under each rule, losses, second moments.

    Mutant: per-record losses that are asked about empty records, as they were.
    """
    some, more = problem(kind, 0), problem(kind, 9)
    theta, other = (np.random.default_rng(i).normal(size=some.shape) for i in (2, 3))
    found: list[list[LatticeSum]] = []
    for p in (some, more):
        each: Any = {"max_records": 64}
        sums = [
            p.gradient_sum(theta, rule=rule, **each)
            for rule in (Clip(clip=0.5), Automatic(clip=0.5), Adaptive(clip=0.5, count_noise=9.0))
        ]
        sums += [p.difference_sum(theta, other, rule=Clip(clip=0.5), **each)]
        sums += [p.slope_sum(theta, other, clip=0.5, **each), p.loss_sum(theta, clip=0.5, centre=0.5, **each)]
        if isinstance(p, LinearProblem | GroupedProblem):
            sums += [p.moment_sum(**each)]
        if isinstance(p, LinearProblem) and theta.ndim == 1:
            loss, rows = p.loss, (p.table, p.labels, theta)
            sums += [curvature_sum(loss.curvature, *rows, smoothness=0.25, **each)]
            sums += sandwich_sums(loss.derivative, loss.curvature, *rows, clip=0.5, smoothness=0.25, **each)
            sums += [norm_counts(loss.derivative, *rows, edges=np.array([0.4, 0.1]), **each)]
        found.append(sums)
    for one, same in zip(*found, strict=True):
        assert one.units.any()
        assert np.array_equal(one.units, same.units)
        assert one.within == same.within
