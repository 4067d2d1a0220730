"""What is done with the coefficients that a descent has found, in the order of the plan: kept in part, settled."""

from dataclasses import replace
from typing import TYPE_CHECKING

from privet.arrays import Vector
from privet.estimators.outline import Outline
from privet.estimators.preparing import Posed, Prepared
from privet.estimators.shrinking import shrunk_slopes
from privet.plan import Meter
from privet.preprocessing.scaling import Scaling
from privet.solvers import DPSGD, Solver
from privet.solvers.mean_residual import MeanResidual

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel


def finished(
    model: "PrivateLinearModel",
    outline: Outline,
    problem: Prepared,
    theta: Vector,
    meter: Meter,
    *,
    solver: Solver,
    scaling: Scaling,
    posed: Posed,
    start: Vector | None,
    begun: bool,
) -> Vector:
    """θ after all that comes between descent and intervals; `start` is where it began, if not in the middle.

    `begun` says whether the middle of a range that was drawn is a constant worth having.
    """
    unit = scaling.constant * scaling.shrink
    whitened = outline.whitener is not None and outline.final is None
    if whitened and model._task == "regression" and isinstance(solver, DPSGD):
        theta = shrunk_slopes(theta, solver, meter, shrink=scaling.spread, penalty=problem.ridge)
    if outline.calibration is not None:
        weight = scaling.total if outline.plan.neighbours == "add_remove" else posed.typical_weight
        theta = outline.calibration.run(problem, theta, unit, meter, weight=weight)
    if outline.keeping is not None:
        keeping = replace(outline.keeping, whole=outline.keeping.whole and begun)
        theta = keeping.run(problem, theta, meter)
    if isinstance(outline.settling, MeanResidual):
        more = max(scaling.total, 1.0) if outline.plan.neighbours == "add_remove" else 1.0
        theta = outline.settling.run(problem, theta, unit, meter, times=more)
    elif outline.settling is not None:
        theta = outline.settling.run(problem, theta, unit, meter)
    if outline.classes is not None:
        theta = outline.classes.kept(problem, theta, start, solver, unit, meter)
    return theta
