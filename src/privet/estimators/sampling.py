"""Tables with plenty of records: what is learnt first is learnt from a sample of them, drawn beside the data."""

from typing import TYPE_CHECKING

from privet.losses import Loss

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel
    from privet.estimators.outline import Size

_EACH = 500.0  # effective sample size a column that the sample must have
_RECORDS = 100_000  # and records: what is learnt of them is then right to a percent
_MOST = 0.12  # of the records: where a sample would be larger, all of them are read


def sample_rate(model: "PrivateLinearModel", size: "Size", loss: Loss, count: int, effective: float) -> float:
    """Chance with which a record is in the sample that ranges, norms and moments are learnt from; 1 for all. Public."""
    plain = not (size.people or size.weighted or size.sparse or model.alpha or model.inference)
    plain = plain and loss.outputs == 1 and model.max_iter is None
    if not plain or model._task not in ("binary", "regression") or model.neighbours == "add_remove":
        return 1.0
    rate = max(_EACH * (size.columns + 1) / max(effective, 1.0), _RECORDS / max(count, 1))
    return rate if rate <= _MOST else 1.0


def learning_rate(model: "PrivateLinearModel", rate: float) -> float:
    """The same, for what is learnt before rows are turned: all records where ranges are not declared.

    Of a sample of a twentieth, noise cuts off more of their ends: a third more excess loss on made-up tables.
    """
    return rate if model.bounds is not None or model.row_norm is not None else 1.0
