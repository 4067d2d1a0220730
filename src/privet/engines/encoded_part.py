"""A part's problem as an Arrow file of 16-bit rows: written once, mapped into memory, never copied."""

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from privet.arrays import Vector
from privet.engines.part import Fingerprint, Part, no_room
from privet.errors import EngineFailure, InvalidParameter
from privet.geometry import whole_space
from privet.losses import Loss, Ridge
from privet.problems import GroupedProblem, LinearProblem
from privet.sums import People, Table

_MOST_OPEN = 4096  # maps that a process keeps open; they hold no memory of its own
_VERSION = b"2"
_SCALE = ("step", "row_norm", "reach")  # numbers of a table, public


def write_part(problem: LinearProblem | GroupedProblem, path: Path) -> Part:
    """Write a part's rows, norms and labels to `path`, for its owner alone; what is there is whole or not there.

    Examples
    --------
    >>> import tempfile
    >>> from privet import glm
    >>> folder = Path(tempfile.mkdtemp())
    >>> part = write_part(glm("logistic", [[0.6, 0.8]], [1], row_norm=1.0), folder / "0.arrow")
    >>> open_part(part, problem_loss := glm("logistic", [[1.0]], [1], row_norm=1.0).loss).records
    1
    """
    import pyarrow as pa

    if isinstance(problem, GroupedProblem):
        table, labels, people = problem.split
        first = np.zeros(people.table.shape[0], dtype=np.int8)
        first[people.starts[:-1]] = 1
        several: Any = (people.table, people.labels, first)
    else:
        table, labels, several = problem.table, problem.labels, None
    if table.is_sparse:
        raise InvalidParameter("""Expected dense rows, got sparse ones: parts are files of 16-bit numbers, one for each
            column. Use a table of fewer columns, or one that fits in memory.""")
    known = {b"privet": _VERSION, **{name.encode(): getattr(table, name).hex().encode() for name in _SCALE}}
    batches = [_batch(pa, table, labels, None if several is None else np.zeros(table.shape[0], dtype=np.int8), known)]
    if several is not None:
        batches.append(_batch(pa, several[0], several[1], several[2], known))
    half = path.with_name(path.name + ".tmp")
    try:
        with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            with pa.ipc.new_file(file, batches[0].schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise no_room(path.parent, error) from None
    return Part(str(path), Fingerprint.of(str(path)))


def _batch(pa: Any, table: Table, labels: Vector, first: Any, known: dict[bytes, bytes]) -> Any:
    """Rows as a batch; each column's memory is one array."""
    d = table.shape[1]

    def listed(values: Any, width: int) -> Any:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), width)

    columns = {"units": listed(table.units, d), "inverse_norms": pa.array(table.inverse_norms)}
    if table.lengths is not None:
        columns["lengths"] = pa.array(table.lengths)
    columns["labels"] = pa.array(labels) if labels.ndim == 1 else listed(labels, labels.shape[1])
    if first is not None:
        columns["first"] = pa.array(first)
    made = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return made.replace_schema_metadata(known)


_OPEN: OrderedDict[Part, tuple[Any, ...]] = OrderedDict()
_TURN = threading.Lock()


def open_part(part: Part, loss: Loss) -> LinearProblem | GroupedProblem:
    """The problem of a part's records, mapped from its file; refuses a file that was changed. Private."""
    part.check()
    with _TURN:
        found = _OPEN.get(part) or _mapped(part)
        _OPEN[part] = found
        _OPEN.move_to_end(part)
        while len(_OPEN) > _MOST_OPEN:
            _OPEN.popitem(last=False)
    kept: dict[str, Any] = {"domain": whole_space(), "ridge": Ridge(alpha=0.0)}
    table, labels, *people = found
    if people:
        return GroupedProblem(loss, table, labels, people[0], **kept)
    return LinearProblem(loss, table, labels, **kept)


def close_parts() -> None:
    """Let go of all maps, e.g. before their files are deleted."""
    _OPEN.clear()


def _mapped(part: Part) -> tuple[Any, ...]:
    """Rows and labels; and of a table of people, the rows of those with several."""
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(pa.memory_map(part.path))
        known = reader.schema.metadata or {}
        if known.get(b"privet") != _VERSION:
            raise ValueError
        scale = {name: float.fromhex(known[name.encode()].decode()) for name in _SCALE}
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    except (OSError, ValueError, KeyError, pa.ArrowException):
        raise EngineFailure(f"""Expected a part written by this version of privet, got {part.path!r}: it cannot be read.
            Encode the table again.""") from None
    found = [_table(batch, scale) for batch in batches]
    if len(found) == 1:
        return found[0]
    rows, labels = found[1]
    first = batches[1].column("first").to_numpy(zero_copy_only=False)
    return *found[0], People(rows, labels, np.append(np.flatnonzero(first), len(first)))


def _table(batch: Any, scale: dict[str, Any]) -> tuple[Table, Vector]:
    """A batch's memory as arrays."""

    def array(name: str) -> Any:
        column = batch.column(name)
        if not hasattr(column.type, "list_size"):
            return column.to_numpy()
        return column.values.to_numpy().reshape(len(column), column.type.list_size)

    lengths = array("lengths") if "lengths" in batch.schema.names else None
    return Table(array("units"), array("inverse_norms"), lengths=lengths, **scale), array("labels")
