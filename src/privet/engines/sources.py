"""Where a table comes from that does not fit in memory: Parquet files by row groups, or files of cells."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from privet._progress import say_read
from privet.arrays import IntArray
from privet.engines.part import Fingerprint, Part
from privet.engines.raw_files import mapped_batch
from privet.errors import InvalidParameter
from privet.sums.blocks import most_threads

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder of files, a pattern, or several of them."""

PARQUET = (".parquet", ".pq", ".parq")
CSV = (".csv", ".csv.gz")
CELLS = ".cells"  # how files of cells end, which were read off CSV files
_ROWS = 1 << 22  # of a part, about
_Item = TypeVar("_Item")


def source_parts(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, whole: bool = False
) -> list[Part]:
    """The parts of a table in Parquet files: a file, a folder of them, a pattern, or several; row groups of some
    million rows each, or with `whole` one file each, as people's rows must be together.

    All files must have the same columns of the same types, which is public and read off their footers.

    Examples
    --------
    >>> source_parts("nothing/*.parquet")
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected Parquet or CSV files, got none at 'nothing/*.parquet': there is nothing \
to learn from. Pass a file, a folder of .parquet or .csv files, or a pattern.
    """
    files = table_files(paths)
    first, found = None, []
    for file in files:
        with _opened(file) as opened:
            first = opened.schema_arrow if first is None else first
            if not opened.schema_arrow.equals(first):
                raise InvalidParameter(f"""Expected Parquet files of one table, with the same columns and types, got
                    {Path(file).name!r} with others than {Path(files[0]).name!r}: records would be mixed up. Convert
                    the files first.""")
            print_of = Fingerprint.of(file)
            if whole:
                found.append(Part(file, print_of))
                continue
            sizes = [opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups)]
            found += [Part(file, print_of, groups) for groups in _runs(sizes)]
    return found


def _opened(file: str) -> Any:
    """The file, of which the footer was read; refuses, without a word of it, what is no Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise InvalidParameter(f"""Expected a Parquet file, got {Path(file).name!r}, which cannot be read as one
            ({type(error).__name__}): it is broken, or of another format. Convert it, or leave it out.""") from None


def parquet_table(file: str | os.PathLike[str]) -> Any:
    """All rows of a Parquet file, as an Arrow table. Private."""
    with _opened(os.fspath(file)) as opened:
        return opened.read()


def parquet_names(file: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of a Parquet file, which are public; no row is read."""
    with _opened(os.fspath(file)) as opened:
        return [str(name) for name in opened.schema_arrow.names]


def source_header(part: Part) -> Any:
    """The columns of the source, as an Arrow table of no rows; public."""
    import pyarrow.parquet as pq

    schema = mapped_batch(part).schema if part.path.endswith(CELLS) else pq.read_schema(part.path)
    return schema.empty_table()


def source_blocks(part: Part, columns: Sequence[str], *, rows: int | None = None) -> Iterator[Any]:
    """The columns of a part of the source as Arrow tables of at most so many rows; all in one for None. Private."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if part.path.endswith(CELLS):
        batch = mapped_batch(part).select(list(columns))
        size = max(1, batch.num_rows if rows is None else rows)
        for first in range(0, max(1, batch.num_rows), size):  # a part without rows is one of none, as below
            yield batch.slice(first, size)
        return
    with pq.ParquetFile(part.path, memory_map=True) as opened:
        groups = list(range(opened.metadata.num_row_groups) if part.groups is None else part.groups)
        if rows is None:
            yield opened.read_row_groups(groups, columns=list(columns))
            return
        found, whole = False, opened.metadata.num_rows
        done = sum(opened.metadata.row_group(i).num_rows for i in range(min(groups, default=0)))
        for batch in ahead(opened.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns))):
            found, done = True, done + batch.num_rows
            yield pa.table(batch)
            say_read(part.path, lambda: done / max(1, whole))  # noqa: B023  # asked at once
        if not found:  # a part without rows is one of none, not none at all
            yield opened.schema_arrow.empty_table().select(list(columns))


def ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """The same items; the next one is made in a thread while this one is used, where there may be several threads.

    Examples
    --------
    >>> list(ahead(range(3)))
    [0, 1, 2]
    """
    if most_threads() < 2:
        yield from items
        return
    rest, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, rest, end)
        while (found := coming.result()) is not end:
            coming = pool.submit(next, rest, end)
            yield found  # type: ignore[misc]  # which is not the end


def source_counts(parts: Sequence[Part]) -> IntArray:
    """How many rows each part has, by the footers; private under "add_remove"."""
    import pyarrow.parquet as pq

    found = []
    for part in parts:
        if part.path.endswith(CELLS):
            found.append(mapped_batch(part).num_rows)
            continue
        with pq.ParquetFile(part.path) as opened:
            known = opened.metadata
            groups = range(known.num_row_groups) if part.groups is None else part.groups
            found.append(sum(known.row_group(i).num_rows for i in groups))
    return np.array(found, dtype=np.int64)


def table_files(paths: Paths) -> list[str]:
    """The files, in the order of their names; of a folder, those that are Parquet by name, or else CSV."""
    many = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for each in (os.fspath(path) for path in many):
        if os.path.isdir(each):
            inside = sorted(str(p) for p in Path(each).iterdir() if not p.name.startswith(("_", ".")))
            found += [file for file in inside if file.endswith(PARQUET)] or [f for f in inside if f.endswith(CSV)]
        elif os.path.isfile(each) or not glob.has_magic(each):
            found += [each] * os.path.isfile(each)
        else:
            found += sorted(glob.glob(each))
    if not found or len(set(found)) < len(found):
        what = "none" if not found else "one of them twice"
        shown = ", ".join(repr(os.fspath(each)) for each in many[:3])
        raise InvalidParameter(f"""Expected Parquet or CSV files, got {what} at {shown}: there is nothing to learn from.
            Pass a file, a folder of .parquet or .csv files, or a pattern.""")
    return [os.path.abspath(file) for file in found]


def are_csv(files: Sequence[str]) -> bool:
    """Whether files are CSV, by their names, or where those do not say, as they do not begin as Parquet does; public.

    Examples
    --------
    >>> are_csv(["a.csv", "b.csv.gz"]), are_csv(["a.parquet"])
    (True, False)
    """
    kinds = {_is_csv(file) for file in files}
    if len(kinds) > 1:
        raise InvalidParameter("""Expected files of one format, got Parquet and others: records would be left out. Name
            those of one format, or convert the others.""")
    return kinds == {True}


def _is_csv(file: str) -> bool:
    if file.endswith(PARQUET + CSV):
        return file.endswith(CSV)
    with open(file, "rb") as opened:
        return opened.read(4) != b"PAR1"


def _runs(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Row groups next to each other, together of about a part's size."""
    found: list[list[int]] = [[]]
    rows = 0
    for group, size in enumerate(sizes):
        if found[-1] and rows + size > _ROWS:
            found.append([])
            rows = 0
        found[-1].append(group)
        rows += size
    return [tuple(run) for run in found if run]
