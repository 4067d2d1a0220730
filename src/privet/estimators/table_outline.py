"""What a fit of a table will release, from its schema and other public facts: what is open is learnt first."""

import math
from dataclasses import dataclass, replace
from typing import Any

from privet.data.tables import row_count
from privet.errors import InvalidParameter
from privet.estimators.doubts import SCALED
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.outline import Outline, Size, constant_outline, outlined
from privet.estimators.range_shares import (
    LEAST_SEEN,
    may_bend,
    share_noise,
    share_to_see,
    stands_out,
)
from privet.estimators.sampling import BEYOND, TARGET_BEYOND, range_rate, sample_rate, sample_tail
from privet.estimators.table_estimator import estimator_for
from privet.estimators.table_files import TableFiles
from privet.plan import Release
from privet.plan.plan import check_budget, whole_noise
from privet.preprocessing import Category, Schema, SchemaLearner, TableEncoder, Target
from privet.preprocessing.dates import Date
from privet.preprocessing.encoding import width_of
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
_WIDEST = 2.0**1000  # a target's end where none is known
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


def opened_columns(task: "TableTask", table: Any) -> Opened | None:
    """The columns from which the schema might be learnt; None if there are none. Private."""
    schema = task.learnable
    hulls = () if task.exact else _hulls(schema)
    if not hulls and not schema.unknown:
        return None
    learner = SchemaLearner(schema=schema, threshold_delta=0.1, groups=task.groups, inside=hulls)
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
    draws: bool = True

    def estimator(self, schema: Schema) -> PrivateLinearModel:
        """The estimator for a complete schema, with its ranges as bounds; a row's norm is at most √shares."""
        found = estimator_for(schema, self.budget, self.neighbours, self.records, self.given)
        found._finds_target = self.finds_target
        return found

    @property
    def finds_target(self) -> bool:
        """Whether the estimator looks for the range of its target, in the declared one or anywhere: not of log1p."""
        target = self.schema.known_target
        return target.kind != "label" and not target.log and not self.exact

    @property
    def learnable(self) -> Schema:
        """The schema, without a target whose range the estimator looks for."""
        return replace(self.schema, target=None) if self.finds_target else self.schema

    def completed(self, found: Schema) -> Schema:
        """What was learnt of `learnable`, with a target that cells can be read by; its range is as wide as may be."""
        found, target = with_a_feature(found), self.schema.known_target
        if not self.finds_target:
            return found
        return replace(found, target=target if target.known else wide_open(target))

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
    task.estimator(nominal(task))._check()
    if task.counts_rows:
        check_delta(task.budget.delta, row_count(table))


def table_outline(task: TableTask, count: int) -> TableOutline:
    """The outline of the whole fit, and how the open part of the schema is learnt, for its share of the budget.

    While names of categories are not known, nor is how many there are: then they are taken to be `_NAMES`, and the
    plan does not say how many numbers a release has; nor does it where columns may be bent.
    """
    schema, budget, neighbours = task.learnable, task.budget, task.neighbours
    check_tails(task.tails)
    stand_in = nominal(task)
    model = task.estimator(stand_in)
    model._check()
    known = public_count(count, neighbours, task.records)
    target = stand_in.target
    size = Size(
        records=count,
        columns=len(TableEncoder(stand_in).bounds[0]),
        classes=max(2, len(target.classes)) if target is not None and target.kind == "label" else 2,
        people=task.groups is not None,
        weighted=model._weighs_classes,
    )
    if task.finds_target or task.schema.known_target.known:
        alone = constant_outline(model, size, draws=task.draws)
        if alone is not None:
            return TableOutline(outline=alone, learner=None, usable=UsableCounts())
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
        usable = UsableCounts.planned(task.schema, records=known, whole_noise=noise, neighbours=neighbours)
    size = replace(size, exact=learner is None or not (learner.names or (learner.tails and learner.numbers)))
    found = outlined(model, size, before=(*before, *usable.releases), draws=task.draws)
    hulls = set() if task.exact else set(_hulls(schema)) - set(learner.inside if learner else ())
    unseen = found.centring is not None and not found.centring.norm_share
    open_ = task.finds_target and model._learns_target and model._ends not in (None, *SCALED)
    blind = (open_ and found.anchor is None and found.target is None) or (unseen and bool(hulls))
    return TableOutline(outline=replace(found, blind=blind), learner=learner, usable=usable)


def nominal(task: TableTask) -> Schema:
    """The schema with stand-ins for what is not known yet, of which a plan depends on the number of features alone.

    A target whose range the estimator looks for stays as it is.
    """
    names, target = tuple(f"name {place}" for place in range(_NAMES)), task.schema.target
    schema = with_stand_ins(task.schema, names)
    if target is not None and target.column in schema.unknown and not task.finds_target:
        target = replace(target, values=names[:2]) if target.kind == "label" else replace(target, low=0.0, high=1.0)
    return replace(schema, target=target)


def wide_open(target: Target) -> Target:
    """A target of numbers or counts, with ends beyond all that it may be."""
    return replace(target, low=0.0 if target.kind == "count" else -_WIDEST, high=_WIDEST)


def with_a_feature(schema: Schema) -> Schema:
    """The schema; if no column has a feature, as no name was learnt, whether the first one is missing is one."""
    if not schema.columns or any(width_of(column) for column in schema.columns.values()):
        return schema
    first, column = next(iter(schema.columns.items()))
    return replace(schema, columns={**schema.columns, first: replace(column, missing="indicator")})


def with_stand_ins(schema: Schema, names: tuple[str, ...] = ()) -> Schema:
    """The schema with columns that are known: where a range is open 0 to 1, where names are, those."""
    columns = {
        name: column
        if name not in schema.unknown
        else replace(column, values=names)
        if isinstance(column, Category)
        else replace(column, low=0.0, high=1.0)
        for name, column in schema.columns.items()
    }
    return replace(schema, columns=columns)
