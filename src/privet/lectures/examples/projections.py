"""Three projections: Wu, lecture 13, exercise 2.3. Which point of the set is nearest to v?

The l2 ball of radius r: among points at distance r from 0 the nearest lies on the ray to v, so v is scaled down.
The cube [−r, r]^d: |w − v|² is a sum over coordinates, and so is the constraint; each is moved to the nearer end.
The l1 ball of radius r: at the minimum of ½|w − v|² + t(|w|₁ − r) each coordinate is pulled towards 0 by one and the
same t, and those shorter than t become 0 (soft thresholding); t is what leaves a sum of r. It is found by bisection
here, to be read; the library finds it by sorting.

>>> from privet.geometry import box, l1_ball, l2_ball
>>> v = [3.0, 1.0, -0.5]
>>> on_ball(v, 2.0).round(3), on_cube(v, 2.0), on_cross(v, 2.0).round(6)
(array([ 1.874,  0.625, -0.312]), array([ 2. ,  1. , -0.5]), array([ 2.,  0., -0.]))
>>> all(np.allclose(hand(v, 2.0), space.project(np.array(v))) for hand, space in (
...     (on_ball, l2_ball(radius=2.0)), (on_cube, box(low=-2.0, high=2.0, size=3)), (on_cross, l1_ball(radius=2.0))))
True
"""

import numpy as np
from numpy.typing import ArrayLike

from privet.lectures.measures import Vector


def on_ball(v: ArrayLike, radius: float) -> Vector:
    """The nearest point of the l2 ball about 0: v · min(1, radius ÷ |v|).

    >>> on_ball([3.0, 4.0], 1.0)
    array([0.6, 0.8])
    """
    w = np.asarray(v, dtype=np.float64)
    return w / max(1.0, float(np.linalg.norm(w)) / radius)


def on_cube(v: ArrayLike, radius: float) -> Vector:
    """The nearest point of the cube [−radius, radius]^d: each coordinate clipped.

    >>> on_cube([3.0, -0.5], 1.0)
    array([ 1. , -0.5])
    """
    return np.clip(np.asarray(v, dtype=np.float64), -radius, radius)


def threshold(v: ArrayLike, radius: float) -> float:
    """By how much each |v_j| must be shortened, at most to 0, for their sum to be `radius`; 0 if it is no more already.

    >>> round(threshold([3.0, 2.0], 1.0), 12)
    2.0
    """
    sizes = np.abs(np.asarray(v, dtype=np.float64))
    low, high = 0.0, float(sizes.max())
    if sizes.sum() <= radius:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(sizes - middle, 0.0).sum() > radius else (low, middle)
    return high


def on_cross(v: ArrayLike, radius: float) -> Vector:
    """The nearest point of the l1 ball about 0: soft thresholding.

    >>> on_cross([3.0, 2.5], 1.0).round(12)
    array([0.75, 0.25])
    """
    w = np.asarray(v, dtype=np.float64)
    return np.asarray(np.sign(w) * np.maximum(np.abs(w) - threshold(w, radius), 0.0))


def is_nearest(point: ArrayLike, v: ArrayLike, others: ArrayLike) -> bool:
    """Whether no other point of a convex set, by its corners `others`, is nearer to v: no angle at `point` is acute.

    Theorem: w is the projection of v on a convex set if and only if ⟨u − w, v − w⟩ <= 0 for each u of it. With u a
    minimiser this is lemma 2.2: projecting does not move a point away from it.

    >>> corners = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> is_nearest([0.75, 0.25], [3.0, 2.5], corners), is_nearest([1.0, 0.0], [3.0, 2.5], corners)
    (True, False)
    """
    w = np.asarray(point, dtype=np.float64)
    return bool(((np.asarray(others, dtype=np.float64) - w) @ (np.asarray(v, dtype=np.float64) - w)).max() <= 1e-12)
