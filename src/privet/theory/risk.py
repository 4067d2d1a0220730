"""What a utility theorem promises: a number, the theorem's name, and what it assumes."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

from privet.accounting.numerics import upward
from privet.errors import InvalidParameter

__all__ = [
    "CONVEX",
    "DISTANCE",
    "LIPSCHITZ",
    "RiskBound",
    "at_least_zero",
    "bound",
    "positive",
    "probability",
    "smaller",
    "trivial_bound",
    "whole",
]

CONVEX = "the loss of every record is convex in the parameters"
LIPSCHITZ = (
    "every record's gradient has norm at most `lipschitz`; if it is clipped to that, the bound is for the clipped loss"
)
DISTANCE = "`distance` is at least |w_0 − w*| and does not come from the data"


@dataclass(frozen=True, kw_only=True, slots=True)
class RiskBound:
    """An upper bound on the expected excess empirical risk E L(w) − min L, in units of the loss.

    The expectation is over the noise, for every data set; `value` is rounded upwards. `float(bound)` is its value.

    Examples
    --------
    >>> bound = trivial_bound(distance=2.0, lipschitz=3.0)
    >>> print(bound)
    excess risk at most 6 (release a public point, row 78)
    >>> float(bound) >= 6.0
    True
    """

    value: float
    theorem: str
    assumptions: tuple[str, ...]

    def __post_init__(self) -> None:
        at_least_zero("value", self.value, infinite=True)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"excess risk at most {self.value:.6g} ({self.theorem})"


def bound(value: float, theorem: str, *assumptions: str) -> RiskBound:
    """Return a bound whose value is rounded upwards."""
    return RiskBound(value=upward(value), theorem=theorem, assumptions=assumptions)


def smaller(first: RiskBound, second: RiskBound) -> RiskBound:
    """Return the smaller of two bounds that both hold; the first if they are equal."""
    return first if first.value <= second.value else second


def trivial_bound(*, distance: float, lipschitz: float) -> RiskBound:
    """Bound the excess risk of a point that is at most `distance` away from a minimiser: lipschitz × distance.

    With the set's diameter as `distance` it holds for every point of the set, so for every run with projection; with
    the radius about the start, for the start. Lecture: row 78 (Razaviyayn, "trivial algorithm").

    Examples
    --------
    >>> f"{trivial_bound(distance=2.0, lipschitz=1.0).value:.6f}"
    '2.000000'
    """
    value = positive("distance", distance) * positive("lipschitz", lipschitz)
    return bound(value, "release a public point, row 78", LIPSCHITZ, "`distance` bounds how far a minimiser may be")


def positive(name: str, value: float) -> float:
    """Return `value` as a positive finite float, else say why not."""
    if not _real(value) or not 0.0 < value < math.inf:
        raise InvalidParameter(
            f"Expected {name} to be a positive finite number, got {value!r}: no bound follows from it. "
            "Pass a public constant that does not come from the data."
        )
    return float(value)


def at_least_zero(name: str, value: float, *, infinite: bool = False) -> float:
    """Return `value` as a float of at least 0, else say why not."""
    if not _real(value) or not value >= 0.0 or (value == math.inf and not infinite):
        raise InvalidParameter(
            f"Expected {name} to be a number of at least 0, got {value!r}: no bound follows from it. "
            "Pass 0 if there is none."
        )
    return float(value)


def whole(name: str, value: int, *, least: int = 1) -> int:
    """Return `value` as an int of at least `least`, else say why not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InvalidParameter(
            f"Expected {name} to be a whole number, at least {least}, got {value!r}: no run has it. Pass an int."
        )
    return int(value)


def probability(name: str, value: float) -> float:
    """Return `value` as a float strictly between 0 and 1, else say why not."""
    if not _real(value) or not 0.0 < value < 1.0:
        raise InvalidParameter(
            f"Expected {name} strictly between 0 and 1, got {value!r}: a statement that fails that often is no "
            "statement, or needs no sample. Use e.g. 0.05."
        )
    return float(value)


def _real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
