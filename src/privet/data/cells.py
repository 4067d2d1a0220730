"""From cells of any kind to numbers and names. A cell that cannot be read counts as missing; nothing is said of it."""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
_REMEMBERED = 1 << 16
_LONG = 1 << 8  # letters of a text beyond which it is not remembered
_SMALL = 1000  # whole numbers below are counted, not sorted
_PLAIN = {float, int, bool, type(None)}


def number_of(cell: Any) -> float:
    """One cell as a finite float; NaN if it is not one. A text is the number it reads as: "3" is 3.

    Examples
    --------
    >>> [number_of(cell) for cell in (3, "3", True, "Jane Doe", None, 10**400, float("inf"))]
    [3.0, 3.0, 1.0, nan, nan, nan, nan]
    """
    kind = type(cell)
    if kind is float:
        return cell if math.isfinite(cell) else math.nan
    try:
        found = float(cell) if kind is int or kind is str or _may_be_number(cell) else math.nan
    except Exception:  # noqa: BLE001  # a cell's own methods may raise anything, and quote it
        return math.nan
    return found if math.isfinite(found) else math.nan


def _may_be_number(cell: Any) -> bool:
    """By its type; NumPy counts spans of time among the whole numbers."""
    return isinstance(cell, str | numbers.Real | Decimal | np.bool) and not isinstance(cell, np.timedelta64)


def text_of(cell: Any) -> str | None:
    """One cell as a name: text without surrounding blanks, 3.0 as "3"; None if it is missing or no name.

    Whole numbers are exact however large, so that no two ids are one.

    Examples
    --------
    >>> [text_of(cell) for cell in (" a ", 3.0, 2**53 + 1, True, None, {})]
    ['a', '3', '9007199254740993', 'True', None, None]
    """
    if isinstance(cell, str):
        return cell.strip() or None
    if isinstance(cell, bool | np.bool):
        return str(bool(cell))
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace").strip() or None
    value = number_of(cell)
    if isinstance(cell, numbers.Integral | Decimal) and (whole := _whole(cell, value)) is not None:
        return digits(whole)
    if math.isnan(value):
        return None
    return digits(int(value)) if value.is_integer() and abs(value) < 2.0**63 else repr(value)


def _whole(cell: Any, value: float) -> int | None:
    """A whole number exactly; None for another, for one too large to print, and for spans of time."""
    if math.isnan(value) or (isinstance(cell, Decimal) and cell != cell.to_integral_value()):
        return None
    return int(cell)


def digits(whole: int) -> str | None:
    """A whole number in print; None for the largest, which Python refuses to print."""
    return str(whole) if abs(whole) < 10**300 else None


@dataclass(frozen=True, slots=True)
class Coded:
    """Cells that are kept as codes into a list of values; -1 for a missing one."""

    values: Sequence[Any]
    codes: Indices


Cells = NDArray[Any] | Sequence[Any] | Coded


class Reader(ABC):
    """A way to turn cells into numbers; each result depends on its own cell only, and nothing is ever raised."""

    dtype: np.dtype[Any]
    missing: float
    """The result for a cell that is not there."""

    @abstractmethod
    def one(self, cell: Any) -> Any:
        """The result for one cell."""

    def read(self, cells: Cells) -> NDArray[Any]:
        """The results for many cells."""
        if isinstance(cells, Coded):
            return np.append(self.read(cells.values), self.missing).astype(self.dtype, copy=False)[cells.codes]
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub" and not np.ma.isMaskedArray(cells):
            return self._plain(cells)
        return self._objects(listed(cells))

    def _objects(self, cells: Sequence[Any]) -> NDArray[Any]:
        # One memory for each type: 1 == True would be one key, but is two names.
        answers = {kind: Memory(self.one).__getitem__ for kind in (str, int, bool)}

        def answer(cell: Any) -> Any:
            try:
                return answers.get(type(cell), self.one)(cell)
            except Exception:  # noqa: BLE001  # as in `number_of`
                return self.missing

        return np.fromiter(map(answer, cells), dtype=self.dtype, count=len(cells))

    def _plain(self, cells: NDArray[Any]) -> NDArray[Any]:
        few = _few(cells)
        if few is not None:
            return self.read(Coded(*few))
        values, inverse = np.unique(cells, return_inverse=True)
        return self.read(Coded(values.tolist(), inverse.reshape(-1)))


def _few(cells: NDArray[Any]) -> tuple[list[Any], Indices] | None:
    """The values that cells hold, and which each is, as `np.unique` says, but sooner; None if not small and whole."""
    if not cells.size:
        return None
    least, most = float(cells.min()), float(cells.max())
    if not (abs(least) < _SMALL and abs(most) < _SMALL):  # nor if one is NaN
        return None
    places = cells.astype(np.int64)
    if cells.dtype.kind == "f" and not np.array_equal(places, cells):
        return None
    places -= int(least)
    held = np.bincount(places) > 0
    values = (np.flatnonzero(held) + int(least)).astype(cells.dtype)
    return values.tolist(), (np.cumsum(held) - 1)[places]


class Numbers(Reader):
    """Cells as finite floats, NaN for all that is none.

    Examples
    --------
    >>> Numbers().read(["3", "Jane Doe", None, 2, float("inf")])
    array([ 3., nan, nan,  2., nan])
    """

    dtype = np.dtype(np.float64)
    missing = math.nan

    def one(self, cell: Any) -> float:
        return number_of(cell)

    def _plain(self, cells: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            found = cells.astype(np.float64)
        found[np.isinf(found)] = np.nan
        return found

    def _objects(self, cells: Sequence[Any]) -> NDArray[Any]:
        try:
            if set(map(type, cells)) <= _PLAIN:
                return self._plain(np.array(cells, dtype=np.float64))
        except Exception:  # noqa: BLE001, S110  # e.g. a whole number beyond floats; below, each is judged alone
            pass
        return super()._objects(cells)


class RawNumbers(Numbers):
    """As `Numbers`, but an array of numbers stays what it is: whoever uses it counts infinite ones as missing.

    Examples
    --------
    >>> RawNumbers().read(np.array([3, 2], dtype=np.int8)).dtype, RawNumbers().read(["3", "Jane Doe"])
    (dtype('int8'), array([ 3., nan]))
    """

    def _plain(self, cells: NDArray[Any]) -> NDArray[Any]:
        return cells


class Texts(Reader):
    """Cells of a file, which are texts, as they are, to be read later. Private.

    Examples
    --------
    >>> Texts().read([" a", ""]).tolist()
    [' a', '']
    """

    dtype = np.dtype(object)
    missing = math.nan

    def one(self, cell: Any) -> Any:
        return cell


class Codes(Reader):
    """Cells as positions in a public code book: -1 for a missing cell, `other` for a name that is not listed.

    Examples
    --------
    >>> Codes(("a", "b")).read(["a", " b ", "Jane Doe", None])
    array([ 0,  1, -1, -1])
    """

    dtype = np.dtype(np.int64)
    missing = -1

    def __init__(self, names: Sequence[str], *, other: int = -1) -> None:
        self._places: Mapping[str, int] = {name: place for place, name in enumerate(names)}
        self._other = other

    def one(self, cell: Any) -> int:
        text = text_of(cell)
        return -1 if text is None else self._places.get(text, self._other)


class Names(Reader):
    """Cells as positions in the list of names met so far; -1 for a missing cell. Private, both.

    Examples
    --------
    >>> reader = Names()
    >>> reader.ranked(reader.read(["b", "a", None, " b"]))
    (['a', 'b'], array([ 1,  0, -1,  1]))
    """

    dtype = np.dtype(np.int64)
    missing = -1

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def one(self, cell: Any) -> int:
        text = text_of(cell)
        return -1 if text is None else self._seen.setdefault(text, len(self._seen))

    def ranked(self, codes: Indices) -> tuple[list[str], Indices]:
        """The names that some cell holds, sorted, and the cells' positions among those: free of the rows' order."""
        names = list(self._seen)
        order = sorted(np.unique(codes[codes >= 0]).tolist(), key=lambda code: self._rank(names[code]))
        ranks = np.full(len(names) + 1, -1, dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return [names[code] for code in order], ranks[codes]

    def _rank(self, name: str) -> Any:
        """By what names are sorted."""
        return name


class Memory(dict[Any, Any]):
    """Answers of a function to cells of one type, each worked out once, as long as they are few enough to keep."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, str) and len(key) > _LONG:
            return self._function(key)
        if len(self) >= _REMEMBERED:
            self.clear()
        answer = self[key] = self._function(key)
        return answer


def listed(cells: NDArray[Any] | Sequence[Any]) -> Sequence[Any]:
    """The cells as plain Python objects; what an array of dates or records holds is neither number nor name."""
    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype.kind not in "OUSTfiub":
        return [None] * len(cells)
    found: list[Any] = cells.tolist()  # None where a masked array is masked
    return [text_of(cell) for cell in found] if cells.dtype.kind == "S" else found
