"""One line on the terminal that says how far something got, if it takes longer than two seconds.

Written are public facts: which of the planned releases is being made, which step of how many, and how much of a file
has been read, as a share. Nothing is written where nobody looks: not into files, pipes or logs.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

_PATIENCE = 2.0  # seconds before anything is said
_EVERY = 0.2  # seconds between two looks of it


class _Line:
    """A line on the terminal, from some time on."""

    def __init__(self) -> None:
        self._due, self._visible = time.monotonic() + _PATIENCE, False

    def say(self, text: Callable[[], str]) -> None:
        """Show it, if it is due."""
        now = time.monotonic()
        if now < self._due or sys.stderr is None or not sys.stderr.isatty():
            return
        self._due, self._visible = now + _EVERY, True
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\033[K{text()[: width - 1]}\r")
        sys.stderr.flush()

    def erase(self) -> None:
        """Take it away."""
        if self._visible:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class _Tasks:
    """The line of the outermost task that the main thread is at, if there is one."""

    line: _Line | None = None


_TASKS = _Tasks()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def task() -> Iterator[None]:
    """Something that may take long, within which `say` is heard; erases the line at its end.

    Examples
    --------
    >>> with task():
    ...     say(lambda: "privet is fitting: release 1 of 9")  # at once, so that it is not shown
    """
    if _TASKS.line is not None or not _is_main():
        yield
        return
    line = _TASKS.line = _Line()
    try:
        yield
    finally:
        _TASKS.line = None
        line.erase()


def say(text: Callable[[], str]) -> None:
    """Show how far a task got, if it is due; `text` is asked only then, and holds public facts alone."""
    line = _TASKS.line
    if line is not None and _is_main():
        line.say(text)


def say_read(path: str | os.PathLike[str], share: Callable[[], float]) -> None:
    """Show how much of a file has been read; as a share, as how many records that is may be private."""
    say(lambda: f"privet is reading {os.path.basename(os.fspath(path))}: {min(1.0, share()):.0%}")


def shown(steps: int, what: str) -> Iterator[int]:
    """Count 0, 1, …, steps − 1; show how far it got, unless that is a part of a task, which speaks itself.

    Examples
    --------
    >>> list(shown(3, "privet is counting"))
    [0, 1, 2]
    """
    line = _Line() if _TASKS.line is None and _is_main() else None
    start = time.monotonic()
    try:
        for step in range(steps):
            yield step
            if line is not None:
                line.say(partial(_told, step + 1, steps, what, start))
    finally:
        if line is not None:
            line.erase()


def _told(done: int, steps: int, what: str, start: float) -> str:
    left = (time.monotonic() - start) / done * (steps - done)
    return f"{what}: step {done:,} of {steps:,}, about {left:.0f} s left"
