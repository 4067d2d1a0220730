"""Private Poisson regression with scikit-learn's face."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from privet.arrays import IntArray, Vector
from privet.data import one_row_each
from privet.data.elsewhere import tallies
from privet.errors import InvalidParameter
from privet.estimators.constant_defaults import ConstantDraw
from privet.estimators.defaults import Task
from privet.estimators.preparing import Posed, Records
from privet.estimators.regressors import LinearRegressor
from privet.losses import CappedPoissonLoss, Loss
from privet.plan import Histograms, Meter, Release
from privet.solvers.constant_draws import MeanDraw, QuantileDraw

_MEAN_SHARE = 0.03  # of the budget, spent on the size of counts
_LEAST, _MOST = -20, 40  # octaves [2^k, 2^(k+1)) have bins of their own for k in this range; what is smaller is 0
_CERTAIN = 4.5  # an octave is believed at so many standard deviations: noise makes one look so once in 5,000 times
_TIMES = 16.0  # the typical count is the most that a rate may be, where no range is declared
_WIDER = 1.3  # times the standard deviation that counts have, that losses are in units of: residuals are cut at it
_NORMAL = 1.48  # standard deviations that half of all are within, inverted
_SIZES = "size of counts"
_SPREAD = QuantileDraw(name="spread of counts", level=0.5)  # how far half of them are from the mean, in units of it
_FAR = 2.0**60  # beyond which no count tells more
_AWAY, _SPREAD_PART = (2.0**-8, 4.0), 0.25  # between what that is, and the part of a draw of sizes that is for it


@dataclass(eq=False, repr=False, kw_only=True)
class PoissonRegressor(LinearRegressor):
    """Counts, whose mean is exp(x·coef + intercept), under one budget.

    The Poisson loss bends without bound, so rates are capped at the end of the target's range, which no rate exceeds if
    no count does. Counts are measured in units of their typical size, which is learnt privately for 3 % of the
    budget, and the range with it, if that is not given. What a long tail of counts may do is clipped: the less, the
    more records and budget there are.

    Promise: `guarantee_` meets (epsilon, delta) and covers all of that. Privacy rests on the clip, not on the cap.
    Theorem: Gaussian releases of bounded sums compose exactly; docs/proofs/whitening.md.

    Parameters
    ----------
    target_range : (low, high), the public range of counts, low at least 0; None learns it privately. What is outside
        counts as the nearest end
    alpha : strength of the penalty (alpha/2)‖coef‖² beside the *sum* of the losses e^z − y z; scikit-learn's alpha,
        which is beside their average, times the number of records
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

    _task: ClassVar[Task] = "counts"
    _learns_target: ClassVar[bool] = False  # `typical_count` does
    _draws: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _loss(self, classes: int) -> Loss:
        return CappedPoissonLoss(max_rate=1.0)  # whose cap is learnt, or in units that are

    @property
    def _ends(self) -> tuple[float, float] | None:  # type: ignore[override]  # by its parameter
        ends = super()._ends
        if ends is not None and ends[0] < 0:
            raise InvalidParameter(
                f"Expected target_range=(low, high) with low at least 0, got {self.target_range!r}: counts are not "
                "negative. Pass e.g. target_range=(0, 100)."
            )
        return ends

    def _own_releases(self, noise: Callable[[float], float], classes: int, draw: float) -> tuple[Release, ...]:
        if draw:
            part = _SPREAD_PART * draw
            return MeanDraw(name=_SIZES).release(math.nextafter(draw - part, 0.0)), _SPREAD.release(part)
        return (count_release(noise(_MEAN_SHARE)),)

    def _pose(self, data: Records, learnt: tuple[float, float] | None, meter: Meter) -> Posed:
        """Counts in units of their typical size; NaN stays, and zeroes its record out."""
        ends = self._ends
        target = data.target if data.people is None else data.target[one_row_each(data.people, meter.random)]
        most = None if ends is None else ends[1]
        if meter.plan[_SIZES].mechanism is None:
            size, spread, top = typical_count(target, meter, most=most)
        else:
            size = MeanDraw(name=_SIZES).run(target, most, meter)
            near = np.clip(target, 0.0, _FAR)  # so that none overflows, which would be told
            half = _SPREAD.run(np.clip(np.abs(near / size - 1), *_AWAY), _AWAY, meter)
            spread, top = min(_WIDER * _NORMAL * half, 1.0), _TIMES * size
        low, high = ends if ends is not None else (0.0, top)
        counts = np.clip(data.target, low, high)
        if not self.fit_intercept:  # nothing could undo a factor: exp(x·coef) must be the count itself
            return self._posed(
                data, labels=counts, loss=CappedPoissonLoss(max_rate=high, unit=size), ends=(low, high), bend=1 / size
            )
        most = high / size
        return self._posed(
            data,
            labels=np.minimum(counts / size, most),
            loss=CappedPoissonLoss(max_rate=most, unit=spread),
            origin=math.log(size),
            bend=1 / (size * spread),
            steep=1 / spread,
            ends=(low, high),
        )

    def _constant_draw(self, name: str) -> ConstantDraw | None:
        return MeanDraw(name=name)

    def _draw_constant(self, draw: Any, target: Vector, ends: tuple[float, float] | None, meter: Meter) -> float:
        return float(draw.run(target, None if ends is None else ends[1], meter))

    def _keep_constant(self, constant: float, columns: int) -> None:
        super()._keep_constant(constant, columns)
        self.intercept_ = math.log(constant)

    def predict(self, X: Any) -> Vector:
        """The predicted mean count, kept within the target's range, and positive."""
        scores = self._predictions(X)[:, 0]
        low, high = self.target_range_
        return np.clip(np.exp(np.minimum(scores, math.log(high))), max(low, high * 2.0**-30), high)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the part of the Poisson deviance that is explained, as scikit-learn's `PoissonRegressor` has it."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


def count_release(noise: float) -> Release:
    """The release that `typical_count` reads, of that noise multiplier."""
    of, size = "counts by their power of two", _MOST - _LEAST + 1
    return Release(name=_SIZES, of=of, bound=Histograms(), noise_multiplier=noise, size=size)


def _by_octave(counts: Vector, most: float) -> IntArray:
    """How many counts there are in each octave; NaN in none."""
    bounded = np.clip(counts, 0.0, most)
    _, exponents = np.frexp(bounded)  # a value of [2^k, 2^(k+1)) has k + 1
    place = np.clip(exponents - _LEAST, 1, _MOST - _LEAST)
    place[bounded < 2.0**_LEAST] = 0
    place[np.isposinf(bounded)] = _MOST - _LEAST
    return np.bincount(place[~np.isnan(bounded)], minlength=_MOST - _LEAST + 1)


def typical_count(counts: Vector, meter: Meter, *, most: float | None) -> tuple[float, float, float]:
    """About the mean of counts, how far they spread in units of it (at most 1), and a bound that few exceed.

    That is `most` if it is given.

    From a noisy histogram of the octaves [2^k, 2^(k+1)); those that do not stand out of the noise are left out, so
    that a long and empty range costs nothing. If none does, counts are taken to be about 1.

    Promise: the meter's next release, as a record is in one bin at most; missing values in none.
    Theorem: docs/proofs/preprocessing.md, section 2.
    """
    meter.open(_SIZES, count=len(counts))
    (bins,) = tallies([partial(_by_octave, most=math.inf if most is None else most)], [counts])
    noisy = meter.noisy_counts(_SIZES, bins)
    tops = np.append(0.0, 2.0 ** np.arange(_LEAST + 1, _MOST + 1))
    believed = (noisy > _CERTAIN * meter.noise_stddev(_SIZES)) & (tops < (math.inf if most is None else 2.0 * most))
    if not believed[1:].any():
        top = 2.0 if most is None else most
        return 0.75 * min(top, 2.0), 1.0, top
    top = float(tops[believed][-1]) if most is None else most
    shares, ends = noisy[believed] / noisy[believed].sum(), tops[believed]
    size = min(float(shares @ (0.75 * ends)), top)
    variance = float(shares @ ((0.75 * ends - size) ** 2 + ends**2 / 48))  # as if even within an octave
    return size, min(_WIDER * math.sqrt(variance) / size, 1.0), top
