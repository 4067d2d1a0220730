"""What an accountant needs to know of one step in one direction."""

from typing import Any, Protocol

from numpy.typing import NDArray

# NumPy's stubs lose track of the dtype in mixed arithmetic; the names still tell the reader what is meant.
Reals = NDArray[Any]
Complexes = NDArray[Any]

UNIT = 2.0**-53
"""Unit roundoff of float64: the relative error of one rounded operation."""


class Tails(Protocol):
    """The tails of the privacy loss L = log(dP/dQ) of one step in one direction: all that the Fourier accountant asks.

    `infinite` is P(L = ∞); `lowest` and `highest` bound the finite part; `atoms` are the positions of its atoms.
    """

    @property
    def infinite(self) -> float: ...
    @property
    def lowest(self) -> float: ...
    @property
    def highest(self) -> float: ...
    @property
    def atoms(self) -> tuple[float, ...]: ...

    def above(self, loss: Reals, /) -> tuple[Reals, Reals]:
        """P(loss < L < ∞) and Q(L > loss), to full relative accuracy in the upper tail."""
        ...

    def below(self, loss: Reals, /) -> tuple[Reals, Reals]:
        """P(L ≤ loss) and Q(L ≤ loss), to full relative accuracy in the lower tail."""
        ...


class Moments(Protocol):
    """The moments of the privacy loss of one step, or of several, in one direction: all that the contour asks."""

    @property
    def infinite(self) -> float: ...
    @property
    def highest(self) -> float: ...

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """log M(t) for M(t) = E_P[exp(tL); L < ∞], and a bound on the relative error of M(t).

        All of `t` lie in the closed upper half plane.
        """
        ...

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        """A lower bound on log(M(tilt) / |M(tilt + iv)|) that holds for all v ≥ frequency."""
        ...


class Pair(Tails, Moments, Protocol):
    """The privacy loss of one step in one direction, under P: its tails, and its moments.

    Every number is about a pair (P, Q) that *dominates* the step: whatever the data, the earlier outputs and the
    threshold, the step's hockey-stick divergence is at most the pair's. Domination survives adaptive composition
    (Zhu, Dong and Wang 2022, theorem 10), so runs are bounded by composing pairs.
    """
