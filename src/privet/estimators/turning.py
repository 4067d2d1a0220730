"""In which geometry a fit descends, and with what: by public facts."""

from dataclasses import replace
from typing import TYPE_CHECKING

from privet.estimators.centred_defaults import centred_solver, centring_for, with_shorter_steps
from privet.estimators.defaults import PLENTY, Task, solver_for, whitened_solver, whitener_for
from privet.estimators.intervals import interval_whitener
from privet.losses import Loss
from privet.preprocessing.centring import Centring
from privet.preprocessing.scaling import Scaling
from privet.preprocessing.whitening import Whitener
from privet.solvers import FixedHessian, NewtonInference, Solver

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Size


_LEAST_NORM = 0.125  # of centred rows, in ranges of a column, where ranges are right
_REACH = 10.0  # times the norm that a row is predicted for at most; 4 was as good on most tables, 30 no better


def geometry_for(
    model: "PrivateLinearModel", loss: Loss, size: "Size", effective: float, seen: float
) -> tuple[Centring | None, Whitener | None]:
    """How rows will be centred, and whitened where there is enough for that; None where the solver is another."""
    if model.solver != "auto":
        return None, None
    if model.inference:
        return None, interval_whitener(columns=size.columns, intercept=bool(model.fit_intercept), effective=effective)
    task: Task = "several" if loss.outputs > 1 else model._task
    columns = size.columns
    whitener = whitener_for(task, columns=columns, intercept=bool(model.fit_intercept), effective=effective)
    plenty = whitener is not None and effective >= PLENTY * columns  # then one release less is one pass less
    if not model.fit_intercept or size.sparse or plenty:
        return None, whitener
    whitened = whitener is not None
    found = centring_for(task, loss=loss, columns=columns, effective=effective, seen=seen, whitened=whitened)
    return found, whitener


def centring_in(centring: Centring | None, known: Scaling | None, *, learnt: bool) -> Centring | None:
    """How rows are centred in ranges that will be learnt, or in those that are declared.

    Of columns as they were scaled by somebody, waves did not pay. Where all are learnt, or indicators, there are rows
    that are as long as a range, even if most are about 0.
    """
    if centring is None:
        return None
    indicators = known is not None and bool(((known.low == 0) & (known.high == 1)).all())
    waves = centring.wave_share if learnt else 0.0
    return replace(centring, wave_share=waves, least=_LEAST_NORM if learnt or indicators else 0.0)


def reach_for(model: "PrivateLinearModel", whitener: Whitener | None, centring: Centring | None) -> float:
    """How many times the norm a row is as long as it was where it is predicted for; 1 if it is shortened there, too.

    A model is linear in long rows as well. Predicting for shortened ones, a descent gives what only few records have
    several times its slope. On rows that are only centred odds are better left alone: they decide too soon.
    """
    if model.inference:
        return 1.0
    numbers = centring is not None and model._task in ("regression", "quantile")
    return _REACH if whitener is not None or numbers else 1.0


def solver_of(
    model: "PrivateLinearModel",
    loss: Loss,
    columns: int,
    effective: float,
    people: bool,
    final: NewtonInference | None,
    centring: Centring | None,
    whitener: Whitener | None,
    shrink: float,
    rate: float,
) -> Solver:
    """The solver for that geometry; `shrink` is that of the rows' scaling, `rate` that of its sample."""
    task: Task = "several" if loss.outputs > 1 else model._task
    if whitener is not None:
        clip = None if final is None else final.clip
        return whitened_solver(
            task,
            loss=loss,
            columns=columns,
            effective=effective,
            max_iter=model.max_iter,
            shrink=shrink,
            clip=clip,
            rate=rate,
        )
    if centring is not None:
        return centred_solver(task, loss=loss, columns=columns, effective=effective, max_iter=model.max_iter)
    return solver_for(
        model.solver,
        task,
        loss=loss,
        columns=columns,
        effective=effective,
        alpha=model.alpha,
        max_iter=model.max_iter,
        clip=None if final is None else final.clip,
        people=people,
    )


def for_steep(solver: Solver, times: float) -> Solver:
    """The solver for a loss so many times as steep, and as bent; what it releases stays the same."""
    if isinstance(solver, FixedHessian) and solver.typical_curvature is not None:
        return replace(solver, typical_curvature=solver.typical_curvature * times)
    return with_shorter_steps(solver, times)
