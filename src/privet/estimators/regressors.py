"""Private linear regressors with scikit-learn's face."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils import Tags

from privet.arrays import Vector
from privet.data import vector
from privet.data.cells import Numbers, Reader
from privet.errors import InvalidParameter
from privet.estimators.constant_defaults import ConstantDraw
from privet.estimators.defaults import Task
from privet.estimators.doubts import SCALED
from privet.estimators.intervals import NOTICED, WithIntervals
from privet.estimators.linear import PrivateLinearModel
from privet.estimators.preparing import Posed, Records
from privet.losses import HuberLoss, Loss, SmoothedQuantileLoss, SquaredLoss
from privet.plan import Meter
from privet.preprocessing.scaling import Scaling
from privet.solvers.constant_draws import FARTHEST, QuantileDraw

_FAR = 16.0  # half ranges to which targets are clipped where intervals are asked for


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn ships no types
    """Shared by the regressors; not to be used by itself."""

    target_range: Any = None

    _task: ClassVar[Task] = "regression"
    _learns_target: ClassVar[bool] = True
    _level: ClassVar[float] = 0.5  # the quantile that a constant is
    _power: ClassVar[int] = 2  # of the target's unit that the loss has

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on scikit-learn's tiny test tables, as privacy must have it
        return tags

    def _check(self) -> None:
        super()._check()
        self._ends  # noqa: B018  # refuses a range that is none

    @property
    def _ends(self) -> tuple[float, float] | None:  # type: ignore[override]  # by its parameter
        """The declared range of the target, if there is one."""
        if self.target_range is None:
            return None
        try:
            low, high = (float(end) for end in self.target_range)
        except (TypeError, ValueError):
            low = high = np.nan
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InvalidParameter(
                f"Expected target_range=(low, high) with finite numbers, low below high, got {self.target_range!r}: "
                "targets are clipped to it. Pass the target's public range, or None to learn it privately."
            )
        near = max(low, -FARTHEST), min(high, FARTHEST)
        return near if near[0] < near[1] else (low, high)

    def _target_reader(self) -> Reader:
        return Numbers()

    def _read_target(self, y: Any, rows: int) -> Vector:
        return vector(y, rows)

    def _pose(self, data: Records, learnt: tuple[float, float] | None, meter: Meter) -> Posed:
        """The target scaled to [−1, 1]; NaN stays, and zeroes its record out.

        With intervals next to no target is clipped, as that would bias slopes: no bound rests on it, as gradients are
        clipped by themselves.
        """
        low, high = learnt or self._ends  # type: ignore[misc]  # learnt or given
        middle, half = low / 2 + high / 2, (high / 2 - low / 2) or 1.0
        with np.errstate(all="ignore"):
            away = (data.target - middle) / half
            outside = np.abs(away) > 1 + NOTICED
        most = _FAR if self.inference else 1.0
        return self._posed(
            data,
            labels=np.clip(away, -most, most),
            loss=self._loss(2),
            unit=half,
            origin=middle,
            bend=half ** (2 - self._power),
            ends=(float(low), float(high)),
            outside=outside,
        )

    def _posed(self, data: Records, **known: Any) -> Posed:
        given = self._said_public
        weights = data.weights
        if weights is None:
            return Posed(**known, assumptions=given)
        known["bend"] /= weights.most
        return Posed(**known, weights=weights.values, assumptions=(*given, *weights.assumptions))

    @property
    def _said_public(self) -> tuple[str, ...]:
        return () if self.target_range is None else ("the range in `target_range` is public",)

    def _constant_draw(self, name: str) -> ConstantDraw | None:
        return QuantileDraw(name=name, level=self._level)

    def _draw_constant(self, draw: Any, target: Vector, ends: tuple[float, float] | None, meter: Meter) -> float:
        return float(draw.run(target if ends is None else np.clip(target, *ends), ends, meter))

    def _keep_constant(self, constant: float, columns: int) -> None:
        self.coef_, self.intercept_ = np.zeros(columns), constant
        self.target_range_ = self._ends or (constant, constant)

    def _keep(self, theta: Vector, scaling: Scaling, posed: Posed) -> None:
        coef, intercept = scaling.unscaled(theta)
        self.coef_ = coef[0] * posed.unit
        self.intercept_ = float(intercept[0] * posed.unit + posed.origin)
        low, high = self._ends or posed.ends  # what was found may reach beyond what is declared
        self.target_range_ = max(low, posed.ends[0]), min(high, posed.ends[1])

    def predict(self, X: Any) -> Vector:
        """The predicted target, kept within its range."""
        return np.clip(self._predictions(X)[:, 0], *self.target_range_)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(WithIntervals, LinearRegressor):
    """Least squares under one budget.

    Promise: `guarantee_` meets (epsilon, delta): ranges (if not given), the features' second moments and every gradient
    are covered by it. Theorem: Gaussian releases of bounded sums compose exactly; docs/proofs/whitening.md.

    Parameters
    ----------
    epsilon, delta, neighbours, bounds, row_norm, fit_intercept, max_iter, solver, max_weight, records, account,
        inference, random_state : as in `LogisticRegression`
    target_range : (low, high), the target's public range; None learns it privately with the features'
    alpha : strength of the penalty, as in `LogisticRegression`; a record's loss is half its squared error, so that it
        is the alpha of scikit-learn's `Ridge`

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

    _loyal: ClassVar[bool] = True

    inference: float = 0.0  # type: ignore[misc]  # a parameter here

    @property
    def _draws(self) -> bool:  # type: ignore[override]  # by its parameters
        """Not inside [0, 1] nor [−1, 1], to which somebody has scaled a target, nor inside what is said to be exact."""
        return self._ends is None or not (self._target_exact or self._ends in SCALED)

    def _loss(self, classes: int) -> Loss:
        return SquaredLoss(factor=1.0)


@dataclass(eq=False, repr=False, kw_only=True)
class Ridge(LinearRegression):
    """Least squares with scikit-learn's penalty: ‖y − Xw − b‖² + alpha ‖w‖², in the data's own units.

    `LinearRegression` with alpha = 1, which is little beside hundreds of records unless a column's unit is large.

    Examples
    --------
    >>> from privet.estimators import Ridge
    >>> Ridge(epsilon=1).alpha
    1.0
    """

    alpha: float = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class HuberRegressor(WithIntervals, LinearRegressor):
    """Regression that large residuals move less: quadratic up to `threshold` half ranges of the target, then linear.

    Parameters are those of `LinearRegression`; where it is quadratic, a record's loss is half its squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import HuberRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 1))
    >>> model = HuberRegressor(epsilon=1, bounds=(-1, 1), target_range=(-3, 3)).fit(X, 2 * X[:, 0])
    >>> model.score(X, 2 * X[:, 0]) > 0.95
    True
    """

    _draws: ClassVar[bool] = True

    threshold: float = 0.1
    inference: float = 0.0  # type: ignore[misc]  # a parameter here

    def _loss(self, classes: int) -> Loss:
        return HuberLoss(threshold=self.threshold)


@dataclass(eq=False, repr=False, kw_only=True)
class QuantileRegressor(LinearRegressor):
    """A quantile of the target, the median by default, under one budget.

    The pinball loss has a kink; here it is rounded over `width` of the target's half range, so that descent along the
    inverse Hessian is possible. Where the target's density is about flat over that width, nothing is lost; beside a
    sharp edge, such as that of waiting times at 0, a low quantile comes out lower.

    Promise: `guarantee_` meets (epsilon, delta). A record's gradient is at most max(quantile, 1 − quantile) long by
    nature, so nothing is clipped and no tail of the target, however long, has more influence than that.
    Theorem: `privet.losses.SmoothedQuantileLoss`; docs/proofs/whitening.md.

    Parameters
    ----------
    quantile : in (0, 1); which quantile of the target to predict
    width : over how much of the target's half range the kink is rounded
    alpha : strength of the penalty (alpha/2)‖coef‖² beside the sum of pinball losses in the target's unit; scikit-learn
        has an l1 penalty here
    others : as in `LinearRegression`

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import QuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(8000, 1))
    >>> y = 2 * X[:, 0] + rng.exponential(size=8000)
    >>> model = QuantileRegressor(epsilon=1, quantile=0.9, bounds=(-1, 1), target_range=(-2, 8)).fit(X, y)
    >>> bool(abs((y <= model.predict(X)).mean() - 0.9) < 0.05), model.guarantee_.epsilon <= 1
    (True, True)
    """

    quantile: float = 0.5
    width: float = 0.03

    _task: ClassVar[Task] = "quantile"
    _draws: ClassVar[bool] = True
    _power: ClassVar[int] = 1

    @property
    def _level(self) -> float:  # type: ignore[override]  # by its parameter
        return float(self.quantile)

    def _loss(self, classes: int) -> Loss:
        return SmoothedQuantileLoss(level=self.quantile, width=self.width)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the best constant's pinball loss that is explained: scikit-learn's `d2_pinball_score`."""
        return float(d2_pinball_score(y, self.predict(X), sample_weight=sample_weight, alpha=self.quantile))
