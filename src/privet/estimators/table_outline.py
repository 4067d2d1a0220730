"""What a fit of a table will release, from its schema and other public facts: what is open is learnt first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone, is_classifier

from privet.data.cells import text_of
from privet.data.tables import row_count
from privet.errors import InvalidParameter
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.outline import Outline, Size, outlined
from privet.estimators.range_shares import (
    LEAST_SEEN,
    TARGET_INSIDE,
    may_bend,
    share_noise,
    share_to_see,
    stands_out,
)
from privet.estimators.regressors import LinearRegression
from privet.estimators.sampling import BEYOND, TARGET_BEYOND, range_rate, sample_rate, sample_tail
from privet.estimators.table_files import TableFiles
from privet.plan import Release
from privet.plan.plan import check_budget, whole_noise
from privet.preprocessing import Category, Schema, SchemaLearner, TableEncoder, Target
from privet.preprocessing.dates import Date
from privet.preprocessing.encoding import ends_of, number_ends, shares_of
from privet.preprocessing.opened import Opened
from privet.preprocessing.schema import Column
from privet.preprocessing.tails import Tails, check_tails
from privet.preprocessing.usable_records import UsableCounts
from privet.privacy import Budget, Neighbours, check_delta
from privet.problems.facts import public_count

# How far all records shall stand out of the noise when what the schema leaves open is learnt, in standard deviations,
# and the least and the most of the budget that is spent on it; inside declared ranges it is less urgent.
_OPEN, _HULLS = (30.0, 0.03, 0.25), (25.0, 0.03, 0.15)
_INSIDE = LEAST_SEEN / math.sqrt(_HULLS[2])  # from so many on, with all of the budget, ranges inside are found
_THE_TABLES = ("bounds", "bounds_exact", "row_norm", "records", "account", "random_state", "classes", "target_range")
_NAMES = 8  # that a category of unknown names is taken to have when a fit is planned


def checked(schema: Schema, groups: str | None) -> Schema:
    """The schema, which must have a target, with the column of groups ignored."""
    target = schema.known_target
    if groups is None:
        return schema
    if target.column == groups:
        raise InvalidParameter(
            f"Expected groups to name another column than the target, got {groups!r}: whose row it is cannot be what "
            "is predicted. Name the column of ids."
        )
    columns = {name: column for name, column in schema.columns.items() if name != groups}
    ignored = (*(name for name in schema.ignored if name != groups), groups)
    return replace(schema, columns=columns, ignored=ignored)


def _learner(
    schema: Schema,
    count: int,
    budget: Budget,
    neighbours: Neighbours,
    groups: str | None,
    bounds_exact: bool,
    bends: bool,
    rate: float,
) -> tuple[SchemaLearner | None, float]:
    """Who learns what the schema leaves open, and inside declared ranges where it pays; and the share of the budget.

    `rate` is by which the solver samples: where it does, columns are not bent.
    """
    noise = whole_noise(budget, neighbours)
    hulls = () if bounds_exact else _hulls(schema)
    if not stands_out(len(hulls) + len(schema.unknown) or 1, count, noise, neighbours) >= _INSIDE:
        hulls = ()
    if not hulls and not schema.unknown:
        return None, 0.0
    known: dict[str, Any] = {"groups": groups, "inside": hulls, "records": max(count, 1), "neighbours": neighbours}
    known["tails"] = bends and rate == 1
    learner = SchemaLearner(schema=schema, threshold_delta=check_budget(budget).delta / 10, **known)
    seen = stands_out(1, count, noise, neighbours) / math.sqrt(learner.weight)
    share = share_to_see(seen, *(_OPEN if schema.unknown else _HULLS))
    if rate < 1:
        learner = replace(learner, beyond=(BEYOND, TARGET_BEYOND))
    rate = range_rate(rate, seen * math.sqrt(share))
    if rate < 1:
        learner = replace(learner, rate=rate, tail=sample_tail(rate * seen * math.sqrt(share)))
    return learner, share


def opened_columns(schema: Schema, table: Any, groups: str | None, bounds_exact: bool) -> Opened | None:
    """The columns from which anything might be learnt; None if there are none. Private."""
    hulls = () if bounds_exact else _hulls(schema)
    if not hulls and not schema.unknown:
        return None
    learner = SchemaLearner(schema=schema, threshold_delta=0.1, groups=groups, inside=hulls)
    return table.opened(learner.columns) if isinstance(table, TableFiles) else learner.read(table)


def _hulls(schema: Schema) -> tuple[str, ...]:
    """Declared columns of numbers inside whose range another may be learnt: not [0, 1], [−1, 1], nor of log1p."""
    facts: dict[str, Column | Target] = dict(schema.columns)
    if schema.target is not None and schema.target.kind == "number":
        facts[schema.target.column] = schema.target
    return tuple(
        name
        for name, fact in facts.items()
        if not isinstance(fact, Category | Date)
        and fact.low is not None
        and not fact.log
        and (fact.low, fact.high) not in ((0, 1), (-1, 1))
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TableTask:
    """What a fit of a table is asked to do; all of it public. `given` is the estimator, if one was given."""

    schema: Schema
    budget: Budget
    neighbours: Neighbours = "replace_one"
    records: int | None = None
    groups: str | None = None
    bounds_exact: bool = False
    tails: Tails = "clip"
    count_usable: bool = True
    given: PrivateLinearModel | None = None

    def estimator(self, schema: Schema) -> PrivateLinearModel:
        """The estimator for a complete schema, with its ranges as bounds; a row's norm is at most √shares."""
        return estimator_for(schema, self.budget, self.neighbours, self.records, self.given)

    @property
    def exact(self) -> bool:
        """Whether declared ranges are used as they are: also where intervals want nothing clipped."""
        return self.bounds_exact or bool(self.given is not None and self.given.inference)

    @property
    def counts_rows(self) -> bool:
        """Whether how many rows there are is public, and how many records there are."""
        return self.neighbours != "add_remove" and self.groups is None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableOutline:
    """The outline of a whole fit: what is learnt of the schema, which records are counted, and the estimator's."""

    outline: Outline
    learner: SchemaLearner | None
    usable: UsableCounts


def check_task(task: TableTask, table: Any) -> None:
    """Refuse, before a row is read, what public facts refuse: parameters, and a delta that is too large for the rows.

    Of files that is seen when they are opened.
    """
    check_tails(task.tails)
    task.estimator(_nominal(task.schema))._check()
    if task.counts_rows:
        check_delta(task.budget.delta, row_count(table))


def table_outline(task: TableTask, count: int) -> TableOutline:
    """The outline of the whole fit, and how the open part of the schema is learnt, for its share of the budget.

    While names of categories are not known, nor is how many there are: then they are taken to be `_NAMES`, and the
    plan does not say how many numbers a release has; nor does it where columns may be bent.
    """
    schema, budget, neighbours = task.schema, task.budget, task.neighbours
    check_tails(task.tails)
    nominal = _nominal(schema)
    model = task.estimator(nominal)
    model._check()
    known = public_count(count, neighbours, task.records)
    target = nominal.target
    size = Size(
        records=count,
        columns=len(TableEncoder(nominal).bounds[0]),
        classes=max(2, len(target.classes)) if target is not None and target.kind == "label" else 2,
        people=task.groups is not None,
        weighted=model._weighs_classes,
    )
    noise = whole_noise(budget, neighbours)
    rate = sample_rate(model, size, model._loss(size.classes), known, known / noise)
    bends = task.tails == "bend" and may_bend(model)
    learner, share = _learner(schema, known, budget, neighbours, task.groups, task.exact, bends, rate)
    before: tuple[Release, ...] = ()
    if learner is not None:
        what, public = "the open part of the schema", "write ranges and values into the schema"
        part = share_noise(noise, share, budget.epsilon, most=2.0**16, what=what, public=public)
        before = learner.releases(noise_multiplier=part)
    usable = UsableCounts()
    if task.count_usable and task.groups is None:
        usable = UsableCounts.planned(schema, records=known, whole_noise=noise, neighbours=neighbours)
    size = replace(size, exact=learner is None or not (learner.names or (learner.tails and learner.numbers)))
    found = outlined(model, size, before=(*before, *usable.releases), draws=False)
    hulls = set() if task.exact else set(_hulls(schema)) - set(learner.inside if learner else ())
    unseen = found.centring is not None and not found.centring.norm_share
    number = target is not None and target.kind == "number" and target.column in hulls
    blind = (number and found.effective < TARGET_INSIDE) or (unseen and bool(hulls))
    return TableOutline(outline=replace(found, blind=blind), learner=learner, usable=usable)


def _nominal(schema: Schema) -> Schema:
    """The schema with stand-ins for what is not known yet, of which a plan depends on the number of features alone."""
    names = tuple(f"name {place}" for place in range(_NAMES))
    columns = {
        name: column
        if name not in schema.unknown
        else replace(column, values=names)
        if isinstance(column, Category)
        else replace(column, low=0.0, high=1.0)
        for name, column in schema.columns.items()
    }
    target = schema.target
    if target is not None and target.column in schema.unknown:
        target = replace(target, values=names[:2]) if target.kind == "label" else replace(target, low=0.0, high=1.0)
    return replace(schema, columns=columns, target=target)


def estimator_for(
    schema: Schema,
    budget: Budget,
    neighbours: Neighbours,
    records: int | None,
    given: PrivateLinearModel | None = None,
) -> PrivateLinearModel:
    """The estimator for the schema's target, with its ranges as bounds; a scaled row's norm is at most √shares."""
    check_budget(budget)
    target = schema.target
    common: dict[str, Any] = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbours": neighbours,
        "bounds": TableEncoder(schema).bounds,
        "bounds_exact": True,  # what is learnt inside was learnt with the schema
        "row_norm": math.sqrt(shares_of(schema)),
        "records": records,
    }
    if target is not None and target.kind == "label":
        common["classes"] = list(range(len(target.classes)))
        model: PrivateLinearModel = LogisticRegression() if given is None else clone(given)
        if isinstance(getattr(model, "class_weight", None), Mapping):
            common["class_weight"] = _by_place(model.class_weight, target.classes)
    elif target is not None and target.kind == "count":
        common["target_range"] = ends_of(target)
        model = PoissonRegressor() if given is None else clone(given)
    else:
        common["target_range"] = number_ends(target)  # type: ignore[arg-type]  # the caller has seen that it is there
        model = LinearRegression() if given is None else clone(given)
    return model.set_params(**common)  # type: ignore[no-any-return]


def _by_place(weights: Mapping[Any, float], classes: tuple[str, ...]) -> dict[int, float]:
    """Weights by label as weights by the label's place in the schema."""
    named = {text_of(label): weight for label, weight in weights.items()}
    stray = [label for label in named if label not in classes]
    if stray:
        raise InvalidParameter(
            f"Expected class_weight for labels that the schema lists, got {stray[0]!r}: it would weigh nothing. Write "
            "the labels into the schema, spelt alike."
        )
    return {classes.index(str(label)): weight for label, weight in named.items()}


def check_given(given: Any, schema: Schema, neighbours: Neighbours) -> None:
    """Refuse an estimator that does not fit the schema's target, or that says what the schema or the fit says."""
    if given is None:
        return
    if not isinstance(given, PrivateLinearModel):
        raise InvalidParameter(
            f"Expected one of privet's estimators or None, got {type(given).__name__}: what it releases could not be "
            "accounted for. Use e.g. LogisticRegression() or HuberRegressor()."
        )
    kind = schema.known_target.kind
    fits = is_classifier(given) if kind == "label" else not is_classifier(given)
    if not fits or (isinstance(given, PoissonRegressor) and kind != "count"):
        raise InvalidParameter(
            f"Expected an estimator for a target of kind {kind!r}, got {type(given).__name__}: it reads another. Use "
            "a classifier for labels, a regressor for numbers, PoissonRegressor for counts; or change the schema."
        )
    weights = getattr(given, "class_weight", None)
    if isinstance(weights, Mapping):
        _by_place(weights, schema.known_target.classes)
    said = given.get_params(deep=False)
    stray = [name for name in _THE_TABLES if not (said.get(name) is None or said.get(name) is False)]
    stray += ["tails"] if given.tails != "clip" else []
    stray += ["neighbours"] if given.neighbours not in ("replace_one", neighbours) else []
    if stray:
        raise InvalidParameter(
            f"Expected an estimator without {stray[0]}, got one with: for a table the schema says that, or the fit "
            "does. Write ranges and classes into the schema, and pass the rest beside the table."
        )
