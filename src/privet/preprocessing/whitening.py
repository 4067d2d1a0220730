"""Whitening: rows in the geometry in which they are round, learnt from noisy second moments and public from then on."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.arrays import Vector
from privet.data.elsewhere import tallies
from privet.losses import WeightedLoss
from privet.plan import Histograms, Meter, Release, SecondMoments
from privet.preprocessing.row_maps import BITS, RowMap, shifted, turned
from privet.problems.linear_model import LinearModel

if TYPE_CHECKING:
    from privet.preprocessing.scaling import Scaling

_ROOM = 52  # bits of a sum of products, which is then exact in any order
_CONSTANT = 0.5  # length of the constant beside a row whose second moment is taken, in lengths of a row
_BINS, _WIDE = 24, 3  # of norms, from a quarter of the expected one to sixteen times that; and four times as far each
_SURELY, _PART = 4.5, 0.125  # standard deviations that rows there must be, and what part of that norm will do for them
SEEN = 0.01, 100.0  # how many records there may be, or how much they may weigh, for one that is counted on
BEYOND_DOUBT = 5.0  # standard deviations beyond which nobody says that there are records, or none
_BELIEVED = 2.0  # standard deviations that more than those stand out of the noise
_CLEARLY = 4.0  # and by which they do however they lie; else some must be within an octave
_OCTAVE = 4  # bins
_HARDLY = 1.25  # times as long as expected, in root mean square, that rows may be with steps as they are


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Whitening:
    """z = (x − mean) · matrix, for rows x of features in [−1, 1]; public.

    Promise: each row's image depends on that row alone, to the last bit.
    Theorem: x is rounded to 26 bits and the matrix to whole units, so that by Cauchy and Schwarz no partial sum of
    their products reaches 2^53: every sum is exact, whatever its order (docs/proofs/whitening.md, section 2).

    Examples
    --------
    >>> whitening = Whitening.of(np.array([0.5, 0.0]), np.diag([2.0, 4.0]))
    >>> whitening.rows(np.array([[0.75, 0.25]])).tolist()
    [[0.5, 1.0]]
    """

    units: Vector
    steps: Vector
    origin: Vector
    mean: Vector
    total: float = 1.0  # what records add up to, or weigh, for each that was counted on
    most: float = math.inf  # share of the records that count, surely no more, by the noisy second moment
    spread: float = 1.0  # how many times what it should be the root mean square of images is, if that is clearly more

    @classmethod
    def of(cls, mean: Vector, matrix: Vector) -> "Whitening":
        """The map with the matrix rounded to what keeps sums exact: by 2^-19 of a column's norm, to 4096 features."""
        most = _ROOM - BITS - math.ceil(math.log2(max(len(matrix), 1)) / 2)
        exponents = np.frexp(np.linalg.norm(matrix, axis=0))[1]
        steps = np.ldexp(1.0, exponents - most)
        units = np.trunc(matrix / steps)
        return cls(units=units, steps=steps, origin=mean @ (units * steps), mean=mean)

    @property
    def matrix(self) -> Vector:
        """The matrix as it is used."""
        return self.units * self.steps

    def rows(self, features: Vector) -> Vector:
        """The images of rows of features. Private in, private out."""
        return self.map()(features.copy())

    def map(self, *, shrink: float = 1.0, constants: tuple[float, ...] = ()) -> RowMap:
        """The map of rows of features to their images and constants beside them, all times `shrink`."""
        none = np.zeros(len(constants))
        units = np.hstack([self.units, np.zeros((len(self.units), len(none)))])
        return turned(units, np.append(self.steps, none) * shrink, np.append(-self.origin, constants) * shrink)

    def back(self, slopes: Vector) -> Vector:
        """Slopes on images to slopes on features; public."""
        return np.asarray(self.matrix @ slopes)

    def after(self, mean: Vector, matrix: Vector) -> "Whitening":
        """This map, then z ↦ (z − mean) · matrix, as one."""
        return Whitening.of(self.mean + np.linalg.solve(self.matrix.T, mean), self.matrix @ matrix)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shift:
    """z = (x − mean) · scale, column by column, for rows x of features in [−1, 1]; public.

    Promise: each value's image depends on that value alone.

    Examples
    --------
    >>> Shift(mean=np.array([0.5, 0.0]), scale=np.array([2.0, 1.0])).rows(np.array([[0.75, 0.25]])).tolist()
    [[0.5, 0.25]]
    """

    mean: Vector
    scale: Vector
    total: float = 1.0  # as of `Whitening`
    most: float = math.inf  # the same
    short: bool = False  # whether most rows were seen to be far shorter than the norm that was found

    def map(self) -> RowMap:
        """The map of blocks of features, made once. Private in, private out."""
        return shifted(self.mean, self.scale)

    def rows(self, features: Vector) -> Vector:
        """The images of rows of features. Private in, private out."""
        return self.map()(np.array(features, dtype=np.float64, order="C"))

    def back(self, slopes: Vector) -> Vector:
        """Slopes on images to slopes on features; public."""
        return slopes * self.scale[:, None]

    def after(self, mean: Vector, matrix: Vector) -> Whitening:
        """This map, then z ↦ (z − mean) · matrix, as one."""
        return Whitening.of(self.mean + mean / self.scale, self.scale[:, None] * matrix)


@dataclass(frozen=True, kw_only=True, slots=True)
class Whitener:
    """How rows will be whitened: a noisy second moment a round, and a noisy histogram of the norms that follow.

    Each round takes the second moment of rows in the geometry of the last one, shortened to the norm found there, as
    CoinPress does (Biswas, Dong, Kamath and Ullman 2020), and turns them so that it becomes the identity; directions
    whose variance does not stand out of the noise are stretched as if it were `floor` of the noise's spectral norm.

    Promise: all that is learnt comes from the releases of the plan.
    Theorem: docs/proofs/whitening.md.

    Parameters
    ----------
    columns : features, without the constant
    intercept : whether rows have a constant beside the features; then they are centred, too
    shares : of the budget, for the second moment of each round
    tail : share of rows that may be shortened
    norm_share : of the budget, for the norms of each round
    last_norm_share : the same for the last round, if that is another
    floor : least variance that is believed, in units of the noise's typical spectral norm

    Examples
    --------
    >>> whitener = Whitener(columns=3, intercept=True, shares=(0.07, 0.13))
    >>> [release.name for release in whitener.releases(lambda share: 10 / share**0.5)]
    ['second moment 1', 'whitened norms 1', 'second moment 2', 'whitened norms 2']
    """

    columns: int
    intercept: bool
    shares: tuple[float, ...]
    tail: float = 0.02
    norm_share: float = 0.02
    last_norm_share: float | None = None
    floor: float = 0.25

    def releases(self, noise: Callable[[float], float]) -> tuple[Release, ...]:
        """What whitening releases; `noise` is the noise multiplier of a share of the budget."""
        size, found = (self.columns + self.intercept) ** 2, []
        for i, share in enumerate(self.shares, 1):
            moment, norm_share = SecondMoments(clip=1.0), self.norm_share
            if i == len(self.shares) and self.last_norm_share is not None:
                norm_share = self.last_norm_share
            found += [
                Release(
                    name=f"second moment {i}",
                    of="x xᵀ of each row" if i == 1 else "x xᵀ of each whitened row",
                    bound=moment,
                    noise_multiplier=noise(share),
                    size=size,
                ),
                Release(
                    name=f"whitened norms {i}",
                    of="norms of whitened rows",
                    bound=Histograms(columns=1),
                    noise_multiplier=noise(norm_share),
                    size=_BINS + _WIDE,
                ),
            ]
        return tuple(found)

    def run(
        self,
        scaling: "Scaling",
        problem: Callable[["Scaling"], LinearModel],
        norms: Callable[["Scaling"], Vector],
        meter: Meter,
        *,
        rate: float = 1.0,
    ) -> "Scaling":
        """The scaling with its whitening and the norm found there.

        `problem` poses the problem on rows prepared by a scaling; `norms` are those of rows (of one of each person),
        NaN of an empty record. Private both. They may be of a sample in which each record is with probability `rate`.
        """
        count = max(meter.plan.count * rate, 1.0)
        for i in range(1, len(self.shares) + 1):
            posed = scaling.with_constant(_CONSTANT * scaling.norm)
            scaling, expected = self._round(i, posed, problem(posed), count, meter)
            name = f"whitened norms {i}"
            found = norms(scaling)
            meter.open(name, count=len(found))
            (held,) = tallies([partial(_histogram, expected=expected)], [found])
            counts, stddev = meter.noisy_counts(name, held), meter.noise_stddev(name)
            scaling = scaling.with_norm(_quantile(counts, expected, self.tail * count, stddev))
        spread = _spread(counts, expected, scaling.norm, stddev, count / min(scaling.total, 1.0))
        scaling = scaling.with_whitening(replace(scaling.whitening, spread=spread))  # type: ignore[type-var, arg-type]  # a Whitening
        return scaling.with_constant(1.0)

    def _round(
        self, i: int, scaling: "Scaling", problem: LinearModel, count: float, meter: Meter
    ) -> tuple["Scaling", float]:
        """The scaling with its whitening, and the norm that a row is then expected to have."""
        name, d = f"second moment {i}", len(scaling.low)
        meter.open(name, count=problem.records)
        summed = problem.moment_sum(max_records=meter.plan.max_records(name))
        unit = count * scaling.shrink**2
        moment = meter.noisy_symmetric(name, summed) / unit
        noise = meter.noise_stddev(name) / unit
        mean, total, most = np.zeros(d), 1.0, math.inf
        if self.intercept:
            if is_counted(problem, meter):
                total = float(np.clip(moment[-1, -1] / scaling.constant**2, *SEEN))
            else:
                most = float(moment[-1, -1] + BEYOND_DOUBT * noise) / scaling.constant**2
            beside = noise * math.sqrt(0.5) / (scaling.constant * total)  # off the diagonal there is less noise
            mean = shrunk(moment[:d, -1] / (scaling.constant * total), beside)
        more = total if meter.plan.neighbours == "add_remove" and total > 1 else 1.0  # records than were guessed
        noise /= more
        values, vectors = np.linalg.eigh((moment[:d, :d] - total * np.outer(mean, mean)) / more)
        believed = np.maximum(values, self.floor * noise * math.sqrt(2 * d))
        matrix = vectors / np.sqrt(believed)
        last = scaling.whitening
        both = Whitening.of(mean, matrix) if last is None else last.after(mean, matrix)
        expected = math.sqrt(max(float(np.clip(values / believed, 0, 1).sum()), 1.0))
        return scaling.with_whitening(replace(both, total=total, most=most)), expected


def is_counted(problem: LinearModel, meter: Meter) -> bool:
    """Whether what records add up to must be looked at: weights do not add up to records, nor records to a guess."""
    return isinstance(problem.loss, WeightedLoss) or meter.plan.neighbours == "add_remove"


def shrunk(mean: Vector, noise: float) -> Vector:
    """A noisy mean, shrunk towards 0 by what its noise is (James and Stein 1961); post-processing."""
    total = float(mean @ mean)
    return mean * max(0.0, 1 - len(mean) * noise * noise / total) if total > 0 else mean


def _edges(expected: float) -> Vector:
    return expected * np.append(np.geomspace(0.25, 16.0, _BINS + 1)[1:], 16.0 * 4.0 ** np.arange(1, _WIDE + 1))


def _histogram(norms: Vector, expected: float) -> Any:
    """Each norm in one bin, those outside in the outermost; NaN in none."""
    known = norms[~np.isnan(norms)]
    last = _BINS + _WIDE - 1
    return np.bincount(np.minimum(np.searchsorted(_edges(expected), known), last), minlength=last + 1)


def _spread(counts: Vector, expected: float, norm: float, stddev: float, count: float) -> float:
    """How many times as long as expected rows are, in root mean square, once shortened to a norm; 1 if hardly more.

    Where few rows were far too long for the geometry before, all that was seen of them is their direction: variance is
    then far above 1. Of bins that stand out, among `count` rows, of which there are more where they weigh less, or as
    many more as do. Post-processing.
    """
    lengths = np.minimum(_edges(expected) * 2.0**-0.125, norm) / expected
    seen = np.where(counts > _CLEARLY * stddev, counts, 0.0)
    return max(math.sqrt(float(seen @ lengths**2) / max(count, float(seen.sum()))) / _HARDLY, 1.0)


def _quantile(counts: Vector, expected: float, allowed: float, stddev: float) -> float:
    """The norm above which not clearly more than the allowed number of rows lie; post-processing.

    Sums from above share their noise: where all bins are by chance high together, those that are seen at the next
    longer norms tell. Far beyond, whole bins tell: rows there were far too long for the geometry before.
    """
    far = np.flatnonzero(counts[_BINS:] - allowed > _SURELY * stddev)
    if far.size:
        return float(_PART * _edges(expected)[_BINS + far[-1]])
    counts = counts[:_BINS]
    bins = np.arange(_BINS, 0, -1)
    beyond, noise = np.cumsum(counts[::-1])[::-1] - allowed, stddev * np.sqrt(bins)
    near = np.convolve(counts, np.ones(_OCTAVE))[_OCTAVE - 1 :]
    seen = near > _BELIEVED * stddev * np.sqrt(np.minimum(bins, _OCTAVE))
    seen |= bins > _BINS - _BINS // 3  # up to the expected norm none is too long
    clear = (beyond > _BELIEVED * noise) & (seen | (beyond > _CLEARLY * noise))
    # upwards to the first bin that is not: from the top down, noise alone would stand out of some bin too often
    shortest = _BINS // 6
    longer = int(np.argmin(np.append(clear[shortest:], False)))
    place = shortest + longer - 1 if longer else _BINS // 3  # the expected norm
    return float(_edges(expected)[place])
