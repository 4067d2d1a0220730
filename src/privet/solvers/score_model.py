"""What noisy slopes of the logistic loss along a normal score tell of its right slope and intercept; all public."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from privet.arrays import Vector

_GRID = np.linspace(-7.0, 7.0, 281)
_MASS = np.exp(-np.square(_GRID) / 2)
_MASS /= _MASS.sum()
_WEIGHT = 0.7  # of the score beside the constant
_DISBELIEF = 0.15  # of what a look should have been, as no score is quite normal
_MOST = 12.0  # logits
_TURNS = 12
_NEAR = 0.15  # of a width: windows that differ by less are as good


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Window:
    """Rows (score, 1) of norm at most 1: the score about `centre` in units of `width`, cut to ±`long`, times a weight.

    Where labels are rare, nearly all that tells of a slope are the scores of the rare class, which are far from 0.
    """

    centre: float
    width: float
    long: float

    @classmethod
    def about(cls, point: Vector, *, told: float, long: float | None) -> "Window":
        """Where the loss bends at a slope and an intercept; the more can be `told` from noise, the less is cut."""
        bends = _bends(point)
        amount = max(float(bends.sum()), 1e-300)
        centre = float(bends @ _GRID) / amount
        width = math.sqrt(max(float(bends @ np.square(_GRID - centre)) / amount, 2.0**-12))
        if long is None:
            long = min(max(2.0 * (told * amount / 20.0) ** 0.25, 1.5), 8.0)
        return cls(centre=centre, width=width, long=long)

    def is_near(self, other: "Window") -> bool:
        """Whether the other one is hardly better."""
        wider, longer = other.width / self.width, other.long / self.long
        return abs(other.centre - self.centre) < _NEAR * self.width and all(
            abs(math.log(ratio)) < _NEAR for ratio in (wider, longer)
        )

    @property
    def reach(self) -> float:
        """The longest row before it is shortened."""
        return math.hypot(_WEIGHT * self.long, 1.0)

    @property
    def scale(self) -> float:
        """How long the score is in a row, a unit of it."""
        return _WEIGHT / (self.width * self.reach)

    def rows(self, score: Vector) -> Vector:
        """A row of each score. Private in, private out, number by number."""
        cut = np.clip((score - self.centre) / self.width, -self.long, self.long) * _WEIGHT
        return np.column_stack([cut, np.ones_like(cut)]) / self.reach

    def coefficients(self, point: Vector) -> Vector:
        """Of its rows, with which their predictions are slope · score + intercept."""
        slope, intercept = point
        return np.array([slope * self.width / _WEIGHT, slope * self.centre + intercept]) * self.reach


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Look:
    """One noisy gradient of the average loss on a window's rows, and at which slope and intercept it was taken."""

    window: Window
    point: Vector
    gradient: Vector
    noise: float

    def expected(self, right: Vector, weight: float) -> tuple[Vector, Vector]:
        """What it would be without noise if `right` were right, and its derivative by that."""
        return _expected(*self.known(weight), *_chances(right))

    def known(self, weight: float) -> tuple[Vector, Vector]:
        """What follows from the look alone: its rows, by their mass, and what is predicted of each."""
        rows = self.window.rows(_GRID)
        here = expit(rows @ self.window.coefficients(self.point))
        return rows * (_MASS * weight)[:, None], here


def _chances(right: Vector) -> tuple[Vector, Vector]:
    """The probability of the class at each score if `right` is right, and its derivative by that."""
    chances = expit(right[0] * _GRID + right[1])
    bends = chances * (1 - chances)
    return chances, np.column_stack([bends * _GRID, bends])


def _expected(rows: Vector, here: Vector, chances: Vector, slopes: Vector) -> tuple[Vector, Vector]:
    return (here - chances) @ rows, -(rows.T @ slopes)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Belief:
    """Slope and intercept by all looks and what was thought before, and how unsure the slope is by the looks alone."""

    point: Vector
    unsure: float


def believed(looks: list[Look], start: Vector, *, weight: float, pull: float, spreads: tuple[float, float]) -> Belief:
    """The likeliest slope and intercept.

    Before any look they are normal about `start`, with `spreads` of the slope and of the log odds of the mean
    probability. Gauss and Newton's iterations. A look counts less the further its point is from where average loss and
    penalty are least together, as there it hardly matters what scores are like: by `pull`, the penalty's second
    derivative, the loss's slope is known there. `weight` is what a record weighs on average.
    """
    at, odds = start.copy(), mean_odds(start)
    told, known = np.zeros((2, 2)), [(look, look.known(weight)) for look in looks]
    for _ in range(_TURNS):
        told, change = np.zeros((2, 2)), np.zeros(2)
        least = -pull * pulled(at, pull=pull, weight=weight)[0]
        chances = _chances(at)
        for look, fixed in known:
            expected, turn = _expected(*fixed, *chances)
            far = expected - np.array([least * look.window.scale, 0.0])
            variance = look.noise**2 + (_DISBELIEF * float(np.linalg.norm(far))) ** 2
            told += turn.T @ turn / variance
            change += turn.T @ (look.gradient - expected) / variance
        bends, mean = _bends(at), float(expit(mean_odds(at)))
        along = np.array([bends @ _GRID, bends.sum()]) / max(mean * (1 - mean), 1e-300)
        prior = np.outer(along, along) / spreads[1] ** 2 + np.diag([1 / spreads[0] ** 2, 1e-9])
        change += along * (odds - mean_odds(at)) / spreads[1] ** 2
        change[0] += (start[0] - at[0]) / spreads[0] ** 2
        step = np.linalg.solve(told + prior, change)
        at = at + step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))
        at = np.array([min(max(at[0], 0.0), _MOST), min(max(at[1], -2 * _MOST), 2 * _MOST)])
    doubt = np.linalg.inv(told + 1e-9 * np.eye(2))
    return Belief(point=at, unsure=math.sqrt(max(float(doubt[0, 0]), 0.0)))


def mean_odds(point: Vector) -> float:
    """The log odds of the mean probability."""
    return float(logit(np.clip(_MASS @ expit(point[0] * _GRID + point[1]), 1e-12, 1 - 1e-12)))


def with_slope(point: Vector, slope: float) -> Vector:
    """The same mean probability with another slope."""
    odds, intercept = mean_odds(point), float(point[1])
    for _ in range(_TURNS):
        now = np.array([slope, intercept])
        mean = float(expit(mean_odds(now)))
        rise = float(_bends(now).sum()) / max(mean * (1 - mean), 1e-300)
        intercept += min(max((odds - mean_odds(now)) / max(rise, 2.0**-10), -2.0), 2.0)
    return np.array([slope, intercept])


def pulled(right: Vector, *, pull: float, weight: float) -> Vector:
    """Where average loss and penalty are least together, if `right` is where the loss alone is."""
    at, target = right.copy(), expit(right[0] * _GRID + right[1])
    rows = np.column_stack([_GRID, np.ones_like(_GRID)])
    for _ in range(_TURNS if pull else 0):
        bends = _bends(at) * weight
        gradient = ((expit(rows @ at) - target) * _MASS * weight) @ rows + [pull * at[0], 0.0]
        step = np.linalg.solve((rows * bends[:, None]).T @ rows + np.diag([pull, 0.0]) + 1e-12 * np.eye(2), gradient)
        at = at - step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))
    return at


def _bends(point: Vector) -> Vector:
    chances = expit(point[0] * _GRID + point[1])
    return np.asarray(_MASS * chances * (1 - chances))
