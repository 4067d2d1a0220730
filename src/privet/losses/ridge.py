"""L2 regularisation: a function of θ alone, so it costs no privacy and stays outside the clip."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.losses.loss import Array, check_number


@dataclass(frozen=True, kw_only=True, slots=True)
class Ridge:
    """The penalty (alpha/2) ‖θ‖², added once to the *average* loss, not once a record.

    Its gradient is added after the noise; clipped with the records it would eat into their share.
    Theorem: alpha · θ is its gradient; it makes a convex average loss `alpha`-strongly convex.

    Parameters
    ----------
    alpha : at least 0, loss units per squared unit of θ

    Examples
    --------
    >>> Ridge(alpha=0.1).value([3.0, 4.0]), Ridge(alpha=0.1).gradient([3.0, 4.0])
    (1.25, array([0.3, 0.4]))
    """

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, zero=True)

    @np.errstate(all="ignore")
    def value(self, theta: ArrayLike) -> float:
        """(alpha/2) ‖θ‖², all entries of θ counted, whatever its shape."""
        return float(self.alpha) / 2.0 * float(np.sum(np.square(np.asarray(theta, dtype=np.float64))))

    @np.errstate(all="ignore")
    def gradient(self, theta: ArrayLike) -> Array:
        """alpha · θ, of the shape of θ."""
        return float(self.alpha) * np.asarray(theta, dtype=np.float64)
