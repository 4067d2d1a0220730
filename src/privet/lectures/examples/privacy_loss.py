"""The privacy loss variable and its composition by FFT (Razaviyayn, lecture 11, numerical and Fourier accountants).

Draw an outcome o from the first of two neighbours: L = ln P(o)/Q(o) is the privacy loss. A run of T steps loses the
sum of T such variables, and gives away

    δ(ε) = E[(1 − e^{ε − L})₊].

The lecture's recipe, here in a few lines: put the law of L on a lattice, transform, take the T-th power, transform
back. Rounding every loss up to the lattice gives an upper bound on δ, rounding down a lower one; rounding to the
nearest point and moving the lattice so that the mean is kept is far nearer to the truth, though without a side.

>>> from privet.accounting.pairs.mixture import MixturePair
>>> step = MixturePair(0.1, 0.5, "remove")  # a tenth of the records in each batch, noise of twice the clip
>>> found = composed(step, steps=100, epsilon=1.0)
>>> f"{found.down:.4f} <= {found.nearest:.4f} <= {found.up:.4f}"
'0.0099 <= 0.0115 <= 0.0133'

The library's own accountant does the same with a bracket of second order, tilts and bounds on every rounding.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privet.accounting.pairs.pair import Pair
from privet.lectures.measures import Vector


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """A privacy loss on a lattice: `masses[j]` at `first` + j × `width`, and `infinite` at infinity."""

    first: float
    width: float
    masses: Vector
    infinite: float = 0.0

    @property
    def losses(self) -> Vector:
        """Where the masses are."""
        return np.asarray(self.first + self.width * np.arange(self.masses.size), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Composition:
    """δ of a composition, by losses rounded down, to the nearest lattice point, and up."""

    down: float
    nearest: float
    up: float


def loss_law(pair: Pair, *, span: float, points: int, rounding: Literal["down", "nearest", "up"] = "up") -> Law:
    """Put the loss of a step on the lattice of `points` points from −span to span.

    Losses above the lattice go to infinity (rounded up) or to its last point, losses below to its first.

    >>> from privet.accounting.pairs.elementary import GaussianPair
    >>> law = loss_law(GaussianPair(1.0), span=8.0, points=4096, rounding="nearest")
    >>> f"{law.masses.sum():.6f} {law.masses @ law.losses:.6f}"  # the mean of the loss is μ²/2
    '1.000000 0.500000'
    """
    width = 2.0 * span / points
    grid = -span + width * np.arange(points)
    cuts = grid + {"down": width, "nearest": width / 2, "up": 0.0}[rounding]  # what is at most cuts[j] goes to grid[j]
    above = np.asarray(pair.above(cuts)[0], dtype=np.float64)
    masses = np.concatenate([[1.0 - pair.infinite - above[0]], above[:-1] - above[1:]])
    infinite = pair.infinite
    if rounding == "up":
        infinite += float(above[-1])
    else:
        masses[-1] += above[-1]
    shift = 0.0
    if rounding == "nearest":
        start = float(cuts[0]) - width  # E L = start + ∫ P(L > x) dx from there on, by Simpson's rule
        rising = np.asarray(pair.below(start + width / 2 * np.arange(2 * points + 1))[0], dtype=np.float64)
        simpson = rising[:-1:2].sum() + 4.0 * rising[1::2].sum() + rising[2::2].sum()
        shift = start + width * (points - simpson / 6.0) - float(masses @ grid)
    return Law(first=-span + shift, width=width, masses=masses, infinite=infinite)


def transformed(law: Law, steps: int) -> Law:
    """Compose `steps` equal steps by FFT: O(k log k) for k lattice points, whatever `steps` is.

    The transform is circular: what leaves the lattice at one end comes in at the other, so `span` must leave room.

    >>> coin = Law(first=-2.0, width=1.0, masses=np.array([0.0, 0.25, 0.0, 0.75, 0.0, 0.0, 0.0, 0.0]))
    >>> transformed(coin, 2).masses.round(6).tolist()  # −2, 0 and 2, with 1/16, 6/16 and 9/16
    [0.0625, 0.0, 0.375, 0.0, 0.5625, 0.0, 0.0, 0.0]
    """
    size = law.masses.size
    power = np.fft.irfft(np.fft.rfft(law.masses) ** steps, size)
    first = steps * law.first  # where index 0 is, up to whole turns of the lattice: roll it back to law.first
    turns = round((law.first - first) / law.width)
    return Law(
        first=first + turns * law.width,
        width=law.width,
        masses=np.maximum(np.roll(power, -(turns % size)), 0.0),
        infinite=-math.expm1(steps * math.log1p(-law.infinite)),
    )


def convolved(law: Law, steps: int) -> Law:
    """Compose by adding up products, k² of them for each further step: what the transform saves.

    >>> coin = Law(first=-1.0, width=2.0, masses=np.array([0.25, 0.75]))
    >>> convolved(coin, 2).masses.tolist(), convolved(coin, 2).losses.tolist()
    ([0.0625, 0.375, 0.5625], [-2.0, 0.0, 2.0])
    """
    masses = law.masses
    for _ in range(steps - 1):
        masses = np.convolve(masses, law.masses)
    infinite = -math.expm1(steps * math.log1p(-law.infinite))
    return Law(first=steps * law.first, width=law.width, masses=masses, infinite=infinite)


def delta_of(law: Law, epsilon: float) -> float:
    """E[(1 − e^{ε − L})₊] of a law on a lattice.

    >>> coin = Law(first=-1.0, width=2.0, masses=np.array([1.0, math.e]) / (1 + math.e))
    >>> f"{delta_of(coin, 0.5):.6f}"  # randomised response with ε = 1
    '0.287649'
    """
    gap = np.maximum(law.losses - epsilon, 0.0)
    return float(law.masses @ -np.expm1(-gap)) + law.infinite


def composed(pair: Pair, *, steps: int, epsilon: float, span: float = 12.0, points: int = 2**15) -> Composition:
    """Return δ(ε) of `steps` steps with this loss, by the lecture's recipe, three ways to round.

    >>> from privet.accounting.theorems.gaussian_profile import profile
    >>> from privet.accounting.pairs.elementary import GaussianPair
    >>> found = composed(GaussianPair(0.1), steps=100, epsilon=1.0)  # exactly one Gaussian with μ = 1
    >>> found.down < profile(1.0, 1.0) < found.up, abs(found.nearest / profile(1.0, 1.0) - 1) < 1e-4
    (True, True)
    """
    down, nearest, up = (
        delta_of(transformed(loss_law(pair, span=span, points=points, rounding=way), steps), epsilon)
        for way in ("down", "nearest", "up")
    )
    return Composition(down=down, nearest=nearest, up=up)
