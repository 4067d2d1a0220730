"""What is being fitted around an estimator: a pipeline, a search. Seen from inside its fit, as nothing else tells."""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any
from weakref import WeakSet

from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection._search import BaseSearchCV  # of which all of scikit-learn's searches are
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from privet._independence import user_supplied
from privet.errors import RepeatedFit, UnaccountedTransformer

_VALIDATION = "sklearn.model_selection._validation"
_OTHERS = ("sklearn", "joblib", "privet")
_ALONE = "other fits on these records, such as those of the search around this one, are not part of it"
_LEARNT = (
    "Expected rows as they were collected, or transformed by public facts alone, got rows from {} in a scikit-learn "
    "pipeline: what it learns from all rows has no noise, so one record may change every row, and the guarantee does "
    "not cover that. Leave it out: privet's estimators scale features themselves, within the budget; or encode by "
    "public facts, with privet.preprocessing.TableEncoder."
)
_REPEATED = (
    "Expected one fit on these records, got one of many, by a search or cross-validation of scikit-learn: each spends "
    "its epsilon anew, guarantee_ is of the last one alone, and no noise covers a choice by scores on private rows. "
    "Use PrivateSearchCV, which pays for all of it once; or pass account=Account(Budget(...)), which adds up the fits, "
    "and score on public rows."
)
_TOLD: dict[type[Warning], WeakSet[Any]] = {UnaccountedTransformer: WeakSet(), RepeatedFit: WeakSet()}


def upstream(account: Any = None) -> tuple[str, ...]:
    """What a guarantee must assume of pipelines and searches that are being fitted around the caller's fit; warns.

    scikit-learn hands a pipeline's last step nothing but transformed rows, and tells a model nothing of a search, so
    this looks for them among the callers, once a fit: by their classes, which are public, and never by values. What it
    finds is there for certain. It sees `Pipeline`, `TransformedTargetRegressor`, scikit-learn's searches and
    cross-validation, also in other processes, and what derives from them; not rows that were transformed before
    anything was fitted, nor code that does the same by itself.

    Transformers of privet learn nothing that is not paid for. Those that need no fit are taken at their word. With an
    account, which adds up what many fits cost, nothing is said of a search.
    """
    frame = sys._getframe(1)
    before = list(dict.fromkeys(type(step).__name__ for step in _steps(frame) if _learns(step)))
    search = _search(frame)
    found: tuple[str, ...] = ()
    if before:
        names = ", ".join(before)
        _warn(_LEARNT.format(names), UnaccountedTransformer, frame, search)
        said = (
            f"what {names} learnt in the pipeline before this model is public, which is true only if it saw no record"
        )
        found += (said,)
    if account is None and search is not None:
        _warn(_REPEATED, RepeatedFit, frame, search)
        found += (_ALONE,)
    return found


def _warn(text: str, kind: type[Warning], frame: FrameType, search: Any) -> None:
    """Warn, of a search once: scikit-learn makes Python forget between its fits what was said."""
    try:
        if search in _TOLD[kind]:
            return
        if search is not None:
            _TOLD[kind].add(search)
    except TypeError:  # something that is no search of scikit-learn's, and has no hash
        pass
    warnings.warn(text, kind, stacklevel=_level(frame) + 1)


def _search(frame: FrameType | None) -> Any:
    """The search that is among the callers, or the model that a cross-validation is of; None if there is neither."""
    found = None
    while frame is not None:
        local = frame.f_locals
        if frame.f_code.co_name == "fit" and isinstance(local.get("self"), BaseSearchCV):
            found = local["self"]
        elif frame.f_globals.get("__name__") == _VALIDATION and "estimator" in local:
            found = local["estimator"]  # at last that of the caller, of which the others are clones
        frame = frame.f_back
    return found


def _level(frame: FrameType | None) -> int:
    """How many calls up somebody else's code is, whom a warning is for, so that it is said once there."""
    level = 2
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in _OTHERS:
        frame, level = frame.f_back, level + 1
    return level


def _steps(frame: FrameType | None) -> Iterator[Any]:
    while frame is not None:
        if frame.f_code.co_name.startswith("fit"):
            owner = frame.f_locals.get("self")
            if isinstance(owner, Pipeline):
                yield from (step for _, step in owner.steps[:-1])
            elif isinstance(owner, TransformedTargetRegressor):
                yield owner.transformer
        frame = frame.f_back


def _learns(step: Any) -> bool:
    if step is None or isinstance(step, str) or not user_supplied(step):  # "passthrough", or ours
        return False
    try:
        return bool(get_tags(step).requires_fit)
    except (AttributeError, ValueError):  # no scikit-learn estimator: nothing is known of it
        return True
