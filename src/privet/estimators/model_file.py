"""Models of tables as files: JSON, so that loading one runs no code."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from privet.errors import InvalidParameter
from privet.estimators.bending import keep_scaling
from privet.estimators.classifiers import LogisticRegression
from privet.estimators.table_model import TableModel
from privet.estimators.table_outline import estimator_for
from privet.plan import plan_from_json, plan_to_json
from privet.preprocessing import dump_schema, parse_schema
from privet.preprocessing.scaling import scaling_from
from privet.preprocessing.tails import Root
from privet.privacy import Guarantee

_FORMAT = "privet model"
_VERSION, _BENT = 2, 3  # a reader that knows nothing of bent columns must not pass over them


def save_model(model: TableModel, folder: str | Path) -> Path:
    """Write model.json into `folder`."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    fitted = model.estimator
    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": type(fitted).__name__,
        "schema": json.loads(dump_schema(model.schema, form="json")),
        "coef": np.asarray(fitted.coef_).tolist(),
        "intercept": np.asarray(fitted.intercept_).tolist(),
        "steps": fitted.n_iter_,
        "plan": json.loads(plan_to_json(fitted.plan_)),
        "guarantee": _plain(fitted.guarantee_),
    }
    if fitted._scale.roots:
        record["version"], record["tail_coef"] = _BENT, np.asarray(fitted.tail_coef_).tolist()
        record["roots"] = [[column, root.unit] for column, root in fitted._scale.roots]
    (place / "model.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return place / "model.json"


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
    known = isinstance(record, dict) and record.get("format") == _FORMAT
    if not known or record.get("version") not in (_VERSION, _BENT):
        raise InvalidParameter(
            f"Expected a model of version {_VERSION} or {_BENT}, got something else in {str(path)!r}: it may not mean "
            "the same. Use the version of privet that wrote it."
        )
    schema = parse_schema(json.dumps(record["schema"]), form="json")
    plan = plan_from_json(json.dumps(record["plan"]))
    fitted: Any = estimator_for(schema, plan.budget, plan.neighbours, plan.records)  # type: ignore[arg-type]  # calibrated
    fitted.plan_, fitted.guarantee_ = plan, _guarantee(record["guarantee"])
    fitted.coef_, fitted.n_iter_ = np.array(record["coef"]), record["steps"]
    columns = np.atleast_2d(fitted.coef_).shape[1]
    fitted.n_features_in_ = columns
    roots = tuple((int(place), Root(unit=unit)) for place, unit in record.get("roots", ()))
    if roots:
        behind = np.array(record["tail_coef"])[..., [place for place, _ in roots]]
        fitted.coef_ = np.concatenate([fitted.coef_, behind], axis=-1)
    keep_scaling(fitted, scaling_from(fitted.bounds, columns, intercept=True).with_roots(roots))
    if isinstance(fitted, LogisticRegression):
        fitted.classes_, fitted.intercept_ = np.arange(len(fitted.classes)), np.array(record["intercept"])
    else:
        fitted.intercept_, fitted.target_range_ = float(record["intercept"]), tuple(fitted.target_range)
    return TableModel(schema=schema, estimator=fitted)


def _plain(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee for JSON, which has no word for infinity."""
    record = asdict(guarantee)
    return {name: None if value == math.inf else value for name, value in record.items()}


def _guarantee(record: dict[str, Any]) -> Guarantee:
    known: dict[str, Any] = {name: math.inf if value is None else value for name, value in record.items()}
    return Guarantee(**{**known, "assumptions": tuple(known["assumptions"])})
