"""Every fit is charged before it begins, also when scikit-learn clones, copies and distributes the estimator."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from privet import Budget
from privet.accounting import epsilon
from privet.errors import InvalidParameter, Overspent, PrivetError
from privet.estimators import (
    HuberRegressor,
    IndependentFolds,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
)
from privet.ledger import Account
from privet.plan import Meter
from privet.solvers import FixedHessian

CLASSIFIERS = [LogisticRegression, LinearSVC]
ALL: list[Any] = [*CLASSIFIERS, LinearRegression, Ridge, HuberRegressor]


def data(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    return X, X @ [3.0, -2.0]


def account(eps: float = 100.0, **others: Any) -> Account:
    return (Account.create if "path" in others else Account)(Budget(epsilon=eps, delta=1e-6), **others)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("given", [True, False])
def test_a_fit_charges_exactly_what_it_releases(model: Any, given: bool) -> None:
    """With public and with learnt ranges, the charge is the event of the fit, and its price the budget asked for."""
    X, y = data()
    target = y > 0 if model in CLASSIFIERS else y
    shared = account()
    fitted = model(epsilon=0.7, bounds=(-1, 1) if given else None, account=shared).fit(X, target)
    (charge,) = shared.charges
    assert charge.label == model.__name__
    assert charge.event == fitted.plan_.event
    assert charge.alone == pytest.approx(0.7, rel=1e-6)
    assert fitted.guarantee_.epsilon == pytest.approx(shared.epsilon, rel=1e-9)


@pytest.mark.parametrize("neighbours", ["zero_out", "add_remove"])
def test_other_relations_are_charged_to_accounts_of_theirs(neighbours: Any) -> None:
    """The account's relation is the fit's; a fit under another is refused before it draws noise."""
    X, y = data()
    shared = account(neighbours=neighbours)
    known: dict[str, Any] = {
        "bounds": (-1, 1),
        "account": shared,
        "records": 1500 if neighbours == "add_remove" else None,
    }
    LogisticRegression(epsilon=1, neighbours=neighbours, **known).fit(sparse.csr_matrix(X), y > 0)
    with pytest.raises(InvalidParameter, match="relation of the account"):
        LogisticRegression(epsilon=1, bounds=(-1, 1), account=shared).fit(X, y > 0)
    assert len(shared.charges) == 1


@pytest.mark.medium
def test_grid_search_charges_every_fit_and_the_refit() -> None:
    """Two candidates on three folds and a refit are seven charges, which cost what seven such fits cost together."""
    X, y = data()
    shared = account()
    model = LogisticRegression(epsilon=0.5, bounds=(-1, 1), classes=[False, True], account=shared)
    GridSearchCV(model, {"alpha": [0.0, 0.1]}, cv=IndependentFolds(3)).fit(X, y > 0)
    charges = shared.charges
    assert len(charges) == 7
    whole = charges[0].event * 7
    assert shared.epsilon == pytest.approx(epsilon(whole, delta=1e-6, neighbours="replace_one"), rel=1e-6)
    assert clone(model).account is shared


@pytest.mark.medium
@pytest.mark.parametrize("backend", ["multiprocessing", pytest.param("loky", marks=pytest.mark.slow)])
def test_two_processes_share_one_account(backend: str, tmp_path: Path) -> None:
    """With n_jobs=2 the workers' charges arrive in the file; an account in memory is refused loudly instead."""
    X, y = data(500)
    stored = account(path=tmp_path / "account.db")
    model = LogisticRegression(epsilon=0.5, bounds=(-1, 1), classes=[False, True], account=stored)
    with parallel_config(backend, n_jobs=2):
        cross_val_score(model, X, y > 0, cv=IndependentFolds(4))
        assert len(stored.charges) == 4
        in_memory = model.set_params(account=account())
        with pytest.raises((TypeError, pickle.PicklingError)):
            cross_val_score(in_memory, X, y > 0, cv=IndependentFolds(2), error_score="raise")
    assert len(stored.charges) == 4


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_a_search_stops_when_the_budget_is_spent() -> None:
    """Fits that do not fit are refused: their scores are missing, nothing is charged for them, and the refit raises."""
    X, y = data()
    shared = account(1.3)
    model = LogisticRegression(epsilon=0.5, bounds=(-1, 1), classes=[False, True], account=shared)
    with pytest.warns(FitFailedWarning, match="Overspent"), pytest.raises(Overspent, match="nothing was released"):
        GridSearchCV(model, {"alpha": [0.0, 0.1]}, cv=KFoldLike(5)).fit(X, y > 0)
    assert len(shared.charges) == 5
    assert shared.epsilon <= 1.3


class KFoldLike(IndependentFolds):
    """IndependentFolds by another name: a subclass keeps the protocol."""


def test_refused_fits_draw_nothing_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the account refuses, the private rows were not read: the estimator never asks for its own randomness."""
    X, y = data()
    shared = account(0.1)
    model = LogisticRegression(epsilon=1, bounds=(-1, 1), account=shared)

    class Silent:
        invalidates_guarantee = False

        def words(self, count: int) -> Any:
            pytest.fail("noise was drawn")

    monkeypatch.setattr("privet.estimators.reserving.system_random", Silent)
    with pytest.raises(Overspent):
        model.fit(X, y > 0)
    assert not hasattr(model, "coef_")
    assert not shared.charges


def test_a_fit_that_fails_midway_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was charged before an error is not given back."""
    X, y = data()
    shared = account()
    model = LogisticRegression(epsilon=1, bounds=(-1, 1), account=shared)

    class Broken:
        invalidates_guarantee = False

        def words(self, count: int) -> Any:
            raise ZeroDivisionError

    monkeypatch.setattr("privet.estimators.reserving.system_random", Broken)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y > 0)
    assert len(shared.charges) == 1


def test_a_model_that_released_something_else_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a fit release other things than were charged, the meter refuses, the model is gone, no data is quoted."""
    X, y = data()
    monkeypatch.setattr(FixedHessian, "_inverse", lambda *given: np.eye(3))  # leaves out XᵀX, which is next
    shared = account()
    model = LogisticRegression(epsilon=1, bounds=(-1, 1), solver="fixed_hessian", account=shared)
    with pytest.raises(PrivetError, match="as planned, got"):
        model.fit(X, y > 0)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert len(shared.charges) == 1


def test_a_charged_fit_trains_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is known beforehand, so nothing is rehearsed: one meter, made before the charge, run once to its end."""
    X, y = data()
    made: list[Meter] = []
    genuine = Meter.__init__

    def counted(self: Meter, plan: Any, **named: Any) -> None:
        made.append(self)
        genuine(self, plan, **named)

    monkeypatch.setattr(Meter, "__init__", counted)
    shared = account()
    model = LogisticRegression(epsilon=1, bounds=(-1, 1), classes=[False, True], account=shared).fit(X, y > 0)
    (meter,), (charge,) = made, shared.charges
    assert meter.plan == model.plan_ == model.plan(records=1500, columns=2)
    assert charge.event == model.plan_.event
    assert len(meter.record) == sum(release.times for release in model.plan_.releases)


def test_what_is_no_account_is_refused() -> None:
    """A number or a budget is not an account; and predictable noise pays for nothing."""
    X, y = data(100)
    shared = account()
    for random_state in (0, 7):
        with pytest.raises(InvalidParameter, match="random_state together"):
            LogisticRegression(bounds=(-1, 1), account=shared, random_state=random_state).fit(X, y > 0)
    assert not shared.charges
    for wrong in (1.0, Budget(epsilon=1, delta=1e-6)):
        with pytest.raises(InvalidParameter, match="account"):
            LogisticRegression(bounds=(-1, 1), account=wrong).fit(X, y > 0)


def test_a_fit_that_fails_leaves_the_model_as_it_was() -> None:
    """What it learnt before it failed was paid by nobody: an earlier guarantee must not stand beside it."""
    X, y = data()
    model = LinearRegression(epsilon=1.0, alpha=0.0).fit(X, y)
    before = dict(vars(model))
    model.solver = "nonsense"
    with pytest.raises(InvalidParameter, match="nonsense"):
        model.fit(7 * X, y)
    after = dict(vars(model))
    assert {**after, "solver": "auto"}.keys() == before.keys()
    assert all(after[name] is value for name, value in before.items() if name != "solver")
    fresh = LogisticRegression(epsilon=1.0, solver="nonsense", classes=[False, True])
    with pytest.raises(InvalidParameter, match="nonsense"):
        fresh.fit(X, y > 0)
    assert not [name for name in vars(fresh) if name.endswith("_")]


@pytest.mark.medium
def test_fits_for_people_and_for_records_have_accounts_of_their_own(tmp_path: Path) -> None:
    """A sum of both would promise neither: a record that is exchanged may change two people."""
    X, y = data()
    who = np.arange(len(X)) // 3
    people = account(path=tmp_path / "account.db", unit="person")
    model = LinearRegression(epsilon=1.0, bounds=(-1, 1), target_range=(-5, 5), account=people)
    for given in ({"groups": who}, {"sample_weight": None, "groups": who}):
        model.fit(X, y, **given)
    model.fit(X, y, None, who)
    assert len(people.charges) == 3
    assert people.guarantee().unit == pickle.loads(pickle.dumps(people)).unit == "person"
    assert "under one label" in people.guarantee().details
    with pytest.raises(InvalidParameter, match="protects a person"):
        model.fit(X, y)
    with pytest.raises(InvalidParameter, match="protects a record"):
        clone(model).set_params(account=account()).fit(X, y, groups=who)
    with pytest.raises(InvalidParameter, match="terms with which"):
        Account(Budget(epsilon=100, delta=1e-6), tmp_path / "account.db")
    assert len(people.charges) == 3
