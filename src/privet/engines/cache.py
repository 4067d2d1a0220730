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
from privet.engines.part import private_folder

try:
    import fcntl
except ImportError:  # not on Windows, where what was left stays
    fcntl = None  # type: ignore[assignment]

_Found = TypeVar("_Found")
_LOCK = ".alive"
_HALF = ".tmp"


class Cache:
    """A folder for the encoded rows of one table, in the folder that the user names; None for one of the system's.

    With `keep`, the rows stay when the program ends. What a killed encoder left is removed by the next one.

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
        root = Path(tempfile.mkdtemp(prefix="privet-")) if folder is None else private_folder(folder)
        if folder is not None:
            _clear(root)
        self.folder = root / uuid.uuid4().hex
        gone = root if folder is None else self.folder
        self._finalizer = weakref.finalize(self, _remove, gone, os.getpid()) if not keep else None

    def made(self, make: Callable[[Path], _Found]) -> _Found:
        """What `make` returns, which fills an empty folder; it takes its name when all is there."""
        half = self.folder.with_name(self.folder.name + _HALF)
        half.mkdir(mode=0o700)
        lock = os.open(half.with_name(half.name + _LOCK), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            found = make(half)
            half.rename(self.folder)
        finally:
            shutil.rmtree(half, ignore_errors=True)
            half.with_name(half.name + _LOCK).unlink(missing_ok=True)
            os.close(lock)
        return found

    def beside(self) -> "Cache":
        """Another folder in the same place, kept or deleted alike."""
        return Cache(self._root, keep=self._finalizer is None)

    def close(self) -> None:
        """Delete the rows, unless they are to be kept."""
        close_parts()
        if self._finalizer is not None:
            self._finalizer()


def _clear(root: Path) -> None:
    """Remove what encoders left that are no longer alive."""
    for half in root.glob(f"*{_HALF}") if fcntl is not None else ():
        path = half.with_name(half.name + _LOCK)
        lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody is at work there
            continue
        else:
            shutil.rmtree(half, ignore_errors=True)
            path.unlink(missing_ok=True)
        finally:
            os.close(lock)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked off
        shutil.rmtree(folder, ignore_errors=True)
