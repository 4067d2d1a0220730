"""What classifiers spend on the constant, which is the commonest class: alone, before the slopes, after them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privet.arrays import Vector
from privet.data import one_row_each
from privet.estimators.constant_model import ConstantModel
from privet.plan import Meter, Release
from privet.privacy import Neighbours, sensitivity_factor
from privet.problems import GroupedProblem, LinearProblem
from privet.solvers.class_choice import ClassChoice, ClassVote
from privet.solvers.class_rates import ClassRates

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Size
    from privet.estimators.preparing import Records

# Records × epsilon, as it is if a record is replaced, below which only the constant is learnt; of two classes, of more.
_ALONE = (60.0, 75.0)
_ENOUGH = 200.0  # the same, from which a descent on two classes finds the constant as well as a draw
_KEPT = 1_000.0  # effective sample size from which nothing is drawn of several
# Records × epsilon of a release, and the least and the most of epsilon for it; rates of two classes, of more.
_RATES = ((12.0, 0.02, 0.2), (10.0, 0.01, 0.1))
_CHOICE = (80.0, 0.05, 0.5)
_ALL = 60.0  # effective sample size from which all of the slopes are kept
_LEAST = 0.4  # of the slopes, kept of a smaller one


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassDraws:
    """What is learnt of classes by pure draws beside a descent, and which part of the slopes is kept; all public."""

    rates: float  # epsilon of how often each class occurs; 0 if that is not learnt
    choice: ClassChoice | None
    part: float

    @property
    def epsilon(self) -> float:
        """Of all of it."""
        return self.rates + (0.0 if self.choice is None else self.choice.epsilon)

    def releases(self) -> tuple[Release, ...]:
        """What comes after the descent."""
        return () if self.choice is None else (self.choice.release(),)

    def kept(
        self,
        problem: LinearProblem | GroupedProblem,
        theta: Vector,
        start: Vector | None,
        constant: float,
        meter: Meter,
    ) -> Vector:
        """What is kept of θ, beside the constant that the descent began with, or its own."""
        if start is None:
            start = theta.copy()
            start[:-1] = 0.0
        else:
            theta = start + self.part * (theta - start)
        return theta if self.choice is None else self.choice.run(problem, theta, start, constant, meter)


def seen_votes(epsilon: float, count: float, neighbours: Neighbours) -> float:
    """Records × epsilon, or as much as that is worth where a record is replaced."""
    return 2 * epsilon * count / sensitivity_factor(neighbours)


def lone_class(model: "PrivateLinearModel", size: "Size", count: float) -> ClassRates | ClassVote | None:
    """How the commonest class is learnt, if it is all that will be; by public facts."""
    several = size.classes > 2
    if seen_votes(model.epsilon, count, model.neighbours) >= _ALONE[several]:
        return None
    return (
        ClassVote(name="constant", classes=size.classes)
        if several
        else ClassRates(classes=2, neighbours=model.neighbours)
    )


def class_draws_for(
    model: "PrivateLinearModel", size: "Size", count: float, effective: float, *, whitened: bool, begun: bool
) -> ClassDraws | None:
    """What is drawn beside a descent on rows that are centred, and perhaps `whitened`; None where there is enough.

    Of two classes, where a vote is cheap, slopes are kept in part; of more, a draw says whether to keep them.
    `begun` says that something was released before, out of the same budget: then there is less of it.
    """
    several, less = size.classes > 2, 0.5 if begun else 1.0
    seen = seen_votes(model.epsilon, count, model.neighbours)
    if model._task != "binary" or (effective >= _KEPT if several else whitened or seen >= _ENOUGH):
        return None
    rates = 0.0 if whitened or size.weighted else _part(_RATES[several], model.epsilon, seen) * less
    choice = None
    if several:
        choice = ClassChoice(epsilon=_part(_CHOICE, model.epsilon, seen) * less, classes=size.classes)
    part = 1.0 if several else min(max(effective / _ALL, _LEAST), 1.0)
    return ClassDraws(rates=rates, choice=choice, part=part)


def _part(wanted: tuple[float, float, float], epsilon: float, seen: float) -> float:
    votes, least, most = wanted
    return epsilon * min(max(votes / max(seen, 2.0**-20), least), most)


class ClassConstants(ConstantModel):
    """What classifiers say of a model that is a constant."""

    _draws: ClassVar[bool] = True
    classes_: Any
    classes: Any
    neighbours: Neighbours

    @property
    def _said_public(self) -> tuple[str, ...]:
        return () if self.classes is not None else ("the list of classes, read off the labels, is public",)

    def _scores_of(self, rates: Vector) -> Vector:
        """The scores of a constant model with these rates: one of two classes, else one each."""
        odds = np.log(rates)
        return np.diff(odds) if len(odds) == 2 else odds - odds.mean()

    def _draw_constant(self, draw: Any, target: Any, meter: Meter) -> Vector:
        return np.asarray(draw.run(target, meter))

    def _keep_constant(self, constant: Any, columns: int) -> None:
        self.intercept_ = self._scores_of(constant)
        self.coef_ = np.zeros((len(self.intercept_), columns))

    def _learnt_rates(self, data: "Records", meter: Meter) -> Vector | None:
        """How often each class occurs, if the plan has that."""
        if ClassRates.name not in meter.plan:
            return None
        target = data.target if data.people is None else data.target[one_row_each(data.people, meter.random)]
        return ClassRates(classes=len(self.classes_), neighbours=self.neighbours).run(target, meter)

    def _started(self, rates: Vector | None, shape: tuple[int, ...], constant: float) -> Vector | None:
        """A constant model with these rates, of which the last row is of the constant; None without any."""
        if rates is None:
            return None
        start = np.zeros(shape)
        start[-1:] = self._scores_of(rates) / constant
        return start
