"""Layers that multiply or look up: a product over the positions of each example."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.other_rules import operation
from privet.torch.recording import NotRecorded, Recording
from privet.torch.uses import Lookup, Product, Rows, Use, positions


def linear(recording: Recording, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b."""
    w, b = recording.number(weight), recording.number(bias)
    inputs = input.detach()

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        outputs = recording.positions(gradient)
        if w is not None:
            yield w, Product(recording.positions(inputs).float(), outputs)
        if b is not None:
            yield b, _shift(outputs)

    return recording.tap(F.linear(input, recording.plain(weight), recording.plain(bias)), uses, flat=True)


def matmul(recording: Recording, input: Tensor, other: Tensor) -> Any:
    """x W, with a matrix of parameters on the right."""
    number = recording.number(other)
    if number is None or recording.number(input) is not None or other.dim() != 2 or input.dim() < 2:
        return operation(recording, torch.matmul, (), (input, other), {})
    inputs = input.detach()

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        yield number, Product(recording.positions(gradient), recording.positions(inputs).float())

    return recording.tap(torch.matmul(input, recording.plain(other)), uses, flat=True)


def addmm(recording: Recording, bias: Tensor, input: Tensor, other: Tensor, **scales: Any) -> Any:
    """b + x W, as some transformers write their layers."""
    b, w = recording.number(bias), recording.number(other)
    if scales or recording.number(input) is not None or (b is not None and bias.dim() != 1):
        return operation(recording, torch.addmm, (), (bias, input, other), scales)
    inputs = input.detach()

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        outputs = recording.positions(gradient)
        if w is not None:
            yield w, Product(outputs, recording.positions(inputs).float())
        if b is not None:
            yield b, _shift(outputs)

    output = torch.addmm(recording.plain(bias), input, recording.plain(other))
    return recording.tap(output, uses, flat=True)


def _shift(outputs: Tensor) -> Rows:
    """A vector that was added at every position."""
    return Rows(outputs.squeeze(1) if outputs.shape[1] == 1 else outputs.sum(1), outputs.shape[2:])


def embedding(
    recording: Recording, input: Tensor, weight: Tensor, padding_idx: int | None = None, *rest: Any, **named: Any
) -> Tensor:
    """Rows of a table."""
    number, size = recording.number(weight), len(weight)
    if number is None or any((*rest[:1], named.get("max_norm"), named.get("scale_grad_by_freq"))):
        raise NotRecorded
    skip = padding_idx if padding_idx is None or padding_idx >= 0 else size + padding_idx

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        indices, outputs = input.flatten(1) if input.dim() > 1 else input[:, None], positions(gradient, 1)
        if skip is not None:
            outputs = outputs * (indices != skip)[:, :, None]
        yield number, Lookup(indices.long(), outputs, size)

    return recording.tap(F.embedding(input, recording.plain(weight), padding_idx), uses)


def embedding_bag(recording: Recording, input: Tensor, weight: Tensor, *rest: Any, **named: Any) -> Tensor:
    """The mean or the sum of rows of a table."""
    order = ("offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse", "per_sample_weights")
    given = {"mode": "mean", **dict(zip(order, rest, strict=False)), **named}
    odd = ("offsets", "max_norm", "scale_grad_by_freq", "per_sample_weights", "padding_idx")
    if input.dim() != 2 or given["mode"] == "max" or any(given.get(name) not in (None, False) for name in odd):
        raise NotRecorded
    rows = embedding(recording, input, weight)
    return rows.mean(1) if given["mode"] == "mean" else rows.sum(1)
