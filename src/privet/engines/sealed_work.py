"""What travels to a worker and back: closed bytes, which no log, error or repr of a cluster can show."""

import os
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from privet.engines.kept_memory import memory_kept
from privet.errors import EngineFailure
from privet.sums.blocks import threads_at_most

_Found = TypeVar("_Found")


class Sealed:
    """A value as bytes that only `open` reads.

    A cluster prints what it carries: arguments of a task that failed, an answer that would not be sent, the first bytes
    of a message that a worker could not read. The bytes lie beside such a message, not in it.

    Examples
    --------
    >>> closed = Sealed(pickle.dumps([3, 1]))
    >>> closed, closed.open(), pickle.loads(pickle.dumps(closed)).open()
    (Sealed(), [3, 1], [3, 1])
    """

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def open(self) -> Any:
        """The value."""
        return pickle.loads(self._held)  # noqa: S301  # of our own cluster, which runs our code anyway

    def __repr__(self) -> str:
        return "Sealed()"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Sealed, (pickle.PickleBuffer(self._held) if protocol >= 5 else bytes(self._held),)


class WorkFailed(Exception):
    """A task that failed, told without its data: the type of what was raised, or a sentence of privet's own."""

    def __init__(self, kind: str, sentence: str = "") -> None:
        super().__init__(kind, sentence)
        self.kind, self.sentence = kind, sentence

    def __str__(self) -> str:
        return self.sentence or self.kind


def done(job: Sealed, bunch: Sealed) -> Sealed:
    """What a worker does: the job's answer to a bunch, sealed. What is raised holds nothing of the rows.

    Examples
    --------
    >>> done(Sealed(pickle.dumps(len)), Sealed(pickle.dumps(["a", "b"]))).open()
    2
    """

    def answer() -> Sealed:
        with memory_kept(), threads_at_most(1):  # the cluster gives every core a task
            return Sealed(pickle.dumps(job.open()(bunch.open()), protocol=5))

    return guarded(answer)


def guarded(work: Callable[[], _Found]) -> _Found:
    """What `work` returns; an error becomes a `WorkFailed` that remembers nothing of it but its type.

    Examples
    --------
    >>> guarded(lambda: {}["Jane Doe"])
    Traceback (most recent call last):
        ...
    privet.engines.sealed_work.WorkFailed: KeyError
    """
    sentence = ""
    try:
        return work()
    except EngineFailure as error:
        kind, sentence = type(error).__name__, str(error)
    except OSError as error:
        kind = f"{type(error).__name__} ({os.strerror(error.errno)})" if error.errno else type(error).__name__
    except BaseException as error:  # noqa: BLE001  # it may quote a cell, and workers log what they see
        kind = type(error).__name__
    raise WorkFailed(kind, sentence)  # out here, so that nothing is chained to it
