"""What classifiers spend on the constant, which is the commonest class: alone, before the slopes, after them."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privet.arrays import Vector
from privet.data import one_row_each
from privet.estimators.constant_model import ConstantModel
from privet.estimators.shrinking import slope_noise
from privet.plan import Meter, Release
from privet.preprocessing.centring import Centring
from privet.preprocessing.whitening import Whitener
from privet.privacy import Neighbours, sensitivity_factor
from privet.problems.linear_model import LinearModel
from privet.solvers import DPSGD, Solver
from privet.solvers.class_choice import ClassChoice, ClassVote
from privet.solvers.class_rates import ClassRates

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Size
    from privet.estimators.preparing import Records

# Records × epsilon, as it is if a record is replaced, below which only the constant is learnt; of two classes, of more.
_ALONE = (60.0, 150.0)
_VOTED = 60.0  # and below which only the commonest of several is, or where there are no probabilities
_KEPT = 1_000.0  # effective sample size from which nothing is drawn of several classes
_MANY = 8  # classes beyond which a constant is no better than what noise leaves, and nothing is drawn
_NARROW = 20  # columns up to which slopes are taken to be spread over directions alike
_FREE = 10.0  # directions, at most, whose noise is taken off the slopes: beyond, features have few that count
# Records × epsilon of a release, and the least and the most of epsilon for it; rates of narrow tables, of wide ones.
_RATES = ((30.0, 0.02, 0.25), (15.0, 0.02, 0.25))
_SEVERAL = (90.0, 0.03, 0.13)  # and of several classes
_CHOICE = (80.0, 0.05, 0.5)
_ROUND = 0.7  # length of most rows
# Part of a wide table's scores that is kept if slopes are as long as noise; and more, a deviation that they are longer.
_TEMPERED = (0.35, 0.25)
# Effective sample size a column below which more than noise is taken off the slopes of a narrow table, and how many
# times as much at most: with probabilities, with margins.
_SURE, _LONGER = 4.5, (1.5, 2.5)
_CERTAIN = 30.0  # effective sample size below which less of a wide table's scores is kept
_SHY = 0.25  # and of several classes, if slopes are as long as noise
_BACK = 0.5  # of the rates' constant, at most, for what was taken off it
_STEPS = 1_000  # of one's own, beyond which slopes are not shrunk: how much noise they have takes long to find
_HINGED = 0.4  # of the noise of margins, which is pulled back where they are wide enough
_LEFT = 0.87  # of a record's residual, of several classes, before anything is learnt


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassDraws:
    """What is learnt of classes by draws beside a descent, and how slopes are shrunk after it; all public."""

    rates: float  # epsilon of how often each class occurs; 0 if that is not learnt
    choice: ClassChoice | None
    taken: float  # off the slopes, in parts of the noise that they are known to have
    tempered: bool = False  # whether slopes and constant are taken back together, in a wide table with probabilities
    most: float = 1.0  # that is kept of them

    @property
    def epsilon(self) -> float:
        """Of all of it."""
        return self.rates + (0.0 if self.choice is None else self.choice.epsilon)

    def releases(self) -> tuple[Release, ...]:
        """What comes after the descent."""
        return () if self.choice is None else (self.choice.release(),)

    def kept(
        self, problem: LinearModel, theta: Vector, start: Vector | None, solver: Solver, constant: float, meter: Meter
    ) -> Vector:
        """What is kept of θ, which was found from `start`: less of it where noise is much of it; and the choice."""
        if self.taken and isinstance(solver, DPSGD) and solver.steps <= _STEPS:
            theta = self._shrunk(theta, start, solver, meter)
        return theta if self.choice is None else self.choice.run(problem, theta, constant, meter, start=start)

    def _shrunk(self, theta: Vector, start: Vector | None, solver: DPSGD, meter: Meter) -> Vector:
        """θ with less of its slopes, and a constant that fits them; public."""
        if self.tempered:
            part = self.most * tempered_part(theta[:-1], solver, meter)
            found = part * theta
            if start is not None:
                found[-1] += _BACK * (1 - part) ** 2 * start[-1]
            return found
        part = kept_part(theta[:-1], self.taken, solver, meter)
        found = part * theta
        if start is not None:
            found[-1:] = start[-1:] + part * (theta[-1:] - start[-1:])
        return found


def kept_part(slopes: Vector, taken: float, solver: DPSGD, meter: Meter) -> float:
    """Which part of the slopes to keep for the least squared error, as James and Stein have it; public.

    What noise adds to each slope is known, but for how much the loss pulls it back: not at all for two classes, where
    gradients are cut so hard that only labels are left of them. In a direction that rows spread in by much, as in wide
    tables, slopes are surer than their length says; so no more than a few directions' noise is taken off.
    """
    lost = taken * min(float(len(slopes)), _FREE) * _outputs(slopes) * _noise(slopes, solver, meter) ** 2
    return max(0.0, 1 - lost / max(float(np.square(slopes).sum()), 2.0**-1000))


def tempered_part(slopes: Vector, solver: DPSGD, meter: Meter) -> float:
    """Which part of a wide table's scores to keep for honest probabilities; public.

    Descents on few records are as long as noise allows, whatever there is to learn, and clipped gradients carry the
    constant too far towards the commoner class. By how many standard deviations slopes are longer than noise says
    what there was to learn, and how far all of θ is taken back, by which hardly a prediction changes.
    """
    noise, size = _noise(slopes, solver, meter), len(slopes) * _outputs(slopes)
    beyond = (float(np.square(slopes).sum()) / (size * noise**2) - 1) * math.sqrt(size / 2)
    least = _TEMPERED[0] if _outputs(slopes) == 1 else _SHY
    return min(max(least + _TEMPERED[1] * beyond, least), 1.0)


def _outputs(slopes: Vector) -> int:
    return slopes.shape[1] if slopes.ndim == 2 else 1


def _noise(slopes: Vector, solver: DPSGD, meter: Meter) -> float:
    """The standard deviation of what noise adds to a slope; of several classes, residuals pull it back."""
    outputs, pull = _outputs(slopes), 0.0
    if outputs > 1:
        cut = min((solver.clip or 1.0) / _LEFT, 1.0)
        pull = cut * (1 - 1 / outputs) / outputs * _ROUND**2 / len(slopes)
    return slope_noise(solver, meter, pull=pull)


def seen_votes(epsilon: float, count: float, neighbours: Neighbours) -> float:
    """Records × epsilon, or as much as that is worth where a record is replaced."""
    return 2 * epsilon * count / sensitivity_factor(neighbours)


def lone_class(model: "PrivateLinearModel", size: "Size", count: float) -> ClassRates | ClassVote | None:
    """How the commonest class is learnt, if it is all that will be; by public facts."""
    several, seen = size.classes > 2, seen_votes(model.epsilon, count, model.neighbours)
    if size.classes > _MANY or seen >= _ALONE[several]:
        return None
    if several and (seen < _VOTED or not model._calibrates):
        return ClassVote(name="constant", classes=size.classes)
    return ClassRates(classes=size.classes, neighbours=model.neighbours)


def class_draws_for(
    model: "PrivateLinearModel",
    size: "Size",
    count: float,
    effective: float,
    centring: Centring | None,
    whitener: Whitener | None,
) -> ClassDraws | None:
    """What is drawn beside a descent on rows that are centred, and perhaps whitened; None where there is enough.

    Of two classes, where a vote is cheap, slopes are kept in part; of more, a draw says whether to keep them.
    """
    if model._task != "binary" or size.weighted or centring is None:
        return None
    whitened = whitener is not None
    most = min(effective / _CERTAIN, 1.0)
    narrow, seen = size.columns <= _NARROW, seen_votes(model.epsilon, count, model.neighbours)
    taken = (1.0 if model._calibrates else _HINGED) * (not whitened and not model.alpha)  # a penalty pulls back, too
    if size.classes == 2:
        if narrow:  # where a column hardly stands out, slopes that are longer than noise are mostly longer by chance
            each = effective / (size.columns + 1)
            taken *= min(max(_SURE / max(each, 2.0**-20), 1.0), _LONGER[not model._calibrates])
        rates = _part(_RATES[not narrow], model.epsilon, seen)
        tempered = not narrow and taken == 1
        return None if whitened else ClassDraws(rates=rates, choice=None, taken=taken, tempered=tempered, most=most)
    tempered = not narrow and taken == 1
    if size.classes > _MANY:
        shrinks = taken > 0 and (narrow or tempered)
        return ClassDraws(rates=0.0, choice=None, taken=taken, tempered=tempered, most=most) if shrinks else None
    if effective >= _KEPT:
        return None
    choice = ClassChoice(epsilon=_part(_CHOICE, model.epsilon, seen), classes=size.classes)
    rates = _part(_SEVERAL, model.epsilon, seen)
    return ClassDraws(rates=rates, choice=choice, taken=taken * (narrow or tempered), tempered=tempered)


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

    def _draw_constant(self, draw: Any, target: Any, ends: tuple[float, float] | None, meter: Meter) -> Vector:
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
