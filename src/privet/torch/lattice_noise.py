"""Noise for tensors that is exact in law: the lattice Gaussian of `privet.noise`."""

import math
from typing import NoReturn

import numpy as np
import torch

from privet.noise import add_gaussian
from privet.randomness import Random, system_random, why_invalid
from privet.torch.float_noise import as_float32, check_stddev, no_copy, write_back

FLOAT_SUMS = (
    "float sums: clipped gradients were computed and summed in float32, and one example is taken to move their sum by "
    "no more than the clip, roundings included"
)
"""What a guarantee rests on where sums are in floats, whatever the noise."""

_STEP = 2.0**-40  # of the standard deviation
_BLOCK = 1 << 18
_CLAMP = 2.0**62


class LatticeNoise:
    """Noise that is exact: what is released is a rounding of (sum + ideal Gaussian), with nothing left to assume of it.

    The sum, a float32 tensor, is rounded to a lattice whose step is a public power of two, 2⁻⁴⁰ to 2⁻⁴¹ of the noise;
    `privet.noise.add_gaussian` adds noise to whole units of it, exactly; the result is rounded to the tensor's type.
    Exact: the law of the noise, to the last bit of probability, and that no bit of the float format tells anything but
    the noisy sum: all after the lattice is post-processing of the Gaussian mechanism.
    Not exact: the sum. Clipping and summing in float32 round, in an order that the linear algebra chooses, so that
    "one example moves it by at most the clip" is true up to roundings and has no proof: `assumptions` says so. (Sums
    whose every share is on a lattice, as `privet.sums.record_sum` makes them, need all per-example gradients.)
    Rounding to the lattice moves each of d coordinates by half a step at most, so that two sums may come to be
    √d · 2⁻⁴⁰ · stddev further apart; the noise is 2⁻²⁰ larger than asked, which pays for that as long as
    √d · stddev ÷ clip is at most 2²⁰.
    Some 40 ns a coordinate, twenty times the time of `FloatNoise`.

    Examples
    --------
    >>> noise, gradient = LatticeNoise(), torch.zeros(10_000)
    >>> noise.add_(gradient, 2.0)
    >>> units = gradient.double() * 2**20
    >>> 1.7 < gradient.std().item() < 2.3, bool((units == units.round()).all())
    (True, True)
    """

    __slots__ = ("random",)

    assumptions: tuple[str, ...] = (FLOAT_SUMS,)

    def __init__(self, random: Random | None = None) -> None:
        self.random = system_random() if random is None else random

    @property
    def why_invalid(self) -> str:
        """Why no guarantee holds for what is drawn here; empty if one does."""
        return why_invalid(self.random)

    def add_(self, tensor: torch.Tensor, stddev: float) -> None:
        """Round a tensor of floats to the lattice and add noise, in place. Not a number counts as 0."""
        raised = float(check_stddev(stddev))
        step = math.ldexp(1.0, math.frexp(raised * _STEP)[1] - 1)
        flat = as_float32(tensor)
        with torch.no_grad():
            for part in torch.split(flat, _BLOCK):
                units = part.double().cpu().numpy() / step  # exact: float32 times a power of two
                np.nan_to_num(units, copy=False, nan=0.0, posinf=_CLAMP, neginf=-_CLAMP)
                np.clip(units, -_CLAMP, _CLAMP, out=units)
                whole = np.rint(units, out=units).astype(np.int64)
                noisy = add_gaussian(whole, step=step, noise_stddev=raised, random=self.random)
                part.copy_(torch.from_numpy(noisy))
            write_back(tensor, flat)

    def __repr__(self) -> str:
        return f"LatticeNoise({self.random!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise no_copy()
