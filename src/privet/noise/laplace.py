"""round(offset + scale · X) for ideal Laplace numbers X: a signed logarithm in floats, exact near the edges."""

from __future__ import annotations

import numpy as np

from privet.noise.exact import exact_laplace
from privet.noise.fast import Floats, Integers, Scratch, drawn, exponential, flip, round_into
from privet.randomness import Random

ERROR = 2.0**-43
"""Bound on the error of a coordinate on the fast path, in scales; section 2 of the proof."""


def rounded_laplace(random: Random, scale: float, size: int | tuple[int, ...]) -> Integers:
    """Return round(scale · X), X independent ideal Laplace numbers of density e^{−|x|}/2, as int64.

    Promise and time as of `rounded_gaussian`; with probability 2⁻⁴² · scale a coordinate takes some 0.1 ms more.
    Adding it to a whole number is post-processing of the continuous Laplace mechanism.

    Parameters
    ----------
    scale : in lattice steps, from 2¹⁰ to 2⁵⁰; public. The standard deviation is √2 times as large.
    size : number of coordinates, or a shape

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> noise = rounded_laplace(fixed_seed_invalidates_guarantee(1), 2.0**20, 100_000)
    >>> noise.dtype, f"{abs(noise).mean() / 2**20:.2f}"
    (dtype('int64'), '1.00')
    """
    return drawn(fill_laplace, random, "scale", scale, size)


def fill_laplace(random: Random, scale: float, offset: Floats | None, out: Integers, scratch: Scratch) -> None:
    """Set out = round(offset + scale · X) for at most a block of coordinates, 0 ≤ offset < 1."""
    words = random.words(2 * out.size)
    bits, tail = words[: out.size], words[out.size :]
    values, doubtful = exponential(bits, tail, scratch)
    values *= scale
    flip(values, tail, 0, scratch.words(1, out.size))
    if offset is not None:
        values += offset
    near = round_into(values, out, ERROR * scale, scratch.floats(1, out.size))
    if near is not None:
        doubtful |= near
    for index in np.flatnonzero(doubtful):
        start = float(offset[index]) if offset is not None else 0.0
        out[index] = exact_laplace(random, (int(bits[index]), int(tail[index])), scale, start)
