"""Noise that is correlated over the steps of a run: drawn in floats, or exactly, on the lattice of the sums."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privet._checks import positive
from privet.errors import InvalidParameter
from privet.noise.fast import Floats, Integers
from privet.noise.noisy_sums import add_gaussian
from privet.noise.past import NeverSaved, Past, StepCount
from privet.noise.samplers import rounded_gaussian
from privet.noise.strategies import BITS, Strategy
from privet.randomness import Random, system_random

_ROOM = 60  # bits of a whole number that sums may use
_FINEST = 58  # a standard deviation of noise is at most 2⁵⁸ lattice steps
_COARSEST = 2.0**-6  # what rounding may cost, in relative noise


class NoiseFilter(NeverSaved):
    """Turns independent noise z, step by step, into C⁻¹z, for arrays or tensors.

    Promise: the outputs of all steps together are C⁻¹ times the inputs, up to the rounding of floats. It refuses more
    than `steps`; it is never copied or saved, as what it remembers is the noise of steps to come.

    Parameters
    ----------
    strategy : `Banded` or `InverseBanded`
    steps : of the whole run, as accounted for
    zeros : makes an array, or a tensor, of zeros of a shape

    Examples
    --------
    >>> from privet.noise import InverseBanded
    >>> noise = NoiseFilter(InverseBanded(coefficients=(1, -0.5)), steps=3)
    >>> [noise.next(np.array([z])).tolist() for z in (1.0, 0.0, 4.0)]
    [[1.0], [-0.5], [4.0]]
    """

    __slots__ = ("_count", "_past", "_zeros", "strategy")

    def __init__(self, strategy: Strategy, *, steps: int, zeros: Callable[[tuple[int, ...]], Any] = np.zeros) -> None:
        self.strategy = strategy
        self._zeros, self._count = zeros, StepCount(steps)
        self._past: Past | None = None

    def next(self, fresh: Any) -> Any:
        """The noise of the next step, of the same length as `fresh`, which is its own independent noise."""
        with self._count:
            if self._past is None:
                self._past = Past(_weights(self.strategy, self._count.steps), size=len(fresh), zeros=self._zeros)
            noise = fresh + self._past.weighed()
            self._past.push(fresh if self.strategy.of_inverse else noise)
        return noise


class CorrelatedNoise(NeverSaved):
    """Noise of a run: C⁻¹z, where z is independent, of standard deviation `noise_stddev`, as float64.

    Promise: as of `NoiseFilter`, of z from a cryptographic generator, each a multiple of 2⁻³⁰ standard deviations.
    Floats are added to floats here, so that a guarantee assumes ideal noise; `CorrelatedSums` does not.

    Examples
    --------
    >>> from privet.noise import banded_inverse_square_root
    >>> noise = CorrelatedNoise(banded_inverse_square_root(10), noise_stddev=2.0, steps=100)
    >>> noise.next(5).shape
    (5,)
    """

    __slots__ = ("_count", "_filter", "noise_stddev", "random")

    def __init__(self, strategy: Strategy, *, noise_stddev: float, steps: int, random: Random | None = None) -> None:
        because, use = "without noise nothing is private", "Set it from the plan."
        self.noise_stddev = positive("noise_stddev", noise_stddev, because=because, use=use)
        self.random = random if random is not None else system_random()
        self._filter, self._count = NoiseFilter(strategy, steps=steps), StepCount(steps)

    def next(self, size: int) -> Floats:
        """The noise of the next step: `size` numbers, as many at each."""
        with self._count:
            fresh = rounded_gaussian(self.random, 2.0**30, size) * (self.noise_stddev * 2.0**-30)
            found: Floats = self._filter.next(fresh)
        return found


class CorrelatedSums(NeverSaved):
    """Releases x + C⁻¹z of sums x on a lattice, exactly: no float stands between the sums and the proof.

    What gets noise is C·x, which is kept in whole numbers; C⁻¹ of that is taken in public. So the noise is that of
    `add_gaussian`, and what is kept between steps is private but for the releases.

    Promise: the run costs no more than `correlated_mechanism` with noise_stddev ÷ clip says, for ideal words, under
    each relation. What whole numbers round off is paid for by noise that is larger by some millionths.
    Proof: docs/proofs/correlated.md, section 4.

    Parameters
    ----------
    strategy : `Banded` or `InverseBanded`
    steps : of the whole run, as accounted for
    size : how many numbers are released at each step
    clip, noise_stddev : in the unit of the sums; public
    step : the lattice of the sums, a power of two; public
    max_records : a public bound on the records of one sum

    Examples
    --------
    >>> from privet.noise import banded_square_root
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> sums = CorrelatedSums(banded_square_root(4), steps=9, size=2, clip=1.0, noise_stddev=3.0, step=2.0**-40,
    ...                       max_records=99)
    >>> sums.release(np.array([5 << 40, 0]), random=fixed_seed_invalidates_guarantee(1)).round(2)
    array([ 5.76, -2.95])
    """

    __slots__ = (
        "_count",
        "_most",
        "_private",
        "_public",
        "_shift",
        "_unit",
        "noise_stddev",
        "size",
        "step",
        "strategy",
    )

    def __init__(
        self,
        strategy: Strategy,
        *,
        steps: int,
        size: int,
        clip: float,
        noise_stddev: float,
        step: float,
        max_records: int,
    ) -> None:
        self.strategy, self.step, self.size = strategy, step, size
        self._count = StepCount(steps)
        growth = float(strategy.bounds(steps).sum()) * (1 + 2.0**-20)
        self._most = math.ceil(max_records * clip / step)
        finer = 0 if strategy.of_inverse else BITS  # where C has the coefficients, C·x is exact on a finer lattice
        room = math.frexp(growth * self._most)[1] + finer - _ROOM
        noise = math.frexp(noise_stddev / step)[1] + finer - _FINEST
        self._shift = max(0, room, noise)
        self._unit = math.ldexp(step, self._shift - finer)
        lattice = math.ldexp(step, self._shift) / clip
        rounded = math.sqrt(size) * lattice if self._shift else 0.0
        if strategy.of_inverse:
            rounded = growth * math.sqrt(steps * size) * (2 if self._shift else 1) * lattice
        if rounded > _COARSEST:
            raise InvalidParameter(f"""Expected sums that whole numbers of 64 bits hold to a part in {1 / _COARSEST:g},
                got {size:,} numbers in each of {steps:,} steps: rounding would cost too much noise. Use smaller
                batches, fewer bands, or a smaller noise.""")
        self.noise_stddev = math.nextafter(noise_stddev * (1 + rounded) * (1 + 2.0**-50), math.inf)
        inverse = _weights(strategy, steps)
        self._public = Past(inverse, size=size)
        self._private = Past(np.rint(np.ldexp(-inverse, BITS)).astype(np.int64), size=size, zeros=_whole_zeros)

    @property
    def done(self) -> int:
        """How many steps were released."""
        return self._count.done

    def release(self, units: Integers, *, random: Random) -> Floats:
        """The next step's sum, in whole lattice steps, with its noise."""
        with self._count:
            sums = np.clip(units.reshape(-1), -self._most, self._most) >> self._shift
            weighed = self._weighed(sums)
            noisy = add_gaussian(weighed, step=self._unit, noise_stddev=self.noise_stddev, random=random)
            found: Floats = noisy + self._public.weighed()
            self._public.push(noisy if self.strategy.of_inverse else found)
        return found.reshape(units.shape)

    def _weighed(self, sums: Integers) -> Integers:
        """The next row of C·x, in whole units."""
        weights, rows = self._private.turned(), self._private.rows
        if not self.strategy.of_inverse:
            exact: Integers = (sums << BITS) + weights @ rows
            self._private.push(sums)
            return exact
        # ⌊Σ A·y/2²⁴⌋ with y = 2³²·high + low: no product leaves 64 bits.
        high, low = weights @ (rows >> 32), weights @ (rows & 0xFFFFFFFF)
        found: Integers = sums + (high << (32 - BITS)) + (low >> BITS)
        self._private.push(found)
        return found


def _weights(strategy: Strategy, steps: int) -> Floats:
    """What the outputs, or the fresh noise, of earlier steps count for in a step's noise."""
    rest: Floats = np.array(strategy.coefficients[1:steps])
    return rest if strategy.of_inverse else -rest


def _whole_zeros(shape: tuple[int, ...]) -> Integers:
    return np.zeros(shape, dtype=np.int64)
