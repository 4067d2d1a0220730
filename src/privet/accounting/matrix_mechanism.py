"""The matrix mechanism without sampling: correlated noise over the steps of a run, as one Gaussian release."""

import math
from typing import Any

import numpy as np

from privet._checks import positive, whole
from privet.accounting import events as ev
from privet.accounting.pairs.pair import UNIT, Reals
from privet.errors import InvalidParameter


def matrix_mechanism(
    strategy: Any, *, noise_multiplier: float, participations: int = 1, separation: int = 1
) -> ev.Event:
    """The event of releasing C·x + z once: x holds the clipped sum of each step, z noise on every entry.

    Promise: the release costs at most what the event costs, under each relation; for one participation, and where
    steps that are `separation` apart share no row (banded strategies), some table attains it.
    Theorem: docs/proofs/pairs.md, section 8. Later sums may depend on earlier rows where C is lower triangular
    (Denisov et al. 2022, arXiv 2202.08312).

    Parameters
    ----------
    strategy : C, a row a release, a column a step; public
    noise_multiplier : noise stddev ÷ clip of the sums x
    participations : in how many steps one record is at most; which ones must not depend on the records
    separation : two of its steps are at least so far apart

    Examples
    --------
    >>> run = matrix_mechanism([[1, 0], [1, 1]], noise_multiplier=2.0)  # a sum and a running sum: √2 in the first step
    >>> round(run.noise_multiplier, 6)
    1.414214
    """
    matrix = np.asarray(strategy)
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "iuf" or not np.isfinite(matrix).all():
        raise InvalidParameter(
            f"Expected strategy to be a matrix of finite numbers, got an array of shape {matrix.shape}: a row is what "
            "one release weighs the steps by. Pass C, e.g. numpy.tri(steps)."
        )
    because, use = "one record is in a whole number of steps", "Use e.g. the number of epochs."
    times = whole("participations", participations, because=because, use=use)
    apart = whole("separation", separation, because=because, use=use)
    noise = positive("noise_multiplier", noise_multiplier, zero=True, because="noise has a size", use="Use e.g. 1.")
    moves = _sensitivity(matrix.astype(float), min(times, matrix.shape[1]), apart)
    if moves == 0.0:
        return ev.Pure(epsilon=0.0)  # nothing of the data is in C·x
    return ev.Gaussian(noise_multiplier=noise / moves * (1 - 4 * UNIT))


def _sensitivity(matrix: Reals, times: int, apart: int) -> float:
    """How far C·x moves at most, in clips, rounded up."""
    size = float(np.abs(matrix).max())
    if size == 0.0:
        return 0.0
    scaled = np.ldexp(matrix, -math.frexp(size)[1])  # a power of two, so that no square overflows
    rows = 1 + (len(matrix) + 4) * 2 * UNIT  # what a sum of so many rounded products may be off by, relatively
    if times == 1:
        squares = float((scaled**2).sum(axis=0).max()) * rows
    else:
        products = np.abs(scaled.T @ scaled) + (rows - 1) * (np.abs(scaled).T @ np.abs(scaled))
        products[((scaled != 0).T.astype(float) @ (scaled != 0)) == 0] = 0.0  # steps that share no row
        both = _heaviest(products, times, apart) * (1 + 4 * len(matrix.T) * UNIT)
        squares = float(_heaviest(both[None, :], times, apart, among=True)[0]) * (1 + 4 * len(matrix.T) * UNIT)
    return math.ldexp(math.sqrt(squares) * (1 + 8 * UNIT), math.frexp(size)[1])


def _heaviest(weights: Reals, times: int, apart: int, *, among: bool = False) -> Reals:
    """For each row, the largest sum of at most `times` weights whose columns are `apart` from each other.

    Row s stands for the sets that hold column s, unless `among`: columns nearer to s than `apart` then do not count.
    """
    rows, columns = weights.shape
    if not among:
        near = np.abs(np.arange(rows)[:, None] - np.arange(columns)[None, :]) < apart
        own = np.diagonal(weights).copy()
        weights = np.where(near, 0.0, weights)
        times -= 1
    best = np.zeros((columns + 1, rows))
    for _ in range(times):
        previous, best = best, np.zeros_like(best)
        for column in range(columns):
            taken = previous[max(0, column + 1 - apart)] + weights[:, column]
            best[column + 1] = np.maximum(best[column], taken)
    found: Reals = best[-1] if among else best[-1] + own
    return found
