"""Centring: rows about a noisy mean and no longer than most; before they are whitened, or where that would not pay."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import IntArray, Vector
from privet.data.elsewhere import tallies
from privet.plan import Bounded, Histograms, Meter, Release, SecondMoments
from privet.preprocessing.waves import waves, weights
from privet.preprocessing.whitening import BEYOND_DOUBT, SEEN, Shift, is_counted, shrunk
from privet.problems.linear_model import LinearModel

if TYPE_CHECKING:
    from privet.preprocessing.scaling import Scaling

_OCTAVES = 5  # of norms about the mean, below the largest
_FAR = 12  # of norms before, as declared ranges may be a thousand times too wide
_RUN = 2  # octaves that most norms of a table are in
_SURELY = 3.0  # standard deviations that rows in such a run must be, to be found there far below the largest norm,
_LIKELIER = 7.0  # and the logarithm of how much likelier that must be than that they are near it
_UNSEEN = 0.5  # of the largest norm, where norms cannot be told from noise
_CLEARLY = 1.0  # standard deviations
_BESIDE = 0.5  # length of the constant beside a row whose mean is taken, in lengths of a row
_FEW, _LEAST_PART = 0.02, 0.125  # share of long rows that matters, and how much shorter than they are a norm may be


@dataclass(frozen=True, kw_only=True, slots=True)
class Centring:
    """How rows will be centred: a noisy histogram of their norms, their noisy mean, and norms about it.

    A row is as long as its distance from where 0 was put, and noise is as large as the longest row. About their mean
    rows are shorter, often by half, and the constant no longer competes with them. Unlike second moments, the mean of
    `columns` numbers stands out of the noise of a small table.

    Promise: all that is learnt comes from the releases of the plan.
    Theorem: docs/proofs/whitening.md, section 5.

    Parameters
    ----------
    columns : features, without the constant
    mean_share : of the budget, for the mean
    norm_share : of the budget, for each of the two histograms; 0 where they would drown
    constant : length of the constant beside the row afterwards, in lengths of a row
    fineness : bins an octave of norms: the more, the more they stand out
    beyond : share of rows that may be shortened: much, where noise and not bias is what hurts
    wave_share : of the budget, for mean squares along waves of columns, by which rows are smoothed; 0 for none
    least : norm that some rows surely have, as ranges are known to be those of columns; others may all be 0

    Examples
    --------
    >>> centring = Centring(columns=3, mean_share=0.1, norm_share=0.02, constant=0.3)
    >>> [release.name for release in centring.releases(lambda share: 10 / share**0.5)]
    ['norms', 'mean', 'centred norms']
    """

    columns: int
    mean_share: float
    norm_share: float
    constant: float
    fineness: int = 2
    beyond: float = 0.3
    wave_share: float = 0.0
    least: float = 0.0

    def releases(self, noise: Callable[[float], float]) -> tuple[Release, ...]:
        """What centring releases; `noise` is the noise multiplier of a share of the budget."""
        mean = Release(
            name="mean",
            of="rows",
            bound=Bounded(clip=1.0, how="a row has norm at most 1"),
            noise_multiplier=noise(self.mean_share),
            size=self.columns + 1,
        )
        means: tuple[Release, ...] = (mean,)
        if self.wave_share:
            squares = "squares of centred rows along waves"
            bound, each = SecondMoments(clip=1.0), noise(self.wave_share)
            means += (Release(name="waves", of=squares, bound=bound, noise_multiplier=each, size=self.columns + 1),)
        if not self.norm_share:
            return means
        each = noise(self.norm_share)
        norms, centred = (
            Release(name=name, of=of, bound=Histograms(columns=1), noise_multiplier=each, size=octaves * self.fineness)
            for name, of, octaves in (
                ("norms", "norms of rows", _FAR),
                ("centred norms", "norms of centred rows", _OCTAVES),
            )
        )
        return (norms, *means, centred)

    def run(
        self,
        scaling: "Scaling",
        problem: Callable[["Scaling"], LinearModel],
        norms: Callable[["Scaling"], Vector],
        meter: Meter,
        *,
        rate: float = 1.0,
    ) -> "Scaling":
        """The scaling with rows about their mean and the norm found there; arguments as of `Whitener.run`."""
        count = max(meter.plan.count * rate, 1.0)
        scale = scaling.stretch
        start = Shift(mean=np.zeros_like(scale), scale=scale)
        top = scaling.norm * float(scale.max(initial=1.0))
        scaling = self._shortened("norms", scaling.with_whitening(start).with_norm(top), norms, count, meter)
        posed = scaling.with_constant(_BESIDE * scaling.norm)
        found, unit = problem(posed), count * posed.shrink
        meter.open("mean", count=found.records)
        noisy = meter.noisy("mean", found.row_sum(max_records=meter.plan.max_records("mean"))) / unit
        counted, most = is_counted(found, meter), noisy[-1] + BEYOND_DOUBT * meter.noise_stddev("mean") / unit
        total = float(np.clip(noisy[-1] / posed.constant, *SEEN)) if counted else 1.0
        most = math.inf if counted else float(most / posed.constant)
        centre = shrunk(noisy[:-1] / total, meter.noise_stddev("mean") / (unit * total))
        mean = np.clip(centre / scale, -1.0, 1.0)
        scaling = scaling.with_whitening(replace(scaling.whitening, mean=mean, total=total, most=most))  # type: ignore[type-var, arg-type]  # a Shift
        if self.wave_share:
            scaling = _smoothed(scaling, problem, count, meter)
        scaling = self._shortened("centred norms", scaling, norms, count, meter)
        return scaling.with_constant(self.constant * scaling.norm)

    def _shortened(
        self, name: str, scaling: "Scaling", norms: Callable[["Scaling"], Vector], count: float, meter: Meter
    ) -> "Scaling":
        """The scaling with the norm that most rows are below, as far as can be told."""
        first = name == "norms"
        if not self.norm_share:
            return scaling.with_norm(_UNSEEN * scaling.norm) if first else scaling
        found = norms(scaling)
        meter.open(name, count=len(found))
        edges = _edges(scaling.norm, self.fineness, _FAR if first else _OCTAVES)
        (held,) = tallies([partial(_histogram, edges=edges)], [found])
        counts, stddev = meter.noisy_counts(name, held), meter.noise_stddev(name)
        near = _OCTAVES * self.fineness
        norm = _norm(counts[:near], edges[:near], self.beyond * count, stddev)
        least = max(_longer_rows(counts, edges, count, stddev), self.least)
        if not first:
            return scaling.with_norm(max(norm, least))
        place, sure = _far_below(counts, count, stddev, self.fineness)
        if place >= near and not sure:  # else the norm may be found, and about the mean once more
            scaling = scaling.with_whitening(replace(scaling.whitening, short=True))  # type: ignore[type-var, arg-type]
        return scaling.with_norm(max(min(norm, float(edges[place])) if sure else norm, least))


def _smoothed(scaling: "Scaling", problem: Callable[["Scaling"], LinearModel], count: float, meter: Meter) -> "Scaling":
    """The scaling with centred rows along waves, each as far as it stands out; the same if none does."""
    shift: Shift = scaling.whitening  # type: ignore[assignment]  # rows are centred by now, and not turned
    basis, none = waves(len(shift.mean)), np.zeros_like(shift.mean)
    posed = scaling.with_whitening(shift.after(none, basis)).with_constant(0.0)
    found, unit = problem(posed), count * shift.total * posed.shrink**2
    meter.open("waves", count=found.records)
    moment = found.moment_sum(max_records=meter.plan.max_records("waves"))
    squares = replace(moment, units=np.diagonal(moment.units).copy(), whole=None)
    noisy = meter.noisy("waves", squares)[:-1] / unit
    kept = weights(noisy, meter.noise_stddev("waves") / unit)
    if shift.short or kept.min() == 1:
        return scaling
    return scaling.with_whitening(replace(shift.after(none, basis * kept), total=shift.total, most=shift.most))


def _edges(top: float, fineness: int, octaves: int = _OCTAVES) -> Vector:
    """Upper ends of bins, from the longest down."""
    return top * 2.0 ** (-np.arange(octaves * fineness) / fineness)


def _far_below(counts: Vector, count: float, stddev: float, fineness: int) -> tuple[int, bool]:
    """The bin that most rows begin at, if that is an eighth of the largest norm or less, else 0; and if it is sure.

    Most rows are in a run of bins, where few are above it. If they are in one of two runs, whose noisy counts differ by
    D, the logarithm of how much likelier one is than the other is D · rows ÷ the noise's variance. Sure is what is far
    likelier, and stands out of the noise by itself. Post-processing.
    """
    width = _RUN * fineness
    held = np.convolve(counts, np.ones(width), mode="valid")
    noise, far = stddev * math.sqrt(width), 3 * fineness
    place = far + int(np.argmax(held[far:]))
    more = float(held[place] - held[:far].max())
    if held[place] < count / 2 or more < 0:
        return 0, False
    return place, bool(held[place] > _SURELY * noise and more * count > _LIKELIER * noise**2)


def _longer_rows(counts: Vector, edges: Vector, count: float, stddev: float) -> float:
    """The least norm that is not far too short for more rows than a few, which may be all that there is to learn from.

    A part of the norm that clearly more than a few rows are beyond; 0 where none stand out. Post-processing.
    """
    beyond = np.cumsum(counts) - _FEW * count
    clear = np.flatnonzero(beyond > _CLEARLY * stddev * np.sqrt(np.arange(1, len(edges) + 1)))
    return _LEAST_PART * float(edges[clear[0]]) if clear.size else 0.0


def _histogram(norms: Vector, edges: Vector) -> IntArray:
    """Each norm in one bin, those outside in the outermost; NaN in none."""
    known = norms[~np.isnan(norms)]
    return np.bincount(np.searchsorted(-edges[1:], -known, side="right"), minlength=len(edges))


def _norm(counts: Vector, edges: Vector, allowed: float, stddev: float) -> float:
    """The least edge above which few enough rows lie; half the largest norm unless counts say otherwise.

    Coefficients are for rows of that norm, and others are not shortened when something is predicted: where it is found
    too short by far, noise is multiplied. So a shorter one must be clearly so. Post-processing.
    """
    beyond = np.cumsum(counts)[:-1] - allowed
    clear = _CLEARLY * stddev * np.sqrt(np.arange(1, len(edges)))
    usual = int(np.searchsorted(-edges, -_UNSEEN * edges[0] * (1 + 2.0**-30)))
    longer, shorter = beyond[:usual] > clear[:usual], beyond[usual:] < -clear[usual:]
    place = int(np.argmax(longer)) if longer.any() else usual + int(np.argmin(np.append(shorter, False)))
    return float(edges[place])
