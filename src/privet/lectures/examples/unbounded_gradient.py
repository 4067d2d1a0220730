"""Why noisy descent is not private without assumptions: Brown, lecture 13, exercise 2.1.

One step from 0 on (⟨x, θ⟩ − y)² releases the average gradient plus N(0, σ²). A record (1, y) has gradient −2y there,
so replacing a label of 0 by y moves the average by 2|y|/n. The two outputs are normal with the same spread, and μ =
2|y|/(nσ) apart. Whatever σ is, a larger y makes μ larger: no noise is enough for all labels. A bound on the
gradients, by clipping, by bounded data or by fiat, is what stops it.

>>> for size in (10, 1_000, 100_000):
...     print(f"{size:>7,}  free {outlier_epsilon(size):>12,.2f}   clipped {outlier_epsilon(size, clip=1.0):.2f}")
     10  free         0.73   clipped 0.03
  1,000  free       284.39   clipped 0.03
100,000  free 2,008,528.78   clipped 0.03
"""

import math

import numpy as np

from privet.accounting.theorems.gaussian_profile import epsilon_bounds
from privet.clipping import Clip
from privet.lectures.toy_problems import pointwise
from privet.losses import SquaredLoss


def outlier_move(size: float, *, n: int = 100, clip: float = math.inf) -> float:
    """How far the average gradient at 0 moves when one of n labels of 0 becomes `size`; gradients clipped at `clip`.

    >>> outlier_move(50.0), round(outlier_move(50.0, clip=1.0), 6)
    (1.0, 0.01)
    """
    averages = []
    for label in (0.0, size):
        problem = pointwise(SquaredLoss(), np.ones((n, 1)), np.array([label] + [0.0] * (n - 1)))
        if math.isinf(clip):
            averages.append(problem.plain_gradient(np.zeros(1)))
        else:
            averages.append(problem.gradient_sum(np.zeros(1), rule=Clip(clip=clip), max_records=n).value / n)
    return float(np.linalg.norm(averages[1] - averages[0]))


def outlier_epsilon(
    size: float, *, n: int = 100, noise_stddev: float = 1.0, delta: float = 1e-5, clip: float = math.inf
) -> float:
    """The epsilon that one noisy step really costs whoever's label is `size`: that of μ = move ÷ noise.

    >>> outlier_epsilon(1_000.0) > 100 * outlier_epsilon(10.0)
    True
    """
    return epsilon_bounds(outlier_move(size, n=n, clip=clip) / noise_stddev, delta)[1]
