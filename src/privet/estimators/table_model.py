"""From a table and its schema to a private model: plan, fit, predict."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privet._progress import task
from privet.arrays import Vector
from privet.data import grouped_by
from privet.data.elsewhere import ElsewhereRows
from privet.engines.files import as_files
from privet.errors import InvalidParameter, SchemaMisfit, SmallEffectiveSample
from privet.estimators.doubts import Doubts
from privet.estimators.pipelines import upstream
from privet.estimators.reading import check_for_files
from privet.estimators.reserving import begun, randomness
from privet.estimators.summary import Speaking, Summary
from privet.estimators.table_estimator import check_given
from privet.estimators.table_files import TableFiles
from privet.estimators.table_outline import (
    TableOutline,
    TableTask,
    check_task,
    checked,
    opened_columns,
    table_outline,
    wide_open,
    with_stand_ins,
)
from privet.estimators.table_summary import summary_of_table
from privet.plan import Plan
from privet.preprocessing import Schema, TableEncoder, Target, read_schema
from privet.preprocessing.encoding import encode_target, feature_names, width_of
from privet.preprocessing.learning import Completed
from privet.preprocessing.tails import Root, Tails
from privet.privacy import Budget, Guarantee, Neighbours
from privet.randomness import Random


@dataclass(eq=False, repr=False)
class TableModel(Speaking, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear model of a table, by its schema; `fit_table` makes one and fits it. scikit-learn's `clone` takes it.

    Parameters are those of `fit_table`, and stay as they were given. Once it is fitted, `schema_` is complete,
    `estimator_` has the coefficients of the encoded features, `guarantee_` and `plan_` are of the fit, `learnt_` names
    the columns of which something was learnt, and `usable_` has noisy counts of the records that the schema can read,
    where they were bought. Of a model that is a constant alone, ranges and names in `schema_` that are neither declared
    nor of a column in `learnt_` are stand-ins, which nothing was asked for.
    """

    schema: Any
    estimator: Any = None
    _: KW_ONLY
    epsilon: float | None = None
    delta: float | None = None
    neighbours: Neighbours = "replace_one"
    records: int | None = None
    groups: str | None = None
    bounds_exact: bool = False
    tails: Tails = "clip"
    count_usable: bool = True
    account: Any = None
    random_state: Any = None

    @property
    def guarantee(self) -> Guarantee:
        """What training promises."""
        return self.guarantee_

    @property
    def plan(self) -> Plan:
        """What training released."""
        return self.plan_

    @property
    def bent(self) -> dict[str, Root]:
        """Columns with a long tail that have a second column, and the map that makes it; public."""
        check_is_fitted(self)
        maps = zip(feature_names(self.schema_), self.estimator_.transforms_, strict=False)  # the constant is no column
        return {name: root for name, root in maps if root is not None}

    def save(self, folder: str | Path) -> Path:
        """Write model.json into `folder`; JSON, so that loading it runs no code. What it says is of the fit."""
        from privet.estimators.model_file import save_model

        return save_model(self, folder)

    def fit(self, table: Any, y: Any = None) -> Self:
        """Train on a private table, as `fit_table` does. The target is one of its columns: leave y out."""
        if y is not None:
            raise InvalidParameter(
                "Expected a table with the target among its columns, got y beside it: the schema names the column. "
                "Leave y out."
            )
        with task():
            return self._fit(table, None)

    def predict(self, table: Any) -> NDArray[Any]:
        """The target of each row, in the table's own terms."""
        encoder = self._encoder()
        return encoder.decode_target(self.estimator_.predict(encoder.features(table)))

    def predict_proba(self, table: Any) -> Vector:
        """The probability of each class of the target, in the schema's order."""
        encoder = self._encoder()
        if not hasattr(self.estimator_, "predict_proba"):
            raise InvalidParameter(
                "Expected a model of labels, got one of numbers, or of scores: it has no classes to be probable. Use "
                "predict."
            )
        return np.asarray(self.estimator_.predict_proba(encoder.features(table)))

    def score(self, table: Any, y: Any = None) -> float:
        """Accuracy for labels, R² for numbers, D² for counts, on rows other than the private ones."""
        encoder, fact = self._encoder(), self.schema_.known_target
        free = fact.kind != "label" and not fact.log  # what was found of its range is of predictions
        target = encode_target(wide_open(fact) if free else fact, table)
        known = np.isfinite(target)
        return float(self.estimator_.score(encoder.features(table)[known], target[known]))

    def summary(self) -> Summary:
        """Coefficients by name, what was learnt of the table, and the guarantee; all of it was released."""
        check_is_fitted(self)
        return summary_of_table(self)

    def _encoder(self) -> TableEncoder:
        check_is_fitted(self)
        return TableEncoder(self.schema_)

    def _task(self) -> TableTask:
        """What is asked, checked on public facts."""
        schema = read_schema(self.schema) if isinstance(self.schema, str | PathLike) else self.schema
        if not isinstance(schema, Schema):
            raise InvalidParameter(
                f"Expected a Schema, or the path of a schema file, got {type(schema).__name__}: nothing else says how "
                "to read the table. Use read_schema(path), or Schema(columns={...})."
            )
        check_given(self.estimator, schema, self.neighbours)
        epsilon, delta = (
            getattr(self.estimator, name, None) if getattr(self, name) is None else getattr(self, name)
            for name in ("epsilon", "delta")
        )
        if epsilon is None or delta is None:
            raise InvalidParameter(
                "Expected epsilon=... and delta=..., or a budget, or an estimator that has them, got none: nothing "
                "says how much may be spent. Pass e.g. epsilon=1, delta=1e-6."
            )
        return TableTask(
            schema=checked(schema, self.groups),
            budget=Budget(epsilon=epsilon, delta=delta),
            neighbours=self.neighbours,
            records=self.records,
            groups=self.groups,
            bounds_exact=self.bounds_exact,
            tails=self.tails,
            count_usable=self.count_usable,
            given=self.estimator,
            draws=self.account is None,
        )

    def _fit(self, table: Any, random: Random | None) -> Self:
        """As `fit`, which warns of what it finds as of its caller's call."""
        task = self._task()
        given, groups, before = task.schema, self.groups, upstream(self.account)
        if self.random_state is not None:
            random = randomness(self.random_state, stacklevel=4)
        check_task(task, table)
        table = _opened(table, task)
        whose = None if groups is None or isinstance(table, TableFiles) else grouped_by(table, groups, hashed=True)
        opened = opened_columns(task, table)
        encoded = _encoded(task.completed(given), table) if opened is None else None
        rows = opened.count if opened is not None else len(encoded[1])  # type: ignore[index]
        count = rows if whose is None else int(whose.max(initial=-1)) + 1
        if count == 0 and self.neighbours != "add_remove":  # where how many there are is private, none must do
            raise InvalidParameter(
                "Expected at least one row, and with groups one that is somebody's, got none: there is nothing to "
                "learn from. Pass rows."
            )
        planned = table_outline(task, count)
        outline, learner = planned.outline, planned.learner
        if outline.little:
            warnings.warn(outline.little, SmallEffectiveSample, stacklevel=3)
        settings = repr(self.get_params(deep=False) | {"account": None})
        kept = table.journal(settings) if isinstance(table, TableFiles) else {}
        meter = begun(outline.plan, random, account=self.account, label="fit_table", **kept)
        learnt = Completed(schema=given if outline.alone is None else with_stand_ins(given), unsure=())
        if learner is not None and opened is not None:
            learnt = learner.run(opened, meter)
        schema = task.completed(learnt.schema)
        outline = replace(outline, roots=_placed(schema, learnt.roots))
        made, target = encoded or _encoded(schema, table)
        people = table.people if isinstance(table, TableFiles) else whose
        usable = planned.usable.run(schema, made, target, meter)
        away = outline.rate < 1 or isinstance(made, ElsewhereRows)
        features = made if away else made.whole()  # where most is learnt from a sample, no copy is needed
        estimator = task.estimator(replace(schema, target=given.target) if task.finds_target else schema)
        doubts = estimator._fit_planned(features, target, groups=people, outline=outline, meter=meter)
        meter.finish()
        schema = replace(schema, target=found_target(given.known_target, estimator)) if task.finds_target else schema
        estimator.guarantee_ = _stated(estimator.guarantee_, given, schema, planned, before)
        self.schema_, self.estimator_, self.usable_ = schema, estimator, usable.counts
        self.guarantee_, self.plan_ = estimator.guarantee_, estimator.plan_
        self.learnt_ = learnt_columns(given, schema) if outline.alone is None else target_alone(given, schema)
        self._given = {} if self.estimator is None else self.estimator.get_params(deep=False)
        features_, goal = feature_names(schema), given.known_target.column
        faint = (goal if column == "y" else features_[int(column[1:])] for column in doubts.faint)
        told = tuple(name for name in faint if learner is None or name not in learner.numbers)  # by columns' names
        unsure = (*((goal,) if "y" in doubts.unsure else ()), *learnt.unsure)
        said = Doubts(unsure=unsure, faint=told).sentence(repr, exact=task.exact or bool(outline.little))
        for sentence, kind in ((usable.sentence(schema), SchemaMisfit), (said, SmallEffectiveSample)):
            if sentence:
                warnings.warn(sentence, kind, stacklevel=3)
        return self


def learnt_columns(given: Schema, found: Schema) -> tuple[str, ...]:
    """The columns of which a complete schema knows what the given one did not say; public, as it was released."""
    names = [name for name, column in found.columns.items() if given.columns[name] != column]
    target = found.target
    return (*names, *((target.column,) if target is not None and target != given.target else ()))


def target_alone(given: Schema, found: Schema) -> tuple[str, ...]:
    """The target's column, if its range was not declared, where no feature was looked at."""
    return () if given.target == found.target else (found.known_target.column,)


def found_target(given: Target, estimator: Any) -> Target:
    """The target with the range that the estimator found, or the declared one; and the estimator within the same."""
    low, high = estimator.target_range_
    if given.known and (low, high) in ((given.low, given.high), estimator._ends):
        return given
    if low == high:  # of a constant
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    if given.kind == "count":
        low, high = 0.0, min(max(1.0, math.ceil(high)), given.high or math.inf)
    estimator.target_range = estimator.target_range_ = (low, high)
    return replace(given, low=low, high=high)


def _stated(
    guarantee: Guarantee, given: Schema, found: Schema, planned: TableOutline, before: tuple[str, ...]
) -> Guarantee:
    """The guarantee with what is assumed of the schema, in place of what the estimator would assume of its bounds."""
    own = tuple(text for text in guarantee.assumptions if not text.startswith(("the ranges in `", "the range in `")))
    said = "what the schema declares is public"
    target, learner = given.known_target, planned.learner
    inside = (learner is not None and learner.inside) or (target.known and target != found.target)
    if planned.outline.alone is not None:
        said += "; of what it leaves open nothing but the target was looked at, within the budget"
    elif learner is not None or target != found.target:
        said += f"; what it leaves open{', and ranges inside,' if inside else ''} was learnt within the budget"
    return replace(guarantee, assumptions=(*own, said, *before))


def _opened(table: Any, task: TableTask) -> Any:
    """The table, or if it is in files, those."""
    files = as_files(table)
    if files is None:
        return table
    if task.given is not None:
        check_for_files(task.given, task.schema.known_target.column, None, task.groups)
    return TableFiles(files, task.schema, task.groups, delta=task.budget.delta if task.counts_rows else None)


def _placed(schema: Schema, roots: Mapping[str, Root]) -> tuple[tuple[int, Root], ...]:
    """Maps of columns by the places of their features."""
    places = np.cumsum([0, *(width_of(column) for column in schema.columns.values())]).tolist()
    return tuple((places[list(schema.columns).index(name)], root) for name, root in roots.items())


def _encoded(schema: Schema, table: Any) -> tuple[Any, Any]:
    if isinstance(table, TableFiles):
        return table.encoded(schema)
    encoder = TableEncoder(schema)
    return encoder.rows(table), encoder.encode_target(table)
