"""Whose row it is: labels of any kind to whole numbers, and one row of each person where one must do."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import InvalidParameter
from privet.randomness import Random, integers_below

__all__ = ["label_of", "number_of", "one_row_each", "person_numbers", "text_of"]

IntArray = NDArray[np.int64]

_NOBODY = frozenset({"nan", "na", "n/a", "<na>", "nat", "none", "null"})
"""What a missing label looks like once a frame or a file has made text of it."""


def person_numbers(labels: Any) -> IntArray:
    """A whole number for each row, the same for rows of one person: 0, 1, … without gaps. Private.

    Promise: the numbers follow the sorted labels, so the order of the rows does not show in them. Labels are compared
    as text without surrounding blanks, numbers by their value, so 7, 7.0, "7" and "07" are one person: two people taken
    for one are still protected, one taken for two is not. A row without a label (None, NaN, "", -1, or a text such as
    "nan", "NA" or "null") gets -1: it may be anybody's, so whoever bounds a person's share leaves it out.

    Parameters
    ----------
    labels : one label a row, numbers or texts; private

    Examples
    --------
    >>> person_numbers(["bob", "ann", None, "bob"])
    array([ 1,  0, -1,  1])
    """
    cells = labels if isinstance(labels, list | tuple) else _array(labels)
    seen: dict[str, int] = {}
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub" and not np.ma.isMaskedArray(cells):
        values, places = np.unique(cells, return_inverse=True)
        codes = np.array([_code(cell, seen) for cell in values.tolist()], dtype=np.int64)[places.reshape(-1)]
    else:
        listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
        codes = np.fromiter((_code(cell, seen) for cell in listed), dtype=np.int64, count=len(listed))
    ranks = np.full(len(seen) + 1, -1, dtype=np.int64)
    ranks[[seen[name] for name in sorted(seen)]] = np.arange(len(seen))
    return ranks[codes]


def one_row_each(people: IntArray, random: Random) -> IntArray:
    """The places of one row of each person, drawn uniformly from that person's rows; in ascending order. Private.

    What must be learnt from one row a person is learnt from these: a person is then in at most one bin of a histogram,
    and holds at most one name of a column.

    Promise: the draws of different people are independent, so given those of all others, exchanging one person's rows
    exchanges one row. Rows of number -1 are never drawn.
    Theorem: docs/proofs/sums.md, section 8.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_voids_guarantee
    >>> one_row_each(np.array([0, 1, -1, 2, 1]), fixed_seed_voids_guarantee(1)).tolist()
    [0, 1, 3]
    """
    order = np.argsort(people, kind="stable")
    order = order[np.searchsorted(people[order], 0) :]
    sizes = np.bincount(people[order])
    starts = np.cumsum(sizes) - sizes
    picked = np.zeros(len(sizes), dtype=np.int64)
    for size in np.unique(sizes[sizes > 1]).tolist():
        alike = np.flatnonzero(sizes == size)
        picked[alike] = integers_below(random, size, len(alike))
    return np.sort(order[starts + picked])


def number_of(cell: Any) -> float:
    """One cell as a finite float; NaN if it is not one."""
    if not isinstance(cell, str | numbers.Real | Decimal | np.bool):
        return math.nan
    try:
        found = float(cell)
    except (ValueError, TypeError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def text_of(cell: Any) -> str | None:
    """One cell as a name: text without surrounding blanks, 3.0 as "3"; None if it is missing or no name."""
    if isinstance(cell, str):
        return cell.strip() or None
    if isinstance(cell, bool | np.bool):
        return str(bool(cell))
    if isinstance(cell, numbers.Integral):
        return _digits(int(cell))
    if isinstance(cell, numbers.Real | Decimal):
        value = number_of(cell)
        if math.isnan(value):
            return None
        return _digits(int(value)) if value.is_integer() and abs(value) < 2.0**63 else repr(value)
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace").strip() or None
    return None


def label_of(cell: Any) -> str | None:
    """One cell as the label of a person: as `text_of`, but a text that is a number as that number; None if missing."""
    text = text_of(cell)
    if text is None or text.lower() in _NOBODY:
        return None
    try:
        label = _digits(int(text)) or text
    except ValueError:
        value = number_of(text)
        if math.isnan(value):
            return text
        label = _digits(int(value)) or text if value.is_integer() else repr(value)
    return None if label == "-1" else label  # as frames, and `person_numbers` itself, number what is missing


def _code(cell: Any, seen: dict[str, int]) -> int:
    label = label_of(cell)
    return -1 if label is None else seen.setdefault(label, len(seen))


def _array(labels: Any) -> NDArray[Any]:
    """Labels as an array of one dimension; refuses, on its type and shape, what holds no labels."""
    array = np.ma.asanyarray(labels) if isinstance(labels, np.ma.MaskedArray) else np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "fiubOUS":
        raise InvalidParameter(
            f"Expected groups to be one label a row, numbers or texts, got {array.ndim} dimension(s) of type "
            f"{array.dtype.kind!r}: nobody's rows could be put together. Pass a column of ids, dates as text."
        )
    return array


def _digits(whole: int) -> str | None:
    return str(whole) if abs(whole) < 10**300 else None  # Python refuses to print the largest
