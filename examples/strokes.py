"""Pictures of random pen strokes: what handwriting looks like before anybody has seen any.

A strokes' picture knows no digit and no record. What is measured on such pictures, such as how features vary together,
is public, and features of handwriting can be put on a good scale by it at no cost in privacy.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

SIDE, INK = 28, 20  # pixels of a picture, and of the square that the ink fills, as the makers of MNIST say it was made
POINTS = 40  # along a stroke


def strokes(count: int, *, seed: int) -> NDArray[np.uint8]:
    """Pictures (count, 28, 28) of one to three smooth strokes of a round pen, centred; the same for the same seed.

    Examples
    --------
    >>> some = strokes(100, seed=0)
    >>> some.shape, some.min(), some.max()
    ((100, 28, 28), np.uint8(0), np.uint8(255))
    >>> bool(0.1 < (some > 0).mean() < 0.3)  # as thin as writing
    True
    """
    random = np.random.default_rng(seed)
    return np.stack([_picture(random) for _ in range(count)])


def _picture(random: np.random.Generator) -> NDArray[np.uint8]:
    path = np.concatenate(
        [_curve(random.uniform(size=(random.integers(3, 6), 2))) for _ in range(random.integers(1, 4))]
    )
    path = (path - path.min(0)) / max(float(np.ptp(path, axis=0).max()), 1e-3) * (INK - 1)
    path += SIDE / 2 - path.mean(0)
    middles = np.arange(SIDE) + 0.5
    squared = (middles[:, None, None] - path[:, 1]) ** 2 + (middles[None, :, None] - path[:, 0]) ** 2
    pen = random.uniform(0.7, 1.5)
    return np.asarray(np.clip(255 * (pen + 0.7 - np.sqrt(squared.min(-1))), 0, 255).astype(np.uint8))


def _curve(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bézier's curve of the corners, (POINTS, 2)."""
    t, degree = np.linspace(0, 1, POINTS)[:, None], len(corners) - 1
    k = np.arange(degree + 1)
    return np.asarray((np.array([comb(degree, j) for j in k]) * t**k * (1 - t) ** (degree - k)) @ corners)
