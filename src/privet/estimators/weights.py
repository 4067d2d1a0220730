"""Weights of records and of classes: brought to [0, 1] by a public bound, before anything is clipped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet._checks import is_number, positive
from privet.arrays import Vector
from privet.data import vector
from privet.data.elsewhere import Elsewhere, Later, each_alone
from privet.errors import InvalidParameter
from privet.plan import Histograms, Meter, Release
from privet.solvers.class_rates import class_counts

CLASS_COUNTS = "class counts"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Weights:
    """Private weights ÷ `most` in [0, 1], NaN for a record to be zeroed out; and what must be public for that."""

    values: Vector
    most: float
    assumptions: tuple[str, ...] = ()


def record_weights(given: Any, rows: int, *, most: float | None) -> Weights | None:
    """A caller's `sample_weight` ÷ `most`, cut to 1; one that is negative or not finite zeroes its record out.

    Without `most` the largest weight is read off, and the assumptions say that it is taken as public.
    """
    if given is None:
        return None
    raw: Any = given if isinstance(given, Elsewhere) else vector(given, rows, name="sample_weight")
    assumptions: tuple[str, ...] = ("the bound `max_weight` is public",)
    if most is None:
        away = isinstance(raw, Elsewhere)
        most = raw.source.largest(Later(_heaviest, (raw.later,))) if away else _heaviest(raw)
        if most == 0.0:
            raise InvalidParameter(
                "Expected a sample_weight above 0 for some record, got zero weights only: there is nothing to learn "
                "from. Pass positive weights, or max_weight=..., a public bound on them; then they stay private."
            )
        assumptions = ("the largest weight, read off `sample_weight`, is public",)
    else:
        because = "weights are divided by it and cut to 1"
        use = "Pass a public bound on the weights, or None to read it off them."
        most = positive("max_weight", most, because=because, use=use)
    return Weights(values=each_alone(_cut, raw, float(most)), most=float(most), assumptions=assumptions)


def _heaviest(raw: Vector) -> float:
    return float(raw[np.isfinite(raw)].max(initial=0.0))


def _cut(raw: Vector, most: float) -> Vector:
    """Weights ÷ `most`, cut to 1; NaN for what is none."""
    usable = np.isfinite(raw) & (raw >= 0)
    with np.errstate(all="ignore"):
        return np.where(usable, np.minimum(raw / most, 1.0), np.nan)


def class_factors(given: Any, classes: NDArray[Any]) -> Vector:
    """A public {label: weight} as one factor in [0, 1] a class, 1 for the heaviest; labels left out weigh 1."""
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            f"Expected class_weight to be None, 'balanced' or a dictionary, got {type(given).__name__}: it says how "
            "much the records of each class count. Pass e.g. {0: 1.0, 1: 5.0}."
        )
    listed = classes.tolist()
    if not set(given) <= set(listed):
        raise InvalidParameter(
            "Expected class_weight to name classes of the model, got another label: its weight would never be used. "
            "Name labels that are in classes=[...]."
        )
    found = [given.get(label, 1.0) for label in listed]
    if not all(is_number(w) and w >= 0 for w in found) or not max(found) > 0:
        raise InvalidParameter(
            "Expected weights of classes that are finite numbers of at least 0, one of them above, got others: nothing "
            "could be learnt from them. Pass e.g. {0: 1.0, 1: 5.0}."
        )
    return np.asarray(np.array(found, dtype=np.float64) / max(found))


def class_count_release(classes: int, noise: float) -> Release:
    """The release that `balanced` reads, of that noise multiplier."""
    of = "records of each class"
    return Release(name=CLASS_COUNTS, of=of, bound=Histograms(), noise_multiplier=noise, size=classes)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Balance:
    """Factors inverse to how often each class occurs, 1 for the rarest; what a record weighs on average by them.

    `rarest` is how many records the rarest class has, in standard deviations of noise that spends the share `share`.
    """

    factors: Vector
    average: float
    rarest: float


def class_weights(places: Vector, factors: Vector) -> Vector:
    """The factor of each record's class; NaN for one without a class. Private.

    Examples
    --------
    >>> class_weights(np.array([1.0, np.nan]), np.array([1.0, 0.5])).tolist()
    [0.5, nan]
    """
    known = np.isfinite(places)
    return np.where(known, factors[np.where(known, places, 0).astype(int)], np.nan)


def balanced(places: Vector, classes: int, meter: Meter) -> Balance:
    """Factors inverse to how often each class occurs, from noisy counts.

    Promise: the meter's next release; a record is in one class at most. A count is taken for at least two standard
    deviations of its noise, so that a rare class does not drown the others.
    """
    meter.open(CLASS_COUNTS, count=len(places))
    noisy = meter.noisy_counts(CLASS_COUNTS, class_counts(places, classes))
    stddev = meter.noise_stddev(CLASS_COUNTS)
    noisy = np.maximum(noisy, 2.0 * stddev)
    least = float(noisy.min())
    return Balance(factors=least / noisy, average=classes * least / float(noisy.sum()), rarest=least / stddev)
