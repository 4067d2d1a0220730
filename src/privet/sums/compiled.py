"""The two passes of a clipped sum and its bound, compiled by Numba where it is installed: the same bits, sooner.

Every sum here is of whole numbers below 2^53, so the compiler may add in any order and fuse multiply and add: it finds
vector instructions and no result changes (docs/proofs/sums.md, sections 3 to 5). The functions are plain Python, and
stay so if Numba is missing, refuses to start, or fails a first test against whole numbers; then NumPy does the work.

No threads and no locks of its own: several threads may call them at once, as they let go of Python's lock, and so may
a forked child, unless the fork happened while another thread compiled.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
_ROWS = 4096  # shares below 2^41, of so many records, are below 2^53
_WORTH_LOADING = 2**24  # values in one sum that pay for loading the compiler, a fifth of a second, in a fit of 40 steps
_WORTH_CALLING = 2**16  # values that pay for a call once that is done
_MOST_OUTPUTS = 16  # beyond, BLAS is as fast: it converts a row once for all of them
_ANY_ORDER = {"reassoc", "contract"}  # of whole numbers below 2^53: exact


class Kernels(NamedTuple):
    """The compiled functions; `predict` and `weigh` take C-ordered 16-bit rows."""

    predict: Callable[[Any, Any, Any], None]
    bound: Callable[[Any, Any, float, float], None]
    weigh: Callable[[Any, Any, Any], None]


def kernels_for(units: Any, values: int, outputs: int = 1) -> Kernels | None:
    """The compiled functions where they pay: for many values, or for fewer once they are there."""
    fits = isinstance(units, np.ndarray) and units.dtype == np.int16 and outputs <= _MOST_OUTPUTS
    if not fits or values < _WORTH_CALLING:
        return None
    return kernels() if values >= _WORTH_LOADING or kernels.cache_info().currsize else None


@cache
def kernels() -> Kernels | None:
    """The compiled functions; None where there is no compiler, or none that can be trusted. Never raises.

    Compiling takes a few seconds, once: the result is kept beside this file or in the user's cache.
    """
    return trusted(_compiled, _right)


def trusted(compiled: Callable[[bool], T], right: Callable[[T], bool]) -> T | None:
    """What `compiled` makes, kept on the disk or, where that fails, not; None if it fails, or is not `right`.

    Examples
    --------
    >>> trusted(lambda kept: 1 / 0, lambda made: True) is None
    True
    """
    for kept in (True, False):
        try:
            made = compiled(kept)
            if right(made):
                return made
        except Exception:  # noqa: BLE001, S112  # what only makes a run faster must never stop one
            continue
    return None


def _compiled(kept: bool) -> Kernels:
    """Compile, or read from the cache if `kept`; raises what Numba raises."""
    import numba

    njit: Any = numba.njit
    rows = numba.types.Array(numba.types.int16, 2, "C", readonly=True)
    line, lines, wholes = numba.types.float64[::1], numba.types.float64[:, ::1], numba.types.int64[:, ::1]
    either = {"nogil": True, "cache": kept, "error_model": "numpy"}
    return Kernels(
        njit((rows, lines, lines), fastmath=_ANY_ORDER, **either)(_predict),
        njit((line, line, numba.types.float64, numba.types.float64), **either)(_bound),
        njit((rows, lines, wholes), fastmath=_ANY_ORDER, **either)(_weigh),
    )


def _predict(x: Any, theta: Any, z: Any) -> None:
    """z[i, k] = Σ_j x[i, j] · theta[k, j], for whole x and theta whose partial sums stay below 2^53."""
    records, columns = x.shape
    outputs = theta.shape[0]
    fours = records // 4 * 4
    for k in range(outputs):
        t = theta[k]
        for i in range(0, fours, 4):  # four at a time: the coefficients are loaded once
            first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
            for j in range(columns):
                first += x[i, j] * t[j]
                second += x[i + 1, j] * t[j]
                third += x[i + 2, j] * t[j]
                fourth += x[i + 3, j] * t[j]
            z[i, k], z[i + 1, k], z[i + 2, k], z[i + 3, k] = first, second, third, fourth
        for i in range(fours, records):
            first = 0.0
            for j in range(columns):
                first += x[i, j] * t[j]
            z[i, k] = first


def _bound(a: Any, inverse: Any, clip_units: float, a_step: float) -> None:
    """Bring `a` to whole units of `a_step` of at most ⌊clip_units · inverse⌋, in place; what is not finite to 0."""
    for i in range(len(a)):
        cap = math.floor(clip_units * inverse[i])
        value = a[i] if math.isfinite(a[i]) else 0.0
        a[i] = max(min(np.rint(value / a_step), cap), -cap)


def _weigh(x: Any, a: Any, total: Any) -> None:
    """total[k, j] += Σ_i a[k, i] · x[i, j], in float64 for at most 4096 records, then in int64."""
    records, columns = x.shape
    outputs = a.shape[0]
    part = np.empty(columns)
    for k in range(outputs):
        w = a[k]
        for start in range(0, records, _ROWS):
            stop = min(start + _ROWS, records)
            fours = start + (stop - start) // 4 * 4
            part[:] = 0.0
            for i in range(start, fours, 4):
                first, second, third, fourth = w[i], w[i + 1], w[i + 2], w[i + 3]
                for j in range(columns):
                    part[j] += x[i, j] * first + x[i + 1, j] * second + x[i + 2, j] * third + x[i + 3, j] * fourth
            for i in range(fours, stop):
                for j in range(columns):
                    part[j] += x[i, j] * w[i]
            for j in range(columns):
                total[k, j] += np.int64(part[j])


def _right(made: Kernels) -> bool:
    """Whether the functions, on a small public table, find what whole numbers say; a broken compiler would not."""
    rows, columns, outputs = 75, 37, 2
    x = (np.arange(rows * columns, dtype=np.int64) * 7919 % 9973 - 4986).reshape(rows, columns)
    units = x.astype(np.int16)
    theta = (np.arange(outputs * columns, dtype=np.int64) * 104_729 % (2**34) - 2**33).reshape(outputs, columns)
    z = np.empty((rows, outputs))
    made.predict(units, theta.astype(np.float64), z)
    a, inverse = np.linspace(-(2.0**30), 2.0**30, rows), np.linspace(0.0, 1.0, rows)
    a[[3, 4, 5]] = np.nan, np.inf, -np.inf
    cap = np.floor(2.0**40 * inverse)
    wanted = np.clip(np.rint(np.where(np.isfinite(a), a, 0.0) / 2.0**-9), -cap, cap)
    made.bound(a, inverse, 2.0**40, 2.0**-9)
    if not (np.array_equal(z, x @ theta.T) and np.array_equal(a, wanted)):
        return False
    total = np.full((1, columns), 3, dtype=np.int64)
    made.weigh(units, a[None], total)
    return np.array_equal(total[0] - 3, wanted.astype(np.int64) @ x)
