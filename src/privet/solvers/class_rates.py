"""How often each class occurs, with Laplace noise: pure, and far surer than Gaussian noise where records are few."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import beta, expit

from privet.accounting import Laplace
from privet.accounting.numerics import upward
from privet.arrays import IntArray, Vector
from privet.data.elsewhere import tallies
from privet.noise import add_laplace
from privet.plan import Bounded, Meter, Release
from privet.privacy import Neighbours, sensitivity_factor

_STEP = 0.5
_BITS = 12  # a scale of noise is at least 2¹² lattice steps
_RARE = 0.2  # a rate may be anything before it is seen, or is Beta(_RARE, _RARE), where extreme ones are likely
# Or all rates are Dirichlet of so much each; and how much likelier the former is: of two, where all are alike, of more.
_USUAL = ((1.0, 1.0), (2.0, 0.2))
_ODDS = np.linspace(-40.0, 40.0, 1_601)  # logarithms of odds that it may have


def class_counts(places: Vector, classes: int) -> IntArray:
    """How many records are in each class, wherever they are; NaN is in none. Private.

    Examples
    --------
    >>> class_counts(np.array([1.0, 1.0, np.nan]), 3)
    array([0, 2, 0])
    """
    (counts,) = tallies([partial(_by_class, classes=classes)], [places])
    return np.asarray(counts, dtype=np.int64)


def _by_class(places: Vector, classes: int) -> IntArray:
    known = places[np.isfinite(places)].astype(np.int64)
    return np.bincount(known, minlength=classes)[:classes]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassRates:
    """The rates of some classes, by their counts; of two, if the number of records is public, by half the difference.

    One record moves half the difference by half of what it moves two counts by.

    Promise: the release of that name, the Laplace mechanism; labels that are NaN count for nothing.
    Theorem: docs/proofs/drawing.md, section 8.

    Examples
    --------
    >>> round(ClassRates(classes=2, neighbours="replace_one").release(0.125).mechanism.scale, 9)
    16.0
    """

    classes: int
    neighbours: Neighbours
    name: ClassVar[str] = "class rates"

    @property
    def _halved(self) -> bool:
        return self.classes == 2 and self.neighbours != "add_remove"

    def release(self, epsilon: float) -> Release:
        """The release that costs `epsilon`."""
        clip, of = (0.5, "half the difference of two class counts") if self._halved else (1.0, "records of each class")
        return Release(
            name=self.name,
            of=of,
            bound=Bounded(clip=clip, how="a record is in at most one class"),
            mechanism=Laplace(scale=upward(sensitivity_factor(self.neighbours) / epsilon)),
        )

    def run(self, places: Vector, meter: Meter) -> Vector:
        """The rates to be expected, 1 together; private in, public out."""
        release, total = meter.plan[self.name], max(float(meter.plan.count), 1.0)
        scale = release.mechanism.scale * release.bound.clip  # type: ignore[union-attr]  # as `release` has it
        meter.open(self.name, count=len(places))
        counts = class_counts(places, self.classes)
        units = counts[1:] - counts[:1] if self._halved else 2 * counts
        shift = max(0, _BITS + 1 - math.frexp(scale / _STEP)[1])
        whole, step = np.left_shift(units, shift), math.ldexp(_STEP, -shift)
        noisy = meter.chosen(self.name, lambda random: add_laplace(whole, step=step, noise_scale=scale, random=random))
        if self._halved:
            second = expected_rate(0.5 + float(noisy[0]) / total, scale / total)
            return np.array([1 - second, second])
        total = max(total, float(noisy.sum()))
        rates = np.array([expected_rate(float(each) / total, scale / total, self.classes) for each in noisy])
        return np.asarray(rates / rates.sum())


def expected_rate(noisy: float, scale: float, classes: int = 2) -> float:
    """The mean of a rate, one of so many, after it was seen with Laplace noise of that scale; public.

    It has the least expected log-loss of all constants. Where noise buries a rate, it is a part of the noise's scale,
    as rare labels are common.

    Examples
    --------
    >>> round(expected_rate(0.3, 0.001), 2), round(expected_rate(-0.05, 0.01), 4)
    (0.3, 0.0024)
    """
    rates, both = expit(_ODDS), expit(_ODDS) * expit(-_ODDS)  # of which the second is also dp/d(log odds)
    (own, odd), others = _USUAL[classes > 2], classes - 1
    usual = rates**own * expit(-_ODDS) ** (own * others) / beta(own, own * others)
    log = np.log(usual + odd * both**_RARE / beta(_RARE, _RARE)) - np.abs(noisy - rates) / scale
    weight = np.exp(log - log.max())
    return float(weight @ rates / weight.sum())
