"""The lattice on which clipped sums live: integers times a public power of two."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privet._checks import is_number
from privet.errors import InvalidParameter

MOST_RECORDS = 2**27
"""How many records a sum may hold unless the caller, who knows how many there are in public, says otherwise."""

_FULL = 2**62 - 1
_EXPONENT = 400  # clips between 2^-400 and 2^400, so that no power of two below ever leaves the range of floats


def check_clip(clip: float, *, name: str = "clip") -> float:
    """Return `clip` as a positive float of a size that floats can hold, else say why not."""
    if not is_number(clip) or not 2.0**-_EXPONENT <= float(clip) <= 2.0**_EXPONENT:  # a NumPy single would warn
        raise InvalidParameter(f"""Expected {name} to be a positive finite number, got {clip!r}: it bounds what one
            record can change, and the noise is scaled by it. Use the size of a typical gradient, e.g. 1.""")
    return float(clip)


def lattice_step(clip: float, *, max_records: int = MOST_RECORDS) -> float:
    """The power of two on whose multiples sums of records clipped at `clip` are kept, in an int64.

    A clip is 2^41 steps, or as few as it takes for `max_records` (a public number) to fit in 2^61; far finer than any
    noise either way.

    Examples
    --------
    >>> lattice_step(1.0) == 2.0**-34, lattice_step(1.0, max_records=1000) == 2.0**-41
    (True, True)
    """
    bits = min(41, 61 - max(max_records - 1, 0).bit_length())
    if bits < 20:
        raise InvalidParameter(f"""Expected at most 2^41 records in one sum, got {max_records:,}: it could overflow 64
            bits. Use smaller batches.""")
    mantissa, exponent = math.frexp(check_clip(clip))
    return math.ldexp(1.0, exponent - bits - int(mantissa == 0.5))


def check_count(count: int, max_records: int, *, saturates: bool = False) -> None:
    """Refuse more records than the lattice was made for.

    If the sum `saturates`, only where somebody declared that there are fewer: how many there are may be private.
    """
    if count > max_records and not (saturates and max_records >= MOST_RECORDS):
        raise InvalidParameter(f"""Expected at most {max_records:,} records in one sum: more could overflow 64 bits.
            Declare a larger `max_records`, which is public, or use smaller batches.""")


def saturated(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """one + other, kept within ±(2^62 − 1), as each of them is. Private.

    So nothing wraps around, however many records there are. A record is in one of them; as keeping to an interval moves
    no two numbers apart, it moves the result no further than it moves its own.

    Examples
    --------
    >>> saturated(np.array([2**61, 5]), np.array([2**61, -7])).tolist() == [2**62 - 1, -2]
    True
    """
    return np.clip(np.clip(one, -_FULL, _FULL) + np.clip(other, -_FULL, _FULL), -_FULL, _FULL)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class LatticeSum:
    """A sum of clipped records, in whole lattice steps: exact, so no order of rows can show in it. Private.

    Promise: zeroing out, adding or removing one record moves `units × step` by at most `clip` in l2 norm, exactly;
    replacing one, by at most 2 × clip.

    `within` counts the records whose gradient was no longer than the clip, less half of all that counted: the
    statistic of adaptive clipping, in halves, so that one record moves it by at most 1.
    """

    units: NDArray[np.int64]
    step: float
    clip: float
    within: int = 0

    def __add__(self, other: "LatticeSum") -> "LatticeSum":
        """The sum over both lots of records, if they are bounded alike on one lattice; see `saturated`."""
        if (self.step, self.clip, self.units.shape) != (other.step, other.clip, other.units.shape):
            raise InvalidParameter("""Expected two sums of one shape, clip and lattice, got others: they are not of
                records that were bounded alike. Take both with the same theta, rule and max_records.""")
        return replace(self, units=saturated(self.units, other.units), within=self.within + other.within)

    def __repr__(self) -> str:
        return f"LatticeSum(private, shape={self.units.shape}, step={self.step!r}, clip={self.clip!r})"

    @property
    def value(self) -> NDArray[np.float64]:
        """The sum in the unit of a gradient. Private: it carries no noise."""
        return self.units.astype(np.float64) * self.step
