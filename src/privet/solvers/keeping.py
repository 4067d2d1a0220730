"""How much of a model to keep: a private choice between what was found and the constant that it began with."""

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from privet.accounting import ExponentialMechanism
from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS
from privet.losses import WeightedLoss
from privet.plan import Bounded, Meter, Release
from privet.privacy import sensitivity_factor
from privet.problems.linear_model import LinearModel
from privet.solvers.constant_draws import drawn
from privet.solvers.gradient import check_problem

KEPT = "part kept"
_PARTS = (0.0, 0.5, 1.0)
_CUT = 0.2  # of the squared spread of scores: little more than a sign is left of a record's differences
_DISLIKE = (0.0, 2.0, 2.0)  # logarithms of odds: what nothing speaks for is not kept
_ROUND = 0.7  # length of most rows
_LEAST = 2.0**-40


@dataclass(frozen=True, kw_only=True, slots=True)
class Keeping:
    """Which part of the coefficients to keep, none, half or all: by the losses that each has, with exact randomness.

    Noise on few records leaves slopes that predict worse than none. One number says so, and it stands out of the noise
    long before the slopes do.

    Promise: its release is that of `release`, an exact ExponentialMechanism, and no more.
    Theorem: docs/proofs/drawing.md, section 7.

    Parameters
    ----------
    epsilon : of the choice
    whole : whether the constant is kept in part as well, where what it began with is a constant worth having
    lopsided : whether losses are: then what few records lose may be worth more than what many gain, and less is cut

    Examples
    --------
    >>> Keeping(epsilon=0.1).release().name
    'part kept'
    """

    epsilon: float
    whole: bool = False
    lopsided: bool = False

    def release(self) -> Release:
        """The choice."""
        return Release(
            name=KEPT,
            of="losses with parts of the coefficients, in a random choice among them",
            bound=Bounded(clip=1.0, how="a record's losses change by as much as they are cut to, from part to part"),
            mechanism=ExponentialMechanism(epsilon=self.epsilon),
        )

    def run(self, problem: LinearModel, theta: Vector, meter: Meter) -> Vector:
        """The part of θ that is kept; the last row of θ is of the constant."""
        plan = meter.plan
        check_problem(plan, problem)
        moved = theta.copy()
        if not self.whole:
            moved[-1:] = 0.0
        points = [theta - moved * (1 - part) for part in _PARTS]
        size = float(np.linalg.norm(moved)) * _ROUND / math.sqrt(max(len(theta) - 1, 1))
        cut = max(self._cut(problem, size), _LEAST) / (len(points) - 1)
        most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
        meter.open(KEPT, count=problem.records)
        sums = [
            problem.slope_sum((low + high) / 2, (high - low) / 2, clip=cut, max_records=most)
            for low, high in pairwise(points)
        ]
        width = sensitivity_factor(plan.neighbours) * len(sums) * math.floor(cut / sums[0].step)
        scores = list(accumulate((int(total.units) for total in sums), initial=0))
        return np.asarray(points[drawn(KEPT, scores, width, meter, dislike=_DISLIKE)])

    def _cut(self, problem: LinearModel, size: float) -> float:
        """To what half a difference of losses is cut, if scores spread by `size`."""
        loss = problem.loss.loss if isinstance(problem.loss, WeightedLoss) else problem.loss
        if self.lopsided:
            return min(loss.lipschitz() or 1.0, 1.0) * size / 2
        return _CUT * size * size * min(loss.smoothness() or 1.0, 1.0) / 2
