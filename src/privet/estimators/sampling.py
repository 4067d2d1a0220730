"""Tables with plenty of records: what is learnt first is learnt from a sample of them, drawn beside the data."""

from typing import TYPE_CHECKING

from privet.losses import Loss

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Size

_EACH = 500.0  # effective sample size a column that the sample must have
_RECORDS = 100_000  # and records: what is learnt of them is then right to a percent
_MOST = 0.12  # of the records: where a sample would be larger, all of them are read
_CLEARLY = 2500.0  # standard deviations by which records stand out in the sample that ranges are learnt from
_MOST_RANGED = 0.5  # of the records
_TAIL = 0.005  # of the records, that ranges may leave out at either end
# Widths that are added at either end of a learnt range, of features and of a target, where there is plenty: what is cut
# off there costs more than the noise that a wider range brings. Chosen on made-up tables.
BEYOND, TARGET_BEYOND = 0.5, 0.25
_BLUR = 5.0  # standard deviations of noise that a few bins at an end have


def sample_rate(model: "PrivateLinearModel", size: "Size", loss: Loss, count: int, effective: float) -> float:
    """Chance with which a record is in the sample that norms and moments are learnt from; 1 for all. Public."""
    plain = not (size.people or size.weighted or size.sparse or model.alpha or model.inference)
    plain = plain and loss.outputs == 1 and model.max_iter is None
    if not plain or model._task not in ("binary", "regression") or model.neighbours == "add_remove":
        return 1.0
    rate = max(_EACH * (size.columns + 1) / max(effective, 1.0), _RECORDS / max(count, 1))
    return rate if rate <= _MOST else 1.0


def range_rate(rate: float, seen: float) -> float:
    """The same, for ranges: as many records as stand out so far that next to nothing of an end is lost in noise.

    `seen` is how far all records stand out with what is spent on ranges. Of a sample as small as the other, noise cuts
    off far more of either end: of two million normal rows, three times the excess loss that all records have.
    """
    wanted = _CLEARLY / max(seen, 1.0)
    return 1.0 if rate == 1 or wanted > _MOST_RANGED else max(rate, wanted)


def sample_tail(seen: float) -> float:
    """The part of a sample that ranges may leave out at an end, so that with what noise cuts off it is that of all."""
    return max(_TAIL - _BLUR / seen, 0.0)
