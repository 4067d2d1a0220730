"""What is spent on the constant: alone where there are next to no records, before the slopes where there are few."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import Vector
from privet.data import one_row_each
from privet.estimators.bending import keep_scaling
from privet.estimators.class_defaults import lone_class
from privet.estimators.defaults import Task
from privet.losses import Loss
from privet.plan import Meter, Release
from privet.preprocessing.scaling import given_scaling, scaling_from
from privet.privacy import sensitivity_factor
from privet.solvers.class_choice import ClassVote
from privet.solvers.class_rates import ClassRates
from privet.solvers.constant_draws import IntervalDraw, MeanDraw, QuantileDraw
from privet.solvers.keeping import Keeping
from privet.solvers.mean_residual import MeanResidual
from privet.solvers.settling import Settling

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Outline, Size
    from privet.estimators.preparing import Records

ConstantDraw = MeanDraw | QuantileDraw | ClassRates | ClassVote
CONSTANT = "constant"
# Effective sample size, and that a column, below both of which only the constant is learnt.
_FEW: dict[Task, tuple[float, float]] = {"regression": (35.0, 4.0), "quantile": (35.0, 4.0), "counts": (60.0, 7.0)}
# Effective sample size from which a histogram of targets does better than draws.
_ANCHORED: dict[Task, float] = {"regression": 600.0, "quantile": 300.0, "counts": 300.0}
# And that, and a column's, below both of which a histogram or a declared range does better for squared errors.
_SQUARED = 80.0, 5.0
_ONE_SIDED = 1.43  # times as much, where a record is not replaced
_KEPT = 1_000.0, 150.0  # and that from which all of the slopes are kept, and those of least squares
# What a draw is worth in logarithms of odds, if all records agree; and the most and the least of epsilon for it.
_REACH = (28.0, 0.03, 0.22)
_ANYWHERE = (36.0, 0.03, 0.25)  # of an interval where no range is declared
_LOCATION = (20.0, 0.03, 0.15)
_RATE = (150.0, 0.03, 0.3)
_CHOICE = (20.0, 0.05, 0.2)
_SETTLE: dict[Task, tuple[float, float, float]] = {"regression": (25.0, 0.03, 0.12), "quantile": (50.0, 0.03, 0.2)}
# Effective sample size from which a descent finds the constant as well, to what a record's slope is cut, and the reach.
_SETTLED: dict[Task, tuple[float, float, float]] = {
    "regression": (200.0, 0.15, 20.0),
    "quantile": (2_000.0, 1.0, 2_000.0),
}
# Effective sample sizes between which the mean of residuals settles the constant of squared errors, what part of the
# budget it takes and to what residuals are cut; in halves of the target's range.
_MEAN, _MEAN_SHARE, _MEAN_CLIP = (20.0, 2_000.0), 0.06, 0.28
_MEAN_SCALED = 100.0  # and from which it pays for a target that somebody has scaled, which fills its range
_SPENT = 0.5 / (0.22**2 + 0.15**2 + 0.2**2 + 0.12**2)  # at most, of what sums could have had, on all of them
_ROOM = 1.2  # half the range, in widths of a short interval that holds half
_LEAST = 40.0  # what all of the budget must be worth, in the same logarithms, for an interval to be told
_PARTS = 0.25, 0.6  # of it, at least and at most, on an interval before a constant that is all that is learnt
_ANY = 15.0  # and for a median to be drawn where no range is declared
_TAIL = 8.0  # and of the records beyond a quantile, for it to be drawn in all of a declared range


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """The draw of a constant with all of the budget: first of an interval that it is in, if that is worth its part."""

    draw: ConstantDraw
    reach: IntervalDraw | None = None
    hull: tuple[float, float] | None = None
    beside: float = 1.0
    part: float = 0.5  # of the budget, on the interval

    def releases(self, epsilon: float) -> tuple[Release, ...]:
        """One draw or two, whose epsilons add up to no more."""
        if self.reach is None:
            return (self.draw.release(epsilon),)
        first = self.part * epsilon
        return self.reach.release(first), self.draw.release(math.nextafter(epsilon - first, 0.0))

    def ends(self, target: Vector, meter: Meter) -> tuple[float, float] | None:
        """Between which public ends the constant is to be drawn."""
        return self.hull if self.reach is None else reached(self.reach, target, self.hull, self.beside, meter)


def reached(
    reach: IntervalDraw, target: Vector, hull: tuple[float, float] | None, beside: float, meter: Meter
) -> tuple[float, float]:
    """The interval that is drawn, and so many of its widths on either side, within the declared range."""
    low, high = hull or (-math.inf, math.inf)
    start, end = reach.run(np.clip(target, low, high), hull, meter)
    more = beside * (end - start)
    return max(start - more, low), min(end + more, high)


def _beside(level: float) -> float:
    """How many widths of an interval that holds half a quantile may be beyond it."""
    return max(1.0, 0.4 / _rare(level))


def only_constant(model: "PrivateLinearModel", size: "Size", count: float, effective: float) -> Alone | None:
    """The draw of the constant, if it is all that will be learnt; by public facts."""
    if model.solver != "auto" or not model.fit_intercept or model.inference or size.weighted:
        return None
    if model._task == "binary":
        vote = lone_class(model, size, count)
        return None if vote is None else Alone(draw=vote)
    few, each = _FEW[model._task]
    draw, hull, worth = model._constant_draw(CONSTANT), model._ends, _worth(model, count)
    if draw is None:
        return None
    if not isinstance(draw, QuantileDraw):
        return None if effective >= min(few, each * (size.columns + 1)) else Alone(draw=draw, hull=hull)
    rare = _rare(draw.level)
    if rare * effective >= min(few, each * (size.columns + 1)):
        return None
    told = rare * worth >= _LEAST
    least = (_TAIL if rare < 1 else 0.0) if hull is not None else (_ANY if rare == 1 else math.inf)
    if not told and rare * worth >= least:
        return Alone(draw=draw, hull=hull)
    if hull is None and worth < _LEAST:
        return None
    beside = _beside(draw.level) if told or hull is None else 1.0
    part = min(max((_ANYWHERE if hull is None else _REACH)[0] / worth, _PARTS[0]), _PARTS[1])
    return Alone(draw=draw, reach=IntervalDraw(name="target: reach"), hull=hull, beside=beside, part=part)


def _worth(model: "PrivateLinearModel", count: float) -> float:
    """What a draw with all of the budget is worth in logarithms of odds, if all records agree."""
    return model.epsilon * count / sensitivity_factor(model.neighbours)


def _rare(level: float) -> float:
    """How few records tell how far a quantile is, beside the median: those beyond it."""
    return 2 * min(level, 1 - level)


def draw_epsilon(
    wanted: tuple[float, float, float],
    model: "PrivateLinearModel",
    count: float,
    effective: float,
    rare: float = 1.0,
) -> float:
    """The epsilon of a draw, as much as is wanted within limits, where that part of records tells.

    One of ε costs about what a Gaussian release of μ = ε/2 does, and all of the budget is one of μ = its sensitivity ÷
    noise. So draws never take much more than half of it, however small delta is.
    """
    nats, least, most = wanted
    factor = sensitivity_factor(model.neighbours)
    ratio = model.epsilon * count / (2 * factor * max(effective, 2.0**-20))
    most = min(most, most * math.sqrt(_SPENT) / max(ratio, 2.0**-20))
    return model.epsilon * min(max(nats * factor / (model.epsilon * max(rare * count, 1.0)), least), most)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """Where the target is and how far it spreads, by draws, where a declared range may be far too wide.

    First a short interval with half of the values, whose width says how far they spread, then the location about it.
    The range is then about the location, so that a descent begins with the constant.
    """

    reach: IntervalDraw
    location: QuantileDraw
    epsilons: tuple[float, float]
    hull: tuple[float, float] | None

    def releases(self) -> tuple[Release, ...]:
        """The draws."""
        draws: tuple[IntervalDraw | QuantileDraw, ...] = (self.reach, self.location)
        return tuple(draw.release(epsilon) for draw, epsilon in zip(draws, self.epsilons, strict=True))

    def learn(self, target: Vector, meter: Meter) -> tuple[float, float]:
        """A range with the location in its middle."""
        low, high = self.hull or (-math.inf, math.inf)
        values = np.clip(target, low, high)
        start, end = self.reach.run(values, self.hull, meter)
        more = _beside(self.location.level) * (end - start)
        ends = max(start - more, low), min(end + more, high)
        middle = self.location.run(np.clip(values, *ends), ends, meter)
        half = _ROOM * (end - start)
        return middle - half, middle + half


def anchor_for(model: "PrivateLinearModel", count: float, effective: float, columns: int) -> Anchor | None:
    """How the target's range is learnt, inside a declared one if there is one, where a histogram would drown.

    `columns` with the constant.
    """
    hull = model._ends
    other = model.solver != "auto" or not model.fit_intercept or model.inference or model.bounds_exact
    draw = model._constant_draw("target: location")
    if other or not isinstance(draw, QuantileDraw):
        return None
    rare = _rare(draw.level)
    worth, most = _worth(model, count), _ANCHORED[model._task] * rare
    if sensitivity_factor(model.neighbours) == 1:  # where a histogram is worth less beside sums
        most *= _ONE_SIDED
    few = model._loyal and effective < min(_SQUARED[0], _SQUARED[1] * columns)
    if few or effective >= most or (hull is None and worth < _LEAST):
        return None
    reach = draw_epsilon(_ANYWHERE if hull is None else _REACH, model, count, effective)
    return Anchor(
        reach=IntervalDraw(name="target: reach"),
        location=draw,
        epsilons=(reach, draw_epsilon(_LOCATION, model, count, effective, rare)),
        hull=hull,
    )


def rate_epsilon(model: "PrivateLinearModel", count: float, effective: float) -> float:
    """The epsilon of a draw of the typical count; 0 where there is enough for a histogram."""
    enough = model._task != "counts" or model.solver != "auto" or effective >= _ANCHORED["counts"]
    return 0.0 if enough else draw_epsilon(_RATE, model, count, effective)


def keeping_for(
    model: "PrivateLinearModel", count: float, effective: float, centred: bool, begun: bool
) -> Keeping | None:
    """How it is chosen how much of the coefficients to keep; None where there is enough to keep them all.

    `begun` says that the descent began with a constant worth having.
    """
    if effective >= _KEPT[model._loyal] or not model.fit_intercept or model.solver != "auto":
        return None
    lopsided = model._task in ("counts", "quantile")
    if not centred and not lopsided:
        return None
    epsilon = draw_epsilon(_CHOICE, model, count, effective)
    return Keeping(epsilon=epsilon, whole=begun, lopsided=lopsided)


def settling_for(
    model: "PrivateLinearModel",
    loss: Loss,
    count: float,
    effective: float,
    noise: Callable[[float], float],
    draws: bool,
) -> Settling | MeanResidual | None:
    """How the constant is settled once slopes are found; None where there is enough for a descent to find it.

    `noise` is the noise multiplier of a share of the budget; of squared errors it is no draw, and always done.
    """
    if model._loyal:
        return mean_residual_for(model, effective, noise)
    known = _SETTLED.get(model._task)
    if known is None or not draws or effective >= known[0] or not model.fit_intercept or model.solver != "auto":
        return None
    rare = _rare(model._level) if model._task == "quantile" else 1.0
    epsilon = draw_epsilon(_SETTLE[model._task], model, count, effective, rare)
    clip, reach = min(known[1], loss.lipschitz() or math.inf), min(known[2] / effective, 1.0)
    return Settling(epsilon=epsilon, clip=clip, reach=reach)


def mean_residual_for(
    model: "PrivateLinearModel", effective: float, noise: Callable[[float], float]
) -> MeanResidual | None:
    """How the constant of squared errors is settled once slopes are found; None where little is cut, or all is noise.

    `noise` is the noise multiplier of a share of the budget. The more there is to tell, the less residuals are cut:
    what is cut of a long tail biases their mean, what is not is noise.
    """
    least = _MEAN[0] if model._draws else _MEAN_SCALED
    if not least <= effective < _MEAN[1] or not model.fit_intercept or model.solver != "auto":
        return None
    clip = min(_MEAN_CLIP * math.sqrt(max(effective / 40.0, 1.0)), 1.0)
    return MeanResidual(clip=clip, noise_multiplier=noise(_MEAN_SHARE * (40.0 / effective) ** 0.15))


def few_sentence(effective: float, *, declared: bool) -> str:
    """What to say where only the constant is learnt."""
    wide = " If the declared range is far too wide, even that is a guess: declare a tight one." if declared else ""
    return (
        f"Expected an effective sample size of some dozens, got {effective:.2g}: with this "
        "budget and number of records nothing can be told of the features, so the model is a constant: about the "
        "median, the quantile or the mean count, or the commonest class. Use a larger epsilon, or more "
        f"records.{wide}"
    )


def fit_constant(
    model: "PrivateLinearModel", data: "Records", outline: "Outline", meter: Meter, before: tuple[str, ...]
) -> None:
    """Draw the constant, and keep a model of it alone; no feature is read."""
    alone: Alone = outline.alone  # type: ignore[assignment]  # the caller has seen that it is there
    columns = data.table.shape[1]
    target = data.target if data.people is None else data.target[one_row_each(data.people, meter.random)]
    known = given_scaling(model.bounds, model.row_norm, columns, intercept=True)
    scaling = scaling_from((np.zeros(columns), np.ones(columns)), columns, intercept=True) if known is None else known
    ends = alone.ends(target, meter)
    model._keep_constant(model._draw_constant(alone.draw, target, ends, meter), columns)
    keep_scaling(model, scaling)
    model.guarantee_ = model._stated(meter.guarantee(), (*model._said_public, *before))
    model.plan_, model.n_iter_ = meter.counted, 1
