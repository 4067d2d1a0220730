"""Small products on one thread: those that help would spend more on waiting for work than they save."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SHARED = 1 << 23  # products at a time above which threads share them


@contextmanager
def few_threads(products: int) -> Iterator[None]:
    """One thread while this lasts, if there are no more than so many products at a time.

    Threads of Python that have computed before keep the number they have.

    Examples
    --------
    >>> with few_threads(1000):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if before == 1 or products > _SHARED:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
