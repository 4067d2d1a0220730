"""The least noise at which a planned run meets its budget, looked for once: folds and searches ask again."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from privet.accounting import Event, calibrate, epsilon
from privet.privacy import Budget, Neighbours


def least_scale(
    run: Callable[[float], Event], budget: Budget, neighbours: Neighbours, *, guess: float = math.nan
) -> float:
    """The least scale at which `run` meets `budget`, on the safe side.

    Promise: run(scale) costs at most budget.epsilon at budget.delta. This is asked of the very run, whether the scale
    was guessed, is known from an earlier call, or is new.
    Assumes: noise multipliers of `run` are the scale times a constant, or constant. Then two of its runs tell which
    family it is, and whoever asks for the same one again, as the folds of a cross-validation do, gets what was found.

    Parameters
    ----------
    run : from a scale to a run
    budget, neighbours : what it may cost, and under which relation
    guess : a scale that meets the budget closely if any of a known form does; NaN for none

    Examples
    --------
    >>> from privet.accounting import Gaussian
    >>> from privet.privacy import Budget
    >>> scale = least_scale(lambda s: Gaussian(noise_multiplier=s) * 9, Budget(epsilon=1, delta=1e-6), "zero_out")
    >>> round(scale, 3)
    12.674
    """
    found = _found(run(1.0), run(2.0), budget, neighbours)
    scale = found[0] if found else guess
    asked: dict[str, Any] = {"delta": budget.delta, "neighbours": neighbours}
    if math.isnan(scale) or epsilon(run(scale), **asked) > budget.epsilon:
        scale = calibrate(run, epsilon=budget.epsilon, **asked)
    found[:] = [scale]
    return scale


@lru_cache(maxsize=256)
def _found(one: Event, two: Event, budget: Budget, neighbours: Neighbours) -> list[float]:
    """Where the scale of a family is kept, empty at first."""
    return []
