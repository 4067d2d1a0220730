"""What every problem answers: sums over its private records, each bounded."""

from typing import Protocol

from privet.arrays import IntArray, Vector
from privet.clipping import Bounding, LatticeSum
from privet.clipping.lattice import MOST_RECORDS
from privet.geometry import ConvexSet
from privet.losses.ridge import Penalty
from privet.privacy import Unit

Batch = IntArray | None
"""The places of the records that a sum is over; None for all. Private."""


class Problem(Protocol):
    """Private records with a loss, seen through sums that are bounded; the rest is public.

    `records` is public only under "replace_one" and "zero_out". With `unit` "person", a record is all that one person
    has.
    """

    domain: ConvexSet
    ridge: Penalty
    shape: tuple[int, ...]

    @property
    def unit(self) -> Unit:
        """Whom a record stands for."""

    @property
    def lipschitz(self) -> float | None:
        """A proven bound on every record's gradient norm over the domain, if there is one."""

    @property
    def records(self) -> int:
        """How many there are."""

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        """Sum of the bounded gradients of the records at `indices` (all by default). Private."""

    def plain_gradient(self, theta: Vector) -> Vector:
        """The average gradient with the penalty's, neither bounded nor rounded. **Not private**: to compare with."""

    def difference_sum(
        self, theta: Vector, anchor: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        """Sum of ∇ℓ(θ) − ∇ℓ(anchor), record by record bounded as one vector. Private."""

    def slope_sum(
        self, theta: Vector, direction: Vector, *, clip: float, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        """Sum of (ℓ(θ + u) − ℓ(θ − u))/2 for the direction u, each cut to ±clip. Private."""

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        """Sum of the losses less `centre` (a public number), each cut to ±clip. Private."""


def assumed(problem: Problem) -> tuple[str, ...]:
    """What a guarantee assumes of a problem: nothing of those made here from our own losses, else what was not proven.

    Examples
    --------
    >>> from privet import glm
    >>> assumed(glm("logistic", [[1.0]], [1], row_norm=1.0))
    ()
    """
    unknown = "the problem is user-supplied code: that one record moves its sums by no more than they say is unchecked"
    return getattr(problem, "assumptions", (unknown,))
