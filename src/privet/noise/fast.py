"""What the fast samplers share: an exponential number from two words, rounding, and the search for doubtful cells.

A block has as many coordinates as keep its work in the second-level cache. Everything is one pass of array operations
over the block, the same for every coordinate whatever the noise is: no loop rejects and tries again.
Error bounds: docs/proofs/noise.md, section 2.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from privet._checks import is_number, is_whole
from privet.errors import InvalidParameter
from privet.randomness import Random, Words

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK = 1 << 15
LEAST, LARGEST = 2.0**10, 2.0**50  # lattice steps in one standard deviation or scale

_MANTISSA = np.uint64(11)
_SIGN = np.uint64(1 << 63)


def blocks(size: int) -> Iterator[slice]:
    """Yield slices that cut `size` coordinates into blocks."""
    for start in range(0, size, BLOCK):
        yield slice(start, min(start + BLOCK, size))


class Scratch:
    """Arrays of a block's size that are used over and over: fresh memory would cost a third of the time."""

    __slots__ = ("_rows",)

    def __init__(self, size: int) -> None:
        self._rows = np.empty((6, min(size, BLOCK)))

    def floats(self, row: int, size: int) -> Floats:
        """Return the first `size` floats of a row, with whatever is in them."""
        return self._rows[row, :size]

    def integers(self, row: int, size: int) -> Integers:
        """Return the same memory as `floats`, as integers."""
        return self._rows[row, :size].view(np.int64)

    def words(self, row: int, size: int) -> Words:
        """Return the same memory as `floats`, as words."""
        return self._rows[row, :size].view(np.uint64)


def exponential(bits: Words, tail: Words, scratch: Scratch) -> tuple[Floats, NDArray[np.bool_]]:
    """Return x = −ln U for uniform U = 2^{−h}(1 − v), and where `tail` was too short to tell h. Uses rows 0 to 2.

    v = bits/2⁶⁵ is in [0, ½); h is the number of leading zeros of `tail`, whose upper 53 bits are looked at.
    As 1 − v is never formed, x has a small relative error both near U = 0 and near U = 1.
    """
    x = np.multiply(bits, -(2.0**-65), out=scratch.floats(0, bits.size))
    np.log1p(x, out=x)
    head = np.right_shift(tail, _MANTISSA, out=scratch.words(1, bits.size)).view(np.int64)
    floats = scratch.floats(2, bits.size)
    np.copyto(floats, head)  # exact: below 2⁵³, so its exponent tells the leading zeros
    short = head == 0
    halvings = np.right_shift(floats.view(np.int64), 52, out=head)
    np.subtract(1075, halvings, out=halvings)
    np.multiply(halvings, math.log(2.0), out=floats)
    np.subtract(floats, x, out=x)
    return x, short


def flip(values: Floats, tail: Words, bit: int, flags: Words) -> None:
    """Change the sign of each value whose `tail` has that bit set; `flags` is spoilt."""
    np.left_shift(tail, np.uint64(63 - bit), out=flags)
    flags &= _SIGN
    raw = values.view(np.uint64)
    raw ^= flags


def round_into(values: Floats, out: Integers, error: float, whole: Floats) -> NDArray[np.bool_] | None:
    """Round `values` to `out`; return which are within `error` of a cell's edge, or None if none is.

    `values` and `whole` are spoilt. y − rint(y) is exact below 2⁵², and where y is larger `error` is above ½, so that
    all are in doubt.
    """
    np.rint(values, out=whole)
    np.copyto(out, whole, casting="unsafe")
    values -= whole
    np.abs(values, out=values)
    return None if values.max(initial=0.0) < 0.5 - error else values >= 0.5 - error


def drawn(
    fill: Callable[[Random, float, Floats | None, Integers, Scratch], None],
    random: Random,
    name: str,
    level: float,
    size: int | tuple[int, ...],
) -> Integers:
    """Return whole numbers of that shape, filled block by block with noise of that level."""
    level, shape = check_units(name, level), check_size(size)
    noise = np.empty(math.prod(shape), dtype=np.int64)
    scratch = Scratch(noise.size)
    for block in blocks(noise.size):
        fill(random, level, None, noise[block], scratch)
    return noise.reshape(shape)


def check_units(name: str, value: float) -> float:
    """Return a noise level in lattice steps, or say why it is refused."""
    if not (is_number(value) and LEAST <= value <= LARGEST):
        raise InvalidParameter(f"""Expected {name} from 2**10 to 2**50 lattice steps, got {value!r}: below, the lattice
            would be as coarse as the noise; above, the integers would not hold it. Choose the step to fit the
            noise.""")
    return float(value)


def check_size(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that `size` means, or say why there is none."""
    shape = size if isinstance(size, tuple) else (size,)
    if not all(is_whole(n) and n >= 0 for n in shape):
        raise InvalidParameter(f"""Expected a size of whole numbers, at least 0, got {size!r}: there is no such array.
            Pass an int or a tuple of ints.""")
    return shape
