"""The constant beside slopes that were found: where gradients along it balance, by an exact random draw."""

import math
from dataclasses import dataclass

import numpy as np

from privet.accounting import ExponentialMechanism
from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS
from privet.plan import Bounded, Meter, Release
from privet.privacy import sensitivity_factor
from privet.problems.linear_model import LinearModel
from privet.solvers.constant_draws import drawn
from privet.solvers.gradient import check_problem

SETTLED = "constant beside slopes"
_OCTAVES, _FINE = 8, 4  # sizes that a shift may have, below the largest, and how many in each octave
_NEAR = 2.0**-10  # between which predictions a slope is taken


@dataclass(frozen=True, kw_only=True, slots=True)
class Settling:
    """A shift of all predictions, to where the losses' slopes along it balance: with probability ∝ exp(−β |Σ slopes|).

    Noise that slopes can bear, each of them a little, moves all predictions alike in the constant, and a descent of few
    steps may not have reached it. One number is far surer than a gradient. Where nothing can be told shifts are small.

    Promise: its release is that of `release`, an exact ExponentialMechanism, and no more.
    Theorem: docs/proofs/drawing.md, section 7.

    Parameters
    ----------
    epsilon : of the draw
    clip : to what a record's slope is cut, in units of the loss a prediction
    reach : the largest shift, in units of a prediction

    Examples
    --------
    >>> Settling(epsilon=0.1, clip=0.5).release().name
    'constant beside slopes'
    """

    epsilon: float
    clip: float
    reach: float = 1.0

    def release(self) -> Release:
        """The draw."""
        return Release(
            name=SETTLED,
            of="slopes of the loss along the constant, in a random choice among constants",
            bound=Bounded(clip=1.0, how="a record's slope changes by as much as it is cut to"),
            mechanism=ExponentialMechanism(epsilon=self.epsilon),
        )

    def run(self, problem: LinearModel, theta: Vector, constant: float, meter: Meter) -> Vector:
        """θ with its last row shifted, which is of the constant; that is `constant` in every record, in public."""
        plan = meter.plan
        check_problem(plan, problem)
        shifts = settled_shifts(self.reach)
        along = np.zeros_like(theta)
        along[-1:] = 1.0 / constant
        cut = self.clip * _NEAR
        most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
        meter.open(SETTLED, count=problem.records)
        sums = [problem.slope_sum(theta + shift * along, _NEAR * along, clip=cut, max_records=most) for shift in shifts]
        width = 2 * sensitivity_factor(plan.neighbours) * math.floor(cut / sums[0].step)
        place = drawn(SETTLED, [abs(int(total.units)) for total in sums], width, meter)
        return np.asarray(theta + shifts[place] * along)


def settled_shifts(reach: float) -> Vector:
    """Shifts of every size up to `reach`, both ways, and none; public.

    Examples
    --------
    >>> len(settled_shifts(1.0))
    65
    """
    sizes = reach * 2.0 ** (-np.arange(_OCTAVES * _FINE) / _FINE)
    return np.concatenate([-sizes, [0.0], sizes[::-1]])
