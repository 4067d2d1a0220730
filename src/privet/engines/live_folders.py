"""Folders that live as long as a process: a lock beside each dies with it, and the next removes what is left."""

import os
import platform
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows, where what was left stays
    fcntl = None  # type: ignore[assignment]

_LOCK = ".alive"
_HALF = ".tmp"


def held(lock: Path) -> int | None:
    """A lock that is held until the descriptor is closed, or this process ends, however it does; None without locks.

    It appears under its name when it is locked, so that nobody finds it otherwise while its process lives.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "rows").mkdir()
    >>> lock = held(lock_of(root / "rows"))
    >>> clear_dead([lock_of(root / "rows")]); (root / "rows").exists()
    True
    >>> os.close(lock)
    >>> clear_dead([lock_of(root / "rows")]); (root / "rows").exists()
    False
    """
    if fcntl is None:
        return None
    new = lock.with_name(f"{lock.name}.new")
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, platform.node().encode())
    new.rename(lock)
    return descriptor


def lock_of(folder: Path) -> Path:
    """Where the lock of a folder is: beside it."""
    return folder.with_name(folder.name + _LOCK)


def locks_in(root: Path, begins: str = "") -> list[Path]:
    """The locks of folders in `root`, under names that begin so; not those of folders that are being filled."""
    return [path for path in root.glob(f"{begins}*{_LOCK}") if not path.name.endswith(_HALF + _LOCK)]


def clear_dead(locks: Iterable[Path]) -> None:
    """Remove the folders whose locks nobody holds, and the locks; those of this user and this machine alone.

    On a network drive a lock may not be seen from elsewhere, so a folder of another machine is left alone.
    """
    for lock in locks if fcntl is not None else ():
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or somebody else's
            continue
        try:
            found = os.fstat(descriptor)
            ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
            if not ours or os.read(descriptor, 1024) != platform.node().encode():
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.with_name(lock.name.removesuffix(_LOCK)), ignore_errors=True)
            lock.unlink(missing_ok=True)
        except OSError:  # somebody is at work there
            continue
        finally:
            os.close(descriptor)
