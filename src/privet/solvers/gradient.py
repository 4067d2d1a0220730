"""The private gradient: the one door between records and a descent. It draws, bounds, adds noise, and counts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Adaptive, Bounding, LatticeSum, lattice_step
from privet.errors import InvalidParameter, NoProvenBound
from privet.noise import add_gaussian
from privet.plan import Plan
from privet.problems import Problem
from privet.randomness import Random
from privet.sampling import Cyclic

__all__ = ["PrivateGradient", "check_same_unit", "noisy_mean"]

Vector = NDArray[np.float64]


class PrivateGradient:
    """Noisy gradients of a problem's average loss, exactly as a plan describes them, and no more than it counts.

    A step is counted before its records are read, so that whatever happens, what was released was charged.
    """

    def __init__(self, problem: Problem, plan: Plan, *, random: Random) -> None:
        if plan.neighbours != "add_remove" and plan.records != problem.records:
            raise InvalidParameter(
                f"Expected a plan for {problem.records:,} records, which is public under {plan.neighbours!r}, got one "
                f"for {plan.records:,}: sampling and step would not be what was priced. Set records in the plan."
            )
        check_same_unit(problem, plan)
        plan.event  # noqa: B018  # an unpriceable plan is refused before any record is read
        _check_noise(plan)
        self._problem, self.plan, self._random = problem, plan, random
        self.taken = 0
        self.rule: Bounding = plan.bounding

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of the noise in each coordinate of the next gradient; public."""
        return self.plan.gradient_multiplier * self.rule.clip / self.plan.batch_size

    def __call__(self, theta: Vector) -> Vector:
        """A noisy gradient of average loss plus penalty at `theta`; public."""
        indices = self._next()
        total = self._problem.gradient_sum(theta, rule=self.rule, indices=indices, most_records=self.plan.most_records)
        return self._released(total) + self._problem.ridge.gradient(theta)

    def difference(self, theta: Vector, anchor: Vector) -> Vector:
        """A noisy difference of gradients, penalty included, each record's bounded as one vector; public."""
        indices = self._next()
        total = self._problem.difference_sum(
            theta, anchor, rule=self.rule, indices=indices, most_records=self.plan.most_records
        )
        return self._released(total) + self._problem.ridge.gradient(theta - anchor)

    def slope(self, theta: Vector, direction: Vector) -> float:
        """A noisy half difference of the average loss plus penalty between θ + u and θ − u; public."""
        indices = self._next()
        total = self._problem.slope_sum(
            theta, direction, clip=self.rule.clip, indices=indices, most_records=self.plan.most_records
        )
        ridge = self._problem.ridge
        return float(self._released(total)) + (ridge.value(theta + direction) - ridge.value(theta - direction)) / 2

    def _next(self) -> NDArray[np.int64] | None:
        if self.taken >= self.plan.steps:
            raise InvalidParameter(
                f"Expected at most {self.plan.steps} steps, as planned and priced, got one more: it would not be "
                "covered by the guarantee. Plan for more steps."
            )
        step, self.taken = self.taken, self.taken + 1
        return self.plan.sampling.indices(self._problem.records, step, self._random)

    def _released(self, total: LatticeSum) -> Vector:
        mean = noisy_mean(total, self.plan.gradient_multiplier, self.plan.batch_size, self._random)
        first = self.plan.bounding
        if isinstance(first, Adaptive):
            count = add_gaussian(
                np.array([total.within * 2**30]), step=2.0**-31, noise_stddev=first.count_noise, random=self._random
            )
            share = 0.5 + float(count[0]) / self.plan.batch_size
            self.rule = replace(first, clip=first.moved(self.rule.clip, share))
        return mean


def check_same_unit(problem: Problem, plan: Plan) -> None:
    """Refuse a plan that promises something about records for a problem of people, or the other way round."""
    if plan.unit != problem.unit:
        raise InvalidParameter(
            f"Expected a plan with unit={problem.unit!r}, as the problem has, got unit={plan.unit!r}: the guarantee "
            "would be about somebody else. Set unit in the plan."
        )
    if plan.unit == "person" and isinstance(plan.sampling, Cyclic):
        raise NoProvenBound(
            "Expected batches of people drawn at random, or all of them, got cyclic ones: another label or another "
            "number of rows of one person could move the others to other batches. Use Poisson, FixedSize or FullBatch."
        )


def _check_noise(plan: Plan) -> None:
    """Refuse, before any record is read, noise that the lattice of the sum cannot carry."""
    step = lattice_step(1.0, most_records=plan.most_records)
    if not 2.0**11 <= plan.gradient_multiplier / step <= 2.0**59:
        raise InvalidParameter(
            f"Expected a noise multiplier from {step * 2.0**11:g} to {step * 2.0**59:g}, got "
            f"{plan.gradient_multiplier:g}: less is no noise on the lattice of the sum, more would drown all records. "
            "Take fewer steps, or another budget."
        )


def noisy_mean(total: LatticeSum, multiplier: float, divisor: float, random: Random) -> Vector:
    """Release a sum with noise of `multiplier` × its clip, and divide by a public number."""
    stddev = math.nextafter(multiplier * total.clip, math.inf)
    noisy = add_gaussian(np.atleast_1d(total.units), step=total.step, noise_stddev=stddev, random=random)
    return np.asarray(noisy.reshape(total.units.shape) / divisor)
