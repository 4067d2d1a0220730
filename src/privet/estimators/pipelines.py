"""What stands before an estimator in a scikit-learn pipeline: seen from inside its fit, as nothing else tells of it."""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from privet._independence import user_supplied
from privet.errors import UnaccountedTransformer


def upstream() -> tuple[str, ...]:
    """What a guarantee must assume of the pipelines that are being fitted around the caller's fit; warns of them.

    scikit-learn hands a pipeline's last step nothing but transformed rows, so this looks for pipelines among the
    callers, once a fit. It sees `Pipeline`, `TransformedTargetRegressor` and what derives from them; not rows that were
    transformed before anything was fitted, nor code that does the same by itself.

    Transformers of privet learn nothing that is not paid for. Those that need no fit are taken at their word.
    """
    before = list(dict.fromkeys(type(step).__name__ for step in _steps(sys._getframe(2)) if _learns(step)))
    if not before:
        return ()
    names = ", ".join(before)
    warnings.warn(
        f"Expected rows as they were collected, or transformed by public facts alone, got rows from {names} in a "
        "scikit-learn pipeline: what it learns from all rows has no noise, so one record may change every row, and the "
        "guarantee does not cover that. Leave it out: privet's estimators scale features themselves, within the "
        "budget; or encode by public facts, with privet.preprocessing.TableEncoder.",
        UnaccountedTransformer,
        stacklevel=3,
    )
    return (f"what {names} learnt in the pipeline before this model is public, which is true only if it saw no record",)


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
