"""What a utility theorem promises: a number, the theorem's name, and what it assumes."""

from dataclasses import dataclass
from functools import partial

from privet import _checks
from privet.accounting.numerics import upward

CONVEX = "the loss of every record is convex in the parameters"
LIPSCHITZ = (
    "every record's gradient has norm at most `lipschitz`; if it is clipped to that, the bound is for the clipped loss"
)
DISTANCE = "`distance` is at least |w_0 − w*| and does not come from the data"

_NO_BOUND = "no bound follows from it"
positive = partial(_checks.positive, because=_NO_BOUND, use="Pass a public constant that does not come from the data.")
at_least_zero = partial(_checks.positive, zero=True, because=_NO_BOUND, use="Pass 0 if there is none.")
whole = partial(_checks.whole, because="no run has it", use="Pass an int.")
probability = partial(
    _checks.between,
    low=0,
    high=1,
    because="a statement that fails that often is no statement, or needs no sample",
    use="Use e.g. 0.05.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RiskBound:
    """An upper bound on the expected excess empirical risk E L(w) − min L, in units of the loss.

    The expectation is over the noise, for every data set; `value` is rounded upwards. `float(bound)` is its value.

    Examples
    --------
    >>> bound = trivial_bound(distance=2.0, lipschitz=3.0)
    >>> print(bound)
    excess risk at most 6 (release a public point, claim 78)
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
    the radius about the start, for the start. Lecture: claim 78 (Razaviyayn, "trivial algorithm").

    Examples
    --------
    >>> f"{trivial_bound(distance=2.0, lipschitz=1.0).value:.6f}"
    '2.000000'
    """
    value = positive("distance", distance) * positive("lipschitz", lipschitz)
    return bound(value, "release a public point, claim 78", LIPSCHITZ, "`distance` bounds how far a minimiser may be")
