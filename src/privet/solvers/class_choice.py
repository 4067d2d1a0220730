"""Which class to say everywhere, or which part of a model to keep instead: by how many records each gets wrong."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.accounting import ExponentialMechanism, Pure
from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS
from privet.losses import CustomLoss, Loss
from privet.plan import Bounded, Meter, Release
from privet.privacy import sensitivity_factor
from privet.problems.linear_model import LinearModel
from privet.randomness import Random
from privet.solvers.class_rates import class_counts
from privet.solvers.constant_draws import drawn
from privet.solvers.drawing import Weights, exact_choice, exponential_weights
from privet.solvers.gradient import check_problem

CHOSEN = "class or model"
_PARTS = (0.5, 1.0)
_DISLIKE = 2.0  # logarithm of odds of a part of the model: what nothing speaks for is not kept
_AHEAD = 0.05  # logits that the chosen class is before the others
_TOP = 1.6  # rate of a class of which only that it is the commonest is known, in units of 1/classes


def flipped(name: str, scores: Sequence[int], width: int, meter: Meter) -> int:
    """The place that the open release falls on by permute-and-flip, exactly: the best one, or one nearly as good.

    Promise: Pure(epsilon), if of one record's change to the scores the largest and the least are within `width`.
    Theorem: McKenna and Sheldon 2020; docs/proofs/drawing.md, section 8.
    """
    rate = Fraction(meter.plan[name].mechanism.epsilon) / width  # type: ignore[union-attr]

    def choose(random: Random) -> int:
        least, left = min(scores), list(range(len(scores)))
        while True:
            each = left.pop(exact_choice(random, exponential_weights([0] * len(left), rate)))
            if scores[each] == least or exact_choice(random, _coin(rate * (scores[each] - least))) == 0:
                return each

    return int(meter.chosen(name, choose))


def _coin(x: Fraction) -> Weights:
    """Heads, the first, with probability exp(−x)."""
    both = exponential_weights((0, 1), x)

    def weights(digits: int) -> list[int]:
        one, part = both(digits)
        return [part, one - part]

    return weights


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassVote:
    """The commonest of some classes, nearly.

    Promise: the release of that name, Pure(epsilon); labels that are NaN count for nothing.
    Theorem: docs/proofs/drawing.md, section 8.

    Examples
    --------
    >>> ClassVote(name="constant", classes=3).release(0.1).mechanism
    Pure(epsilon=0.1)
    """

    name: str
    classes: int

    def release(self, epsilon: float) -> Release:
        """The vote."""
        bound = Bounded(clip=1.0, how="a record is in at most one class")
        return Release(name=self.name, of="records of each class", bound=bound, mechanism=Pure(epsilon=epsilon))

    def run(self, places: Vector, meter: Meter) -> Vector:
        """Rates of which only the largest was learnt, and only whose it is; private in, public out."""
        meter.open(self.name, count=len(places))
        counts = class_counts(places, self.classes)
        width = sensitivity_factor(meter.plan.neighbours)
        top = flipped(self.name, [-int(count) for count in counts], width, meter)
        rates = np.full(self.classes, (1 - _TOP / self.classes) / (self.classes - 1))
        rates[top] = _TOP / self.classes
        return rates


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassChoice:
    """One of the classes for all records, half of a model or all of it: by how many records each gets wrong.

    Noise on few records leaves a model that predicts worse than its most common class.

    Promise: its release is that of `release`, an exact ExponentialMechanism, and no more.
    Theorem: docs/proofs/drawing.md, section 8.

    Parameters
    ----------
    epsilon : of the choice
    classes : how many there are, three or more

    Examples
    --------
    >>> ClassChoice(epsilon=0.1, classes=3).release().name
    'class or model'
    """

    epsilon: float
    classes: int

    def release(self) -> Release:
        """The choice."""
        bound = Bounded(clip=1.0, how="a record is right or wrong")
        of = "errors of each class and of parts of the model, in a random choice among them"
        return Release(name=CHOSEN, of=of, bound=bound, mechanism=ExponentialMechanism(epsilon=self.epsilon))

    def run(
        self, problem: LinearModel, theta: Vector, constant: float, meter: Meter, *, start: Vector | None = None
    ) -> Vector:
        """What is kept of θ, whose last row is of the constant, which is `constant` in every record; both are public.

        `start` is a constant model that θ was found from, if there was one. Records must not have weights.
        """
        plan = meter.plan
        check_problem(plan, problem)
        bare = np.vstack([np.zeros_like(theta[:-1]), theta[-1:]]) if start is None else start
        points = [*self._constants(bare, constant), *(bare + (theta - bare) * part for part in _PARTS)]
        judged = copy(problem)
        judged.loss = _errors(self.classes)
        most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
        meter.open(CHOSEN, count=problem.records)
        sums = [judged.loss_sum(point, clip=0.5, centre=0.5, max_records=most) for point in points]
        width = sensitivity_factor(plan.neighbours) * 2 * math.floor(0.5 / sums[0].step)
        dislike = [0.0] * self.classes + [_DISLIKE] * len(_PARTS)
        return np.asarray(points[drawn(CHOSEN, [int(each.units) for each in sums], width, meter, dislike=dislike)])

    def _constants(self, bare: Vector, constant: float) -> list[Vector]:
        """A constant model of each class, with the scores of `bare` but that class's and the largest exchanged."""
        found = []
        for each in range(self.classes):
            point = bare.copy()
            top = int(bare[-1].argmax())
            point[-1, each], point[-1, top] = bare[-1, top], bare[-1, each]
            point[-1, each] += _AHEAD / constant
            found.append(point)
        return found


@dataclass(frozen=True, slots=True)
class _Errors:
    """1 for a record whose class has not the highest score, else 0."""

    classes: int

    def value(self, z: Any, y: Any) -> Any:
        return (z.argmax(axis=1) != y).astype(np.float64)

    def flat(self, z: Any, y: Any) -> Any:
        return np.zeros_like(z)


def _errors(classes: int) -> Loss:
    """How many errors there are, as a loss that can be sent to where records are."""
    parts = _Errors(classes)
    return CustomLoss(value=parts.value, derivative=parts.flat, curvature=parts.flat, outputs=classes)
