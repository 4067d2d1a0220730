"""The private gradient: the one door between records and a descent. The meter draws, counts and adds the noise."""

import numpy as np

from privet.arrays import Vector
from privet.clipping import LatticeSum, lattice_step
from privet.errors import InvalidParameter
from privet.plan import Meter, Plan
from privet.problems import Problem


class PrivateGradient:
    """Noisy gradients of a problem's average loss: the releases called `name` of the meter's plan, and no more."""

    def __init__(self, problem: Problem, meter: Meter, name: str = "gradients") -> None:
        check_problem(meter.plan, problem)
        self._problem, self._meter, self._name = problem, meter, name
        self._size = meter.plan.batch_size(name)
        self._most = meter.plan.max_records(name)
        _check_noise(meter.plan, name)

    @property
    def noise_stddev(self) -> float:
        """Standard deviation of the noise in each coordinate of the next gradient; public."""
        return self._meter.noise_stddev(self._name) / self._size

    def __call__(self, theta: Vector) -> Vector:
        """A noisy gradient of average loss plus penalty at `theta`; public."""
        indices = self._meter.open(self._name, count=self._problem.records)
        rule = self._meter.rule(self._name)
        total = self._problem.gradient_sum(theta, rule=rule, indices=indices, max_records=self._most)
        return self._mean(total) + self._problem.ridge.gradient(theta)

    def difference(self, theta: Vector, anchor: Vector) -> Vector:
        """A noisy difference of gradients, penalty included, each record's bounded as one vector; public."""
        indices = self._meter.open(self._name, count=self._problem.records)
        rule = self._meter.rule(self._name)
        total = self._problem.difference_sum(theta, anchor, rule=rule, indices=indices, max_records=self._most)
        return self._mean(total) + self._problem.ridge.gradient(theta - anchor)

    def slope(self, theta: Vector, direction: Vector) -> float:
        """A noisy half difference of the average loss plus penalty between θ + u and θ − u; public."""
        indices = self._meter.open(self._name, count=self._problem.records)
        clip = self._meter.rule(self._name).clip
        total = self._problem.slope_sum(theta, direction, clip=clip, indices=indices, max_records=self._most)
        ridge = self._problem.ridge
        return float(self._mean(total)) + (ridge.value(theta + direction) - ridge.value(theta - direction)) / 2

    def _mean(self, total: LatticeSum) -> Vector:
        return np.asarray(self._meter.noisy(self._name, total) / self._size)


def check_problem(plan: Plan, problem: Problem) -> None:
    """Refuse a plan for another number of records, or one that promises something about records for people."""
    if plan.neighbours != "add_remove" and plan.records != problem.records:
        raise InvalidParameter(
            f"Expected a plan for {problem.records:,} records, which is public under {plan.neighbours!r}, got one "
            f"for {plan.records:,}: sampling and step would not be what was priced. Set records in the plan."
        )
    if plan.unit != problem.unit:
        raise InvalidParameter(
            f"Expected a plan with unit={problem.unit!r}, as the problem has, got unit={plan.unit!r}: the guarantee "
            "would be about somebody else. Set unit in the plan."
        )


def _check_noise(plan: Plan, name: str) -> None:
    """Refuse, before any record is read, noise that the lattice of the sum cannot carry."""
    step, noise = lattice_step(1.0, max_records=plan.max_records(name)), plan[name].sum_multiplier
    if not 2.0**11 <= noise / step <= 2.0**59:
        raise InvalidParameter(
            f"Expected a noise multiplier from {step * 2.0**11:g} to {step * 2.0**59:g}, got {noise:g}: less is no "
            "noise on the lattice of the sum, more would drown all records. Take fewer steps, or another budget."
        )
