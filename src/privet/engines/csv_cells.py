"""CSV files, read once to files of cells by the one reader of CSV: numbers as numbers, texts as they are."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.data.cells import Numbers, Texts
from privet.data.csv_files import CsvFile, csv_blocks, csv_header
from privet.data.tables import check_header
from privet.engines.cache import Cache
from privet.engines.engine import Engine, bunched
from privet.engines.part import Fingerprint, Part
from privet.engines.raw_files import named_only, write_batch
from privet.engines.sources import CELLS, source_counts
from privet.errors import EngineFailure, InvalidParameter
from privet.privacy import check_delta

_BYTES = 1 << 25  # of numbers, or of texts, that are held together


@dataclass(frozen=True, slots=True, repr=False)
class ReadCells:
    """Write columns of CSV files to files of `folder`, a block of rows each: which, in the rows' order."""

    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    folder: str
    enough: float = math.inf
    """Rows of a file after which no more are read, as then the run is refused."""
    sep: str = ","

    def __call__(self, files: Sequence[Part]) -> list[Part]:
        return [part for file in files for part in self._one(file)]

    def _one(self, file: Part) -> list[Part]:
        file.check()
        readers: dict[str, Any] = {name: Numbers() for name in self.numbers} | {name: Texts() for name in self.texts}
        rows = max(1 << 12, _BYTES // (8 * len(readers)))
        found, said, held = list[Part](), "", 0
        try:
            blocks = csv_blocks(CsvFile(file.path, sep=self.sep), readers, rows=rows, letters=_BYTES)
            for block in blocks:
                batch = _batch(block, self.texts)
                found.append(write_batch(batch, Path(self.folder), CELLS))
                held += batch.num_rows
                if held > self.enough:
                    break
        except (OSError, EOFError, zlib.error) as error:  # of the disk, or of what was compressed
            said = type(error).__name__
        if said:  # out here, so that nothing is chained to it
            raise EngineFailure(f"""Expected to read {file.path!r} to its end, got {said}: it is cut off or damaged, so
                that records would be left out. Nothing was charged. Mend the file, then run again.""")
        file.check()
        return found

    def __repr__(self) -> str:
        return "ReadCells(...)"


def _batch(block: dict[str, Any], texts: Sequence[str]) -> Any:
    """Columns as a batch; each different text of a block is there once."""
    import pyarrow as pa

    columns = {
        name: pa.array(cells, type=pa.large_string()).dictionary_encode() if name in texts else pa.array(cells)
        for name, cells in block.items()
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def csv_parts(
    files: Sequence[str],
    engine: Engine,
    cache: Cache,
    *,
    columns: Sequence[str] | None = None,
    beside: Sequence[str] = (),
    texts: Sequence[str] = (),
    sep: str = ",",
    delta: float | None = None,
) -> list[Part]:
    r"""Columns of CSV files as parts: each file is read once, on the engine, into the folder of a cache.

    Promise: a cell is what the same file in memory has there: of a column of numbers the number that it reads as, else
    missing; of `texts` the text itself. No cell is refused, and none is told.

    Parameters
    ----------
    files : of one table, so with the same header; private, but for that
    columns, beside : which are read: those, or all of the header if None, and others beside them, each there once
    texts : those of them that are not numbers
    sep : the sign between cells
    delta : what a fit shall promise, where the number of rows is public: it is refused as soon as there are too many

    Examples
    --------
    >>> import tempfile
    >>> from privet.engines import Stream
    >>> from privet.engines.raw_files import mapped_batch
    >>> file, cache = Path(tempfile.mkdtemp()) / "people.csv", Cache(None)  # which must live as long as the parts
    >>> _ = file.write_text("age,job,note\n31,baker,a\nJane Doe,,b\n", encoding="utf-8")
    >>> (part,) = csv_parts([str(file)], Stream(), cache, columns=["age"], beside=["job"], texts=["job"])
    >>> mapped_batch(part).to_pylist()
    [{'age': 31.0, 'job': 'baker'}, {'age': nan, 'job': ''}]
    """
    opened = [CsvFile(file, sep=sep) for file in files]
    first = csv_header(opened[0])
    for file, other in zip(files[1:], opened[1:], strict=True):
        if csv_header(other) != first:
            raise InvalidParameter(f"""Expected CSV files of one table, with the same header, got {Path(file).name!r}
                with another than {Path(files[0]).name!r}: records would be mixed up. Convert the files first.""")
    names = dict.fromkeys((*(first if columns is None else columns), *beside))
    check_header(opened[0], list(names))
    if not names:
        raise InvalidParameter(f"""Expected a first line that names the columns, got none in {Path(files[0]).name!r}:
            there is nothing to learn from. Save the table as CSV, with a header.""")
    sources = [Part(file, Fingerprint.of(file)) for file in files]
    numbers, others = (tuple(name for name in names if (name in texts) is other) for other in (False, True))

    def make(folder: Path) -> list[Part]:
        job = ReadCells(numbers, others, str(folder), math.inf if delta is None else 1 / delta, sep)
        found = [part for answer in engine.run(job, bunched(sources, engine.cores)) for part in answer]
        if delta is not None:  # here, so that a folder in which rows are left out is never made whole
            check_delta(delta, int(source_counts(found).sum()), or_more=True)
        named_only(folder, found)
        return found

    return [Part(str(cache.folder / Path(part.path).name), part.fingerprint) for part in cache.made(make)]
