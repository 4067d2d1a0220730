"""From a table and its schema to a private model: plan, fit, predict."""

import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.arrays import Vector
from privet.data import grouped_by
from privet.errors import InvalidParameter, SmallEffectiveSample
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.outline import Outline, Size, outlined, share_noise
from privet.estimators.regressors import LinearRegression
from privet.estimators.reserving import reserve
from privet.plan import Meter, Plan
from privet.plan.plan import check_budget, whole_noise
from privet.preprocessing import Category, Schema, SchemaLearner, TableEncoder
from privet.preprocessing.encoding import ends_of, number_ends
from privet.privacy import Budget, Guarantee, Neighbours
from privet.randomness import Random

_LEARNING_SHARE = 0.1  # of the budget, for what the schema leaves open
_NAMES = 8  # that a category of unknown names is taken to have when a fit is planned


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TableModel:
    """A linear model of a table: its schema, its coefficients, and the guarantee under which both were made."""

    schema: Schema
    estimator: Any

    @property
    def guarantee(self) -> Guarantee:
        """What training promises."""
        return self.estimator.guarantee_  # type: ignore[no-any-return]  # set by fit

    @property
    def plan(self) -> Plan:
        """What training released."""
        return self.estimator.plan_  # type: ignore[no-any-return]  # set by fit

    def save(self, folder: str | Path) -> Path:
        """Write model.json into `folder`; JSON, so that loading it runs no code. What it says is of the fit."""
        from privet.estimators.model_file import save_model

        return save_model(self, folder)

    def predict(self, table: Any) -> NDArray[Any]:
        """The target of each row, in the table's own terms."""
        encoder = TableEncoder(self.schema)
        return encoder.decode_target(self.estimator.predict(encoder.features(table)))

    def predict_proba(self, table: Any) -> Vector:
        """The probability of each class of the target, in the schema's order."""
        if not isinstance(self.estimator, LogisticRegression):
            raise InvalidParameter(
                "Expected a model of labels, got one of numbers: it has no classes to be probable. Use predict."
            )
        return self.estimator.predict_proba(TableEncoder(self.schema).features(table))

    def score(self, table: Any) -> float:
        """Accuracy for labels, R² for numbers, D² for counts, on rows other than the private ones."""
        encoder = TableEncoder(self.schema)
        target = encoder.encode_target(table)
        known = np.isfinite(target)
        return float(self.estimator.score(encoder.features(table)[known], target[known]))


def plan_table(
    schema: Schema, *, records: int, budget: Budget, neighbours: Neighbours = "replace_one", groups: str | None = None
) -> Plan:
    """What `fit_table` will release on a table of `records` rows (or people, with `groups`); no table is opened.

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.preprocessing import Number, Target
    >>> schema = Schema(columns={"age": Number()}, target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> plan_table(schema, records=4000, budget=Budget(epsilon=1, delta=1e-6)).names
    ('ranges: octaves', 'ranges: bins', 'second moment XᵀX', 'gradients')
    """
    return _outline(_checked(schema, groups), records, budget, neighbours, records, groups)[0].plan


def fit_table(
    table: Any,
    schema: Schema,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    records: int | None = None,
    groups: str | None = None,
    account: Any = None,
    random: Random | None = None,
) -> TableModel:
    """Train a linear model on a private table, all of it out of one budget.

    What the schema leaves open, ranges and code books, is learnt privately for a tenth of the budget. A target of
    labels gets logistic regression, one of numbers least squares, one of counts Poisson regression: the estimators of
    those names, with the schema's ranges as their `bounds`.

    Promise: the guarantee covers everything that was learnt and meets `budget`; what is released is `plan_table`'s.

    Parameters
    ----------
    table : a data frame, dict of columns, list of dicts, or path of a CSV file; private
    schema : the public facts, with a target
    budget, neighbours : what the model shall satisfy
    records : under "add_remove", a public guess of the number of rows, or of people
    groups : the column that says whose row it is, which is then no feature; the guarantee is for a person with all rows
    account : a `privet.ledger.Account` to reserve the plan from
    random : the system's, unless for a test; a fixed seed invalidates the guarantee

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.preprocessing import Category, Number, Target
    >>> table = {"age": [20, 60] * 2000, "job": ["baker", "smith"] * 2000, "ill": ["no", "yes"] * 2000}
    >>> schema = Schema(columns={"age": Number(low=0, high=100), "job": Category(values=("baker", "smith"))},
    ...                 target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> model = fit_table(table, schema, budget=Budget(epsilon=1, delta=1e-6))
    >>> model.predict({"age": [20, 60], "job": ["baker", "smith"]}).tolist(), model.guarantee.epsilon <= 1
    (['no', 'yes'], True)
    """
    schema = _checked(schema, groups)
    whose = None if groups is None else grouped_by(table, groups)
    opened = _learner(schema, budget, groups).read(table) if schema.unknown else None
    encoded = None if schema.unknown else _encoded(schema, table)
    rows = len(encoded[1]) if encoded is not None else len(next(iter(opened.columns.values())))  # type: ignore[union-attr]
    count = rows if whose is None else int(whose.max(initial=-1)) + 1
    if count == 0 and neighbours != "add_remove":  # where how many there are is private, none must do
        raise InvalidParameter(
            "Expected at least one row, and with groups one that is somebody's, got none: there is nothing to learn "
            "from. Pass rows."
        )
    outline, learner = _outline(schema, count, budget, neighbours, records, groups)
    if outline.little:
        warnings.warn(outline.little, SmallEffectiveSample, stacklevel=2)
    meter = Meter(outline.plan, random=random)
    reserve(account, outline.plan, "fit_table", meter.random)
    if learner is not None and opened is not None:
        schema = learner.run(opened, meter)
        encoded = _encoded(schema, table)
    estimator = estimator_for(schema, budget, neighbours, records)
    estimator._fit_planned(*encoded, groups=whose, outline=outline, meter=meter)  # type: ignore[misc]
    meter.finish()
    return TableModel(schema=schema, estimator=estimator)


def _encoded(schema: Schema, table: Any) -> tuple[Vector, Vector]:
    encoder = TableEncoder(schema)
    return encoder.features(table), encoder.encode_target(table)


def _checked(schema: Schema, groups: str | None) -> Schema:
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


def _learner(schema: Schema, budget: Budget, groups: str | None) -> SchemaLearner:
    return SchemaLearner(schema=schema, threshold_delta=check_budget(budget).delta / 10, groups=groups)


def _outline(
    schema: Schema, count: int, budget: Budget, neighbours: Neighbours, records: int | None, groups: str | None
) -> tuple[Outline, SchemaLearner | None]:
    """The outline of the whole fit, and how the open part of the schema is learnt, for its share of the budget.

    While names of categories are not known, nor is how many there are: then they are taken to be `_NAMES`, and the
    plan does not say how many numbers a release has.
    """
    nominal = _nominal(schema)
    model = estimator_for(nominal, budget, neighbours, records)
    model._check()
    learner, before = None, ()
    if schema.unknown:
        learner = _learner(schema, budget, groups)
        what, public = "the open part of the schema", "write ranges and values into the schema"
        all_of_it, most = whole_noise(budget, neighbours), 2.0**16
        noise = share_noise(all_of_it, _LEARNING_SHARE, budget.epsilon, most=most, what=what, public=public)
        before = learner.releases(noise_multiplier=noise)  # type: ignore[assignment]
    target = nominal.target
    size = Size(
        records=count,
        columns=len(TableEncoder(nominal).bounds[0]),
        classes=max(2, len(target.classes)) if target is not None and target.kind == "label" else 2,
        people=groups is not None,
        exact=not (learner is not None and learner.names),
    )
    return outlined(model, size, before=before), learner


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
        "row_norm": math.sqrt(len(schema.columns)),
        "records": records,
    }
    target = schema.target
    if target is not None and target.kind == "label":
        return LogisticRegression(budget.epsilon, budget.delta, classes=list(range(len(target.classes))), **common)
    if target is not None and target.kind == "count":
        return PoissonRegressor(budget.epsilon, budget.delta, target_range=ends_of(target), **common)
    return LinearRegression(budget.epsilon, budget.delta, target_range=number_ends(target), **common)  # type: ignore[arg-type]
