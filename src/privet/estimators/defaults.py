"""Which solver, and its settings: chosen from public facts alone, so that nobody has to tune on private rows."""

import math
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from privet._checks import one_of, whole
from privet.errors import InvalidParameter
from privet.losses import Loss
from privet.preprocessing.whitening import Whitener
from privet.sampling import Poisson
from privet.solvers import (
    DPSGD,
    FixedHessian,
    GradientStep,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    PilotNewton,
    Recalibration,
    Solver,
)

Name = Literal["auto", "fixed_hessian", "gradient", "sgd", "newton", "objective", "output"]
Task = Literal["binary", "several", "regression", "counts", "quantile"]
"""What is learnt: one of two labels, one of several, a number, a count, a quantile."""

_ONE_OUTPUT = ("newton", "objective")  # nothing is proven of them for several classes
_OF_PEOPLE = ("auto", "fixed_hessian", "gradient", "sgd")  # bound a person's whole gradient
_ONE_RELEASE = ("objective", "output")
_ONE_STRENGTH = ("newton", *_ONE_RELEASE)  # of a penalty, in every direction
_NAMED: dict[type, str] = {Newton: "newton", ObjectivePerturbation: "objective", OutputPerturbation: "output"}
_CONSTANT = 0.25  # effective sample size a column at which the constant is as long as a row
LITTLE = 0.3  # effective sample size a column below which a model tends to the majority, or the mean
MOST_COLUMNS = 2_000  # of which a private XᵀX is worth having
# effective sample size from which norms and second moments can be told from noise
_WORTH_WHITENING: dict[Task, float] = {
    "binary": 300.0,
    "several": 100.0,
    "regression": 200.0,
    "counts": 300.0,
    "quantile": 300.0,
}
WIDE = 200  # columns beyond which whitening loses to a Hessian, and (an effective sample size a column)
HESSIAN = 10.0  # from which that beats centred rows as well; measured on training rows of MNIST alone
PLENTY = 1_000.0  # effective sample size a column beyond which noise hardly matters
_ENOUGH = 60  # steps on whitened rows
MOMENTUM = 0.5  # of steps on whitened and centred rows
# Effective sample size a column from which steps of several classes are longer, in columns, of which there count so
# many at least; and how many times longer they are at most, of up to four classes, of more.
_LONG, _FEW, _LONGEST = 3.0, 16, (3.0, 4.0)
# Effective sample size of a recalibration of several classes from which slopes of the loss are cut less, and how far.
_UNCUT, _WIDEST_CUT = 330.0, 4.0
STEPS = {"because": "it is how many noisy gradients are taken", "use": "Leave it out for the default."}


# Fixed-Hessian descent, the default. Measured on the shared tables: benchmarks/results/accuracy.md.
_DESCENT: dict[Task, FixedHessian] = {
    "binary": FixedHessian(clip=0.15, hessian_share=0.1, floor=0.5),
    "several": FixedHessian(clip=0.3, hessian_share=0.1, floor=0.5, tail=0.25),
    "regression": FixedHessian(clip=0.1, hessian_share=0.2, step_size=0.5, momentum=0.5, floor=0.5),
    "counts": FixedHessian(steps=20, clip=1.0, step_size=0.5, momentum=0.5, typical_curvature=2.0),
    "quantile": FixedHessian(steps=60, clip=1.0, step_size=0.5, typical_curvature=5.0),
}
_FEWER: dict[Task, float] = {"binary": 8.0, "several": 2.0, "regression": 4.0}  # fewer steps below this size a column


def whitener_for(task: Task, *, columns: int, intercept: bool, effective: float) -> Whitener | None:
    """How rows are whitened; None where there are so few records that it would not pay.

    Chosen on training rows of the shared tables and on made-up ones.
    """
    several, each = task == "several", effective / (columns + intercept)
    # where columns are many, most directions drown, and a Hessian that tells how far to step does as well
    enough = effective >= _WORTH_WHITENING[task] and each >= max(3.0, columns / 40)
    if not enough or columns > WIDE:
        return None
    shares = (0.07, 0.13) if several or each >= 10.0 else (0.15,)
    if each >= PLENTY:  # less is enough, but not one round: it does not see how thin nearly collinear columns are
        shares = (0.05, 0.08)
    tail = 0.02 * min(1.0, 50.0 / each)  # what is shortened biases, what is not is noise
    return Whitener(columns=columns, intercept=intercept, shares=shares, tail=tail)


def whitened_solver(
    task: Task,
    *,
    loss: Loss,
    columns: int,
    effective: float,
    max_iter: int | None = None,
    shrink: float = 1.0,
    clip: float | None = None,
    rate: float = 1.0,
) -> Solver:
    """Descent on whitened rows, which are as long in every direction: no Hessian is needed.

    `shrink` is what whitened rows are multiplied by to have norm at most 1; it scales steps, and nothing released.
    `clip` is a clip of the caller's own, if any. With a `rate` below 1 there is plenty, and most steps are on a sample.
    """
    known = _settings("fixed_hessian", task, loss, columns, effective)
    steps = known.steps if max_iter is None else whole("max_iter", max_iter, **STEPS)  # type: ignore[arg-type]
    if max_iter is None and task in ("binary", "several"):
        steps = max(min(round(0.7 * steps), _ENOUGH), 1)
    curvature = min(loss.smoothness() or 1.0, known.typical_curvature or math.inf)
    if task == "several":
        longer = _longer(effective / columns, columns, loss.outputs)
        curvature /= longer
        steps = steps if max_iter is not None else round(steps * min(max(longer / 2, 1.0), 2.0))
    update = GradientStep(step_size=known.step_size / (curvature * shrink * shrink), momentum=MOMENTUM)
    if rate < 1:
        update = replace(update, momentum=0.7)
        return PilotNewton(clip=loss.lipschitz() or known.clip, rate=rate, update=update)
    return DPSGD(steps=steps, clip=clip or known.clip, update=update, release="tail_average", tail=0.75)


def _longer(each: float, columns: int, classes: int) -> float:
    """How many times longer steps of several classes are where much can be told from noise.

    The probability of one class among many bends far less than is proven, so that a descent is cut short. The more
    columns, the sooner classes are told apart without error, and scores grow too sure. Chosen by training rows of
    eleven public tables; beyond `_LONGEST` some go round in circles, the sooner the fewer classes there are.
    """
    return min(max(math.sqrt(each / (_LONG * max(columns, _FEW))), 1.0), _LONGEST[classes > 4])


def calibration_for(several: bool, effective: float) -> Recalibration | None:
    """How probabilities are recalibrated; None where there are so few records that it would not pay.

    `effective` is the effective sample size of the share of the budget for it. The larger it is, the less is cut.
    """
    if effective < (20.0 if several else 100.0):
        return None
    cut = min(max(math.sqrt(effective / _UNCUT), 1.0), _WIDEST_CUT)  # of several: by 1, slopes are 3 % too long
    return Recalibration(several=several, cut=cut if several else 1.0)


def solver_for(
    solver: Any,
    task: Task,
    *,
    loss: Loss,
    columns: int,
    effective: float,
    alpha: float = 0.0,
    max_iter: int | None = None,
    clip: float | None = None,
    people: bool = False,
) -> Solver:
    """The solver that "auto" or a name stands for, with its settings; a solver that is given as a value stays as it is.

    `columns` are of the prepared rows. `effective` is the effective sample size, records ÷ noise multiplier of one
    release that spends the whole budget: how many records can be told from noise. `max_iter` and `clip` are the
    caller's own, if any. All of it is public.
    """
    if isinstance(solver, Solver) and not isinstance(solver, type):
        if max_iter is not None:
            raise InvalidParameter(
                f"Expected max_iter=None with a solver that is a value, got {max_iter!r}: the value has its own number "
                "of steps. Set it there."
            )
        if type(solver) in _NAMED:
            check_solver(_NAMED[type(solver)], loss, people=people, alpha=alpha)
        return solver
    chosen = check_solver(solver, loss, people=people, alpha=alpha)
    if chosen == "auto":
        chosen = "fixed_hessian" if columns <= MOST_COLUMNS else "gradient"
    if chosen in _ONE_RELEASE and max_iter is not None:
        raise InvalidParameter(
            f"Expected max_iter=None with solver={chosen!r}, got {max_iter!r}: it releases once, and solves to a "
            "certified tolerance before. Leave max_iter out."
        )
    settings = _settings(chosen, task, loss, columns, effective)
    if max_iter is not None:
        settings = replace(settings, steps=whole("max_iter", max_iter, **STEPS))  # type: ignore[arg-type]
    return _value(chosen, settings if clip is None else replace(settings, clip=clip), loss)


def _settings(chosen: str, task: Task, loss: Loss, columns: int, effective: float) -> FixedHessian:
    """The task's settings at this size and budget, as of the default solver, from which the others take theirs."""
    known = settings = _DESCENT[task]
    if task in ("binary", "several", "regression"):
        each = effective / columns
        settings = replace(
            settings,
            steps=_more(round(known.steps * min(max(each / _FEWER[task], 0.2) ** 0.3, 1.0)), columns, effective / 10),
            clip=clip_for(known.clip, each, loss.lipschitz()),
            floor=_floor(known.floor, each, grows=task == "several"),
        )
    elif task == "counts":
        settings = replace(settings, steps=_more(known.steps, columns, effective), clip=_count_clip(columns, effective))
    elif task == "quantile":  # no gradient is longer than the loss's slope: nothing is clipped
        settings = replace(settings, steps=_more(known.steps, columns, effective), clip=loss.lipschitz() or known.clip)
        if chosen == "fixed_hessian":  # longer steps go round in circles where all residuals are within the width
            settings = replace(settings, typical_curvature=max(5.0, 0.21 * (loss.smoothness() or 1.0)))
    if chosen == "gradient":  # full steps for rows of norm 1, which momentum carries
        settings = replace(settings, steps=100, step_size=2.0, momentum=0.9)
    elif chosen == "sgd":
        settings = replace(settings, steps=200, step_size=1.0, momentum=0.9)
    elif chosen == "newton":
        settings = replace(settings, steps=8, step_size=1.0)
    return settings


def _value(chosen: str, settings: FixedHessian, loss: Loss) -> Solver:
    """The solver itself."""
    if chosen == "fixed_hessian":
        return settings
    if chosen == "newton":
        return Newton(steps=settings.steps, clip=settings.clip, step_size=settings.step_size)
    if chosen == "objective":
        return ObjectivePerturbation(clip=settings.clip)
    if chosen == "output":
        several = loss.outputs > 1  # whose clipped gradient is that of no loss: they keep the proven bound
        return OutputPerturbation(clip=None if several else settings.clip, radius=10.0)
    # a step is meant for the typical curvature, or the proven one if that is smaller or the only one
    size = settings.step_size / min(loss.smoothness() or 1.0, settings.typical_curvature or math.inf)
    update = GradientStep(step_size=size, momentum=settings.momentum)
    steps: dict[str, Any] = {"steps": settings.steps, "clip": settings.clip, "update": update}
    if chosen == "sgd":
        return DPSGD(sampling=Poisson(sampling_rate=0.05), release="tail_average", **steps)
    return DPSGD(release="tail_average", **steps)


def check_solver(solver: Any, loss: Loss, *, people: bool = False, alpha: float = 0.0) -> str:
    """Return `solver` if it is a known name and admits loss, penalty and people with many rows, else say which do."""
    names = get_args(Name)
    because, use = "there is no other", "Leave it at 'auto', or pass a value such as FixedHessian(clip=0.1)."
    one_of("solver", solver, names, because=because, use=use)
    if loss.outputs > 1 and solver in _ONE_OUTPUT:
        others = ", ".join(repr(name) for name in names if name not in _ONE_OUTPUT)
        raise InvalidParameter(
            f"Expected a solver that is proven for several classes, got {solver!r}: one record changes the Hessian of "
            f"all of them at once. Use one of {others}."
        )
    if alpha and solver in _ONE_STRENGTH:
        raise InvalidParameter(
            f"Expected alpha=0 with the solver {solver!r}, got {alpha!r}: its noise rests on a penalty that is "
            "as strong in every direction of the scaled problem, and alpha is one in the data's units. Use another "
            "solver, or alpha=0 and a value such as OutputPerturbation(regularisation=0.01)."
        )
    if people and solver not in _OF_PEOPLE:
        raise InvalidParameter(
            f"Expected one of the solvers {', '.join(map(repr, _OF_PEOPLE[1:]))} with groups=..., got {solver!r}: "
            "only what bounds a person's whole gradient is proven for people with many rows. Leave solver at 'auto'."
        )
    return str(solver)


def constant_weight(each: float) -> float:
    """How long the constant beside the features is, in lengths of a row: the longer, the smaller the effective sample.

    What a constant learns is then surer, and features count less: with hardly any records only the constant is left.
    """
    return min(_CONSTANT / max(each, 2.0**-20), 2.0**10)


def clip_for(least: float, each: float, slope: float | None) -> float:
    """Where so little can be told from noise that it is the whole error, clip hard; where there is none, nothing.

    `each` is the effective sample size a column. A fourth root of it did well on fifteen tables from epsilon 0.01 to 8,
    and reaches the loss's slope, beyond which nothing is cut off as rows have norm 1.
    """
    return float(min(least * max(1.0, each / 2) ** 0.25, slope or math.inf))


def _floor(least: float, each: float, *, grows: bool) -> float:
    """The least curvature that is believed; much, where there is hardly any sample: then only a constant is learnt."""
    shy = max(1.0, LITTLE / max(each, 2.0**-20)) ** 2
    return float(least * shy * (max(1.0, each / 2) ** 0.2 if grows else 1.0))


def _count_clip(columns: int, effective: float) -> float:
    """For counts in units of their mean: as the tail is long, clip it the less the more can be told from noise.

    What the clip cuts off biases a rate, what it lets through is noise; where they balance grows with the effective
    sample size a column, and a cube root of it did well from epsilon 0.1 to 1,000.
    """
    return min(max(0.6 * float(np.cbrt(effective / columns)), 1.0), 2.0**20)


def _more(steps: int, columns: int, effective: float) -> int:
    """More steps where they are cheap: up to ten times as many, as the loss may bend far less than a step is for."""
    return round(steps * min(max(float(np.cbrt(effective / columns / 100)), 1.0), 10.0))
