"""Hyper-parameters chosen privately: a random number of trials, of which the best is released."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags

from privet import accounting
from privet._checks import between
from privet.accounting import Event, Gaussian, calibrate, random_trials
from privet.data import labels, vector
from privet.errors import Interrupted, InvalidParameter, PrivetError, SmallEffectiveSample
from privet.estimators.best_model import BestModel
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.outline import Outline, outlined
from privet.estimators.pipelines import upstream
from privet.estimators.reserving import check_account, randomness, reserve
from privet.estimators.scoring import noisy_score, number_of_trials
from privet.plan import Bounded, Meter, Plan, Release
from privet.plan.plan import check_budget
from privet.privacy import Budget, Guarantee, Neighbours, check_neighbours
from privet.randomness import Random, integers_below, uniforms

_OURS = ("account", "classes", "delta", "epsilon", "neighbours", "random_state", "records", "target_range")
_SEARCH = "search"


@dataclass(eq=False, repr=False)
class PrivateSearchCV(BestModel, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Choose hyper-parameters and fit, all of it under one guarantee: trials, their scores and the choice.

    One trial draws a candidate from the grid, fits it on the rows that are not held out, and scores it on those that
    are, with noise. The number of trials is itself random and secret, and only the best trial is released. With
    ten trials on average, that costs about half as much again as one trial; ten fits cost three and a half times as
    much, and a look at their scores is not even covered by that.

    Promise: `guarantee_` meets (epsilon, delta) for everything that `fit` leaves behind, under all three relations.
    How many trials there were is not told; how long the search took would tell, so do not publish that.
    Theorem: docs/proofs/selection.md (Papernot and Steinke 2022; Liu and Talwar 2019). A record is either trained on or
    held out, by a coin of its own, so that fit and score are charged once, not twice (section 4 there).

    Parameters
    ----------
    estimator : one of the linear models of privet; its own epsilon, delta and neighbours are replaced by those below
    param_grid : {parameter: list of values}, or a list of such; public, and chosen without looking at these rows
    epsilon, delta : the budget of the whole search
    mean_trials : expected number of trials, above 1
    law : of their number: "logarithmic" (cheapest), "geometric" (fewer searches of one trial) or "poisson" (whose
        chance of no trial at all, e^-mean_trials, ends in an error)
    holdout : expected share of rows to score on
    neighbours : which two tables must look alike
    account : an `Account` with filter="renyi" to charge the search to
    random_state : leave it out. A whole number makes a run repeatable for tests, and **invalidates the guarantee**

    Attributes
    ----------
    best_estimator_, best_params_ : the best trial's model, which was fitted on the rows that were not held out
    best_score_ : its noisy score: accuracy, or 1 − mean absolute error in half ranges of the target
    guarantee_ : of the whole search

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import LogisticRegression, PrivateSearchCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(6000, 3))
    >>> y = np.where(X @ [3, -2, 0] > 0, "yes", "no")
    >>> model = LogisticRegression(bounds=(-1, 1), classes=["no", "yes"])
    >>> search = PrivateSearchCV(model, {"alpha": [0.0, 10.0]}, epsilon=1, mean_trials=5).fit(X, y)
    >>> search.score(X, y) > 0.5, search.guarantee_.epsilon <= 1
    (True, True)
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    mean_trials: float = 10.0
    law: str = "logarithmic"
    holdout: float = 0.2
    neighbours: Neighbours = "replace_one"
    account: Any = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.input_tags = inner.regressor_tags, inner.input_tags
        tags.non_deterministic = True
        return tags

    def plan(self, *, records: int | None = None, columns: int | None = None) -> Plan:
        """What the search releases: one choice, whatever the table's size, which trials then share out as they need."""
        budget = check_budget(Budget(epsilon=self.epsilon, delta=self.delta))

        def search(noise: float) -> Event:
            return random_trials(Gaussian(noise_multiplier=noise), mean=self.mean_trials, law=self.law)

        noise = calibrate(search, epsilon=budget.epsilon, delta=budget.delta, neighbours=self.neighbours)
        release = Release(
            name=_SEARCH,
            of="trials: a fit on some records and its score on the others",
            bound=Bounded(clip=1.0, how="each trial is covered by one Gaussian release"),
            noise_multiplier=noise,
            mechanism=search(noise),
        )
        return Plan(releases=(release,), neighbours=self.neighbours, budget=budget)

    def fit(self, X: Any, y: Any) -> "PrivateSearchCV":
        """Search, and keep the best trial's model."""
        candidates, plan, before = self._candidates(), self.plan(), upstream(self.account)
        noise = plan[_SEARCH].noise_multiplier
        model = self._prepared(plan, noise)
        table, target, extra = self._read(model, X, y)
        for candidate in candidates:  # on all rows: what cannot be fitted is refused before it is charged
            self._outlined(model, candidate, table, noise)
        meter = Meter(plan, random=randomness(model.random_state))
        reserve(self.account, plan, f"search over {len(candidates)} candidates", meter.random)
        meter.open(_SEARCH, count=table.shape[0])
        random = meter.draw(_SEARCH)
        held_out = uniforms(random, table.shape[0]) < self.holdout
        parts = (table[~held_out], target[~held_out]), (table[held_out], target[held_out])
        trials = [self._outlined(model, candidate, table[~held_out], noise) for candidate in candidates]
        little = [outline.little for _, outline in trials if outline.little]
        if little:  # on public facts, once: trials keep silent, as one warning each would tell their number
            warnings.warn(little[0], SmallEffectiveSample, stacklevel=2)
        best, best_score, best_params = None, -math.inf, None
        for _ in range(number_of_trials(random, plan[_SEARCH].mechanism)):  # type: ignore[arg-type]  # made by plan
            place = int(integers_below(random, len(candidates), 1)[0])
            trial, score = self._trial(*trials[place], parts, noise, random)
            if best is None or score > best_score:
                best, best_score, best_params = trial, score, candidates[place]
        meter.finish()
        if best is None:
            raise PrivetError(
                "Expected at least one trial, got none, as happens with the law 'poisson' by chance: there is nothing "
                "to release, and the budget is spent all the same. Use law='logarithmic', which always has one."
            )
        return self._keep(best, best_score, best_params, meter, model, (*extra, *before), int(held_out.sum()))

    def _read(self, model: Any, X: Any, y: Any) -> tuple[Any, NDArray[Any], tuple[str, ...]]:
        """Rows and targets, and what is taken as public of them; what scores are measured by is fixed in `model`."""
        check_account(self.account)
        if y is None:
            raise InvalidParameter("Expected targets to score by, got y=None: nothing could be compared. Pass y.")
        table = model._table(X, reset=True)
        target = (labels if is_classifier(model) else vector)(y, table.shape[0])
        return table, target, (*model._assumed(X), *self._take_classes(model, target))

    def _candidates(self) -> list[dict[str, Any]]:
        if not isinstance(self.estimator, PrivateLinearModel):
            raise InvalidParameter(
                f"Expected a linear model of privet, got {type(self.estimator).__name__}: what it releases could not "
                "be accounted for. Encode the table first, and search over e.g. LogisticRegression()."
            )
        if self.estimator.account is not None:
            raise InvalidParameter(
                "Expected an estimator without an account, got one with: trials are not charged one by one. "
                "Pass account=... to the search."
            )
        between("holdout", self.holdout, 0, 1, because="some rows train, others score", use="Use 0.2.")
        check_neighbours(self.neighbours)
        candidates = list(ParameterGrid(self.param_grid))
        fixed = sorted({name for candidate in candidates for name in candidate if name in _OURS})
        if fixed or not candidates:
            raise InvalidParameter(
                f"Expected candidates that differ in what the search may choose, got {fixed or 'none'}: the budget and "
                "what scores are measured by are the same in all trials. Leave those out of param_grid."
            )
        for candidate in candidates:
            clone(self.estimator).set_params(**candidate)  # refuses a name that is not a parameter
        return candidates

    def _prepared(self, plan: Plan, noise: float) -> Any:
        """The estimator, with what one trial may spend: a Gaussian release of `noise`."""
        delta, whole = plan.budget.delta, Gaussian(noise_multiplier=noise)  # type: ignore[union-attr]  # calibrated
        own = accounting.bounds(whole, delta=delta, neighbours=self.neighbours).lower
        model = clone(self.estimator).set_params(
            epsilon=own * (1 - 1e-9), delta=delta, neighbours=self.neighbours, random_state=self.random_state
        )
        guess = model.records  # unused where the number of rows is public
        if guess is not None:
            trained = max(1, round(guess * (1 - self.holdout)))
            model.set_params(records=trained if self.neighbours == "add_remove" else None)
        return model

    def _outlined(self, model: Any, params: dict[str, Any], rows: Any, noise: float) -> tuple[Any, Outline]:
        """One candidate's trial and what it will release; refused if that is not covered by a release of `noise`."""
        trial = clone(model).set_params(**params)
        trial._check()
        outline = outlined(trial, trial._size(rows, rows.shape[0]), draws=False)
        asked: dict[str, Any] = {"delta": self.delta, "neighbours": self.neighbours}
        gaussian = all(release.plain for release in outline.plan.releases)
        whole = Gaussian(noise_multiplier=noise)
        if not gaussian or accounting.epsilon(outline.plan.event, **asked) > accounting.epsilon(whole, **asked):
            raise InvalidParameter(
                "Expected fits that release Gaussian sums of all records, got one that does not: trials would not "
                "have one privacy cost. Use the default solver."
            )
        return trial, outline

    def _take_classes(self, model: Any, target: NDArray[Any]) -> tuple[str, ...]:
        """Fix what scores are measured by, the same in all trials."""
        if is_classifier(model):
            inferred = model.classes is None
            model.set_params(classes=model._class_list(target).tolist())
            return ("the list of classes, read off the labels, is public",) if inferred else ()
        if model.get_params().get("target_range") is None:
            raise InvalidParameter(
                "Expected target_range=(low, high) in the estimator, got none: errors of different trials are compared "
                "in units of it. Pass the target's public range."
            )
        return ()

    def _trial(
        self, model: Any, outline: Outline, parts: tuple[tuple[Any, Any], ...], noise: float, random: Random
    ) -> tuple[Any, float]:
        """One fit and its noisy score. A record is in one of the two parts, so each may spend all of a trial."""
        trial = clone(model)
        meter = Meter(outline.plan, random=random)
        try:
            trial._fit_planned(*parts[0], outline=outline, meter=meter)
        except Interrupted:
            raise KeyboardInterrupt("the search was stopped; its budget is spent, and nothing is released") from None
        meter.finish()
        return trial, noisy_score(trial, *parts[1], noise_multiplier=noise, random=random)

    def _keep(
        self,
        best: Any,
        score: float,
        params: dict[str, Any] | None,
        meter: Meter,
        model: Any,
        extra: tuple[str, ...],
        held_out: int,
    ) -> "PrivateSearchCV":
        count = held_out
        if self.neighbours == "add_remove":  # how many were held out is private there
            count = max(1, round(self.holdout / (1 - self.holdout) * model.records))
        self.plan_ = meter.plan
        self.guarantee_ = meter.stated(self._stated(meter.plan.guarantee(), best, extra))
        best.guarantee_ = self.guarantee_
        names = vars(model).get("feature_names_in_")
        if names is not None:
            best.feature_names_in_ = names
        self.best_estimator_, self.best_params_ = best, params
        self.best_score_ = min(1.0, max(0.0, score / max(count, 1) + 0.5))
        return self

    def _stated(self, guarantee: Guarantee, best: Any, extra: tuple[str, ...]) -> Guarantee:
        inner = tuple(clause for clause in best.guarantee_.assumptions if clause not in guarantee.assumptions)
        more = (
            "the candidates are public",
            "a row is held out by a coin of its own",
            "neither the number of trials nor the time they took is published",
        )
        return replace(guarantee, assumptions=tuple(dict.fromkeys((*guarantee.assumptions, *more, *inner, *extra))))
