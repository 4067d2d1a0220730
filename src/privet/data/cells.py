"""From cells of any kind to numbers and names. A cell that cannot be read counts as missing; nothing is said of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.people import number_of, text_of

__all__ = ["Cells", "Coded", "Codes", "Memory", "Names", "Numbers", "Reader", "number_of", "text_of"]

Indices = NDArray[np.int64]


_REMEMBERED = 1 << 16


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
        listed = _listed(cells)
        # Only texts are remembered: 1 == True would be one key, but is two names.
        texts = set(map(type, listed)) <= {str, type(None)}
        function = Memory(self.one).__getitem__ if texts else self.one
        return np.fromiter(map(function, listed), dtype=self.dtype, count=len(listed))

    def _plain(self, cells: NDArray[Any]) -> NDArray[Any]:
        values, inverse = np.unique(cells, return_inverse=True)
        return self.read(Coded(values.tolist(), inverse.reshape(-1)))


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
        found[~np.isfinite(found)] = np.nan
        return found


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
        order = sorted(np.unique(codes[codes >= 0]).tolist(), key=lambda code: names[code])
        ranks = np.full(len(names) + 1, -1, dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return [names[code] for code in order], ranks[codes]


class Memory(dict[Any, Any]):
    """Answers of a function to texts, each worked out once, as long as they are few enough to keep."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __missing__(self, key: Any) -> Any:
        if len(self) >= _REMEMBERED:
            self.clear()
        answer = self[key] = self._function(key)
        return answer


def _listed(cells: NDArray[Any] | Sequence[Any]) -> Sequence[Any]:
    """The cells as plain Python objects; what an array of dates or records holds is neither number nor name."""
    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype.kind not in "OUSfiub":
        return [None] * len(cells)
    listed: list[Any] = cells.tolist()  # None where a masked array is masked
    return [text_of(cell) for cell in listed] if cells.dtype.kind == "S" else listed
