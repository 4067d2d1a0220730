"""Private quantile regression with scikit-learn's face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.metrics import d2_pinball_score

from privet.estimators.regressors import LinearRegressor
from privet.losses import Loss, SmoothedQuantileLoss


@dataclass(eq=False, repr=False, kw_only=True)
class QuantileRegressor(LinearRegressor):
    """A quantile of the target, the median by default, under one budget.

    The pinball loss has a kink; here it is rounded over `width` of the target's half range, so that descent along the
    inverse Hessian is possible. Where the target's density is about flat over that width, nothing is lost; beside a
    sharp edge, such as that of waiting times at 0, a low quantile comes out lower.

    Promise: `guarantee_` meets (epsilon, delta). A record's gradient is at most max(quantile, 1 − quantile) long by
    nature, so nothing is clipped and no tail of the target, however long, has more influence than that.
    Theorem: `privet.losses.SmoothedQuantileLoss`, `privet.solvers.fixed_hessian_descent`.

    Parameters
    ----------
    quantile : in (0, 1); which quantile of the target to predict
    width : over how much of the target's half range the kink is rounded
    alpha : strength of the penalty (alpha/2)‖θ‖² on the scaled problem; not the l1 penalty of scikit-learn's
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

    def _task(self, loss: Loss) -> Any:
        return "quantile"

    def _loss(self) -> Loss:
        return SmoothedQuantileLoss(level=self.quantile, width=self.width)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the best constant's pinball loss that is explained: scikit-learn's `d2_pinball_score`."""
        return float(d2_pinball_score(y, self.predict(X), sample_weight=sample_weight, alpha=self.quantile))
