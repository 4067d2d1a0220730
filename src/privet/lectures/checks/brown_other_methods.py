"""Brown, lecture 13, introduction: the other ways to learn privately (53)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privet.geometry import box, l2_ball
from privet.lectures import Finding, check
from privet.lectures.measures import refuses
from privet.lectures.toy_problems import BUDGET, separable
from privet.losses.loss import Array
from privet.problems import Problem, glm, per_record
from privet.solvers import (
    exponential_mechanism,
    newton_descent,
    objective_perturbation,
    output_perturbation,
    zeroth_order_descent,
)


class Network:
    """A network of two hidden units that multiply: the loss ½(θ₁ tanh(θ₂x) − y)² is not convex."""

    def values(self, theta: Array, X: Any, y: Any) -> Array:
        return np.asarray(0.5 * (theta[0] * np.tanh(theta[1] * np.asarray(X)[:, 0]) - y) ** 2)

    def gradients(self, theta: Array, X: Any, y: Any) -> Array:
        bent = np.tanh(theta[1] * np.asarray(X)[:, 0])
        rest = theta[0] * bent - y
        return np.stack([rest * bent, rest * theta[0] * (1 - bent**2) * np.asarray(X)[:, 0]], axis=1)


@check("53", mutant={"fit_networks": 5.0})
def other_ways(fit_networks: float = 1.0) -> Finding:
    """Run the five other methods on a linear model, then offer each a small network, and count who takes it."""
    X, y = separable(500, 1, seed=53)
    line = glm("logistic", X, y, row_norm=1.0)
    interval = glm("logistic", X, y, row_norm=1.0, domain=box(low=-2.0, high=2.0, size=1))
    network = per_record(Network(), X, y.astype(float), shape=2, domain=l2_ball(radius=3.0))
    ways: dict[str, tuple[Problem, Callable[[Any], Any]]] = {
        "exponential": (interval, lambda p: exponential_mechanism(p, epsilon=1.0, pieces=64)),
        "output": (interval, lambda p: output_perturbation(p, budget=BUDGET)),
        "objective": (line, lambda p: objective_perturbation(p, budget=BUDGET)),
        "zeroth_order": (line, lambda p: zeroth_order_descent(p, budget=BUDGET, steps=20, clip=1.0, step_size=0.5)),
        "newton": (line, lambda p: newton_descent(p, budget=BUDGET, steps=3, clip=1.0)),
    }
    costs = {f"epsilon_of_{name}": float(run(problem).guarantee.epsilon) for name, (problem, run) in ways.items()}
    taking = [name for name, (_, run) in ways.items() if not refuses(run, network)]
    finite = bool(np.isfinite(ways["zeroth_order"][1](network).coef).all())
    return Finding.judged(
        max(costs.values()) <= 1.0 and len(taking) == fit_networks and "zeroth_order" in taking and finite,
        f"All five learn a linear model within epsilon = 1; of a network's loss {', '.join(taking)} makes something, "
        f"the other {5 - len(taking)} refuse.",
        take_networks=len(taking),
        table=costs,
    )
