"""Mean and standard deviation of bounded columns, learnt privately."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.arrays import IntArray, Vector
from privet.data.cells import Numbers
from privet.data.tables import read
from privet.plan import Meter, MomentSums, Plan, Release
from privet.preprocessing.encoding import ends_of
from privet.preprocessing.ranges import check_noise, chosen_columns
from privet.preprocessing.schema import Number
from privet.privacy import Neighbours
from privet.randomness import Random, why_invalid

_MOMENTS = "moments"

_GRID = 16  # a value in [-1, 1] is a whole number of 2^-16; its square of 2^-32


@dataclass(frozen=True, kw_only=True, slots=True)
class Moments:
    """Means and standard deviations that may be shown, in the columns' own units, and the plan of their release.

    `ranges` are the public ranges they were computed within; `invalidated` is True if the noise came from a fixed seed.
    """

    mean: dict[str, float]
    stddev: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    plan: Plan
    invalidated: bool

    def standardised(self, name: str, *, deviations: float = 3.0) -> Number:
        """The column with the range mean ± `deviations` × stddev, within its public range; post-processing."""
        low, high = self.ranges[name]
        reach = deviations * self.stddev[name]
        return Number(low=max(low, self.mean[name] - reach), high=min(high, self.mean[name] + reach))


def private_moments(
    table: Any,
    *,
    ranges: Mapping[str, tuple[float, float]],
    noise_multiplier: float,
    neighbours: Neighbours = "replace_one",
    random: Random | None = None,
) -> Moments:
    """Mean and standard deviation of each column's values, each clipped to its public range.

    With u the value scaled to [-1, 1] and rounded to 2^-16, each column adds (1, u, u² - 1/2); one release gives the
    noisy number of values, their sum and their squares. Values that are missing or bad add nothing.

    Promise: one Gaussian release of `noise_multiplier`; the event is for `neighbours` alone.
    Theorem: docs/proofs/preprocessing.md, section 3.
    Edges: where the noisy number of values is within four standard deviations of none, the answer is the middle of the
    range and the deviation of the uniform law; a deviation is never below what the noise could hide.

    Examples
    --------
    >>> table = {"age": [20 + i % 40 for i in range(10_000)]}
    >>> found = private_moments(table, ranges={"age": (0, 120)}, noise_multiplier=10.0)
    >>> abs(found.mean["age"] - 39.5) < 2, abs(found.stddev["age"] - 11.5) < 6
    (True, True)
    >>> found.plan.event
    Gaussian(noise_multiplier=10.0).under('replace_one')
    """
    names = chosen_columns(list(ranges))
    bounds = {name: Number(low=ranges[name][0], high=ranges[name][1]) for name in names}
    release = Release(
        name=_MOMENTS,
        of="1, u and u² of each scaled value u",
        bound=MomentSums(columns=len(names)),
        noise_multiplier=check_noise(noise_multiplier),
        size=3 * len(names),
    )
    plan = Plan(releases=(release,), neighbours=neighbours)
    meter = Meter(plan, random=random)
    columns = read(table, {name: Numbers() for name in names})
    meter.open(_MOMENTS, count=len(columns[names[0]]))
    sums = np.stack([_sums(columns[name], bounds[name]) for name in names])
    noisy = meter.noisy_counts(_MOMENTS, sums, unit=2.0 ** (-2 * _GRID))
    meter.finish()
    stddev = meter.noise_stddev(_MOMENTS)
    found = {name: _estimates(part, bounds[name], stddev) for name, part in zip(names, noisy, strict=True)}
    return Moments(
        mean={name: mean for name, (mean, _) in found.items()},
        stddev={name: deviation for name, (_, deviation) in found.items()},
        ranges={name: (float(ranges[name][0]), float(ranges[name][1])) for name in names},
        plan=plan,
        invalidated=bool(why_invalid(meter.random)),
    )


def _sums(values: Vector, bound: Number) -> IntArray:
    """Sums of (1, u, u² - 1/2), in units of 2^-32, of the values that are there."""
    low, high = ends_of(bound)
    inside = np.clip(values[~np.isnan(values)], low, high)
    units = np.clip((inside - (low / 2 + high / 2)) / (high / 2 - low / 2), -1.0, 1.0)
    whole = np.trunc(units * 2.0**_GRID).astype(np.int64)
    half = 1 << (2 * _GRID - 1)
    return np.array([len(whole) << (2 * _GRID), int(whole.sum()) << _GRID, int((whole * whole - half).sum())])


def _estimates(noisy: Vector, bound: Number, noise_stddev: float) -> tuple[float, float]:
    low, high = ends_of(bound)
    count, total, squares = (float(value) for value in noisy)
    half = high / 2 - low / 2
    if count < 4 * noise_stddev:
        return low / 2 + high / 2, half / math.sqrt(3.0)
    mean = min(max(total / count, -1.0), 1.0)
    hidden = noise_stddev / count
    variance = min(max(squares / count + 0.5 - mean**2, hidden, 2.0**-_GRID), 1.0)
    centre = min(max(mean * half + (low / 2 + high / 2), low), high)
    return centre, half * math.sqrt(variance)
