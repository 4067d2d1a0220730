"""Projected gradient descent, noise off: the lectures' algorithm 1. Not private; to compare with."""

from privet.arrays import Vector
from privet.clipping import Bounding
from privet.problems import Problem
from privet.solvers.descent import Path, ReleaseRule, check_release, descend, starting_point
from privet.solvers.solver import Start
from privet.solvers.updates import GradientStep, StepSize, UpdateRule


def projected_gradient_descent(
    problem: Problem,
    *,
    steps: int,
    step_size: StepSize | None = None,
    update: UpdateRule | None = None,
    release: ReleaseRule = "average",
    bounding: Bounding | None = None,
    start: Start = None,
) -> Path:
    """w_t = Π(w_{t−1} − η ∇L(w_{t−1})): **not private**; the result is a bare path without a guarantee.

    Theorem: with η = R/(G√T) the average of T iterates is within RG/√T of the best point; lecture 13 (Wu), theorem 2.1.

    Parameters
    ----------
    problem : what is minimised
    steps : gradients to take; the average is over steps + 1 points
    step_size : η, or a function of t = 1, 2, …; or give an `update` rule instead
    release : which point of the path
    bounding : how gradients are bounded, to run exactly what a private solver runs without its noise; left out,
        they are not bounded
    start : the domain's centre by default

    Examples
    --------
    >>> from privet import glm, l2_ball
    >>> from privet.solvers.plain_descent import projected_gradient_descent
    >>> problem = glm("half_squared", [[1.0], [1.0]], [0.0, 1.0], row_norm=1.0, domain=l2_ball(radius=2.0))
    >>> projected_gradient_descent(problem, steps=50, step_size=0.5, release="last").released.round(6)
    array([0.5])
    """
    check_release(release)
    chosen = update if update is not None else GradientStep(step_size=1.0 if step_size is None else step_size)

    def bounded(theta: Vector) -> Vector:
        total = problem.gradient_sum(theta, rule=bounding, max_records=problem.records)  # type: ignore[arg-type]
        return total.value / problem.records + problem.ridge.gradient(theta)

    return descend(
        problem.plain_gradient if bounding is None else bounded,
        start=starting_point(problem, start),
        steps=steps,
        update=chosen,
        domain=problem.domain,
        release=release,
    )
