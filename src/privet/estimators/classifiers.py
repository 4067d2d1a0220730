"""Private linear classifiers with scikit-learn's face."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from privet.arrays import Vector
from privet.data import class_list, labels, places
from privet.data.cells import Reader
from privet.data.classes import class_book
from privet.data.elsewhere import each_alone
from privet.errors import InvalidParameter
from privet.estimators.class_defaults import ClassConstants
from privet.estimators.hinges import hinges
from privet.estimators.intervals import WithIntervals
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.preparing import Posed, Records
from privet.estimators.weights import balanced, class_count_release, class_factors, class_weights
from privet.losses import LogisticLoss, Loss, MultinomialLoss, SmoothedHingeLoss
from privet.plan import Meter, Release
from privet.preprocessing.scaling import Scaling
from privet.preprocessing.whitening import Whitening
from privet.solvers.class_rates import ClassRates
from privet.solvers.score_model import mean_odds

_RARE = 10.0  # standard deviations a column that the rarest class must be for classes to be balanced by weights
_COUNTED = 10.0  # standard deviations from which a noisy count says how rare a class is
_COUNT_SHARE = 0.01  # of the budget, spent on how often each class occurs, if that is asked for


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(ClassifierMixin, ClassConstants, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn ships no types
    """Shared by the classifiers; not to be used by itself."""

    classes: Any = None
    class_weight: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's tiny test tables, as privacy must have it
        return tags

    def _own_releases(self, noise: Callable[[float], float], classes: int, draw: float) -> tuple[Release, ...]:
        own = (class_count_release(classes, noise(_COUNT_SHARE)),) if self._is_balanced else ()
        return own + ((ClassRates(classes=classes, neighbours=self.neighbours).release(draw),) if draw else ())

    @property
    def _is_balanced(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == "balanced"

    @property
    def _weighs_classes(self) -> bool:
        return self.class_weight is not None

    def _class_count(self, given: int | None) -> int:
        if self.classes is not None:
            declared = len(self._class_list(None))
            if given not in (None, declared):
                raise InvalidParameter(
                    f"Expected as many classes as the model declares, {declared}, got {given!r}: the plan would be for "
                    "another model. Leave classes out of plan()."
                )
            return declared
        known = len(vars(self).get("classes_", ())) or None if given is None else given
        if known is None:
            raise InvalidParameter(
                "Expected the public list of classes, got none: how many numbers a fit releases depends on it. Pass "
                "classes=[...] to the model, or their number as classes=... to plan()."
            )
        return known

    def _target_reader(self) -> Reader:
        if self.classes is None:
            raise InvalidParameter(
                "Expected classes=[...], the public list of labels, for a table in files, got none: labels do not come "
                "here to be looked at. Pass the list."
            )
        self.classes_ = self._class_list(None)
        return class_book(self.classes_)

    def _read_target(self, y: Any, rows: int) -> Vector:
        found = labels(y, rows)
        self.classes_ = self._class_list(found)
        return places(found, self.classes_, rows)

    def _class_list(self, found: Any) -> NDArray[Any]:
        """The declared classes, or those that the labels have; sorted."""
        if self.classes is not None:
            listed = class_list(self.classes, name="classes")
        else:
            listed = class_list(found)
            check_classification_targets(listed)
        if len(listed) < 2:
            raise InvalidParameter(
                f"Expected at least two classes, got {len(listed)} class: there is nothing to tell apart. "
                "Pass the public list of all labels as classes=[...]."
            )
        if self._weighs_classes and not self._is_balanced:
            class_factors(self.class_weight, listed)  # refuses what it cannot use before anything is learnt
        return listed

    def _pose(self, data: Records, learnt: tuple[float, float] | None, meter: Meter) -> Posed:
        weights = data.weights
        values: Vector | None = None
        assumptions: tuple[str, ...] = ()
        most, average, shift, unsure = 1.0, 1.0, None, False
        if weights is not None:
            values, assumptions, most = weights.values, weights.assumptions, weights.most
        if self.class_weight is not None:
            if self._is_balanced:
                counted = balanced(data.target, len(self.classes_), meter)
                factors, average = counted.factors, counted.average
                most *= float(np.mean(1 / factors))  # records ÷ (classes × those of the rarest)
                if self._shifts(counted.rarest / math.sqrt(_COUNT_SHARE), data.table.shape[1]):
                    shift, average, most, unsure = np.log(factors), 1.0, 1.0, counted.rarest < _COUNTED
            else:
                factors = class_factors(self.class_weight, self.classes_)
                most *= max(self.class_weight.get(label, 1.0) for label in self.classes_.tolist())
                assumptions = (*assumptions, "the weights in `class_weight` are public")
            self.class_weight_ = dict(zip(self.classes_.tolist(), factors.tolist(), strict=True))
            own = each_alone(class_weights, data.target, factors if shift is None else np.ones_like(factors))
            values = own if values is None else own * values
        loss, stated = self._loss(len(self.classes_)), (*self._said_public, *assumptions)
        found = Posed(labels=data.target, loss=loss, weights=values, bend=1 / most, assumptions=stated)
        rates = self._learnt_rates(data, meter)
        return replace(found, typical_weight=average, shift=shift, shift_unsure=unsure, rates=rates)

    def _shifts(self, rarest: float, columns: int) -> bool:
        """Whether classes are balanced by intercepts after a fit that counts all records alike.

        Of a model of probabilities that is right, weights move intercepts alone, each by the logarithm of its class's.
        Where the rarest class hardly stands out of the noise, with all of the budget, that is far surer than a fit in
        which the other records count for next to nothing.
        """
        return self._calibrates and bool(self.fit_intercept) and not self.inference and rarest < _RARE * columns

    def _keep(self, theta: Vector, scaling: Scaling, posed: Posed) -> None:
        self.coef_, self.intercept_ = scaling.unscaled(theta)
        if posed.shift is not None:
            two, unit = len(posed.shift) == 2, scaling.constant * scaling.shrink
            shift = np.diff(posed.shift) if two else posed.shift
            if two and posed.shift_unsure and isinstance(scaling.whitening, Whitening):
                # by what was learnt with more of the budget than the counts: white scores are as long as coefficients
                shift = np.array([-mean_odds(np.array([np.linalg.norm(theta[:-1]), theta[-1, 0]]) * unit)])
            self.intercept_ = self.intercept_ + shift

    def decision_function(self, X: Any) -> Vector:
        """The score of each class; of the second one, if there are two."""
        scores = self._predictions(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(WithIntervals, LinearClassifier):
    """Logistic regression, binary or multinomial, under one budget.

    Promise: `guarantee_` meets (epsilon, delta): ranges of features (if not given), the features' second moments and
    norms, every gradient and what makes probabilities honest are covered by it. No setting needs tuning; `max_iter` and
    `alpha` are there for who must.
    Theorem: Gaussian releases of bounded sums compose exactly; docs/proofs/whitening.md, docs/proofs/sums.md.

    Parameters
    ----------
    epsilon, delta : the budget; delta well below 1/n
    neighbours : which two tables must look alike
    bounds : (low, high), the features' public ranges, one number or one a feature each: they may be wide, as ranges
        inside are learnt where that pays; None learns them privately, for 3 to 15 % of the budget
    bounds_exact : True uses `bounds` (and a regressor's `target_range`) as they are
    tails : "clip" counts a value beyond its range as the end. "bend" besides gives each column whose learnt octaves
        show a long tail a second one, bent: `transforms_` says how, and `tail_coef_` are their coefficients
    row_norm : in place of `bounds`, a public bound on the norm of a row, e.g. 1 for what a `TableEncoder` makes; beside
        them, of a row whose features are scaled to [-1, 1]
    classes : the public list of labels; None reads it off `y`, and the guarantee says that it is taken as public
    fit_intercept : whether to have one
    alpha : strength of the penalty (alpha/2)‖coef‖², in the data's own units and without the intercept, beside the
        *sum* of the records' losses: scikit-learn's 1/C. It reads no record, and so costs no privacy
    max_iter : private gradients to take; chosen if None
    solver : "auto" chooses by public facts; "fixed_hessian", "gradient", "sgd", "newton", "objective" and "output" are
        the solvers of those names, or a value such as `FixedHessian(clip=0.1)`. The page on estimators says what each
        is good for
    class_weight : public weights {label: weight}, or "balanced", which buys noisy class counts for a hundredth of the
        budget; `class_weight_` are the weights used, the heaviest class having 1. Where a class is so rare that weights
        would leave next to nothing but noise, "balanced" moves the intercepts of a fit without weights by as much
    max_weight : public bound on `sample_weight`; heavier records count as much as that. None reads it off the weights,
        and the guarantee says that it is taken as public
    records : under "add_remove", a public guess of the number of rows
    account : a `privet.ledger.Account` that every fit is charged to before it begins, clones of the estimator included
    inference : share of the budget for standard errors and `confidence_intervals()`; two classes, alpha 0.
        0.5 is a good choice
    random_state : leave it out. A whole number makes a run repeatable for tests, and **invalidates the
        guarantee**

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
    >>> model.plan_ == model.plan(records=4000, columns=3)
    True
    """

    inference: float = 0.0  # type: ignore[misc]  # a parameter here
    _calibrates: ClassVar[bool] = True

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


@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVC(LinearClassifier):
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

    width: float = 1.0

    def _loss(self, classes: int) -> Loss:
        return hinges(SmoothedHingeLoss(width=self.width), classes)
