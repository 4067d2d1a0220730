"""People's rows brought together: parts that hold whole people, in the order in which memory numbers them.

Two rounds of tasks on files. First each block of the source is dealt out to buckets by a hash of the rows' labels, in
one file with a batch for each bucket; then each bucket's batches become one file, with a number for each row of whose
it is. Only files that an answer names are read, so that a task that was run twice counts once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from privet.arrays import IntArray
from privet.data.columns import cells_of
from privet.data.people import ElsewherePeople, label_keys, person_numbers, row_counts
from privet.engines.cache import Cache
from privet.engines.engine import Engine, bunched
from privet.engines.part import Part
from privet.engines.raw_files import mapped_batch, named_only, write_batch, write_batches
from privet.engines.sources import CELLS, source_blocks, source_counts

_BYTES = 1 << 26  # of numbers that are held together
_MOST = 1 << 12  # buckets
_DEALT = ".dealt"


@dataclass(frozen=True, slots=True, repr=False)
class Deal:
    """Write columns of a source's rows to files of `folder`, with a batch for each bucket: which, in the rows' order.

    A row without a label is nobody's, and is left out. Buckets are in the order of the hashes.
    """

    columns: tuple[str, ...]
    groups: str
    buckets: int
    folder: str

    def __call__(self, parts: Sequence[Part]) -> list[Part]:
        found = []
        read = list(dict.fromkeys((*self.columns, self.groups)))
        for part in parts:
            part.check()
            blocks = source_blocks(part, read, rows=max(1 << 12, _BYTES // (8 * len(read))))
            found += [write_batches(self._dealt(frame), Path(self.folder), _DEALT) for frame in blocks]
            part.check()
        return found

    def _dealt(self, frame: Any) -> list[Any]:
        """The rows of each bucket, in order."""
        import pyarrow as pa

        known, keys = label_keys(cells_of(frame.column(self.groups), name="groups"))
        # the upper half of a hash times the number of buckets: monotone, so that buckets follow the hashes
        bucket = np.where(known, (keys >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32), self.buckets)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(self.buckets + 1))
        whole = _one_batch(frame)
        return [whole.take(pa.array(order[a:b])) for a, b in pairwise(edges.tolist())]

    def __repr__(self) -> str:
        return "Deal(...)"


@dataclass(frozen=True, slots=True, repr=False)
class Gather:
    """Write a bucket's rows to one file, with their people's numbers: which, and how many rows each person has."""

    dealt: tuple[Part, ...]
    columns: tuple[str, ...]
    groups: str
    people: str
    folder: str

    def __call__(self, buckets: Sequence[int]) -> list[tuple[Part, IntArray]]:
        return [self._one(bucket) for bucket in buckets]

    def _one(self, bucket: int) -> tuple[Part, IntArray]:
        import pyarrow as pa

        for part in self.dealt:
            part.check()
        rows = pa.Table.from_batches([mapped_batch(part, bucket) for part in self.dealt])
        numbers = person_numbers(rows.column(self.groups), hashed=True)
        rows = rows.select(list(self.columns)).append_column(self.people, pa.array(numbers))
        return write_batch(_one_batch(rows), Path(self.folder), CELLS), row_counts(numbers)

    def __repr__(self) -> str:
        return "Gather(...)"


@dataclass(frozen=True, slots=True, repr=False)
class PeopleParts:
    """Parts of whole people: how many each has, how many rows each of these has, and the column of their numbers."""

    parts: list[Part]
    counts: IntArray
    people: ElsewherePeople
    column: str
    cache: Cache


def people_parts(
    engine: Engine, parts: Sequence[Part], cache: Cache, *, columns: Sequence[str], groups: str
) -> "PeopleParts":
    """Columns of a source by people; nobody's rows are in no part.

    Promise: every person's rows are in one part, in the order of the source; people are in the order in which
    `person_numbers(..., hashed=True)` of all rows has them.
    """
    size = int(source_counts(parts).sum()) * 8 * max(1, len(columns))
    buckets = min(_MOST, max(engine.cores, -(-size // _BYTES)))
    people = "people"
    while people in columns:
        people += "_"

    def make(folder: Path) -> list[tuple[Part, IntArray]]:
        deal = Deal(tuple(columns), groups, buckets, str(folder))
        dealt = tuple(part for answer in engine.run(deal, bunched(parts, engine.cores)) for part in answer)
        gather = Gather(dealt, tuple(columns), groups, people, str(folder))
        found = [each for answer in engine.run(gather, bunched(range(buckets), engine.cores)) for each in answer]
        named_only(folder, [part for part, _ in found])
        return found

    found = cache.made(make)
    made = [Part(str(cache.folder / Path(part.path).name), part.fingerprint) for part, _ in found]
    sizes = [counts for _, counts in found]
    counts = np.array([len(each) for each in sizes], dtype=np.int64)
    return PeopleParts(made, counts, ElsewherePeople(np.concatenate(sizes)), people, cache)


def _one_batch(frame: Any) -> Any:
    """A table or a batch as one batch; texts by 64-bit offsets, so that none is too long to be put beside others."""
    import pyarrow as pa

    columns = [_wide(frame.column(place)) for place in range(frame.num_columns)]
    return pa.RecordBatch.from_arrays(columns, names=frame.schema.names)


def _wide(column: Any) -> Any:
    import pyarrow as pa

    held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(held)
    column = column if wide is None else column.cast(wide)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
