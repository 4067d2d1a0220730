"""What every accountant returns, and how one says that it has no theorem."""

from collections.abc import Callable
from typing import NamedTuple

from privet.accounting.events import Event
from privet.errors import NoProvenBound
from privet.privacy import Neighbours


class Bounds(NamedTuple):
    """An interval that holds the truth; `lower` is 0 where an accountant proves nothing from below.

    Examples
    --------
    >>> Bounds(lower=1.0, upper=1.5).upper
    1.5
    """

    lower: float
    upper: float


class Uncertified(Exception):
    """This engine cannot certify this run; another one must. A signal between accountants, never seen by users."""


Pricer = Callable[[Event, Neighbours, float | None, float | None], Bounds]
"""(run, neighbours, delta, epsilon) -> bounds on the one of the two that is None."""


def no_theorem(name: str, why: str) -> NoProvenBound:
    """The refusal of the accountant of that name."""
    return NoProvenBound(
        f"Expected a run that the {name!r} accountant has a theorem for, got one where {why}: "
        "its number would not be a bound. Use accountant='auto'."
    )


def worst(bounds: list[Bounds]) -> Bounds:
    """The larger bound: of two directions, the one that counts."""
    return Bounds(float(max(b.lower for b in bounds)), float(max(b.upper for b in bounds)))
