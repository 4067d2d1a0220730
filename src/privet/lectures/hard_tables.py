"""The tables on which lower bounds are proven: what they say of every method, a run on them must show.

docs/proofs/lower.md, sections 2 and 6. Signs are drawn at random; the bound is on the mean over them and the noise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from privet.geometry import ConvexSet, l2_ball
from privet.lectures.measures import Vector
from privet.problems import LinearProblem, glm
from privet.theory import GaussianDP, logistic_lower_bound, rank_lower_bound


@dataclass(frozen=True, kw_only=True)
class HardTable:
    """A problem, its least risk, and the lower bound that Gaussian methods have on tables like it."""

    problem: LinearProblem
    least: float
    lower: float
    loss: Any
    X: Vector
    y: Vector

    def excess(self, theta: Vector) -> float:
        """The excess risk at a point; of a made-up table, so that it may be looked at."""
        return float(np.mean(self.loss(self.X @ theta, self.y))) - self.least


def hard_medians(n: int, d: int, *, mu: float, seed: int, free: bool = False) -> HardTable:
    """Return medians of signs, one a coordinate, in the unit ball (or in free space), hardest for μ-Gaussian methods.

    >>> table = hard_medians(100, 4, mu=0.5, seed=1)
    >>> round(table.excess(np.zeros(4)), 4), round(table.lower, 4)  # the start's, and what any method has at least
    (0.06, 0.0272)
    """
    found = rank_lower_bound(n=n, rank=d, seminorm=1.0, lipschitz=1.0, privacy=GaussianDP(mu=mu))
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=found.groups)
    X, y = np.zeros((n, d)), np.zeros(n)
    which = np.repeat(np.arange(found.groups), found.records)
    X[np.arange(which.size), which] = 1.0
    y[: which.size] = signs[which] / np.sqrt(found.groups)
    domain: ConvexSet | None = None if free else l2_ball(radius=1.0)
    problem = glm("absolute", X, y, row_norm=1.0, domain=domain)
    return HardTable(problem=problem, least=0.0, lower=found.value, loss=lambda z, t: np.abs(z - t), X=X, y=y)


def hard_labels(n: int, d: int, *, mu: float, seed: int) -> HardTable:
    """Return rows of a Hadamard matrix with a 1 appended and labels 0 and 1, in the unit ball; n even.

    The least risk is at the sum of the signed rows: all margins are the same there.

    >>> table = hard_labels(100, 4, mu=0.5, seed=1)
    >>> table.lower < table.excess(np.zeros(5))
    True
    """
    found = logistic_lower_bound(n=n, d=d, radius=1.0, privacy=GaussianDP(mu=mu))
    rows = 1 << (d.bit_length() - 1)
    vectors = hadamard(rows)[: found.groups].astype(float)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=found.groups)
    which, halves = np.repeat(np.arange(found.groups), found.records), np.tile([1.0, -1.0], n // 2 + 1)
    X, y = np.zeros((n, d + 1)), halves[:n].copy()
    X[:, d] = 1.0
    X[: which.size, :rows] = halves[: which.size, None] * vectors[which]
    y[: which.size] = halves[: which.size] * signs[which]
    problem = glm("logistic", X, (y > 0).astype(int), row_norm=float(np.sqrt(d + 1.0)), domain=l2_ball(radius=1.0))
    best = np.zeros(d + 1)
    best[:rows] = signs @ vectors / np.sqrt(found.groups * rows)

    def loss(z: Vector, t: Vector) -> Vector:
        return np.logaddexp(0.0, -z * t)

    least = float(loss(X @ best, y).mean())
    return HardTable(problem=problem, least=least, lower=found.value, loss=loss, X=X, y=y)
