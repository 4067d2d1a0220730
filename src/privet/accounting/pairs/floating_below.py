"""Laws below a sum of independent numbers in the convex order: :mod:`privet.accounting.pairs.floating_law` from below.

The potentials E(X − k)₊ and E(k − X)₊ of a law tell the order. Spreading raises both, on a cell between two points at
most by what is recorded with it; a polygon that is lower by that much at the points is the potential of a law below.
docs/proofs/allocation.md, section 4.
"""

from collections import deque

import numpy as np
from scipy import fft

from privet.accounting.pairs.floating_law import FloatingLaw, Octaves, norms, octave_sums, spread, transform_error
from privet.accounting.pairs.pair import UNIT, Reals

_LIGHT = 1e-30  # tails with less than this share of the mass, or of the first moment, are not followed
_CUTS = 100_000  # corners that may be cut before giving up


def under(law: FloatingLaw, raised_by: Reals) -> FloatingLaw:
    """A law below every one whose potential is, on each cell between two points, at most so much below that of `law`.

    `raised_by` has the unit of the places of `law`. If there is no such law on the grid, the empty one is returned.
    """
    places, masses = law.points()
    widths = np.diff(places)
    by = np.append(raised_by, 0.0)
    by[1:] = np.maximum(by[1:], raised_by)
    by *= 1 + 1e-12
    slopes = np.diff(by) / widths
    upto, onward = np.cumsum(masses), np.cumsum(masses[::-1])[::-1]
    # E(k − X)₊ and E(X − k)₊ at the points, lowered; both are at least 0, and where they meet it, a tangent goes on
    put = np.append(0.0, np.cumsum(upto[:-1] * widths)) * (1 - 1e-11) - by
    call = np.append(np.cumsum((onward[1:] * widths)[::-1])[::-1], 0.0) * (1 - 1e-11) - by
    first = int(np.flatnonzero((put <= 0) | (upto < _LIGHT))[-1])
    last = int(
        np.flatnonzero((call <= 0) | (np.cumsum((masses * places)[::-1])[::-1] < _LIGHT * float(masses @ places)))[0]
    )
    found = np.zeros(len(places))
    if last - first > 4:
        rise = put[first + 1 : last] / (places[first + 1 : last] - places[first])
        fall = call[first + 1 : last] / (places[last] - places[first + 1 : last])
        a, b = first + 1 + int(np.argmin(rise)), first + 1 + int(np.argmin(fall))
        if b > a:
            inner = slice(a + 1, b)
            found[inner] = masses[inner] - slopes[inner] + slopes[a : b - 1]
            found[inner] -= 16 * UNIT * (masses[inner] + np.abs(slopes[inner]) + np.abs(slopes[a : b - 1]))
            found[first], found[last] = rise[a - first - 1], fall[b - first - 1]
            found[a] = (upto[a] - slopes[a]) * (1 - 1e-11) - found[first]
            found[b] = (onward[b] + slopes[b - 1]) * (1 - 1e-11) - found[last]
            found = _without_corners(places, found)
    half = len(law.low)
    return FloatingLaw(law.exponent, found[:half], found[half:].reshape(-1, half) * (1 - 16 * UNIT))


def _without_corners(places: Reals, masses: Reals) -> Reals:
    """Negative masses moved to the nearest points with mass, keeping the mean: f is at most its chord. Or nothing."""
    some = np.flatnonzero(masses)
    x, m = places[some], masses[some]
    bad = deque(np.flatnonzero(m < 0).tolist())
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    cuts = 0
    while bad:
        i = bad.popleft()
        moved = float(m[i])
        if moved >= 0:
            continue
        j, k = before.get(i, i - 1), after.get(i, i + 1)
        cuts += 1
        if j < 0 or k == len(m) or cuts > _CUTS:
            return np.zeros_like(masses)
        m[i] = 0.0
        share = (x[k] - x[i]) / (x[k] - x[j])
        for near, part in ((j, share), (k, 1 - share)):
            m[near] += part * moved * (1 + 1e-12)
            if m[near] < 0:
                bad.append(near)
        after[j], before[k] = k, j
    found = np.zeros_like(masses)
    found[some] = m
    return found


def raised_below(law: FloatingLaw, exponent: int) -> FloatingLaw:
    """A law below this one, whose unit is no smaller than 2^exponent."""
    while law.exponent < exponent:
        coarse = spread(np.concatenate((law.low, law.rows[0])))
        rows = law.rows[1:].copy() if len(law.rows) > 1 else np.zeros((1, len(law.low)))
        rows[0, 0] += coarse[-1]
        by = np.zeros(rows.size + len(law.low) - 1)
        by[: len(law.low)] = 0.5 * np.append(law.low[1::2], law.rows[0, 1::2])[: len(by)] * 2.0**law.exponent
        law = under(FloatingLaw(law.exponent + 1, coarse[:-1], rows), by)
    return law


def added_below(one: FloatingLaw, other: FloatingLaw) -> FloatingLaw:
    """A law below that of the sum of two independent numbers of these laws, on equally many points an octave."""
    exponent = max(one.exponent, other.exponent)
    laws = [raised_below(law, exponent) for law in ((one,) if one is other else (one, other))]
    count, half = max(len(law.rows) for law in laws), len(one.low)
    parts = [Octaves.of(law, count) for law in laws]
    sums, error = octave_sums(parts)
    sums = np.maximum(sums - error, 0.0)
    sums[1:, :half] = 0.0
    sums[:, -1] = 0.0
    gaps = [_gaps(part) for part in parts]
    spectrum = parts[0].rows_transform * fft.rfft(gaps[-1], 4 * half)
    spectrum += parts[-1].rows_transform * fft.rfft(gaps[0], 4 * half)
    size = parts[0].rows_norm * norms(gaps[-1]) + parts[-1].rows_norm * norms(gaps[0])
    by = np.maximum(fft.irfft(spectrum, 4 * half), 0.0) + transform_error(size, 4 * half)
    upper, odd = by[:, 2 * half :], 0.5 * sums[:, 2 * half + 1 :: 2]
    scales = np.ldexp(1.0, np.arange(count))[:, None]
    rows, cells = np.zeros((count + 1, half)), np.zeros((count + 1, half))
    rows[:count], cells[:count] = sums[:, half : 2 * half], by[:, half : 2 * half] * scales
    rows[1:] += spread(sums[:, 2 * half :])[:, :half]
    cells[1:] += (np.maximum(upper[:, ::2], upper[:, 1::2]) + odd) * scales
    everywhere = np.append(np.zeros(half), cells.ravel())[:-1] * 2.0**exponent
    return under(FloatingLaw(exponent, sums[0, :half], rows), everywhere)


def _gaps(part: Octaves) -> Reals:
    """For each octave: by how much spreading what is below it raised the potential, on cells, in units of its step."""
    count, half = len(part.rows), part.lows.shape[1] - 1
    gaps = np.zeros((count, half))
    for k in range(count - 1):
        whole = np.append(part.lows[k, :half], part.rows[k, half:])
        gaps[k + 1] = 0.25 * whole[1::2]
        gaps[k + 1, : half // 2] += 0.5 * np.maximum(gaps[k, ::2], gaps[k, 1::2])
    return gaps
