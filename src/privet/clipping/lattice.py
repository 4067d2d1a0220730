"""The lattice on which clipped sums live: integers times a public power of two."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet._checks import is_number
from privet.arrays import IntArray
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


def summed(*lots: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """The sum of lots of whole numbers, kept within ±(2^62 − 1); and itself, if it is beyond. Private.

    So nothing wraps around, however many records there are. It is kept within once, when all are added: what comes in
    between, and with it the order of lots and who is in which, does not show.

    Examples
    --------
    >>> kept, whole = summed(np.array([2**61, 5]), np.array([2**61, -7]))
    >>> kept.tolist() == [2**62 - 1, -2], whole.tolist() == [2**62, -2]
    (True, True)
    >>> summed(whole, np.array([-(2**61), 0]))[0].tolist() == [2**61, -2]
    True
    """
    total = lots[0]
    for lot in lots[1:]:
        if _fits(total) and _fits(lot):
            total = np.asarray(total.astype(np.int64) + lot.astype(np.int64))  # below 2^63
        else:
            total = np.asarray(total.astype(object) + lot.astype(object), dtype=object)
    kept = np.asarray(np.clip(total, -_FULL, _FULL), dtype=np.int64)
    return kept, None if _fits(total) else total.astype(object)


def _fits(total: NDArray[Any]) -> bool:
    return bool(np.all((total <= _FULL) & (total >= -_FULL)))


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class LatticeSum:
    """A sum of clipped records, in whole lattice steps: exact, so no order of rows can show in it. Private.

    Promise: zeroing out, adding or removing one record moves `units × step` by at most `clip` in l2 norm, exactly;
    replacing one, by at most 2 × clip.

    `within` counts the records whose gradient was no longer than the clip, less half of all that counted: the
    statistic of adaptive clipping, in halves, so that one record moves it by at most 1. `whole` is the sum itself where
    that is beyond what `units` hold, to be added to others.
    """

    units: NDArray[np.int64]
    step: float
    clip: float
    within: int = 0
    whole: NDArray[Any] | None = None

    def __add__(self, other: "LatticeSum") -> "LatticeSum":
        """The sum over both lots of records, if they are bounded alike on one lattice; see `summed`."""
        if (self.step, self.clip, self.units.shape) != (other.step, other.clip, other.units.shape):
            raise InvalidParameter("""Expected two sums of one shape, clip and lattice, got others: they are not of
                records that were bounded alike. Take both with the same theta, rule and max_records.""")
        units, whole = summed(*(each.units if each.whole is None else each.whole for each in (self, other)))
        return replace(self, units=units, within=self.within + other.within, whole=whole)

    def __repr__(self) -> str:
        return f"LatticeSum(private, shape={self.units.shape}, step={self.step!r}, clip={self.clip!r})"

    @property
    def value(self) -> NDArray[np.float64]:
        """The sum in the unit of a gradient. Private: it carries no noise."""
        return self.units.astype(np.float64) * self.step


def in_lots(total: Callable[[IntArray | None], LatticeSum], count: int, chosen: IntArray | None) -> LatticeSum:
    """total(chosen), where `chosen` of `count` records (None for all) may be too many for one sum; in lots, then.

    Examples
    --------
    >>> one = LatticeSum(units=np.array([3]), step=0.5, clip=1.0)
    >>> in_lots(lambda chosen: one, 7, None).units.tolist()
    [3]
    """
    if (count if chosen is None else len(chosen)) <= MOST_RECORDS:
        return total(chosen)
    places = np.arange(count) if chosen is None else chosen
    return reduce(operator.add, map(total, np.split(places, range(MOST_RECORDS, len(places), MOST_RECORDS))))
