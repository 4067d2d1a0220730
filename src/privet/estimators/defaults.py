"""Which solver, and its settings: chosen from public facts alone, so that nobody has to tune on private rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from privet.errors import InvalidParameter
from privet.losses import Loss

__all__ = ["LITTLE", "Settings", "Task", "check_solver", "constant_weight", "settings_for"]

Solver = Literal["auto", "fixed_hessian", "gradient", "sgd", "newton", "objective", "output"]
Task = Literal["binary", "several", "regression", "counts", "quantile"]
"""What is learnt: one of two labels, one of several, a number, a count, a quantile."""

_ONE_OUTPUT = ("newton", "objective")  # nothing is proven of them for several classes
_ONE_RELEASE = ("objective", "output")
_CONSTANT = 0.25  # signal a column at which the constant is as long as a row
LITTLE = 0.3  # signal a column below which a model tends to the majority, or the mean
_MOST_COLUMNS = 2_000  # of which a private XᵀX is worth having


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All that a solver is told beyond problem and budget; public.

    `typical_curvature` is the loss's near its minimum, where that is known and far below its largest: steps are
    for it, and the clip keeps them from running away where the loss bends more.
    """

    solver: str = "fixed_hessian"
    steps: int
    clip: float
    hessian_share: float = 0.25
    step_size: float = 0.5
    momentum: float = 0.8
    floor: float = 2.0
    tail: float = 0.5
    typical_curvature: float | None = None
    rate: float = 0.05
    radius: float = 10.0

    def curvature(self, loss: Loss) -> float:
        """What one step is meant for: the typical curvature, or the proven one if that is smaller or the only one."""
        proven = loss.smoothness() or 1.0
        return proven if self.typical_curvature is None else min(proven, self.typical_curvature)


# Fixed-Hessian descent, the default. Measured on the shared tables: benchmarks/results/accuracy.md.
_DESCENT: dict[Task, Settings] = {
    "binary": Settings(steps=40, clip=0.15, hessian_share=0.1, step_size=1.0, floor=0.5),
    "several": Settings(steps=40, clip=0.3, hessian_share=0.1, step_size=1.0, floor=0.5, tail=0.25),
    "regression": Settings(steps=40, clip=0.1, hessian_share=0.2, momentum=0.5, floor=0.5),
    "counts": Settings(steps=20, clip=1.0, momentum=0.5, typical_curvature=2.0),
    "quantile": Settings(steps=60, clip=1.0, typical_curvature=5.0),
}
_FEWER: dict[Task, float] = {"binary": 8.0, "several": 2.0, "regression": 4.0}  # fewer steps below this signal a column


def settings_for(
    solver: str, task: Task, *, loss: Loss, columns: int, signal: float, max_iter: int | None = None
) -> Settings:
    """The solver that "auto" stands for and its settings, or those of the solver that was named.

    Parameters
    ----------
    solver : "auto", or one by name
    task : what is learnt
    loss : public
    columns : of the prepared rows
    signal : records ÷ noise multiplier of one release that spends the whole budget: how many records can be told from
        noise; public
    max_iter : the caller's own number of steps, if any

    Examples
    --------
    >>> from privet.losses import LogisticLoss
    >>> settings_for("auto", "binary", loss=LogisticLoss(), columns=10, signal=500.0).solver
    'fixed_hessian'
    >>> settings_for("auto", "binary", loss=LogisticLoss(), columns=50_000, signal=500.0).solver
    'gradient'
    """
    chosen = check_solver(solver, loss)
    if chosen == "auto":
        chosen = "fixed_hessian" if columns <= _MOST_COLUMNS else "gradient"
    known = _DESCENT[task]
    settings = replace(known, solver=chosen)
    if task in ("binary", "several", "regression"):
        each = signal / columns
        settings = replace(
            settings,
            steps=_more(round(known.steps * min(max(each / _FEWER[task], 0.2) ** 0.3, 1.0)), columns, signal / 10),
            clip=_clip(known.clip, each, loss.lipschitz()),
            floor=_floor(known.floor, each, grows=task == "several"),
        )
    elif task == "counts":
        settings = replace(settings, steps=_more(known.steps, columns, signal), clip=_count_clip(columns, signal))
    elif task == "quantile":  # no gradient is longer than the loss's slope: nothing is clipped
        settings = replace(settings, steps=_more(known.steps, columns, signal), clip=loss.lipschitz() or known.clip)
        if chosen == "fixed_hessian":  # longer steps go round in circles where all residuals are within the width
            settings = replace(settings, typical_curvature=max(5.0, 0.21 * (loss.smoothness() or 1.0)))
    if chosen == "gradient":  # full steps for rows of norm 1, which momentum carries
        settings = replace(settings, steps=100, step_size=2.0, momentum=0.9)
    elif chosen == "sgd":
        settings = replace(settings, steps=200, step_size=1.0, momentum=0.9)
    elif chosen == "newton":
        settings = replace(settings, steps=8, step_size=1.0)
    elif chosen in _ONE_RELEASE:
        settings = replace(settings, steps=1)
        if max_iter is not None:
            raise InvalidParameter(
                f"Expected max_iter=None with solver={chosen!r}, got {max_iter!r}: it releases once, and solves to a "
                "certified tolerance before. Leave max_iter out."
            )
    return settings if max_iter is None else replace(settings, steps=max_iter)


def check_solver(solver: str, loss: Loss) -> str:
    """Return `solver` if it is one and admits the loss, else say which do."""
    names = get_args(Solver)
    if solver not in names:
        raise InvalidParameter(
            f"Expected solver to be one of {', '.join(map(repr, names))}, got {solver!r}: there is no other. "
            "Leave it at 'auto'."
        )
    if loss.outputs > 1 and solver in _ONE_OUTPUT:
        others = ", ".join(repr(name) for name in names if name not in _ONE_OUTPUT)
        raise InvalidParameter(
            f"Expected a solver that is proven for several classes, got {solver!r}: one record changes the Hessian of "
            f"all of them at once. Use one of {others}."
        )
    return solver


def constant_weight(each: float) -> float:
    """How long the constant beside the features is, in lengths of a row: the longer, the less signal a column there is.

    What a constant learns is then surer, and features count less: with hardly any signal only the constant is left.
    """
    return min(_CONSTANT / max(each, 2.0**-20), 2.0**10)


def _clip(least: float, each: float, slope: float | None) -> float:
    """Where so little can be told from noise that it is the whole error, clip hard; where there is none, nothing.

    `each` is the signal a column. A fourth root of it did well on fifteen tables from epsilon 0.01 to 8, and reaches
    the loss's slope, beyond which nothing is cut off as rows have norm 1.
    """
    return float(min(least * max(1.0, each / 2) ** 0.25, slope or math.inf))


def _floor(least: float, each: float, *, grows: bool) -> float:
    """The least curvature that is believed; much, where there is hardly any signal: then only a constant is learnt."""
    shy = max(1.0, LITTLE / max(each, 2.0**-20)) ** 2
    return float(least * shy * (max(1.0, each / 2) ** 0.2 if grows else 1.0))


def _count_clip(columns: int, signal: float) -> float:
    """For counts in units of their mean: as the tail is long, clip it the less the more can be told from noise.

    What the clip cuts off biases a rate, what it lets through is noise; where they balance grows with the signal a
    column, and a cube root of it did well from epsilon 0.1 to 1,000.
    """
    return min(max(0.6 * float(np.cbrt(signal / columns)), 1.0), 2.0**20)


def _more(steps: int, columns: int, signal: float) -> int:
    """More steps where they are cheap: up to ten times as many, as the loss may bend far less than a step is for."""
    return round(steps * min(max(float(np.cbrt(signal / columns / 100)), 1.0), 10.0))
