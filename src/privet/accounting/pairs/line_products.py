"""Sums of powers at many orders of one real part, as matrix products."""

import math

import numpy as np

from privet.accounting.pairs.complex_functions import expm1
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_FEW = 20  # multiples of a turn up to which doubling takes more time than it saves


def rises_on_line(
    first: Complexes, turn: Complexes, weight: Complexes, count: int, *, squared: bool = False
) -> tuple[Complexes, Reals]:
    """Σ weight·(e^{first + k·turn} - 1) over the last axis, k < count, and a bound on its rounding; Re turn ≤ 0.

    With k = j·B + i the power is a product xy of a factor in j and one in i, and xy - 1 = (x-1)(y-1) + (x-1) + (y-1)
    keeps all digits when both are near 1. `squared` takes powers by squaring, for callers that count 80 units of
    rounding of k·|turn| themselves.
    """
    block = max(1, math.isqrt(count))
    ways = -(-count // block)
    turn, weight, start = turn[..., None, :], weight[..., None], expm1(first.astype(complex))[..., None, :]
    if block + ways <= _FEW:
        rises = expm1(np.array([*range(block), *range(0, block * ways, block)])[:, None] * turn)
        fine, far = rises[..., :block, :], rises[..., block:, :]
        coarse = start * (1 + far) + far
    else:
        fine = rises_of(turn, block + 1, squared=squared)
        coarse = rises_of(block * turn, ways, start, fine[..., block:, :] if squared else None, squared=squared)
        fine = fine[..., :block, :]
    m = (coarse * weight.swapaxes(-1, -2)) @ fine.swapaxes(-1, -2)
    m += (coarse @ weight) + (fine @ weight).swapaxes(-1, -2)
    # |fine| ≤ 2 and |1 + far| ≤ 1; a rise is as exact as min(2, k·|turn|), which is no less than it
    sizes, length = np.abs(weight), np.abs(turn)
    most, once = 2 * np.add.reduce(sizes, axis=-2)[..., None], length @ sizes
    near, along = (np.minimum(most, np.arange(0.0, k * unit, unit) * once) for k, unit in ((block, 1), (ways, block)))
    spread = 3 * (along.swapaxes(-1, -2) + np.abs(start) @ sizes) + near
    shape = (*m.shape[:-2], block * ways)
    return m.reshape(shape)[..., :count], UNIT * (weight.shape[-2] + 128) * spread.reshape(shape)[..., :count]


def rises_of(
    turn: Complexes,
    count: int,
    start: Complexes | float = 0.0,
    once: Complexes | None = None,
    *,
    squared: bool,
) -> Complexes:
    """(1 + start)·e^{k·turn} - 1, k < count, along the last axis but one; `once` is e^turn - 1, if that is known.

    By doubling, as products take less time than powers: (1 + s)² - 1 = s(2 + s), where few doublings lose few digits.
    """
    out = np.empty((*turn.shape[:-2], count, turn.shape[-1]), dtype=complex)
    out[..., :1, :] = start
    step, known = expm1(turn) if once is None else once, 1
    while known < count:
        some = out[..., : min(known, count - known), :]
        slot = out[..., known : known + some.shape[-2], :]
        np.multiply(some, 1 + step, out=slot)
        slot += step
        known *= 2
        if known < count:
            step = step * (2 + step) if squared else expm1(known * turn)
    return out


def by_powers(tilt: float, frequency: Reals, log_w: Reals, weight: Reals) -> tuple[Complexes, int]:
    """Σ weight·(w^{1+t} - 1)(1 - w^{-t}) on the line Re t = tilt, in powers of i·frequency·log w; how many."""
    unit = float(np.abs(log_w).max())
    top = unit * float(np.abs(frequency).max())
    terms = 3
    while top ** (terms - 2) > 1e-19 * math.factorial(terms):
        terms += 1
    up, down = np.expm1((1 + tilt) * log_w), np.expm1(-tilt * log_w)
    share = weight
    sums, powers = [-(up * down * weight).sum(axis=1)], [np.ones(len(frequency), dtype=complex)]
    for k in range(1, terms):
        share = share * (log_w / unit)
        factor = up - down if k % 2 else 2 + up + down
        sums.append((share * factor).sum(axis=1))
        powers.append(powers[-1] * (1j * unit * frequency / k))
    out: Complexes = np.stack(sums, axis=1) @ np.array(powers)
    return out, terms
