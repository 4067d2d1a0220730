"""Linear models of records; and what they share with those of people: all but how a sum over them is taken."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privet._independence import check_alone, user_supplied
from privet.arrays import Vector
from privet.clipping import Bounding, Clip, LatticeSum
from privet.clipping.lattice import MOST_RECORDS
from privet.geometry import ConvexSet, whole_space
from privet.losses import Loss, Ridge, WeightedLoss
from privet.losses.ridge import Penalty
from privet.privacy import Unit
from privet.problems.protocol import Batch
from privet.sums import (
    Table,
    bounded_table,
    curvature_sum,
    glm_sum,
    gram_sum,
    norm_counts,
    sandwich_sums,
    scalar_sum,
    scores,
)

Pointwise = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
_Part = Callable[[NDArray[Any]], NDArray[Any]]


class LinearModel(ABC):
    """The loss of a record depends on θ through ⟨x, θ⟩ alone, so each sum is one of a function of predictions.

    Parameters
    ----------
    row_norm : the public bound on ‖x‖
    columns : how many features there are; public
    reach : how many times that bound a row may be long where it is predicted for; its share in a sum is a number times
        its shortened row all the same
    """

    unit: Unit

    def __init__(
        self, loss: Loss, *, row_norm: float, columns: int, domain: ConvexSet, ridge: Penalty, reach: float = 1.0
    ) -> None:
        self.loss, self.row_norm, self.domain, self.ridge, self.reach = loss, row_norm, domain, ridge, reach
        self.assumptions = _tried(loss)
        self.shape: tuple[int, ...] = (columns,) if loss.outputs == 1 else (columns, loss.outputs)

    @property
    @abstractmethod
    def records(self) -> int:
        """How many there are."""

    @property
    def lipschitz(self) -> float | None:
        """A bound on every record's gradient norm over the domain; None if none is proven.

        Theorem: ‖∇ℓ‖ = |ℓ′(z)|·‖x‖ with |z| ≤ row_norm × (largest ‖θ‖ in the domain); lecture 13 (Brown), 3.(2). A
        person's is a mean over its rows, which is no longer than the longest.
        """
        slope = self.loss.lipschitz(self.prediction_bound)
        return None if slope is None else self.row_norm * slope

    @property
    def prediction_bound(self) -> float:
        """A bound on |⟨x, θ⟩| over the domain; a little more than that, as θ is rounded before use."""
        farthest = float(np.linalg.norm(self.domain.centre(math.prod(self.shape)))) + self.domain.radius
        return self.row_norm * self.reach * farthest * (1 + 2.0**-30)

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._sum(self.loss.derivative, theta, rule, indices, max_records)

    @abstractmethod
    def plain_gradient(self, theta: Vector) -> Vector:
        """The average gradient with the penalty's, neither bounded nor rounded. **Not private**."""

    @abstractmethod
    def moment_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Sum of x xᵀ. Private."""

    def row_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Σ x, with the records' weights if they have any; each record's share is at most `row_norm`. Private."""
        one = copy(self)
        one.shape = self.shape[:1]
        weighted = isinstance(self.loss, WeightedLoss)
        return one._sum(
            lambda z, y: np.clip(y[:, 1], 0.0, 1.0) if weighted else np.ones_like(z),
            np.zeros(one.shape),
            Clip(clip=self.row_norm),
            None,
            max_records,
        )

    def difference_sum(
        self, theta: Vector, anchor: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        both, first, second = self._paired(theta, anchor)
        slope = self.loss.derivative
        return self._sum(lambda z, y: slope(first(z), y) - slope(second(z), y), both, rule, indices, max_records)

    def slope_sum(
        self, theta: Vector, direction: Vector, *, clip: float, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        both, first, second = self._paired(theta + direction, theta - direction)
        value = self.loss.value
        return self._scalars(
            lambda z, y: (value(first(z), y) - value(second(z), y)) / 2, both, clip, indices, max_records
        )

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        value = self.loss.value
        return self._scalars(lambda z, y: value(z, y) - centre, theta, clip, None, max_records)

    def along(self, theta: Vector, rows: _Part, *, columns: int) -> Self:
        """The same records and labels, with rows of norm at most 1 that are a function of ⟨x, θ⟩; no penalty.

        `rows` works number by number, in operations that IEEE 754 rounds, so that no record shows in another's row.
        An empty record stays empty, and nothing warns.
        """
        other = copy(self)
        other.row_norm, other.reach, other.shape = 1.0, 1.0, (columns,)
        other.domain, other.ridge = whole_space(), Ridge(alpha=0.0)

        def scored(table: Table) -> Table:
            with np.errstate(all="ignore"):
                return bounded_table(rows(scores(table, theta)), row_norm=1.0, keep=table.inverse_norms > 0)

        other._map_tables(scored)
        return other

    @abstractmethod
    def _map_tables(self, change: Callable[[Table], Table]) -> None:
        """Put other rows in the place of its own."""

    @abstractmethod
    def _sum(
        self, derivative: Pointwise, theta: Vector, rule: Bounding, indices: Batch, max_records: int
    ) -> LatticeSum:
        """Sum of derivative(⟨x, θ⟩, y)·x, each record's (or person's) share bounded by the rule."""

    @abstractmethod
    def _scalars(self, scalar: Pointwise, theta: Vector, clip: float, indices: Batch, max_records: int) -> LatticeSum:
        """Sum of scalar(⟨x, θ⟩, y), each record's (or person's) share cut to ±clip."""

    def _paired(self, one: Vector, other: Vector) -> tuple[Vector, _Part, _Part]:
        """Two sets of coefficients side by side, and how to find either's predictions again."""
        both = np.column_stack([one, other])
        if len(self.shape) == 1:
            return both, lambda z: z[:, 0], lambda z: z[:, 1]
        outputs = self.shape[1]
        return both, lambda z: z[:, :outputs], lambda z: z[:, outputs:]

    def __repr__(self) -> str:
        whom = "records" if self.unit == "record" else "people"
        return (
            f"{type(self).__name__}(private {whom}, {self.loss!r}, row_norm={self.row_norm:g}, domain={self.domain!r})"
        )


class LinearProblem(LinearModel):
    """A generalised linear model: the loss of a record depends on θ through ⟨x, θ⟩ alone. Made by `glm`."""

    unit: Unit = "record"

    def __init__(self, loss: Loss, table: Table, labels: Vector, *, domain: ConvexSet, ridge: Penalty) -> None:
        known: dict[str, Any] = {"domain": domain, "ridge": ridge, "reach": table.reach}
        super().__init__(loss, row_norm=table.row_norm, columns=table.shape[1], **known)
        self.table, self.labels = table, labels

    @property
    def records(self) -> int:
        """How many there are."""
        return self.table.shape[0]

    def _map_tables(self, change: Callable[[Table], Table]) -> None:
        self.table = change(self.table)

    def among(self, places: Batch) -> "LinearProblem":
        """The same problem of the records at `places` alone; of all for None. Private."""
        if places is None:
            return self
        other = copy(self)
        other.table, other.labels = self.table.rows(places), self.labels[places]
        return other

    def moment_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Σ v x xᵀ with the records' weights v, or Σ x xᵀ if they have none. Private.

        Promise: one record moves it by at most row_norm² in Frobenius norm, added, removed or zeroed out, as a weight
        is cut to [0, 1] (see `curvature_sum`); replaced, by at most √2 times that.
        """
        if not isinstance(self.loss, WeightedLoss):
            return gram_sum(self.table)
        start = np.zeros(self.table.shape[1])
        return self.curvature_sum(lambda z, y: y[:, 1], start, smoothness=1.0, max_records=max_records)

    def curvature_sum(
        self,
        curvature: Pointwise,
        theta: Vector,
        *,
        smoothness: float,
        indices: Batch = None,
        max_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        """Σ h x xᵀ ÷ smoothness, h = curvature(⟨x, θ⟩, y); as the function of that name says. Private."""
        some, most = self.among(indices), max_records
        return curvature_sum(curvature, some.table, some.labels, theta, smoothness=smoothness, max_records=most)

    def sandwich_sums(
        self, theta: Vector, *, clip: float, smoothness: float, max_records: int = MOST_RECORDS
    ) -> tuple[LatticeSum, LatticeSum]:
        """Curvatures and squared gradients, as the function of that name says. Private."""
        slope, bend, known = self.loss.derivative, self.loss.curvature, (self.table, self.labels, theta)
        return sandwich_sums(slope, bend, *known, clip=clip, smoothness=smoothness, max_records=max_records)

    def norm_counts(self, theta: Vector, *, edges: Vector, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Records by the length of their gradient, as the function of that name says. Private."""
        known = self.table, self.labels, theta
        return norm_counts(self.loss.derivative, *known, edges=edges, max_records=max_records)

    def plain_gradient(self, theta: Vector) -> Vector:
        X = self.table.units.astype(np.float64)  # whole numbers: exact
        X *= self.table.step
        slopes = np.asarray(self.loss.derivative(self.table.predicted(X @ theta), self.labels), dtype=np.float64)
        return np.asarray(X.T @ slopes) / self.records + self.ridge.gradient(theta)

    def _sum(self, derivative: Any, theta: Vector, rule: Bounding, indices: Batch, max_records: int) -> LatticeSum:
        table, most = self.table, max_records
        return glm_sum(
            derivative, table, self.labels, theta, rule=rule, indices=indices, shape=self.shape, max_records=most
        )

    def _scalars(self, scalar: Any, theta: Vector, clip: float, indices: Batch, max_records: int) -> LatticeSum:
        return scalar_sum(scalar, self.table, self.labels, theta, clip=clip, indices=indices, max_records=max_records)


def _tried(loss: Loss) -> tuple[str, ...]:
    """Refuse a loss of the user's that couples records; what is assumed of it all the same."""
    if not user_supplied(loss):
        return ()
    if isinstance(loss, WeightedLoss):
        return _tried(loss.loss)
    z, y = ((loss.outputs,) if loss.outputs > 1 else (), "f"), ((), "f")
    check_alone("the loss", lambda y: np.broadcast_to(loss.admissible(y), y.shape), y)
    check_alone("the loss", lambda z, y: np.broadcast_to(loss.derivative(z, y), z.shape), z, y)
    check_alone("the loss", lambda z, y: np.broadcast_to(loss.curvature(z, y), y.shape), z, y)
    return (check_alone("the loss", lambda z, y: np.broadcast_to(loss.value(z, y), y.shape), z, y),)
