"""The Fourier accountant: discretise the privacy loss, transform, multiply, invert; a bracket, not an estimate.

Every step becomes two laws on a lattice, one that surely costs more and one that surely costs less
(:mod:`privet.accounting.fourier.lattice_laws`), which are composed by FFT
(:mod:`privet.accounting.fourier.composed_law`). `docs/proofs/fourier.md` has the proof.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from privet._checks import is_number, is_whole
from privet.accounting.fourier.composed_law import ComposedLaw, compose
from privet.accounting.fourier.lattice_laws import Cells
from privet.accounting.fourier.pilot import Pilot, centre, pilot
from privet.accounting.pairs.pair import Tails
from privet.errors import InvalidParameter

_TRIM = 1e-10  # share of δ that a step's losses beyond its lattice may make up
_TAIL = 1e-8  # tilted mass allowed outside the window, by a Chernoff bound
_FEWEST, _MOST = 1 << 14, 1 << 19  # points of the transform
_MOST_CELLS = 1 << 18  # of one step: this is what bounds the memory


def fourier_delta(
    steps: Sequence[tuple[Tails, int]], epsilon: float, *, points: int | None = None, rtol: float = 1e-5
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
    >>> from privet.accounting.pairs.elementary import GaussianPair
    >>> low, high = fourier_delta([(GaussianPair(mu=0.1), 100)], 1.0)  # exactly one Gaussian with mu = 1
    >>> bool(low <= 0.12693673750664397 <= high), bool(high - low < 2e-5 * high)
    (True, True)
    """
    _check(steps, points)
    if not is_number(epsilon):
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
    steps: Sequence[tuple[Tails, int]], delta: float, *, points: int | None = None, rtol: float = 1e-5
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
    >>> from privet.accounting.pairs.elementary import GaussianPair
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


def _bracket(
    steps: Sequence[tuple[Tails, int]], sketch: Pilot, tilt: float, epsilon: float, size: int
) -> tuple[ComposedLaw, ComposedLaw]:
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
    lower = compose(lowers, counts, window, epsilon, size, sign=-1)
    return lower, compose(uppers, counts, window, epsilon, size, sign=1)


def _fit(width: float, steps: Sequence[tuple[Tails, int]]) -> float:
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


def _check(steps: Sequence[tuple[Tails, int]], points: int | None) -> None:
    if not steps or any(not is_whole(count) or count < 1 for _, count in steps):
        raise InvalidParameter(
            "Expected at least one step, each with a whole count of at least 1: a run that releases nothing has no "
            "privacy cost to bracket. Leave parts with a count of 0 out."
        )
    if points is not None and (not is_whole(points) or points < 64 or points & (points - 1)):
        raise InvalidParameter(
            f"Expected points to be a power of two, 64 or more, got {points!r}: the bound on the rounding of the "
            "Fourier transform is proved for those. Use e.g. 2**16."
        )
