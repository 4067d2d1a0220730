"""Blocks of raw rows: from a source, decoded as they are asked for, or from mapped files of a sample."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privet.arrays import IntArray, Vector
from privet.data.cells import Numbers, Reader
from privet.data.columns import cells_of
from privet.data.elsewhere import THE_BLOCK, Later
from privet.data.floats import FrameRows
from privet.data.people import Picked, picked_rows, row_counts
from privet.engines.part import Part
from privet.engines.raw_files import mapped_batch, write_batch
from privet.engines.sources import source_blocks

_BYTES = 1 << 26  # of floats that are decoded together


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Block:
    """Some records: features, targets and weights, if there are any, as far as they were asked for. Private.

    With `people`, a number for each row of whose it is, the records are these, and all of each one's rows are here.
    """

    table: Any
    target: Any
    count: int
    weight: Any = None
    people: Any = None


def features_of(block: Block) -> Any:
    """The features, (records, columns)."""
    return block.table


def target_of(block: Block) -> Any:
    """The targets."""
    return block.target


def weight_of(block: Block) -> Any:
    """The weights, as they were given."""
    return block.weight


FEATURES, TARGET, WEIGHT = (Later(each, (THE_BLOCK,)) for each in (features_of, target_of, weight_of))
ALL = frozenset({features_of, target_of, weight_of})
Opener = Callable[[Part, frozenset[Any]], Iterator[Block]]
"""From a part to its blocks, in order, with what is needed of them; a value that can be sent."""


def needed(asked: Sequence[Any]) -> frozenset[Any]:
    """Which of `features_of`, `target_of` and `weight_of` some functions of a block will call; public.

    Examples
    --------
    >>> needed([Later(len, (TARGET,))]) == {target_of}
    True
    """
    found: set[Any] = set()
    for each in asked:
        if isinstance(each, Later):  # which may have been sent: the block is told by what it is, not by who it is
            found |= ALL if each.function is None else {each.function} if each.function in ALL else needed(each.given)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """The column of targets of a frame, by its reader; a value that can be sent."""

    name: str
    reader: Reader

    def __call__(self, frame: Any) -> Any:
        return self.reader.read(cells_of(frame.column(self.name), name="y"))


@dataclass(frozen=True, slots=True)
class FileRows:
    """Blocks of rows of a source; `rows` and `targets` make features and targets of a frame of some columns.

    What cannot be read is missing there: they are of the rooms that judge each cell alone. With a column of `people`, a
    part is one block; with `picked`, one row of each of them is, and stands for itself.
    """

    columns: tuple[str, ...]
    target: str
    targets: Callable[[Any], Any]
    rows: Callable[[Any], Any] = FrameRows
    weights: str | None = None
    people: str | None = None
    picked: Picked | None = None

    def __call__(self, part: Part, needs: frozenset[Any]) -> Iterator[Block]:
        part.check()
        names = [*self.columns] if features_of in needs else []
        weighted = self.weights is not None and weight_of in needs
        names += [self.target] if (target_of in needs or not names) and self.target not in names else []
        names += [self.weights] if weighted else []  # type: ignore[list-item]
        most = max(1 << 12, _BYTES // (8 * len(names))) if self.people is None else None
        for frame in source_blocks(part, names if self.people is None else [*names, self.people], rows=most):
            frame, people = (frame, None) if self.people is None else self._whose(frame)
            table = self.rows(frame.select(list(self.columns))) if features_of in needs else None
            target = self.targets(frame) if target_of in needs else None
            weight = Numbers().read(cells_of(frame.column(self.weights), name="sample_weight")) if weighted else None
            count = frame.num_rows if people is None else len(row_counts(people))
            yield Block(table=table, target=target, count=count, weight=weight, people=people)
        part.check()

    def _whose(self, frame: Any) -> tuple[Any, Any]:
        """A part's rows, or those that were picked, and whose they are."""
        people = frame.column(self.people).to_numpy()
        if self.picked is None:
            return frame, people
        return frame.take(picked_rows(people, self.picked.places)), None


def write_block(block: Block, folder: Path) -> Part:
    """Write a block's rows as they are to a file of `folder`; its name tells nothing."""
    import pyarrow as pa

    rows = np.ascontiguousarray(block.table[:], dtype=np.float64)
    columns = {
        "rows": pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1]),
        "target": pa.array(np.asarray(block.target, dtype=np.float64)),
    }
    if block.weight is not None:
        columns["weight"] = pa.array(block.weight)
    if block.people is not None:
        columns["people"] = pa.array(block.people)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return write_batch(batch, folder, ".raw")


def written_block(part: Part, needs: frozenset[Any]) -> Iterator[Block]:
    """The block that a file holds, mapped."""
    part.check()
    batch = mapped_batch(part)
    rows = batch.column("rows")
    table: Vector = rows.values.to_numpy().reshape(len(rows), rows.type.list_size)
    target = batch.column("target").to_numpy()
    weight, people = (batch.column(n).to_numpy() if n in batch.schema.names else None for n in ("weight", "people"))
    count = len(rows) if people is None else len(row_counts(people))
    yield Block(table=table, target=target, count=count, weight=weight, people=people)


def chosen(block: Block, places: IntArray) -> Block:
    """The records at some places of a block."""
    weight = None if block.weight is None else block.weight[places]
    return Block(table=block.table[places], target=block.target[places], count=len(places), weight=weight)
