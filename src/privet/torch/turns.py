"""Threads that train: each has its own model, and they are tried one after the other."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from privet.errors import InvalidParameter

TRIAL = threading.RLock()
"""Held while a model is tried: torch has one generator of chance for all threads, and the trial seeds it."""

_BUSY: set[int] = set()
_LOCK = threading.Lock()


@contextmanager
def alone(model: nn.Module) -> Iterator[None]:
    """Refuse a model whose gradients another thread is computing: both would write to its parameters.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> with alone(model):
    ...     with alone(model):
    ...         pass
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected one thread for each model, got two that compute its gradients at once: \
each would take the other's for its own. Give each run a model of its own.
    """
    with _LOCK:
        if id(model) in _BUSY:
            raise InvalidParameter("""Expected one thread for each model, got two that compute its gradients at once:
                each would take the other's for its own. Give each run a model of its own.""")
        _BUSY.add(id(model))
    try:
        yield
    finally:
        _BUSY.discard(id(model))
