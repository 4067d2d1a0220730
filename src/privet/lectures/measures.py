"""What many checks measure: how far apart, how many standard errors off, whether refused; and how to list numbers."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet.accounting.pairs.pair import Pair
from privet.errors import InvalidParameter

Vector = NDArray[np.float64]


def apart(first: ArrayLike, second: ArrayLike = 0.0) -> float:
    """The largest difference of two entries in the same place.

    >>> apart([1.0, 5.0], [1.5, 3.0])
    2.0
    """
    return float(np.abs(np.asarray(first) - second).max())


def longest(rows: ArrayLike) -> float:
    """The l2 norm of the longest row.

    >>> longest([[3.0, 4.0], [1.0, 0.0]])
    5.0
    """
    return float(np.linalg.norm(rows, axis=1).max())


def measured_noise(drawn: Vector, claimed: float) -> tuple[float, float]:
    """The root mean square of normal draws about 0, and how many standard errors it is from the one claimed.

    >>> measured_noise(np.array([3.0, -3.0]), 2.0)
    (3.0, 1.0)
    """
    found = float(np.sqrt(np.mean(drawn**2)))
    return found, abs(found / claimed - 1.0) * math.sqrt(2 * drawn.size)


def kolmogorov(sample: Vector, law: Pair) -> float:
    """The distance of a sample from the law of a privacy loss, times the root of the sample's size.

    By chance it is above 2.7 less than once in 10⁶ times.

    >>> from privet.accounting.pairs.elementary import GaussianPair
    >>> kolmogorov(np.array([0.5]), GaussianPair(1.0))
    0.5
    """
    ordered, steps = np.sort(sample), np.arange(sample.size + 1) / sample.size
    below = np.asarray(law.below(ordered)[0])
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max())) * math.sqrt(sample.size)


def refuses(solver: Callable[..., Any], *given: Any, **settings: Any) -> bool:
    """Whether the library refuses such a call, with the error that says why.

    >>> from privet.privacy import Budget
    >>> refuses(Budget, epsilon=-1.0, delta=1e-5), refuses(Budget, epsilon=1.0, delta=1e-5)
    (True, False)
    """
    try:
        solver(*given, **settings)
    except InvalidParameter:
        return True
    return False


def listed(numbers: Iterable[float], form: str) -> str:
    """Numbers in a row, as a sentence has them.

    >>> listed([0.5, 1.0], ".2f")
    '0.50, 1.00'
    """
    return ", ".join(format(number, form) for number in numbers)
