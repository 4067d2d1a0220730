"""Labels of classes: each judged alone, so that an odd one among them changes no other."""

import math
import numbers
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Cells, Coded, Reader, listed, number_of, text_of
from privet.data.columns import cells_of
from privet.data.floats import check_length


def labels(y: Any, rows: int | None = None, *, name: str = "y") -> NDArray[Any]:
    """One label a record, of whatever kind; an array of numbers stays one, all else is an array of objects. Private.

    Promise: each label is what it was given as; no common type is made of them, so a text, bytes or a truth value among
    whole numbers leaves those whole numbers. A missing one is None or NaN. Refused are, by their declared type, dates
    and complex numbers; another shape; and with `rows`, another length, which is not told.

    Parameters
    ----------
    y : an array, a list, a column of a frame, or a table of one column; private
    rows : how many records there are
    name : what errors call it; public

    Examples
    --------
    >>> labels([0, 1, "Jane Doe", True])
    array([0, 1, 'Jane Doe', True], dtype=object)
    >>> labels(np.array([0, 1, 1]))
    array([0, 1, 1])
    """
    cells = _cells(y, rows, name)
    if isinstance(cells, Coded):
        return _objects([*cells.values, None])[cells.codes]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiubO" and not np.ma.isMaskedArray(cells):
        return cells
    return _objects(list(listed(cells)))


def places(y: Any, classes: Any, rows: int | None = None, *, name: str = "y") -> NDArray[np.float64]:
    """Each label's place in a public list of classes; NaN for one not in it, whose record is zeroed out. Private.

    Promise: a label's place depends on that label and the list alone. Numbers are compared by value, and False and True
    are the numbers 0 and 1 in lists, arrays and frames alike: 7, 7.0 and a 7 of NumPy's are one label, True is 1. Texts
    are compared as they are, bytes as the text they spell. What is in no class so may be in one as a name: without
    surrounding blanks, and a number and the text that spells it are one, as a frame or an array in which one label is a
    text may have made texts of all.
    Edges: of classes that are equal the first counts. What is blank, or neither number nor text, is no label.

    Parameters
    ----------
    y : labels, as in `labels`; private
    classes : the list of classes, numbers or texts; public
    rows, name : as in `labels`

    Examples
    --------
    >>> places([7, "no", 8.0, "8", None, [7, 8]], [7, 8])
    array([ 0., nan,  1.,  1., nan, nan])
    >>> places(["no", None, "Jane Doe", "yes"], ["no", "yes"])
    array([ 0., nan, nan,  1.])
    """
    return class_book(classes).read(_cells(y, rows, name))


def class_list(y: Any, *, name: str = "y") -> NDArray[Any]:
    """The classes that the labels hold, sorted, as `np.unique` of labels of one kind. Private, unless declared public.

    Promise: what is missing or neither number nor text is left out, and where numbers and texts are mixed, those that
    fewer records hold; so one odd label among others leaves the list as it is.
    The type is what most of the labels have.

    Parameters
    ----------
    y, name : labels, as in `labels`; private

    Examples
    --------
    >>> class_list([1, 0, "Jane Doe", 1, None, float("nan")])
    array([0, 1])
    >>> class_list(["yes", "no", "yes", 3]).tolist()
    ['no', 'yes']
    """
    cells = _cells(y, None, name)
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub" and not np.ma.isMaskedArray(cells):
        values = np.unique(cells)
        return np.asarray(values[np.isfinite(values)])
    reader = _Met()
    codes = reader.read(cells)
    counts = np.bincount(codes[codes >= 0], minlength=len(reader.met)).tolist()
    met = [(key, kind, count) for (key, kind), count in zip(reader.met, counts, strict=True) if count]
    texts = sum(count for _, kind, count in met if kind == "text")
    if 2 * texts > sum(count for *_, count in met):
        return np.array(sorted({key for key, kind, _ in met if kind == "text"}))
    kinds: Counter[str] = Counter()
    for _, kind, count in met:
        kinds[kind] += count
    return _typed(sorted({key for key, kind, _ in met if kind != "text"}), kinds)


def _typed(found: list[Any], kinds: Counter[str]) -> NDArray[Any]:
    """Numbers in the type that most of them came in, if it holds them all."""
    usual = max(("int", "bool", "float"), key=lambda kind: kinds[kind])
    if usual == "bool" and set(found) <= {0, 1}:
        return np.array(found, dtype=bool)
    if usual != "float" and all(key == int(key) for key in found):
        return np.array([int(key) for key in found], dtype=None if found else np.int64)
    return np.array([float(key) for key in found], dtype=np.float64)


def class_book(classes: Any) -> Reader:
    """The reader of labels by a public list of classes: `places` is what it reads.

    Examples
    --------
    >>> class_book(["no", "yes"]).read(["yes", "Jane Doe"])
    array([ 1., nan])
    """
    return _Book(labels(classes, name="classes").tolist())


class _Book(Reader):
    """Where each class stands in the list: found as what it is, or else by name."""

    dtype = np.dtype(np.float64)
    missing = math.nan

    def __init__(self, classes: list[Any]) -> None:
        names: dict[Any, float] = {}
        known: dict[Any, float] = {}
        for place, label in reversed(list(enumerate(classes))):
            names |= dict.fromkeys((text_of(label), number_of(label)), float(place))
            known[_key(label)] = float(place)
        # neither None nor NaN is a label; NaN would be found by its identity
        self._places = {key: place for key, place in (names | known).items() if key is not None and key == key}

    def one(self, cell: Any) -> float:
        for found in (_key, text_of, number_of):
            place = self._places.get(found(cell))  # None and NaN are no key
            if place is not None:
                return place
        return math.nan


class _Met(Reader):
    """Labels as positions in the list of those met so far, each with its kind; -1 for a missing one."""

    dtype = np.dtype(np.int64)
    missing = -1

    def __init__(self) -> None:
        self.met: dict[tuple[Any, str], int] = {}

    def one(self, cell: Any) -> int:
        key = _key(cell)
        return -1 if key is None else self.met.setdefault((key, _kind(cell)), len(self.met))


def _cells(y: Any, rows: int | None, name: str) -> Cells:
    """Labels as cells; refused by declared type, shape and length."""
    cells = cells_of(y, name=name)
    check_length(cells, rows, name)
    return cells


def _key(cell: Any) -> Any:
    """What a label is compared by: a finite number, or a text; None if it is neither."""
    if isinstance(cell, str | bytes):
        text = cell if isinstance(cell, str) else cell.decode("utf-8", errors="replace")
        return str(text) if text.strip() else None
    value = number_of(cell)
    if math.isnan(value):
        return None
    return int(cell) if isinstance(cell, numbers.Integral | np.bool) else cell if isinstance(cell, Decimal) else value


def _kind(cell: Any) -> str:
    if isinstance(cell, str | bytes):
        return "text"
    if isinstance(cell, bool | np.bool):
        return "bool"
    return "int" if isinstance(cell, numbers.Integral) else "float"


def _objects(cells: list[Any]) -> NDArray[Any]:
    return np.fromiter(cells, dtype=object, count=len(cells))
