"""What a fit is given, read: whose row each is; and of a table in files where records are, and what is public."""

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.arrays import IntArray
from privet.data.cells import Numbers
from privet.data.columns import names_of
from privet.data.csv_files import CsvFile, as_csv
from privet.data.elsewhere import Elsewhere, ElsewhereRows
from privet.data.floats import FrameRows, vector
from privet.data.people import ElsewherePeople, person_numbers
from privet.data.tables import taken_out
from privet.engines.block_source import BlockSource
from privet.engines.blocks_of_rows import WEIGHT, FileRows, TargetColumn
from privet.engines.files import Files, as_files
from privet.engines.parted_glm import feature_columns
from privet.engines.people_parts import people_parts
from privet.engines.sources import source_counts, source_header
from privet.errors import InvalidParameter
from privet.estimators.outline import Size
from privet.estimators.preparing import Records
from privet.estimators.weights import Weights, record_weights
from privet.privacy import Neighbours
from privet.problems.grouped import numbered

_OF_ALL = ("auto", "fixed_hessian", "gradient", "FixedHessian")  # solvers without batches

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel


def in_files(X: Any) -> bool:
    """Whether a table is in files or on a cluster; a path with nothing there is refused."""
    found = as_files(X) is not None
    if not found and isinstance(X, str | PathLike | CsvFile):
        where = str(as_csv(X).path)
        raise InvalidParameter(
            f"Expected rows, or the path of CSV or Parquet files, got {where!r}, where none can be read: there is "
            "nothing to learn from. Check the path; files need pip install 'privet[tables]'."
        )
    return found


def by_name(X: Any, *given: Any) -> tuple[Any, ...]:
    """A frame without the columns that are given by name, and those columns in place of their names.

    Examples
    --------
    >>> import pyarrow as pa
    >>> X, y, weights = by_name(pa.table({"age": [31], "ill": ["no"]}), "ill", None)
    >>> X.schema.names, y.to_pylist(), weights
    (['age'], ['no'], None)
    """
    names = [each for each in given if isinstance(each, str)]
    if not names or names_of(X) is None:
        return X, *given
    rest, columns = taken_out(X, names)
    return rest, *(columns[each] if isinstance(each, str) else each for each in given)


def file_records(model: "PrivateLinearModel", X: Any, y: Any, sample_weight: Any, groups: Any) -> Records:
    """The records of a table in files, of which headers and, if it is public, their number are looked at."""
    check_for_files(model, y, sample_weight, groups)
    files: Files = as_files(X)  # type: ignore[assignment]  # the caller has asked
    reader = model._target_reader()
    beside = tuple(name for name in (y, sample_weight, groups) if name is not None)
    texts = (groups,) if isinstance(reader, Numbers) else (y, groups)
    counted = model.neighbours != "add_remove" and groups is None
    parts, cache = files.opened(beside=beside, texts=texts, delta=model.delta if counted else None)
    names = feature_columns(parts[0], None, y, sample_weight, groups)
    header = source_header(parts[0])
    FrameRows(header.select(list(names)))  # refuses columns that are declared to be no numbers
    opener = FileRows(names, y, TargetColumn(y, reader), weights=sample_weight)
    model._read_target(header.column(y), 0)  # refuses what is declared to be no target
    if sample_weight is not None:
        vector(header.column(sample_weight), 0, name="sample_weight")  # or no weight
    if groups is None:
        source = BlockSource(files.engine, parts, opener, source_counts(parts), cache)
    else:
        person_numbers(header.column(groups))  # refuses what is declared to be no label
        held = people_parts(files.engine, parts, cache.beside(), columns=(*names, y), groups=groups)
        opener = replace(opener, people=held.column)
        source = BlockSource(files.engine, held.parts, opener, held.counts, held.cache, held.people)
    model.feature_names_in_ = np.array(names, dtype=object)
    if source.records == 0 and model.neighbours != "add_remove":
        raise InvalidParameter(
            "Expected at least one row, and with groups one that is somebody's, got files without any: there is "
            "nothing to learn from."
        )
    given = None if sample_weight is None else Elsewhere(source, WEIGHT, source.records)
    weights = record_weights(given, source.records, most=model.max_weight)
    return records_elsewhere(model, *source.numbers(len(names)), weights, source.people)


def records_elsewhere(
    model: "PrivateLinearModel",
    rows: ElsewhereRows,
    target: Any,
    weights: Weights | None = None,
    people: ElsewherePeople | None = None,
) -> Records:
    """Rows and targets that are elsewhere, the latter as the model's own reader has read them, as records of a fit."""
    model.n_features_in_ = rows.shape[1]
    size = model._size(rows, rows.shape[0], people=people is not None, weighted=weights is not None)
    return Records(table=rows, target=target, weights=weights, people=people, size=size)


def journal_of(model: "PrivateLinearModel", X: Any, *columns: Any) -> dict[str, Any]:
    """What a fit is called, the journal that its files come with, if they do, and what must be the same to go on."""
    label = {"label": type(model).__name__}
    if not isinstance(X, Files):
        return label
    given = {name: value for name, value in model.get_params(deep=False).items() if name != "account"}
    return label | X.kept(repr((label, given, columns)))


def people_of(groups: Any, rows: int, neighbours: Neighbours) -> IntArray | None:
    """Whose row each is; None if every row stands for itself."""
    if groups is None:
        return None
    people = numbered(groups, rows, hashed=True)
    if neighbours != "add_remove" and people.max(initial=-1) < 0:
        raise InvalidParameter(
            "Expected groups to label at least one person, got no label that is a number or a text: there is "
            "nobody to learn from. Pass a column of ids, e.g. as text."
        )
    return people


def of_people(data: Records, people: IntArray | None) -> Records:
    """The records with people who have numbers already, and keep them: their rows are drawn in that order."""
    if people is None or data.people is not None:
        return data
    return replace(data, people=people, size=replace(data.size, records=int(people.max(initial=-1)) + 1, people=True))


def check_for_files(model: "PrivateLinearModel", y: Any, sample_weight: Any, groups: Any) -> None:
    """Refuse what is not done on files, before one is opened."""
    for name, what, given in (
        ("y", "labels", y),
        ("sample_weight", "weights", sample_weight),
        ("groups", "ids", groups),
    ):
        if not isinstance(given, str) and (name == "y" or given is not None):
            raise InvalidParameter(
                f"Expected {name} to be the name of a column for a table in files, got {type(given).__name__}: {what} "
                f"are in the files, beside their rows. Pass e.g. {name}='income'."
            )
    solver = model.solver if isinstance(model.solver, str) else type(model.solver).__name__
    if solver in ("objective", "output", "ObjectivePerturbation", "OutputPerturbation"):
        raise InvalidParameter(
            f"Expected a solver by gradients for a table in files, got {solver!r}: it needs sums of floats, which are "
            "not the same wherever they are taken. Use solver='auto', or read the table into memory."
        )
    if groups is None:
        return
    Size(records=1, columns=1, people=True, weighted=sample_weight is not None)  # which refuses both
    if solver not in _OF_ALL:
        raise InvalidParameter(
            f"Expected a solver that reads all records with groups in files, one of {', '.join(map(repr, _OF_ALL))}, "
            f"got {solver!r}: people are in another order there, so batches would not be those in memory. Use "
            "solver='auto'."
        )
