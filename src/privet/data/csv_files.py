"""CSV files, a block of rows at a time. One record of the file is one record, whatever its cells hold."""

import csv
import gzip
import re
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Memory, Numbers, RawNumbers, Reader
from privet.errors import InvalidParameter

_ROWS = 256  # in memory as text at a time; more would not fit the processor's cache, and take twice as long
_LONGEST = 2**31 - 1 if sys.platform == "win32" else sys.maxsize
_NO_TEXT = ("Cc", "Zl", "Zp")  # what Unicode says of control characters and line separators


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file by its path, with the sign that separates its cells.

    Examples
    --------
    >>> CsvFile("people.csv", sep=";")
    CsvFile(path='people.csv', sep=';')
    """

    path: str | PathLike[str]
    _: KW_ONLY
    sep: str = ","

    def __post_init__(self) -> None:
        sign = self.sep
        plain = isinstance(sign, str) and len(sign) == 1 and (sign == "\t" or sign.isprintable())
        if not plain or sign == '"' or sign.isalnum():
            raise InvalidParameter(f"""Expected sep to be one sign that stands between cells, got {sign!r}: no record
                could be told from others by it. Use ',', ';', '|' or a tab.""")


CsvPath = str | PathLike[str] | CsvFile
"""A path alone is of a file with commas."""


def as_csv(path: CsvPath) -> CsvFile:
    """The file with its sign."""
    return path if isinstance(path, CsvFile) else CsvFile(path)


def csv_header(path: CsvPath) -> list[str]:
    """The names in the first line of a file. That line is read alone: a quote left open in it ends with it.

    Refused is, without a word of it, a first line that is no text: of a file of another format it may hold anything.
    """
    return _first(as_csv(path))[0]


def csv_columns(path: CsvPath, readers: Mapping[str, Reader]) -> dict[str, NDArray[Any]]:
    """One array for each column that has a reader; each must be in the header."""
    parts: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, reader.dtype)] for name, reader in readers.items()}
    for pieces in _pieces(as_csv(path), readers):
        for kept, piece in zip(parts.values(), pieces, strict=True):
            kept.append(piece)
    return {name: np.concatenate(pieces) for name, pieces in parts.items()}


def csv_blocks(
    path: CsvPath, readers: Mapping[str, Reader], *, rows: int, letters: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """The same in blocks, in order; one without rows if there are none.

    A block has at most `rows` rows, some hundreds at least, and fewer once columns of texts hold that many `letters`.
    How long cells are decides where blocks end, but not what is read.
    """
    parts: list[list[NDArray[Any]]] = [[np.empty(0, reader.dtype)] for reader in readers.values()]
    texts = [place for place, reader in enumerate(readers.values()) if reader.dtype.kind == "O"]
    held = long = 0
    found = False
    for pieces in _pieces(as_csv(path), readers):
        for kept, piece in zip(parts, pieces, strict=True):
            kept.append(piece)
        held += len(pieces[0])
        long += sum(sum(map(len, pieces[place])) for place in texts)
        if held + _ROWS > rows or long >= letters:
            yield dict(zip(readers, map(np.concatenate, parts), strict=True))
            parts, held, long, found = [each[:1] for each in parts], 0, 0, True
    if held or not found:
        yield dict(zip(readers, map(np.concatenate, parts), strict=True))


def _pieces(file: CsvFile, readers: Mapping[str, Reader]) -> Iterator[list[NDArray[Any]]]:
    """An array for each reader, of some rows at a time."""
    present, end = _first(file)
    with _opened(file.path, end) as lines, _LIMIT.lifted():
        lines.readline()
        columns = [(present.index(name), _taking(reader)) for name, reader in readers.items()]
        records = _records(_rows(_lines(lines, end), file.sep), len(present))
        while block := list(islice(records, _ROWS)):
            cells = list(zip(*block, strict=True))
            yield [take(cells[place]) for place, take in columns]


def _taking(reader: Reader) -> Callable[[Sequence[str]], NDArray[Any]]:
    """How texts are read together, each by itself: numbers all at once where all are, which Python does far sooner."""
    one = Memory(reader.one).__getitem__

    def each(cells: Sequence[str]) -> NDArray[Any]:
        return np.fromiter(map(one, cells), dtype=reader.dtype, count=len(cells))

    def numbers(cells: Sequence[str]) -> NDArray[Any]:
        try:
            found = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:  # it quotes the first that is none
            found = None
        if found is None:
            return each(cells)
        found[np.isinf(found)] = np.nan
        return found

    return numbers if type(reader) in (Numbers, RawNumbers) else each


class _Limit:
    """Python's bound on the length of a cell, lifted while some file is read.

    A cell beyond it would end its record in the middle, and the rest would be read as records of its own; the bound
    is one for the whole process, so it is put back once the last reader of any thread is done.
    """

    def __init__(self) -> None:
        self._lock, self._readers, self._before = threading.Lock(), 0, 0

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Without a bound."""
        with self._lock:
            if not self._readers:
                self._before = csv.field_size_limit(_LONGEST)
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers:
                    csv.field_size_limit(self._before)


_LIMIT = _Limit()


def _records(rows: Any, width: int) -> Iterator[Sequence[str]]:
    """The rows, each of `width` cells: short ones are filled with empty cells, long ones cut.

    A blank line is no record, but in a file of one column, where it is one whose cell is missing.
    """
    for row in rows:
        if len(row) == width:
            yield row
        elif row or width == 1:
            yield [*row[:width], *[""] * (width - len(row))]


def _rows(lines: Iterator[str], sep: str) -> Iterator[list[str]]:
    """The cells of each record, which is a line, or several where a quoted cell goes on in the next.

    A quote is closed before the sign between cells or the end of a line; blanks may follow it. Where something else
    follows, or the file ends, it was left open by mistake, and ends with its own line: the next line is a record of its
    own. But if the file ends in the middle of a line, it was cut off there, and what is left of its last record is one
    record.
    """
    source, well_quoted = _Source(lines), _well_quoted(sep)
    for row in csv.reader(source, delimiter=sep):
        taken = source.taken
        source.taken, cut = [], source.ended and not taken[-1].endswith(("\r", "\n"))
        if len(taken) == 1 or cut or well_quoted("".join(taken)):
            yield row
        else:
            source.again += reversed(taken[1:])
            yield next(csv.reader(taken[:1], delimiter=sep))


def _well_quoted(sep: str) -> Callable[[str], Any]:
    """Whether the quotes of a record are closed where they may be."""
    blanks = " \t".replace(sep, "")
    cell = rf'(?:"(?:[^"]++|"")*+"[{blanks}]*+|(?!")[^{re.escape(sep)}\r\n]*+)'
    return re.compile(rf"{cell}(?:{re.escape(sep)}{cell})*+[\r\n]*+").fullmatch


class _Source:
    """Lines that remember which were taken, and can be put back; `ended` once more was asked for than there is."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.taken: list[str] = []
        self.again: list[str] = []
        self.ended = False

    def __iter__(self) -> "_Source":
        return self

    def __next__(self) -> str:
        line = self.again.pop() if self.again else next(self._lines, None)
        self.ended = line is None
        if line is None:
            raise StopIteration
        self.taken.append(line)
        return line


def _lines(lines: Any, end: str) -> Iterator[str]:
    """The lines of a file, as its first one ends; a line end of another kind inside one is a blank of its cell."""
    other = "\r" if end == "\n" else "\n"
    for line in lines:
        place = line.find(other)
        if place < 0 or line[place:] in ("\r\n", "\r", "\n"):
            yield line
        else:
            tail = "\r\n" if line.endswith("\r\n") else line[-1:]
            yield line.removesuffix(tail).replace(other, " ") + tail


def _first(file: CsvFile) -> tuple[list[str], str]:
    """The names in the first line, and how lines end, as that one does: no later cell can decide it."""
    with _opened(file.path, "") as lines:
        line = lines.readline()
    end = "\r" if line.endswith("\r") else "\n"
    text = line.rstrip("\r\n")
    # whether a carriage return in a quote ends the line or not, nothing says; nor does a separator of Unicode's
    if any(unicodedata.category(sign) in _NO_TEXT for sign in text.replace("\t", "")) or (
        end == "\r" and text.count('"') % 2
    ):
        raise InvalidParameter("""Expected a CSV file in UTF-8 whose first line names the columns, got control
            characters in that line, or a quote left open at a carriage return: rows could be taken for names. Save the
            table as CSV.""")
    with _LIMIT.lifted():
        return [name.strip() for name in next(csv.reader([text], delimiter=file.sep), [])], end


def _opened(path: str | PathLike[str], end: str) -> Any:
    """A text file, or one compressed by gzip if its name ends in .gz; bytes that are no UTF-8 raise nothing."""
    opener: Any = gzip.open if Path(path).suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", errors="replace", newline=end)
