"""What a fit of a table will release, from its schema and other public facts: what is open is learnt first."""

import math
from dataclasses import replace
from typing import Any

from privet.errors import InvalidParameter
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.outline import Outline, Size, outlined
from privet.estimators.range_shares import LEAST_SEEN, TARGET_INSIDE, share_noise, share_to_see, stands_out
from privet.estimators.regressors import LinearRegression
from privet.estimators.sampling import range_rate, sample_rate, sample_tail
from privet.estimators.table_files import TableFiles
from privet.plan import Release
from privet.plan.plan import check_budget, whole_noise
from privet.preprocessing import Category, Schema, SchemaLearner, TableEncoder, Target
from privet.preprocessing.encoding import ends_of, number_ends
from privet.preprocessing.opened import Opened
from privet.preprocessing.schema import Column
from privet.privacy import Budget, Neighbours
from privet.problems.facts import public_count

# How far all records shall stand out of the noise when what the schema leaves open is learnt, in standard deviations,
# and the least and the most of the budget that is spent on it; inside declared ranges it is less urgent.
_OPEN, _HULLS = (30.0, 0.03, 0.25), (25.0, 0.03, 0.15)
_INSIDE = LEAST_SEEN / math.sqrt(_HULLS[2])  # from so many on, with all of the budget, ranges inside are found
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
    rate: float,
) -> tuple[SchemaLearner | None, float]:
    """Who learns what the schema leaves open, and inside declared ranges where it pays; and the share of the budget.

    `rate` is by which the solver samples.
    """
    noise = whole_noise(budget, neighbours)
    hulls = () if bounds_exact else _hulls(schema)
    if not stands_out(len(hulls) + len(schema.unknown) or 1, count, noise, neighbours) >= _INSIDE:
        hulls = ()
    if not hulls and not schema.unknown:
        return None, 0.0
    known: dict[str, Any] = {"groups": groups, "inside": hulls, "records": max(count, 1), "neighbours": neighbours}
    learner = SchemaLearner(schema=schema, threshold_delta=check_budget(budget).delta / 10, **known)
    seen = stands_out(1, count, noise, neighbours) / math.sqrt(learner.weight)
    share = share_to_see(seen, *(_OPEN if schema.unknown else _HULLS))
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
    return table.opened(schema, learner.columns) if isinstance(table, TableFiles) else learner.read(table)


def _hulls(schema: Schema) -> tuple[str, ...]:
    """Declared columns of numbers inside whose range another may be learnt: not [0, 1], [−1, 1], nor of log1p."""
    facts: dict[str, Column | Target] = dict(schema.columns)
    if schema.target is not None and schema.target.kind == "number":
        facts[schema.target.column] = schema.target
    return tuple(
        name
        for name, fact in facts.items()
        if not isinstance(fact, Category)
        and fact.low is not None
        and not fact.log
        and (fact.low, fact.high) not in ((0, 1), (-1, 1))
    )


def table_outline(
    schema: Schema,
    count: int,
    budget: Budget,
    neighbours: Neighbours,
    records: int | None,
    groups: str | None,
    bounds_exact: bool,
) -> tuple[Outline, SchemaLearner | None]:
    """The outline of the whole fit, and how the open part of the schema is learnt, for its share of the budget.

    While names of categories are not known, nor is how many there are: then they are taken to be `_NAMES`, and the
    plan does not say how many numbers a release has.
    """
    nominal = _nominal(schema)
    model = estimator_for(nominal, budget, neighbours, records)
    model._check()
    known = public_count(count, neighbours, records)
    target = nominal.target
    size = Size(
        records=count,
        columns=len(TableEncoder(nominal).bounds[0]),
        classes=max(2, len(target.classes)) if target is not None and target.kind == "label" else 2,
        people=groups is not None,
    )
    rate = sample_rate(model, size, model._loss(size.classes), known, known / whole_noise(budget, neighbours))
    learner, share = _learner(schema, known, budget, neighbours, groups, bounds_exact, rate)
    before: tuple[Release, ...] = ()
    if learner is not None:
        what, public = "the open part of the schema", "write ranges and values into the schema"
        all_of_it, most = whole_noise(budget, neighbours), 2.0**16
        noise = share_noise(all_of_it, share, budget.epsilon, most=most, what=what, public=public)
        before = learner.releases(noise_multiplier=noise)
    size = replace(size, exact=not (learner is not None and learner.names))
    found = outlined(model, size, before=before, draws=False)
    hulls = set() if bounds_exact else set(_hulls(schema)) - set(learner.inside if learner else ())
    unseen = found.centring is not None and not found.centring.norm_share
    number = target is not None and target.kind == "number" and target.column in hulls
    blind = (number and found.effective < TARGET_INSIDE) or (unseen and bool(hulls))
    return replace(found, blind=blind), learner


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


def estimator_for(schema: Schema, budget: Budget, neighbours: Neighbours, records: int | None) -> PrivateLinearModel:
    """The estimator for the schema's target, with its ranges as bounds; a row has one feature a column, at most 1."""
    check_budget(budget)
    common: dict[str, Any] = {
        "neighbours": neighbours,
        "bounds": TableEncoder(schema).bounds,
        "bounds_exact": True,  # what is learnt inside was learnt with the schema
        "row_norm": math.sqrt(len(schema.columns)),
        "records": records,
    }
    target = schema.target
    if target is not None and target.kind == "label":
        return LogisticRegression(budget.epsilon, budget.delta, classes=list(range(len(target.classes))), **common)
    if target is not None and target.kind == "count":
        return PoissonRegressor(budget.epsilon, budget.delta, target_range=ends_of(target), **common)
    return LinearRegression(budget.epsilon, budget.delta, target_range=number_ends(target), **common)  # type: ignore[arg-type]
