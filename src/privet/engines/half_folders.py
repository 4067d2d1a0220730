"""Folders that are there whole or not at all: filled under another name, beside a lock that dies with the writer."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privet.engines.part import no_room

try:
    import fcntl
except ImportError:  # not on Windows, where what was left stays
    fcntl = None  # type: ignore[assignment]

_HALF = ".tmp"
_LOCK = ".alive"


@contextmanager
def half_folder(folder: Path) -> Iterator[Path]:
    """A folder beside it that takes its name when all is there; locked while its writer lives, removed if it fails."""
    half = folder.with_name(f"{folder.name}-{secrets.token_hex(8)}{_HALF}")
    try:
        lock = os.open(half.with_name(half.name + _LOCK), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise no_room(folder.parent, error) from None
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            half.mkdir(mode=0o700)
        except OSError as error:
            raise no_room(folder.parent, error) from None
        yield half
    finally:
        shutil.rmtree(half, ignore_errors=True)
        half.with_name(half.name + _LOCK).unlink(missing_ok=True)
        os.close(lock)


def clear_halves(root: Path, begins: str = "") -> None:
    """Remove what writers in `root` left, under names that begin so, if they are no longer alive."""
    for half in root.glob(f"{begins}*{_HALF}") if fcntl is not None else ():
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
