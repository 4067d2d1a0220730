"""Pairs of float32 normals from pairs of 32-bit numbers: Box and Muller's method without a sine, compiled or not.

Of whole numbers k and g in −2³¹ … 2³¹ − 1 let u = |k + ½|/2³¹ and f = g/2³¹. With s = √2 sin(πf/4),

    x = ± √(−2 ln u) · (1 − s²),      y = ± √(−2 ln u) · s · √(2 − s²),

the sign that of k + ½. As 1 − s² = cos(πf/2) and s√(2 − s²) = sin(πf/2), the point is at an angle in the right half
plane, or, by the sign, in the left: uniform over the circle. u is never 0, and 2 − s² never below 1.

Where Numba is installed this is three compiled loops; else some twenty passes of NumPy over a block that stays in the
second-level cache. Both are one formula, each with float32 roundings of its own.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from privet.sums.compiled import trusted

Singles = NDArray[np.float32]
Halves = NDArray[np.int32]

# In a block: its arrays fit into the second-level cache. Below 2¹⁵ PyTorch does not so much as ask how many threads it
# has, which takes locks of OpenMP's that a fork in the wrong moment would leave shut.
PAIRS = 31 << 10

_F = np.float32
# √2 sin(πf/4)/f as a polynomial of f² ≤ 1, and 2 artanh(t)/t of t² ≤ (√2 − 1)⁴: off by 3e-8 at most, as floats are.
_S0, _S1, _S2, _S3 = map(_F, (1.1107207311208227, -0.11419128895028323, 0.003521401619341315, -5.084719905670499e-05))
_L0, _L1, _L2, _L3 = map(_F, (1.9999999986229053, 0.666668158543589, 0.3997480367311667, 0.2992545248457134))
_LN2, _UNIT, _HALF, _ONE, _TWO, _BITS = map(_F, (math.log(2.0), 2.0**-31, 0.5, 1.0, 2.0, 31.0))
_ROOT_HALF, _FRACTION, _PLACES = map(np.int32, (0x3F3504F3, 0x7FFFFF, 23))  # √½ as a float32's bits; its fraction's


class Loops(NamedTuple):
    """The compiled loops: |k + ½|, its exponent and fraction, and the two normals."""

    sizes: Callable[[Any, Any], None]
    split: Callable[[Any, Any], None]
    turn: Callable[[Any, Any, Any, Any, Any, Any, Any], None]


def fill_compiled(
    made: Loops, k: Halves, g: Halves, x: Singles, y: Singles, scratch: Singles, scale: np.float32
) -> None:
    """Set x and y to `scale` times the normals of k and g, of equal length; spoils two rows of `scratch`."""
    sizes, exponents = scratch[0, : k.size], scratch[1, : k.size]
    made.sizes(k, sizes)
    made.split(sizes.view(np.int32), exponents)
    made.turn(k, g, sizes, exponents, scale, x, y)


def fill_plain(k: Halves, g: Halves, x: Singles, y: Singles, scratch: Singles, scale: np.float32) -> None:
    """Set x and y as `fill_compiled` does, by NumPy; spoils four rows of `scratch`."""
    radius, square, f, s = scratch[:4, : k.size]
    np.copyto(radius, k, casting="unsafe")
    radius += _HALF
    np.abs(radius, out=square)
    square *= _UNIT
    logarithm = torch.from_numpy(square)
    torch.log(logarithm, out=logarithm)  # sooner than NumPy's
    square *= -_TWO * scale * scale
    np.sqrt(square, out=square)
    np.copysign(square, radius, out=radius)
    np.copyto(f, g, casting="unsafe")
    f *= _UNIT
    np.multiply(f, f, out=square)
    np.multiply(square, _S3, out=s)
    for coefficient in (_S2, _S1):
        s += coefficient
        s *= square
    s += _S0
    s *= f
    np.multiply(s, s, out=square)
    np.subtract(_ONE, square, out=f)
    np.multiply(f, radius, out=x)
    np.subtract(_TWO, square, out=square)
    np.sqrt(square, out=square)
    square *= s
    np.multiply(square, radius, out=y)


@cache
def loops() -> Loops | None:
    """The compiled loops; None where there is no compiler, or none that can be trusted. Never raises.

    Compiling takes a few seconds, once: the result is kept beside this file or in the user's cache.
    """
    return trusted(_compiled, _right)


def _compiled(kept: bool) -> Loops:
    import numba

    njit: Any = numba.njit
    floats, wholes = numba.types.float32[::1], numba.types.int32[::1]
    either = {"nogil": True, "cache": kept, "error_model": "numpy", "fastmath": {"contract"}}
    return Loops(
        njit((wholes, floats), **either)(_sizes),
        njit((wholes, floats), **either)(_split),
        njit((wholes, wholes, floats, floats, numba.types.float32, floats, floats), **either)(_turn),
    )


def _sizes(k: Any, sizes: Any) -> None:
    for i in range(k.size):
        sizes[i] = abs(_F(k[i]) + _HALF)


def _split(bits: Any, exponents: Any) -> None:
    """Of floats 2^e·m, √½ ≤ m < √2, given as bits: e to `exponents`, and m in their place."""
    for i in range(bits.size):
        above = np.int32(bits[i] - _ROOT_HALF)
        exponents[i] = _F(np.int32(above >> _PLACES))
        bits[i] = np.int32(np.int32(above & _FRACTION) + _ROOT_HALF)


def _turn(k: Any, g: Any, fractions: Any, exponents: Any, scale: Any, x: Any, y: Any) -> None:
    for i in range(k.size):
        # ln m = 2 artanh t. −ln u is never below 0: where e = 31, m is at most 1.
        t = (fractions[i] - _ONE) / (fractions[i] + _ONE)
        square = t * t
        minus_log = (_BITS - exponents[i]) * _LN2 - t * (_L0 + square * (_L1 + square * (_L2 + square * _L3)))
        size = math.sqrt(_TWO * scale * scale * minus_log)
        radius = size if k[i] >= 0 else -size
        f = _F(g[i]) * _UNIT
        square = f * f
        s = f * (_S0 + square * (_S1 + square * (_S2 + square * _S3)))
        square = s * s
        x[i] = radius * (_ONE - square)
        y[i] = radius * s * math.sqrt(_TWO - square)


def _right(made: Loops) -> bool:
    """Whether the loops find what float64 says, on public numbers, ends included; a broken compiler would not."""
    k = (np.arange(4099, dtype=np.int64) * 2_654_435_761 % 2**32 - 2**31).astype(np.int32)
    g = k[::-1].copy()
    k[:7], g[:7] = (0, -1, 1, 2**31 - 1, -(2**31), 2**30, -(2**30)), (-(2**31), 2**31 - 1, 0, 1, -1, 2**30, -(2**30))
    x, y = np.empty((2, k.size), dtype=_F)
    fill_compiled(made, k, g, x, y, np.empty((2, k.size), dtype=_F), _F(1.5))
    radius = 1.5 * np.copysign(np.sqrt(-2.0 * np.log(np.abs(k + 0.5) / 2.0**31)), k + 0.5)
    angle = np.pi / 2 * (g / 2.0**31)
    error = np.maximum(np.abs(x - radius * np.cos(angle)), np.abs(y - radius * np.sin(angle)))
    # u is known to 2⁻²⁵ near 1, and so is the square of a radius near 0.
    near = 2.25 * 2.0**-23 / np.maximum(np.abs(radius), 1e-3)
    return bool((error <= 2e-6 * np.abs(radius) + near).all())
