"""One step's privacy loss on a lattice: a law that surely costs more, and a law that surely costs less.

What a law costs is its hockey-stick curve, H(k) = E_P[(1 - k e^{-L})₊] for k ≥ 0. If one step's curve lies below
another's everywhere, replacing the first by the second can only raise the δ of any composition they take part in
(`docs/proofs/fourier.md`, lemma 1). So `upper` returns lattice masses whose curve lies above the pair's, and `lower`
masses whose curve lies below it: chords and tangents of a convex curve, both within O(width²) of it.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privet.accounting.pairs.pair import Tails

Floats = npt.NDArray[np.float64]

LARGEST_LOSS = 690.0  # e^±690 are ordinary floats; mass beyond is moved to the safe side
_PAIR_ERROR = 1e-13  # promised relative error of a pair's tails
_POSITION_ERROR = 16.0  # a pair may answer for a loss this many times 2^-52 (1 + |loss|) away from the one asked for
_BLOCK = 1 << 17  # losses per call of the pair, to bound its scratch memory
# noise may be compensated up to one of these times `accuracy`; the cheapest is taken
_FACTORS = 8.0 * 4.0 ** np.arange(14)
_MERGES = 200_000  # vertices that may be cut before the lower law falls back to rounding down


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """Mass `masses[i]` at loss offset + (first + i)·width, give or take `shift`, and `infinite` at infinity."""

    offset: float
    first: int
    width: float
    masses: Floats
    infinite: float
    shift: float

    def losses(self) -> Floats:
        """Where the masses sit."""
        return self.offset + self.width * np.arange(self.first, self.first + self.masses.size, dtype=float)

    def log_moment(self, tilt: float) -> float:
        """log Σ mass·e^{tilt·loss} over the finite losses."""
        some = self.masses > 0
        exponents = tilt * self.losses()[some] + np.log(self.masses[some])
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum()))


class Cells:
    """P- and Q-mass of every half cell of a lattice, from which both laws are made.

    Parameters
    ----------
    pair : the step
    offset, width : the lattice is offset + width·i, in nats
    first, last : least and greatest i; mass outside is moved to the safe side
    split : a loss; masses left of it are differences of `below`, right of it of `above`
    """

    def __init__(self, pair: Tails, *, offset: float, width: float, first: int, last: int, split: float) -> None:
        self.offset, self.width, self.first = offset, width, first
        halves = offset + (0.5 * width) * np.arange(2 * first, 2 * last + 1, dtype=float)
        at = int(np.searchsorted(halves, min(split, 0.0))) - 2  # a node early: an atom at `split` is a gap in `above`
        at = min(max(at, 0), halves.size - 1)
        p_above, q_above = _blocks(pair.above, halves[at:])
        p_below, q_below = _blocks(pair.below, halves[: at + 1])
        self.p = np.concatenate((np.diff(p_below), -np.diff(p_above)))
        self.q = np.concatenate((np.diff(q_below), -np.diff(q_above)))
        self.top, self.bottom = float(p_above[-1]), float(p_below[0])
        self.infinite = pair.infinite
        # P(L > node), or something a little larger, at the nodes of the lattice
        whole = min(1.0 - pair.infinite, float(p_below[-1] + p_above[0]))  # less for a law that was cut
        self.tail = np.concatenate((whole - p_below[:-1], p_above))[::2]
        self.noisy_tail = np.concatenate((np.ones(at), p_above))[::2]
        # the normal tail is as exact as two units of its argument make it: e^{-x²/2} is off by 2^{-52}·x²
        self.noisy_tail *= np.maximum(1.0, 2.0**-51 * (4 - np.log(np.maximum(self.noisy_tail, 1e-320))) / _PAIR_ERROR)
        self.scale = np.exp(halves[::2])
        reach = max(abs(halves[0]), abs(halves[-1]))
        self.position = 2.0**-52 * _POSITION_ERROR * (1 + reach)
        self.accuracy = _PAIR_ERROR + 16 * 2.0**-52
        # how far the curve is above its two asymptotes, 1 - k and P(L = ∞), where they matter
        nodes, middle = halves[::2], at // 2
        self.left_gap, self.right_gap = np.full(nodes.size, math.inf), np.full(nodes.size, math.inf)
        low, high = slice(0, middle + 4), slice(max(middle - 4, 0), None)
        p_below, q_below = _blocks(pair.below, nodes[low])
        p_above, q_above = _blocks(pair.above, nodes[high])
        self.left_gap[low] = self.scale[low] * q_below - p_below
        # for the law without the losses above the last node
        self.right_gap[high] = (p_above - p_above[-1]) - self.scale[high] * (q_above - q_above[-1])
        self.right_gap[-1] = 0.0
        self._pair = pair

    def _split(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Whole cells' P and Q-mass, and the shares of the left and the right end that preserve both."""
        p, q = self.p[0::2] + self.p[1::2], self.q[0::2] + self.q[1::2]
        right = (p - self.scale[:-1] * q) / -math.expm1(-self.width)
        return p, q, p - right, right

    def upper(self, *, tilt: float = 1.0, delta: float = 1e-6) -> Law:
        """Masses whose hockey-stick curve lies above the pair's: its chords between lattice points.

        `tilt` and `delta` say where the law will be looked at: tightness depends on them, safety does not.
        """
        p, q, _, right = self._split()
        whole = np.maximum(p, 0.0)
        right = np.clip(right, 0.0, whole)
        left = whole - right
        # what clipping took away, if rounding had made a mass negative or put it outside its cell
        a, b = self.scale[:-1], self.scale[1:]
        lost = np.maximum(p - whole, 0.0) + a * np.maximum(left / a + right / b - q, 0.0)
        lost[lost < 8 * 2.0**-52 * whole] = 0.0  # rounding of this very line; `accuracy` has room for it
        masses = np.zeros(self.scale.size)
        masses[:-1] += left
        masses[1:] += right
        masses[0] += max(self.bottom, 0.0)
        infinite = (self.infinite + self.top) * (1 + 8 * self.accuracy)
        # excess[j]: by how much the curve may still be too low on cell j; entry 0 is the stretch left of the lattice
        excess = 4 * self.accuracy * np.concatenate(([1.0], self.noisy_tail[:-1]))
        excess[1:] += _suffix(lost)
        excess[0] += float(lost.sum())
        weight = _suffix(masses) + infinite
        ratios = excess / np.maximum(weight, 1e-300)
        limits = np.minimum(_FACTORS * self.accuracy, ratios.max())
        rests = [max(float(np.max(excess - limit * weight)), 0.0) for limit in limits]
        k = int(np.argmin(limits * (1 + tilt) + np.array(rests) / delta))
        theta, infinite = float(limits[k]), infinite + rests[k]
        grow = 1 + theta
        return self._law(masses * grow, infinite * grow, theta + 2 * self.position)

    def lower(self, *, tilt: float = 1.0) -> Law:
        """Masses whose hockey-stick curve lies below the pair's: polygons under its tangents at mid-cell.

        `tilt` says where the law will be looked at: tightness depends on it, safety does not.
        """
        masses = self._tangents()
        if masses is None:
            return self.floor()
        excess = 8 * self.accuracy * self.noisy_tail[:-1]
        weight = _suffix(masses)[1:]
        ratios = np.where(weight > 0, excess / np.maximum(weight, 1e-300), 0.0)
        # noise up to `limit` is compensated; where it is larger, all that lies beyond comes down
        limits = np.minimum(_FACTORS * self.accuracy, ratios.max())
        firsts = [int(np.argmax(ratios > limit)) if limit < ratios.max() else weight.size for limit in limits]
        # what that costs: by how much E e^{tilt·L} falls, as a share of it
        powers = np.exp(tilt * self.width * np.arange(1 - masses.size, 1))
        fall = (_suffix(masses * powers)[1:] - powers[:-1] * weight) / max(float(masses @ powers), 1e-300)
        moved = np.array([fall[first] if first < weight.size else 0.0 for first in firsts])
        k = int(np.argmin(limits * (1 + 3 * tilt) + moved))
        theta, first = float(limits[k]), firsts[k]
        if first < weight.size:
            masses[first] += masses[first + 1 :].sum()
            masses[first + 1 :] = 0.0
        keep = 1 - theta
        return self._law(masses * keep, self.infinite * (1 - 8 * self.accuracy) * keep, 3 * theta + 2 * self.position)

    def floor(self) -> Law:
        """Masses rounded down to the lattice: below the pair for certain, but only to first order in the width."""
        tail = np.minimum.accumulate(np.maximum(self.tail, 0.0))
        masses = np.append(tail[:-1] - tail[1:], tail[-1])
        keep = 1 - 8 * self.accuracy
        return self._law(masses * keep, self.infinite * keep, 2 * self.position)

    def _tangents(self) -> Floats | None:
        _, _, left, right = self._split()
        masses = np.append(left, 0.0)  # losses beyond the lattice, on either side, are dropped
        masses[1:] += right
        # by how much the tangent at mid-cell passes under the curve, at the cell's left and at its right end
        under_left = np.append(self.p[0::2] - self.scale[:-1] * self.q[0::2], 0.0)
        under_right = np.append(0.0, self.scale[1:] * self.q[1::2] - self.p[1::2])
        noise = 4 * self.accuracy * np.append(1.0, self.noisy_tail[:-1])
        # left of `start` the polygon runs along 1 - k, right of `stop` along P(L = ∞): there the tangents are too low
        steep = np.flatnonzero(under_left - noise > self.left_gap)
        start = int(steep[-1]) if steep.size else -1
        steep = np.flatnonzero(under_right > self.right_gap)
        stop = int(steep[0]) if steep.size else masses.size - 1
        known = (start < 0 or self.left_gap[start + 1] < math.inf) and self.right_gap[stop - 1] < math.inf
        if stop < start + 3 or not known:
            return None
        under_left[stop - 1] = self._touch(stop - 1, right=True)
        if start >= 0:
            under_right[start + 1] = self._touch(start, right=False)
        under = np.maximum(np.maximum(under_left, under_right) - noise, 0.0)
        under[stop] = self.right_gap[stop]
        under[max(start, 0)] = max(self.left_gap[start], 0.0) if start >= 0 else under[0]
        slopes = np.diff(under)
        masses[:-1] -= slopes / math.expm1(self.width)
        masses[1:] += slopes / -math.expm1(-self.width)
        masses[0] += under[0]
        masses[stop:] = 0.0
        masses[stop] = (self.right_gap[stop - 1] - under[stop - 1]) / -math.expm1(-self.width)
        if start >= 0:
            masses[: start + 1] = 0.0
            masses[start] = (self.left_gap[start + 1] - under[start + 1]) / math.expm1(self.width)
        return masses if _cut_corners(masses, self.width) else None

    def _touch(self, cell: int, *, right: bool) -> float:
        """How far the line under the curve, from its asymptote at one end of a cell, is below it at the other end.

        Of the tangents inside the cell, bisection finds one that is as steep, or as flat, as that end allows.
        """
        start, stop = (self.offset + self.width * (self.first + cell + k) for k in (0, 1))
        low, high = start, stop

        def under(touching: float) -> tuple[float, float]:
            losses = np.array([start, touching, stop])
            p, q = (np.abs(np.diff(tail)) for tail in (self._pair.above(losses) if right else self._pair.below(losses)))
            return float(p[0] - self.scale[cell] * q[0]), float(self.scale[cell + 1] * q[1] - p[1])

        for _ in range(50):
            middle = 0.5 * (low + high)
            left_end, right_end = under(middle)
            if right:
                low, high = (low, middle) if right_end <= self.right_gap[cell + 1] else (middle, high)
            else:
                low, high = (middle, high) if left_end <= self.left_gap[cell] else (low, middle)
        return under(high)[0] if right else under(low)[1]

    def _law(self, masses: Floats, infinite: float, shift: float) -> Law:
        return Law(
            offset=self.offset,
            first=self.first,
            width=self.width,
            masses=masses,
            infinite=infinite,
            shift=shift,
        )


def _cut_corners(masses: Floats, width: float) -> bool:
    """Make the polygon with these kinks convex by cutting off vertices that stand out; in place. False if it cannot."""
    bad = deque(np.flatnonzero(masses < 0).tolist())
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    last = masses.size - 1
    cuts = 0
    while bad:
        i = bad.popleft()
        mass = float(masses[i])
        if mass >= 0:
            continue
        j, k = before.get(i, i - 1), after.get(i, i + 1)
        cuts += 1
        if k > last or cuts > _MERGES:
            return False
        masses[i] = 0.0
        share = math.expm1(-(i - j) * width) / math.expm1(-(k - j) * width) if j >= 0 else 1.0
        for neighbour, part in ((j, 1 - share), (k, share)):
            if part > 0:
                masses[neighbour] += part * mass
                if masses[neighbour] < 0:
                    bad.append(neighbour)
        after[j], before[k] = k, j
    return True


def _suffix(values: Floats) -> Floats:
    """Sums of all entries from the i-th on."""
    out: Floats = np.cumsum(values[::-1])[::-1]
    return out


def _blocks(tails: Callable[[Floats], tuple[Floats, Floats]], losses: Floats) -> tuple[Floats, Floats]:
    p, q = np.empty_like(losses), np.empty_like(losses)
    for start in range(0, losses.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        p[part], q[part] = tails(losses[part])
    return p, q
