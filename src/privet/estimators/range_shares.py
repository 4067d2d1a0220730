"""Which ranges a fit will learn, inside declared ones too, for which share of the budget: from public facts alone."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import BoolArray
from privet.errors import InvalidParameter
from privet.estimators.defaults import PLENTY
from privet.estimators.sampling import BEYOND, TARGET_BEYOND, range_rate, sample_tail
from privet.plan import Histograms
from privet.plan.influence import unit_clip
from privet.preprocessing import RangeFinder
from privet.preprocessing.scaling import Scaling
from privet.preprocessing.whitening import Whitener
from privet.privacy import Neighbours

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel

# How far all records shall stand out of the noise when ranges are learnt, in standard deviations, and the least and the
# most of the budget that is spent on it; of the target's range more depends than on a feature's.
_RANGES, _TARGET = (25.0, 0.03, 0.15), (40.0, 0.02, 0.1)
# So far they must stand out, with all of the budget, for learning inside declared ranges to pay: of features, of a
# target of squared errors, which a range far too wide ruins, and of other targets, of which few are drawn at random.
_INSIDE, _SQUARED_INSIDE, TARGET_INSIDE = 10.0, 20.0, 100.0
# Part of a target's declared range below which what was learnt inside is used, and up to which standard deviations:
# noise is as large as the range is, and beyond them what is cut off of a tail is worse.
_NARROWER, _NOISY = 0.6, 400.0
# Standard deviations up to which a few bins say where a target of squared errors is, and from which also inside a
# declared range; and how many times as much of the budget it is worth where none is declared.
_PLACED, _PLACED_INSIDE, _UNDECLARED = 850.0, 40.0, 1.4
LEAST_SEEN = 6.0  # and so far, with what is spent, for any range to be found
_SHOWN = 8  # names in a warning
NORM_SHARE = 0.03  # of the budget, spent on the norms of rows
_CLEAR = 10.0  # standard deviations that all records together must stand above noise for norms to be worth learning
_SEEN = 40.0  # standard deviations from which norms are read off finer bins than octaves


def target_finder(
    model: "PrivateLinearModel", count: float, noise: float, plenty: bool
) -> tuple[RangeFinder | None, float]:
    """How the target's range is learnt, if it is, also inside a declared one; and its share of the budget.

    With `plenty` of records it is wider than what most are in.
    """
    seen = stands_out(1, count, noise, model.neighbours)
    hull = model._ends
    least = _SQUARED_INSIDE if model._loyal else TARGET_INSIDE
    if not model._learns_target or (hull is not None and not _pays(model, seen, model._target_exact, least)):
        return None, 0.0
    share = share_to_see(seen, *_TARGET)
    beyond = TARGET_BEYOND if plenty and model._task == "regression" else 0.0
    part = _NARROWER if seen < _NOISY else 0.25
    finder = RangeFinder(columns=("y",), hulls=(hull,), what="target", shy=hull is None, beyond=beyond, narrower=part)
    if _is_placed(model, seen):
        return replace(finder, rounds=1, bins=16, placed=True), share * (_UNDECLARED if hull is None else 1.0)
    return finder.sized(seen * math.sqrt(share)), share


def _is_placed(model: "PrivateLinearModel", seen: float) -> bool:
    """Whether a target is looked for by a few bins: not where there is enough for more, or a range says it all."""
    other = model.solver != "auto" or not model.fit_intercept or model.inference  # without the mean that settles it
    if not model._loyal or other or seen >= _PLACED:
        return False
    return model._ends is None or (model._draws and seen >= _PLACED_INSIDE)


def range_finder(
    model: "PrivateLinearModel",
    columns: int,
    sparse: bool,
    known: Scaling | None,
    count: float,
    noise: float,
    rate: float,
    plenty: bool,
) -> tuple[RangeFinder | None, float, float]:
    """How the features' ranges are learnt, if they are, also inside declared ones; and their share of the budget.

    Declared ranges of [0, 1] and [−1, 1] are used as they are: those of indicators, or of what somebody has scaled. The
    third is the chance with which a record is in the sample that they are learnt from; `rate` is that of the solver.
    With `plenty` of records they are wider than what most are in.
    """
    names, solved_by = tuple(f"x{j}" for j in range(columns)), rate
    hulls: tuple[tuple[float, float], ...] = ()
    if known is not None:
        open_ = open_columns(known)
        names = tuple(f"x{j}" for j in np.flatnonzero(open_))
        hulls = tuple(zip(known.low[open_].tolist(), known.high[open_].tolist(), strict=True))
        seen = stands_out(max(len(names), 1), rate * count, noise, model.neighbours)
        if not names or model.bounds is None or sparse or not _pays(model, seen, model.bounds_exact):
            return None, 0.0, rate
    else:
        rate = range_rate(rate, stands_out(columns, count, noise, model.neighbours) * math.sqrt(_RANGES[1]))
    seen = stands_out(len(names), rate * count, noise, model.neighbours)
    share = share_to_see(seen, *_RANGES)
    seen *= math.sqrt(share)
    tails = model.tails == "bend" and solved_by == 1 and model.row_norm is None and not sparse and may_bend(model)
    finder = RangeFinder(columns=names, hulls=hulls, tails=tails, beyond=BEYOND if plenty and not sparse else 0.0)
    if known is None and rate < 1:
        finder = replace(finder, tail=sample_tail(seen))
    return finder.sized(seen), share, rate


def open_columns(known: Scaling) -> BoolArray:
    """Declared columns inside whose range another may be looked for: not [0, 1], [−1, 1], nor a single number."""
    own = (known.high == 1) & ((known.low == 0) | (known.low == -1))
    return np.asarray((known.low < known.high) & ~own)


def may_bend(model: "PrivateLinearModel") -> bool:
    """Whether a column more is proven, and honest: intervals are of one, and a named solver is for those declared."""
    return bool(model.solver == "auto" and not model.inference)


def _pays(model: "PrivateLinearModel", seen: float, exact: bool, least: float = _INSIDE) -> bool:
    """Whether learning inside declared ranges is worth its share: intervals want nothing clipped."""
    return seen >= least and not exact and not model.inference


def stands_out(columns: int, count: float, noise: float, neighbours: Neighbours) -> float:
    """How many standard deviations all records are, in a histogram of so many columns that spends all of a budget."""
    return count / (noise * unit_clip(Histograms(columns=columns), neighbours))


def share_to_see(seen: float, want: float, least: float, most: float) -> float:
    """The share of a budget with which all records stand out as wanted, within limits."""
    return min(max((want / max(seen, 2.0**-20)) ** 2, least), most)


def norm_finder(
    model: "PrivateLinearModel",
    known: Scaling | None,
    columns: int,
    count: float,
    noise: float,
    whitener: Whitener | None,
    rate: float,
) -> RangeFinder | None:
    """How the norms of scaled rows will be learnt; None where a bound is known, or noise would drown them."""
    by_norm = model.row_norm is not None and model.bounds is None
    if by_norm or columns == 1 or count / noise * math.sqrt(NORM_SHARE) <= _CLEAR:
        return None
    both, least = model.fit_intercept and not model.inference and (known is None or known.may_be_centred), 0.0
    if whitener is not None:  # which centres rows itself, and where there is plenty learns their norms, too
        if not model.inference and rate == 1 and count / noise >= PLENTY * columns:
            return None
        least = _SEEN
    lengths = ("norm", "centred norm") if both else ("norm",)
    seen = stands_out(len(lengths), count, noise, model.neighbours) * math.sqrt(NORM_SHARE)
    return RangeFinder(columns=lengths, what="row norms").sized(max(seen, least))


def share_noise(
    whole_budget: float,
    share: float,
    epsilon: float,
    *,
    most: float = 2.0**19,
    what: str = "ranges",
    public: str = "pass row_norm=..., a public bound on the norm of a row",
) -> float:
    """The noise multiplier of a release that spends `share` of the budget, `whole_budget` being that of all of it."""
    noise = max(whole_budget / math.sqrt(share), 2.0**-9)
    if noise > most:
        raise InvalidParameter(
            f"Expected an epsilon from which {what} can be learnt, got {epsilon!r}: the noise would drown any table. "
            f"Use a larger epsilon, or {public}."
        )
    return noise


def unsure_sentence(names: list[str]) -> str:
    """What to say after a fit of columns whose range did not stand out of its noise; what is said was released."""
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return (
        f"Expected counts that stand out of the noise in every column, got none in {shown}: a range there is a "
        "guess, and a category has no name. Declare bounds=... and target_range=..., or the schema's ranges; else "
        "use a larger epsilon."
    )
