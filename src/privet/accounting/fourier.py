"""The Fourier accountant: discretise the privacy loss, transform, multiply, invert; a bracket, not an estimate.

Every step becomes two laws on a lattice, one that surely costs more and one that surely costs less
(:mod:`privet.accounting.lattice`). Each is tilted by e^{cL} with c near the saddle point, so that a δ of 1e-18 is as
large as any other number, then composed by FFT. Truncation, wrap-around and rounding are bounded and added to the
upper end, or taken from the lower. `docs/proofs/fourier.md` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from privet.accounting.lattice import Cells, Law, Step
from privet.accounting.window import Pilot, Window, centre, pilot
from privet.errors import InvalidParameter

__all__ = ["fourier_delta", "fourier_epsilon"]

Floats = npt.NDArray[np.float64]

_UNIT = 2.0**-53
_FFT_ERROR = 8.0  # per radix-2 level, in units of 2^-53 of the sum of |inputs|, in every output
_TRIM = 1e-10  # share of δ that a step's losses beyond its lattice may make up
_TAIL = 1e-8  # tilted mass allowed outside the window, by a Chernoff bound
_EXPONENT = 600.0  # exponents beyond are out of the range in which answers are looked for
_FEWEST, _MOST = 1 << 14, 1 << 19  # points of the transform
_MOST_CELLS = 1 << 18  # of one step: this is what bounds the memory


def fourier_delta(
    steps: Sequence[tuple[Step, int]], epsilon: float, *, points: int | None = None, rtol: float = 1e-5
) -> tuple[float, float]:
    """A lower and an upper bound on δ(epsilon) of a run, in one direction, safe including rounding.

    Theorem: chords and tangents of a step's hockey-stick curve give laws that bracket every composition
    (`docs/proofs/fourier.md`, theorem 3). The bracket's width is O(T·h²) in the lattice's width h.

    Parameters
    ----------
    steps : (pair, count) for each part of the run; all in the same direction
    epsilon : finite float, nats
    points : size of the Fourier transform, a power of two; by default, the least that reaches `rtol`, up to 2^19
    rtol : the relative width of the bracket to stop at

    Examples
    --------
    >>> from privet.accounting.pairs.simple import GaussianPair
    >>> low, high = fourier_delta([(GaussianPair(mu=0.1), 100)], 1.0)  # exactly one Gaussian with mu = 1
    >>> bool(low <= 0.12693673750664397 <= high), bool(high - low < 2e-5 * high)
    (True, True)
    """
    _check(steps, points)
    if not math.isfinite(epsilon):
        raise InvalidParameter(
            f"Expected epsilon to be a finite number, got {epsilon!r}: only finite losses can be looked up. "
            "Pass epsilon in nats, e.g. 1.0."
        )
    sketch = pilot(steps)
    sketch = sketch.trimmed(sketch.tilt_at_epsilon(epsilon), _TRIM)
    tilt = sketch.tilt_at_epsilon(epsilon)

    def bracket(size: int) -> tuple[float, float]:
        lower, upper = _bracket(steps, sketch, tilt, epsilon, size)
        return max(lower.delta_below(epsilon), 0.0), min(upper.delta_above(epsilon), 1.0)

    return _refine(bracket, points, rtol)


def fourier_epsilon(
    steps: Sequence[tuple[Step, int]], delta: float, *, points: int | None = None, rtol: float = 1e-5
) -> tuple[float, float]:
    """A lower and an upper bound on the least ε ≥ 0 with δ(ε) ≤ delta, in one direction, safe including rounding.

    The upper end is ∞ where no finite ε can be certified, as when P(L = ∞) exceeds `delta`.

    Parameters
    ----------
    steps : (pair, count) for each part of the run; all in the same direction
    delta : float in (0, 1), a probability
    points, rtol : as in :func:`fourier_delta`

    Examples
    --------
    >>> from privet.accounting.pairs.simple import GaussianPair
    >>> low, high = fourier_epsilon([(GaussianPair(mu=0.1), 100)], 1e-5)  # exactly one Gaussian with mu = 1
    >>> bool(low <= 4.3771780956812245 <= high), bool(high - low < 2e-5 * high)
    (True, True)
    """
    _check(steps, points)
    if not 0 < delta < 1:
        raise InvalidParameter(
            f"Expected delta in (0, 1), got {delta!r}: (ε, {delta!r}) promises nothing. "
            "Use a delta below 1/n, e.g. 1e-6."
        )
    sketch = pilot(steps)
    sketch = sketch.trimmed(sketch.tilt_at_delta(delta), _TRIM)
    tilt = sketch.tilt_at_delta(delta)
    guess = max(sketch.estimate(tilt)[0], 0.0)
    if guess == 0.0:
        tilt = sketch.tilt_at_epsilon(0.0)

    def bracket(size: int) -> tuple[float, float]:
        lower, upper = _bracket(steps, sketch, tilt, guess, size)
        low = _last_proved(lambda e: lower.delta_below(e) > delta, guess, -4 * lower.width)
        high = _last_proved(lambda e: upper.delta_above(e) <= delta, guess, 4 * upper.width)
        least = math.inf if lower.infinite * (1 - 1e-14) > delta else 0.0 if low is None else low
        return least, math.inf if high is None else high

    return _refine(bracket, points, rtol)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Composed:
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


def _bracket(
    steps: Sequence[tuple[Step, int]], sketch: Pilot, tilt: float, epsilon: float, size: int
) -> tuple[_Composed, _Composed]:
    window = sketch.window(tilt, epsilon, _TAIL, size)
    width = (window.right - window.left) / (size - 8)
    reach = max(high - low for high, low in zip(window.highest, window.lowest, strict=True))
    width = max(width, reach / min(2 * size, _MOST_CELLS), 1e-12)
    width = _fit(width, steps)
    uppers, lowers = [], []
    stake = math.exp(max(sketch.estimate(tilt)[1], -600.0))
    for (pair, _), low, high, split in zip(steps, window.lowest, window.highest, window.medians, strict=True):
        offset = pair.atoms[0] if pair.atoms else centre(pair, split, width)
        cells = Cells(
            pair,
            offset=offset,
            width=width,
            first=math.floor((low - offset) / width) - 1,
            last=math.ceil((high - offset) / width) + 1,
            split=split,
        )
        uppers.append(cells.upper(tilt=tilt, delta=stake))
        lowers.append(cells.lower(tilt=tilt))
        del cells  # the largest arrays of all; the next step's need the room
    counts = [count for _, count in steps]
    lower = _compose(lowers, counts, window, epsilon, size, sign=-1)
    return lower, _compose(uppers, counts, window, epsilon, size, sign=1)


def _fit(width: float, steps: Sequence[tuple[Step, int]]) -> float:
    """A lattice width, not below `width`, with the atoms of the most repeated atomic step on nodes, if there is one."""
    atomic = [(count, pair.atoms) for pair, count in steps if len(pair.atoms) > 1]
    if not atomic:
        return width
    atoms = np.array(max(atomic)[1])
    places = (atoms - atoms.min()) / np.ptp(atoms)
    most = math.floor(float(np.ptp(atoms)) / width)
    if most < 1:
        return width
    cells = np.arange(most, max(most - 4000, most // 2), -1)
    off = np.abs(np.remainder(np.multiply.outer(cells, places[:64]) + 0.5, 1.0) - 0.5).max(axis=1)
    return float(np.ptp(atoms)) / float(cells[int(np.argmax(off <= max(1e-9, off.min())))])


def _compose(laws: list[Law], counts: list[int], window: Window, pivot: float, size: int, *, sign: int) -> _Composed:
    c, width = window.tilt, laws[0].width
    offset = math.fsum(law.offset * count for law, count in zip(laws, counts, strict=True))
    start = math.floor((window.left - offset) / width) - 2
    log_scale, shift, infinite = 0.0, 0.0, 0.0
    log_size, angle = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
    log_most, relative = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
    beyond = 0.0
    for law, count in zip(laws, counts, strict=True):
        losses = law.losses()
        log_norm = law.log_moment(c)
        exponents = c * losses
        with np.errstate(divide="ignore"):  # where there is no mass, the tilt may be too large for a float
            masses = np.exp(np.log(law.masses) + (exponents - log_norm))
        rounding = _UNIT * float(masses @ (8 + 4 * np.abs(exponents) + abs(log_norm)))
        where = np.arange(law.first, law.first + masses.size) % size
        transform = fft.rfft(np.bincount(where, weights=masses, minlength=size))
        error = 1.01 * (_FFT_ERROR * _UNIT * (math.log2(size) + 2) * float(masses.sum()) + rounding)
        sizes = np.abs(transform)
        log_size += count * np.log(np.maximum(sizes, 1e-300))
        angle += np.remainder(count * np.angle(transform), 2 * math.pi)
        log_most += count * np.log(sizes + error)
        relative += count * (error / (sizes + error) + _UNIT * (16 + 4 * np.abs(np.log(np.maximum(sizes, 1e-300)))))
        log_scale += count * log_norm
        shift += count * law.shift
        # a lower law's mass beyond the lattice counts as a loss of minus infinity, but finite
        total = float(law.masses.sum()) if sign > 0 else 1 - law.infinite
        infinite += count * math.log1p(law.infinite / total)
        beyond += count * (math.log(total))
    with np.errstate(under="ignore"):
        spectrum = np.exp(log_size) * np.exp(1j * angle)
        errors = np.exp(log_most) * np.minimum(2.0, 2 * relative)
    doubled = 2 * float(errors.sum())
    pointwise = doubled / size + 1.01 * _FFT_ERROR * _UNIT * (math.log2(size) + 2) * (
        2 * float(np.exp(log_most).sum()) / size
    )
    masses = np.roll(fft.irfft(spectrum, size), -(start % size))
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
    return _Composed(
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


def _last_proved(holds: Callable[[float], bool], guess: float, stride: float) -> float | None:
    """The ε ≥ 0 furthest against `stride` from which on `holds` was seen to hold; None if it never did.

    `holds` need not be monotone: only an ε at which it was evaluated and held is returned.
    """
    proved, failed = None, None
    for k in range(60):
        here = max(guess + stride * (2.0**k - 1), 0.0)
        if holds(here):
            proved = here
            break
        failed = here
        if stride < 0 and here == 0.0:
            return None
    if proved is None:
        return None
    for k in range(60):
        if failed is not None:
            break
        here = max(guess - stride * (2.0**k - 1), 0.0)
        if not holds(here):
            failed = here
        else:
            proved = here
            if here == 0.0 and stride > 0:
                return 0.0
    if failed is None:
        return proved
    while abs(failed - proved) > 1e-13 * max(proved, 1e-6):
        middle = 0.5 * (failed + proved)
        if middle in (failed, proved):
            break
        if holds(middle):
            proved = middle
        else:
            failed = middle
    return proved


def _refine(bracket: Callable[[int], tuple[float, float]], points: int | None, rtol: float) -> tuple[float, float]:
    """Double the lattice, several times at once where second order says so, until the bracket is narrow."""
    if points is not None:
        return bracket(points)
    size = _FEWEST
    low, high = bracket(size)
    while size < _MOST and high - low > rtol * high:
        short = (high - low) / (rtol * high) if math.isfinite(high) else 16.0
        size = min(_MOST, size * 2 ** min(max(1, math.ceil(math.log2(1.3 * short) / 2)), 3))
        before = high - low
        new = bracket(size)
        low, high = max(low, new[0]), min(high, new[1])
        if size >= 1 << 19 and high - low > 0.8 * before:  # rounding, not the lattice, is now what is left
            break
    return low, high


def _check(steps: Sequence[tuple[Step, int]], points: int | None) -> None:
    if not steps or any(count < 1 or count != int(count) for _, count in steps):
        raise InvalidParameter(
            "Expected at least one step, each with a whole count of at least 1: a run that releases nothing has no "
            "price to bracket. Leave parts with a count of 0 out."
        )
    if points is not None and (points < 64 or points & (points - 1)):
        raise InvalidParameter(
            f"Expected points to be a power of two, 64 or more, got {points!r}: the bound on the rounding of the "
            "Fourier transform is proved for those. Use e.g. 2**16."
        )
