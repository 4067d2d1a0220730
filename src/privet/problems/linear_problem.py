"""A generalised linear model of records: what is bounded, sampled and counted is one row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.clipping import Bounding, LatticeSum
from privet.clipping.lattice import MOST_RECORDS
from privet.geometry import ConvexSet
from privet.losses import Loss, Ridge, WeightedLoss
from privet.privacy import Unit
from privet.problems.linear_model import LinearModel
from privet.sums import Table, curvature_sum, glm_sum, gram_sum, scalar_sum

Vector = NDArray[np.float64]
IntArray = NDArray[np.int64]


class LinearProblem(LinearModel):
    """A generalised linear model: the loss of a record depends on θ through ⟨x, θ⟩ alone. Made by `glm`."""

    unit: Unit = "record"

    def __init__(self, loss: Loss, table: Table, labels: Vector, *, domain: ConvexSet, ridge: Ridge) -> None:
        super().__init__(loss, row_norm=table.row_norm, columns=table.shape[1], domain=domain, ridge=ridge)
        self.table, self.labels = table, labels

    @property
    def records(self) -> int:
        """How many there are."""
        return self.table.shape[0]

    def moment_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Σ v x xᵀ with the records' weights v, or Σ x xᵀ if they have none. Private.

        Promise: one record moves it by at most row_norm² in Frobenius norm, added, removed or zeroed out, as a weight
        is cut to [0, 1] (see `curvature_sum`); replaced, by at most √2 times that.
        """
        if not isinstance(self.loss, WeightedLoss):
            return gram_sum(self.table)
        start = np.zeros(self.table.shape[1])
        return curvature_sum(
            lambda z, y: y[:, 1], self.table, self.labels, start, smoothness=1.0, max_records=max_records
        )

    def plain_gradient(self, theta: Vector) -> Vector:
        X = self.table.units.astype(np.float64)  # whole numbers: exact
        X *= self.table.step
        slopes = np.asarray(self.loss.derivative(X @ theta, self.labels), dtype=np.float64)
        return np.asarray(X.T @ slopes) / self.records + self.ridge.gradient(theta)

    def _sum(
        self, derivative: Any, theta: Vector, rule: Bounding, indices: IntArray | None, max_records: int
    ) -> LatticeSum:
        return glm_sum(
            derivative,
            self.table,
            self.labels,
            theta,
            rule=rule,
            indices=indices,
            shape=self.shape,
            max_records=max_records,
        )

    def _scalars(
        self, scalar: Any, theta: Vector, clip: float, indices: IntArray | None, max_records: int
    ) -> LatticeSum:
        return scalar_sum(scalar, self.table, self.labels, theta, clip=clip, indices=indices, max_records=max_records)
