"""Sums of many independent numbers, bounded in the convex order, on a grid like that of floating-point numbers.

A law here is a non-negative measure on 0, 1, …, half − 1 and (half + i)·2^k, 0 ≤ i < half, in units of 2^exponent:
every octave has `half` points. One law is *above* another if it gives no convex, non-negative function a smaller
integral. That order survives convolution, scaling and mixing, so a sum of independent numbers stays below the sum of
laws above theirs. What is off the grid is spread over its two neighbours, keeping mean and mass; errors of the Fourier
transform are added to every mass; mass beyond the grid is dropped, and counted. docs/proofs/allocation.md, section 3.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import fft

from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_DUST = 1e-290  # what underflow may have swallowed, per point
_LIGHT = 1e-24  # an octave at the bottom with less mass than this needs no points of its own


@dataclass(frozen=True, slots=True)
class FloatingLaw:
    """`low[i]` at i·2^exponent, `rows[k, i]` at (half + i)·2^(exponent + k)."""

    exponent: int
    low: Reals
    rows: Reals

    def points(self) -> tuple[Reals, Reals]:
        """All points in order, and their masses."""
        half = len(self.low)
        octave = np.arange(half, 2 * half, dtype=float)
        scales = np.ldexp(1.0, self.exponent + np.arange(len(self.rows)))
        places = np.concatenate((np.ldexp(octave - half, self.exponent), np.multiply.outer(scales, octave).ravel()))
        return places, np.concatenate((self.low, self.rows.ravel()))

    def refined(self) -> "FloatingLaw":
        """The same law on a grid of twice as many points an octave."""
        low, rows = np.zeros(2 * len(self.low)), np.zeros((len(self.rows), 2 * len(self.low)))
        low[::2], rows[:, ::2] = self.low, self.rows
        return FloatingLaw(self.exponent - 1, low, rows)

    def raised(self, exponent: int) -> "FloatingLaw":
        """A law above this one, whose unit is no smaller than 2^exponent."""
        law = self
        while law.exponent < exponent:
            coarse = spread(np.concatenate((law.low, law.rows[0])))
            rows = law.rows[1:].copy() if len(law.rows) > 1 else np.zeros((1, len(law.low)))
            rows[0, 0] += coarse[-1]
            law = FloatingLaw(law.exponent + 1, coarse[:-1], rows)
        return law

    def lightened(self, tolerance: float, weight: float) -> "tuple[FloatingLaw, float, float]":
        """A law above this one but for its top, with fewer octaves; and the mass and first moment of what was dropped.

        From the top, octaves are dropped as long as each has moment + weight × mass ≤ tolerance.
        """
        law = self
        while len(law.rows) > 1 and law.low.sum() + law.rows[0].sum() < _LIGHT:
            law = law.raised(law.exponent + 1)
        half, mass, moment, last = len(law.low), 0.0, 0.0, len(law.rows)
        while last > 1:
            row, scale = law.rows[last - 1], math.ldexp(1.0, law.exponent + last - 1)
            here, first = float(row.sum()), float(row @ np.arange(half, 2 * half)) * scale
            if first + weight * here > tolerance:
                break
            mass, moment, last = mass + here, moment + first, last - 1
        return FloatingLaw(law.exponent, law.low, law.rows[:last]), mass, moment


def added(one: FloatingLaw, other: FloatingLaw) -> FloatingLaw:
    """A law above that of the sum of two independent numbers of these laws, on equally many points an octave."""
    exponent = max(one.exponent, other.exponent)
    laws = [law.raised(exponent) for law in ((one,) if one is other else (one, other))]
    count, half = max(len(law.rows) for law in laws), len(one.low)
    sums, error = octave_sums([Octaves.of(law, count) for law in laws])
    sums = (np.maximum(sums, 0.0) + error) * (1 + 16 * UNIT)
    sums[1:, :half] = 0.0  # no sum with a summand of this octave is so small,
    sums[:, -1] = 0.0  # and none is so large
    rows = np.zeros((count + 1, half))
    rows[:count] = sums[:, half : 2 * half]
    rows[1:] += spread(sums[:, 2 * half :])[:, :half]
    return FloatingLaw(exponent, sums[0, :half], rows * (1 + 16 * UNIT))


@dataclass(frozen=True, slots=True)
class Octaves:
    """A law by octaves: each one's masses, and all below it, spread over its step; their transforms and norms."""

    rows: Reals
    lows: Reals
    rows_transform: Complexes
    lows_transform: Complexes
    rows_norm: Reals
    lows_norm: Reals

    @classmethod
    def of(cls, law: FloatingLaw, count: int) -> "Octaves":
        """The law on `count` octaves, at least as many as it has."""
        half = len(law.low)
        rows, lows = np.zeros((count, 2 * half)), np.zeros((count, half + 1))
        rows[: len(law.rows), half:] = law.rows
        lows[0, :half] = law.low
        for k in range(count - 1):
            lows[k + 1] = spread(np.append(lows[k, :half], rows[k, half:] + _first(lows[k, half], half)))
        return cls(rows, lows, fft.rfft(rows, 4 * half), fft.rfft(lows, 4 * half), norms(rows), norms(lows))


def octave_sums(parts: list[Octaves]) -> tuple[Reals, Reals]:
    """The law of a sum, split by the higher octave of its two summands, on that octave's step; and a bound on errors.

    One part stands for two summands of the same law.
    """
    one, other = parts[0], parts[-1]
    spectrum = one.rows_transform * (other.lows_transform + other.rows_transform)
    spectrum += one.lows_transform * other.rows_transform
    spectrum[0] += one.lows_transform[0] * other.lows_transform[0]
    size = one.rows_norm * (other.lows_norm + other.rows_norm) + one.lows_norm * other.rows_norm
    size[0] += one.lows_norm[0] * other.lows_norm[0]
    points = 2 * one.rows.shape[1]
    return fft.irfft(spectrum, points), transform_error(size, points)


def transform_error(size: Reals, points: int) -> Reals:
    """What two transforms, a product and a transform back are off by at each point; `size` has products of 2-norms."""
    return (4 * 8 * UNIT * (math.log2(points) + 2) * size + _DUST)[:, None]


def _first(mass: float, count: int) -> Reals:
    out = np.zeros(count)
    out[0] = mass
    return out


def norms(rows: Reals) -> Reals:
    """The 2-norm of every row, without underflow."""
    top = rows.max(axis=1)
    safe = np.maximum(top, 1e-300)
    norms: Reals = 1.001 * safe * np.sqrt(((rows / safe[:, None]) ** 2).sum(axis=1))
    return norms


def spread(masses: Reals) -> Reals:
    """Masses at 0, 1, …, 2m − 1 (last axis) moved to 0, 2, …, 2m: half of each odd one to either side."""
    odd = 0.5 * masses[..., 1::2]
    coarse = np.zeros((*masses.shape[:-1], odd.shape[-1] + 1))
    coarse[..., :-1] = masses[..., ::2] + odd
    coarse[..., 1:] += odd
    return coarse
