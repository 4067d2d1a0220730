"""From the private records of one fit to a problem for a solver: scaled by what is public or learnt, rows of norm 1."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.arrays import BoolArray, IntArray, Vector
from privet.data import one_row_each
from privet.data.elsewhere import Elsewhere, ElsewhereRows, Later
from privet.data.floats import columns_at
from privet.engines.blocks_of_rows import Block
from privet.estimators.intervals import altered_rows
from privet.estimators.outline import Outline, Size
from privet.estimators.weights import Weights
from privet.geometry import whole_space
from privet.losses import Loss, QuadraticPenalty, Ridge, WeightedLoss
from privet.plan import Meter
from privet.preprocessing import RangeFinder
from privet.preprocessing.centring import Centring
from privet.preprocessing.ranges import FoundRanges
from privet.preprocessing.scaling import Scaling, given_scaling, scaling_from
from privet.preprocessing.whitening import Whitener, Whitening
from privet.problems import GroupedProblem, LinearProblem
from privet.problems.parted import PartedProblem
from privet.randomness import Random
from privet.sampling import Poisson
from privet.sums import bounded_table
from privet.sums.blocks import blas

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel

Prepared = LinearProblem | GroupedProblem | PartedProblem

_A_RECORD = ("labels", "weights")  # what a posed problem has for each record
_LEAST_NORM = 2.0**-4
# How much longer rows may be once centred, as the same change of a value is then up to twice as long. Of 0, 1, 1.5 and
# 2, this did best or as well on held-out training rows of four tables, at epsilon 0.1 and 1.
_CENTRED = 1.5
_STEEPEST = 2.0**100  # root of a penalty, beyond which a coefficient is 0 all the same
_STEEP = 2.0**24  # and of a column's, in other coordinates, where rounding mixes steep directions with flat ones
_ROOM = 1.2  # above the learnt norm, where intervals want next to no row shortened


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Records:
    """Rows, targets, weights and whose they are; private, all but `size`."""

    table: Any
    target: Any
    weights: Weights | None
    people: Any
    size: Size


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Posed:
    """A problem for the solver: labels for a loss, weights, the target's unit and origin in terms of a prediction.

    `bend` is what ‖coef‖² of one unit is, with targets, slopes and losses in the data's own units, in those of `loss`.
    `shift` is added to the intercepts in the end, or what the fit says of it if it is unsure;
    `rates` are how often classes occur, where that was learnt; the loss is `steep` times as steep as others of its
    kind. All is public but labels, weights and `outside`.
    """

    labels: Vector
    loss: Loss
    weights: Vector | None = None
    unit: float = 1.0
    origin: float = 0.0
    bend: float = 1.0
    ends: tuple[float, float] = (-math.inf, math.inf)
    outside: BoolArray | None = None
    assumptions: tuple[str, ...] = ()
    typical_weight: float = 1.0
    steep: float = 1.0
    shift: Vector | None = None
    shift_unsure: bool = False
    rates: Vector | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Learnt:
    """What is known of the features' ranges and norms, the target's range if it was learnt, and what stayed unsure."""

    scaling: Scaling
    target: tuple[float, float] | None
    unsure: tuple[str, ...]
    faint: tuple[str, ...] = ()  # what did not stand out inside a declared range
    begun: bool = True  # whether the middle of a range that was drawn is a constant worth having


def sampled(data: Records, rate: float, random: Random) -> Records:
    """A sample in which each record is by itself with probability `rate`, drawn beside the data. Private."""
    away = isinstance(data.table, ElsewhereRows)
    if rate == 1 and not away:
        return data
    places = None if rate == 1 else Poisson(sampling_rate=rate).indices(data.size.records, 0, random)
    if away:
        return sampled_parts(data, places)
    return replace(data, table=data.table[places], target=data.target[places])


def learnt_scaling(model: "PrivateLinearModel", few: Records, outline: Outline, meter: Meter, data: Records) -> Learnt:
    """What is known of the features' ranges and rows' norms (and of the target's range), or learnt of them.

    Ranges come first, then how long rows are once scaled, which for sparse or correlated features is far less than
    the √features that ranges alone allow; and whether they are shorter if ranges that hold 0 are centred, too. It is
    learnt from one row of each person, drawn at random. `few` is `data`, or a sample of it, off which norms are read;
    ranges of features are read off a larger one, that of the target off all records.
    """
    X, target, places = few.table, data.target, None
    if outline.ranging != outline.rate:
        places = Poisson(sampling_rate=outline.ranging).indices(data.size.records, 0, meter.random)
    learns = any(each is not None for each in (outline.anchor, outline.target, outline.ranges, outline.norms))
    if data.people is not None and learns:
        rows = one_row_each(data.people, meter.random)
        X, target = X[rows], target[rows]
    columns = X.shape[1]
    begun, ends, found = True, None, FoundRanges(ranges={}, unsure=())
    unsure: tuple[str, ...] = ()
    faint: tuple[str, ...] = ()
    if outline.anchor is not None:
        ends = outline.anchor.learn(target, meter)
        begun = ends != outline.anchor.hull
    if outline.target is not None:
        of_target = outline.target.learn([target], meter)
        ends, faint = of_target.ranges["y"], of_target.unsure if outline.target.placed else ()
        if model._ends is None:
            unsure, faint = of_target.unsure, ()
    if outline.ranges is not None:
        values = _columns(X if outline.ranging == outline.rate else data.table, places)
        found = outline.ranges.learn([values[name] for name in outline.ranges.columns], meter, rate=outline.ranging)
    scaling = given_scaling(model.bounds, model.row_norm, columns, intercept=model.fit_intercept)
    if scaling is None:
        scaling = scaling_from((np.zeros(columns), np.ones(columns)), columns, intercept=model.fit_intercept)
    for name, (low, high) in found.ranges.items():
        scaling.low[int(name[1:])], scaling.high[int(name[1:])] = low, high
    roots = tuple((int(name[1:]), root) for name, root in found.roots.items())
    scaling = scaling.with_roots((*outline.roots, *roots))
    unsure += found.unsure if model.bounds is None else ()
    if not isinstance(X, np.ndarray | ElsewhereRows):
        scaling = scaling.with_zeros()
    if outline.norms is not None:
        scaling = _by_learnt_norm(model, X, scaling, outline, meter)
    constant = max(scaling.constant, outline.constant(columns) * scaling.norm)
    return Learnt(scaling=replace(scaling, constant=constant), target=ends, unsure=unsure, faint=faint, begun=begun)


def _columns(X: Any, places: IntArray | None = None) -> dict[str, Vector]:
    """Each column by a name; of the rows at some places of a dense table, if given."""
    if isinstance(X, ElsewhereRows):
        source: Any = X.source
        rows = X if places is None else source.sampled(places, source.cache.beside()).numbers(X.shape[1])[0]
        return {f"x{j}": rows.column(j) for j in range(rows.shape[1])}  # type: ignore[misc]  # counted as arrays are
    if places is not None:
        return {f"x{j}": column for j, column in enumerate(columns_at(X.T, places))}
    dense = isinstance(X, np.ndarray)
    table = X if dense else X.tocsc()
    columns = (table[:, j] if dense else table[:, [j]].toarray()[:, 0] for j in range(X.shape[1]))
    return {f"x{j}": np.asarray(column, dtype=np.float64) for j, column in enumerate(columns)}


def _by_learnt_norm(model: "PrivateLinearModel", X: Any, scaling: Scaling, outline: Outline, meter: Meter) -> Scaling:
    """The scaling in which rows are shorter, or not much longer once centred, with what was learnt of their norms."""
    finder: RangeFinder = outline.norms  # type: ignore[assignment]  # the caller has seen that it is there
    centred = replace(scaling, centred=isinstance(X, np.ndarray | ElsewhereRows))
    either = {"norm": scaling, "centred norm": centred}
    norms = [either[name].norms(X) for name in finder.columns]
    norms = [np.where(each > 0, each, np.nan) for each in norms]  # an empty record is in no bin
    learnt = finder.run(norms, meter, rate=outline.rate)
    name = min(finder.columns, key=lambda column: learnt[column][1] / (_CENTRED if column != "norm" else 1.0))
    most = learnt[name][1] * (_ROOM if model.inference else 1.0)
    return replace(either[name], norm=min(scaling.norm, max(most, _LEAST_NORM)))


def turned_scaling(
    data: Records,
    scaling: Scaling,
    posed: Posed,
    geometry: Whitener | Centring,
    meter: Meter,
    *,
    rate: float = 1.0,
) -> Scaling:
    """The scaling with rows whitened by what is learnt of their second moments and norms."""
    X = data.table if data.people is None else data.table[one_row_each(data.people, meter.random)]
    present = replace(scaling, whitening=None).norms(X) > 0  # an empty record is in no bin

    def problem(scaled: Scaling) -> Prepared:
        return prepared_problem(data, scaled, posed, alpha=0.0, once=True)

    def norms(scaled: Scaling) -> Vector:
        with blas().limit(limits=1):  # blocks are too small for threads to help each other
            return np.where(present, scaled.norms(X), np.nan)

    return geometry.run(scaling, problem, norms, meter, rate=rate)


def prepared_problem(
    data: Records,
    scaling: Scaling,
    posed: Posed,
    *,
    alpha: float,
    whole: bool = False,
    once: bool = False,
    reach: float = 1.0,
) -> Prepared:
    """Prepared rows and labels. Labels of NaN, or outside the loss's set, and bad weights zero a record out.

    The penalty is (alpha/2) ‖coef‖², added to the *average* loss; both are of the data's own units. With `whole`, a row
    that would be altered noticeably is zeroed out, too, by what it is itself: longer than the norm (of whitened rows,
    by any length), or with a value missing or well outside its range. `once` says that one sum is all that is wanted.
    Rows that are shortened are predicted for as if they were as long as before, up to `reach` times the norm.
    """
    if isinstance(data.table, ElsewhereRows):
        return problem_in_parts(data, scaling, posed, alpha=alpha, whole=whole, once=once, reach=reach)
    loss, labels = posed.loss, posed.labels
    if posed.weights is not None:
        loss, labels = WeightedLoss(loss=loss), np.column_stack([labels, posed.weights])
    keep = np.asarray(loss.admissible(labels), dtype=bool)
    if whole:
        norms = scaling.norms(data.table)
        keep = keep & ~altered_rows(data.table, scaling, norms)
        if isinstance(scaling.whitening, Whitening):
            keep = keep & (norms <= scaling.norm)  # a norm that was declared may be met to the last bit, and stays
    rows = scaling.rows(data.table)
    source, prepare = (data.table, scaling.preparing()) if rows is None else (rows, None)
    with blas().limit(limits=1):
        table = bounded_table(source, row_norm=1.0, keep=keep, prepare=prepare, reach=reach)
    known, ridge = np.where(keep if labels.ndim == 1 else keep[:, None], labels, 0.0), penalty(alpha, scaling, posed)
    if data.people is None:
        return LinearProblem(loss, table, known, domain=whole_space(), ridge=ridge)
    return GroupedProblem(loss, table, known, data.people, domain=whole_space(), ridge=ridge)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Preparation:
    """`prepared_problem` of a block of records; a value that can be sent. What it holds is public."""

    scaling: Scaling
    posed: Posed
    alpha: float
    whole: bool
    reach: float

    def __call__(self, block: Any) -> Any:
        parts = {name: getattr(self.posed, name) for name in _A_RECORD}
        here = {name: each.of(block) if isinstance(each, Later) else each for name, each in parts.items()}
        size = Size(records=block.count, columns=len(self.scaling.low))
        data = Records(table=block.table, target=block.target, weights=None, people=block.people, size=size)
        posed, whole, reach = replace(self.posed, **here), self.whole, self.reach
        return prepared_problem(data, self.scaling, posed, alpha=self.alpha, whole=whole, reach=reach)


def sampled_parts(data: Records, places: IntArray | None) -> Records:
    """The records at some places of a table in parts, or all, as rows that need not be decoded again."""
    source: Any = data.table.source
    found = source.sampled(places, source.cache.beside())
    rows, target = found.numbers(data.table.shape[1])
    weights: Any = data.weights
    if weights is not None:  # the same function of another source's blocks
        weights = replace(weights, values=Elsewhere(found, weights.values.later, len(target)))
    return replace(data, table=rows, target=target, weights=weights)


def problem_in_parts(
    data: Records, scaling: Scaling, posed: Posed, *, alpha: float, whole: bool, once: bool, reach: float
) -> PartedProblem:
    """The problem of records in parts: encoded to files, or if only one sum is wanted, prepared while it is taken."""
    parts = {name: getattr(posed, name) for name in _A_RECORD}
    later: Any = {name: each.later if isinstance(each, Elsewhere) else each for name, each in parts.items()}
    private: Any = {"posed": replace(posed, outside=None, **later)}
    prepare = Preparation(scaling=scaling, alpha=alpha, whole=whole, reach=reach, **private)
    none = np.full(1, np.nan)
    nobody = Block(table=np.full((1, data.table.shape[1]), np.nan), target=none, count=1, weight=none)
    source: Any = data.table.source
    found = source.asked(prepare) if once else source.encoded(prepare, source.cache.beside())
    return PartedProblem(prepare(nobody), found, unit="record" if data.people is None else "person")


def penalty(alpha: float, scaling: Scaling, posed: Posed) -> Ridge | QuadraticPenalty:
    """(alpha/2) ‖coef‖² as a function of θ on prepared rows; public, as the scaling is."""
    if not alpha:
        return Ridge(alpha=0.0)
    slopes, steep = scaling.slopes, math.sqrt(alpha) * math.sqrt(posed.bend)
    with np.errstate(over="ignore", invalid="ignore"):
        root = slopes * steep
        if root.ndim == 1:
            return QuadraticPenalty(root=np.clip(root, -_STEEPEST, _STEEPEST))
        longest = np.abs(slopes).max(axis=1, keepdims=True)
        root = np.where(steep * longest > _STEEP, slopes / np.maximum(longest, 2.0**-1000) * _STEEP, root)
    return QuadraticPenalty(root=root)
