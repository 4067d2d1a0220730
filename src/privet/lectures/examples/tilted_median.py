"""Why objective perturbation wants curvature: the median of two points. Razaviyayn, lecture 11, recap.

The median of 0 and 101 minimises |w| + |w − 101|, which is flat between the points: any slope, however small, sends
the minimum to an end. So a tilt of the objective hides nothing of *where* the ends are: with probability near 1/2 the
answer is the second record itself, to the last digit.

>>> round(far_point_comes_out(0.1, draws=20_000), 1)
0.5

A tilt steeper than the losses' own slopes, 2 here, sends the minimum to infinity; the exact law is Φ(2/s) − 1/2:

>>> round(far_point_comes_out(5.0, draws=20_000), 2), round(exact_chance(5.0), 2)
(0.16, 0.16)

So the library refuses a loss with a kink, and a noisy answer needs a smooth one, e.g. "huber", with a penalty.
"""

import numpy as np
from scipy.special import ndtr

from privet.losses import AbsoluteLoss
from privet.noise import rounded_gaussian
from privet.randomness import fixed_seed_invalidates_guarantee

POINTS = (0.0, 101.0)


def slopes() -> tuple[float, float, float]:
    """Slopes of |w| + |w − 101| left of 0, between the points, and right of 101.

    >>> slopes()
    (-2.0, 0.0, 2.0)
    """
    slope = AbsoluteLoss().derivative
    left, between, right = (float(slope(np.full(2, w), np.array(POINTS)).sum()) for w in (-1.0, 50.0, 200.0))
    return left, between, right


def far_point_comes_out(spread: float, *, draws: int, seed: int = 82) -> float:
    """How often the minimum of the objective, tilted by Gaussian noise of this standard deviation, is 101 exactly.

    >>> 0.45 < far_point_comes_out(0.5, draws=2_000) < 0.55
    True
    """
    _, between, right = slopes()
    tilt = rounded_gaussian(fixed_seed_invalidates_guarantee(seed), spread * 2**20, (draws,)) / 2.0**20
    return float(((between + tilt < 0) & (right + tilt > 0)).mean())  # falls up to 101, rises from there


def exact_chance(spread: float) -> float:
    """Φ(2/s) − 1/2, the chance that −2 < tilt < 0.

    >>> round(exact_chance(1.0), 4)
    0.4772
    """
    return float(ndtr(slopes()[2] / spread)) - 0.5
