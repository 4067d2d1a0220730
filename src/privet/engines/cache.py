"""Folders of encoded rows: made whole or not at all, for their owner alone, deleted or kept as asked."""

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from privet.engines.encoded_part import close_parts
from privet.engines.half_folders import clear_halves, half_folder
from privet.engines.live_folders import clear_dead, held, lock_of, locks_in
from privet.engines.part import no_room, private_folder

_Found = TypeVar("_Found")
_PREFIX = "privet-"


class Cache:
    """A folder for the encoded rows of one table, in the folder that the user names; None for one of the system's.

    With `keep`, the rows stay when the program ends. Otherwise they are deleted; those of a program that was killed, by
    the next one on this machine that uses the folder, as their lock died with it.

    Examples
    --------
    >>> cache = Cache(None)
    >>> cache.made(lambda folder: (folder / "0.arrow").write_bytes(b"...")) == 3, len(list(cache.folder.iterdir()))
    (True, 1)
    >>> cache.close()
    >>> cache.folder.exists()
    False
    """

    def __init__(self, folder: str | os.PathLike[str] | None, *, keep: bool = False) -> None:
        self._root = folder
        if folder is None:
            clear_dead(locks_in(Path(tempfile.gettempdir()), _PREFIX))
            gone = _temporary()
            self.folder = gone / uuid.uuid4().hex
        else:
            root = private_folder(folder)
            clear_halves(root)
            clear_dead(locks_in(root))
            self.folder = gone = root / uuid.uuid4().hex
        self._finalizer = None if keep else weakref.finalize(self, _remove, gone, _held(gone), os.getpid())

    def made(self, make: Callable[[Path], _Found]) -> _Found:
        """What `make` returns, which fills an empty folder; it takes its name when all is there."""
        with half_folder(self.folder) as half:
            found = make(half)
            half.rename(self.folder)
        return found

    def beside(self) -> "Cache":
        """Another folder in the same place, kept or deleted alike."""
        return Cache(self._root, keep=self._finalizer is None)

    def close(self) -> None:
        """Delete the rows, unless they are to be kept."""
        close_parts()
        if self._finalizer is not None:
            self._finalizer()


def _temporary() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_PREFIX))
    except OSError as error:
        raise no_room(tempfile.gettempdir(), error) from None


def _held(folder: Path) -> int | None:
    try:
        return held(lock_of(folder))
    except OSError as error:
        raise no_room(folder.parent, error) from None


def _remove(folder: Path, lock: int | None, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked off
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            lock_of(folder).unlink(missing_ok=True)
            os.close(lock)
