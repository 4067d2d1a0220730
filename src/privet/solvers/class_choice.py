"""Which class to say everywhere, or which part of a model to keep instead: by how many records each gets wrong."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.accounting import Pure
from privet.arrays import Vector
from privet.clipping.lattice import MOST_RECORDS
from privet.losses import CustomLoss, WeightedLoss
from privet.plan import Bounded, Meter, Release
from privet.privacy import sensitivity_factor
from privet.problems import GroupedProblem, LinearProblem
from privet.solvers.drawing import Weights, exact_choice, exponential_weights
from privet.solvers.gradient import check_problem

CHOSEN = "class or model"
_PARTS = (0.5, 1.0)
_DISLIKE = 2.0  # logarithm of odds of a part of the model: what nothing speaks for is not kept
_AHEAD = 0.05  # logits that the chosen class is before the others
_TOP = 1.6  # rate of a class of which only that it is the commonest is known, in units of 1/classes


def flipped(name: str, scores: Sequence[int], width: int, meter: Meter, *, dislike: Sequence[float] = ()) -> int:
    """The place that the open release falls on by permute-and-flip, exactly: the best one, or one nearly as good.

    Promise: Pure(epsilon), if of one record's change to the scores the largest and the least are within `width`.
    Theorem: McKenna and Sheldon 2020; docs/proofs/drawing.md, section 8.
    """
    random, rate = meter.draw(name), Fraction(meter.plan[name].mechanism.epsilon) / width  # type: ignore[union-attr]
    extra = [round(Fraction(each) / rate) for each in dislike] or [0] * len(scores)
    totals = [a + b for a, b in zip(scores, extra, strict=True)]
    least, left = min(totals), list(range(len(totals)))
    while True:
        each = left.pop(exact_choice(random, exponential_weights([0] * len(left), rate)))
        if totals[each] == least or exact_choice(random, _coin(rate * (totals[each] - least))) == 0:
            return each


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
        known = places[np.isfinite(places)].astype(np.int64)
        counts = np.bincount(known, minlength=self.classes)[: self.classes]
        width = sensitivity_factor(meter.plan.neighbours)
        top = flipped(self.name, [-int(count) for count in counts], width, meter)
        rates = np.full(self.classes, (1 - _TOP / self.classes) / (self.classes - 1))
        rates[top] = _TOP / self.classes
        return rates


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassChoice:
    """One of the classes for all records, half of a model or all of it: by how many records each gets wrong.

    Noise on few records leaves a model that predicts worse than its most common class.

    Promise: its release is that of `release`, Pure(epsilon), and no more.
    Theorem: docs/proofs/drawing.md, section 8.

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
        return Release(name=CHOSEN, of=of, bound=bound, mechanism=Pure(epsilon=self.epsilon))

    def run(
        self, problem: LinearProblem | GroupedProblem, theta: Vector, start: Vector, constant: float, meter: Meter
    ) -> Vector:
        """What is kept of θ, which was found from `start`, a constant model; the constant is `constant` in every row.

        Both are public.
        """
        plan = meter.plan
        check_problem(plan, problem)
        points = [*self._constants(start, constant), *(start + (theta - start) * part for part in _PARTS)]
        judged, wrong = copy(problem), _errors(self.classes)
        judged.loss = WeightedLoss(loss=wrong) if isinstance(problem.loss, WeightedLoss) else wrong
        most = MOST_RECORDS if plan.neighbours == "add_remove" else problem.records
        meter.open(CHOSEN, count=problem.records)
        sums = [judged.loss_sum(point, clip=0.5, centre=0.5, max_records=most) for point in points]
        width = sensitivity_factor(plan.neighbours) * 2 * math.floor(0.5 / sums[0].step)
        dislike = [0.0] * self.classes + [_DISLIKE] * len(_PARTS)
        return np.asarray(points[flipped(CHOSEN, [int(each.units) for each in sums], width, meter, dislike=dislike)])

    def _constants(self, start: Vector, constant: float) -> list[Vector]:
        """A constant model of each class, with the scores of `start` but that class's and the largest exchanged."""
        found = []
        for each in range(self.classes):
            point = np.zeros_like(start)
            if self.classes == 2:
                size = max(abs(float(start[-1])), _AHEAD / constant)
                point[-1] = size if each else -size
            else:
                row = start[-1].copy()
                top = int(row.argmax())
                row[each], row[top] = row[top], row[each]
                row[each] += _AHEAD / constant
                point[-1] = row
            found.append(point)
        return found


def _errors(classes: int) -> CustomLoss:
    """1 for a record whose class has not the highest score, else 0."""

    def value(z: Any, y: Any) -> Any:
        said = z > 0 if classes == 2 else z.argmax(axis=1)
        return (said != y).astype(np.float64)

    outputs = 1 if classes == 2 else classes
    nothing = lambda z, y: np.zeros_like(z)  # noqa: E731
    return CustomLoss(value=value, derivative=nothing, curvature=nothing, outputs=outputs)
