"""Engines: where jobs over parts are done. They carry paths, coefficients and integers; no rows, and no noise."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from privet.errors import InvalidParameter

Job = Callable[[Sequence[Any]], Any]
"""What is done with a bunch of parts: a value that can be sent; it raises on no cell. Its answer is small."""


class Engine(ABC):
    """Where jobs are done: in this process, or on the workers of a cluster that the user has.

    Promise: each bunch's answer counts once, however often its task was started, here or there.

    Examples
    --------
    >>> from privet.engines import Stream
    >>> Stream().run(len, [["a", "b"], ["c"]])
    [2, 1]
    """

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many tasks run at once; parts are dealt out to so many bunches."""

    def check(self, folder: Path) -> None:
        """Refuse, in one sentence, workers that are not there, have no privet or another one, or see no `folder`."""
        return

    @abstractmethod
    def run(self, job: Job, bunches: Sequence[Sequence[Any]]) -> list[Any]:
        """One answer a bunch, in their order; `EngineFailure` if that cannot be had."""

    def store(self, frame: Any, folder: Path, *, groups: str | None = None) -> list[Path]:
        """Write a frame of the engine's own once, to Parquet files in `folder`; with `groups`, whole people a file.

        From then on only these files count: what a lineage is worked out to a second time need not be the same rows.
        """
        raise InvalidParameter(f"""Expected a path of Parquet or CSV files, got {type(frame).__name__}: this engine has
            no frames of its own. Pass the path, or the engine that the frame belongs to.""")


class Stream(Engine):
    """In this process, part after part, however large the table: all cores work on one part together.

    Examples
    --------
    >>> Stream().cores
    1
    """

    @property
    def cores(self) -> int:
        return 1

    def run(self, job: Job, bunches: Sequence[Sequence[Any]]) -> list[Any]:
        return [job(bunch) for bunch in bunches]

    def __repr__(self) -> str:
        return "Stream()"


def bunched(items: Sequence[Any], count: int) -> list[list[Any]]:
    """Items dealt out to at most `count` bunches of neighbours, none empty, in order.

    Examples
    --------
    >>> bunched([1, 2, 3, 4, 5], 2)
    [[1, 2], [3, 4, 5]]
    """
    size = max(1, min(count, len(items)))
    edges = [len(items) * i // size for i in range(size + 1)]
    return [list(items[a:b]) for a, b in pairwise(edges)]
