"""Whose row it is: labels of any kind to whole numbers, and one row of each person where one must do."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Names, digits, number_of, text_of
from privet.data.columns import cells_of
from privet.data.tables import read
from privet.randomness import Random, integers_below

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
    reader = _Labels()
    return reader.ranked(reader.read(cells_of(labels, name="groups")))[1]


def grouped_by(table: Any, column: str) -> IntArray:
    """As `person_numbers`, of a column of a table.

    Examples
    --------
    >>> grouped_by({"who": ["bob", "ann", "bob"], "age": [31, 44, 31]}, "who")
    array([1, 0, 1])
    """
    reader = _Labels()
    return reader.ranked(read(table, {column: reader})[column])[1]


def one_row_each(people: IntArray, random: Random) -> IntArray:
    """The places of one row of each person, drawn uniformly from that person's rows; in ascending order. Private.

    What must be learnt from one row a person is learnt from these: a person is then in at most one bin of a histogram,
    and holds at most one name of a column.

    Promise: the draws of different people are independent, so given those of all others, replacing one person's rows
    replaces one row. Rows of number -1 are never drawn.
    Theorem: docs/proofs/sums.md, section 8.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> one_row_each(np.array([0, 1, -1, 2, 1]), fixed_seed_invalidates_guarantee(1)).tolist()
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


def label_of(cell: Any) -> str | None:
    """One cell as the label of a person: as `text_of`, but a text that is a number as that number; None if missing."""
    text = text_of(cell)
    if text is None or text.lower() in _NOBODY:
        return None
    try:
        label = digits(int(text)) or text
    except ValueError:
        value = number_of(text)
        if math.isnan(value):
            return text
        label = digits(int(value)) or text if value.is_integer() else repr(value)
    return None if label == "-1" else label  # as frames, and `person_numbers` itself, number what is missing


class _Labels(Names):
    """Cells as labels of people."""

    def one(self, cell: Any) -> int:
        label = label_of(cell)
        return -1 if label is None else self._seen.setdefault(label, len(self._seen))
