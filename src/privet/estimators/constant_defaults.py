"""What is spent on the constant beside slopes, where there are few records: before them, after them, on how many."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import Vector
from privet.estimators.defaults import Task
from privet.losses import Loss
from privet.plan import Meter, Release
from privet.privacy import sensitivity_factor
from privet.solvers.class_choice import ClassVote
from privet.solvers.class_rates import ClassRates
from privet.solvers.constant_draws import MeanDraw, QuantileDraw
from privet.solvers.interval_draws import IntervalDraw, MiddleDraw
from privet.solvers.keeping import Keeping
from privet.solvers.laplace_mean import LaplaceMean
from privet.solvers.mean_residual import MeanResidual
from privet.solvers.settling import Settling

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel

ConstantDraw = LaplaceMean | MeanDraw | MiddleDraw | QuantileDraw | ClassRates | ClassVote
CONSTANT = "constant"
# Effective sample size from which a histogram of targets does better than draws.
_ANCHORED: dict[Task, float] = {"regression": 600.0, "quantile": 300.0, "counts": 300.0}
_ONE_SIDED = 1.43  # times as much, where a record is not replaced
_KEPT = 1_000.0, 150.0  # and that from which all of the slopes are kept, and those of least squares
# What a draw is worth in logarithms of odds, if all records agree; and the most and the least of epsilon for it.
REACH = (28.0, 0.03, 0.22)
ANYWHERE = (36.0, 0.03, 0.25)  # of an interval where no range is declared
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
LEAST = 40.0  # what all of the budget must be worth, in the same logarithms, for an interval to be told


def widths_beside(level: float, worth: float) -> float:
    """How many widths of an interval with most a quantile may be beyond it: few, where little tells how far it is.

    `worth` is what its draw is, in logarithms of odds.
    """
    rare = rare_part(level)
    return min(0.7 + 0.1 * rare * worth, 1.0 + 0.05 / rare)


def worth_of(model: "PrivateLinearModel", count: float) -> float:
    """What a draw with all of the budget is worth in logarithms of odds, if all records agree."""
    return model.epsilon * count / sensitivity_factor(model.neighbours)


def rare_part(level: float) -> float:
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

    First a short interval with most of the values, whose width says how far they spread, then the location about it.
    The range is then about the location, so that a descent begins with the constant.
    """

    reach: IntervalDraw
    location: QuantileDraw
    epsilons: tuple[float, float]
    hull: tuple[float, float] | None
    beside: float = 1.0

    def releases(self) -> tuple[Release, ...]:
        """The draws."""
        draws: tuple[IntervalDraw | QuantileDraw, ...] = (self.reach, self.location)
        return tuple(draw.release(epsilon) for draw, epsilon in zip(draws, self.epsilons, strict=True))

    def learn(self, target: Vector, meter: Meter) -> tuple[float, float]:
        """A range with the location in its middle."""
        low, high = self.hull or (-math.inf, math.inf)
        values = np.clip(target, low, high)
        start, end = self.reach.run(values, self.hull, meter)
        more = self.beside * (end - start)
        ends = max(start - more, low), min(end + more, high)
        middle = self.location.run(np.clip(values, *ends), ends, meter)
        half = _ROOM * (end - start)
        return middle - half, middle + half


def anchor_for(model: "PrivateLinearModel", count: float, effective: float) -> Anchor | None:
    """How the target's range is learnt, inside a declared one if there is one, where a histogram would drown.

    Not for squared errors: a few bins leave more for slopes, and the mean is settled after them.
    """
    hull = model._ends
    other = model.solver != "auto" or not model.fit_intercept or model.inference or model._target_exact or model._loyal
    draw = model._constant_draw("target: location")
    if other or not isinstance(draw, QuantileDraw):
        return None
    rare = rare_part(draw.level)
    worth, most = worth_of(model, count), _ANCHORED[model._task] * rare
    if sensitivity_factor(model.neighbours) == 1:  # where a histogram is worth less beside sums
        most *= _ONE_SIDED
    if effective >= most or (hull is None and worth < LEAST):
        return None
    reach = draw_epsilon(ANYWHERE if hull is None else REACH, model, count, effective)
    place = draw_epsilon(_LOCATION, model, count, effective, rare)
    return Anchor(
        reach=IntervalDraw(name="target: reach"),
        location=draw,
        epsilons=(reach, place),
        hull=hull,
        beside=widths_beside(draw.level, worth * place / model.epsilon),
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
    rare = rare_part(model._level) if model._task == "quantile" else 1.0
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
