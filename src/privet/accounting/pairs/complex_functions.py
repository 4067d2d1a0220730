"""e^z - 1 and log(1 + z) at complex numbers, with all digits near 0."""

import numpy as np

from privet.accounting.pairs.pair import Complexes


def expm1(z: Complexes) -> Complexes:
    """e^z - 1 with relative accuracy near 0 (NumPy's complex expm1 is only accurate in the absolute sense)."""
    rise, tan = np.expm1(z.real), np.tan(z.imag / 2)
    out = np.empty_like(z)
    out.imag = turned = 2 * tan / (1 + tan * tan) * (1 + rise)  # sin·e^x
    out.real = rise - tan * turned  # 1 - cos = tan(half)·sin
    return out


def log1p(z: Complexes) -> Complexes:
    """log(1 + z) with relative accuracy near 0, on the principal branch."""
    out = np.empty_like(z)
    size = np.abs(1 + z)
    plain = (size > 1e8) | (size < 0.5)  # there the squares overflow, or cancel
    with np.errstate(divide="ignore", over="ignore"):  # log 0 is -inf: a moment that vanishes
        near = np.log1p(z.real * (2 + z.real) + z.imag**2) / 2
        out.real = np.where(plain, np.log(size), near) if plain.any() else near
    out.imag = np.arctan2(z.imag, 1 + z.real)
    return out
