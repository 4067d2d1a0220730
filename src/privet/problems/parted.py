"""A linear model whose records are elsewhere, in parts: every sum is asked of all parts, and integers come back."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from privet.arrays import IntArray, Vector
from privet.clipping import Bounding, LatticeSum
from privet.clipping.lattice import MOST_RECORDS
from privet.errors import InvalidParameter
from privet.geometry import whole_space
from privet.losses import Loss, Ridge
from privet.privacy import Unit
from privet.problems.linear_model import LinearModel, Pointwise
from privet.problems.protocol import Batch
from privet.sums import Table

View = Callable[[LinearModel], LinearModel]
"""From a part's problem to another of the same records; a value that can be sent."""


@dataclass(frozen=True, slots=True, repr=False)
class Ask:
    """One sum over the records of a part: a method of its problem, by name, and what it is given. A value to be sent.

    `views` are what is done to the part's problem first. All of it is public but the batch, which is not in it.
    """

    method: str
    given: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    views: tuple[View, ...] = ()

    def of(self, problem: LinearModel, places: IntArray | None = None) -> tuple[LatticeSum, ...]:
        """The part's answer, on the records at `places` alone if they are given. Private."""
        for view in self.views:
            problem = view(problem)
        batch = {} if places is None else {"indices": places}
        found = getattr(problem, self.method)(*self.given, **dict(self.named), **batch)
        return found if isinstance(found, tuple) else (found,)

    def __repr__(self) -> str:
        return f"Ask({self.method!r})"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Along:
    """The view that `LinearModel.along` is."""

    theta: Vector
    rows: Callable[[Vector], Vector]
    columns: int

    def __call__(self, problem: LinearModel) -> LinearModel:
        return problem.along(self.theta, self.rows, columns=self.columns)


class Parts(Protocol):
    """Where the parts are, and how they are asked."""

    counts: IntArray
    """How many records (or people) each part has, in order; private under "add_remove"."""

    def total(self, ask: Ask, loss: Loss, places: Sequence[IntArray] | None) -> tuple[LatticeSum, ...]:
        """The sum of all parts' answers; with `places`, on those records of each part alone. Private."""


class PartedProblem(LinearModel):
    """A generalised linear model of records in parts, on this machine's disk or on a cluster's. Made by `parted_glm`.

    Promise: every sum is that of a `LinearProblem` (or `GroupedProblem`) of all records, to the last bit, however they
    are dealt out to parts, as sums are of integers.
    Theorem: docs/proofs/sums.md, section 1: neither order nor blocks change a sum.
    Edges: a batch is drawn by whoever asks, out of all records, and sent as places in each part, so that a task that
    is run twice has the same batch. A person's rows are all in one part.

    Parameters
    ----------
    like : a problem in memory, of which all that is public is taken: loss, bound, domain, penalty and shape
    parts : where the records are
    unit : whom a record stands for
    """

    def __init__(self, like: LinearModel, parts: Parts, *, unit: Unit = "record") -> None:
        self.loss, self.row_norm, self.domain, self.ridge = like.loss, like.row_norm, like.domain, like.ridge
        self.assumptions, self.shape, self.reach = like.assumptions, like.shape, like.reach
        self.unit, self._parts = unit, parts
        self._views: tuple[View, ...] = ()

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self._parts.counts.sum())

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._one("gradient_sum", theta, indices=indices, rule=rule, max_records=max_records)

    def difference_sum(
        self, theta: Vector, anchor: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._one("difference_sum", theta, anchor, indices=indices, rule=rule, max_records=max_records)

    def slope_sum(
        self, theta: Vector, direction: Vector, *, clip: float, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._one("slope_sum", theta, direction, indices=indices, clip=clip, max_records=max_records)

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._one("loss_sum", theta, clip=clip, centre=centre, max_records=max_records)

    def row_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        return self._one("row_sum", max_records=max_records)

    def moment_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Sum of x xᵀ. Private."""
        return self._one("moment_sum", max_records=max_records)

    def curvature_sum(
        self,
        curvature: Pointwise,
        theta: Vector,
        *,
        smoothness: float,
        indices: Batch = None,
        max_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        """As `LinearProblem.curvature_sum`."""
        most, bound = max_records, smoothness
        return self._one("curvature_sum", curvature, theta, indices=indices, smoothness=bound, max_records=most)

    def sandwich_sums(
        self, theta: Vector, *, clip: float, smoothness: float, max_records: int = MOST_RECORDS
    ) -> tuple[LatticeSum, LatticeSum]:
        """As `LinearProblem.sandwich_sums`."""
        bread, meat = self._asked("sandwich_sums", theta, clip=clip, smoothness=smoothness, max_records=max_records)
        return bread, meat

    def norm_counts(self, theta: Vector, *, edges: Vector, max_records: int = MOST_RECORDS) -> LatticeSum:
        """As `LinearProblem.norm_counts`."""
        return self._one("norm_counts", theta, edges=edges, max_records=max_records)

    def along(self, theta: Vector, rows: Callable[[Any], Any], *, columns: int) -> Self:
        other = copy(self)
        other.row_norm, other.reach, other.shape = 1.0, 1.0, (columns,)
        other.domain, other.ridge = whole_space(), Ridge(alpha=0.0)
        other._views = (*self._views, Along(theta=theta, rows=rows, columns=columns))
        return other

    def plain_gradient(self, theta: Vector) -> Vector:
        raise InvalidParameter("""Expected a problem in memory, got one in parts: what is not private is there to
            compare with, on tables that are small. Pose the problem by glm(...).""")

    def _one(self, method: str, *given: Any, indices: Batch = None, **named: Any) -> LatticeSum:
        (found,) = self._asked(method, *given, indices=indices, **named)
        return found

    def _asked(self, method: str, *given: Any, indices: Batch = None, **named: Any) -> tuple[LatticeSum, ...]:
        ask = Ask(method, given, tuple(named.items()), self._views)
        places = None if indices is None else dealt(indices, self._parts.counts)
        return self._parts.total(ask, self.loss, places)

    # what the model in memory has of its own: here the parts have it

    def _map_tables(self, change: Callable[[Table], Table]) -> None:
        raise NotImplementedError  # see `along`

    def _sum(
        self, derivative: Pointwise, theta: Vector, rule: Bounding, indices: Batch, max_records: int
    ) -> LatticeSum:
        raise NotImplementedError  # see `gradient_sum`

    def _scalars(self, scalar: Pointwise, theta: Vector, clip: float, indices: Batch, max_records: int) -> LatticeSum:
        raise NotImplementedError  # see `loss_sum`


def dealt(indices: IntArray, counts: IntArray) -> list[IntArray]:
    """Places among all records as places in each part, in the order that they were given in.

    Examples
    --------
    >>> [places.tolist() for places in dealt(np.array([0, 4, 2, 5]), np.array([3, 0, 3]))]
    [[0, 2], [], [1, 2]]
    """
    ends = np.cumsum(counts)
    part = np.searchsorted(ends, indices, side="right")
    return [indices[part == i] - (end - count) for i, (end, count) in enumerate(zip(ends, counts, strict=True))]


def added(answers: Sequence[tuple[LatticeSum, ...]]) -> tuple[LatticeSum, ...]:
    """Parts' answers to one question as one: sums of integers on one lattice, so in any order. Private.

    Examples
    --------
    >>> one = LatticeSum(units=np.array([1, 2]), step=0.5, clip=1.0)
    >>> added([(one,), (one,), (one,)])[0].value.tolist()
    [1.5, 3.0]
    """
    first, *others = answers
    for other in others:
        first = tuple(a + b for a, b in zip(first, other, strict=True))
    return first
