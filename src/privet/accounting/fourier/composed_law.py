"""The composed law of a run: lattice laws tilted, transformed, multiplied and transformed back, and what that neglects.

Each law is tilted by e^{cL} with c near the saddle point, so that a δ of 1e-18 is as large as any other number, then
composed by FFT. Truncation, wrap-around and rounding are bounded and added to the upper end, or taken from the lower.
`docs/proofs/fourier.md` has the proof.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from privet.accounting.fourier.lattice_laws import Law
from privet.accounting.fourier.pilot import Window

Floats = npt.NDArray[np.float64]

_UNIT = 2.0**-53
_FFT_ERROR = 8.0  # per radix-2 level, in units of 2^-53 of the sum of |inputs|, in every output
_EXPONENT = 600.0  # exponents beyond are out of the range in which answers are looked for


@dataclass(frozen=True, kw_only=True, slots=True)
class ComposedLaw:
    """The composed law of a run on a window, tilted: mass i sits at left + i·width, times e^{log_scale - tilt·loss}."""

    left: float
    width: float
    size: int
    tilt: float
    log_scale: float
    pivot: float  # a loss near the ε asked for; exponents are taken relative to it
    first: Floats  # suffix sums of mass·e^{-tilt·(loss - pivot)}
    second: Floats  # suffix sums of mass·e^{-(tilt + 1)·(loss - pivot)}
    infinite: float
    tail_left: float  # tilted mass that lies left of the window
    tail_right: float  # tilted mass that lies right of it
    log_beyond: float  # log of the untilted mass right of it
    shift: float  # allowance for the positions of the masses
    blur: float  # the part of it that is rounding

    def _inside(self, epsilon: float) -> tuple[float, float]:
        """The window's part of δ(epsilon), and a bound on its rounding error; (nan, nan) if exponents overflow."""
        log_scale = self.log_scale - self.tilt * self.pivot
        if (1 + self.tilt) * (self.pivot - epsilon) > _EXPONENT or log_scale > _EXPONENT:
            return math.nan, math.nan
        i = min(max(math.floor((epsilon - self.left) / self.width) + 1, 0), self.size)
        if i == self.size:
            return 0.0, 0.0
        plain = float(self.first[i])
        scale = math.exp(log_scale)
        cross = math.exp(min(epsilon - self.pivot, _EXPONENT)) * float(self.second[i])
        error = _UNIT * (4 * self.size + 64 + 4 * (abs(self.log_scale) + abs(self.tilt * self.pivot)))
        error += (1 + self.tilt) * self.blur
        return scale * (plain - cross), scale * (2 * error * (plain + cross) + 1e-290)

    def _highest(self, epsilon: float) -> float:
        """The most that one unit of tilted mass, wherever it lies, adds to δ(epsilon)."""
        c = self.tilt
        exponent = self.log_scale - c * epsilon + c * math.log(c) - (1 + c) * math.log1p(c)
        return 1.001 * math.exp(exponent) if exponent < _EXPONENT else math.inf

    def delta_above(self, epsilon: float) -> float:
        """An upper bound on δ(epsilon), if this was composed from upper laws."""
        epsilon -= self.shift
        value, error = self._inside(epsilon)
        if math.isnan(value):
            return 1.0
        beyond = math.exp(min(self.log_beyond, 0.0)) * 1.001
        missed = self._highest(epsilon) * self.tail_left if epsilon < self.left and self.tail_left else 0.0
        return (value + error + beyond + missed + self.infinite) * (1 + 1e-14)

    def delta_below(self, epsilon: float) -> float:
        """A lower bound on δ(epsilon), if this was composed from lower laws."""
        epsilon += self.shift
        value, error = self._inside(epsilon)
        tails = self.tail_left + self.tail_right
        wrapped = self._highest(epsilon) * tails if tails else 0.0
        finite = value - error - wrapped
        return (finite if finite > 0 else 0.0) * (1 - 1e-14) + self.infinite * (1 - 1e-14)


@dataclass(slots=True)
class _Spectrum:
    """The transform of the composed law as it grows, a step at a time, in logarithms; and the bounds on its error."""

    size: int
    log_size: Floats
    angle: Floats
    log_most: Floats
    relative: Floats

    @classmethod
    def empty(cls, size: int) -> "_Spectrum":
        return cls(size, *(np.zeros(size // 2 + 1) for _ in range(4)))

    def multiply(self, law: Law, count: int, tilt: float, log_norm: float) -> None:
        """Take in `count` steps of one law, tilted."""
        exponents = tilt * law.losses()
        with np.errstate(divide="ignore"):  # where there is no mass, the tilt may be too large for a float
            masses = np.exp(np.log(law.masses) + (exponents - log_norm))
        rounding = _UNIT * float(masses @ (8 + 4 * np.abs(exponents) + abs(log_norm)))
        where = np.arange(law.first, law.first + masses.size) % self.size
        transform = fft.rfft(np.bincount(where, weights=masses, minlength=self.size))
        error = 1.01 * (_FFT_ERROR * _UNIT * (math.log2(self.size) + 2) * float(masses.sum()) + rounding)
        sizes = np.abs(transform)
        logs = np.log(np.maximum(sizes, 1e-300))
        self.log_size += count * logs
        self.angle += np.remainder(count * np.angle(transform), 2 * math.pi)
        self.log_most += count * np.log(sizes + error)
        self.relative += count * (error / (sizes + error) + _UNIT * (16 + 4 * np.abs(logs)))

    def inverted(self) -> tuple[Floats, float]:
        """The masses on the circle, and a bound on the error of each."""
        size = self.size
        with np.errstate(under="ignore"):
            spectrum = np.exp(self.log_size) * np.exp(1j * self.angle)
            errors = np.exp(self.log_most) * np.minimum(2.0, 2 * self.relative)
        doubled = 2 * float(errors.sum())
        pointwise = doubled / size + 1.01 * _FFT_ERROR * _UNIT * (math.log2(size) + 2) * (
            2 * float(np.exp(self.log_most).sum()) / size
        )
        return fft.irfft(spectrum, size), pointwise


def compose(laws: list[Law], counts: list[int], window: Window, pivot: float, size: int, *, sign: int) -> ComposedLaw:
    """The law of all steps together, from upper laws (`sign` 1) or from lower ones (`sign` -1)."""
    c, width = window.tilt, laws[0].width
    offset = math.fsum(law.offset * count for law, count in zip(laws, counts, strict=True))
    start = math.floor((window.left - offset) / width) - 2
    log_scale, shift, infinite, beyond = 0.0, 0.0, 0.0, 0.0
    spectrum = _Spectrum.empty(size)
    for law, count in zip(laws, counts, strict=True):
        log_norm = law.log_moment(c)
        spectrum.multiply(law, count, c, log_norm)
        log_scale += count * log_norm
        shift += count * law.shift
        # a lower law's mass beyond the lattice counts as a loss of minus infinity, but finite
        total = float(law.masses.sum()) if sign > 0 else 1 - law.infinite
        infinite += count * math.log1p(law.infinite / total)
        beyond += count * (math.log(total))
    circle, pointwise = spectrum.inverted()
    masses = np.roll(circle, -(start % size))
    masses = np.maximum(masses + sign * pointwise, pointwise if sign > 0 else 0.0)
    left = offset + width * start
    away = (left - pivot) + width * np.arange(size)
    weights = masses * np.exp(np.minimum(-c * away, _EXPONENT))
    drift = math.fsum(count * abs(law.offset) for law, count in zip(laws, counts, strict=True))
    slack = 8 * _UNIT * (drift + abs(offset) + abs(width * start) + width * size + abs(pivot))
    right = left + width * size
    tail_left, _ = _tail(laws, counts, c, log_scale, left, (window.tilts_left, c - 1 / width, c - 4 / width))
    tail_right, log_beyond = _tail(
        laws, counts, c, log_scale, right, (window.tilts_right, c + 1 / width, c + 4 / width)
    )
    return ComposedLaw(
        left=left,
        width=width,
        size=size,
        tilt=c,
        log_scale=log_scale,
        pivot=pivot,
        first=np.cumsum(weights[::-1])[::-1],
        second=np.cumsum((masses * np.exp(np.minimum(-(c + 1) * away, _EXPONENT)))[::-1])[::-1],
        infinite=math.exp(beyond) * math.expm1(infinite) * (1 + sign * 64 * _UNIT * sum(counts)),
        tail_left=tail_left,
        tail_right=tail_right,
        log_beyond=log_beyond,
        shift=shift + slack,
        blur=slack,
    )


def _tail(
    laws: list[Law], counts: list[int], tilt: float, log_scale: float, end: float, others: tuple[float, ...]
) -> tuple[float, float]:
    """Chernoff: bounds on the tilted mass beyond `end`, and on the log of the untilted one; `others` say which side."""
    tilted, plain = 0.0, 0.0
    for other in others:
        moments = [law.log_moment(other) for law in laws]
        total = math.fsum(count * moment for count, moment in zip(counts, moments, strict=True))
        noise = 1e-9 + 64 * _UNIT * (abs(log_scale) + abs(total) + abs(other * end))
        tilted = min(tilted, total - log_scale - (other - tilt) * end + noise)
        plain = min(plain, total - other * end + noise)
    return math.exp(tilted), plain
