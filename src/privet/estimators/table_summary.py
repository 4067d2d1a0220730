"""The summary of a model of a table: features by the names of their columns, and what the fit learnt of those."""

from typing import TYPE_CHECKING

from privet.estimators.lone_constant import is_alone
from privet.estimators.summary import Summary, summarised
from privet.preprocessing import Number
from privet.preprocessing.encoding import feature_names

if TYPE_CHECKING:
    from privet.estimators.table_model import TableModel

_SHOWN = 12  # columns in a sentence


def summary_of_table(model: "TableModel") -> Summary:
    """The summary of a fitted model, which is public."""
    schema, fitted = model.schema_, model.estimator_
    logs = {name for name, column in schema.columns.items() if isinstance(column, Number) and column.log}
    names = [f"log1p({name})" if name in logs else name for name in feature_names(schema)[:-1]]
    target, notes = schema.known_target, []
    if target.kind == "label":
        notes.append(f"Classes of {target.column}, in order: {', '.join(target.classes)}.")
    elif target.log:
        notes.append(f"The target is log1p({target.column}).")
    if is_alone(model.plan_):
        notes.append("No feature was looked at, and ranges that were not declared are stand-ins.")
    if model.usable_:
        counts = [f"{name} {max(0, round(count)):,}" for name, count in model.usable_.items()]
        more = len(counts) - _SHOWN
        told = ", ".join(counts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        notes.append(f"Records that the schema can read, counted with noise: {told}.")
    labels = target.classes if target.kind == "label" else None
    return summarised(fitted, names=names, learnt=model.learnt_, target=target.column, notes=notes, labels=labels)
