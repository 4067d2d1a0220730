"""How far one record moves what is summed: the l2 sensitivity under each relation, in one place.

A clipped sum moves by the clip, or by twice that when a record is replaced (`privacy.sensitivity_factor`). Histograms,
moments and directions are kinder than that when a record is replaced, each for a reason of its own.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from privet._checks import whole
from privet.clipping import Bounding
from privet.privacy import Neighbours, check_neighbours, sensitivity_factor


@runtime_checkable
class Reach(Protocol):
    """A bound whose sensitivity is not simply that of a clip."""

    def sensitivity(self, neighbours: Neighbours) -> float:
        """How far one record moves the sum in l2 norm; public."""

    def describe(self) -> str:
        """The bound as the clause of a sentence."""


Influence = Bounding | Reach
"""How one record's influence is bounded: by a clipping rule, or in a way that states its own l2 sensitivity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounded:
    """A share of l2 norm at most `clip` for another reason than clipping gradients, which `how` names.

    Examples
    --------
    >>> unit_clip(Bounded(clip=2.0, how="rows have norm at most 1"), "replace_one")
    2.0
    """

    clip: float
    how: str

    def sensitivity(self, neighbours: Neighbours) -> float:
        return sensitivity_factor(neighbours) * self.clip

    def describe(self) -> str:
        return self.how


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondMoments:
    """Sums of x xᵀ, or of other positive semidefinite matrices, each of Frobenius norm at most `clip`.

    Theorem: the inner product of two such matrices is never negative, so ‖A − B‖² ≤ ‖A‖² + ‖B‖²: a record that is
    replaced moves the sum by at most √2 · clip, not 2 · clip. docs/proofs/sums.md, section 5.

    Examples
    --------
    >>> round(SecondMoments(clip=1.0).sensitivity("replace_one"), 6), SecondMoments(clip=1.0).sensitivity("zero_out")
    (1.414214, 1.0)
    """

    clip: float

    def sensitivity(self, neighbours: Neighbours) -> float:
        factor = sensitivity_factor(neighbours)
        return self.clip if factor == 1 else math.nextafter(math.sqrt(factor) * self.clip, math.inf)

    def describe(self) -> str:
        return f"a record's second moment has Frobenius norm at most {self.clip:g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Histograms:
    """Counts in `columns` histograms, a record in at most one bin of each.

    Theorem: a record that leaves takes 1 from at most one bin of each: √columns. One that is replaced takes 1 from one
    and gives 1 to another: √(2·columns), which is less than twice the former. docs/proofs/preprocessing.md, section 2.

    Examples
    --------
    >>> counts = Histograms(columns=4)
    >>> counts.sensitivity("add_remove"), round(counts.sensitivity("replace_one"), 6)
    (2.0, 2.828427)
    """

    columns: int = 1

    def __post_init__(self) -> None:
        words = {"because": "each column is one histogram", "use": "Pass how many columns are counted."}
        object.__setattr__(self, "columns", whole("columns", self.columns, **words))  # type: ignore[arg-type]

    def sensitivity(self, neighbours: Neighbours) -> float:
        return math.sqrt(sensitivity_factor(neighbours) * self.columns)

    def describe(self) -> str:
        return f"a record is in at most one bin of {'the' if self.columns == 1 else 'each'} histogram"


@dataclass(frozen=True, kw_only=True, slots=True)
class Presences:
    """How many records have something, counted for `columns` columns, a record at most once in each.

    Theorem: a record is a vector of 0s and 1s, one a column; one that leaves takes at most a 1 from each count, and one
    that is replaced moves each count by at most 1, too: √columns either way. docs/proofs/preprocessing.md, section 5.

    Examples
    --------
    >>> counts = Presences(columns=4)
    >>> counts.sensitivity("add_remove"), counts.sensitivity("replace_one")
    (2.0, 2.0)
    """

    columns: int = 1

    def __post_init__(self) -> None:
        words = {"because": "each column is one count", "use": "Pass how many columns are counted."}
        object.__setattr__(self, "columns", whole("columns", self.columns, **words))  # type: ignore[arg-type]

    def sensitivity(self, neighbours: Neighbours) -> float:
        check_neighbours(neighbours)
        return math.sqrt(self.columns)

    def describe(self) -> str:
        return "a record is counted at most once" + ("" if self.columns == 1 else " in each column")


@dataclass(frozen=True, kw_only=True, slots=True)
class MomentSums:
    """Sums of (1, u, u² − 1/2) over `columns` columns, for values |u| ≤ 1.

    Theorem: 1 + u² + (u² − 1/2)² = u⁴ + 5/4 ≤ 9/4; and of two records
    (u − v)² + (u² − v²)² = (u − v)²(1 + (u + v)²) ≤ 4. Attained at u = ±1 and at u = −v = 1.

    Examples
    --------
    >>> MomentSums(columns=1).sensitivity("add_remove"), MomentSums(columns=4).sensitivity("replace_one")
    (1.5, 4.0)
    """

    columns: int = 1

    def sensitivity(self, neighbours: Neighbours) -> float:
        return (2.0 if check_neighbours(neighbours) == "replace_one" else 1.5) * math.sqrt(self.columns)

    def describe(self) -> str:
        return "values are clipped to their public ranges"


@dataclass(frozen=True, kw_only=True, slots=True)
class Computed:
    """An l2 sensitivity that follows, while the run goes on, from what is public by then; `how` says by which theorem.

    What the plan fixes is the noise in units of that sensitivity: of one record zeroed out, added or removed; when one
    is replaced, it is `when_replaced` times as much.

    Examples
    --------
    >>> direction = Computed(how="one record turns it by at most 1/n", when_replaced=1.0)
    >>> direction.sensitivity("replace_one"), unit_clip(direction, "replace_one")
    (1.0, 0.5)
    """

    how: str
    when_replaced: float = 2.0

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.when_replaced if check_neighbours(neighbours) == "replace_one" else 1.0

    def describe(self) -> str:
        return self.how


def unit_clip(bound: Influence, neighbours: Neighbours) -> float:
    """What noise is a multiple of: the sensitivity in units of `sensitivity_factor`; for a clipping rule, its clip.

    So `Gaussian(noise_multiplier=m)` is the event of noise of standard deviation m × this, whatever the bound is.
    """
    if isinstance(bound, Reach):
        return bound.sensitivity(neighbours) / sensitivity_factor(neighbours)
    return bound.clip


def own_relation(bound: Influence) -> bool:
    """Whether the noise multiplier means this only under the relation it was made for."""
    return isinstance(bound, SecondMoments | Histograms | Presences | MomentSums | Computed)
