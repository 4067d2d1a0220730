"""The mean of values between public ends, with Laplace noise: pure, and all that is left of a model of few records."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from privet.accounting import Laplace
from privet.accounting.numerics import upward
from privet.arrays import IntArray, Vector
from privet.data.elsewhere import tallies
from privet.noise import add_laplace
from privet.plan import Bounded, Meter, Release
from privet.privacy import Neighbours, sensitivity_factor

_BITS = 20  # half of the distance between the ends is 2²⁰ units
_LEAST = 12  # a scale of noise is at least 2¹² lattice steps


@dataclass(frozen=True, kw_only=True, slots=True)
class LaplaceMean:
    """The noisy mean of values cut to public ends, where the number of records is public.

    Squared errors are least at the mean; a median, which is drawn with less, is half a standard deviation away from
    that of waiting times. The ends should be no farther apart than most values are, as noise is as wide as they are.

    Promise: the release of that name, the Laplace mechanism; values that are NaN count as the middle.
    Theorem: docs/proofs/drawing.md, section 7.

    Examples
    --------
    >>> round(LaplaceMean(name="constant", neighbours="replace_one").release(0.125).mechanism.scale, 9)
    16.0
    """

    name: str
    neighbours: Neighbours

    def release(self, epsilon: float) -> Release:
        """The release that costs `epsilon`."""
        return Release(
            name=self.name,
            of="values cut to an interval",
            bound=Bounded(clip=1.0, how="a value is cut to an interval, half of which is 1"),
            mechanism=Laplace(scale=upward(sensitivity_factor(self.neighbours) / epsilon)),
        )

    def run(self, values: Vector, ends: tuple[float, float], meter: Meter) -> float:
        """The mean, within the public `ends`; private in, public out."""
        scale = meter.plan[self.name].mechanism.scale  # type: ignore[union-attr]  # as `release` has it
        low, high = ends
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        meter.open(self.name, count=len(values))
        (units,) = tallies([partial(_units, middle=middle, half=half)], [values])
        shift = max(0, _LEAST + 1 - math.frexp(math.ldexp(scale, _BITS))[1])
        whole, step = np.left_shift(units, shift), math.ldexp(1.0, -_BITS - shift)
        noisy = meter.chosen(self.name, lambda random: add_laplace(whole, step=step, noise_scale=scale, random=random))
        return min(max(middle + half * float(noisy[0]) / max(meter.plan.count, 1.0), low), high)


def _units(values: Vector, middle: float, half: float) -> IntArray:
    """What values add up to beside the middle, in units; NaN is nothing. Each is rounded by itself."""
    known = values[~np.isnan(values)]
    with np.errstate(all="ignore"):
        cut = np.clip((known - middle) / half, -1.0, 1.0) if half > 0 else np.zeros_like(known)
    return np.array([np.rint(np.ldexp(cut, _BITS)).astype(np.int64).sum()])
