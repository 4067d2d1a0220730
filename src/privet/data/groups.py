"""Which rows belong to one person."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Names
from privet.data.people import label_of
from privet.data.tables import cells_of, read

__all__ = ["group_indices", "grouped_by"]


def group_indices(ids: Any) -> NDArray[np.int64]:
    """A whole number for each row, the same for rows of one person: 0, 1, … without gaps. Private.

    Promise: the numbers follow the sorted ids, so the order of the rows does not show in them; ids are compared as
    text, so 7, 7.0 and "7" are one person (two people taken for one are still protected, one taken for two is not).
    A row without an id gets -1: it can be nobody's, and whoever bounds a person's share must leave it out.
    As `privet.data.people.person_numbers`, for columns of any frame.

    Parameters
    ----------
    ids : one id a row, of any kind; private

    Examples
    --------
    >>> group_indices(["bob", "ann", None, "bob"])
    array([ 1,  0, -1,  1])
    """
    reader = _Labels()
    return reader.ranked(reader.read(cells_of(ids)))[1]


def grouped_by(table: Any, column: str) -> NDArray[np.int64]:
    """As `group_indices`, of a column of a table."""
    reader = _Labels()
    return reader.ranked(read(table, {column: reader})[column])[1]


class _Labels(Names):
    """Cells as labels of people."""

    def one(self, cell: Any) -> int:
        label = label_of(cell)
        return -1 if label is None else self._seen.setdefault(label, len(self._seen))
