"""Waves along the order of columns: where neighbouring columns go together, as pixels and hours do, slow ones matter.

Of tables so wide that second moments drown in noise, the mean square along each of as many public waves still stands
out: it is one number a column, of a length of at most 1 a record. Columns in no particular order have as much of each.
"""

import math

import numpy as np

from privet.arrays import Vector

_SURELY = 2.0  # standard deviations of noise that is not believed
_MORE = 1.4  # mean square of what stands out, for noise alone 1: columns in no order hardly ever reach it
_SLOW = 4.0  # times the average that the strongest wave has at least, for waves to be worth the turn


def waves(columns: int) -> Vector:
    """Orthonormal waves of Hartley (1942), one a column of the matrix: (cos + sin)(2π j f ÷ columns) ÷ √columns.

    Waves f and columns − f have one frequency. An image whose rows stand one behind another has its waves here, too:
    across it they are fast, down it slow.

    Examples
    --------
    >>> np.allclose(waves(5) @ waves(5).T, np.eye(5))
    True
    """
    places = np.arange(columns)
    angles = (2 * math.pi / columns) * (np.outer(places, places) % columns)
    return np.asarray((np.cos(angles) + np.sin(angles)) / math.sqrt(columns))


def weights(squares: Vector, noise: float) -> Vector:
    """How much of each wave is kept, at most 1: by the root of its mean square, as far as that stands out.

    `squares` are noisy means of squares along `waves`, each with noise of that standard deviation. What does not stand
    out of the noise above their average counts as the average; all are 1 where they might all be as large, or nearly
    are. Post-processing.

    Examples
    --------
    >>> weights(np.array([16.0, 0, 0, 0, 0, 0, 0, 0]), 0.1).round(2).tolist()
    [1.0, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5, 0.7]
    >>> weights(np.array([1.1, 0.9, 1.0, 1.0]), 0.5).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    average = float(squares.mean())
    if average <= 0:
        return np.ones_like(squares)
    both = (squares + np.roll(squares[::-1], 1)) / 2
    smooth = (np.roll(both, 1) + 2 * both + np.roll(both, -1)) / 4
    unsure = noise * math.sqrt(0.5 * 0.375)
    out = smooth - average
    if out.max() < (_SLOW - 1) * average or np.square(out).mean() < _MORE * unsure**2:
        return np.ones_like(squares)
    believed = average + np.maximum(out - _SURELY * unsure, 0.0)
    return np.asarray(np.sqrt(believed / believed.max()))
