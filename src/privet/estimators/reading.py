"""The private records of one fit, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.estimators.outline import Size
from privet.estimators.weights import Weights

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Records:
    """Rows, targets, weights and whose they are; private, all but `size`."""

    table: Any
    target: Any
    weights: Weights | None
    people: NDArray[np.int64] | None
    size: Size


def columns_of(X: Any) -> dict[str, Vector]:
    """Each column by a name."""
    dense = isinstance(X, np.ndarray)
    table = X if dense else X.tocsc()
    columns = (table[:, j] if dense else table[:, [j]].toarray()[:, 0] for j in range(X.shape[1]))
    return {f"x{j}": np.asarray(column, dtype=np.float64) for j, column in enumerate(columns)}
