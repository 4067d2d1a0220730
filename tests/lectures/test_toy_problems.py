from __future__ import annotations

import numpy as np
import pytest

from privet.lectures.toy_problems import average_loss, largest_coordinate, linear, logistic_in_ball, pointwise
from privet.losses import SquaredLoss
from privet.problems import RecordProblem

RNG = np.random.default_rng(0)
PROBLEMS = [
    linear(RNG.normal(size=(7, 3))),
    largest_coordinate(3)[0],
    pointwise(SquaredLoss(factor=2.0), RNG.normal(size=(7, 3)), RNG.normal(size=7)),
    logistic_in_ball(20, 3, seed=1)[0],
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=["linear", "largest", "squared", "logistic"])
def test_gradients_are_slopes_of_the_average_loss(problem: RecordProblem) -> None:
    """A difference quotient in a random direction agrees with the gradient."""
    w, u = np.array([0.3, -0.1, 0.2]), np.array([0.5, 0.4, -0.7])
    quotient = (average_loss(problem, w + 1e-5 * u) - average_loss(problem, w - 1e-5 * u)) / 2e-5
    assert float(problem.plain_gradient(w) @ u) == pytest.approx(quotient, abs=1e-9)


def test_known_minima_are_minima() -> None:
    """No random point of the ball is below the least value."""
    largest, least = largest_coordinate(5, radius=2.0)
    logistic, best = logistic_in_ball(40, 5, seed=2)
    for _ in range(200):
        w = RNG.normal(size=5)
        w *= RNG.uniform() / np.linalg.norm(w)
        assert average_loss(largest, 2.0 * w) >= least
        assert average_loss(logistic, w) >= average_loss(logistic, best)
    assert average_loss(largest, np.full(5, -2 / np.sqrt(5))) == pytest.approx(least)
