"""Constants by an exact random draw: a quantile, a mean count; pure, any scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from privet.accounting import ExponentialMechanism
from privet.arrays import IntArray, Vector
from privet.data.elsewhere import tallies
from privet.plan import Bounded, Meter, Release
from privet.privacy import sensitivity_factor
from privet.solvers.drawing import exact_choice, exponential_weights
from privet.solvers.exponential import mechanism_epsilon

ONE = 1 << 20  # units of a score that are one record
_OCTAVES, _FINER = 16, 96  # sizes that a quantile may have, below the largest, and points in each octave
_FINE = 64  # and where no ends are declared
_EVEN = 512  # points between the ends
_ZERO = 16.0  # part of an octave that 0 has the odds of, where no ends are declared, one in so many
_END = 0.02  # of the distance between the ends, to which odds do not sink towards them
MOST = 2.0**40  # the largest size where no ends are declared
_LEAST_SIZE = 2.0**-20  # of a quantile there
_LARGER = 0.35  # logarithm of odds that one loses with each octave beyond 1
FARTHEST = 2.0**1015  # to which ends are cut, so that no difference or multiple of them overflows
_LEAST_RATE, _MOST_RATE = -6, 20  # powers of two
_RATES = 16  # points in each octave of rates
_MODERATE = 1.25  # logarithm of odds that a rate loses with each factor of e away from 1
_CAPS, _PLENTY = (3.0, 4.0), 40.0  # counts beyond so many times the rate count as that; the latter from so many nats on


def drawn(name: str, scores: Sequence[int], width: int, meter: Meter, *, dislike: Sequence[float] = ()) -> int:
    """The place that the open release falls on, with probability ∝ exp(−rate · score − dislike), exactly.

    Promise: ExponentialMechanism, if of one record's change to the scores the largest and the least are within `width`.
    `dislike` is public. Theorem: docs/proofs/drawing.md, section 7.
    """
    rate = Fraction(mechanism_epsilon(meter.plan, name)) / width
    extra = [round(Fraction(each) / rate) for each in dislike] or [0] * len(scores)
    weights = exponential_weights([a + b for a, b in zip(scores, extra, strict=True)], rate)
    return int(meter.chosen(name, lambda random: exact_choice(random, weights)))


def draw_release(name: str, of: str, epsilon: float) -> Release:
    """A draw by scores that one record moves by at most 1."""
    bound = Bounded(clip=1.0, how="a record moves the score of a constant by at most 1")
    return Release(name=name, of=of, bound=bound, mechanism=ExponentialMechanism(epsilon=epsilon))


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantileDraw:
    """A quantile of values within public ends: a point with probability ∝ exp(−β |records below it − level · records|).

    Unlike a noisy mean it does not care how wide the ends are: points are as dense, in logarithms, about a usual place
    (`usual_place`) as at the ends, down to 2⁻¹⁶ of the range, and there are some evenly all over the range, for values
    close together elsewhere. Where nothing can be told, half of the odds are with each. Without ends, points are as
    dense in every octave up to 2⁴⁰, and those beyond 1 are disliked the more the larger they are.

    Promise: the release of that name, an exact ExponentialMechanism; values that are NaN count for nothing.
    Theorem: docs/proofs/drawing.md, section 7.

    Examples
    --------
    >>> QuantileDraw(name="location", level=0.5).release(0.1).mechanism
    ExponentialMechanism(epsilon=0.1)
    """

    name: str
    level: float

    def release(self, epsilon: float) -> Release:
        return draw_release(self.name, f"values below a point, of the quantile {self.level:g}, in a draw", epsilon)

    def run(self, values: Vector, ends: tuple[float, float] | None, meter: Meter) -> float:
        """A point within the public `ends`, if there are any; private in, public out."""
        points, dislike = points_anywhere() if ends is None else quantile_points(*ends)
        meter.open(self.name, count=len(values))
        scores, most = quantile_scores(values, points, self.level)
        width = 2 * (ONE if sensitivity_factor(meter.plan.neighbours) == 2 else most)
        return float(points[drawn(self.name, scores, width, meter, dislike=dislike)])


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanDraw:
    """About the mean of counts: a rate t with probability ∝ exp(−β |Σ (min(y, ku) − t)| ÷ ku), u the larger of t and 1.

    With k = 4 where much can be told, else 3, by which more speaks against rates that are too high. Rates far from 1
    are disliked a little, in public: where nothing can be told, one that is far too high is dear.

    Promise: the release of that name, an exact ExponentialMechanism; counts that are NaN count for nothing.
    Theorem: docs/proofs/drawing.md, section 7.

    Examples
    --------
    >>> MeanDraw(name="size of counts").release(0.1).mechanism
    ExponentialMechanism(epsilon=0.1)
    """

    name: str

    def release(self, epsilon: float) -> Release:
        return draw_release(self.name, "counts beside a rate, in a draw", epsilon)

    def run(self, counts: Vector, most: float | None, meter: Meter) -> float:
        """A rate, at most the public `most` if there is one; private in, public out."""
        top = float(_MOST_RATE) if most is None else min(max(math.log2(most), _LEAST_RATE + 1.0), float(_MOST_RATE))
        rates = 2.0 ** np.linspace(_LEAST_RATE, top, math.ceil((top - _LEAST_RATE) * _RATES) + 1)
        meter.open(self.name, count=len(counts))
        worth = mechanism_epsilon(meter.plan, self.name) * meter.plan.count / 2
        cap = _CAPS[worth >= _PLENTY]
        (sums,) = tallies([partial(_mean_sums, rates=rates, cap=cap)], [counts])
        scores = [abs(int(each)) for each in sums]
        dislike = (_MODERATE * np.abs(np.log(rates))).tolist()
        return float(rates[drawn(self.name, scores, 2 * (ONE + 1), meter, dislike=dislike)])


def usual_place(low: float, high: float) -> float:
    """Where values between two ends often are, as far as can be said without any: 0, or their logarithmic mean.

    What is of one sign mostly crowds towards 0: that mean is between the middle of the ends and their geometric mean.

    Examples
    --------
    >>> usual_place(-1.0, 9.0), round(usual_place(1.0, 9.0), 3), round(usual_place(100.0, 102.0), 3)
    (0.0, 3.641, 100.997)
    """
    if low <= 0.0 <= high:
        return 0.0
    octaves = math.log(abs(high)) - math.log(abs(low))
    return min(max((high - low) / octaves, low), high) if octaves else low


def quantile_points(low: float, high: float) -> tuple[Vector, list[float]]:
    """Points of [low, high] and how much each is disliked; public.

    They are dense about the usual place, as many in every octave of the distance from it, and evenly between the ends
    as well. Half of the odds are spread over each, so that where points crowd they do not count by their number. Those
    of the latter sink towards the ends, one half of them, and with the distance from the usual place, the other.
    """
    low, high = np.clip((low, high), -FARTHEST, FARTHEST).tolist()
    place = usual_place(low, high)
    top = max(high - place, place - low)
    sizes = top * 2.0 ** (-np.arange(_OCTAVES * _FINER)[::-1] / _FINER)
    points = np.concatenate([place - sizes, [place], place + sizes, np.linspace(low, high, _EVEN + 1)])
    points = np.unique(points[(points >= low) & (points <= high)])
    if len(points) < 2 or sizes[0] < 2.0**-1000:  # too close together to be told apart by ratios
        return points, [0.0] * len(points)
    gaps = np.gradient(points)
    near = gaps / np.maximum(np.abs(points - place), sizes[0])
    inside = gaps * np.maximum(np.minimum(points - low, high - points) / (high - low), _END)
    about = gaps * np.maximum(1 - np.abs(points - place) / top, _END)
    odds = near / near.sum() + (inside / inside.sum() + about / about.sum()) / 2
    return points, [float(each) for each in np.log(odds.max() / odds)]


def points_anywhere() -> tuple[Vector, list[float]]:
    """Points of every size up to 2⁴⁰, of both signs, and how much each is disliked; public.

    Where next to nothing can be told, a constant that is far too large is dear, and 0 is not: it has the odds of a
    sixteenth of an octave.
    """
    octaves = np.arange(_FINE * math.log2(_LEAST_SIZE), _FINE * math.log2(MOST) + 1) / _FINE
    sizes, dislike = 2.0**octaves, _LARGER * np.maximum(octaves, 0.0) + math.log(_FINE / _ZERO)
    return np.concatenate([-sizes[::-1], [0.0], sizes]), [*dislike[::-1].tolist(), 0.0, *dislike.tolist()]


def quantile_scores(values: Vector, points: Vector, level: float) -> tuple[list[int], int]:
    """|records at or below a point − level · records| in units, and the most that one record is in either sum."""
    ((*below, known),) = tallies([partial(_at_or_below, points=points)], [values])
    part = min(max(round(level * ONE), 0), ONE)
    return [abs(int(each) * ONE - part * int(known)) for each in below], max(part, ONE - part)


def _at_or_below(values: Vector, points: Vector) -> IntArray:
    """How many values are at or below each point, and how many there are; NaN is none."""
    known = np.sort(values[~np.isnan(values)])
    return np.append(np.searchsorted(known, points, side="right"), len(known)).astype(np.int64)


def _mean_sums(counts: Vector, rates: Vector, cap: float) -> IntArray:
    """The sum of all counts' shares of each rate's score; NaN has none."""
    bounded = np.clip(counts[~np.isnan(counts)], 0.0, 2.0**60)
    return np.array([mean_shares(bounded, rate, cap).sum() for rate in rates], dtype=np.int64)


def mean_shares(counts: Vector, rate: float, cap: float = _CAPS[1]) -> IntArray:
    """Each count's share of a rate's score, in units; they are within `ONE` + 1 of each other and of 0."""
    most = cap * max(rate, 1.0)
    return np.rint((np.minimum(counts, most) - rate) * (ONE / most)).astype(np.int64)
