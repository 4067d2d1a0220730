"""The Hessian's sum for a generalised linear model: Σ h·x xᵀ with bounded weights h, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet.clipping.lattice import MOST_RECORDS, LatticeSum, check_clip, check_count
from privet.errors import InvalidParameter
from privet.sums.blocks import IntArray, Work, shared
from privet.sums.glm import Derivative, _rounded
from privet.sums.table import Table

_MOST_BITS = 5  # beyond the rows' own 15: a block of 2^12 products of 2^40 is below 2^53


def curvature_sum(
    curvature: Derivative,
    table: Table,
    labels: NDArray[np.float64],
    theta: NDArray[np.float64],
    *,
    smoothness: float,
    max_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """Σ h x xᵀ ÷ smoothness, h the curvature at each record's ⟨x, θ⟩ cut to [0, smoothness], as a sum of r rᵀ.

    Promise: each record's share is r rᵀ with r a whole vector of l2 norm at most row_norm ÷ √step, in exact
    arithmetic; so it is positive semidefinite and moves the sum by at most row_norm² in Frobenius norm. A record whose
    curvature is not finite counts as zero; neither the order of the rows nor blocks nor threads change a bit.
    Rounding: r is √(h ÷ smoothness) x towards zero, on a grid up to 32 times finer than the rows' own.
    Theorem: docs/proofs/drawing.md, section 6.

    Parameters
    ----------
    curvature : ∂²ℓ/∂z², a function of each record's own z and y
    smoothness : the public bound on it
    others : as in `glm_sum`

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[0.5, 0.5]]), row_norm=1.0)
    >>> bent = lambda z, y: np.full_like(z, 0.25)
    >>> curvature_sum(bent, table, np.zeros(1), np.zeros(2), smoothness=1.0).value.tolist()
    [[0.0625, 0.0625], [0.0625, 0.0625]]
    """
    smoothness = check_clip(smoothness, name="smoothness")
    count = table.shape[0]
    check_count(count, max_records)
    extra = min(_MOST_BITS, (61 - 30 - max(max_records - 1, 0).bit_length()) // 2)  # entries: below 2^(30 + 2 extra)
    if extra < 0:
        raise InvalidParameter(
            f"Expected at most 2^31 records in one sum, got {max_records:,}: it could overflow 64 bits. "
            "Use fewer records."
        )
    finer = 2.0**extra
    theta_units, theta_step = _rounded(theta)

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros((table.shape[1],) * 2, dtype=np.int64)
        for x, y, _ in work.blocks(first, last):
            with np.errstate(all="ignore"):
                h = np.array(curvature((x @ theta_units) * (table.step * theta_step), y), dtype=np.float64)
                h[~np.isfinite(h)] = 0.0
                # At most `finer`, so |r| ≤ finer × |x| in every coordinate: rounding is monotone.
                weight = finer * np.minimum(np.sqrt(np.maximum(h, 0.0) / smoothness), 1.0)
            if isinstance(x, np.ndarray):
                r = np.trunc(x * weight[:, None])
                total += (r.T @ r).astype(np.int64)
            else:
                r = sparse.csr_matrix(x.multiply(weight[:, None]))
                np.trunc(r.data, out=r.data)
                total += (r.T @ r).toarray().astype(np.int64)
        return total, 0

    parts = shared(share, table, labels, None, count, threads)
    return LatticeSum(
        units=np.sum([units for units, _ in parts], axis=0),
        step=(table.step / finer) ** 2,
        clip=table.row_norm * table.row_norm,
    )
