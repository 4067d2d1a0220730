"""Parts of a table: files that never change, known by their fingerprints."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.errors import EngineFailure, InvalidParameter


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells a file from another, and from what it was: its size and when it was written, in nanoseconds."""

    size: int
    written: int

    @classmethod
    def of(cls, path: str) -> "Fingerprint":
        """Of the file as it is now."""
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns)

    def __repr__(self) -> str:
        return "Fingerprint(...)"  # a size tells how many rows there are


@dataclass(frozen=True, slots=True)
class Part:
    """A file of records, or some row groups of one; a value that can be sent. How many it has is private.

    Examples
    --------
    >>> Part("rows/7.arrow", Fingerprint(1024, 1_700_000_000_000_000_000))
    Part('rows/7.arrow', Fingerprint(...))
    """

    path: str
    fingerprint: Fingerprint
    groups: tuple[int, ...] | None = None  # row groups of a Parquet file; None for all of the file

    def check(self) -> None:
        """Refuse a file that is gone, or is not the one it was."""
        try:
            if Fingerprint.of(self.path) == self.fingerprint:
                return
            found = "a file that was changed"
        except FileNotFoundError:
            found = "a file that is gone"
        except OSError as error:
            found = type(error).__name__
        raise EngineFailure(f"""Expected the part {self.path!r} to be as it was written, got {found}: records might be
            counted twice, or not at all. What was charged stays charged. Encode the table again.""")

    def __repr__(self) -> str:
        return f"Part({self.path!r}, {self.fingerprint!r})"


def told_apart(files: Sequence[str]) -> str:
    """A text that is another one for other files, or if one of them was changed. Private: it tells their sizes.

    Examples
    --------
    >>> told_apart([__file__]) == told_apart([__file__, __file__])
    False
    """
    prints = [(file, Fingerprint.of(file)) for file in files]
    return repr([(file, found.size, found.written) for file, found in prints])


def private_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made if it is not there, for its owner alone; refuses one that others may read."""
    path = Path(folder).absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode
    except OSError as error:
        raise InvalidParameter(f"""Expected a folder for encoded rows, got {os.fspath(folder)!r}, which cannot be made
            ({type(error).__name__}). Name one that can be written to.""") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise InvalidParameter(f"""Expected a folder that nobody else may read, got {os.fspath(folder)!r} with mode
            {stat.S_IMODE(mode):o}: encoded rows are private data. Use chmod 700, or name a new folder.""")
    return path


def no_room(folder: str | os.PathLike[str], error: OSError) -> EngineFailure:
    """What is said when rows cannot be written, e.g. to a full disk: in the system's words, which hold no cell.

    Examples
    --------
    >>> import errno
    >>> str(no_room("rows", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "rows/7.arrow")))[:70]
    "Expected room for rows in 'rows', got No space left on device: the tab"
    """
    said = type(error).__name__ if error.errno is None else os.strerror(error.errno)
    return EngineFailure(f"""Expected room for rows in {os.fspath(folder)!r}, got {said}: the table is not encoded. What
        was charged stays charged. Free some space, or name another folder; then run again.""")
