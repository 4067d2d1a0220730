"""Long tails: which columns have one, by the octaves that were released of them, and a public map that bends it."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from privet._checks import one_of, positive
from privet.arrays import Vector
from privet.preprocessing.octaves import COARSE, OCTAVES

Tails = Literal["clip", "bend"]
"""What is done about them: a value beyond its range counts as the end, and that is all; or a bent column is added."""

_FALSE = 1e-3  # probability that noise alone makes any octave of any column look held
_SHARE = 0.005  # of all records: an octave with fewer says nothing of quantiles
# Times the median that the 99 % quantile is at least. It is 3.8 for normal values about 0, whose octaves may look like
# 5.2, 6.6 for exponential ones, and about 5 for the numbers of rooms of California's districts, where it pays.
_LONG = 4.0
_BENT = 4.0  # units that the median is


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Root:
    """x ↦ ±4u(⁴√(1 + |x|/u) − 1), for a public unit u: x itself about 0, and a root far from it, almost a logarithm.

    Promise: it is odd, 0 stays 0, and larger values never get smaller; each value's image depends on that value alone.
    Theorem: a quotient, a sum, two roots, a difference and a product, each rounded to the nearest float, are monotone
    one by one, and the same whatever stands beside the value; docs/proofs/preprocessing.md, section 1.

    Examples
    --------
    >>> Root(unit=10.0)(np.array([0.0, 150.0, -800.0])).tolist()
    [0.0, 40.0, -80.0]
    >>> Root(unit=10.0)
    40 ((1 + |x| / 10)^(1/4) - 1) sign(x)
    """

    unit: float

    def __post_init__(self) -> None:
        because = "values are measured by it"
        object.__setattr__(self, "unit", positive("unit", self.unit, because=because, use="Use a typical size."))

    def __call__(self, values: Vector) -> Vector:
        """The images of values, NaN of NaN."""
        with np.errstate(all="ignore"):
            sizes = np.sqrt(np.sqrt(np.abs(values) / self.unit + 1.0)) - 1.0
            return np.copysign(sizes * (4.0 * self.unit), values)

    def __repr__(self) -> str:
        return f"{4 * self.unit:.6g} ((1 + |x| / {self.unit:.6g})^(1/4) - 1) sign(x)"


def check_tails(tails: Tails) -> Tails:
    """Return `tails` if something can be done about them in that way, else say why not."""
    because, use = "nothing says what is done about long tails", 'Use "clip" or "bend".'
    return one_of("tails", tails, get_args(Tails), because=because, use=use)  # type: ignore[return-value]  # seen


def root_for(counts: Vector, *, stddev: float, records: float, columns: int) -> float | None:
    """The unit of a map for a column of a long tail, in units of its octaves; None if they show none. Post-processing.

    By the noisy `counts` of its octaves, those which clearly hold records: of sizes but 0, the 99 % quantile against
    the median.
    """
    least = max(-float(ndtri(_FALSE / (COARSE * columns))) * stddev, _SHARE * records)
    middle = 2 * OCTAVES
    seen = np.where(counts > least, counts, 0.0)
    held = seen[middle + 1 :] + seen[middle - 1 :: -1]
    if not held.any():
        return None
    half, most = (_quantile(held, share) for share in (0.5, 0.99))
    return half / _BENT if most >= _LONG * half else None


def _quantile(held: Vector, share: float) -> float:
    """The size below which that share lies, each octave being filled evenly."""
    below = np.cumsum(held)
    place = int(np.searchsorted(below, share * below[-1]))
    part = 1.0 - (below[place] - share * below[-1]) / held[place]
    return math.ldexp(1.0 + float(part), place - OCTAVES)
