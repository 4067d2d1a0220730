"""L2 regularisation: a function of θ alone, so it costs no privacy and stays outside the clip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privet.losses.base import Array, check_number

__all__ = ["Ridge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ridge:
    """The penalty (strength/2) ‖θ‖², added once to the *average* loss, not once a record.

    Its gradient is added after the noise; clipped with the records it would eat into their share.
    Theorem: strength · θ is its gradient; it makes a convex average loss `strength`-strongly convex.

    Parameters
    ----------
    strength : at least 0, loss units per squared unit of θ

    Examples
    --------
    >>> Ridge(strength=0.1).value([3.0, 4.0]), Ridge(strength=0.1).gradient([3.0, 4.0])
    (1.25, array([0.3, 0.4]))
    """

    strength: float

    def __post_init__(self) -> None:
        check_number("strength", self.strength, zero=True)

    @np.errstate(all="ignore")
    def value(self, theta: ArrayLike) -> float:
        """(strength/2) ‖θ‖², all entries of θ counted, whatever its shape."""
        return float(self.strength) / 2.0 * float(np.sum(np.square(np.asarray(theta, dtype=np.float64))))

    @np.errstate(all="ignore")
    def gradient(self, theta: ArrayLike) -> Array:
        """strength · θ, of the shape of θ."""
        return float(self.strength) * np.asarray(theta, dtype=np.float64)
