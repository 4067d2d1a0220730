"""Correlated noise that is the same at every step: the matrix mechanism of a lower triangular Toeplitz matrix."""

import math
from typing import Any

import numpy as np

from privet._checks import positive, whole
from privet.accounting import events as ev
from privet.accounting.pairs.pair import UNIT, Reals
from privet.errors import InvalidParameter


def toeplitz_mechanism(
    coefficients: Any, *, noise_multiplier: float, steps: int, participations: int = 1, separation: int = 1
) -> ev.Event:
    """The event of `matrix_mechanism` for C_ts = coefficients[t − s], in time steps × participations, not steps³.

    Promise: the release costs at most what the event costs; some table attains it where the coefficients are
    non-negative and do not rise, or where there are at most `separation` of them.
    Theorem: docs/proofs/correlated.md, section 1; Kalinin and Lampert 2024 (arXiv 2405.13763), theorem 2.

    Parameters
    ----------
    coefficients : the first column of C, at most a number a step; what is left out is 0. They may be upper bounds
        of the absolute values of what is used
    noise_multiplier : noise stddev ÷ clip of the sums x
    steps : of the whole run
    participations : in how many steps one record is at most; which ones must not depend on the records
    separation : two of its steps are at least so far apart

    Examples
    --------
    >>> run = toeplitz_mechanism([1, 0.5], noise_multiplier=2.0, steps=100, participations=4, separation=25)
    >>> round(run.noise_multiplier, 6)                            # √1.25 in each of four passes
    0.894427
    """
    noise = positive("noise_multiplier", noise_multiplier, zero=True, because="noise has a size", use="Use e.g. 1.")
    moves = toeplitz_sensitivity(coefficients, steps=steps, participations=participations, separation=separation)
    return ev.Gaussian(noise_multiplier=noise / moves * (1 - 4 * UNIT))


def toeplitz_sensitivity(coefficients: Any, *, steps: int, participations: int = 1, separation: int = 1) -> float:
    """How far one record moves C·x at most in l2 norm, in clips, rounded up; parameters as of `toeplitz_mechanism`.

    Examples
    --------
    >>> round(toeplitz_sensitivity([1, 0.5, 0.25], steps=3, participations=3), 6)      # 1, 1.5 and 1.75
    2.512469
    """
    because, use = "one record is in a whole number of steps", "Use e.g. the number of epochs."
    rows = whole("steps", steps, because="a run has a whole number of steps", use="Use e.g. 1000.")
    times = whole("participations", participations, because=because, use=use)
    apart = whole("separation", separation, because=because, use=use)
    column = np.abs(_column(coefficients)[:rows])
    if column.size > apart:  # steps share rows: the least curve above that does not rise, which the theorem is about
        column = np.maximum.accumulate(column[::-1])[::-1]
    times = min(times, -(-rows // apart))
    exponent = math.frexp(float(column.max()))[1]
    scaled = np.ldexp(column, -exponent)  # a power of two, so that no square overflows
    if column.size <= apart:  # no two steps share a row: their squares add up
        ends = np.minimum(column.size, rows - apart * np.arange(times, dtype=np.int64))
        squares = float(np.cumsum(scaled**2)[ends - 1].sum())
    else:
        squares = float((_rows_moved(scaled, rows, times, apart) ** 2).sum())
    rounding = 1 + 4 * (rows + times + 8) * UNIT  # two sums of positive numbers, relatively
    return math.ldexp(math.sqrt(squares * rounding) * (1 + 8 * UNIT), exponent)


def _rows_moved(column: Reals, rows: int, times: int, apart: int) -> Reals:
    """By how much each row moves if the steps are 0, apart, 2·apart, …"""
    moved = np.zeros(rows)
    if times * apart >= rows:  # all of them, in one sweep
        passes = -(-rows // apart)
        padded = np.zeros(passes * apart)
        padded[: column.size] = column
        found: Reals = padded.reshape(passes, apart).cumsum(axis=0).reshape(-1)[:rows]
        return found
    for first in range(0, times * apart, apart):
        part = column[: rows - first]
        moved[first : first + part.size] += part
    return moved


def _column(coefficients: Any) -> Reals:
    column = np.asarray(coefficients)
    fine = column.ndim == 1 and column.size and column.dtype.kind in "iuf" and np.isfinite(column).all()
    if not fine or not column[0]:
        raise InvalidParameter(
            f"Expected coefficients as a list of finite numbers of which the first is not 0, got an array of shape "
            f"{column.shape}: they are the first column of the strategy. Pass e.g. [1, 0.5, 0.375]."
        )
    return column.astype(float)
