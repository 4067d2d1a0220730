"""Noisy counts of records, on the lattice: how far one record moves them, and the noise that hides it."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event, Gaussian
from privet.errors import InvalidParameter
from privet.noise import add_gaussian
from privet.privacy import Neighbours, check_neighbours
from privet.randomness import Random

__all__ = ["Release", "check_noise", "histogram_reach", "noisy_sums", "released_with"]

_BITS = 12  # a standard deviation is at least 2¹² lattice steps
_LEAST, _MOST = 2.0**-10, 2.0**20


def histogram_reach(columns: int, neighbours: Neighbours) -> float:
    """How far one record moves `columns` histograms taken together, in l2 norm, if it is in at most one bin of each.

    Theorem: a record that leaves takes 1 from at most one bin of each: √columns. One that is exchanged takes 1 from one
    and gives 1 to another: √(2·columns), which is less than twice the former.

    Examples
    --------
    >>> histogram_reach(4, "add_remove"), round(histogram_reach(4, "replace_one"), 6)
    (2.0, 2.828427)
    """
    each = 2 if check_neighbours(neighbours) == "replace_one" else 1
    return math.sqrt(each * columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One Gaussian release: the noise to draw, and its event under the relation it was made for.

    The accountants move the sum by 2 × clip under "replace_one" and by clip otherwise; so the event's multiplier is
    stddev × (2 or 1) ÷ reach, exactly what the true reach costs. It holds for `neighbours` alone.
    """

    noise_stddev: float
    event: Event
    neighbours: Neighbours


def released_with(noise_multiplier: float, *, reach: float, neighbours: Neighbours) -> Release:
    """The release whose event is Gaussian(noise_multiplier), for a sum that one record moves by at most `reach`."""
    clip = reach / (2 if check_neighbours(neighbours) == "replace_one" else 1)
    # two roundings to nearest, each undone by a step up
    stddev = math.nextafter(check_noise(noise_multiplier) * math.nextafter(clip, math.inf), math.inf)
    return Release(noise_stddev=stddev, event=Gaussian(noise_multiplier=noise_multiplier), neighbours=neighbours)


def noisy_sums(units: NDArray[np.int64], *, unit: float, release: Release, random: Random) -> NDArray[np.float64]:
    """units × unit with the release's noise; `unit` is a power of two, refined where the noise is finer."""
    shift = max(0, _BITS + 1 - math.frexp(release.noise_stddev / unit)[1])
    return add_gaussian(
        np.left_shift(units.astype(np.int64), shift),
        step=math.ldexp(unit, -shift),
        noise_stddev=release.noise_stddev,
        random=random,
    )


def check_noise(noise_multiplier: float) -> float:
    """Return `noise_multiplier` if a histogram can carry such noise, else say why not."""
    ok = isinstance(noise_multiplier, numbers.Real) and not isinstance(noise_multiplier, bool)
    if not ok or not _LEAST <= noise_multiplier <= _MOST:
        raise InvalidParameter(
            f"Expected noise_multiplier from 2**-10 to 2**20, got {noise_multiplier!r}: less hides nobody, more leaves "
            "nothing to learn. Calibrate it to a budget, as learn_schema does."
        )
    return float(noise_multiplier)
