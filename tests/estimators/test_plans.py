"""What a fit will release is known beforehand: `model.plan(...)` from public facts is what `fit` runs, and no more."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from privet import Budget
from privet.accounting.filters import Overspent
from privet.errors import InvalidParameter, PrivetError
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    fit_table,
    plan_table,
    preparing,
)
from privet.estimators import linear as room
from privet.estimators import weights as weighing
from privet.ledger import Account
from privet.plan import Meter, Plan
from privet.preprocessing import Category, Number, RangeFinder, Schema, TableEncoder, Target
from privet.privacy import Neighbours
from privet.randomness import Random, system_random
from privet.solvers import (
    DPSGD,
    FixedHessian,
    Newton,
    NewtonInference,
    ObjectivePerturbation,
    OutputPerturbation,
    Solver,
)
from privet.solvers.gradient import PrivateGradient

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")

ROWS = 240
RELATIONS: tuple[Neighbours, ...] = ("replace_one", "zero_out", "add_remove")
_rng = np.random.default_rng(0)
X = _rng.uniform(-1, 1, size=(ROWS, 2))
SCORE = X @ [2.0, -1.0] + 0.3 * _rng.normal(size=ROWS)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.5, 0.5])
COUNTS = _rng.poisson(np.exp(SCORE / 2))

pytestmark = pytest.mark.medium  # the plan and the meter have quick tests of their own


# -- what happened ----------------------------------------------------------------------------------------------------


@dataclass
class Watch:
    """Every meter that was made, every one that ended, and how often randomness was asked for."""

    made: list[Meter] = field(default_factory=list)
    ended: list[tuple[str, ...]] = field(default_factory=list)
    drawn: int = 0

    def forget(self) -> None:
        self.made, self.ended, self.drawn = [], [], 0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watches meters and the system's randomness while a test runs."""
    seen = Watch()
    begin, end = Meter.__init__, Meter.finish

    def begun(self: Meter, plan: Plan, **named: Any) -> None:
        begin(self, plan, **named)
        seen.made.append(self)

    def finished(self: Meter) -> tuple[str, ...]:
        seen.ended.append(end(self))
        return seen.ended[-1]

    def listened() -> Random:
        return Listened(seen)

    monkeypatch.setattr(Meter, "__init__", begun)
    monkeypatch.setattr(Meter, "finish", finished)
    monkeypatch.setattr(room, "system_random", listened)
    return seen


class Listened:
    """The system's randomness, which tells that it was asked."""

    invalidates_guarantee = False

    def __init__(self, watch: Watch) -> None:
        self.watch, self.genuine = watch, system_random()

    def words(self, count: int) -> Any:
        self.watch.drawn += 1
        return self.genuine.words(count)


def each(plan: Plan) -> tuple[str, ...]:
    """The name of every single release, in order."""
    return tuple(release.name for release in plan.releases for _ in range(release.times))


def learnt_by(model: Any) -> list[str]:
    """Attributes that a fit left behind."""
    return [name for name in vars(model) if name.endswith("_") or name in ("_scale", "_uncertainty")]


# -- (a) every fit runs its plan --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """An estimator, its target and the public facts of it."""

    kind: Any
    target: NDArray[Any]
    known: dict[str, Any]
    classes: int | None = None


ESTIMATORS: dict[str, Case] = {
    "logistic": Case(kind=LogisticRegression, target=TWO, known={"classes": [0, 1]}),
    "multinomial": Case(kind=LogisticRegression, target=THREE, known={"classes": [0, 1, 2]}),
    "classes read off": Case(kind=LogisticRegression, target=THREE, known={}, classes=3),
    "svc": Case(kind=LinearSVC, target=TWO, known={"classes": [0, 1]}),
    "svc of three": Case(kind=LinearSVC, target=THREE, known={"classes": [0, 1, 2]}),
    "linear": Case(kind=LinearRegression, target=SCORE, known={"target_range": (-3, 3)}),
    "linear, range learnt": Case(kind=LinearRegression, target=SCORE, known={}),
    "ridge": Case(kind=Ridge, target=SCORE, known={"target_range": (-3, 3)}),
    "huber": Case(kind=HuberRegressor, target=SCORE, known={}),
    "poisson": Case(kind=PoissonRegressor, target=COUNTS, known={"target_range": (0, 30)}),
    "quantile": Case(kind=QuantileRegressor, target=SCORE, known={}),
}

NAMES = ("fixed_hessian", "gradient", "newton", "objective", "output")  # "sgd", whose price takes long, by itself
VALUES: dict[str, Solver] = {
    "FixedHessian": FixedHessian(clip=0.5, steps=2),
    "DPSGD": DPSGD(clip=0.5, steps=2),
    "Newton": Newton(clip=0.5, steps=2),
    "ObjectivePerturbation": ObjectivePerturbation(clip=0.5),
    "OutputPerturbation": OutputPerturbation(clip=0.5, radius=10.0),
}
STEPLESS = ("objective", "output")
SLOW = ("newton", "objective", "Newton", "ObjectivePerturbation")

PEOPLE = np.arange(ROWS) // 3
OPTIONS: dict[str, dict[str, Any]] = {
    "bounds": {},
    "ranges learnt": {"bounds": None},
    "row norm": {"bounds": None, "row_norm": 1.5},
    "both": {"row_norm": 1.2},
    "no intercept": {"fit_intercept": False},
    "weights": {"sample_weight": np.linspace(0, 2, ROWS)},
    "weights bounded": {"sample_weight": np.linspace(0, 2, ROWS), "max_weight": 2.0},
    "groups": {"groups": PEOPLE},
    "groups, ranges learnt": {"groups": PEOPLE, "bounds": None},
    "groups and weights": {"groups": PEOPLE, "sample_weight": np.ones(ROWS)},
    "balanced": {"class_weight": "balanced"},
    "class weights": {"class_weight": {0: 1.0, 1: 2.0}},
    "balanced groups": {"class_weight": "balanced", "groups": PEOPLE},
    "inference": {"inference": 0.5},
    "inference, ranges learnt": {"inference": 0.5, "bounds": None},
    "inference with weights": {"inference": 0.5, "sample_weight": np.ones(ROWS)},
    "penalty": {"alpha": 0.1},
    "sparse": {"X": sparse.csr_matrix(X)},
    "sparse, ranges learnt": {"X": sparse.csr_matrix(X), "bounds": None},
}
_OF_FIT = ("sample_weight", "groups", "X")


def check(case: Case, watch: Watch, *, neighbours: Neighbours, solver: Any, options: dict[str, Any]) -> bool:
    """The law for one combination; whether it is one that can be fitted."""
    given = {name: value for name, value in options.items() if name in _OF_FIT and name != "X"}
    own = {"bounds": (-1, 1)} | {name: value for name, value in options.items() if name not in _OF_FIT}
    if not set(own) <= set(case.kind(1.0).get_params()):
        return False  # an option that the estimator does not have
    groups = given.get("groups")
    model = case.kind(
        50.0,
        1e-6,
        neighbours=neighbours,
        solver=solver,
        max_iter=2 if isinstance(solver, str) and solver not in STEPLESS else None,
        records=ROWS if neighbours == "add_remove" else None,
        **case.known,
        **own,
    )
    size = {"records": ROWS if groups is None else int(groups.max()) + 1, "columns": 2, "classes": case.classes}
    facts = {**size, "people": groups is not None, "weighted": "sample_weight" in given}
    rows = options.get("X", X)
    watch.forget()
    plan, refusal = _asked(model, facts)
    assert watch.made == []
    if plan is None:
        with pytest.raises(InvalidParameter) as caught:
            model.fit(rows, case.target, **given)
        assert str(caught.value) == refusal
        assert watch.drawn == 0
        assert learnt_by(model) == []
        return False
    model.fit(rows, case.target, **given)
    assert model.plan_ == plan
    (meter,) = watch.made
    assert meter.plan == plan
    assert watch.ended == [each(plan)]
    assert watch.drawn > 0
    assert model.guarantee_.epsilon <= 50.0
    assert model.guarantee_.unit == plan.unit == ("person" if groups is not None else "record")
    return True


def _asked(model: Any, facts: dict[str, Any]) -> tuple[Plan | None, str]:
    """The plan, or the words in which it is refused."""
    try:
        return model.plan(**facts), ""
    except InvalidParameter as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in ("classes read off", "ridge")])
def test_every_solver_runs_its_plan(name: str, watch: Watch) -> None:
    """For each relation and solver, by name and as a value: `plan_` is the plan, and its releases ran one by one.

    What is refused is refused by `plan` and by `fit` in the same words, before anything is drawn. Solvers that take
    long to plan are tried under one relation each.
    """
    fitted = 0
    for place, (label, solver) in enumerate([*zip(NAMES, NAMES, strict=True), *VALUES.items()]):
        relations = (RELATIONS[place % 3],) if label in SLOW else RELATIONS
        for neighbours in relations:
            fitted += check(ESTIMATORS[name], watch, neighbours=neighbours, solver=solver, options={})
    assert fitted >= (15 if ESTIMATORS[name].target is THREE else 20)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_option_is_in_the_plan(name: str, watch: Watch) -> None:
    """Ranges given or learnt, norms, weights, people, class counts, intervals, sparse rows: all of it is planned.

    Each option under one relation, which is another one for the next estimator.
    """
    first = list(ESTIMATORS).index(name)
    fitted = [
        check(ESTIMATORS[name], watch, neighbours=RELATIONS[(first + place) % 3], solver="auto", options=options)
        for place, options in enumerate(OPTIONS.values())
    ]
    assert sum(fitted) >= 11


@pytest.mark.parametrize("option", OPTIONS)
def test_every_solver_with_every_option(option: str, watch: Watch) -> None:
    """For logistic regression, under one relation after the other, solvers by name and as values in turns."""
    place = list(OPTIONS).index(option)
    solvers = (NAMES, tuple(VALUES.values()))[place % 2]
    for solver, neighbours in zip(solvers, itertools.cycle(RELATIONS[place % 3 :] + RELATIONS), strict=False):
        check(ESTIMATORS["logistic"], watch, neighbours=neighbours, solver=solver, options=OPTIONS[option])


@pytest.mark.parametrize(
    ("name", "neighbours", "option"),
    [
        ("logistic", "replace_one", "groups"),
        ("poisson", "zero_out", "bounds"),
        ("multinomial", "add_remove", "balanced"),
    ],
)
def test_sampled_batches_are_in_the_plan(name: str, neighbours: Neighbours, option: str, watch: Watch) -> None:
    """The same for "sgd", under each relation once."""
    assert check(ESTIMATORS[name], watch, neighbours=neighbours, solver="sgd", options=OPTIONS[option])


# -- (b) a fit that strays from its plan is stopped -------------------------------------------------------------------


def _twice(patch: pytest.MonkeyPatch) -> None:
    genuine = RangeFinder.run

    def run(self: RangeFinder, values: Any, meter: Meter) -> Any:
        genuine(self, values, meter)
        return genuine(self, values, meter)

    patch.setattr(RangeFinder, "run", run)


def _no_moment(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FixedHessian, "_inverse", lambda self, plan, problem, facts, meter: np.eye(3))


def _moment_last(patch: pytest.MonkeyPatch) -> None:
    genuine = FixedHessian._inverse

    def late(self: FixedHessian, plan: Plan, problem: Any, facts: Any, meter: Meter) -> Any:
        PrivateGradient(problem, meter)(np.zeros(3))
        return genuine(self, plan, problem, facts, meter)

    patch.setattr(FixedHessian, "_inverse", late)


def _one_gradient_more(patch: pytest.MonkeyPatch) -> None:
    genuine = FixedHessian.run

    def run(self: FixedHessian, plan: Plan, problem: Any, *, meter: Meter | None = None, **named: Any) -> Any:
        result = genuine(self, plan, problem, meter=meter, **named)
        PrivateGradient(problem, meter)(result.coef)  # type: ignore[arg-type]  # estimators pass one
        return result

    patch.setattr(FixedHessian, "run", run)


def _one_gradient_fewer(patch: pytest.MonkeyPatch) -> None:
    genuine = Plan.times
    patch.setattr(Plan, "times", lambda self, name: genuine(self, name) - (name == "gradients"))


def _counts_first(patch: pytest.MonkeyPatch) -> None:
    genuine = preparing.learnt_scaling

    def scaling(model: Any, data: Any, outline: Any, meter: Meter) -> Any:
        weighing.balanced(data.target, 2, meter)
        return genuine(model, data, outline, meter)

    patch.setattr(room, "learnt_scaling", scaling)


def _no_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("privet.estimators.classifiers.balanced", lambda places, classes, meter: np.ones(classes))


def _no_last_step(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogisticRegression, "_infer", lambda self, data, outline, problem, result, *rest: result)


def _last_step_twice(patch: pytest.MonkeyPatch) -> None:
    genuine = NewtonInference.run

    def run(self: NewtonInference, *given: Any, **named: Any) -> Any:
        genuine(self, *given, **named)
        return genuine(self, *given, **named)

    patch.setattr(NewtonInference, "run", run)


def _left_open(patch: pytest.MonkeyPatch) -> None:
    def balanced(places: Any, classes: int, meter: Meter) -> Any:
        meter.open(weighing.CLASS_COUNTS, count=len(places))
        return np.ones(classes)

    patch.setattr("privet.estimators.classifiers.balanced", balanced)


BALANCED = {"class_weight": "balanced"}
INFERRED = {"inference": 0.5}


@pytest.mark.parametrize(
    ("mutant", "options"),
    [
        (_twice, {}),
        (_no_moment, {}),
        (_moment_last, {}),
        (_one_gradient_more, {}),
        (_one_gradient_fewer, {}),
        (_counts_first, BALANCED),
        (_no_counts, BALANCED),
        (_left_open, BALANCED),
        (_no_last_step, INFERRED),
        (_last_step_twice, INFERRED),
    ],
)
def test_a_release_more_or_less_or_elsewhere_is_caught(
    mutant: Any, options: dict[str, Any], watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a fit does that it did not plan, the meter refuses it, and nothing that was learnt stays behind."""
    model = LogisticRegression(epsilon=50.0, classes=[0, 1], max_iter=3, solver="fixed_hessian", **options)
    model.fit(X, TWO)  # is in order as it stands
    before = dict(vars(model))
    fresh = LogisticRegression(**model.get_params())
    with monkeypatch.context() as patch:
        mutant(patch)
        for again in (model, fresh):
            with pytest.raises(PrivetError, match=r"as planned, got|every planned release|without noise"):
                again.fit(X, TWO)
    assert learnt_by(fresh) == []
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert len(watch.ended) == 1  # neither of the two reached its end


# -- (c) a table is the estimator on its features ---------------------------------------------------------------------


def table() -> dict[str, list[Any]]:
    rng = np.random.default_rng(1)
    age, job = rng.uniform(18, 100, 600), rng.choice(["baker", "smith", "nurse"], 600)
    pay = 20 + age + 40 * (job == "nurse")
    columns: dict[str, Any] = {
        "age": np.where(rng.random(600) < 0.05, np.nan, age),
        "gain": rng.lognormal(3, 1, 600),
        "job": job,
        "ill": np.where(age + 30 * (job == "smith") > 80, "yes", "no"),
        "pay": pay,
        "visits": np.round(np.exp(age / 40)),
    }
    return {name: column.tolist() for name, column in columns.items()}


COLUMNS: dict[str, Any] = {
    "age": Number(low=18, high=100, missing="indicator"),
    "gain": Number(low=0, high=1000, log=True),
    "job": Category(values=("baker", "smith", "nurse")),
}
TARGETS: dict[str, tuple[Target, Any, dict[str, Any]]] = {
    "label": (Target(column="ill", kind="label", values=("no", "yes")), LogisticRegression, {"classes": [0, 1]}),
    "number": (
        Target(column="pay", kind="number", low=0, high=200),
        LinearRegression,
        {"target_range": (0, 200)},
    ),
    "log number": (
        Target(column="pay", kind="number", low=0, high=200, log=True),
        LinearRegression,
        {"target_range": (0, math.log1p(200))},
    ),
    "count": (Target(column="visits", kind="count", low=0, high=30), PoissonRegressor, {"target_range": (0, 30)}),
}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("kind", TARGETS)
def test_a_table_is_fitted_as_its_features_are(
    kind: str, neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fit_table` and the estimator with the schema's facts have one plan and, without noise, the same coefficients."""
    monkeypatch.setattr("privet.plan.meter.add_gaussian", lambda units, *, step, noise_stddev, random: units * step)
    target, model, known = TARGETS[kind]
    schema = Schema(columns=COLUMNS, target=target)
    encoder, data, budget = TableEncoder(schema), table(), Budget(epsilon=5.0, delta=1e-6)
    records = 600 if neighbours == "add_remove" else None
    fitted = fit_table(data, schema, budget=budget, neighbours=neighbours, records=records)
    plain = model(
        5.0,
        1e-6,
        neighbours=neighbours,
        records=records,
        bounds=encoder.bounds,
        row_norm=math.sqrt(len(schema.columns)),
        **known,
    ).fit(encoder.features(data), encoder.encode_target(data))
    assert fitted.plan == plain.plan_
    assert fitted.plan == plan_table(schema, records=600, budget=budget, neighbours=neighbours)
    assert fitted.guarantee == plain.guarantee_
    np.testing.assert_array_equal(fitted.estimator.coef_, plain.coef_)
    np.testing.assert_array_equal(fitted.estimator.intercept_, plain.intercept_)
    predicted = encoder.decode_target(plain.predict(encoder.features(data)))
    assert fitted.predict(data).tolist() == predicted.tolist()


@pytest.mark.parametrize("groups", [None, "who"])
@pytest.mark.parametrize("kind", TARGETS)
def test_what_a_table_releases_is_known_beforehand(kind: str, groups: str | None, watch: Watch) -> None:
    """With all of the schema open: `plan_table` is the plan that ran, release by release."""
    target, _, _ = TARGETS[kind]
    opened = replace(target, values=None) if kind == "label" else replace(target, low=None, high=None)
    schema = Schema(columns={"age": Number(), "gain": Number(log=True), "job": Category()}, target=opened)
    budget, data = Budget(epsilon=20.0, delta=1e-6), table()
    if groups is not None:
        data[groups] = [f"p{place // 2}" for place in range(600)]
    plan = plan_table(schema, records=600 if groups is None else 300, budget=budget, groups=groups)
    assert watch.made == []
    fitted = fit_table(data, schema, budget=budget, groups=groups)
    assert fitted.plan == plan
    assert watch.ended == [each(plan)]
    assert fitted.guarantee.epsilon <= 20.0


# -- (d) charged once, run once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_charged_fit_reserves_its_plan_and_trains_once(name: str, watch: Watch) -> None:
    """The charge is the event of the plan; there is one meter and no rehearsal; what is refused draws nothing."""
    case = ESTIMATORS[name]
    rich, poor = (Account(Budget(epsilon=epsilon, delta=1e-6)) for epsilon in (9.0, 1.0))
    model = case.kind(5.0, 1e-6, max_iter=2, account=rich, **case.known).fit(X, case.target)
    (charge,) = rich.charges
    assert charge.event == model.plan_.event
    assert watch.ended == [each(model.plan_)]
    assert len(watch.made) == 1
    watch.forget()
    refused = case.kind(5.0, 1e-6, max_iter=2, account=poor, **case.known)
    with pytest.raises(Overspent):
        refused.fit(X, case.target)
    assert (watch.drawn, watch.ended, learnt_by(refused), poor.charges) == (0, [], [], ())


@pytest.mark.parametrize("known", [True, False])
def test_a_charged_table_reserves_its_plan_and_trains_once(known: bool, watch: Watch) -> None:
    """The same for a table, whose open schema is part of the plan."""
    columns = COLUMNS if known else {"age": Number(), "gain": Number()}
    schema = Schema(columns=columns, target=TARGETS["label"][0])
    rich, poor = (Account(Budget(epsilon=epsilon, delta=1e-6)) for epsilon in (9.0, 1.0))
    budget = Budget(epsilon=5.0, delta=1e-6)
    fitted = fit_table(table(), schema, budget=budget, account=rich)
    assert [charge.event for charge in rich.charges] == [fitted.plan.event]
    assert watch.ended == [each(fitted.plan)]
    assert len(watch.made) == 1
    watch.forget()
    with pytest.raises(Overspent):
        fit_table(table(), schema, budget=budget, account=poor, random=Listened(watch))
    assert (watch.drawn, watch.ended, poor.charges) == (0, [], ())


# -- (e) what cannot be is refused before it is paid ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        *(({"records": wrong}, "records") for wrong in (0, -1, 2.5, True, "300", None, math.nan)),
        *(({"columns": wrong}, "columns") for wrong in (0, -1, 2.5, True, "2", None)),
        *(({"classes": wrong}, "classes") for wrong in (3, 1, 0, 2.5, "2")),
        *(({"people": wrong}, "people") for wrong in ("yes", 1, None)),
        *(({"weighted": wrong}, "weighted") for wrong in ("yes", 1, None)),
        ({"people": True, "weighted": True}, "groups or weights"),
        ({"records": 10**6}, "delta below 1/n"),
    ],
)
def test_a_plan_from_no_facts_is_refused(facts: dict[str, Any], says: str, watch: Watch) -> None:
    """Sizes that are none, or that contradict the model or its budget: one sentence, and nothing is drawn."""
    model = LogisticRegression(classes=[0, 1], bounds=(-1, 1))
    with pytest.raises(InvalidParameter, match=says) as caught:
        model.plan(**{"records": 300, "columns": 2, **facts})
    assert "\n" not in str(caught.value)
    assert watch.drawn == 0


def test_numpy_s_whole_numbers_are_sizes() -> None:
    """Of a shape or a sum: the plan is the same, and holds plain numbers."""
    model = LogisticRegression(bounds=(-1, 1))
    plan = model.plan(records=np.int64(300), columns=np.int32(2), classes=np.uint8(3))  # type: ignore[arg-type]
    assert plan == model.plan(records=300, columns=2, classes=3)
    assert type(plan.records) is int


def test_an_unknown_number_of_classes_is_asked_for() -> None:
    """A classifier without declared classes cannot plan; once fitted, it knows them."""
    model = LogisticRegression(epsilon=50.0, bounds=(-1, 1))
    with pytest.raises(InvalidParameter, match="public list of classes"):
        model.plan(records=ROWS, columns=2)
    assert model.fit(X, THREE).plan(records=ROWS, columns=2) == model.plan_


WRONG: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
    ("logistic", {"solver": FixedHessian}, {}, "solver"),
    ("logistic", {"solver": 3}, {}, "solver"),
    ("logistic", {"solver": FixedHessian(clip=-1.0)}, {}, "clip"),
    ("logistic", {"solver": FixedHessian(clip=0.5, steps=0)}, {}, "steps"),
    ("logistic", {"solver": FixedHessian(clip=0.5), "max_iter": 3}, {}, "max_iter"),
    ("logistic", {"solver": OutputPerturbation()}, {}, "radius"),
    ("linear", {"solver": ObjectivePerturbation()}, {}, "proven bound"),
    *(("multinomial", {"solver": value}, {}, "Expected") for value in (VALUES["Newton"], ObjectivePerturbation())),
    *(("logistic", {"solver": VALUES[kind]}, {"groups": PEOPLE}, "groups") for kind in list(VALUES)[2:]),
    *(("logistic", {"solver": name}, {"groups": PEOPLE}, "groups") for name in ("newton", "objective", "output")),
    ("multinomial", {"solver": "newton"}, {}, "several classes"),
    ("logistic", {"max_iter": 2.5}, {}, "max_iter"),
    ("logistic", {"delta": 0.01}, {}, "delta below 1/n"),
    ("logistic", {"delta": 0.02}, {"groups": PEOPLE}, "delta below 1/n"),
    ("logistic", {"epsilon": 0.0}, {}, "epsilon"),
    ("logistic", {"epsilon": -1.0}, {}, "epsilon"),
    ("logistic", {"bounds": (1, 0)}, {}, "bounds"),
    ("logistic", {"bounds": ([0, 0, 0], [1, 1, 1])}, {}, "bounds"),
    ("logistic", {"bounds": None, "row_norm": 0.0}, {}, "row_norm"),
    ("logistic", {"bounds": None, "row_norm": 1e300}, {}, "row_norm"),
    ("logistic", {"class_weight": "fair"}, {}, "class_weight"),
    ("logistic", {"class_weight": {7: 1.0}}, {}, "class_weight"),
    ("logistic", {"class_weight": "balanced"}, {"groups": PEOPLE}, "groups or weights"),
    ("logistic", {"max_weight": -1.0}, {"sample_weight": np.ones(ROWS)}, "max_weight"),
    ("logistic", {"alpha": -0.1}, {}, "alpha"),
    ("logistic", {"inference": 2.0}, {}, "inference"),
    ("logistic", {"records": 10}, {}, "records"),
    ("logistic", {"records": 0, "neighbours": "add_remove"}, {}, "records"),
    ("logistic", {"records": "many", "neighbours": "add_remove"}, {}, "records"),
    ("logistic", {"neighbours": "add_remove"}, {}, "records"),
    ("logistic", {"neighbours": "everybody"}, {}, "neighbours"),
    ("linear", {"target_range": (3, 1)}, {}, "target_range"),
    ("poisson", {"target_range": (-1, 5)}, {}, "target_range"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "given", "says"), WRONG)
def test_what_cannot_be_fitted_is_refused_before_it_is_paid(
    name: str, options: dict[str, Any], given: dict[str, Any], says: str, watch: Watch
) -> None:
    """One sentence about a public fact; nothing drawn, nothing charged, nothing left on the model."""
    case = ESTIMATORS[name]
    relation: Neighbours = "add_remove" if options.get("neighbours") == "add_remove" else "replace_one"
    account = Account(
        Budget(epsilon=90.0, delta=1e-3), neighbours=relation, unit="person" if "groups" in given else "record"
    )
    parameters = {"epsilon": 50.0, "bounds": (-1, 1), "account": account, **case.known, **options}
    model = case.kind(**parameters)
    with pytest.raises(InvalidParameter, match=says) as caught:
        model.fit(X, case.target, **given)
    assert "\n" not in str(caught.value)
    assert (watch.drawn, watch.ended, learnt_by(model), account.charges) == (0, [], [], ())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"records": 10}, "records"),
        ({"records": "many", "neighbours": "add_remove"}, "records"),
        ({"neighbours": "add_remove"}, "records"),
        ({"budget": Budget(epsilon=5.0, delta=0.01)}, "delta below 1/n"),
        ({"budget": Budget(epsilon=0.0, delta=1e-6)}, "epsilon"),
        ({"groups": "nobody"}, "at least one row"),
        ({"table": {"age": [], "gain": [], "job": [], "ill": []}}, "at least one row"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_table_that_cannot_be_fitted_is_refused_before_it_is_paid(
    known: bool, options: dict[str, Any], says: str, watch: Watch
) -> None:
    """The same for a table, its schema known or to be learnt."""
    columns: dict[str, Any] = COLUMNS if known else {"age": Number(), "gain": Number(), "job": Category()}
    schema = Schema(columns=columns, target=TARGETS["label"][0])
    relation: Neighbours = "add_remove" if options.get("neighbours") == "add_remove" else "replace_one"
    account = Account(
        Budget(epsilon=90.0, delta=1e-3), neighbours=relation, unit="person" if "groups" in options else "record"
    )
    data = {**table(), "nobody": [None] * 600}
    parameters = {"budget": Budget(epsilon=5.0, delta=1e-6), "random": Listened(watch), "account": account, **options}
    with pytest.raises(InvalidParameter, match=says):
        fit_table(parameters.pop("table", data), schema, **parameters)
    assert (watch.drawn, watch.ended, account.charges) == (0, [], ())


# -- (f) scikit-learn's searches hand over NumPy's numbers ------------------------------------------------------------


def test_a_grid_of_numpy_s_numbers_is_a_grid(watch: Watch) -> None:
    """`np.arange` for `max_iter` and `np.logspace` for `alpha`: fits as with plain numbers, one plan each."""
    model = LogisticRegression(epsilon=50.0, bounds=(-1, 1), classes=[0, 1])
    grid = {"max_iter": np.arange(2, 5), "alpha": np.logspace(-2, 0, 2), "fit_intercept": [np.True_]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, TWO)
    best = search.best_estimator_
    assert best.plan_.times("gradients") in (2, 3, 4)
    assert best.plan_ == best.plan(records=ROWS, columns=2)
    assert len(watch.ended) == 3 * 2 * 2 + 1
