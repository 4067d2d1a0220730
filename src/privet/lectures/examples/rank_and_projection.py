"""Projection destroys the rank bound: Brown, lecture 13, theorem 4.1 needs *unconstrained* descent.

The same 300 records of rank 5, laid into more and more dimensions. Without projection the noise outside their span
stays outside, and no loss sees it. With a projection on the ball of radius |θ*|, noise in all d directions fills the
ball, and what is left for the span shrinks.

>>> for d in (5, 500):
...     print(f"{d:>3}  {excess(d, projected=False):.2f}  {excess(d, projected=True):.2f}")
  5  0.20  0.20
500  0.17  0.32
"""

import math
from functools import cache

import numpy as np

from privet.geometry import l2_ball
from privet.lectures.measures import Vector
from privet.lectures.noisy_runs import noisy_run
from privet.lectures.toy_problems import average_loss, pointwise, separable
from privet.losses import LogisticLoss
from privet.problems import RecordProblem, glm
from privet.solvers.plain_descent import projected_gradient_descent
from privet.theory import exact_noise, rank_bound

RECORDS, STEPS, RANK = 300, 60, 5


@cache
def _problem() -> tuple[RecordProblem, Vector]:
    """A logistic problem in five dimensions, and its minimiser."""
    X, y = separable(RECORDS, RANK, seed=49)
    problem = pointwise(LogisticLoss(), X, y, domain=l2_ball(radius=6.0))
    return problem, projected_gradient_descent(problem, steps=400, step_size=4.0, release="last").released


def _noise() -> float:
    return exact_noise(epsilon=1.0, delta=1e-5, steps=STEPS - 1, sensitivity=2 / RECORDS)


def allowed() -> float:
    """The rank bound, the same in all dimensions.

    >>> f"{allowed():.3f}"
    '0.842'
    """
    length = float(np.linalg.norm(_problem()[1]))
    return rank_bound(steps=STEPS, seminorm=length, lipschitz=1.0, rank=RANK, noise_stddev=_noise()).value


def excess(d: int, *, projected: bool, runs: int = 2) -> float:
    """Mean excess of noisy descent, (1, 1e-5)-private by its noise, with the records laid into d dimensions.

    >>> excess(50, projected=False, runs=1) < allowed()
    True
    """
    flat, best = _problem()
    length, sigma = float(np.linalg.norm(best)), _noise()
    turn = np.linalg.qr(np.random.default_rng(d).normal(size=(d, RANK)))[0]
    domain = l2_ball(radius=length) if projected else None
    laid = glm("logistic", flat.X @ turn.T, flat.y, row_norm=1.0, domain=domain)
    eta, times = length / math.sqrt(STEPS * (1 + RANK * sigma**2)), sigma * RECORDS
    found = [
        noisy_run(laid, noise_multiplier=times, steps=STEPS - 1, step_size=eta, seed=seed).coef for seed in range(runs)
    ]
    return float(np.mean([average_loss(flat, turn.T @ coef) for coef in found])) - average_loss(flat, best)
