"""Models of tables as files: JSON, so that loading one runs no code."""

import json
import math
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from privet.errors import InvalidParameter, RepeatedFit
from privet.estimators.bending import keep_scaling
from privet.estimators.classifiers import LinearSVC, LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.intervals import Uncertainty
from privet.estimators.regressors import HuberRegressor, LinearRegression, QuantileRegressor, Ridge
from privet.estimators.table_estimator import estimator_for
from privet.estimators.table_model import TableModel
from privet.plan import plan_from_json, plan_to_json
from privet.preprocessing import dump_schema, parse_schema
from privet.preprocessing.scaling import scaling_from
from privet.preprocessing.tails import Root
from privet.privacy import Guarantee

_FORMAT = "privet model"
_VERSION, _BENT = 2, 3  # a reader that knows nothing of bent columns must not pass over them
_KINDS: tuple[Any, ...] = (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)


def save_model(model: TableModel, folder: str | Path) -> Path:
    """Write model.json into `folder`; warns if there is another model, which it replaces."""
    check_is_fitted(model)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    fitted = model.estimator_
    known = vars(fitted).get("_uncertainty")
    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": type(fitted).__name__,
        "parameters": {name: value for name, value in model._given.items() if _is_plain(value)},
        "schema": json.loads(dump_schema(model.schema_, form="json")),
        "learnt": list(model.learnt_),
        "usable": model.usable_,
        "coef": np.asarray(fitted.coef_).tolist(),
        "intercept": np.asarray(fitted.intercept_).tolist(),
        "uncertainty": None if known is None else _uncertain(known),
        "steps": fitted.n_iter_,
        "plan": json.loads(plan_to_json(fitted.plan_)),
        "guarantee": _plain(fitted.guarantee_),
    }
    if fitted._scale.roots:
        record["version"], record["tail_coef"] = _BENT, np.asarray(fitted.tail_coef_).tolist()
        record["roots"] = [[column, root.unit] for column, root in fitted._scale.roots]
    path = place / "model.json"
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        warn_of_refit(place, stacklevel=4)
        path.write_text(text, encoding="utf-8")
    return path


def warn_of_refit(folder: Path, *, stacklevel: int = 2) -> None:
    """Warn if a folder holds a model already: who saw both fits saw what both cost. Looks at the name alone."""
    if (folder / "model.json").exists():
        warnings.warn(
            f"Expected a folder without a model, got {str(folder)!r} with one, which is replaced: of two fits on the "
            "same records whoever saw both knows what both cost together, and each guarantee is of one alone. Charge "
            "fits on one table to one account=Account(Budget(...)), which adds them up; or use another folder for "
            "other records.",
            RepeatedFit,
            stacklevel=stacklevel,
        )


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
    ours = isinstance(record, dict) and record.get("format") == _FORMAT
    if not ours or record.get("version") not in (_VERSION, _BENT):
        raise InvalidParameter(
            f"Expected a model of version {_VERSION} or {_BENT}, got something else in {str(path)!r}: it may not mean "
            "the same. Use the version of privet that wrote it."
        )
    schema = parse_schema(json.dumps(record["schema"]), form="json")
    plan = plan_from_json(json.dumps(record["plan"]))
    given = _estimator(record)
    fitted: Any = estimator_for(schema, plan.budget, plan.neighbours, plan.records, given)  # type: ignore[arg-type]
    fitted.plan_, fitted.guarantee_ = plan, _guarantee(record["guarantee"])
    fitted.coef_, fitted.n_iter_ = np.array(record["coef"]), record["steps"]
    _keep_features(fitted, record)
    if is_classifier(fitted):
        fitted.classes_, fitted.intercept_ = np.arange(len(fitted.classes)), np.array(record["intercept"])
    else:
        fitted.intercept_, fitted.target_range_ = float(record["intercept"]), tuple(fitted.target_range)
    if record.get("uncertainty") is not None:
        known = _certain(record["uncertainty"])
        fitted._uncertainty, fitted.refusal_ = known, known.refusal
        fitted.covariance_, fitted.standard_errors_ = known.covariance, np.sqrt(np.diag(known.covariance))
    asked: dict[str, Any] = {"epsilon": plan.budget.epsilon, "delta": plan.budget.delta}  # type: ignore[union-attr]
    asked |= {"neighbours": plan.neighbours, "records": plan.records if plan.neighbours == "add_remove" else None}
    model = TableModel(schema, given, **asked, tails="bend" if "roots" in record else "clip")
    model.schema_, model.estimator_, model._given = schema, fitted, record.get("parameters", {})
    model.guarantee_, model.plan_ = fitted.guarantee_, plan
    model.learnt_, model.usable_ = tuple(record.get("learnt", ())), dict(record.get("usable", {}))
    return model


def _keep_features(fitted: Any, record: dict[str, Any]) -> None:
    """Set what a fitted estimator knows of its features, bent ones included."""
    columns = np.atleast_2d(fitted.coef_).shape[1]
    fitted.n_features_in_ = columns
    roots = tuple((int(place), Root(unit=unit)) for place, unit in record.get("roots", ()))
    if roots:
        behind = np.array(record["tail_coef"])[..., [place for place, _ in roots]]
        fitted.coef_ = np.concatenate([fitted.coef_, behind], axis=-1)
    scaling = scaling_from(fitted.bounds, columns, intercept=bool(fitted.fit_intercept))
    keep_scaling(fitted, scaling.with_roots(roots))


def _estimator(record: dict[str, Any]) -> Any:
    """The estimator of the kind and with the parameters that a file names."""
    kinds = {kind.__name__: kind for kind in _KINDS}
    if record.get("kind") not in kinds:
        raise InvalidParameter(
            f"Expected a model of a kind that this version has, got {record.get('kind')!r}: nothing says how it "
            "predicts. Use the version of privet that wrote it."
        )
    known = kinds[record["kind"]]().get_params()
    return kinds[record["kind"]](**{name: v for name, v in record.get("parameters", {}).items() if name in known})


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _uncertain(known: Uncertainty) -> dict[str, Any]:
    """Covariances for JSON, which has no word for what is not determined."""
    values = {"covariance": known.covariance, "degrees": known.degrees}
    found = {name: [None if math.isnan(v) else v for v in np.ravel(value).tolist()] for name, value in values.items()}
    return {**found, "refusal": known.refusal}


def _certain(record: dict[str, Any]) -> Uncertainty:
    size = len(record["degrees"])
    covariance, degrees = (
        np.array([math.nan if v is None else v for v in record[name]]) for name in ("covariance", "degrees")
    )
    return Uncertainty(covariance=covariance.reshape(size, size), degrees=degrees, refusal=record["refusal"])


def _plain(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee for JSON, which has no word for infinity."""
    record = asdict(guarantee)
    return {name: None if value == math.inf else value for name, value in record.items()}


def _guarantee(record: dict[str, Any]) -> Guarantee:
    known: dict[str, Any] = {name: math.inf if value is None else value for name, value in record.items()}
    return Guarantee(**{**known, "assumptions": tuple(known["assumptions"])})
