"""A linear model of people with many rows each: what is bounded, sampled and counted is a person."""

from collections.abc import Callable
from typing import Any

import numpy as np

from privet.arrays import IntArray, Vector
from privet.clipping import Bounding, LatticeSum
from privet.clipping.lattice import MOST_RECORDS, check_count, in_lots
from privet.data import person_numbers
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet
from privet.losses import Loss
from privet.losses.ridge import Penalty
from privet.privacy import Unit
from privet.problems.linear_model import LinearModel
from privet.problems.protocol import Batch
from privet.sums import (
    People,
    Table,
    glm_sum,
    gram_sum,
    people_scalar_sum,
    people_sum,
    row_weights,
    scalar_sum,
    split_people,
)


class GroupedProblem(LinearModel):
    """A generalised linear model whose records are people. Made by `glm(..., groups=...)`.

    A person's loss is the mean of the losses of that person's rows, so each person weighs the same, however many rows
    there are of it; rows that are empty are not counted in the mean. Hence a person's gradient is no longer, and its
    curvature no larger, than one row's may be: constants, clips and theorems of `LinearProblem` carry over, with the
    number of people for the number of records.

    Promise: in every sum, one person's whole share is at most the clip in l2 norm (of Σ x xᵀ: row_norm² in Frobenius
    norm), in exact arithmetic, whatever its rows are and however many. A person with one row is a record of
    `LinearProblem`, to the last bit.
    Theorem: docs/proofs/sums.md, section 8.

    `records` is the number of people that some row is labelled with. How many rows there are is private always.

    Parameters
    ----------
    table, labels : the rows; private
    people : a number for each row, of whom it belongs to, 0, 1, …; -1 leaves a row out; private. Or the rows of people
        with several, if `table` and `labels` are of the others alone
    """

    unit: Unit = "person"

    def __init__(
        self, loss: Loss, table: Table, labels: Vector, people: IntArray | People, *, domain: ConvexSet, ridge: Penalty
    ) -> None:
        known: dict[str, Any] = {"domain": domain, "ridge": ridge, "reach": table.reach}
        super().__init__(loss, row_norm=table.row_norm, columns=table.shape[1], **known)
        split = (table, labels, people) if isinstance(people, People) else split_people(table, labels, people)
        self._table, self._labels, self._people = split

    @property
    def split(self) -> tuple[Table, Vector, People]:
        """Rows and labels of people with one row, and the others' rows. Private."""
        return self._table, self._labels, self._people

    @property
    def records(self) -> int:
        """How many people there are."""
        return self._table.shape[0] + len(self._people)

    def plain_gradient(self, theta: Vector) -> Vector:
        total = np.zeros(self.shape)
        counts = np.maximum(self._people.counts, 1)
        weights = np.repeat(1.0 / counts, np.diff(self._people.starts))
        for table, labels, weight in (
            (self._table, self._labels, np.ones(self._table.shape[0])),
            (self._people.table, self._people.labels, weights),
        ):
            X = table.units.astype(np.float64) * table.step
            slopes = np.asarray(self.loss.derivative(table.predicted(X @ theta), labels), dtype=np.float64)
            total += np.asarray(X.T @ (slopes * (weight if slopes.ndim == 1 else weight[:, None])))
        return total / self.records + self.ridge.gradient(theta)

    def moment_sum(self, *, max_records: int = MOST_RECORDS) -> LatticeSum:
        """Sum over people of the mean of x xᵀ; one person moves it by at most row_norm² in Frobenius norm. Private."""
        return gram_sum(self._table) + gram_sum(self._people.table, weights=row_weights(self._people))

    def _map_tables(self, change: Callable[[Table], Table]) -> None:
        people = self._people
        self._table, self._people = change(self._table), People(change(people.table), people.labels, people.starts)

    def _sum(self, derivative: Any, theta: Vector, rule: Bounding, indices: Batch, max_records: int) -> LatticeSum:
        alone, several = self._chosen(indices, max_records)
        table, shape, most = self._table, self.shape, max_records
        one = glm_sum(derivative, table, self._labels, theta, rule=rule, indices=alone, shape=shape, max_records=most)
        return one + in_lots(
            lambda chosen: people_sum(
                derivative, self._people, theta, rule=rule, chosen=chosen, shape=shape, max_records=most
            ),
            len(self._people),
            several,
        )

    def _scalars(self, scalar: Any, theta: Vector, clip: float, indices: Batch, max_records: int) -> LatticeSum:
        alone, several = self._chosen(indices, max_records)
        one = scalar_sum(scalar, self._table, self._labels, theta, clip=clip, indices=alone, max_records=max_records)
        return one + in_lots(
            lambda chosen: people_scalar_sum(
                scalar, self._people, theta, clip=clip, chosen=chosen, max_records=max_records
            ),
            len(self._people),
            several,
        )

    def _chosen(self, indices: Batch, max_records: int) -> tuple[IntArray | None, IntArray | None]:
        """Of the people at `indices`, those with one row and those with several, by their places among those."""
        check_count(self.records if indices is None else len(indices), max_records, saturates=True)
        if indices is None:
            return None, None
        alone = self._table.shape[0]
        return indices[indices < alone], indices[indices >= alone] - alone


def numbered(groups: Any, rows: int, *, hashed: bool = False) -> IntArray:
    """A number for each row, of whom it belongs to; refuses, on its length, what is not one label a row."""
    people = person_numbers(groups, hashed=hashed)
    if len(people) != rows:
        raise InvalidParameter(
            "Expected as many group labels as rows, got another number: rows would be taken for somebody else's. "
            "Pass one label a row."  # how many is private
        )
    return people
