"""Sums of powers at equally spaced orders, as matrix products."""

from __future__ import annotations

import math

import numpy as np

from privet.accounting.pairs.complex_functions import expm1
from privet.accounting.pairs.pair import UNIT, Complexes, Reals


def rises_on_line(first: Complexes, turn: Complexes, weight: Complexes, count: int) -> tuple[Complexes, Reals]:
    """Σ weight·(e^{first + k·turn} - 1) over the last axis, k < count, and a bound on its rounding; Re turn ≤ 0.

    With k = j·B + i the power is a product xy of a factor in j and one in i, and xy - 1 = (x-1)(y-1) + (x-1) + (y-1)
    keeps all digits when both are near 1.
    """
    block = max(1, math.isqrt(count))
    ways = -(-count // block)
    turn, weight = turn[..., None, :], weight[..., None]
    fine = expm1(np.arange(block)[:, None] * turn)
    coarse = expm1(first[..., None, :] + (block * np.arange(ways))[:, None] * turn)
    alone = (coarse @ weight) + (fine @ weight).swapaxes(-1, -2)
    m = (coarse * weight.swapaxes(-1, -2)) @ fine.swapaxes(-1, -2) + alone
    sizes = np.abs(weight)
    spread = 3 * (np.abs(coarse) @ sizes) + (np.abs(fine) @ sizes).swapaxes(-1, -2)  # |fine| ≤ 2
    shape = (*m.shape[:-2], block * ways)
    return m.reshape(shape)[..., :count], UNIT * (weight.shape[-2] + 64) * spread.reshape(shape)[..., :count]
