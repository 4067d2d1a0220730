"""Private linear regressors with scikit-learn's face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from privet.accounting import Event
from privet.data import vector as as_vector
from privet.errors import InvalidParameter
from privet.estimators.charging import charged
from privet.estimators.defaults import Task
from privet.estimators.intervals import NOTICED, WithIntervals
from privet.estimators.linear import People, PrivateLinearModel, Vector
from privet.losses import HuberLoss, Loss, SquaredLoss
from privet.privacy import Neighbours
from privet.randomness import Random

__all__ = ["HuberRegressor", "LinearRegression", "Ridge"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Posed:
    """A regression on prepared rows: labels for a loss, and the target's unit and origin in terms of its prediction."""

    labels: Vector
    loss: Loss
    unit: float
    origin: float
    ends: tuple[float, float]
    events: tuple[Event, ...] = ()


class LinearRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn ships no types
    """Shared by the regressors; not to be used by itself."""

    target_range: Any
    _task: Task = "regression"
    _learns_range = True  # with the features' ranges, if it is not given

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on scikit-learn's tiny test tables, as privacy must have it
        return tags

    def _loss(self) -> Loss:
        raise NotImplementedError

    @charged
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LinearRegressor:
        """Train on private rows `X`, targets `y` and weights; `guarantee_` says what that promises.

        With `groups`, a private label a row of whose it is, the promise is for a person with all rows.
        """
        table = self._table(X, reset=True)
        target = as_vector(self._given_target(y), table.shape[0])
        given = None if self.target_range is None else _range(self.target_range)
        weights = self._weights(sample_weight, table.shape[0])
        random, people = self._random(), self._people(groups, table.shape[0], weighted=weights is not None)
        last = self._last_step(table, self._loss, plain=weights is None and people is None)
        open_range = given is None and self._learns_range
        scaling, learnt, events = self._scaling(table, target if open_range else None, random, people)
        posed = self._posed(target, given if given is not None else learnt, random, people)
        result = self._fit_linear(
            table,
            posed.labels,
            posed.loss,
            task=self._task,
            weights=weights,
            scaling=scaling,
            also=(*events, *posed.events),
            random=random,
            people=people,
            last=last,
            unit=posed.unit,
            outside=None if last is None else _outside(target, posed.ends),
        )
        coef, intercept = scaling.unscaled(result.coef[:, None])
        self.coef_ = coef[0] * posed.unit
        self.intercept_ = float(intercept[0] * posed.unit + posed.origin)
        self.target_range_ = posed.ends
        known = "the range in `target_range` is public"
        self.guarantee_ = self._stated(
            result.guarantee,
            *(() if given is None else (known,)),
            *(() if weights is None else weights.assumptions),
        )
        self.n_iter_ = result.plan.steps
        return self

    def _posed(self, target: Vector, ends: tuple[float, float] | None, random: Random, people: People = None) -> Posed:
        """The target scaled to [−1, 1]; NaN stays, and empties its record."""
        low, high = ends  # type: ignore[misc]  # given or learnt
        middle, half = low / 2 + high / 2, (high / 2 - low / 2) or 1.0
        with np.errstate(all="ignore"):
            scaled = np.clip((target - middle) / half, -1.0, 1.0)
        return Posed(labels=scaled, loss=self._loss(), unit=half, origin=middle, ends=(float(low), float(high)))

    def predict(self, X: Any) -> Vector:
        """The predicted target, kept within its range."""
        return np.clip(self._predictions(X)[:, 0], *self.target_range_)


class LinearRegression(WithIntervals, LinearRegressor):
    """Least squares under one budget.

    Promise: `guarantee_` meets (epsilon, delta): ranges (if not given), the features' second moment and every gradient
    are paid from it. Theorem: see `privet.solvers.fixed_hessian_descent`; composition is exact.

    Parameters
    ----------
    epsilon, delta, neighbours, bounds, row_norm, fit_intercept, max_iter, solver, most_weight, records, account,
        inference, random_state : as in `LogisticRegression`
    target_range : (low, high), the target's public range; None learns it privately with the features'
    alpha : strength of the penalty (alpha/2)‖θ‖² on the scaled problem

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 2))
    >>> y = X @ [3, -2] + 1
    >>> model = LinearRegression(epsilon=1, bounds=(-1, 1), target_range=(-5, 7)).fit(X, y)
    >>> model.score(X, y) > 0.95, model.guarantee_.epsilon <= 1
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
        target_range: Any = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        max_iter: int | None = None,
        solver: str = "auto",
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
        self.target_range = target_range
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.max_iter = max_iter
        self.solver = solver
        self.most_weight = most_weight
        self.records = records
        self.account = account
        self.inference = inference
        self.random_state = random_state

    def _loss(self) -> Loss:
        return SquaredLoss(factor=1.0)


class Ridge(LinearRegression):
    """Least squares with a penalty; `LinearRegression` with alpha = 0.01.

    Examples
    --------
    >>> from privet.estimators import Ridge
    >>> Ridge(epsilon=1).alpha
    0.01
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        neighbours: Neighbours = "replace_one",
        bounds: Any = None,
        row_norm: float | None = None,
        target_range: Any = None,
        fit_intercept: bool = True,
        alpha: float = 0.01,
        max_iter: int | None = None,
        solver: str = "auto",
        most_weight: float | None = None,
        records: int | None = None,
        account: Any = None,
        inference: float = 0.0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            neighbours=neighbours,
            bounds=bounds,
            row_norm=row_norm,
            target_range=target_range,
            fit_intercept=fit_intercept,
            alpha=alpha,
            max_iter=max_iter,
            solver=solver,
            most_weight=most_weight,
            records=records,
            account=account,
            inference=inference,
            random_state=random_state,
        )


class HuberRegressor(WithIntervals, LinearRegressor):
    """Regression that large residuals move less: quadratic up to `threshold` half ranges of the target, then linear.

    Parameters are those of `LinearRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import HuberRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 1))
    >>> model = HuberRegressor(epsilon=1, bounds=(-1, 1), target_range=(-3, 3)).fit(X, 2 * X[:, 0])
    >>> model.score(X, 2 * X[:, 0]) > 0.95
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        threshold: float = 0.1,
        neighbours: Neighbours = "replace_one",
        bounds: Any = None,
        row_norm: float | None = None,
        target_range: Any = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        max_iter: int | None = None,
        solver: str = "auto",
        most_weight: float | None = None,
        records: int | None = None,
        account: Any = None,
        inference: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.threshold = threshold
        self.neighbours = neighbours
        self.bounds = bounds
        self.row_norm = row_norm
        self.target_range = target_range
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.max_iter = max_iter
        self.solver = solver
        self.most_weight = most_weight
        self.records = records
        self.account = account
        self.inference = inference
        self.random_state = random_state

    def _loss(self) -> Loss:
        return HuberLoss(threshold=self.threshold)


def _range(ends: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidParameter(
            f"Expected target_range=(low, high) with finite numbers, low below high, got {ends!r}: targets are clipped "
            "to it. Pass the target's public range, or None to learn it privately."
        )
    return low, high


def _outside(target: Vector, ends: tuple[float, float]) -> NDArray[np.bool_]:
    """Which targets lie beyond their range by more than rounding; private."""
    middle, half = ends[0] / 2 + ends[1] / 2, (ends[1] / 2 - ends[0] / 2) or 1.0
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(target - middle) > half * (1 + NOTICED))
