"""Small products on one thread: those that help would spend more on waiting for work than they save."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

_SHARED = 1 << 23  # products at a time above which threads share them


@contextmanager
def few_threads(products: float) -> Iterator[None]:
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


def products(modules: Sequence[nn.Module], examples: int) -> float:
    """Products of weights and examples at a position, of a recurrent model; of others, more than threads divide.

    A small recurrence is on one thread anyway, and what stands between two of them is not worth waking the others.

    Examples
    --------
    >>> products([nn.LSTM(2, 3, bias=False)], 10), products([nn.Linear(2, 3)], 10)
    (600, inf)
    """
    if not any(isinstance(module, nn.RNNBase) for module in modules):
        return math.inf
    return examples * sum(p.numel() for module in modules for p in module._parameters.values() if p is not None)
