"""Small problems whose answers are known by hand: the ones on which the lectures' bounds are equalities, and others."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.geometry import ConvexSet, l2_ball
from privet.lectures.measures import Vector
from privet.losses import LinearRecords, LogisticLoss, Loss
from privet.losses.loss import Array
from privet.privacy import Budget
from privet.problems import RecordProblem, per_record
from privet.solvers.plain_descent import projected_gradient_descent
from privet.theory import Method, Prescription, plan_for

BUDGET = Budget(epsilon=1.0, delta=1e-5)
"""What runs may spend where the claim leaves it open."""


class Inner:
    """The loss ⟨x, θ⟩: every gradient is the record itself, wherever one stands."""

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return np.asarray(np.asarray(X) @ theta, dtype=np.float64)

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        return np.array(X, dtype=np.float64)


class LargestCoordinate:
    """The loss max_j θ_j, of which descent must visit every coordinate: theorem 2.1 is an equality on it."""

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return np.full(len(X), np.max(theta))

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        rows = np.zeros((len(X), theta.size))
        rows[:, int(np.argmax(theta))] = 1.0
        return rows


def linear(rows: Any, *, domain: ConvexSet | None = None) -> RecordProblem:
    """Return the problem whose records' gradients are `rows`.

    >>> linear([[1.0, 0.0], [0.0, 1.0]]).plain_gradient(np.zeros(2))
    array([0.5, 0.5])
    """
    table = np.asarray(rows, dtype=np.float64)
    return per_record(Inner(), table, shape=table.shape[1], domain=domain)


def largest_coordinate(d: int, *, radius: float = 1.0) -> tuple[RecordProblem, float]:
    """Return max_j θ_j over the ball of that radius about 0, and its least value −radius/√d.

    >>> largest_coordinate(4)[1]
    -0.5
    """
    problem = per_record(LargestCoordinate(), np.zeros((1, 1)), shape=d, domain=l2_ball(radius=radius))
    return problem, -radius / math.sqrt(d)


def pointwise(loss: Loss, X: Any, y: Any, *, domain: ConvexSet | None = None) -> RecordProblem:
    """Return the problem of a pointwise loss of ⟨x, θ⟩, record by record, features not rounded.

    >>> from privet.losses import SquaredLoss
    >>> pointwise(SquaredLoss(factor=1.0), [[2.0]], [0.0]).plain_gradient(np.ones(1))
    array([4.])
    """
    rows = np.asarray(X, dtype=np.float64)
    return per_record(LinearRecords(loss=loss), rows, np.asarray(y), shape=rows.shape[1], domain=domain)


def average_loss(problem: RecordProblem, theta: Vector) -> float:
    """Return L(θ), the average loss; **not private**.

    >>> average_loss(linear([[1.0], [3.0]]), np.ones(1))
    2.0
    """
    return float(np.mean(problem.loss.values(theta, problem.X, problem.y)))


def separable(n: int, d: int, *, seed: int) -> tuple[Vector, NDArray[np.int64]]:
    """Return public rows of norm at most 1 and labels 0 and 1 that a noisy linear rule gave them.

    >>> X, y = separable(100, 3, seed=0)
    >>> X.shape, bool((np.linalg.norm(X, axis=1) < 1 + 1e-12).all()), sorted(set(y.tolist()))
    ((100, 3), True, [0, 1])
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, (X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0).astype(np.int64)


def logistic_in_ball(n: int, d: int, *, seed: int) -> tuple[RecordProblem, Vector]:
    """Return a logistic problem in the unit ball, and its minimiser there.

    >>> problem, best = logistic_in_ball(50, 2, seed=0)
    >>> average_loss(problem, best) < average_loss(problem, np.zeros(2))
    True
    """
    problem = pointwise(LogisticLoss(), *separable(n, d, seed=seed), domain=l2_ball(radius=1.0))
    return problem, projected_gradient_descent(problem, steps=800, step_size=3.0, release="last").released


def unit_plan(method: Method, *, n: int, d: int, budget: Budget, rank: int | None = None) -> Prescription:
    """Return what `plan_for` prescribes for radius 1 and gradients of norm at most 1, one record replaced.

    >>> round(unit_plan("average", n=1000, d=10, budget=BUDGET).excess_risk, 4)
    0.0334
    """
    return plan_for(
        n=n, d=d, radius=1.0, lipschitz=1.0, budget=budget, neighbours="replace_one", method=method, rank=rank
    )
