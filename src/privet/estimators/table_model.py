"""From a table and its schema to a model that is data, not code: fit, predict, save, load."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event, Gaussian, calibrate, from_json, to_json
from privet.data import grouped_by
from privet.errors import InvalidParameter
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.regressors import LinearRegression
from privet.plan import check_budget
from privet.preprocessing import Schema, SchemaPlan, TableEncoder, dump_schema, parse_schema
from privet.preprocessing.encoding import ends_of
from privet.privacy import Budget, Guarantee, Neighbours
from privet.randomness import Random, system_random

__all__ = ["TableModel", "fit_table", "load_model"]

_LEARNING_SHARE = 0.1  # of the squared signal, for what the schema leaves open
_MOST_NOISE = 2.0**16
_FORMAT = "privet model"
_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TableModel:
    """A linear model of a table: its schema, its coefficients, and the guarantee under which both were made."""

    schema: Schema
    estimator: LogisticRegression | LinearRegression | PoissonRegressor
    event: Event

    @property
    def guarantee(self) -> Guarantee:
        """What training promises."""
        return self.estimator.guarantee_

    def predict(self, table: Any) -> NDArray[Any]:
        """The target of each row, in the table's own terms."""
        encoder = TableEncoder(self.schema)
        return encoder.decode_target(self.estimator.predict(encoder.transform(table)))

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """The probability of each class of the target, in the schema's order."""
        if not isinstance(self.estimator, LogisticRegression):
            raise InvalidParameter(
                "Expected a model of labels, got one of numbers: it has no classes to be probable. Use predict."
            )
        return self.estimator.predict_proba(TableEncoder(self.schema).transform(table))

    def score(self, table: Any) -> float:
        """Accuracy for labels, R² for numbers, D² for counts, on rows other than the private ones."""
        encoder = TableEncoder(self.schema)
        target = encoder.encode_target(table)
        known = np.isfinite(target)
        return float(self.estimator.score(encoder.transform(table)[known], target[known]))

    def save(self, folder: str | Path) -> Path:
        """Write model.json into `folder`; JSON, so that loading it runs no code."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        fitted = self.estimator
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": type(fitted).__name__,
            "schema": json.loads(dump_schema(self.schema, form="json")),
            "parameters": {"epsilon": fitted.epsilon, "delta": fitted.delta, "neighbours": fitted.neighbours},
            "coef": np.asarray(fitted.coef_).tolist(),
            "intercept": np.asarray(fitted.intercept_).tolist(),
            "steps": fitted.n_iter_,
            "event": json.loads(to_json(self.event)),
            "guarantee": _plain(fitted.guarantee_),
        }
        (place / "model.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        return place / "model.json"


def fit_table(
    table: Any,
    schema: Schema,
    *,
    budget: Budget,
    neighbours: Neighbours = "replace_one",
    records: int | None = None,
    groups: str | None = None,
    random: Random | None = None,
) -> TableModel:
    """Train a linear model on a private table, all of it out of one budget.

    What the schema leaves open, ranges and code books, is learnt privately for a tenth of the signal. A target of
    labels gets logistic regression, one of numbers least squares, one of counts Poisson regression.

    Promise: the guarantee covers everything that was learnt and meets `budget`.

    Parameters
    ----------
    table : a data frame, dict of columns, list of dicts, or path of a CSV file; private
    schema : the public facts, with a target
    budget, neighbours : what the model shall satisfy
    records : under "add_remove", a public guess of the number of rows, or of people
    groups : the column that says whose row it is, which is then no feature; the guarantee is for a person with all rows
    random : the system's, unless for a test; a fixed seed voids the guarantee

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.preprocessing import Category, Number, Target
    >>> table = {"age": [20, 60] * 2000, "job": ["baker", "smith"] * 2000, "ill": ["no", "yes"] * 2000}
    >>> schema = Schema(columns={"age": Number(low=0, high=100), "job": Category(values=("baker", "smith"))},
    ...                 target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> model = fit_table(table, schema, budget=Budget(epsilon=1, delta=1e-6))
    >>> model.predict({"age": [25, 70], "job": ["baker", "smith"]}).tolist(), model.guarantee.epsilon <= 1
    (['no', 'yes'], True)
    """
    check_budget(budget)
    if schema.target is None:
        raise InvalidParameter(
            "Expected a schema with a target, got one without: nothing says what to predict. "
            'Write target = { column = "y", kind = "label", values = ["no", "yes"] }.'
        )
    if groups is not None:
        schema = _without(schema, groups)
    random = random if random is not None else system_random()
    also: tuple[Event, ...] = ()
    if schema.unknown:
        learnt = _plan(schema, budget, neighbours, groups).learn(table, delta=budget.delta, random=random)
        schema, also = learnt.schema, (learnt.event,)
    encoder = TableEncoder(schema)
    rows, target = encoder.transform(table), encoder.encode_target(table)
    estimator = _estimator(schema, budget, neighbours, records)
    estimator._paid, estimator._source = also, random
    estimator.fit(rows, target, groups=None if groups is None else grouped_by(table, groups))
    return TableModel(schema=schema, estimator=estimator, event=estimator._event)


def _without(schema: Schema, groups: str) -> Schema:
    """The schema with the column of groups ignored."""
    if schema.target is not None and schema.target.column == groups:
        raise InvalidParameter(
            f"Expected groups to name another column than the target, got {groups!r}: whose row it is cannot be what "
            "is predicted. Name the column of ids."
        )
    columns = {name: column for name, column in schema.columns.items() if name != groups}
    ignored = (*(name for name in schema.ignored if name != groups), groups)
    return replace(schema, columns=columns, ignored=ignored)


def _plan(schema: Schema, budget: Budget, neighbours: Neighbours, groups: str | None) -> SchemaPlan:
    """How the open part of the schema is learnt, for its share of the budget."""
    total = calibrate(
        lambda s: Gaussian(noise_multiplier=s), epsilon=budget.epsilon, delta=budget.delta, neighbours=neighbours
    )
    return SchemaPlan(
        schema=schema,
        neighbours=neighbours,
        threshold_delta=budget.delta / 10,
        groups=groups,
        noise_multiplier=_affordable(max(total / math.sqrt(_LEARNING_SHARE), 2.0**-9)),
    )


def _affordable(noise: float) -> float:
    if noise > _MOST_NOISE:
        raise InvalidParameter(
            "Expected an epsilon from which the open part of the schema can be learnt, got a smaller one: the noise "
            "would drown any table. Use a larger epsilon, or write ranges and values into the schema."
        )
    return noise


def _estimator(schema: Schema, budget: Budget, neighbours: Neighbours, records: int | None) -> Any:
    common: dict[str, Any] = {"neighbours": neighbours, "row_norm": 1.0, "fit_intercept": False, "records": records}
    target = schema.target
    if target is not None and target.kind == "label":
        return LogisticRegression(budget.epsilon, budget.delta, classes=list(range(len(target.classes))), **common)
    if target is not None and target.kind == "count":
        return PoissonRegressor(budget.epsilon, budget.delta, target_range=ends_of(target), **common)
    return LinearRegression(budget.epsilon, budget.delta, target_range=(-1.0, 1.0), **common)


def load_model(folder: str | Path) -> TableModel:
    """Read what `TableModel.save` wrote; no code is run.

    Examples
    --------
    >>> load_model("nowhere")
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected a folder with a model.json in it, got 'nowhere': there is no model. \
Use the folder that `privet fit --out` named.
    """
    path = Path(folder) / "model.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InvalidParameter(
            f"Expected a folder with a model.json in it, got {str(folder)!r}: there is no model. "
            "Use the folder that `privet fit --out` named."
        ) from None
    except ValueError:
        record = {}
    if not isinstance(record, dict) or record.get("format") != _FORMAT or record.get("version") != _VERSION:
        raise InvalidParameter(
            f"Expected a model of version {_VERSION}, got something else in {str(path)!r}: it may not mean the "
            "same. Use the version of privet that wrote it."
        )
    schema = parse_schema(json.dumps(record["schema"]), form="json")
    chosen = record["parameters"]
    fitted = _estimator(
        schema, Budget(epsilon=chosen["epsilon"], delta=chosen["delta"]), chosen["neighbours"], records=None
    )
    fitted.coef_ = np.array(record["coef"])
    columns = np.atleast_2d(fitted.coef_).shape[1]
    fitted.n_features_in_ = columns
    fitted.n_iter_ = record["steps"]
    fitted.ranges_, fitted._middle = (np.full(columns, -1.0), np.full(columns, 1.0)), np.zeros(columns)
    fitted.guarantee_ = _guarantee(record["guarantee"])
    if isinstance(fitted, LogisticRegression):
        fitted.classes_, fitted.intercept_ = np.arange(len(fitted.classes)), np.array(record["intercept"])
    else:
        fitted.intercept_, fitted.target_range_ = float(record["intercept"]), fitted.target_range
    return TableModel(schema=schema, estimator=fitted, event=from_json(json.dumps(record["event"])))


def _plain(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee for JSON, which has no word for infinity."""
    record = asdict(guarantee)
    return {name: None if value == math.inf else value for name, value in record.items()}


def _guarantee(record: dict[str, Any]) -> Guarantee:
    known: dict[str, Any] = {name: math.inf if value is None else value for name, value in record.items()}
    return Guarantee(**{**known, "assumptions": tuple(known["assumptions"])})
