"""What a fit's own releases leave in doubt of ranges, learnt or declared, and what to say of it in one sentence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.estimators.range_shares import open_columns, unsure_sentence
from privet.preprocessing.centring import Centring
from privet.preprocessing.scaling import Scaling, given_scaling
from privet.preprocessing.whitening import Shift

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel

_LEAST = 2.0**-4  # norm that is learnt at least where rows are not centred; so short they fill next to nothing
_SHOWN = 8  # names in a warning
_MOST = 0.5  # of the records: where surely fewer count, something is wrong with their targets
UNREAD = (
    "Expected most records to have a target that can be read, got fewer than half, by what was released of them: the "
    "others count as empty. Compare `classes` with the labels, their spelling, case and type; a missing target counts "
    "as empty, too."
)
SCALED = ((0.0, 1.0), (-1.0, 1.0))  # ranges of what somebody has scaled


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubts:
    """Columns, or the target, whose learnt range is a guess, those that drown in a declared one, and whether most
    records have no target. Public.
    """

    unsure: tuple[str, ...] = ()
    faint: tuple[str, ...] = ()
    unread: bool = False

    def sentence(self, name: Callable[[str], str], *, exact: bool) -> str:
        """What to say, with columns named by `name`, and ranges declared to be `exact` or not; empty if nothing."""
        if self.unsure:
            return unsure_sentence([name(column) for column in self.unsure])
        if exact or not self.faint:
            return ""
        more = len(self.faint) - _SHOWN
        shown = ", ".join(map(name, self.faint[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
        return (
            f"Expected values that stand out of the noise inside their declared range, got none in {shown}: with this "
            "budget and number of records the range is too wide for them, so that the column counts for little."
            " Declare narrower bounds, or use a larger epsilon or more records; bounds_exact=True says that it "
            "is meant so."
        )


def is_unread(scaling: Scaling) -> bool:
    """Whether surely fewer than half of the records count, as their number among those that do was released."""
    return scaling.whitening is not None and scaling.whitening.most < _MOST


def faint_columns(model: "PrivateLinearModel", scaling: Scaling, *, inside: bool) -> tuple[str, ...]:
    """Declared columns that drown in their range, by what was released of rows; `inside` says that others were learnt.

    Of rows that are not whitened the norm is known: if it is next to nothing of what ranges allow, all are faint.
    """
    known = given_scaling(model.bounds, model.row_norm, len(scaling.ranges[0]), intercept=model.fit_intercept)
    if known is None or model.bounds is None or inside:
        return ()
    wide, turned = open_columns(known), scaling.whitening
    wide &= turned.short if isinstance(turned, Shift) else turned is None and scaling.norm <= _LEAST < known.norm
    return tuple(f"x{j}" for j in np.flatnonzero(wide))


def is_blind(model: "PrivateLinearModel", known: Scaling | None, centring: Centring | None, *, found: Any) -> bool:
    """Whether declared ranges may be far too wide, and rows are too few to show it; `found` finds the target's."""
    if model.bounds_exact or model.solver != "auto" or model.inference:
        return False
    if model._learns_target and found is None and model._ends not in (None, *SCALED):
        return True
    unseen = centring is not None and not centring.norm_share
    return unseen and known is not None and model.bounds is not None and bool(open_columns(known).any())


def blind_sentence(count: int) -> str:
    """What to say before such a fit, on public facts."""
    return (
        f"Expected enough records to see whether they fill their declared ranges, got {count:,}: noise is as large as "
        "the ranges are wide, so if values fill less than about a tenth of them, predictions are noise about a "
        "constant. Declare tight ranges and say so with bounds_exact=True; else use a larger epsilon or more records."
    )
