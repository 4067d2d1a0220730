"""From a table and its schema to a private model: plan, fit, predict."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.arrays import Vector
from privet.data import grouped_by
from privet.data.elsewhere import ElsewhereRows
from privet.engines.files import as_files
from privet.errors import InvalidParameter, SmallEffectiveSample
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.doubts import Doubts
from privet.estimators.reserving import begun
from privet.estimators.table_files import TableFiles
from privet.estimators.table_outline import checked, estimator_for, opened_columns, table_outline
from privet.plan import Plan
from privet.preprocessing import Schema, SchemaLearner, TableEncoder
from privet.preprocessing.encoding import feature_names
from privet.preprocessing.learning import Completed
from privet.privacy import Budget, Guarantee, Neighbours
from privet.randomness import Random


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
    schema: Schema,
    *,
    records: int,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    groups: str | None = None,
    bounds_exact: bool = False,
) -> Plan:
    """What `fit_table` will release on a table of `records` rows (or people, with `groups`); no table is opened.

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.preprocessing import Number, Target
    >>> schema = Schema(columns={"age": Number()}, target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> plan_table(schema, records=4000, budget=Budget(epsilon=1, delta=1e-6)).names
    ('ranges: octaves', 'ranges: bins', 'norms', 'mean', 'centred norms', 'second moment 1', 'whitened norms 1',
     'second moment 2', 'whitened norms 2', 'gradients', 'calibration')
    """
    return table_outline(checked(schema, groups), records, budget, neighbours, records, groups, bounds_exact)[0].plan


def fit_table(
    table: Any,
    schema: Schema,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    records: int | None = None,
    groups: str | None = None,
    bounds_exact: bool = False,
    account: Any = None,
    random: Random | None = None,
) -> TableModel:
    """Train a linear model on a private table, all of it out of one budget.

    What the schema leaves open, ranges and code books, is learnt privately, for 3 to 25 % of the budget: the less, the
    more records there are. So are ranges inside those that the schema declares, which may thus be wide, where there are
    enough records; `schema` of the model is what was learnt. A target of labels gets logistic regression, one of
    numbers least squares, one of counts Poisson regression: the estimators of those names, with the schema's ranges as
    their `bounds`.

    Promise: the guarantee covers everything that was learnt and meets `budget`; what is released is `plan_table`'s.

    Parameters
    ----------
    table : a data frame, dict of columns or list of dicts; or CSV or Parquet files, by their path or as
        `privet.engines.Files`, which are never in memory whole; private
    schema : the public facts, with a target
    budget, neighbours : what the model shall satisfy
    records : under "add_remove", a public guess of the number of rows, or of people
    groups : the column that says whose row it is, which is then no feature; the guarantee is for a person with all rows
    bounds_exact : whether declared ranges are to be used as they are; else narrower ones may be learnt inside
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
    given = checked(schema, groups)
    table = _opened(table, given, groups)
    whose = None if groups is None or isinstance(table, TableFiles) else grouped_by(table, groups, hashed=True)
    opened = opened_columns(given, table, groups, bounds_exact)
    encoded = _encoded(given, table) if opened is None else None
    rows = opened.count if opened is not None else len(encoded[1])  # type: ignore[index]
    count = rows if whose is None else int(whose.max(initial=-1)) + 1
    if count == 0 and neighbours != "add_remove":  # where how many there are is private, none must do
        raise InvalidParameter(
            "Expected at least one row, and with groups one that is somebody's, got none: there is nothing to learn "
            "from. Pass rows."
        )
    outline, learner = table_outline(given, count, budget, neighbours, records, groups, bounds_exact)
    if outline.little:
        warnings.warn(outline.little, SmallEffectiveSample, stacklevel=2)
    kept = table.journal(repr(bounds_exact)) if isinstance(table, TableFiles) else {}
    meter = begun(outline.plan, random, account=account, label="fit_table", **kept)
    learnt = Completed(schema=given, unsure=())
    if learner is not None and opened is not None:
        learnt = learner.run(opened, meter)
    schema = learnt.schema
    made, target = encoded or _encoded(schema, table)
    away = outline.rate < 1 or isinstance(made, ElsewhereRows)
    features = made if away else made.whole()  # where most is learnt from a sample, no copy is needed
    estimator = estimator_for(schema, budget, neighbours, records)
    people = table.people if isinstance(table, TableFiles) else whose
    doubts = estimator._fit_planned(features, target, groups=people, outline=outline, meter=meter)
    meter.finish()
    estimator.guarantee_ = _stated(estimator.guarantee_, given, learner)
    faint = (feature_names(schema)[int(column[1:])] for column in doubts.faint)  # names of numbers among them
    told = tuple(name for name in faint if learner is None or name not in learner.numbers)
    said = Doubts(unsure=learnt.unsure, faint=told).sentence(repr, exact=bounds_exact or bool(outline.little))
    if said:
        warnings.warn(said, SmallEffectiveSample, stacklevel=2)
    return TableModel(schema=schema, estimator=estimator)


def _stated(guarantee: Guarantee, given: Schema, learner: SchemaLearner | None) -> Guarantee:
    """The guarantee with what is assumed of the schema, in place of what the estimator would assume of its bounds."""
    own = tuple(text for text in guarantee.assumptions if not text.startswith(("the ranges in `", "the range in `")))
    said = "what the schema declares is public"
    if learner is not None:
        said += f"; what it leaves open{', and ranges inside,' if learner.inside else ''} was learnt within the budget"
    return replace(guarantee, assumptions=(*own, said))


def _opened(table: Any, schema: Schema, groups: str | None) -> Any:
    """The table, or if it is in files, those."""
    files = as_files(table)
    return table if files is None else TableFiles(files, schema, groups)


def _encoded(schema: Schema, table: Any) -> tuple[Any, Any]:
    if isinstance(table, TableFiles):
        return table.encoded(schema)
    encoder = TableEncoder(schema)
    return encoder.rows(table), encoder.encode_target(table)
