"""What a fit is given, read: whose row each is; and of a table in files where records are, and what is public."""

from typing import TYPE_CHECKING, Any

import numpy as np

from privet.arrays import IntArray
from privet.data.elsewhere import ElsewhereRows
from privet.data.floats import FrameRows
from privet.engines.block_source import BlockSource
from privet.engines.blocks_of_rows import FileRows, TargetColumn
from privet.engines.files import Files, as_files
from privet.engines.part import told_apart
from privet.engines.parted_glm import feature_columns
from privet.engines.sources import source_counts, source_header
from privet.errors import InvalidParameter
from privet.estimators.preparing import Records
from privet.privacy import Neighbours
from privet.problems.grouped import numbered

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel


def in_files(X: Any) -> bool:
    """Whether a table is in files or on a cluster."""
    return as_files(X) is not None


def file_records(model: "PrivateLinearModel", X: Any, y: Any, sample_weight: Any, groups: Any) -> Records:
    """The records of a table in files, of which headers and, if it is public, their number are looked at."""
    _check(model, y, sample_weight, groups)
    files: Files = as_files(X)  # type: ignore[assignment]  # the caller has asked
    parts, cache = files.opened()
    names = feature_columns(parts[0], y, None, None)
    header = source_header(parts[0])
    FrameRows(header.select(list(names)))  # refuses columns that are declared to be no numbers
    counts = source_counts(parts)
    opener = FileRows(names, y, TargetColumn(y, model._target_reader()))
    model._read_target(header.column(y), 0)  # refuses what is declared to be no target
    source = BlockSource(files.engine, parts, opener, counts, cache)
    model.feature_names_in_ = np.array(names, dtype=object)
    if source.records == 0 and model.neighbours != "add_remove":
        raise InvalidParameter("Expected at least one row, got files without any: there is nothing to learn from.")
    return records_elsewhere(model, *source.numbers(len(names)))


def records_elsewhere(model: "PrivateLinearModel", rows: ElsewhereRows, target: Any) -> Records:
    """Rows and targets that are elsewhere, the latter as the model's own reader has read them, as records of a fit."""
    model.n_features_in_ = rows.shape[1]
    return Records(table=rows, target=target, weights=None, people=None, size=model._size(rows, rows.shape[0]))


def journal_of(model: "PrivateLinearModel", X: Any, y: Any, data: Records) -> dict[str, Any]:
    """The journal that a table in files comes with, if it does, and what must be the same when a fit goes on."""
    if not isinstance(X, Files) or X.journal is None:
        return {}
    given = {name: value for name, value in model.get_params(deep=False).items() if name != "account"}
    same = (type(model).__name__, given, y, list(model.feature_names_in_), told_apart(data.table.source.parts))
    return {"journal": X.journal, "of": repr(same)}


def people_of(groups: Any, rows: int, neighbours: Neighbours) -> IntArray | None:
    """Whose row each is; None if every row stands for itself."""
    if groups is None:
        return None
    people = numbered(groups, rows)
    if neighbours != "add_remove" and people.max(initial=-1) < 0:
        raise InvalidParameter(
            "Expected groups to label at least one person, got no label that is a number or a text: there is "
            "nobody to learn from. Pass a column of ids, e.g. as text."
        )
    return people


def _check(model: "PrivateLinearModel", y: Any, sample_weight: Any, groups: Any) -> None:
    """Refuse what is not done on files, before one is opened."""
    if not isinstance(y, str):
        raise InvalidParameter(
            f"Expected y to be the name of a column for a table in files, got {type(y).__name__}: labels are in the "
            "files, beside their rows. Pass e.g. y='income'."
        )
    solver = model.solver if isinstance(model.solver, str) else type(model.solver).__name__
    if solver in ("objective", "output", "ObjectivePerturbation", "OutputPerturbation"):
        raise InvalidParameter(
            f"Expected a solver by gradients for a table in files, got {solver!r}: it needs sums of floats, which are "
            "not the same wherever they are taken. Use solver='auto', or read the table into memory."
        )
    for name, given in (("sample_weight", sample_weight), ("groups", groups), ("inference", model.inference or None)):
        if given is not None:
            raise InvalidParameter(
                f"Expected no {name} for a table in files, got one: that is done for tables in memory. Leave it out, "
                "or read the table into memory."
            )
