"""A private Newton direction: how far one record turns it, a solve that is certified, and its noise."""

import math
from fractions import Fraction

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from privet.arrays import Vector
from privet.clipping import LatticeSum
from privet.errors import InvalidParameter
from privet.geometry.convex_set import length
from privet.plan import Meter

DIRECTIONS = "directions"
_SOLVE = 2.0**-12  # error of the computed direction, in units of its sensitivity
_UNIT = 2.0**-53


def direction_sensitivity(influence: float, damping: float, d: int, max_records: int) -> float:
    """How far one record, zeroed out or replaced, moves (H + λI)⁻¹ in spectral norm: κ/(λ² + λκ), rounded up.

    Refuses, on public facts, what is too ill-conditioned to be solved in floats to `_SOLVE` of that.
    Theorem: docs/proofs/drawing.md, sections 5 and 6.

    Examples
    --------
    >>> round(direction_sensitivity(0.001, 0.1, 5, 250), 6)
    0.09901
    """
    found = influence / (damping * (damping + influence)) * (1 + 2.0**-40)
    # ‖|M|‖ ≤ trace H + λ√d ≤ κ · records + λ√d; section 6
    rounding = 8 * (d + 8) * _UNIT * (influence * max_records + damping * (1 + math.sqrt(d))) / damping**2
    if not rounding <= _SOLVE * found or not 2.0**-300 <= found <= 2.0**300:
        raise InvalidParameter(
            f"Expected a damping at which {d} equations can be solved in floats, got {damping:g} in all: the rounding "
            "would be no longer small beside one record's influence. Use another damping, or fewer columns."
        )
    return found


def newton_direction(moments: LatticeSum, gradient: Vector, *, scale: float, damping: float, error: float) -> Vector:
    """(scale · moments + damping · I)⁻¹ gradient, to within `_SOLVE` × error × ‖gradient‖, certainly. Private.

    Theorem: as the matrix is at least damping · I, the error is at most ‖residual‖ ÷ damping; and the residual is
    computed with a bound on its own rounding. docs/proofs/drawing.md, section 6.
    """
    matrix = moments.units.astype(np.float64) * (moments.step * scale)
    matrix[np.diag_indices_from(matrix)] += damping
    allowed = _SOLVE * error * float(np.linalg.norm(gradient))
    try:
        factor = cho_factor(matrix)
        found: Vector = cho_solve(factor, gradient)
        found += cho_solve(factor, gradient - matrix @ found)
    except (LinAlgError, ValueError):  # it never is, but if so, nobody must see it
        found = np.zeros_like(gradient)
    residual = float(np.linalg.norm(gradient - matrix @ found))
    size = float(np.linalg.norm(np.abs(matrix) @ np.abs(found))) + float(np.linalg.norm(gradient))
    if (residual + (len(gradient) + 8) * _UNIT * size) * (1 + 2.0**-30) <= allowed * damping:
        return found
    return _exact_solution(moments, gradient, scale, damping)


def _exact_solution(moments: LatticeSum, gradient: Vector, scale: float, damping: float) -> Vector:
    """The same in fractions, by elimination: slow, and never needed unless a linear algebra library misbehaves."""
    factor = Fraction(moments.step * scale)
    rows = [
        [factor * int(entry) for entry in row] + [Fraction(g)] for row, g in zip(moments.units, gradient, strict=True)
    ]
    for i, row in enumerate(rows):
        row[i] += Fraction(damping)
    for i, pivot in enumerate(rows):  # positive definite: no pivot is ever 0
        for row in rows[i + 1 :]:
            ratio = row[i] / pivot[i]
            row[i:] = [a - ratio * b for a, b in zip(row[i:], pivot[i:], strict=True)]
    found: list[Fraction] = []
    for i in reversed(range(len(rows))):
        known = sum(a * b for a, b in zip(rows[i][i + 1 : -1], reversed(found), strict=True))
        found.append((rows[i][-1] - known) / rows[i][i])
    return np.array([float(x) for x in reversed(found)])


def gradient_size(gradient: Vector) -> float:
    """‖gradient‖ of a public gradient, rounded up; 0 where it is nothing, and so is its direction."""
    size = length(gradient) * (1 + 2.0**-30)
    if not size <= 2.0**300:
        raise InvalidParameter(
            "Expected the descent to stay finite, got a gradient beyond all bounds: the step size is too large. "
            "Use a smaller step size, more damping, or a bounded domain."
        )
    return size if size >= 2.0**-300 else 0.0


def noisy_direction(meter: Meter, direction: Vector, *, size: float, sensitivity: float) -> Vector:
    """The open release of a direction for a gradient of norm at most `size`, with its noise; public."""
    moved = sensitivity * size
    step = math.ldexp(1.0, math.frexp(moved)[1] - 31)
    # the move itself, both ends' error of the solution, and both ends' rounding to the lattice
    most = moved * (1 + 2 * _SOLVE) + math.sqrt(direction.size) * step
    with np.errstate(over="ignore"):
        units = np.clip(np.rint(direction / step), -(2.0**61), 2.0**61).astype(np.int64)
    return meter.noisy_units(DIRECTIONS, units, step=step, sensitivity=most)
