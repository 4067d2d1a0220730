"""Clip before averaging, or after? (Brown, lecture 4, section 3.1)

The mean of n numbers that should lie in [0, 1], with Laplace noise for (ε, 0)-privacy, one record replaced. One can
clip each number and average, or average and clip the result:

| way | one record moves it by | noise | what goes wrong |
|---|---|---|---|
| each to [0, 1], then average | 1/n | Lap(1/(εn)) | nothing |
| average, then to [0, 1] | 1 | Lap(1/ε) | the noise is as large as what is measured |
| average, then to [0, 1/n] | 1/n | Lap(1/(εn)) | the answer is at most 1/n, whatever the data |

>>> found = clip_before_or_after(n=100)
>>> f"{found.before:.3f} {found.after:.3f} {found.after_tightly:.3f}"
'0.010 1.000 0.790'
"""

import math
from dataclasses import dataclass

import numpy as np

from privet.clipping import Clip
from privet.sums import record_sum


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanErrors:
    """The expected error of each way, and how far one record was seen to move each, at worst."""

    before: float
    after: float
    after_tightly: float
    moved_before: float
    moved_after: float
    moved_after_tightly: float


def clip_before_or_after(n: int, epsilon: float = 1.0, share_of_ones: float = 0.8) -> MeanErrors:
    """Return the errors of the three ways on a table of which `share_of_ones` are 1 and the others 0.

    Errors are exact, not simulated: for bias b and Laplace noise of scale s, E|b + noise| = |b| + s e^{−|b|/s}. The
    moves are found by replacing a record by one of any size.

    >>> found = clip_before_or_after(n=10)
    >>> [round(moved, 6) for moved in (found.moved_before, found.moved_after, found.moved_after_tightly)]
    [0.1, 1.0, 0.1]
    """
    table = np.zeros(n)
    table[: round(share_of_ones * n)] = 1.0
    truth = float(table.mean())

    def moved(high: float) -> float:
        """The most that mean-then-clip to [0, high] moves when a record of any size is replaced."""
        ends = []
        for record in (-1e6, 1e6):
            other = table.copy()
            other[0] = record
            ends.append(min(max(float(other.mean()), 0.0), high))
        return ends[1] - ends[0]

    def clipped_mean(record: float) -> float:
        other = table.copy()
        other[0] = min(max(record, 0.0), 1.0)  # each in [0, 1] first; the library then sums exactly
        return float(record_sum(other[:, None], rule=Clip(clip=1.0)).value[0]) / n

    return MeanErrors(
        before=_error(0.0, 1.0 / (epsilon * n)),
        after=_error(0.0, 1.0 / epsilon),
        after_tightly=_error(truth - min(truth, 1.0 / n), 1.0 / (epsilon * n)),
        moved_before=clipped_mean(1e6) - clipped_mean(-1e6),
        moved_after=moved(1.0),
        moved_after_tightly=moved(1.0 / n),
    )


def _error(bias: float, scale: float) -> float:
    return bias + scale * math.exp(-bias / scale)
