"""What a fit will release is known beforehand: `model.plan(...)` from public facts is what `fit` runs, and no more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from privet import Budget
from privet.errors import InvalidParameter, Overspent, PrivetError
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PrivateSearchCV,
    QuantileRegressor,
    Ridge,
    fit_table,
    plan_table,
    preparing,
    reserving,
)
from privet.estimators import linear as room
from privet.estimators import weights as weighing
from privet.ledger import Account
from privet.plan import Meter, Plan, Release
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

ROWS = 60
BUDGET = Budget(epsilon=1e3, delta=1e-3)
RELATIONS: tuple[Neighbours, ...] = ("replace_one", "zero_out", "add_remove")
_rng = np.random.default_rng(0)
X = _rng.uniform(-1, 1, size=(ROWS, 2))
SCORE = X @ [2.0, -1.0] + 0.3 * _rng.normal(size=ROWS)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.5, 0.5])
COUNTS = _rng.poisson(np.exp(SCORE / 2))

pytestmark = [
    pytest.mark.medium,  # the plan and the meter have quick tests of their own
    pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample"),  # few rows, whose ranges are learnt
]


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
    monkeypatch.setattr(reserving, "system_random", listened)
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

NAMES = ("auto", "fixed_hessian", "gradient", "sgd", "newton", "objective", "output")
VALUES: dict[str, Solver] = {
    "FixedHessian": FixedHessian(clip=0.5, steps=2),
    "DPSGD": DPSGD(clip=0.5, steps=2),
    "Newton": Newton(clip=0.5, steps=2),
    "ObjectivePerturbation": ObjectivePerturbation(clip=0.5),
    "OutputPerturbation": OutputPerturbation(clip=0.5, radius=10.0),
}
SOLVERS: dict[str, Any] = {name: name for name in NAMES} | VALUES
STEPLESS = ("objective", "output")
PEOPLE = np.arange(ROWS) // 3

OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "ranges": {
        "given": {"bounds": (-1, 1)},
        "wide": {"bounds": (-90, 90)},  # inside which they are learnt
        "learnt": {},
        "by norm": {"row_norm": 1.5},
        "both": {"bounds": (-1, 1), "row_norm": 1.2},
    },
    "rows": {
        "alone": {},
        "grouped": {"groups": PEOPLE},
        "weighted": {"sample_weight": np.linspace(0, 2, ROWS)},
        "weighted within a bound": {"sample_weight": np.linspace(0, 2, ROWS), "max_weight": 2.0},
        "grouped and weighted": {"groups": PEOPLE, "sample_weight": np.ones(ROWS)},
    },
    "classes": {
        "alike": {},
        "balanced": {"class_weight": "balanced"},
        "weighted": {"class_weight": {0: 1.0, 1: 2.0}},
    },
    "intervals": {"none": {}, "half": {"inference": 0.5}},
    "intercept": {"fitted": {}, "none": {"fit_intercept": False}},
    "penalty": {"none": {"alpha": 0.0}, "some": {"alpha": 0.1}},
    "form": {"dense": {"X": X}, "sparse": {"X": sparse.csr_matrix(X)}},
    "account": {"none": {}, "gaussian": {"filter": "gaussian"}, "renyi": {"filter": "renyi"}},
}
FACTORS: dict[str, tuple[str, ...]] = {
    "estimator": tuple(ESTIMATORS),
    "neighbours": RELATIONS,
    "solver": tuple(SOLVERS),
    **{factor: tuple(levels) for factor, levels in OPTIONS.items()},
}
PLAIN = {factor: levels[0] for factor, levels in FACTORS.items()}
Combination = dict[str, str]  # a level of each factor

_SEVERAL = ("multinomial", "classes read off", "svc of three")
_PERTURBED = ("objective", "ObjectivePerturbation")
_ROWS_ALONE = ("newton", "Newton", *_PERTURBED, "output", "OutputPerturbation")
_GROUPED, _WEIGHTED = ("grouped", "grouped and weighted"), ("weighted", "weighted within a bound")
# What is refused: (factor, levels, another, its levels, in which words); without words, what cannot even be asked for.
REFUSED: list[tuple[str, tuple[str, ...], str, tuple[str, ...], str]] = [
    ("estimator", _SEVERAL, "solver", ("newton", "Newton", *_PERTURBED), "several classes"),
    ("estimator", _SEVERAL, "solver", ("OutputPerturbation",), "several outputs"),
    ("rows", _GROUPED, "solver", _ROWS_ALONE, r"groups=\.\.\."),
    ("rows", ("grouped and weighted",), "rows", ("grouped and weighted",), "groups or weights"),
    ("rows", _GROUPED, "classes", ("balanced", "weighted"), "groups or weights"),
    ("intervals", ("half",), "rows", FACTORS["rows"][1:], "neither groups nor weights"),
    ("intervals", ("half",), "classes", ("balanced", "weighted"), "neither groups nor weights"),
    ("intervals", ("half",), "estimator", _SEVERAL, "two classes"),
    ("intervals", ("half",), "penalty", ("some",), "alpha=0"),
    ("penalty", ("some",), "solver", _ROWS_ALONE, "alpha=0"),
    ("account", ("gaussian",), "solver", ("sgd", *_PERTURBED), "Gaussian DP only"),
    ("account", ("renyi",), "solver", _PERTURBED, "no order bounds it"),
    ("classes", ("balanced", "weighted"), "estimator", tuple(ESTIMATORS)[5:], ""),
    ("intervals", ("half",), "estimator", ("svc", "svc of three", "poisson", "quantile"), ""),
]


def objections(of: Combination) -> list[str]:
    """Why a combination is refused, in words of the message; none if it can be fitted."""
    return [words for f, some, g, others, words in REFUSED if of.get(f) in some and of.get(g) in others]


def covering() -> list[Combination]:
    """Combinations that can be fitted, in which any two levels that can be fitted together meet; by a fixed rule.

    Batches that are sampled take half a second to plan, and need to meet the relations only.
    """
    every = [(f, a, g, b) for f, g in itertools.combinations(FACTORS, 2) for a in FACTORS[f] for b in FACTORS[g]]
    open_pairs = {
        (f, a, g, b): None
        for f, a, g, b in every
        if not objections({f: a, g: b}) and ("sgd" not in (a, b) or f == "neighbours")
    }
    found: list[Combination] = []
    while open_pairs:
        f, a, g, b = next(iter(open_pairs))
        chosen = {f: a, g: b}
        for factor in [name for name in FACTORS if name not in chosen]:
            best = -1
            for level in FACTORS[factor][len(found) % len(FACTORS[factor]) :] + FACTORS[factor]:
                new = sum(
                    (one, chosen[one], factor, level) in open_pairs or (factor, level, one, chosen[one]) in open_pairs
                    for one in chosen
                )
                costs = level == "sgd"  # taken where it must be
                if new - 99 * costs > best and not objections(chosen | {factor: level}):
                    best, picked = new - 99 * costs, level
            chosen[factor] = picked
        for one, other in itertools.combinations(FACTORS, 2):
            open_pairs.pop((one, chosen[one], other, chosen[other]), None)
        found.append(chosen)
    return found


def check(of: Combination, watch: Watch) -> None:
    """The law for one combination: it runs its plan, or it is refused in one sentence before anything happens."""
    case, neighbours = ESTIMATORS[of["estimator"]], cast(Neighbours, of["neighbours"])
    options: dict[str, Any] = {}
    for factor, levels in OPTIONS.items():
        options |= levels[of[factor]]
    rows, groups, weights = options.pop("X"), options.pop("groups", None), options.pop("sample_weight", None)
    unit: Any = "record" if groups is None else "person"
    account = None
    if "filter" in options:
        account = Account(BUDGET, neighbours=neighbours, unit=unit, filter=options.pop("filter"))
    model = case.kind(
        50.0,
        1e-6,
        neighbours=neighbours,
        solver=SOLVERS[of["solver"]],
        max_iter=_steps(of["solver"]),
        records=ROWS if neighbours == "add_remove" else None,
        account=account,
        **case.known,
        **options,
    )
    size = {"records": ROWS if groups is None else int(groups.max()) + 1, "columns": 2, "classes": case.classes}
    watch.forget()
    size |= {"people": groups is not None, "weighted": weights is not None, "sparse": sparse.issparse(rows)}
    plan, refusal = _asked(model, size)
    assert watch.made == []
    reasons = objections(of)
    if reasons:
        with pytest.raises(PrivetError, match="|".join(reasons)) as caught:
            model.fit(rows, case.target, sample_weight=weights, groups=groups)
        assert str(caught.value) == refusal or plan is not None  # a plan knows of no account
        assert "\n" not in str(caught.value)
        assert (watch.drawn, watch.ended, learnt_by(model)) == (0, [], [])
        assert account is None or account.charges == ()
        return
    model.fit(rows, case.target, sample_weight=weights, groups=groups)
    assert model.plan_ == plan
    (meter,) = watch.made
    assert meter.plan == plan
    assert watch.ended == [each(plan)]
    assert watch.drawn > 0
    assert model.guarantee_.epsilon <= 50.0
    assert model.guarantee_.unit == plan.unit == unit
    assert account is None or [charge.event for charge in account.charges] == [plan.event]


def _steps(solver: str) -> int | None:
    return 2 if solver in NAMES and solver not in STEPLESS else None


def _asked(model: Any, facts: dict[str, Any]) -> tuple[Any, str]:
    """The plan, or the words in which it is refused."""
    try:
        return model.plan(**facts), ""
    except PrivetError as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("part", range(4))
def test_every_fit_runs_its_plan(part: int, watch: Watch) -> None:
    """Whatever the estimator, relation, solver and options: `plan_` is the plan, and its releases ran one by one.

    Any two levels that can be fitted together are, somewhere; all of them together are among the slow tests.
    """
    for combination in covering()[part::4]:
        check(combination, watch)


def test_every_refusal_comes_before_the_first_release(watch: Watch) -> None:
    """Any two levels that exclude each other: one sentence, in which the reason is, with nothing drawn or charged."""
    asked = 0
    for f, some, g, others, _ in REFUSED:
        for a, b in itertools.product(some, others):
            ledger = FACTORS["account"][1 + asked % 2]
            of = PLAIN | {"neighbours": RELATIONS[asked % 3], "account": ledger, f: a, g: b}
            if "" not in objections(of) and "sgd" not in (a, b):
                check(of, watch)
                asked += 1
    assert asked > 40


def _options(solver: str) -> list[Combination]:
    """Each option by itself, and ranges, rows, classes and intervals together, but for the one that plans for long."""
    alone = [{factor: level} for factor, levels in OPTIONS.items() for level in list(levels)[1:]]
    ways = itertools.product(FACTORS["ranges"][:2], FACTORS["rows"][:3], FACTORS["classes"], FACTORS["intervals"])
    together = [dict(zip(("ranges", "rows", "classes", "intervals"), way, strict=True)) for way in ways]
    return [{}, *alone, *(together if solver != "sgd" else [])]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_whole_product_runs_its_plans(name: str, solver: str, neighbours: Neighbours, watch: Watch) -> None:
    """As above: every estimator × relation × solver × option, and × ranges × rows × classes × intervals together."""
    for option in _options(solver):
        combination = PLAIN | {"estimator": name, "solver": solver, "neighbours": neighbours} | option
        if "" not in objections(combination):
            check(combination, watch)


def test_a_covering_covers() -> None:
    """Any two levels meet in a combination that is fitted, or the list of refusals says why not."""
    met = {pair for of in covering() for pair in itertools.combinations(of.items(), 2)}
    met |= {(b, a) for a, b in met}
    for f, g in itertools.combinations(FACTORS, 2):
        for a, b in itertools.product(FACTORS[f], FACTORS[g]):
            assert ((f, a), (g, b)) in met or objections({f: a, g: b}) or "sgd" in (a, b)


# -- (b) a fit that strays from its plan is stopped -------------------------------------------------------------------


def _twice(patch: pytest.MonkeyPatch) -> None:
    genuine = RangeFinder.learn

    def run(self: RangeFinder, values: Any, meter: Meter, **named: Any) -> Any:
        genuine(self, values, meter, **named)
        return genuine(self, values, meter, **named)

    patch.setattr(RangeFinder, "learn", run)


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

    def scaling(model: Any, data: Any, outline: Any, meter: Meter, target: Any) -> Any:
        weighing.balanced(data.target, 2, meter)
        return genuine(model, data, outline, meter, target)

    patch.setattr(room, "learnt_scaling", scaling)


def _even(classes: int) -> weighing.Balance:
    return weighing.Balance(factors=np.ones(classes), average=1.0, rarest=1e9)


def _no_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("privet.estimators.classifiers.balanced", lambda places, classes, meter: _even(classes))


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
        return _even(classes)

    patch.setattr("privet.estimators.classifiers.balanced", balanced)


MUTANTS: dict[str, Callable[[tuple[Release, ...]], tuple[Release, ...]]] = {
    "first added": lambda planned: planned[1:],
    "last added": lambda planned: planned[:-1],
    "first dropped": lambda planned: (planned[0], *planned),
    "last dropped": lambda planned: (*planned, planned[-1]),
    "one in the middle added": lambda planned: planned[: len(planned) // 2] + planned[len(planned) // 2 + 1 :],
    "two exchanged": lambda planned: (planned[1], planned[0], *planned[2:]),
}


@pytest.mark.parametrize("solver", [pytest.param(name, marks=[pytest.mark.slow] * (name == "sgd")) for name in SOLVERS])
def test_no_solver_runs_another_plan(solver: str, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A meter whose plan lacks a release of the run, has one more or has two exchanged refuses, whatever the solver."""
    begin = Meter.__init__
    for mutant in MUTANTS.values():
        model = LogisticRegression(50.0, classes=[0, 1], class_weight="balanced", solver=SOLVERS[solver])
        model.set_params(max_iter=_steps(solver))

        def begun(self: Meter, plan: Plan, mutant: Any = mutant, **named: Any) -> None:
            begin(self, replace(plan, releases=mutant(plan.releases)), **named)

        with monkeypatch.context() as patch:
            patch.setattr(Meter, "__init__", begun)
            for home in ("descent", "perturbed_objective", "perturbed_output"):
                # a solver refuses such a meter at once; here the meter has to notice by itself
                patch.setattr(f"privet.solvers.{home}.ready", lambda plan, meter, random: meter)
            with pytest.raises(PrivetError, match=r"as planned, got|every planned release|not part of the plan"):
                model.fit(X, TWO)
        assert (learnt_by(model), watch.ended) == ([], [])


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


TABLES = list(itertools.product(TARGETS, (None, "who"), RELATIONS))


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
    said: dict[str, Any] = {"neighbours": neighbours, "bounds_exact": True, "count_usable": False}

    def account() -> Account:
        return Account(Budget(epsilon=1e3, delta=1e-3), neighbours=neighbours)  # with which neither makes draws

    fitted = fit_table(data, schema, records=records, budget=budget, account=account(), **said)
    plain = model(
        5.0,
        1e-6,
        neighbours=neighbours,
        records=records,
        bounds=encoder.bounds,
        row_norm=math.sqrt(len(schema.columns)),
        bounds_exact=True,
        account=account(),
        **known,
    ).fit(encoder.features(data), encoder.encode_target(data))
    assert fitted.plan == plain.plan_
    drawn = model(5.0, 1e-6, neighbours=neighbours, records=records, bounds_exact=True, bounds=encoder.bounds, **known)
    drawn.row_norm = plain.row_norm
    size = {"records": 600, "columns": len(encoder.bounds[0])}
    assert plan_table(schema, records=600, budget=budget, **said) == drawn.plan(**size)
    assert fitted.guarantee.epsilon == plain.guarantee_.epsilon
    assert "what the schema declares is public" in fitted.guarantee.assumptions
    np.testing.assert_array_equal(fitted.estimator_.coef_, plain.coef_)
    np.testing.assert_array_equal(fitted.estimator_.intercept_, plain.intercept_)
    predicted = encoder.decode_target(plain.predict(encoder.features(data)))
    assert fitted.predict(data).tolist() == predicted.tolist()


def check_table(kind: str, groups: str | None, neighbours: Neighbours, watch: Watch) -> None:
    """With all of the schema open: `plan_table` is the plan that ran, release by release."""
    target, _, _ = TARGETS[kind]
    opened = replace(target, values=None) if kind == "label" else replace(target, low=None, high=None)
    schema = Schema(columns={"age": Number(), "gain": Number(log=True), "job": Category()}, target=opened)
    budget, data, records = Budget(epsilon=20.0, delta=1e-6), table(), 600 if groups is None else 300
    if groups is not None:
        data[groups] = [f"p{place // 2}" for place in range(600)]
    facts: dict[str, Any] = {"budget": budget, "groups": groups, "neighbours": neighbours}
    plan = plan_table(schema, records=records, **facts)
    assert watch.made == []
    fitted = fit_table(data, schema, **facts, records=records if neighbours == "add_remove" else None)
    assert fitted.plan == plan
    assert watch.ended == [each(plan)]
    assert fitted.guarantee.epsilon <= 20.0


@pytest.mark.parametrize(("kind", "groups", "neighbours"), [TABLES[3 * k + k % 3] for k in range(8)])
def test_what_a_table_releases_is_known_beforehand(
    kind: str, groups: str | None, neighbours: Neighbours, watch: Watch
) -> None:
    """Each kind of target, with and without people, under one relation or another: `fit_table` runs its plan."""
    check_table(kind, groups, neighbours, watch)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "groups", "neighbours"), TABLES)
def test_what_any_table_releases_is_known_beforehand(
    kind: str, groups: str | None, neighbours: Neighbours, watch: Watch
) -> None:
    """As above, under every relation."""
    check_table(kind, groups, neighbours, watch)


# -- a search is many fits, each of which runs its plan ---------------------------------------------------------------


def check_search(name: str, neighbours: Neighbours, law: str, watch: Watch) -> None:
    """Every trial's meters ran to their ends, and the search's plan is known beforehand."""
    case = ESTIMATORS[name]
    model = case.kind(max_iter=2, records=ROWS, **case.known)
    grid = {"solver": ["auto", "gradient"], "alpha": [0.0, 0.1], "bounds": [(-1, 1), None]}
    search = PrivateSearchCV(model, grid, epsilon=50.0, neighbours=neighbours, law=law, mean_trials=4)
    plan = search.plan()
    assert watch.made == []
    search.fit(X, case.target)
    assert search.plan_ == plan
    assert [tuple(meter.record) for meter in watch.made] == [each(meter.plan) for meter in watch.made]
    assert len(watch.made) >= 2


SEARCHED = [name for name in ESTIMATORS if "learnt" not in name and "read off" not in name]


@pytest.mark.parametrize(
    ("name", "neighbours", "law"),
    [
        ("logistic", "replace_one", "geometric"),
        ("linear", "zero_out", "logarithmic"),
        ("svc of three", "add_remove", "geometric"),
    ],
)
def test_every_trial_of_a_search_runs_its_plan(name: str, neighbours: Neighbours, law: str, watch: Watch) -> None:
    """Whichever candidates were drawn: each fit and each score released what was planned, one by one."""
    check_search(name, neighbours, law, watch)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("name", SEARCHED)
def test_every_trial_of_any_search_runs_its_plan(name: str, neighbours: Neighbours, law: str, watch: Watch) -> None:
    """As above, for every estimator under every relation."""
    check_search(name, neighbours, law, watch)


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
    ("logistic", {"delta": 0.02}, {}, "delta below 1/n"),
    ("logistic", {"delta": 0.06}, {"groups": PEOPLE}, "delta below 1/n"),
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


@pytest.mark.filterwarnings("ignore::privet.errors.RepeatedFit")
def test_a_grid_of_numpy_s_numbers_is_a_grid(watch: Watch) -> None:
    """`np.arange` for `max_iter` and `np.logspace` for `alpha`: fits as with plain numbers, one plan each."""
    model = LogisticRegression(epsilon=50.0, bounds=(-1, 1), classes=[0, 1])
    grid = {"max_iter": np.arange(2, 5), "alpha": np.logspace(-2, 0, 2), "fit_intercept": [np.True_]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, TWO)
    best = search.best_estimator_
    assert best.plan_.times("gradients") in (2, 3, 4)
    assert best.plan_ == best.plan(records=ROWS, columns=2)
    assert len(watch.ended) == 3 * 2 * 2 + 1
