"""Whose row it is: labels of any kind to whole numbers, and one row of each person where one must do."""

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Cells, Names, digits, number_of, text_of
from privet.data.columns import cells_of
from privet.data.tables import read
from privet.randomness import Random, integers_below

IntArray = NDArray[np.int64]

_NOBODY = frozenset({"nan", "na", "n/a", "<na>", "nat", "none", "null"})
"""What a missing label looks like once a frame or a file has made text of it."""


def person_numbers(labels: Any, *, hashed: bool = False) -> IntArray:
    """A whole number for each row, the same for rows of one person: 0, 1, … without gaps. Private.

    Promise: the numbers follow the sorted labels, so the order of the rows does not show in them. Labels are compared
    as text without surrounding blanks, numbers by their value, so 7, 7.0, "7" and "07" are one person: two people taken
    for one are still protected, one taken for two is not. A row without a label (None, NaN, "", -1, or a text such as
    "nan", "NA" or "null") gets -1: it may be anybody's, so whoever bounds a person's share leaves it out.

    Parameters
    ----------
    labels : one label a row, numbers or texts; private
    hashed : number people in the order of a hash of their labels, as they are in a table in parts

    Examples
    --------
    >>> person_numbers(["bob", "ann", None, "bob"])
    array([ 1,  0, -1,  1])
    """
    reader = _Labels(hashed=hashed)
    return reader.ranked(reader.read(cells_of(labels, name="groups")))[1]


def grouped_by(table: Any, column: str, *, hashed: bool = False) -> IntArray:
    """As `person_numbers`, of a column of a table.

    Examples
    --------
    >>> grouped_by({"who": ["bob", "ann", "bob"], "age": [31, 44, 31]}, "who")
    array([1, 0, 1])
    """
    reader = _Labels(hashed=hashed)
    return reader.ranked(read(table, {column: reader})[column])[1]


def one_row_each(people: Any, random: Random) -> Any:
    """The places of one row of each person, drawn uniformly from that person's rows; in ascending order. Private.

    Of `ElsewherePeople`, which rows they are is `Picked`, to be looked up where they are.

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
    if isinstance(people, ElsewherePeople):
        return Picked(_picks(people.sizes, random))
    return picked_rows(people, _picks(row_counts(people), random))


class ElsewherePeople:
    """Whose rows they are, of rows that are elsewhere: how many each person has, in order of their numbers. Private.

    Examples
    --------
    >>> len(ElsewherePeople(np.array([2, 1])))
    2
    """

    def __init__(self, sizes: IntArray) -> None:
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return "ElsewherePeople(private)"


class Picked:
    """One row of each person, of rows that are elsewhere: which among that person's own. Private."""

    def __init__(self, places: IntArray) -> None:
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return "Picked(private)"


def row_counts(people: IntArray) -> IntArray:
    """How many rows each person has; nobody's are not counted.

    Examples
    --------
    >>> row_counts(np.array([0, 1, -1, 1])).tolist()
    [1, 2]
    """
    return np.bincount(people[people >= 0])


def _picks(sizes: IntArray, random: Random) -> IntArray:
    """For each person, who has so many rows, one of them, uniformly and by itself."""
    picked = np.zeros(len(sizes), dtype=np.int64)
    for size in np.unique(sizes[sizes > 1]).tolist():
        alike = np.flatnonzero(sizes == size)
        picked[alike] = integers_below(random, size, len(alike))
    return picked


def picked_rows(people: IntArray, picked: IntArray) -> IntArray:
    """The places, in ascending order, of the row of each person that is at a given place among that person's own.

    Examples
    --------
    >>> picked_rows(np.array([0, 1, -1, 1]), np.array([0, 1])).tolist()
    [0, 3]
    """
    order = np.argsort(people, kind="stable")
    order = order[np.searchsorted(people[order], 0) :]
    sizes = row_counts(people)
    return np.sort(order[np.cumsum(sizes) - sizes + picked])


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


def label_keys(cells: Cells) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    """Which cells are labels, and a hash of each label, by which people are numbered. Private.

    Examples
    --------
    >>> known, keys = label_keys(["7", 7.0, None])
    >>> known.tolist(), bool(keys[0] == keys[1])
    ([True, True, False], True)
    """
    reader = _Labels()
    codes = reader.read(cells)
    keys = np.array([*map(_key, reader._seen), 0], dtype=np.uint64)
    return codes >= 0, keys[codes]


def _key(label: str) -> int:
    raw = hashlib.blake2b(label.encode("utf-8", errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw, "little")


class _Labels(Names):
    """Cells as labels of people, in their own order or in that of their hashes."""

    def __init__(self, *, hashed: bool = False) -> None:
        super().__init__()
        self._hashed = hashed

    def one(self, cell: Any) -> int:
        label = label_of(cell)
        return -1 if label is None else self._seen.setdefault(label, len(self._seen))

    def _rank(self, name: str) -> Any:
        return (_key(name), name) if self._hashed else name
