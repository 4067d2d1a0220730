"""Private linear classifiers with scikit-learn's face."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from privet.accounting import Event
from privet.errors import InvalidParameter
from privet.estimators.charging import charged
from privet.estimators.intervals import WithIntervals
from privet.estimators.linear import PrivateLinearModel, Vector
from privet.estimators.weights import Weights, balanced, class_factors
from privet.losses import CustomLoss, LogisticLoss, Loss, MultinomialLoss, SmoothedHingeLoss
from privet.privacy import Neighbours
from privet.randomness import Random

__all__ = ["LinearSVC", "LogisticRegression"]

_COUNT_SHARE = 0.01  # of the squared signal, spent on how often each class occurs, if that is asked for


class _LinearClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn ships no types
    classes: Any
    class_weight: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's tiny test tables, as privacy must have it
        return tags

    def _loss(self, classes: int) -> Loss:
        raise NotImplementedError

    @charged
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> _LinearClassifier:
        """Train on private rows `X`, labels `y` and weights; `guarantee_` says what that promises.

        With `groups`, a private label a row of whose it is, the promise is for a person with all rows.
        """
        table = self._table(X, reset=True)
        labels = self._given_target(y)
        if len(labels) != table.shape[0]:
            raise InvalidParameter(
                "Expected as many labels as rows, got another number: records and labels would be paired wrongly. "
                "Pass one label a row."
            )
        self.classes_ = self._class_list(labels)
        count = len(self.classes_)
        places = _places(labels, self.classes_)
        given = self._weights(sample_weight, table.shape[0])
        weighted = given is not None or self.class_weight is not None
        random, people = self._random(), self._people(groups, table.shape[0], weighted=weighted)
        loss = self._loss(count)
        last = self._last_step(table, lambda: loss, plain=not weighted and people is None)
        scaling, _, events = self._scaling(table, None, random, people)
        weights, more = self._all_weights(given, places, random)
        result = self._fit_linear(
            table,
            places,
            loss,
            task="several" if loss.outputs > 1 else "binary",
            weights=weights,
            scaling=scaling,
            also=(*events, *more),
            random=random,
            people=people,
            last=last,
        )
        self.coef_, self.intercept_ = scaling.unscaled(result.coef.reshape(len(result.coef), -1))
        declared = self.classes is not None
        self.guarantee_ = self._stated(
            result.guarantee,
            *(() if declared else ("the list of classes, read off the labels, is public",)),
            *(() if weights is None else weights.assumptions),
        )
        self.n_iter_ = result.plan.steps
        return self

    def _all_weights(
        self, given: Weights | None, places: Vector, random: Random
    ) -> tuple[Weights | None, tuple[Event, ...]]:
        """Weights of records times those of their classes, and what was paid to know the latter."""
        if self.class_weight is None:
            return given, ()
        events: tuple[Event, ...] = ()
        extra: tuple[str, ...] = ()
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            factors, event = balanced(
                places,
                len(self.classes_),
                noise_multiplier=self._share_noise(_COUNT_SHARE, len(places)),
                neighbours=self.neighbours,
                random=random,
            )
            events = (event,)
        else:
            factors, extra = (
                class_factors(self.class_weight, self.classes_),
                ("the weights in `class_weight` are public",),
            )
        self.class_weight_ = dict(zip(self.classes_.tolist(), factors.tolist(), strict=True))
        known = np.isfinite(places)
        values = np.where(known, factors[np.where(known, places, 0).astype(int)], np.nan)
        if given is not None:
            values, extra = values * given.values, (*given.assumptions, *extra)
        return Weights(values=values, assumptions=extra), events

    def _class_list(self, labels: NDArray[Any]) -> NDArray[Any]:
        if self.classes is not None:
            listed = np.unique(np.asarray(self.classes))
        else:
            check_classification_targets(labels)
            listed = np.unique(labels)
        if listed.dtype.kind == "f":
            listed = listed[np.isfinite(listed)]
        if len(listed) < 2:
            raise InvalidParameter(
                f"Expected at least two classes, got {len(listed)} class: there is nothing to tell apart. "
                "Pass the public list of all labels as classes=[...]."
            )
        return listed

    def decision_function(self, X: Any) -> Vector:
        """The score of each class; of the second one, if there are two."""
        scores = self._predictions(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


class LogisticRegression(WithIntervals, _LinearClassifier):
    """Logistic regression, binary or multinomial, under one budget.

    Promise: `guarantee_` meets (epsilon, delta): ranges of features (if not given), the features' second moment and
    every gradient are paid from it. No setting needs tuning; `max_iter` and `alpha` are there for who must.
    Theorem: see `privet.solvers.fixed_hessian_descent`; composition is exact.

    Parameters
    ----------
    epsilon, delta : the budget; delta well below 1/n
    neighbours : which two tables must look alike
    bounds : (low, high), the features' public ranges, one number or one a feature each; None learns them privately,
        for a tenth of the budget
    row_norm : in place of `bounds`, a public bound on the norm of a row, e.g. 1 for what a `TableEncoder` makes
    classes : the public list of labels; None reads it off `y`, and the guarantee says that it is taken as public
    fit_intercept : whether to have one
    alpha : strength of the penalty (alpha/2)‖θ‖² on the scaled problem
    max_iter : private gradients to take; chosen if None
    solver : "auto" chooses by public facts; "fixed_hessian", "gradient", "sgd", "newton", "objective" and "output" are
        the solvers of those names. The page on estimators says what each is good for
    class_weight : public weights {label: weight}, or "balanced", which buys noisy class counts for a hundredth of the
        squared signal; `class_weight_` are the weights used, the heaviest class having 1
    most_weight : public bound on `sample_weight`; heavier records count as much as that. None reads it off the weights,
        and the guarantee says that it is taken as public
    records : under "add_remove", a public guess of the number of rows
    account : a `privet.ledger.Account` that every fit is charged to before it begins, clones of the estimator included
    inference : share of the squared signal for standard errors and `confidence_intervals()`; two classes, alpha 0.
        0.5 is a good choice
    random_state : leave it out. A whole number makes a run repeatable for tests, and **voids the guarantee**

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 3))
    >>> y = np.where(X @ [3, -2, 0] > 0, "yes", "no")
    >>> model = LogisticRegression(epsilon=1, bounds=(-1, 1), classes=["no", "yes"]).fit(X, y)
    >>> model.score(X, y) > 0.9, model.guarantee_.epsilon <= 1
    (True, True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        neighbours: Neighbours = "replace_one",
        bounds: Any = None,
        row_norm: float | None = None,
        classes: Any = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        max_iter: int | None = None,
        solver: str = "auto",
        class_weight: Any = None,
        most_weight: float | None = None,
        records: int | None = None,
        account: Any = None,
        inference: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.bounds = bounds
        self.row_norm = row_norm
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.max_iter = max_iter
        self.solver = solver
        self.class_weight = class_weight
        self.most_weight = most_weight
        self.records = records
        self.account = account
        self.inference = inference
        self.random_state = random_state

    def _loss(self, classes: int) -> Loss:
        return LogisticLoss(labels="zero_one") if classes == 2 else MultinomialLoss(classes=classes)

    def predict_proba(self, X: Any) -> Vector:
        """Probabilities of the classes, in the order of `classes_`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            second = expit(scores)
            return np.column_stack([1 - second, second])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> Vector:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class LinearSVC(_LinearClassifier):
    """A linear support vector machine by the smoothed hinge loss; several classes are one against the rest, jointly.

    Promise and parameters are those of `LogisticRegression`; `width` is how much of the hinge is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import LinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 3))
    >>> y = X @ [3, -2, 0] > 0
    >>> LinearSVC(epsilon=1, bounds=(-1, 1)).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        width: float = 1.0,
        neighbours: Neighbours = "replace_one",
        bounds: Any = None,
        row_norm: float | None = None,
        classes: Any = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        max_iter: int | None = None,
        solver: str = "auto",
        class_weight: Any = None,
        most_weight: float | None = None,
        records: int | None = None,
        account: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.width = width
        self.neighbours = neighbours
        self.bounds = bounds
        self.row_norm = row_norm
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.max_iter = max_iter
        self.solver = solver
        self.class_weight = class_weight
        self.most_weight = most_weight
        self.records = records
        self.account = account
        self.random_state = random_state

    def _loss(self, classes: int) -> Loss:
        return _hinges(SmoothedHingeLoss(width=self.width), classes)


def _hinges(hinge: SmoothedHingeLoss, classes: int) -> Loss:
    """The hinge, which wants labels ±1, for labels 0 and 1; for more, the sum of each class's against the rest.

    As each prediction has its own hinge, the curvature is at most one hinge's, and the slope √classes times one's.
    """

    def signs(y: Any) -> Any:
        places = np.asarray(y, dtype=np.float64)
        return 2 * places - 1 if classes == 2 else np.where(places[:, None] == np.arange(classes), 1.0, -1.0)

    def value(z: Any, y: Any) -> Any:
        losses = hinge.value(z, signs(y))
        return losses if classes == 2 else losses.sum(axis=1)

    def curvature(z: Any, y: Any) -> Any:
        bends = hinge.curvature(z, signs(y))
        return bends if classes == 2 else bends.max(axis=1)

    outputs = 1 if classes == 2 else classes
    return CustomLoss(
        value=value,
        derivative=lambda z, y: hinge.derivative(z, signs(y)),
        curvature=curvature,
        lipschitz_constant=math.sqrt(outputs),
        smoothness_constant=hinge.smoothness(),
        convex=True,
        label_set=lambda y: np.isin(y, np.arange(classes)),
        outputs=outputs,
    )


def _places(labels: NDArray[Any], classes: NDArray[Any]) -> Vector:
    """Each label's place in the list; NaN for one that is not in it, which empties its record."""
    if labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        near = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
        return np.where(classes[near] == labels, near, np.nan)
    known = {label: float(place) for place, label in enumerate(classes.tolist())}
    return np.array([_place(known, label) for label in labels.tolist()], dtype=np.float64)


def _place(known: dict[Any, float], label: Any) -> float:
    try:
        return known.get(label, math.nan)
    except TypeError:  # a list, say: no label either, and an error would tell that there is one
        return math.nan
