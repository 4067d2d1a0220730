"""Numbers of records that are not in memory: what is asked of them is worked out where they are, and only counts come.

A number a record, of a table in files or on a cluster, is written down as a function of a block of its records. Whoever
computes with it number by number writes down a longer function; nothing is read until something is counted.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from privet.errors import InvalidParameter

_EACH = frozenset({np.where, np.clip, np.nan_to_num})  # functions that work number by number, beside ufuncs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Later:
    """A function of what is given, where `THE_BLOCK` stands for a block of records; a value that can be sent.

    Examples
    --------
    >>> Later(max, (Later(len, (THE_BLOCK,)), 3)).of(["a", "b"])
    3
    """

    function: Callable[..., Any] | None
    given: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def of(self, block: Any) -> Any:
        """The function's value for a block. Private."""
        if self.function is None:
            return block
        given = (each.of(block) if isinstance(each, Later) else each for each in self.given)
        return self.function(*given, **self.named)


THE_BLOCK = Later(None)
"""The block itself."""


class Source(ABC):
    """Where records are that are not here. Each block of them is looked at by itself."""

    @abstractmethod
    def totals(self, asked: Sequence[Later]) -> list[NDArray[np.int64]]:
        """For each function, which must be of whole numbers, the sum over all blocks. Private."""

    def largest(self, asked: Later) -> float:
        """The largest value over all blocks of a function that has one value a block. Private."""
        raise NotImplementedError

    def at(self, picked: Any) -> "Source":
        """One row of each person, as `one_row_each` picks them: a source of records that are rows. Private."""
        raise NotImplementedError


class Elsewhere(NDArrayOperatorsMixin):
    """One number a record, of records that are elsewhere; private. Arithmetic on it is written down, not done.

    Examples
    --------
    >>> class Here(Source):
    ...     def totals(self, asked):
    ...         return [sum(each.of(block) for block in (np.array([1.0, 5.0]), np.array([2.0]))) for each in asked]
    >>> values = Elsewhere(Here(), THE_BLOCK, 3)
    >>> tallies([np.sum], [np.where((values - 1) / 2 > 0, 1, 0)]) == [2]
    True
    >>> values
    Elsewhere(private)
    """

    def __init__(self, source: Source, later: Later, length: int) -> None:
        self.source, self.later, self._length = source, later, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, picked: Any) -> "Elsewhere":
        return Elsewhere(self.source.at(picked), self.later, len(picked))

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **named: Any) -> Any:
        if method != "__call__" or "out" in named:
            return NotImplemented
        return self._then(ufunc, given, named)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        return self._then(function, given, named) if function in _EACH else NotImplemented

    def _then(self, function: Any, given: Sequence[Any], named: dict[str, Any]) -> "Elsewhere":
        others = [each for each in given if isinstance(each, Elsewhere)]
        if any(each.source is not self.source for each in others):
            raise InvalidParameter("""Expected numbers of one table, got two tables' records side by side: they would be
                paired wrongly. Use columns of one table.""")
        later = tuple(each.later if isinstance(each, Elsewhere) else each for each in given)
        return Elsewhere(self.source, Later(function, later, named), self._length)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise InvalidParameter("""Expected numbers in memory, got some of a table in files or on a cluster: they do not
            come here, only sums over them do. Use a table in memory for this option.""")

    def __repr__(self) -> str:
        return "Elsewhere(private)"


class ElsewhereRows:
    """(records, features) numbers of records that are elsewhere; private.

    `rows` is a function of a block: an array of floats, or `MadeRows`.

    Examples
    --------
    >>> class Here(Source):
    ...     def totals(self, asked):
    ...         return [each.of(np.array([[3.0, 4.0], [0.0, 1.0]])) for each in asked]
    >>> rows = ElsewhereRows(Here(), THE_BLOCK, (2, 2))
    >>> tallies([lambda norms: norms.astype(int)], [rows.each(lambda X: np.hypot(X[:, 0], X[:, 1]))])
    [array([5, 1])]
    """

    def __init__(self, source: Source, rows: Later, shape: tuple[int, int]) -> None:
        self.source, self.rows, self.shape = source, rows, shape

    def each(self, function: Callable[..., Any], *given: Any) -> Elsewhere:
        """A number a record: function(rows, ...), each of its own row alone."""
        return Elsewhere(self.source, Later(function, (self.rows, *given)), self.shape[0])

    def __getitem__(self, picked: Any) -> "ElsewhereRows":
        return ElsewhereRows(self.source.at(picked), self.rows, (len(picked), self.shape[1]))

    def column(self, place: int) -> Elsewhere:
        """One column."""
        return self.each(_column, place)

    def __repr__(self) -> str:
        return f"ElsewhereRows(private, columns={self.shape[1]})"


def each_alone(function: Callable[..., Any], values: Any, *given: Any) -> Any:
    """function(values, ...), which must work number by number, wherever the values are. Private.

    Examples
    --------
    >>> each_alone(np.add, np.ones(2), 1).tolist()
    [2.0, 2.0]
    """
    if not isinstance(values, Elsewhere):
        return function(values, *given)
    return Elsewhere(values.source, Later(function, (values.later, *given)), len(values))


def tallies(counts: Sequence[Callable[[Any], Any]], values: Sequence[Any]) -> list[Any]:
    """counts[i](values[i]), whole numbers that add up over records; of values elsewhere all in one go. Private.

    Examples
    --------
    >>> tallies([len, len], [np.zeros(3), np.ones(1)])
    [3, 1]
    """
    away = [each for each in values if isinstance(each, Elsewhere)]
    if not away:
        return [count(each) for count, each in zip(counts, values, strict=True)]
    asked = [Later(count, (each.later,)) for count, each in zip(counts, values, strict=True)]
    return list(away[0].source.totals(asked))


def _column(rows: Any, place: int) -> NDArray[np.float64]:
    return np.asarray(rows[:][:, place], dtype=np.float64)
