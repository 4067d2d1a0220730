"""The constant alone, with all of the budget, where there are next to no records: when, how, and what is said."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import Vector
from privet.data import one_row_each
from privet.estimators.bending import keep_scaling
from privet.estimators.class_defaults import lone_class
from privet.estimators.constant_defaults import (
    CONSTANT,
    LEAST,
    ConstantDraw,
    rare_part,
    widths_beside,
    worth_of,
)
from privet.estimators.defaults import Task
from privet.plan import Meter, Plan, Release
from privet.preprocessing.scaling import given_scaling, scaling_from
from privet.solvers.class_rates import ClassRates
from privet.solvers.constant_draws import QuantileDraw
from privet.solvers.interval_draws import IntervalDraw, MiddleDraw
from privet.solvers.laplace_mean import LaplaceMean

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Outline, Size
    from privet.estimators.preparing import Records

# Effective sample size, and that a column, below both of which only the constant is learnt.
_FEW: dict[Task, tuple[float, float]] = {"regression": (28.0, 4.0), "quantile": (35.0, 4.0), "counts": (60.0, 7.0)}
_SQUARED = 24.0  # and of squared errors, however many columns there are
# In logarithms of odds, what an interval is worth before a constant that is all that is learnt, declared or not, and
# the least and the most of the budget for it.
_REACH, _PARTS = (24.0, 30.0), (0.25, 0.7)
_ANY = 15.0  # what the budget must be worth, in the same, for a median to be drawn where no range is declared
_AT_ONCE = 130.0  # and below which it is drawn at once, in all of a declared range: half of the records tell how far
_VAGUE = 8.0, 18.0  # and below what only a guess is drawn in a declared range: of a median, of a quantile far out
# From what of the same the constant of squared errors is a noisy mean in an interval, declared or not, what the
# interval is worth, and the least part of the budget for it; how far beside the interval values count, in its widths,
# and from what on that is the farther one.
_MEANT, _MEAN_REACH, _MEAN_PART = (45.0, 55.0), (26.0, 32.0), 0.15
_MEAN_BESIDE, _MEAN_FAR = (0.5, 1.0), 65.0
_REACH_DRAW = IntervalDraw(name="target: reach")


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


def only_constant(model: "PrivateLinearModel", size: "Size", count: float, effective: float) -> Alone | None:
    """The draw of the constant, if it is all that will be learnt; by public facts."""
    if model.solver != "auto" or not model.fit_intercept or model.inference or size.weighted:
        return None
    if model._task == "binary":
        vote = lone_class(model, size, count)
        return None if vote is None else Alone(draw=vote)
    few, each = _FEW[model._task]
    draw, hull, worth = model._constant_draw(CONSTANT), model._ends, worth_of(model, count)
    if draw is None:
        return None
    enough = _SQUARED if model._loyal else min(few, each * (size.columns + 1))
    if not isinstance(draw, QuantileDraw):
        return None if effective >= enough else Alone(draw=draw, hull=hull)
    rare = rare_part(draw.level)
    if rare * effective >= enough:
        return None
    known = hull is not None
    if model._loyal and model.neighbours != "add_remove" and worth >= _MEANT[not known]:
        mean = LaplaceMean(name=CONSTANT, neighbours=model.neighbours)
        part, beside = max(_MEAN_REACH[not known] / worth, _MEAN_PART), _MEAN_BESIDE[worth >= _MEAN_FAR]
        return Alone(draw=mean, reach=_REACH_DRAW, hull=hull, beside=beside, part=part)
    if known and worth < _VAGUE[rare < 1]:
        return Alone(draw=MiddleDraw(name=CONSTANT, level=draw.level), hull=hull)
    if rare == 1 and (0.0 if known else _ANY) <= worth < (_AT_ONCE if known else LEAST):
        return Alone(draw=draw, hull=hull)
    if not known and worth < LEAST:
        return None
    part = min(max(_REACH[not known] / worth, _PARTS[0]), _PARTS[1])
    beside = widths_beside(draw.level, (1 - part) * worth)
    return Alone(draw=draw, reach=_REACH_DRAW, hull=hull, beside=beside, part=part)


def is_alone(plan: Plan) -> bool:
    """Whether a plan is of a constant alone."""
    return set(plan.names) <= {CONSTANT, _REACH_DRAW.name, ClassRates.name}


def few_sentence(effective: float, alone: Alone) -> str:
    """What to say where only the constant is learnt."""
    wide = ""
    if alone.hull is not None:
        wide = " If the declared range is far too wide, even that is a guess: declare a tight one."
    elif isinstance(alone.draw, QuantileDraw) and alone.reach is None:
        wide = " With no range declared even that is a guess, mostly about 0: declare target_range, or the schema's."
    return (
        f"Expected an effective sample size of some dozens, got {effective:.2g}: with this "
        "budget and number of records nothing can be told of the features, so the model is a constant: about the "
        f"mean, the median, the quantile or the commonest class. Use a larger epsilon, or more records.{wide}"
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
