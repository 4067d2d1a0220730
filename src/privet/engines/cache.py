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
from privet.engines.part import private_folder

_Found = TypeVar("_Found")


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
            clear_halves(root)
        self.folder = root / uuid.uuid4().hex
        gone = root if folder is None else self.folder
        self._finalizer = weakref.finalize(self, _remove, gone, os.getpid()) if not keep else None

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


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked off
        shutil.rmtree(folder, ignore_errors=True)
