"""Which estimator a schema's target gets, with the schema's facts; and whether one that is given fits it."""

import math
from collections.abc import Mapping
from typing import Any

from sklearn.base import clone, is_classifier

from privet.data.cells import text_of
from privet.errors import InvalidParameter
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.regressors import LinearRegression
from privet.plan.plan import check_budget
from privet.preprocessing import Schema, TableEncoder
from privet.preprocessing.encoding import number_ends, shares_of
from privet.privacy import Budget, Neighbours

_THE_TABLES = ("bounds", "bounds_exact", "row_norm", "records", "account", "random_state", "classes", "target_range")


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
    else:
        number: type[PrivateLinearModel] = LinearRegression
        if target is not None and target.kind == "count":
            number = PoissonRegressor
        common["target_range"] = number_ends(target) if target is not None and target.known else None
        model = number() if given is None else clone(given)
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
