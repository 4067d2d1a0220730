"""The constant of least squares beside slopes that were found: moved by the noisy mean of the residuals."""

from dataclasses import dataclass

import numpy as np

from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS
from privet.plan import Bounded, Meter, Release
from privet.problems.linear_model import LinearModel
from privet.solvers.gradient import check_problem

RESIDUAL = "mean residual"
_NEAR = 2.0**-10  # between which predictions a slope is taken, of which a power of two loses nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanResidual:
    """A shift of all predictions by the mean of their residuals, each cut to ±`clip`, with Gaussian noise.

    Gradients are cut where noise would drown them, so that a descent finds about the median of a skewed target, and
    noise in its constant moves all predictions alike. The mean is one number, and squared errors are least at it.

    Promise: its release is that of `release`, and no more; a record moves the sum by at most `clip`, twice that if it
    is replaced. Theorem: docs/proofs/whitening.md, section 7.

    Parameters
    ----------
    clip : to what a residual is cut, in units of a prediction
    noise_multiplier : of the sum, in units of `clip`

    Examples
    --------
    >>> MeanResidual(clip=0.5, noise_multiplier=10.0).release().name
    'mean residual'
    """

    clip: float
    noise_multiplier: float

    def release(self) -> Release:
        """The sum."""
        return Release(
            name=RESIDUAL,
            of="residuals",
            bound=Bounded(clip=self.clip * _NEAR, how="each residual is cut"),
            noise_multiplier=self.noise_multiplier,
            size=1,
        )

    def run(self, problem: LinearModel, theta: Vector, constant: float, meter: Meter, *, times: float = 1.0) -> Vector:
        """θ with its last row shifted, which is of the constant; that is `constant` in every record, in public.

        `times` is how many times as many records there are as were guessed, as far as is known.
        """
        plan = meter.plan
        check_problem(plan, problem)
        along = np.zeros_like(theta)
        along[-1:] = 1.0 / constant
        most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
        meter.open(RESIDUAL, count=problem.records)
        total = problem.slope_sum(theta, _NEAR * along, clip=self.clip * _NEAR, max_records=most)
        slope = float(meter.noisy(RESIDUAL, total)) / (_NEAR * times * plan.batch_size(RESIDUAL))
        return np.asarray(theta - slope * along)
