"""What is spent on the constant: alone where there are next to no records, before the slopes where there are few."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import Vector
from privet.data import one_row_each
from privet.estimators.class_defaults import lone_class
from privet.estimators.defaults import Task
from privet.plan import Meter, Release
from privet.preprocessing.scaling import given_scaling, scaling_from
from privet.privacy import Neighbours, sensitivity_factor
from privet.solvers.class_choice import ClassVote
from privet.solvers.class_rates import ClassRates
from privet.solvers.constant_draws import MeanDraw, QuantileDraw
from privet.solvers.keeping import Keeping

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Outline, Size
    from privet.estimators.preparing import Records

ConstantDraw = MeanDraw | QuantileDraw | ClassRates | ClassVote
CONSTANT = "constant"
# Effective sample size, and that a column, below both of which only the constant is learnt; a regression is Huber's.
_FEW: dict[Task, tuple[float, float]] = {"regression": (20.0, 2.0), "quantile": (20.0, 2.0), "counts": (36.0, 4.0)}
# Effective sample size from which a histogram of targets does better than draws.
_ANCHORED: dict[Task, float] = {"regression": 70.0, "quantile": 300.0, "counts": 300.0}
_KEPT = 1_000.0  # and that from which all of the slopes are kept
# What a draw is worth in logarithms of odds, if all records agree; and the most and the least of epsilon for it.
_LOCATION = (30.0, 0.03, 0.25)
_RATE = (60.0, 0.03, 0.25)
_SPREAD = (12.0, 0.01, 0.15)
_CHOICE = (30.0, 0.05, 0.25)
_ROOM = 3.3  # half the range, in distances from the location that two thirds are within


def only_constant(model: "PrivateLinearModel", size: "Size", count: float, effective: float) -> ConstantDraw | None:
    """The draw of the constant, if it is all that will be learnt; by public facts."""
    if model.solver != "auto" or not model.fit_intercept or model.inference or size.weighted:
        return None
    if model._task == "binary":
        return lone_class(model, size, count)
    few, each = _FEW[model._task]
    draw = model._constant_draw(CONSTANT)
    rare = _rare(draw.level) if isinstance(draw, QuantileDraw) else 1.0
    enough = rare * effective >= few or rare * effective >= each * (size.columns + 1)
    return None if enough else draw


def _rare(level: float) -> float:
    """How few records tell how far a quantile is, beside the median: those beyond it."""
    return 2 * min(level, 1 - level)


def draw_epsilon(wanted: tuple[float, float, float], epsilon: float, count: float, neighbours: Neighbours) -> float:
    """The epsilon of a draw, as much as is wanted within limits."""
    nats, least, most = wanted
    return epsilon * min(max(nats * sensitivity_factor(neighbours) / (epsilon * max(count, 1.0)), least), most)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """Where the target is and how far it spreads, by two draws, where a declared range may be far too wide.

    The range is then about the location, so that a descent begins with the constant.
    """

    location: QuantileDraw
    spread: QuantileDraw
    epsilons: tuple[float, float]
    hull: tuple[float, float]

    def releases(self) -> tuple[Release, ...]:
        """The two draws."""
        return self.location.release(self.epsilons[0]), self.spread.release(self.epsilons[1])

    def learn(self, target: Vector, meter: Meter) -> tuple[float, float]:
        """A range with the location in its middle."""
        low, high = self.hull
        values = np.clip(target, low, high)
        middle = self.location.run(values, self.hull, meter)
        far = max(middle - low, high - middle)
        half = min(_ROOM * self.spread.run(np.abs(values - middle), (0.0, far), meter), far)
        half = max(half, far * 2.0**-12)
        return middle - half, middle + half


def anchor_for(model: "PrivateLinearModel", count: float, effective: float) -> Anchor | None:
    """How the target's range is learnt inside a declared one where a histogram would drown."""
    hull = model._ends
    other = model.solver != "auto" or not model.fit_intercept or model.inference or model.bounds_exact
    draw = None if hull is None else model._constant_draw("target: location")
    if other or hull is None or not isinstance(draw, QuantileDraw):
        return None
    rare = _rare(draw.level)
    if effective >= _ANCHORED[model._task] * rare:
        return None
    parts = (
        draw_epsilon(_LOCATION, model.epsilon, rare * count, model.neighbours),
        draw_epsilon(_SPREAD, model.epsilon, count, model.neighbours),
    )
    return Anchor(location=draw, spread=QuantileDraw(name="target: spread", level=0.65), epsilons=parts, hull=hull)


def rate_epsilon(model: "PrivateLinearModel", count: float, effective: float) -> float:
    """The epsilon of a draw of the typical count; 0 where there is enough for a histogram."""
    enough = model._task != "counts" or model.solver != "auto" or effective >= _ANCHORED["counts"]
    return 0.0 if enough else draw_epsilon(_RATE, model.epsilon, count, model.neighbours)


def keeping_for(
    model: "PrivateLinearModel", count: float, effective: float, *, centred: bool, begun: bool
) -> Keeping | None:
    """How it is chosen how much of the coefficients to keep; None where there is enough to keep them all.

    `begun` says that the descent began with a constant worth having.
    """
    if effective >= _KEPT or not model.fit_intercept or model.solver != "auto":
        return None
    lopsided = model._task in ("counts", "quantile")
    if not centred and not lopsided:
        return None
    epsilon = draw_epsilon(_CHOICE, model.epsilon, count, model.neighbours)
    return Keeping(epsilon=epsilon, whole=begun, lopsided=lopsided)


def few_sentence(effective: float) -> str:
    """What to say where only the constant is learnt."""
    return (
        f"Expected an effective sample size of some dozens, got {effective:.2g}: with this "
        "budget and number of records nothing can be told of the features, so the model is a constant: about the "
        "median, the quantile or the mean count, or the commonest class. Use a larger epsilon, or more records."
    )


def fit_constant(
    model: "PrivateLinearModel", data: "Records", outline: "Outline", meter: Meter, before: tuple[str, ...]
) -> None:
    """Draw the constant, and keep a model of it alone; no feature is read."""
    draw, columns = outline.alone, data.table.shape[1]
    target = data.target if data.people is None else data.target[one_row_each(data.people, meter.random)]
    known = given_scaling(model.bounds, model.row_norm, columns, intercept=True)
    scaling = scaling_from((np.zeros(columns), np.ones(columns)), columns, intercept=True) if known is None else known
    model._scale, model.ranges_ = scaling, (scaling.low, scaling.high)
    model._keep_constant(model._draw_constant(draw, target, meter), columns)
    model.guarantee_ = model._stated(meter.guarantee(), (*model._said_public, *before))
    model.plan_, model.n_iter_ = outline.plan, 1
