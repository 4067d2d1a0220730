"""round(offset + scale · X) for ideal normal or Laplace numbers X: in floats, and decided exactly near the edges.

Normals are by Box and Muller's method, Laplace numbers are signed logarithms.
"""

import math

import numpy as np

from privet.noise.exact import exact_gaussian_pair, exact_laplace
from privet.noise.fast import Floats, Integers, Scratch, drawn, exponential, flip, round_into
from privet.randomness import Random, Words

GAUSSIAN_ERROR = 2.0**-45  # of a coordinate on the fast path, at most, in standard deviations; section 2 of the proof
LAPLACE_ERROR = 2.0**-43  # and in scales

_LEAST_RADIUS_WORD = np.uint64(1 << 36)  # below, the interval of the radius is too wide for that

# √½ cos(πf/4) and √½ sin(πf/4)/f as polynomials in f²: Taylor's series, cut where they are below 2⁻⁵⁸.
_EVEN = [(-1) ** i * math.sqrt(0.5) * (math.pi / 4) ** (2 * i) / math.factorial(2 * i) for i in range(9)]
_ODD = [(-1) ** i * math.sqrt(0.5) * (math.pi / 4) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(9)]


def rounded_gaussian(random: Random, stddev: float, size: int | tuple[int, ...]) -> Integers:
    """Return round(stddev · Z), Z independent ideal standard normals, as int64.

    Promise: for ideal words the law is exact, to the last bit of probability: nothing has to be added to δ for it.
    As q + round(sZ) = round(q + sZ) for a whole q, adding this to a whole number is post-processing of the continuous
    Gaussian mechanism, whose privacy cost holds unchanged. Proof: docs/proofs/noise.md.
    Time: the same work for every coordinate, whatever the noise. With probability 2⁻⁴⁴ · stddev a coordinate is within
    the float error of a cell's edge and is decided with more bits, which takes some 0.1 ms: unnoticed up to a stddev of
    2²⁷, half as long again at 2³⁰, slow above 2³². `add_gaussian` avoids that for any stddev.

    Parameters
    ----------
    stddev : in lattice steps, from 2¹⁰ to 2⁵⁰; public
    size : number of coordinates, or a shape

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> noise = rounded_gaussian(fixed_seed_invalidates_guarantee(1), 2.0**20, 100_000)
    >>> noise.dtype, f"{noise.std() / 2**20:.2f}"
    (dtype('int64'), '1.00')
    """
    return drawn(fill_gaussian, random, "stddev", stddev, size)


def fill_gaussian(random: Random, stddev: float, offset: Floats | None, out: Integers, scratch: Scratch) -> None:
    """Set out = round(offset + stddev · Z) for at most a block of coordinates, 0 ≤ offset < 1."""
    count = (out.size + 1) // 2
    words = random.words(3 * count)
    angle, radius, tail = words[:count], words[count : 2 * count], words[2 * count :]
    length, doubtful = exponential(radius, tail, scratch)
    doubtful |= radius < _LEAST_RADIUS_WORD
    length *= 2.0 * stddev * stddev
    np.sqrt(length, out=length)
    for bit, values in enumerate(_cosine_and_sine(angle, scratch)):
        here = slice(bit * count, min((bit + 1) * count, out.size))
        values *= length
        flip(values, tail, bit, scratch.words(1, count))
        values = values[: here.stop - here.start]
        if offset is not None:
            values += offset[here]
        near = round_into(values, out[here], GAUSSIAN_ERROR * stddev, scratch.floats(1, values.size))
        if near is not None:
            doubtful[: near.size] |= near
    for index in np.flatnonzero(doubtful):
        pair = [i for i in (index, count + index) if i < out.size]
        offsets = [0.0 if offset is None else float(offset[i]) for i in pair]
        offsets.append(0.0)  # of an odd size the last is unused
        bits = (int(angle[index]), int(radius[index]), int(tail[index]))
        out[pair] = exact_gaussian_pair(random, bits, stddev, (offsets[0], offsets[1]))[: len(pair)]


def _cosine_and_sine(angle: Words, scratch: Scratch) -> tuple[Floats, Floats]:
    """Return the cosine and sine of π/4 · (1 + f), an angle in [0, π/2), for f = angle/2⁶³ in [−1, 1). Rows 1 to 5.

    By cos(π/4 + φ) = √½ cos φ − √½ sin φ and sin(π/4 + φ) = √½ cos φ + √½ sin φ, both series are short.
    """
    f, square, even, odd, cosine = (scratch.floats(row, angle.size) for row in (1, 2, 3, 4, 5))
    np.multiply(angle.view(np.int64), 2.0**-63, out=f)
    np.multiply(f, f, out=square)
    for series, coefficients in ((even, _EVEN), (odd, _ODD)):
        np.multiply(square, coefficients[-1], out=series)
        for coefficient in coefficients[-2:0:-1]:
            series += coefficient
            series *= square
        series += coefficients[0]
    odd *= f
    np.subtract(even, odd, out=cosine)
    even += odd
    return cosine, even


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
    near = round_into(values, out, LAPLACE_ERROR * scale, scratch.floats(1, out.size))
    if near is not None:
        doubtful |= near
    for index in np.flatnonzero(doubtful):
        start = float(offset[index]) if offset is not None else 0.0
        out[index] = exact_laplace(random, (int(bits[index]), int(tail[index])), scale, start)
