"""What is minimised: an average loss over private records, a public penalty and a public set."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet.clipping import (
    Bounding,
    Clip,
    LatticeSum,
    Table,
    bounded_table,
    curvature_sum,
    glm_sum,
    gram_sum,
    record_sum,
    scalar_sum,
)
from privet.clipping.lattice import MOST_RECORDS, check_count, lattice_step
from privet.clipping.table import as_matrix, as_vector
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet, whole_space
from privet.grouped import GroupedProblem, numbered
from privet.losses import FeatureMap, Loss, RecordLoss, Ridge, WeightedLoss, loss_named
from privet.privacy import Unit

__all__ = ["GroupedProblem", "LinearProblem", "Problem", "RecordProblem", "glm", "per_record"]

Vector = NDArray[np.float64]
IntArray = NDArray[np.int64]
_Part = Callable[[NDArray[Any]], NDArray[Any]]
_ROWS = 256  # rows that a feature map sees at a time


class Problem(Protocol):
    """Private records with a loss, seen through sums that are bounded; the rest is public.

    `records` is public only under "replace_one" and "zero_out". With `unit` "person", a record is all that one person
    has.
    """

    domain: ConvexSet
    ridge: Ridge
    shape: tuple[int, ...]

    @property
    def unit(self) -> Unit:
        """Whom a record stands for."""
        ...

    @property
    def lipschitz(self) -> float | None:
        """A proven bound on every record's gradient norm over the domain, if there is one."""
        ...

    @property
    def records(self) -> int:
        """How many there are."""
        ...

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: IntArray | None = None, most_records: int = MOST_RECORDS
    ) -> LatticeSum:
        """Sum of the bounded gradients of the records at `indices` (all by default). Private."""
        ...

    def plain_gradient(self, theta: Vector) -> Vector:
        """The average gradient with the penalty's, neither bounded nor rounded. **Not private**: to compare with."""
        ...

    def difference_sum(
        self,
        theta: Vector,
        anchor: Vector,
        *,
        rule: Bounding,
        indices: IntArray | None = None,
        most_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        """Sum of ∇ℓ(θ) − ∇ℓ(anchor), record by record bounded as one vector. Private."""
        ...

    def slope_sum(
        self,
        theta: Vector,
        direction: Vector,
        *,
        clip: float,
        indices: IntArray | None = None,
        most_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        """Sum of (ℓ(θ + u) − ℓ(θ − u))/2 for the direction u, each cut to ±clip. Private."""
        ...

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, most_records: int = MOST_RECORDS
    ) -> LatticeSum:
        """Sum of the losses less `centre` (a public number), each cut to ±clip. Private."""
        ...


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


class RecordProblem:
    """Any loss with per-record gradients. Made by `per_record`."""

    lipschitz: float | None = None
    unit: Unit = "record"

    def __init__(
        self, loss: RecordLoss, X: Any, y: Any, *, shape: tuple[int, ...], domain: ConvexSet, ridge: Ridge
    ) -> None:
        self.loss, self.X, self.y, self.shape, self.domain, self.ridge = loss, X, y, shape, domain, ridge

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self.X.shape[0])

    def gradient_sum(
        self, theta: Vector, *, rule: Bounding, indices: IntArray | None = None, most_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._sum(lambda X, y: self._gradients(theta, X, y), self.shape, rule, indices, most_records)

    def plain_gradient(self, theta: Vector) -> Vector:
        return np.asarray(self._gradients(theta, self.X, self.y).mean(axis=0)) + self.ridge.gradient(theta)

    def difference_sum(
        self,
        theta: Vector,
        anchor: Vector,
        *,
        rule: Bounding,
        indices: IntArray | None = None,
        most_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        def differences(X: Any, y: Any) -> NDArray[Any]:
            return np.asarray(self._gradients(theta, X, y) - self._gradients(anchor, X, y))

        return self._sum(differences, self.shape, rule, indices, most_records)

    def slope_sum(
        self,
        theta: Vector,
        direction: Vector,
        *,
        clip: float,
        indices: IntArray | None = None,
        most_records: int = MOST_RECORDS,
    ) -> LatticeSum:
        def slopes(X: Any, y: Any) -> NDArray[Any]:
            ahead, behind = (self.loss.values(theta + sign * direction, X, y) for sign in (1, -1))
            return np.asarray((ahead - behind) / 2)

        return self._sum(slopes, (), Clip(clip=clip), indices, most_records)

    def loss_sum(
        self, theta: Vector, *, clip: float, centre: float = 0.0, most_records: int = MOST_RECORDS
    ) -> LatticeSum:
        return self._sum(
            lambda X, y: np.asarray(self.loss.values(theta, X, y)) - centre, (), Clip(clip=clip), None, most_records
        )

    def _sum(
        self,
        contributions: Callable[[Any, Any], NDArray[Any]],
        shape: tuple[int, ...],
        rule: Bounding,
        indices: IntArray | None,
        most_records: int,
    ) -> LatticeSum:
        """Bounded sum, a block of records at a time.

        Every block has one public size, the last one filled up with its first record: a matrix product may round a
        row differently with the number of rows beside it, and then one record more would change the others' shares.
        """
        count = self.records if indices is None else len(indices)
        check_count(count, most_records)
        rows = _power_of_two(max(1, min(256, 2**20 // math.prod(shape), 2 * most_records - 1)))
        units, within = np.zeros(shape, dtype=np.int64), 0
        for first in range(0, count, rows):
            chosen = np.arange(first, min(first + rows, count)) if indices is None else indices[first : first + rows]
            part = np.append(chosen, np.full(rows - len(chosen), chosen[0]))
            with np.errstate(all="ignore"):
                block = contributions(self.X[part], self.y[part])
            if np.shape(block) != (rows, *shape):
                raise InvalidParameter(
                    f"Expected one value of shape {shape} a record, got rows of shape {np.shape(block)[1:]} or another "
                    "number of them: a sum or mean over records has no per-record bound. Return one row a record."
                )
            share = record_sum(block[: len(chosen)], rule=rule, most_records=most_records)
            units += share.units
            within += share.within
        step = lattice_step(rule.clip, most_records=most_records)
        return LatticeSum(units=units, step=step, clip=rule.clip, within=within)

    def _gradients(self, theta: Vector, X: Any, y: Any) -> NDArray[Any]:
        return np.asarray(self.loss.gradients(theta, X, y), dtype=np.float64)

    def __repr__(self) -> str:
        return f"RecordProblem(private records, {self.loss!r}, shape={self.shape}, domain={self.domain!r})"


@overload
def glm(
    loss: str | Loss,
    X: Any,
    y: Any,
    *,
    row_norm: float,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
    groups: None = None,
) -> LinearProblem: ...


@overload
def glm(
    loss: str | Loss,
    X: Any,
    y: Any,
    *,
    row_norm: float,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
    groups: Any,
) -> GroupedProblem: ...


def glm(
    loss: str | Loss,
    X: Any,
    y: Any,
    *,
    row_norm: float,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
    groups: Any = None,
) -> LinearProblem | GroupedProblem:
    """A generalised linear model on private records.

    Rows longer than `row_norm` are shortened to it; a record with a value that is not finite, or a label outside the
    declared set, is emptied: it counts as zero, in every step, and nothing tells.

    Parameters
    ----------
    loss : a loss, or its name, e.g. "logistic", "squared"
    X : (n, d) numbers, dense, CSR or a data frame; private
    y : (n,) labels; private
    row_norm : public bound on ‖x‖, chosen without the data; with `features`, on the rows before the map
    domain : the set to stay in; the whole space by default
    ridge : strength of the penalty (ridge/2)‖θ‖², which is public and stays outside the clip
    features : a public map φ, e.g. `AppendOne()` for an intercept; the norm of φ(x) is what counts
    groups : (n,) labels, numbers or texts: whose row it is; private. Then what is bounded is a person's whole
        contribution, the mean over its rows, and the guarantee is for a person with all rows; see `GroupedProblem`.
        A row without a label counts as nothing

    Examples
    --------
    >>> problem = glm("logistic", [[0.6, 0.8], [1.0, 0.0]], [0, 1], row_norm=1.0)
    >>> problem
    LinearProblem(private records, LogisticLoss(labels='zero_one'), row_norm=1, domain=whole_space())
    >>> problem.lipschitz
    1.0
    """
    chosen = loss if isinstance(loss, Loss) else loss_named(loss)
    rows = as_matrix(X)
    if features is not None:
        rows, row_norm = _mapped(features, rows), features.output_norm(row_norm)
    labels = as_vector(y, rows.shape[0])
    keep = np.asarray(chosen.admissible(labels), dtype=bool)
    table = bounded_table(rows, row_norm=row_norm, keep=keep)
    labels = np.where(keep, labels, 0.0)
    place = domain if domain is not None else whole_space()
    problem: LinearProblem | GroupedProblem
    if groups is None:
        problem = LinearProblem(chosen, table, labels, domain=place, ridge=Ridge(strength=ridge))
    else:
        people = numbered(groups, rows.shape[0])
        problem = GroupedProblem(chosen, table, labels, people, domain=place, ridge=Ridge(strength=ridge))
    _check_domain(problem.domain, math.prod(problem.shape))
    return problem


def per_record(
    loss: RecordLoss,
    X: Any,
    y: Any = None,
    *,
    shape: int | tuple[int, ...],
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
) -> RecordProblem:
    """Any loss on private records, through one gradient a record; clipping carries the privacy claim alone.

    Parameters
    ----------
    loss : values and gradients of records; each must depend on its own record only
    X, y : the records, indexable by rows; private
    shape : the shape of θ
    domain, ridge : as in `glm`

    Examples
    --------
    >>> from privet.losses import LinearRecords, SquaredLoss
    >>> per_record(LinearRecords(loss=SquaredLoss(factor=2)), [[1.0, 2.0]], [1.0], shape=2).shape
    (2,)
    """
    rows = np.asarray(X)
    labels = np.zeros(rows.shape[:1]) if y is None else np.asarray(y)
    if rows.ndim == 0 or labels.shape[:1] != rows.shape[:1]:
        raise InvalidParameter(
            "Expected X and y to be arrays of equally many records, got unequal lengths or no array: records and "
            "labels would be paired wrongly. Pass dense arrays with one row and one label a record."
        )
    full = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(side, int) and side >= 1 for side in full):
        raise InvalidParameter(
            f"Expected shape to be whole numbers of at least 1, got {shape!r}: it is the shape of the coefficients. "
            "Pass e.g. shape=3."
        )
    chosen = domain if domain is not None else whole_space()
    _check_domain(chosen, math.prod(full))
    return RecordProblem(loss, rows, labels, shape=full, domain=chosen, ridge=Ridge(strength=ridge))


def _mapped(features: FeatureMap, rows: Any) -> Any:
    """φ of each row, in blocks of one size: no last bit of a row's image depends on how many others there are."""
    count = rows.shape[0]
    if sparse.issparse(rows):
        return as_matrix(features.transform(rows))
    images = []
    with np.errstate(all="ignore"):
        for first in range(0, max(count, 1), _ROWS):
            block = np.zeros((_ROWS, rows.shape[1]), dtype=rows.dtype)
            here = rows[first : first + _ROWS]
            block[: len(here)] = here
            image = as_matrix(features.transform(block))
            if image.shape[0] != _ROWS:
                raise InvalidParameter(
                    "Expected a feature map with one image a row, got another number of them: records and labels would "
                    "be paired wrongly. Map each row by itself."
                )
            images.append(image[: len(here)])
    return sparse.vstack(images, format="csr") if sparse.issparse(images[0]) else np.vstack(images)


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


def _check_domain(domain: ConvexSet, dimension: int) -> None:
    try:
        ok = domain.contains(domain.centre(dimension), tolerance=1e-9)
    except ValueError:  # a set of another dimension says so, as InvalidParameter or as NumPy does
        ok = False
    if not ok:
        raise InvalidParameter(
            f"Expected a domain of dimension {dimension}, got {domain!r}: the coefficients would not fit in it. "
            "Count an appended 1, and all classes of a multinomial model."
        )
