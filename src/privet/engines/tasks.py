"""What is sent to a part: encode it once, then sum over it. Values that can be pickled."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privet.arrays import IntArray
from privet.clipping import LatticeSum
from privet.engines.cache import Cache
from privet.engines.encoded_part import open_part, write_part
from privet.engines.engine import Engine, bunched
from privet.engines.part import Part
from privet.engines.sources import ahead
from privet.errors import EngineFailure
from privet.losses import Loss
from privet.problems import GroupedProblem, LinearProblem
from privet.problems.parted import Ask, added
from privet.sums.blocks import blas, most_threads, threads_at_most
from privet.sums.compiled import kernels

Encoder = Callable[[Part], Iterable[LinearProblem | GroupedProblem]]
"""From a part of the source to problems of its records, a block each; a value to be sent. It raises on no cell."""


@dataclass(frozen=True, slots=True, repr=False)
class Total:
    """The sum of a bunch of parts' answers to one question. Each comes with the places of its batch, or None for all.

    Examples
    --------
    >>> Total(Ask("moment_sum"), None)
    Total(Ask('moment_sum'))
    """

    ask: Ask
    loss: Loss

    def __call__(self, shares: Sequence[tuple[Part, IntArray | None]]) -> tuple[LatticeSum, ...]:
        kernels()  # what one part alone might not pay for
        return added(each_part(self._one, shares))

    def _one(self, share: tuple[Part, IntArray | None]) -> tuple[LatticeSum, ...]:
        part, places = share
        return self.ask.of(open_part(part, self.loss), places)

    def __repr__(self) -> str:
        return f"Total({self.ask!r})"


def each_part(work: Callable[[Any], Any], parts: Sequence[Any], *, at_once: int | None = None) -> list[Any]:
    """work(part) for each part, in their order: in as many threads as there may be, or in one, with theirs inside.

    `at_once` is how many threads are wanted at most, where the work has some of its own.

    Examples
    --------
    >>> each_part(len, ["a", "bc"])
    [1, 2]
    """
    workers = min(len(parts), most_threads() if at_once is None else at_once)
    if workers < 2:
        return [work(part) for part in parts]

    def alone(part: Any) -> Any:
        with threads_at_most(1):
            return work(part)

    with blas().limit(limits=1), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(alone, parts))


@dataclass(frozen=True, slots=True, repr=False)
class Encode:
    """Encode a bunch of parts of a source into files of `folder`: which files, and how many records each has.

    A file's name is drawn at random: it tells nothing, and of a task that is run twice both files are whole.
    """

    encoder: Encoder
    folder: str

    def __call__(self, sources: Sequence[Part]) -> list[tuple[Part, int]]:
        # Arrow decodes with threads of its own; where both have one for each core they wait for each other's memory
        at_once = max(1, most_threads() // 2)
        return [each for found in each_part(self._one, sources, at_once=at_once) for each in found]

    def _one(self, source: Part) -> list[tuple[Part, int]]:
        source.check()
        found = []
        for problem in ahead(self.encoder(source)):  # while one is written
            path = Path(self.folder) / f"{uuid.uuid4().hex}.arrow"
            found.append((write_part(problem, path), problem.records))
        source.check()
        return found

    def __repr__(self) -> str:
        return "Encode(...)"


class EncodedParts:
    """Encoded parts on an engine: what a `PartedProblem` asks. Private.

    Promise: a sum counts each part once.
    """

    def __init__(self, engine: Engine, parts: Sequence[Part], counts: IntArray) -> None:
        if len({part.path for part in parts}) != len(parts):
            raise EngineFailure("""Expected every part once, got one twice: records would be counted twice. Encode the
                table again.""")
        self.engine, self.parts, self.counts = engine, tuple(parts), counts
        self.cache: Cache | None = None

    def total(self, ask: Ask, loss: Loss, places: Sequence[IntArray] | None) -> tuple[LatticeSum, ...]:
        """The sum of all parts' answers. Private."""
        shares = [(part, None if places is None else places[i]) for i, part in enumerate(self.parts)]
        return added(self.engine.run(Total(ask, loss), bunched(shares, self.engine.cores)))

    def moved(self, cache: Cache) -> "EncodedParts":
        """The same in the folder of a cache, which lives as long as they do."""
        parts = [replace(part, path=str(cache.folder / Path(part.path).name)) for part in self.parts]
        found = EncodedParts(self.engine, parts, self.counts)
        found.cache = cache
        return found

    def __repr__(self) -> str:
        return f"EncodedParts(private, {self.engine!r})"


def encode(engine: Engine, sources: Sequence[Part], encoder: Encoder, folder: Path) -> EncodedParts:
    """Encode every part of a source once, on the engine, into `folder`.

    Files that no answer names, e.g. of a task that was run twice, are not parts, and are removed.
    """
    answers: list[list[tuple[Part, int]]] = engine.run(Encode(encoder, str(folder)), bunched(sources, engine.cores))
    found = [each for answer in answers for each in answer]
    named = {part.path for part, _ in found}
    for path in folder.iterdir():
        if str(path) not in named:
            path.unlink(missing_ok=True)
    counts: Any = np.array([count for _, count in found], dtype=np.int64)
    return EncodedParts(engine, [part for part, _ in found], counts)
