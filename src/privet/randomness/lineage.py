"""Which process this is: what was drawn for one must not be used by its forked children."""

import os
import threading

_FORKS_ARE_SEEN = threading.Event()
_forks = 0


def _after_fork() -> None:
    global _forks  # a number of the process, as its own number is
    _forks += 1


def lineage() -> tuple[int, int]:
    """The number of this process, and how many forks that Python saw led to it since the first call.

    Numbers of processes come again: the first of a container is 1, and so is the first of one inside it.

    Examples
    --------
    >>> lineage() == lineage()
    True
    """
    if not _FORKS_ARE_SEEN.is_set():
        _FORKS_ARE_SEEN.set()
        if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to register
            os.register_at_fork(after_in_child=_after_fork)
    return os.getpid(), _forks
