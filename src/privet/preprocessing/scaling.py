"""Public facts about features: rows to norm at most 1, and coefficients back."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from privet.arrays import BoolArray, Vector
from privet.clipping.lattice import check_clip
from privet.data.elsewhere import ElsewhereRows
from privet.errors import InvalidParameter
from privet.preprocessing.row_maps import RowMap, stretched
from privet.preprocessing.tails import Root
from privet.preprocessing.whitening import Shift, Whitening

_ROWS = 1 << 12


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scaling:
    """Each feature from its range [low, high] into [−1, 1], a constant beside them, and the row to norm at most 1.

    A range that holds 0 is divided by its larger end, so that 0 stays 0; another is centred, and with `centred` all are
    but [0, 1]. Values outside count as the nearest end; a missing value, as the middle (or 0). `norm` bounds the row of
    features before the constant joins it: √features unless something better is known; longer rows are shortened later.
    `constant` is its size. With a `whitening`, scaled features are turned by it first, and the rest is about what they
    are then. `roots` are maps of some columns, by place: each makes one more feature of a value that is kept to its
    range, behind the others, and has a range among `low` and `high` as they have.
    """

    low: Vector
    high: Vector
    intercept: bool
    norm: float
    constant: float = 1.0
    centred: bool = False
    whitening: Whitening | Shift | None = None
    roots: tuple[tuple[int, Root], ...] = ()

    @property
    def shrink(self) -> float:
        """What the scaled row and its constant are multiplied by to have norm at most 1."""
        return 1.0 / math.hypot(self.norm, self.constant if self.intercept else 0.0)

    @property
    def spread(self) -> float:
        """The standard deviation of a whitened value once the row is scaled to norm at most 1, about."""
        return self.shrink * (self.whitening.spread if isinstance(self.whitening, Whitening) else 1.0)

    @property
    def total(self) -> float:
        """What records add up to, or weigh, for each that was counted on; 1 unless that was looked at."""
        return 1.0 if self.whitening is None else self.whitening.total

    @property
    def middle(self) -> Vector:
        """What becomes 0: 0 itself where the range holds it, else the middle."""
        return np.where(self._holds_zero, 0.0, self.low / 2 + self.high / 2)

    @property
    def half(self) -> Vector:
        """What becomes 1: the largest distance from `middle` in the range; 1 where there is none."""
        width = np.where(
            self._holds_zero, np.maximum(np.abs(self.low), np.abs(self.high)), self.high / 2 - self.low / 2
        )
        return np.where(width > 0, width, 1.0)

    @property
    def stretch(self) -> Vector:
        """What scaled features are multiplied by for all ranges to be as wide as [−1, 1]; 1 for [0, 1] itself."""
        width = np.maximum(self.high / 2 - self.low / 2, self.half / 2)
        return np.where((self.low == 0) & (self.high == 1), 1.0, self.half / width)

    @property
    def _holds_zero(self) -> BoolArray:
        if self.centred:
            return np.asarray((self.low == 0) & (self.high == 1))
        return np.asarray((self.low <= 0) & (self.high >= 0))

    @property
    def may_be_centred(self) -> bool:
        """Whether `centred` would change anything."""
        return bool((replace(self, centred=True)._holds_zero != self._holds_zero).any())

    def features(self, rows: Vector) -> Vector:
        """Raw rows to rows of values in [−1, 1]. Private in, private out; each row by itself."""
        return self._stretching()(np.array(rows, dtype=np.float64, order="C"))

    def turned(self, rows: Vector) -> Vector:
        """As `features`, and whitened if there is a whitening."""
        return self._turning()(np.array(rows, dtype=np.float64, order="C"))

    def prepare(self, rows: Vector) -> Vector:
        """Raw rows to rows with their constant, of norm at most 1 if `norm` holds."""
        return self.preparing()(np.array(rows, dtype=np.float64, order="C"))

    def preparing(self) -> RowMap:
        """`prepare` for many blocks of rows, each of which it may change."""
        constants = (self.constant,) if self.intercept else ()
        shrink = self.shrink
        if isinstance(self.whitening, Whitening):
            stretch = self._stretching()
            turn = self.whitening.map(shrink=shrink, constants=constants)
            return lambda rows: turn(stretch(rows))
        turned, ends = self._turning(), np.array(constants)
        return lambda rows: np.hstack([turned(rows), np.broadcast_to(ends, (len(rows), len(ends)))]) * shrink

    def _stretching(self) -> RowMap:
        stretch = stretched(self.low, self.high, self.middle, self.half)
        return (lambda rows: stretch(self._widened(rows))) if self.roots else stretch

    def _widened(self, rows: Vector) -> Vector:
        """Rows with what `roots` make of them behind; a missing value makes a missing one."""
        more = [root(np.clip(rows[:, place], self.low[place], self.high[place])) for place, root in self.roots]
        return np.column_stack([rows, *more])

    def _turning(self) -> RowMap:
        stretch = self._stretching()
        if self.whitening is None:
            return stretch
        turn = self.whitening.map()
        return lambda rows: turn(stretch(rows))

    def rows(self, X: Any) -> Any:
        """As `prepare`, for CSR rows too, whose zeros stay zeros; or None where `prepare` will do it block by block."""
        if not sparse.issparse(X) or self.whitening is not None:
            return None
        rows = sparse.csr_matrix((self._sparse_values(X), X.indices, X.indptr), shape=X.shape)
        if self.intercept:
            rows = sparse.hstack([rows, np.full((rows.shape[0], 1), self.constant)], format="csr")
        rows.data *= self.shrink
        return rows

    def norms(self, X: Any) -> Vector:
        """The norm of each row once its features are scaled, without the constant. Private."""
        if isinstance(X, ElsewhereRows):
            return X.each(self.norms)  # type: ignore[return-value]  # a number a row, wherever they are
        norms = np.empty(X.shape[0])
        with np.errstate(all="ignore"):
            if sparse.issparse(X) and self.whitening is None:
                places = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
                norms[:] = np.sqrt(np.bincount(places, weights=self._sparse_values(X) ** 2, minlength=X.shape[0]))
                return norms
            turn = self._turning()
            for first in range(0, len(norms), _ROWS):
                part = slice(first, first + _ROWS)
                # in C order, where a row is summed alike whether it stands alone in its block or not
                block = turn(np.array(dense(X[part]), dtype=np.float64, order="C"))
                norms[part] = np.sqrt(np.square(block).sum(axis=1))
        return norms

    def with_constant(self, constant: float) -> "Scaling":
        """The same with another constant."""
        return replace(self, constant=constant)

    def with_norm(self, norm: float) -> "Scaling":
        """The same with another bound on the rows' norm."""
        return replace(self, norm=norm)

    def with_whitening(self, whitening: Whitening | Shift) -> "Scaling":
        """The same with rows turned."""
        return replace(self, whitening=whitening)

    def with_roots(self, roots: tuple[tuple[int, Root], ...]) -> "Scaling":
        """The same with a feature more for each of the maps, of which there are none yet."""
        low, high = ([*ends, *(float(root(ends[place])) for place, root in roots)] for ends in (self.low, self.high))
        norm = math.hypot(self.norm, math.sqrt(len(roots)))
        return replace(self, low=np.array(low), high=np.array(high), norm=norm, roots=roots)

    @property
    def ranges(self) -> tuple[Vector, Vector]:
        """The ranges of columns, without what was made of them."""
        columns = len(self.low) - len(self.roots)
        return self.low[:columns], self.high[:columns]

    def with_zeros(self) -> "Scaling":
        """The same with ranges that hold 0, as sparse rows need."""
        return replace(self, low=np.minimum(self.low, 0.0), high=np.maximum(self.high, 0.0))

    def clipped(self, X: Any) -> Any:
        """Raw rows with every value kept to its range, and missing ones in its middle; for predictions.

        With what `roots` make of them behind.
        """
        if self.roots:
            X = self._widened(np.asarray(dense(X), dtype=np.float64))
        if sparse.issparse(X):
            found = X.copy()
            with np.errstate(invalid="ignore"):
                found.data = np.clip(found.data, self.low[found.indices], self.high[found.indices])
            found.data[np.isnan(found.data)] = 0.0
            return found
        return np.where(np.isnan(X), self.middle, np.clip(X, self.low, self.high))

    def _sparse_values(self, X: Any) -> Vector:
        places = X.indices
        with np.errstate(all="ignore"):
            values = np.clip(X.data.astype(np.float64), self.low[places], self.high[places]) / self.half[places]
        return np.where(np.isnan(values), 0.0, values)

    @property
    def spreads(self) -> Vector:
        """What θ of prepared rows is multiplied by for slopes a standard deviation of each feature, constant last.

        Where nothing is known of those, a half range each.
        """
        count, constant = len(self.low), [self.constant] * int(self.intercept)
        if not isinstance(self.whitening, Whitening):
            scale = np.ones(count) if self.whitening is None else self.whitening.scale
            return np.diag(np.append(scale, constant)) * self.shrink
        matrix = self.whitening.matrix
        found = np.zeros((count + len(constant),) * 2)
        found[:count, :count] = matrix * np.linalg.norm(np.linalg.inv(matrix), axis=0)[:, None]
        found[count:, count:] = self.constant
        return found * self.shrink

    @property
    def slopes(self) -> Vector:
        """What θ of prepared rows is multiplied by for coefficients: a matrix, or its diagonal; 0 for the constant."""
        if not isinstance(self.whitening, Whitening):
            scale = 1.0 if self.whitening is None else self.whitening.scale
            return np.append(scale * self.shrink / self.half, np.zeros(int(self.intercept)))
        turned = self.whitening.matrix * self.shrink / self.half[:, None]
        return np.column_stack([turned, np.zeros((len(turned), int(self.intercept)))])

    def unscaled(self, theta: Vector) -> tuple[Vector, Vector]:
        """Coefficients and intercepts in the features' own units, from θ (columns, outputs) on prepared rows."""
        count = len(self.low)
        slopes = theta[:count] * self.shrink
        intercept = theta[count] * (self.shrink * self.constant) if self.intercept else np.zeros(theta.shape[1])
        if self.whitening is not None:
            slopes = self.whitening.back(slopes)
            intercept = intercept - self.whitening.mean @ slopes
        coef = slopes.T / self.half
        return coef, intercept - coef @ self.middle


def dense(rows: Any) -> Any:
    """Rows as an array, if they are sparse."""
    return rows.toarray() if sparse.issparse(rows) else rows


def scaling_from(bounds: Any, columns: int, *, intercept: bool) -> Scaling:
    """Ranges as the caller gives them: (low, high), each one number or one a feature."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in bounds)
    except (TypeError, ValueError):
        low = high = np.full(columns, np.nan)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise InvalidParameter(
            f"Expected bounds=(low, high) with finite numbers, one or {columns} each, low at most high: the features' "
            "public ranges bound what a record can change. Pass e.g. bounds=(0, 1), or None to learn them privately."
        )
    return Scaling(low=low.copy(), high=high.copy(), intercept=intercept, norm=math.sqrt(columns))


def declared_columns(bounds: Any) -> int | None:
    """For how many features `bounds` are: None if they are numbers for all of them, or no bounds.

    Examples
    --------
    >>> declared_columns((0, [1, 2, 3])), declared_columns((0, 1)), declared_columns(None)
    (3, None, None)
    """
    try:
        most = max(np.size(end) for end in bounds)
    except (TypeError, ValueError):
        return None
    return most if most > 1 else None


def given_scaling(bounds: Any, row_norm: float | None, columns: int, *, intercept: bool) -> Scaling | None:
    """The scaling that a caller's `bounds` or `row_norm` say, or None; with both, `row_norm` is of rows once scaled."""
    if bounds is None and row_norm is None:
        return None
    if bounds is None:  # rows whose public bound is on their norm, e.g. those of a `TableEncoder`
        size = np.full(columns, check_clip(row_norm, name="row_norm"))  # type: ignore[arg-type]  # it is there
        return Scaling(low=-size, high=size, intercept=intercept, norm=1.0)
    scaling = scaling_from(bounds, columns, intercept=intercept)
    return scaling if row_norm is None else replace(scaling, norm=min(scaling.norm, float(row_norm)))
