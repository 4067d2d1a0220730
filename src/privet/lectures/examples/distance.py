"""Does every step of descent come nearer to the minimum? Wu, lecture 13, exercise 2.5. No.

On |w| the gradient has length 1 however near the minimum is, so a step of 1 from 0.1 lands at −0.9:

>>> distances(0.1, step_size=1.0, steps=4).round(12).tolist()
[0.1, 0.9, 0.1, 0.9, 0.1]

Claim 2.4 says when a step does come nearer: |w' − w*|² <= |w − w*|² − 2η(L(w) − L*) + η²|g|², which is less than
before if η|g|² < 2(L(w) − L*). On |w| that is η < 2|w|, and it is exact: at η = 2|w| the step lands on the other side,
as far away as it was.

>>> comes_nearer(1.0, step_size=1.99), comes_nearer(1.0, step_size=2.0)
(True, False)

What does go down is the average of L over the path, and that is what theorem 2.1 bounds. A path may also end where it
cannot come nearer at all, but about η/2 away on average:

>>> round(float(distances(0.1, step_size=0.4, steps=1000).mean()), 2)
0.2
"""

import numpy as np
from numpy.typing import NDArray

from privet.lectures.toy_problems import average_loss, pointwise
from privet.losses import AbsoluteLoss
from privet.solvers.plain_descent import projected_gradient_descent

_LOSS = pointwise(AbsoluteLoss(), [[1.0]], [0.0])  # |w|, of one public record


def distances(start: float, *, step_size: float, steps: int) -> NDArray[np.float64]:
    """|w_t − w*| for t = 0 to `steps`, descending on |w|.

    >>> distances(1.0, step_size=0.25, steps=4)
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    """
    path = projected_gradient_descent(
        _LOSS, steps=steps, step_size=step_size, release="all", start=np.array([start], dtype=np.float64)
    )
    return np.asarray(np.abs(np.asarray(path.points))[:, 0], dtype=np.float64)


def comes_nearer(start: float, *, step_size: float) -> bool:
    """Whether one step on |w| does (by more than rounding).

    >>> comes_nearer(0.1, step_size=1.0)
    False
    """
    before, after = distances(start, step_size=step_size, steps=1)
    return bool(after < before * (1 - 1e-12))


def short_enough(start: float, *, step_size: float, factor: float = 2.0) -> bool:
    """Whether η|g|² < factor · (L(w) − L*), claim 2.4's condition for factor 2, clear of rounding.

    >>> short_enough(1.0, step_size=1.9), short_enough(1.0, step_size=2.1)
    (True, False)
    """
    w = np.array([start])
    gradient = _LOSS.plain_gradient(w)
    return step_size * float(gradient @ gradient) < factor * average_loss(_LOSS, w) * (1 - 1e-9)
