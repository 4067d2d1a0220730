"""Memory that a task frees, kept for its next block of rows where Dask's nanny had it handed back at once."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_TRIM, _MMAP = -1, -3  # what glibc's mallopt calls them
_KEPT = 1 << 28
_LARGE = 1 << 25  # the most that it takes
_USUAL = 1 << 17

_lock = threading.Lock()
_inside = 0


@contextmanager
def memory_kept() -> Iterator[None]:
    """In here freed memory stays with the process; afterwards all is as it was, and what is free goes back.

    Workers under Dask's nanny run with MALLOC_TRIM_THRESHOLD_ set, by which every large array is mapped anew and every
    page of it faulted in again. Without that variable, or another C library, nothing is done.

    Examples
    --------
    >>> with memory_kept():
    ...     sum(range(3))
    3
    """
    global _inside
    library, usual = _library(), os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if library is None or not usual.isdigit():
        yield
        return
    with _lock:
        _inside += 1
        if _inside == 1:
            library.mallopt(_TRIM, _KEPT)
            library.mallopt(_MMAP, _LARGE)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                library.mallopt(_TRIM, min(int(usual), 2**31 - 1))
                library.mallopt(_MMAP, _USUAL)
                library.malloc_trim(0)


@cache
def _library() -> Any:
    """The C library, if it is one whose allocator can be told."""
    try:
        found = ctypes.CDLL(None)
        return found if all(hasattr(found, name) for name in ("mallopt", "malloc_trim")) else None
    except (OSError, TypeError):
        return None
