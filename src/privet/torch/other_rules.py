"""Parameters outside layers: entry by entry, repeated for each example, or in any other function."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from privet.torch.recording import Found, NotRecorded, Recording
from privet.torch.uses import Rows, Use


def elementwise(function: Any) -> Callable[..., Tensor]:
    """x ∘ p for a function that takes its tensors entry by entry: each example gets a copy of p of its own."""

    def rule(recording: Recording, *args: Any, **kwargs: Any) -> Any:
        numbers = [
            number for value in args if isinstance(value, Tensor) and (number := recording.number(value)) is not None
        ]
        others = [value for value in args if isinstance(value, Tensor) and recording.number(value) is None]
        dims = max((value.dim() for value in others), default=0)
        mine = [recording.sources.tensors[number] for number in numbers]
        fits = all(p.dim() < dims or (p.dim() == dims and p.shape[0] == 1) for p in mine)
        alike = all(value.dim() == dims or value.dim() == 0 for value in others)
        if not (fits and alike) or any(isinstance(value, Tensor) for value in kwargs.values()):
            return operation(recording, function, tuple(numbers), args, kwargs)
        return function(*[_own_copies(recording, value, dims) for value in args], **kwargs)

    return rule


def grown(recording: Recording, tensor: Tensor, *sizes: Any) -> Any:
    """A parameter repeated for each example, by `expand`."""
    wanted = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    copies = _own_copies(recording, tensor, len(wanted))
    if any(size not in (-1, 1, now) for size, now in zip(wanted[1:], copies.shape[1:], strict=True)):
        return copies.expand(wanted)
    return copies


def repeated(recording: Recording, tensor: Tensor, *times: Any) -> Any:
    """A parameter repeated for each example, and in other dimensions, by `repeat`."""
    wanted = tuple(times[0]) if len(times) == 1 and not isinstance(times[0], int) else times
    return _own_copies(recording, tensor, len(wanted)).repeat(1, *wanted[1:])


def operation(recording: Recording, function: Any, touched: tuple[int, ...], args: Any, kwargs: Any) -> Any:
    """Any other function: its gradients for one example at a time, by `torch.func`, all at once."""
    plain_args, plain_kwargs = tree_map(recording.plain, (args, kwargs))
    output = function(*plain_args, **plain_kwargs)
    if not isinstance(output, Tensor) or output.dim() == 0:
        raise NotRecorded
    flat, _ = tree_flatten((args, kwargs))
    numbers = [recording.number(value) if isinstance(value, Tensor) else None for value in flat]
    places = sorted({number for number in numbers if number is not None})

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        rows = _one_at_a_time(recording, function, (args, kwargs), places, gradient)
        for number, row in zip(places, rows, strict=True):
            yield number, Rows(row.float(), recording.sources.tensors[number].shape)

    return recording.tap(output, uses)


def _one_at_a_time(
    recording: Recording, function: Any, call: Any, places: list[int], gradient: Tensor
) -> tuple[Tensor, ...]:
    flat, spec = tree_flatten(call)
    numbers = [recording.number(value) if isinstance(value, Tensor) else None for value in flat]
    moving = [
        place
        for place, value in enumerate(flat)
        if isinstance(value, Tensor) and numbers[place] is None and value.dim() and value.shape[0] == recording.size
    ]

    def back(*row: Tensor) -> tuple[Tensor, ...]:
        *mine, upstream = row

        def forward(*parameters: Tensor) -> Tensor:
            values = [value.detach() if isinstance(value, Tensor) else value for value in flat]
            for place, value in zip(moving, mine, strict=True):
                values[place] = value[None]
            for place, number in enumerate(numbers):
                if number is not None:
                    values[place] = parameters[places.index(number)]
            args, kwargs = tree_unflatten(values, spec)
            result: Tensor = function(*args, **kwargs)
            return result

        pull = torch.func.vjp(forward, *(recording.sources.tensors[number].detach() for number in places))[1]
        found: tuple[Tensor, ...] = pull(upstream[None])
        return found

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")  # slower, and as right
        rows: tuple[Tensor, ...] = torch.func.vmap(back)(*(flat[place].detach() for place in moving), gradient)
    return rows


def _own_copies(recording: Recording, value: Any, dims: int) -> Any:
    number = recording.number(value) if isinstance(value, Tensor) else None
    if number is None:
        return value
    shape = value.shape
    lifted = value.detach().reshape((1,) * (dims - len(shape)) + tuple(shape))
    copies = lifted.expand(recording.size, *lifted.shape[1:]).clone()  # may be changed in place afterwards

    def uses(gradient: Tensor) -> Found:
        return ((number, Rows(gradient, shape)),)

    return recording.tap(copies, uses)
