"""A fitted model in one table: coefficients by name, what was learnt on the way, and the guarantee."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from privet import _html
from privet.estimators.constant_model import is_point
from privet.plan import Plan
from privet.privacy import Guarantee

_LEVEL = 0.95
_SHOWN = 12  # names in a sentence


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Summary:
    """A fitted model for people to read: prints as a table, and is one in a notebook. All of it was released.

    `head` names the columns of `rows`, a row for each coefficient; `notes` says what they are of and what else was
    learnt.

    Examples
    --------
    >>> from privet.estimators import LinearRegression
    >>> X, y = [[0.0], [1.0]] * 2000, [0, 1] * 2000
    >>> model = LinearRegression(epsilon=1, bounds=(0, 1), target_range=(0, 1)).fit(X, y)
    >>> print(model.summary())
    LinearRegression of 4,000 records
                   coef  range
    x0             ...  0 to 1
    (intercept)    ...
    Coefficients are in units of the target, for one unit of the feature.
    The target is from 0 to 1, as declared.
    Ranges of features are as declared.
    Guarantee: ε = 1, δ = 1e-06, replace one, ... of Gaussian noise; .details for all of it
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    guarantee: Guarantee

    def __str__(self) -> str:
        table = [self.head, *self.rows]
        widths = [max(len(row[place]) for row in table) for place in range(len(self.head))]
        lines = [
            "  ".join(
                f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join([self.title, *lines, *self.notes, f"Guarantee: {self.guarantee}"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        shown = _html.table(self.rows, head=self.head, title=self.title)
        return shown + "".join(map(_html.line, self.notes)) + self.guarantee._repr_html_()


class Speaking:
    """What a fitted estimator says of itself: a summary, and the same below scikit-learn's diagram in a notebook."""

    def summary(self) -> Summary:
        """Coefficients by name and in the data's units, with standard errors where `inference` bought them; what was
        learnt; the guarantee. All of it was released by the fit, so that looking costs nothing.
        """
        return summarised(self)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._spoken()  # type: ignore[misc]  # scikit-learn's

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]  # scikit-learn's
        if "text/html" in found and self._spoken() not in found["text/html"]:
            found["text/html"] += self._spoken()
        return found

    def _spoken(self) -> str:
        return self.summary()._repr_html_() if hasattr(self, "guarantee_") else ""


def summarised(
    model: Any,
    *,
    names: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    learnt: Sequence[str] | None = None,
    target: str = "",
    notes: Sequence[str] = (),
) -> Summary:
    """The summary of a fitted linear model; `names` of its features and `labels`, if they are not its own.

    `learnt` names the columns of which something was learnt, where that is known from elsewhere; `target` is that of
    the target.
    """
    check_is_fitted(model)
    coef = np.atleast_2d(model.coef_)
    intercept = np.atleast_1d(model.intercept_) if model.fit_intercept else None
    if names is None:
        names = [str(n) for n in getattr(model, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])]
    classes = [str(label) for label in (getattr(model, "classes_", ()) if labels is None else labels)]
    outputs = [f"coef of {label}" for label in classes] if len(coef) > 1 else ["coef"]
    errors, more = _errors(model)
    columns: list[list[str]] = [[*names, *(["(intercept)"] if intercept is not None else [])]]
    for place in range(len(coef)):
        values = [*coef[place], *([intercept[place]] if intercept is not None else [])]
        columns.append([f"{value:.5g}" for value in values])
    columns += [[*cells, *[""] * (len(columns[0]) - len(cells))] for cells in errors.values()]
    low, high = model.ranges_
    columns.append([f"{a:.5g} to {b:.5g}" for a, b in zip(low, high, strict=True)])
    columns[-1] += [""] * (len(columns[0]) - len(columns[-1]))
    return Summary(
        title=f"{type(model).__name__} of {_who(model.plan_)}",
        head=("", *outputs, *errors, "range"),
        rows=tuple(zip(*columns, strict=True)),
        notes=(*_meaning(model, classes), *_bent(model, names), *more, *_learnt(model, learnt, target), *notes),
        guarantee=model.guarantee_,
    )


def _who(plan: Plan) -> str:
    who = "people" if plan.unit == "person" else "records"
    if plan.records is None:
        return who
    return f"{plan.records:,} {who}" + (" (a public guess)" if plan.neighbours == "add_remove" else "")


def _errors(model: Any) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Columns of standard errors and intervals, if they were bought; or why there are none."""
    if "_uncertainty" not in vars(model):
        return {}, ()
    if model.refusal_:
        return {}, (f"Standard errors: {model.refusal_}",)
    found = model.confidence_intervals(_LEVEL)
    known = [not math.isnan(error) for error in found.standard_error]
    return {
        "std. error": [f"{e:.3g}" if sure else "" for e, sure in zip(found.standard_error, known, strict=True)],
        f"{_LEVEL:g} interval": [
            f"[{a:.4g}, {b:.4g}]" if sure else "not determined"
            for a, b, sure in zip(found.low, found.high, known, strict=True)
        ],
    }, ("Standard errors and intervals count the privacy noise.",)


def _meaning(model: Any, classes: Sequence[str]) -> tuple[str, ...]:
    """What a coefficient is of, by the estimator's kind."""
    unit = "for one unit of the feature"
    if is_classifier(model):
        if len(classes) > 2:
            return (f"Coefficients are of each class's score, {unit}.",)
        what = "log odds" if hasattr(model, "predict_proba") else "score"
        return (f"Coefficients are of the {what} of {classes[1]} against {classes[0]}, {unit}.",)
    if type(model).__name__ == "PoissonRegressor":
        return (f"Coefficients are of the logarithm of the rate, {unit}.",)
    if type(model).__name__ == "QuantileRegressor":
        return (f"Coefficients are of the {model.quantile:g} quantile, in units of the target, {unit}.",)
    return (f"Coefficients are in units of the target, {unit}.",)


def _bent(model: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Which columns count a second time, bent, and by how much: their coefficient alone is not what they do."""
    tails = np.atleast_2d(model.tail_coef_).T
    found = [
        f"{name} by {' / '.join(f'{value:.5g}' for value in values)} for x -> {root}"
        for name, root, values in zip(names, model.transforms_, tails, strict=True)
        if root is not None
    ]
    said = "Columns with long tails count bent as well (tail_coef_), and do what both coefficients do together"
    return (f"{said}: {_listed(found)}.",) if found else ()


def _learnt(model: Any, learnt: Sequence[str] | None, target: str) -> tuple[str, ...]:
    """What else was learnt, or read off, or declared."""
    found: list[str] = []
    if is_classifier(model) and learnt is None:
        how = "as declared" if model.classes is not None else "read off the labels"
        found.append(f"The classes are {_listed([str(label) for label in model.classes_])}, {how}.")
    if hasattr(model, "class_weight_"):
        weights = _listed([f"{label}: {weight:.4g}" for label, weight in model.class_weight_.items()])
        found.append(f"Classes weigh {weights}.")
    if hasattr(model, "target_range_"):
        declared = model.target_range is not None and tuple(map(float, model.target_range)) == model.target_range_
        how = "as declared" if declared and target not in (learnt or ()) else "learnt within the budget"
        low, high = model.target_range_
        alone = is_point(low, high)
        where = f"predicted to be {low:.5g}, whatever the row" if alone else f"from {low:.5g} to {high:.5g}"
        found.append(f"The target is {where}, {how}.")
    if learnt is None:
        inside = "ranges: octaves" in model.plan_.names
        how = "as declared" if model.bounds is not None else "what row_norm leaves"
        if not inside and model.bounds is None and model.row_norm is None:
            how = "not learnt: the model is a constant"
        if inside:
            how = "learnt within the budget" + ("" if model.bounds is None else ", inside those declared")
        found.append(f"Ranges of features are {how}.")
    elif learnt:
        found.append(f"Learnt within the budget: what is known of {_listed(list(learnt))}.")
    return tuple(found)


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
