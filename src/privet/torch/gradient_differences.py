"""Gradients of single examples here, less those at other weights."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from privet.torch.uses import Rows, Use

Uses = list[Use | None]


def differences(uses: Callable[[], Uses], parameters: Sequence[nn.Parameter], weights: Sequence[Tensor]) -> Uses:
    """What `uses` finds with the weights as they are, less what it finds with others; chance falls alike for both.

    The gradients themselves are formed, so that what is clipped is the difference as it is summed.

    Examples
    --------
    >>> weight = nn.Parameter(torch.tensor([3.0]))
    >>> square = lambda: [Rows(2 * weight.detach()[None], weight.shape)]      # the gradient of w², of one example
    >>> differences(square, [weight], [torch.tensor([1.0])])[0].rows(), weight.detach()
    (tensor([[4.]]), tensor([3.]))
    """
    state = torch.random.get_rng_state()
    here = [None if use is None else use.rows() for use in uses()]
    torch.random.set_rng_state(state)
    with exchanged(parameters, weights):
        there = [None if use is None else use.rows() for use in uses()]
    found: Uses = []
    for one, other, parameter in zip(here, there, parameters, strict=True):
        if one is None and other is None:
            found.append(None)
        elif one is None or other is None:
            found.append(Rows(one if one is not None else -other, parameter.shape))  # type: ignore[operator]
        else:
            found.append(Rows(one - other, parameter.shape))
    return found


@contextmanager
def exchanged(parameters: Sequence[nn.Parameter], weights: Sequence[Tensor]) -> Iterator[None]:
    """The parameters with other values for a while."""
    before = [parameter.data for parameter in parameters]
    try:
        for parameter, weight in zip(parameters, weights, strict=True):
            parameter.data = weight
        yield
    finally:
        for parameter, weight in zip(parameters, before, strict=True):
            parameter.data = weight
