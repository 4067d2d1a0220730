"""Noise onto private sums: from whole lattice units to values that may be shown."""

import math
from collections.abc import Callable

import numpy as np

from privet._checks import positive
from privet.errors import InvalidParameter
from privet.noise.fast import LEAST, Floats, Integers, Scratch, blocks
from privet.noise.samplers import fill_gaussian, fill_laplace
from privet.randomness import Random

_MOST_UNITS = 2.0**60
_FINE = 20  # the released lattice has 2²⁰ to 2²¹ steps in one standard deviation, if the sum's own is finer
_CLAMP = 1 << 62


def add_gaussian(units: Integers, *, step: float, noise_stddev: float, random: Random) -> Floats:
    """Return round((units · step + noise_stddev · Z)/g) · g, Z ideal standard normals, g a public power of two.

    Promise: post-processing of the continuous Gaussian mechanism on the sum units · step, exactly, for ideal words; so
    `Gaussian` of the accountants describes it. The result is on the lattice of g whatever the sum is, so that no bit of
    the float format tells anything. g = step if the noise is below 2²¹ steps, else 2²⁰ to 2²¹ times finer than the
    noise. Values of 2⁵³ g or more are rounded to 53 bits, again post-processing.
    Edges: sums beyond 2⁶² units are clamped to that, which moves two of them no further apart; nothing is raised that
    depends on `units`. Time: the same work for every coordinate, whatever noise and sum are; once in some 10⁷
    coordinates (2⁻²³ each) some 0.1 ms more. Fit for batch work; a server that lets strangers time single calls is out
    of scope.

    Parameters
    ----------
    units : int64, the sum in lattice steps; private
    step : a power of two, the unit of the sum; public
    noise_stddev : in the unit of the sum, from 2¹⁰ to 2⁶⁰ steps; public
    random : its `invalidates_guarantee` must travel into the guarantee

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(1)
    >>> add_gaussian(np.array([1024, 0]), step=2.0**-10, noise_stddev=1.0, random=random)
    array([ 1.25390625, -0.98339844])
    """
    return _release(units, step, noise_stddev, "noise_stddev", fill_gaussian, random)


def add_laplace(units: Integers, *, step: float, noise_scale: float, random: Random) -> Floats:
    """Return round((units · step + noise_scale · X)/g) · g, X ideal Laplace numbers, g a public power of two.

    Promise, edges and parameters as of `add_gaussian`, for the continuous Laplace mechanism.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> random = fixed_seed_invalidates_guarantee(1)
    >>> add_laplace(np.array([1024, 0]), step=2.0**-10, noise_scale=1.0, random=random)
    array([ 1.18554688, -1.90136719])
    """
    return _release(units, step, noise_scale, "noise_scale", fill_laplace, random)


def _release(
    units: Integers,
    step: float,
    noise: float,
    name: str,
    fill: Callable[[Random, float, Floats | None, Integers, Scratch], None],
    random: Random,
) -> Floats:
    if not (isinstance(units, np.ndarray) and units.dtype == np.int64):
        raise InvalidParameter("""Expected units as a NumPy array of int64, got another type: floats hold too few bits
            to be exact, and half precision swallows the noise. Sum on the lattice first.""")
    ratio = _ratio(step, noise, name)
    shift = max(math.frexp(ratio)[1] - 1 - _FINE, 0)
    scale, unit = math.ldexp(ratio, -shift), math.ldexp(step, shift)
    flat = units.reshape(-1)
    released = np.empty(flat.size)
    scratch, more = Scratch(flat.size), Scratch(flat.size)
    for block in blocks(flat.size):
        size = block.stop - block.start
        sums, noisy = more.integers(0, size), more.integers(1, size)
        np.clip(flat[block], -_CLAMP, _CLAMP, out=sums)
        offset = None
        if shift:
            # round((q + sZ)/2^k) = ⌊q/2^k⌋ + round(rest + (s/2^k)Z) with rest = (q mod 2^k)/2^k, exact in floats.
            np.bitwise_and(sums, (1 << shift) - 1, out=noisy)
            offset = np.multiply(noisy, 2.0**-shift, out=more.floats(2, size))
            sums >>= shift
        fill(random, scale, offset, noisy, scratch)
        noisy += sums
        np.multiply(noisy, unit, out=released[block])
    return released.reshape(units.shape)


def _ratio(step: float, noise: float, name: str) -> float:
    """Return the noise in lattice steps, exactly; refuse what no lattice noise can be drawn for."""
    step, noise = (
        positive(label, value, because="without noise nothing is private", use="Set it from the plan.")
        for label, value in (("step", step), (name, noise))
    )
    if math.frexp(step)[0] != 0.5 or not 2.0**-900 <= step <= 2.0**900:
        raise InvalidParameter(f"""Expected step to be a power of two from 2**-900 to 2**900, got {step!r}: other
            lattices are not exact in floats. Round it down to a power of two.""")
    if not LEAST <= noise / step <= _MOST_UNITS:
        raise InvalidParameter(f"""Expected {name} from 2**10 to 2**60 steps, got {noise / step!r}: below, the lattice
            would be as coarse as the noise; above, the sum would be lost in it. Choose a step that is a power of two
            near noise ÷ 2**20.""")
    return noise / step
