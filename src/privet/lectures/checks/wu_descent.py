"""Wu, lecture 13, section 1: projected descent, its time, its minima, and the gradient of an average (01 to 05)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from privet.geometry import box, l2_ball
from privet.lectures import Finding, check
from privet.lectures.measures import apart
from privet.lectures.toy_problems import Inner, average_loss, pointwise
from privet.losses import AbsoluteLoss, CustomLoss, HingeLoss, Loss, QuantileLoss, SquaredLoss
from privet.losses.loss import Array
from privet.problems import per_record
from privet.solvers.plain_descent import projected_gradient_descent


@check("01", mutant={"sign": -1.0})
def algorithm_1(sign: float = 1.0) -> Finding:
    """Run algorithm 1 on a quadratic in a box, step by step against the library."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    T, eta, domain = 40, 0.3, box(low=-0.2, high=0.2, size=3)
    problem = pointwise(SquaredLoss(factor=1.0), X, y, domain=domain)
    w, visited = np.zeros(3), []
    for _ in range(T):
        visited.append(w)
        w = np.clip(w - sign * eta * X.T @ (X @ w - y) / 30, -0.2, 0.2)
    by_hand = np.mean(visited, axis=0)
    by_library = projected_gradient_descent(problem, steps=T - 1, step_size=eta).released
    off = apart(by_hand, by_library)
    start, end = average_loss(problem, np.zeros(3)), average_loss(problem, by_library)
    told = (
        f"Algorithm 1 by hand and by the library are {off:.1e} apart after {T} iterates; the loss goes from "
        f"{start:.4f} to {end:.4f}."
    )
    return Finding.judged(off < 1e-12 and end < start, told, apart=off, loss_at_start=start, loss_of_average=end)


def _slope(z: Any, y: Any, at_kink: float) -> Array:
    """A subgradient of |z − y|: any number from −1 to 1 where z = y."""
    return np.where(np.asarray(z) == y, at_kink, np.sign(np.asarray(z) - y))


@check("02", mutant={"factor": 2.0})
def subgradients(factor: float = 1.0) -> Finding:
    """Hold the derivative of losses with kinks under every chord, then descend with each subgradient at a kink."""
    losses: list[tuple[Loss, float]] = [(HingeLoss(), 1.0), (AbsoluteLoss(), 0.0), (QuantileLoss(level=0.3), 0.0)]
    z = np.linspace(-2.0, 2.0, 81)  # kinks included
    worst = -math.inf
    for loss, label in losses:
        value, slope = loss.value(z, np.full(81, label)), factor * loss.derivative(z, np.full(81, label))
        worst = max(worst, float((value[:, None] + slope[:, None] * (z - z[:, None]) - value).max()))
    excess = []
    for at_kink in (-1.0, 0.0, 1.0):
        loss = CustomLoss(
            value=lambda z, y: np.abs(np.asarray(z) - y),
            derivative=partial(_slope, at_kink=at_kink),
            curvature=lambda z, y: np.zeros_like(np.asarray(z)),
            lipschitz_constant=1.0,
            convex=True,
        )
        problem = pointwise(loss, [[1.0]] * 3, [-1.0, 0.0, 1.0], domain=l2_ball(radius=2.0))
        found = projected_gradient_descent(problem, steps=399, step_size=2.0 / 20.0, start=np.array([-2.0]))
        excess.append(average_loss(problem, found.released) - 2.0 / 3.0)
    return Finding.judged(
        worst <= 1e-12 and max(excess) <= 4.0 / 20.0,
        f"No tangent rises above its loss (by {max(worst, 0.0):.1e} at most), and three choices at the kink of a "
        f"median end within {max(excess):.4f} of the optimum, where 0.2 is promised.",
        tangent_above_loss=worst,
        largest_excess=max(excess),
    )


class _Counted(Inner):
    """Counts the numbers that gradients are made of."""

    def __init__(self) -> None:
        self.numbers = 0

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        found = super().gradients(theta, X, y)
        self.numbers += found.size
        return found


@check("03", mutant={"power": 2.0})
def running_time(power: float = 1.0) -> Finding:
    """Count the gradient entries that descent reads, and double n, T and d in turn."""

    def counted(n: int, T: int, d: int) -> int:
        loss = _Counted()
        projected_gradient_descent(per_record(loss, np.ones((n, d)), shape=d), steps=T, step_size=0.01)
        return loss.numbers

    base = counted(50, 20, 4)
    growth = [counted(100, 20, 4) / base, counted(50, 40, 4) / base, counted(50, 20, 8) / base]
    return Finding.judged(
        base == 50 * 20 * 4 and all(ratio == 2.0**power for ratio in growth),
        f"50 records, 20 steps and 4 parameters take {base} numbers, and doubling n, T or d takes "
        f"{growth[0]:g}, {growth[1]:g} and {growth[2]:g} times as many.",
        numbers_read=base,
        growth_with_n=growth[0],
        growth_with_steps=growth[1],
        growth_with_d=growth[2],
    )


@check("04", mutant={"barrier": 0.0})
def local_minima(barrier: float = 1.0) -> Finding:
    """Descend in a double well and in a bowl from both sides."""

    def ends(wall: float) -> list[float]:
        loss = CustomLoss(
            value=lambda z, y: np.asarray(z) ** 4 - 2 * wall * np.asarray(z) ** 2 + 0.3 * np.asarray(z),
            derivative=lambda z, y: 4 * np.asarray(z) ** 3 - 4 * wall * np.asarray(z) + 0.3,
            curvature=lambda z, y: 12 * np.asarray(z) ** 2 - 4 * wall,
            convex=wall == 0,
        )
        problem = pointwise(loss, [[1.0]], [0.0], domain=l2_ball(radius=2.0))
        paths = [
            projected_gradient_descent(problem, steps=600, step_size=0.02, release="last", start=np.array([w]))
            for w in (-1.5, 1.5)
        ]
        return [average_loss(problem, path.released) for path in paths]

    well, bowl = ends(barrier), ends(0.0)
    stuck = well[1] - well[0]
    return Finding.judged(
        stuck > 0.1 and abs(bowl[1] - bowl[0]) < 1e-6,
        f"From the right, descent in a double well stops {stuck:.3f} above its minimum; in a convex bowl the side "
        f"does not matter ({abs(bowl[1] - bowl[0]):.1e}).",
        excess_of_local_minimum=stuck,
        excess_in_bowl=abs(bowl[1] - bowl[0]),
    )


@check("05", mutant={"divisor": 2.0})
def decomposable(divisor: float = 1.0) -> Finding:
    """Compare the gradient of the average loss with the average of gradients, and with a difference quotient."""
    rng, loss = np.random.default_rng(5), SquaredLoss(factor=1.0)
    X, y, w, u = rng.normal(size=(25, 4)), rng.normal(size=25), rng.normal(size=4), rng.normal(size=4)
    problem = pointwise(loss, X, y)
    one_by_one = sum(pointwise(loss, X[[i]], y[[i]]).plain_gradient(w) for i in range(25)) / (25 * divisor)
    quotient = (average_loss(problem, w + 1e-4 * u) - average_loss(problem, w - 1e-4 * u)) / 2e-4
    off = apart(problem.plain_gradient(w), one_by_one)
    slope = abs(float(one_by_one @ u) - quotient)
    told = (
        f"The average of 25 gradients is the gradient of the average loss to {off:.1e}, and the slope of that loss "
        f"to {slope:.1e}."
    )
    return Finding.judged(off < 1e-12 and slope < 1e-8, told, apart=off, slope_error=slope)
