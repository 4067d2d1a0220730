"""Where to look: a cheap, rough picture of a run's privacy loss, from which tilt and window are chosen.

Nothing here carries a guarantee. A bad choice makes the brackets of :mod:`privet.accounting.fourier.brackets` wide,
never wrong.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from privet.accounting.fourier.lattice_laws import LARGEST_LOSS
from privet.accounting.pairs.pair import Tails

Floats = npt.NDArray[np.float64]

_SCALES = 40  # points per decade-ish of geometric refinement, either side of a centre
_EVEN = 800  # evenly spaced points over the whole range
_DEEPEST = 1e-70  # a tail this light is out of sight


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """Tilt and extent of the composed loss, and the reach of every single step."""

    tilt: float
    left: float
    right: float
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    medians: tuple[float, ...]
    tilts_left: float
    tilts_right: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sketch:
    edges: Floats
    above: Floats
    below: Floats
    losses: Floats
    log_masses: Floats
    infinite: float
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Pilot:
    """A few thousand cells per step: good to about a per mille, in a millisecond."""

    sketches: tuple[_Sketch, ...]
    counts: tuple[int, ...]

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """log E e^{cL}, and mean and variance of L under the tilt c, for the whole run."""
        total = [0.0, 0.0, 0.0]
        for sketch, count in zip(self.sketches, self.counts, strict=True):
            exponents = sketch.log_masses + tilt * sketch.losses
            top = float(exponents.max())
            weights = np.exp(exponents - top)
            mass = float(weights.sum())
            mean = float(weights @ sketch.losses) / mass
            spread = float(weights @ (sketch.losses - mean) ** 2) / mass
            for k, value in enumerate((top + math.log(mass), mean, spread)):
                total[k] += count * value
        return total[0], total[1], total[2]

    def infinite(self) -> float:
        """P(L = ∞) of the whole run."""
        return -math.expm1(
            sum(
                count * math.log1p(-min(sketch.infinite, 0.999999))
                for sketch, count in zip(self.sketches, self.counts, strict=True)
            )
        )

    def estimate(self, tilt: float) -> tuple[float, float]:
        """(ε, log δ): the ε whose saddle point is `tilt`, and the saddle-point estimate of δ(ε) there."""
        log_moment, mean, spread = self.cumulants(tilt)
        epsilon = mean - 1 / tilt - 1 / (1 + tilt)
        curvature = spread + tilt**-2 + (1 + tilt) ** -2
        log_delta = log_moment - tilt * epsilon - math.log(tilt * (1 + tilt)) - 0.5 * math.log(2 * math.pi * curvature)
        return epsilon, log_delta

    def tilt_at_epsilon(self, epsilon: float) -> float:
        """The saddle point of E e^{cL} e^{-cε} / (c (c+1)) on the positive line."""
        return _bisect(lambda c: self.estimate(c)[0] < epsilon)

    def tilt_at_delta(self, delta: float) -> float:
        """The saddle point for the ε at which δ(ε) is about `delta`."""
        finite = delta - self.infinite()
        if finite <= 0:
            finite = delta * 1e-3
        target = math.log(finite)
        return _bisect(lambda c: self.estimate(c)[1] > target)

    def _reach(self, tilt: float, reach: float) -> tuple[float, float, float, float]:
        """Ends beyond which the tilted loss has mass e^{-reach}, by Chernoff's bound, and tilts that show it."""
        log_moment, _, spread = self.cumulants(tilt)
        unit = 1 / math.sqrt(max(spread, 1e-200))
        found: list[float] = []
        for sign in (-1, 1):
            ends = []
            for factor in (0.5, 1, 2, 3, 4.5, 6, 7, 9, 12, 20, 40, 100):
                other = tilt + sign * min(factor * unit, 1e7)
                ends.append(((self.cumulants(other)[0] - log_moment + reach) / abs(other - tilt), other))
            end, other = min(ends)
            found += [sign * end, other]
        return found[0], found[1], found[2], found[3]

    def trimmed(self, tilt: float, tolerance: float) -> "Pilot":
        """Without the losses so rare that they cannot matter to the δ whose saddle point is `tilt`."""
        _, log_delta = self.estimate(tilt)
        kept = []
        for sketch, count in zip(self.sketches, self.counts, strict=True):
            light = tolerance * math.exp(max(log_delta, -600.0)) / count
            log_moment = float(np.logaddexp.reduce(sketch.log_masses + tilt * sketch.losses))
            with np.errstate(divide="ignore"):
                tilted = np.log(sketch.below) + tilt * sketch.edges - log_moment
            too_low = np.flatnonzero(tilted <= math.log(tolerance / count))
            too_high = np.flatnonzero(sketch.above <= light)
            low = float(sketch.edges[too_low[-1] if too_low.size else 0])
            high = float(sketch.edges[too_high[0] if too_high.size else -1])
            inside = (sketch.losses >= low) & (sketch.losses <= high)
            losses, log_masses = sketch.losses[inside], sketch.log_masses[inside]
            kept.append(replace(sketch, low=low, high=high, losses=losses, log_masses=log_masses))
        return Pilot(tuple(kept), self.counts)

    def window(self, tilt: float, epsilon: float, tolerance: float, size: int) -> Window:
        """Room for the tilted loss up to tails of `tolerance`, on a lattice of `size` points."""
        left, tilts_left, right, tilts_right = self._reach(tilt, math.log(1 / tolerance))
        lowest = tuple(sketch.low for sketch in self.sketches)
        highest = tuple(sketch.high for sketch in self.sketches)
        # not beyond the reach of the steps, with room for the few cells by which a lattice overhangs them
        bottom, top = (math.fsum(map(operator.mul, self.counts, part)) for part in (lowest, highest))
        left, bottom = min(left, epsilon), min(bottom, epsilon)
        cell = (min(right, top) - max(left, bottom)) / (0.9 * size)
        left = max(left - 40 * cell, bottom - 3 * cell * sum(self.counts))
        right = min(right + 40 * cell, top + 3 * cell * sum(self.counts))
        right = max(right, left, epsilon)
        return Window(
            tilt=tilt,
            left=left,
            right=right,
            lowest=lowest,
            highest=highest,
            medians=tuple(sketch.median for sketch in self.sketches),
            tilts_left=tilts_left,
            tilts_right=tilts_right,
        )


def pilot(steps: Sequence[tuple[Tails, int]]) -> Pilot:
    """Sketch every step of a run."""
    return Pilot(tuple(_sketch(pair) for pair, _ in steps), tuple(count for _, count in steps))


def _sketch(pair: Tails) -> _Sketch:
    low, high = max(pair.lowest, -LARGEST_LOSS), min(pair.highest, LARGEST_LOSS)
    median = _quantile(pair, low, high)
    span = np.exp2(np.arange(-60, 11))
    right = np.minimum(median + span, high)
    left = np.maximum(median - span, low)
    light = np.flatnonzero(pair.above(right)[0] <= _DEEPEST)
    high = min(high, float(right[light[0]])) if light.size else high
    light = np.flatnonzero(pair.below(left)[0] <= _DEEPEST)
    low = max(low, float(left[light[0]])) if light.size else low
    width = max(high - low, 1e-12)
    steps = width * np.geomspace(1e-12, 1.0, 12 * _SCALES)
    parts = [np.linspace(low, high, _EVEN)]
    for centre in (median, low, high, *pair.atoms):
        parts += [centre + steps, centre - steps, np.array([centre])]
    edges = np.unique(np.clip(np.concatenate(parts), low, high))
    edges = np.concatenate(([low - 1e-12 * max(1.0, abs(low))], edges, [high + 1e-12 * max(1.0, abs(high))]))
    above, q_above = pair.above(edges)
    below, q_below = pair.below(edges)
    upper = edges[:-1] >= median
    p = np.where(upper, above[:-1] - above[1:], below[1:] - below[:-1])
    q = np.where(upper, q_above[:-1] - q_above[1:], q_below[1:] - q_below[:-1])
    kept = (p > 0) & (q > 0)
    a, b = edges[:-1][kept], edges[1:][kept]
    losses = np.clip(np.log(p[kept]) - np.log(q[kept]), a, b)
    return _Sketch(
        edges=edges,
        above=above,
        below=below,
        losses=losses,
        log_masses=np.log(p[kept]),
        infinite=pair.infinite,
        median=median,
        low=low,
        high=high,
    )


def centre(pair: Tails, median: float, width: float) -> float:
    """A loss that equals log P/Q of the cell of `width` around it: where a lattice serves the bulk of L best."""
    here = median
    for _ in range(40):
        ends = np.array([here - width / 2, here + width / 2])
        (p_low, p_high), (q_low, q_high) = pair.above(ends) if here >= median else pair.below(ends)
        p, q = abs(p_low - p_high), abs(q_low - q_high)
        if not (p > 1e-3 and q > 0):
            return median
        there = min(max(math.log(p / q), ends[0]), ends[1])
        if abs(there - here) < 1e-4 * width:
            return float(there)
        here = there
    return float(here)


def _quantile(pair: Tails, low: float, high: float) -> float:
    """A median of the finite part of L, to about 1e-9 relative."""
    middle = 0.5 * (1 - pair.infinite)
    powers = np.exp2(np.arange(-60.0, 10.0))
    grid = np.unique(np.clip(np.concatenate((-powers, [0.0], powers)), low, high))
    for _ in range(6):
        inside = np.flatnonzero(pair.below(grid)[0] >= middle)
        k = int(inside[0]) if inside.size else grid.size - 1
        grid = np.linspace(grid[max(k - 1, 0)], grid[k], 33)
    return float(grid[-1])


def _bisect(below: Callable[[float], bool]) -> float:
    """The tilt, between 1e-7 and 1e7, where `below` turns from true to false; to about 1e-4 relative."""
    low, high = math.log(1e-7), math.log(1e7)
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        if below(math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))
