"""A generalised linear model of records: what is bounded, sampled and counted is one row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Bounding, LatticeSum
from privet.clipping.lattice import MOST_RECORDS
from privet.geometry import ConvexSet
from privet.losses import Loss, Ridge, WeightedLoss
from privet.privacy import Unit
from privet.sums import Table, curvature_sum, glm_sum, gram_sum, scalar_sum

__all__ = ["LinearProblem"]

Vector = NDArray[np.float64]
IntArray = NDArray[np.int64]
_Part = Callable[[NDArray[Any]], NDArray[Any]]


class LinearProblem:
    """A generalised linear model: the loss of a record depends on θ through ⟨x, θ⟩ alone. Made by `glm`."""

    unit: Unit = "record"

    def __init__(self, loss: Loss, table: Table, labels: Vector, *, domain: ConvexSet, ridge: Ridge) -> None:
        self.loss, self.table, self.labels, self.domain, self.ridge = loss, table, labels, domain, ridge
        columns = table.shape[1]
        self.shape: tuple[int, ...] = (columns,) if loss.outputs == 1 else (columns, loss.outputs)

    @property
    def records(self) -> int:
        """How many there are."""
        return self.table.shape[0]

    @property
    def row_norm(self) -> float:
        """The public bound on ‖x‖."""
        return self.table.row_norm

    @property
    def lipschitz(self) -> float | None:
        """A bound on every record's gradient norm over the domain; None if none is proven.

        Theorem: ‖∇ℓ‖ = |ℓ′(z)|·‖x‖ with |z| ≤ row_norm × (largest ‖θ‖ in the domain); lecture 13 (Brown), 3.(2).
        """
        slope = self.loss.lipschitz(self.prediction_bound)
        return None if slope is None else self.row_norm * slope

    @property
    def prediction_bound(self) -> float:
        """A bound on |⟨x, θ⟩| over the domain; a little more than that, as θ is rounded before use."""
        reach = float(np.linalg.norm(self.domain.centre(math.prod(self.shape)))) + self.domain.radius
        return self.row_norm * reach * (1 + 2.0**-30)

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: IntArray | None = None, most_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return glm_sum(
            self.loss.derivative, self.table, self.labels, theta, rule=rule, indices=indices, most_records=most_records
        )

    def moment_sum(self, *, most_records: int = MOST_RECORDS) -> LatticeSum:
        """Σ v x xᵀ with the records' weights v, or Σ x xᵀ if they have none. Private.

        Promise: one record moves it by at most row_norm² in Frobenius norm, emptied, added or removed; for a weight is
        cut to [0, 1], see `curvature_sum`. Exchanged, by at most √2 times that.
        """
        if not isinstance(self.loss, WeightedLoss):
            return gram_sum(self.table)
        start = np.zeros(self.table.shape[1])
        return curvature_sum(
            lambda z, y: y[:, 1], self.table, self.labels, start, smoothness=1.0, most_records=most_records
        )

    def plain_gradient(self, theta: Vector) -> Vector:
        X = self.table.units.astype(np.float64)  # whole numbers: exact
        X *= self.table.step
        slopes = np.asarray(self.loss.derivative(X @ theta, self.labels), dtype=np.float64)
        return np.asarray(X.T @ slopes) / self.records + self.ridge.gradient(theta)

    def difference_sum(
        self,
        theta: Vector,
        anchor: Vector,
        *,
        rule: Bounding,
        indices: IntArray | None = None,
        most_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        both, first, second = self._paired(theta, anchor)
        slope = self.loss.derivative
        return glm_sum(
            lambda z, y: slope(first(z), y) - slope(second(z), y),
            self.table,
            self.labels,
            both,
            rule=rule,
            indices=indices,
            shape=self.shape,
            most_records=most_records,
        )

    def slope_sum(
        self,
        theta: Vector,
        direction: Vector,
        *,
        clip: float,
        indices: IntArray | None = None,
        most_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        both, first, second = self._paired(theta + direction, theta - direction)
        value = self.loss.value
        return scalar_sum(
            lambda z, y: (value(first(z), y) - value(second(z), y)) / 2,
            self.table,
            self.labels,
            both,
            clip=clip,
            indices=indices,
            most_records=most_records,
        )

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, most_records: int = MOST_RECORDS
    ) -> LatticeSum:
        value = self.loss.value
        return scalar_sum(
            lambda z, y: value(z, y) - centre, self.table, self.labels, theta, clip=clip, most_records=most_records
        )

    def _paired(self, one: Vector, other: Vector) -> tuple[Vector, _Part, _Part]:
        """Two sets of coefficients side by side, and how to find either's predictions again."""
        both = np.column_stack([one, other])
        if len(self.shape) == 1:
            return both, lambda z: z[:, 0], lambda z: z[:, 1]
        outputs = self.shape[1]
        return both, lambda z: z[:, :outputs], lambda z: z[:, outputs:]

    def __repr__(self) -> str:
        return f"LinearProblem(private records, {self.loss!r}, row_norm={self.row_norm:g}, domain={self.domain!r})"
