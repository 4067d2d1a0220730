"""The lattice on which a computed minimiser is put before noise is added: far finer than the noise, and public."""

from __future__ import annotations

import math

import numpy as np

from privet.arrays import IntArray, Vector
from privet.errors import InvalidParameter
from privet.solvers.minimise import Minimiser

_LATTICE = 40  # bits of the noise's standard deviation


def lattice_of(stddev: float, solver: Minimiser) -> float:
    """The power of two on whose multiples a minimiser is put: far finer than the noise, and within 2^61 of them."""
    furthest = solver.reach + float(np.linalg.norm(solver.start))
    step = math.ldexp(1.0, max(math.frexp(stddev)[1] - 1 - _LATTICE, math.frexp(furthest)[1] - 61))
    if not 2.0**11 * step <= stddev < 2.0**400:
        raise InvalidParameter(
            f"Expected noise that is within 2^50 of the largest coefficients, got a standard deviation of {stddev:g} "
            f"and coefficients up to {furthest:g}: floats cannot hold both. Ask for a smaller epsilon, or bound the "
            "domain."
        )
    return step


def slack_of(step: float, solver: Minimiser) -> float:
    """How far `on_lattice` and the pull towards the start may round a minimiser; public."""
    furthest = solver.reach + float(np.linalg.norm(solver.start))
    return math.sqrt(math.prod(solver.problem.shape)) * step + 2.0**-48 * furthest


def on_lattice(w: Vector, step: float, solver: Minimiser) -> IntArray:
    """`w` in whole steps, each coordinate within reach, so that nothing overflows; private."""
    furthest = solver.reach + float(np.linalg.norm(solver.start))
    return np.rint(np.clip(w, -furthest, furthest) / step).astype(np.int64)
