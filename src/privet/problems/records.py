"""Any loss through one gradient a record; clipping carries the privacy claim alone."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet._independence import check_alone, made_up, user_supplied
from privet.arrays import Vector
from privet.clipping import Bounding, Clip, LatticeSum
from privet.clipping.lattice import MOST_RECORDS, check_count, in_lots, lattice_step
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet
from privet.losses import RecordLoss
from privet.losses.ridge import Penalty
from privet.privacy import Unit
from privet.problems.protocol import Batch
from privet.sums import record_sum


class RecordProblem:
    """Any loss with per-record gradients. Made by `per_record`.

    A record all of whose entries in X are missing (NaN) is empty: it adds nothing to any sum, whatever the loss says.
    """

    lipschitz: float | None = None
    unit: Unit = "record"

    def __init__(
        self, loss: RecordLoss, X: Any, y: Any, *, shape: tuple[int, ...], domain: ConvexSet, ridge: Penalty
    ) -> None:
        self.loss, self.X, self.y, self.shape, self.domain, self.ridge = loss, X, y, shape, domain, ridge
        self.assumptions = _tried(loss, X, y, shape)
        self._empty = np.isnan(X.reshape(len(X), math.prod(X.shape[1:]))).all(axis=1)

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self.X.shape[0])

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._sum(lambda X, y: self._gradients(theta, X, y), self.shape, rule, indices, max_records)

    def plain_gradient(self, theta: Vector) -> Vector:
        return np.asarray(self._gradients(theta, self.X, self.y).mean(axis=0)) + self.ridge.gradient(theta)

    def difference_sum(
        self, theta: Vector, anchor: Vector, *, rule: Bounding, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        def differences(X: Any, y: Any) -> NDArray[Any]:
            return np.asarray(self._gradients(theta, X, y) - self._gradients(anchor, X, y))

        return self._sum(differences, self.shape, rule, indices, max_records)

    def slope_sum(
        self, theta: Vector, direction: Vector, *, clip: float, indices: Batch = None, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        def slopes(X: Any, y: Any) -> NDArray[Any]:
            ahead, behind = (self.loss.values(theta + sign * direction, X, y) for sign in (1, -1))
            return np.asarray((ahead - behind) / 2)

        return self._sum(slopes, (), Clip(clip=clip), indices, max_records)

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, max_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._sum(
            lambda X, y: np.asarray(self.loss.values(theta, X, y)) - centre, (), Clip(clip=clip), None, max_records
        )

    def _sum(
        self,
        contributions: Callable[[Any, Any], NDArray[Any]],
        shape: tuple[int, ...],
        rule: Bounding,
        indices: Batch,
        max_records: int,
    ) -> LatticeSum:
        """Bounded sum, a block of records at a time.

        Every block has one public size, the last one filled up with its first record: a matrix product may round a
        row differently with the number of rows beside it, and then one record more would change the others' shares.
        """
        count = self.records if indices is None else len(indices)
        check_count(count, max_records, saturates=True)
        if count > MOST_RECORDS:
            return in_lots(
                lambda chosen: self._sum(contributions, shape, rule, chosen, max_records), self.records, indices
            )
        most = max(1, min(256, 2**20 // math.prod(shape), 2 * max_records - 1))
        rows = 1 << (most.bit_length() - 1)  # a power of two
        units, within = np.zeros(shape, dtype=np.int64), 0
        for first in range(0, count, rows):
            chosen = np.arange(first, min(first + rows, count)) if indices is None else indices[first : first + rows]
            part = np.append(chosen, np.full(rows - len(chosen), chosen[0]))
            with np.errstate(all="ignore"):
                block = np.array(contributions(self.X[part], self.y[part]), dtype=np.float64)
            if np.shape(block) != (rows, *shape):
                raise InvalidParameter(f"""Expected one value of shape {shape} a record, got rows of shape
                    {np.shape(block)[1:]} or another number of them: a sum or mean over records has no per-record bound.
                    Return one row a record.""")
            block[self._empty[part]] = 0.0
            share = record_sum(block[: len(chosen)], rule=rule, max_records=max_records)
            units += share.units
            within += share.within
        step = lattice_step(rule.clip, max_records=max_records)
        return LatticeSum(units=units, step=step, clip=rule.clip, within=within)

    def _gradients(self, theta: Vector, X: Any, y: Any) -> NDArray[Any]:
        return np.asarray(self.loss.gradients(theta, X, y), dtype=np.float64)

    def __repr__(self) -> str:
        return f"RecordProblem(private records, {self.loss!r}, shape={self.shape}, domain={self.domain!r})"


def _tried(loss: RecordLoss, X: Any, y: Any, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Refuse a loss of the user's that couples records, at several coefficients; what is assumed of it all the same."""
    if not user_supplied(loss):
        return ()
    record, label = (X.shape[1:], X.dtype.kind), (y.shape[1:], y.dtype.kind)
    said = {
        check_alone("the loss", lambda *data, of=part, at=theta: of(at, *data), record, label)
        for part in (loss.gradients, loss.values)
        for theta in (np.zeros(shape), made_up(shape, scale=1.0)[0], made_up(shape, scale=30.0, seed=9)[0])
    }
    return tuple(said)
