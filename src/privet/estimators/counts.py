"""Private Poisson regression with scikit-learn's face."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from privet.accounting import Event
from privet.data.people import one_row_each
from privet.errors import InvalidParameter
from privet.estimators.defaults import Task
from privet.estimators.linear import People, Vector
from privet.estimators.regressors import LinearRegressor, Posed
from privet.losses import CappedPoissonLoss
from privet.preprocessing.counts import histogram_reach, noisy_sums, released_with
from privet.privacy import Neighbours
from privet.randomness import Random

__all__ = ["PoissonRegressor", "typical_count"]

_MEAN_SHARE = 0.03  # of the squared signal, spent on the size of counts
_LEAST, _MOST = -20, 40  # octaves [2^k, 2^(k+1)) have bins of their own for k in this range; what is smaller is 0
_CERTAIN = 4.5  # an octave is believed at so many standard deviations: noise makes one look so once in 5,000 times


class PoissonRegressor(LinearRegressor):
    """Counts, whose mean is exp(x·coef + intercept), under one budget.

    The Poisson loss bends without bound, so rates are capped at the end of the target's range, which no rate exceeds if
    no count does. Counts are measured in units of their typical size, which is learnt privately for 3 % of the squared
    signal, and the range with it, if that is not given. What a long tail of counts may do is clipped: the less, the
    more records and budget there are.

    Promise: `guarantee_` meets (epsilon, delta) and covers all of that. Privacy rests on the clip, not on the cap.
    Theorem: see `privet.solvers.fixed_hessian_descent`; composition is exact.

    Parameters
    ----------
    target_range : (low, high), the public range of counts, low at least 0; None learns it privately. What is outside
        counts as the nearest end
    alpha : strength of the penalty (alpha/2)‖θ‖² on the scaled problem, rows of norm at most 1 and counts in units of
        their typical size
    others : as in `LinearRegression`

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(8000, 2))
    >>> y = rng.poisson(np.exp(X @ [1.0, -0.5] + 1))
    >>> model = PoissonRegressor(epsilon=1, bounds=(-1, 1), target_range=(0, 30)).fit(X, y)
    >>> model.score(X, y) > 0.2, model.guarantee_.epsilon <= 1
    (True, True)
    """

    _task: Task = "counts"
    _learns_range = False  # `typical_count` does

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
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _posed(self, target: Vector, ends: tuple[float, float] | None, random: Random, people: People = None) -> Posed:
        """Counts in units of their typical size; NaN stays, and empties its record."""
        if ends is not None and ends[0] < 0:
            raise InvalidParameter(
                f"Expected target_range=(low, high) with low at least 0, got {self.target_range!r}: counts are not "
                "negative. Pass e.g. target_range=(0, 100)."
            )
        learnt_from = target if people is None else target[one_row_each(people, random)]
        size, top, event = typical_count(
            learnt_from,
            most=None if ends is None else ends[1],
            noise_multiplier=self._share_noise(_MEAN_SHARE, len(learnt_from)),
            neighbours=self.neighbours,
            random=random,
        )
        low, high = ends if ends is not None else (0.0, top)
        counts = np.clip(target, low, high)
        if not self.fit_intercept:  # nothing could undo a factor: exp(x·coef) must be the count itself
            loss = CappedPoissonLoss(most=high, unit=size)
            return Posed(labels=counts, loss=loss, unit=1.0, origin=0.0, ends=(low, high), events=(event,))
        most = high / size
        return Posed(
            labels=np.minimum(counts / size, most),
            loss=CappedPoissonLoss(most=most),
            unit=1.0,
            origin=math.log(size),
            ends=(low, high),
            events=(event,),
        )

    def predict(self, X: Any) -> Vector:
        """The predicted mean count, kept within the target's range, and positive."""
        scores = self._predictions(X)[:, 0]
        low, high = self.target_range_
        return np.clip(np.exp(np.minimum(scores, math.log(high))), max(low, high * 2.0**-30), high)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the Poisson deviance that is explained, as scikit-learn's `PoissonRegressor` has it."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


def typical_count(
    counts: Vector, *, most: float | None, noise_multiplier: float, neighbours: Neighbours, random: Random
) -> tuple[float, float, Event]:
    """About the mean of counts, a bound that few exceed (`most` if given), and the event that pays for both.

    From a noisy histogram of the octaves [2^k, 2^(k+1)); those that do not stand out of the noise are left out, so
    that a long and empty range costs nothing. If none does, counts are taken to be about 1.

    Promise: one Gaussian release of `noise_multiplier`, as a record is in one bin at most; missing values in none.
    Theorem: docs/proofs/preprocessing.md, section 2.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_voids_guarantee
    >>> counts = np.array([0.0, 1.0, 2.0, 9.0] * 1000)
    >>> size, top, event = typical_count(counts, most=None, noise_multiplier=20.0, neighbours="zero_out",
    ...                                  random=fixed_seed_voids_guarantee(1))
    >>> 2 < size < 5, top
    (True, 16.0)
    """
    bounded = np.clip(counts, 0.0, math.inf if most is None else most)
    _, exponents = np.frexp(bounded)  # a value of [2^k, 2^(k+1)) has k + 1
    place = np.clip(exponents - _LEAST, 1, _MOST - _LEAST)
    place[bounded < 2.0**_LEAST] = 0
    place[np.isposinf(bounded)] = _MOST - _LEAST
    bins = np.bincount(place[~np.isnan(bounded)], minlength=_MOST - _LEAST + 1)
    release = released_with(noise_multiplier, reach=histogram_reach(1, neighbours), neighbours=neighbours)
    noisy = noisy_sums(bins, unit=1.0, release=release, random=random)
    tops = np.append(0.0, 2.0 ** np.arange(_LEAST + 1, _MOST + 1))
    believed = (noisy > _CERTAIN * release.noise_stddev) & (tops < (math.inf if most is None else 2.0 * most))
    if not believed[1:].any():
        top = 2.0 if most is None else most
        return 0.75 * min(top, 2.0), top, release.event
    top = float(tops[believed][-1]) if most is None else most
    size = float((0.75 * tops)[believed] @ noisy[believed] / noisy[believed].sum())
    return min(size, top), top, release.event
