"""Sums of curvatures, and those behind a standard error: of them (the bread), squared gradients (the meat), norms."""

import math

import numpy as np

from privet.arrays import IntArray, Vector
from privet.clipping.lattice import MOST_RECORDS, LatticeSum, check_clip, check_count
from privet.errors import InvalidParameter
from privet.sums.blocks import Work, shared
from privet.sums.glm import Derivative, outer, rounded
from privet.sums.table import Table

_ROW_BITS = 5  # beyond the rows' own 15: a block of 2^12 products of 2^40 is below 2^53
_CLIP_BITS = 20  # of a gradient of the clip's length


def curvature_sum(
    curvature: Derivative,
    table: Table,
    labels: Vector,
    theta: Vector,
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
    finer = 2.0 ** _extra_bits(table.shape[0], max_records)
    theta_units, theta_step = rounded(theta)

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros((table.shape[1],) * 2, dtype=np.int64)
        for x, y, _ in work.blocks(first, last):
            with np.errstate(all="ignore"):
                h = np.array(
                    curvature(work.predictions(x, theta_units) * (table.step * theta_step), y), dtype=np.float64
                )
            total += outer(x, _bent(h, smoothness, finer))
        return total, 0

    units, _ = shared(share, table, labels, None, table.shape[0], threads)
    return LatticeSum(units=units, step=(table.step / finer) ** 2, clip=table.row_norm * table.row_norm)


def _extra_bits(count: int, max_records: int) -> int:
    """By how many bits rows may be finer than their own 15 so that no entry of their second moment overflows."""
    check_count(count, max_records, saturates=True)
    extra = min(_ROW_BITS, (61 - 30 - max(max_records - 1, 0).bit_length()) // 2)  # entries: below 2^(30 + 2 extra)
    if extra < 0:
        raise InvalidParameter(f"""Expected at most 2^31 records in one sum, got {max_records:,}: it could overflow 64
            bits. Use fewer records.""")
    return extra


def _bent(curvature: Vector, smoothness: float, finer: float) -> Vector:
    """√(curvature ÷ smoothness) × finer, at most `finer`, so that rounding makes no row longer; 0 if not finite."""
    curvature[~np.isfinite(curvature)] = 0.0
    with np.errstate(over="ignore"):
        return finer * np.minimum(np.sqrt(np.maximum(curvature, 0.0) / smoothness), 1.0)


def sandwich_sums(
    derivative: Derivative,
    curvature: Derivative,
    table: Table,
    labels: Vector,
    theta: Vector,
    *,
    clip: float,
    smoothness: float,
    max_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> tuple[LatticeSum, LatticeSum]:
    """Σ h x xᵀ ÷ smoothness over records whose gradient is not clipped, and Σ g gᵀ over all clipped gradients g.

    The first is, but for its unit, the Hessian of the clipped objective: where |ℓ′|·‖x‖ exceeds the clip, the
    clipped gradient does not change with θ along x. The second is what its sampling error is made of.

    Promise: each record's share is r rᵀ with r a whole vector, of l2 norm at most row_norm ÷ √step in the first sum
    and clip ÷ √step in the second, in exact arithmetic. So one record moves the first by at most row_norm², the
    second by at most clip² in Frobenius norm. What is not finite counts as zero; neither the order of the rows nor
    blocks nor threads change a bit.
    Theorem: docs/proofs/intervals.md, section 1.

    Parameters
    ----------
    derivative, curvature : ∂ℓ/∂z and ∂²ℓ/∂z², functions of each record's own z and y
    clip : bound on a record's gradient norm
    smoothness : the public bound on the curvature
    others : as in `glm_sum`

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[1.0, 0.0], [0.0, 1.0]]), row_norm=1.0)
    >>> bread, meat = sandwich_sums(lambda z, y: z - y, lambda z, y: np.ones_like(z), table, np.array([0.5, 9.0]),
    ...                             np.zeros(2), clip=1.0, smoothness=1.0)
    >>> bread.value.round(3).tolist(), meat.value.round(3).tolist()
    ([[1.0, 0.0], [0.0, 0.0]], [[0.25, 0.0], [0.0, 1.0]])
    """
    smoothness = check_clip(smoothness, name="smoothness")
    clip = check_clip(clip)
    finer = 2.0 ** _extra_bits(table.shape[0], max_records)
    room = 61 - max(max_records - 1, 0).bit_length()
    grid = math.ldexp(1.0, math.frexp(clip)[1] - min(_CLIP_BITS, room // 2))  # the clip is 2^(b−1) to 2^b of it
    most = float(math.floor(clip / grid))
    theta_units, theta_step = rounded(theta)

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros((2, table.shape[1], table.shape[1]), dtype=np.int64)
        for x, y, inverse in work.blocks(first, last):
            with np.errstate(all="ignore"):
                z = work.predictions(x, theta_units) * (table.step * theta_step)
                slope = np.abs(np.array(derivative(z, y), dtype=np.float64)) * (table.step / grid)
                bend = np.array(curvature(z, y), dtype=np.float64)
            slope[~np.isfinite(slope)] = 0.0
            cap = most * inverse  # slope · ‖x‖ is within the clip when slope ≤ cap
            bend[slope > cap] = 0.0
            total[0] += outer(x, _bent(bend, smoothness, finer))
            total[1] += outer(x, np.minimum(slope, cap))
        return total, 0

    (bread, meat), _ = shared(share, table, labels, None, table.shape[0], threads)
    return (
        LatticeSum(units=bread, step=(table.step / finer) ** 2, clip=table.row_norm * table.row_norm),
        LatticeSum(units=meat, step=grid**2, clip=math.nextafter(clip * clip, math.inf)),
    )


def norm_counts(
    derivative: Derivative,
    table: Table,
    labels: Vector,
    theta: Vector,
    *,
    edges: Vector,
    max_records: int = MOST_RECORDS,
    threads: int | None = None,
) -> LatticeSum:
    """How many records have a gradient longer than edges[0], at most that but longer than edges[1], and so on.

    Promise: a record is counted in one bin at most, on its own z and y, so that it moves the counts by at most 1 in l2
    norm; replaced, by at most √2. Records whose gradient is zero, not finite, or at most the last edge, in none.

    Parameters
    ----------
    edges : positive, falling; public
    others : as in `glm_sum`

    Examples
    --------
    >>> from privet.sums import bounded_table
    >>> table = bounded_table(np.array([[1.0], [0.5], [0.5]]), row_norm=1.0)
    >>> norm_counts(lambda z, y: z - y, table, np.array([3.0, 1.0, 0.1]), np.zeros(1), edges=np.array([1.0, 0.4])).value
    array([1., 1.])
    """
    count = table.shape[0]
    check_count(count, min(max_records, 2**31), saturates=True)  # counted in units of 2^-30
    theta_units, theta_step = rounded(theta)
    scaled = np.array([check_clip(edge, name="edges") for edge in edges]) / table.step

    def share(work: Work, first: int, last: int) -> tuple[IntArray, int]:
        total = np.zeros(len(scaled), dtype=np.int64)
        for x, y, inverse in work.blocks(first, last):
            with np.errstate(all="ignore"):
                slope = np.abs(
                    np.array(
                        derivative(work.predictions(x, theta_units) * (table.step * theta_step), y), dtype=np.float64
                    )
                )
            slope[~(np.isfinite(slope) & (inverse > 0))] = 0.0
            places = np.count_nonzero(slope[:, None] <= scaled * inverse[:, None], axis=1)  # edges it does not pass
            total += np.bincount(places, minlength=len(scaled) + 1)[:-1]
        return total, 0

    units, _ = shared(share, table, labels, None, count, threads)
    return LatticeSum(units=np.minimum(units, 2**31) << 30, step=2.0**-30, clip=1.0)
