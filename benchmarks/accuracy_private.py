"""What a constant scores that is learnt privately with all of the budget: what few records and little budget allow.

Each mechanism is drawn many times, with plain floats as nothing is released; the best of them on average is the one to
compare with. Which one that is nobody would know beforehand, so that it is a little better than what can be had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from accuracy_tables import Table
from scipy.special import xlogy

from privet.estimators import PoissonRegressor, QuantileRegressor
from privet.plan.plan import whole_noise
from privet.privacy import Budget, Neighbours, sensitivity_factor
from privet.solvers.constant_draws import (
    mean_shares,
    quantile_points,
    quantile_scores,
)
from privet.solvers.interval_draws import interval_scores, intervals

PREFIX = "private "
DRAWS = 10
_ONE = float(1 << 20)  # units of a score that are one record
_RATES = 2.0 ** np.linspace(-6, 20, 417)
Ends = tuple[float, float]


def private_constants(
    model: Any, table: Table, epsilon: float, neighbours: Neighbours, ends: Ends | None
) -> dict[str, float]:
    """The mean score of each mechanism's constant, by name; `ends` are the declared range of the target, if any."""
    rng, factor = np.random.default_rng(), sensitivity_factor(neighbours)
    if table.classes:
        counts = np.bincount(table.y.astype(int), minlength=table.classes)
        noisy = counts + rng.exponential(factor / epsilon, size=(DRAWS, table.classes))  # permute-and-flip
        rates = np.bincount(table.y_test.astype(int), minlength=table.classes) / len(table.y_test)
        return {PREFIX + "vote": float(rates[noisy.argmax(axis=1)].mean())}
    draw = _Draws(table.y.astype(float), epsilon, factor, rng)
    quantile = isinstance(model, QuantileRegressor)
    level = float(model.quantile) if quantile else 0.5
    insides = [draw.interval(ends, 0.5) for _ in range(DRAWS)]
    found = {"interval and quantile": [draw.quantiles(each, level, 0.5, 1)[0] for each in insides]}
    if isinstance(model, PoissonRegressor):
        found["rate"] = draw.rates(ends)
    if not quantile:
        found["interval and mean"] = [draw.mean(each, 0.5) for each in insides]
    if ends is not None:
        found["quantile"] = draw.quantiles(ends, level, 1.0, DRAWS)
    if ends is not None and not quantile:
        found["mean"] = [draw.mean(ends, 1.0) for _ in range(DRAWS)]
        noise = whole_noise(Budget(epsilon=epsilon, delta=table.delta), neighbours) * (ends[1] - ends[0]) / 2
        noisy = table.y.mean() + noise / len(table.y) * rng.standard_normal(DRAWS)
        found["Gaussian mean"] = np.clip(noisy, *ends).tolist()
    score = _score(model, table.y_test.astype(float))
    return {PREFIX + name: float(np.mean([score(each) for each in constants])) for name, constants in found.items()}


def best_private(row: dict[str, Any]) -> float | None:
    """The best of the mechanisms on average over the runs of a row; None if none was measured."""
    return max((value for name, value in row.items() if name.startswith(PREFIX)), default=None)


class _Draws:
    """Constants of a target, each with some part of epsilon."""

    def __init__(self, y: np.ndarray, epsilon: float, factor: int, rng: np.random.Generator) -> None:
        self.y, self.epsilon, self.factor, self.rng = y, epsilon, factor, rng

    def interval(self, ends: Ends | None, part: float) -> Ends:
        """One that holds half, and a width more on either side."""
        room, (low, high) = intervals(ends), ends or (-np.inf, np.inf)
        scores = interval_scores(np.clip(self.y, low, high), room, len(self.y))
        (place,) = self._chosen(scores, part / (self.factor * _ONE), room.dislike, 1)
        start, end = room.lows[place], room.highs[place]
        return max(float(2 * start - end), low), min(float(2 * end - start), high)

    def quantiles(self, ends: Ends, level: float, part: float, size: int) -> list[float]:
        points, dislike = quantile_points(*ends)
        scores, most = quantile_scores(np.clip(self.y, *ends), points, level)
        return [float(points[each]) for each in self._chosen(scores, part / self._width(most), dislike, size)]

    def mean(self, ends: Ends, part: float) -> float:
        """With Laplace noise: a record moves the sum by half the range, by all of it if replaced."""
        scale = self.factor * (ends[1] - ends[0]) / 2 / (part * self.epsilon * len(self.y))
        return float(np.clip(np.clip(self.y, *ends).mean() + self.rng.laplace(scale=scale), *ends))

    def rates(self, ends: Ends | None) -> list[float]:
        """Mean counts by how far the sum of all is from them, as `MeanDraw` has it."""
        rates = _RATES if ends is None else _RATES[np.log(_RATES) <= np.log(ends[1])]
        scores = [abs(float(mean_shares(self.y, rate).sum())) for rate in rates]
        return [float(rates[each]) for each in self._chosen(scores, 0.5 / _ONE, 1.25 * np.abs(np.log(rates)), DRAWS)]

    def _width(self, most: float) -> float:
        return 2 * (_ONE if self.factor == 2 else most)

    def _chosen(self, scores: Any, rate: float, dislike: Any, size: int) -> np.ndarray:
        logs = -self.epsilon * rate * np.asarray(scores, dtype=float) - (np.asarray(dislike) if len(dislike) else 0.0)
        weights = np.exp(logs - logs.max())
        return self.rng.choice(len(logs), size=size, p=weights / weights.sum())


def _score(model: Any, y: np.ndarray) -> Callable[[float], float]:
    """The estimator's own score of a constant on these targets."""
    if isinstance(model, PoissonRegressor):

        def lost(c: float) -> float:
            return float(2 * np.mean(xlogy(y, y / c) - y + c))

        least = lost(float(y.mean()))
    elif isinstance(model, QuantileRegressor):
        level = model.quantile

        def lost(c: float) -> float:
            return float(np.mean(np.maximum(level * (y - c), (level - 1) * (y - c))))

        least = lost(float(np.quantile(y, level)))
    else:

        def lost(c: float) -> float:
            return float(np.mean(np.square(y - c)))

        least = lost(float(y.mean()))
    return lambda c: 1 - lost(max(c, 2.0**-20) if isinstance(model, PoissonRegressor) else c) / least
