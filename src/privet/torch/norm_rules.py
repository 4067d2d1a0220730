"""Layers that normalise within an example, then scale and shift."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.recording import Found, NotRecorded, Recording
from privet.torch.uses import Rows, Use, positions

_NEAR = 1 << 18  # numbers of a part whose products are formed at once: a megabyte


def layer_norm(
    recording: Recording,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalised over the last dimensions, then scaled and shifted."""
    inputs, last, plain = input.detach(), len(normalized_shape), (recording.plain(weight), recording.plain(bias))
    if torch.is_autocast_enabled(input.device.type):  # which casts for this function alone
        output = F.layer_norm(input, normalized_shape, *plain, eps)
        unscaled = lambda: F.layer_norm(inputs.float(), normalized_shape, None, None, eps)  # noqa: E731
        return recording.tap(
            output, _scale_and_shift(recording, weight, bias, unscaled, lambda t: positions(t, last).sum(1))
        )
    w, b = recording.number(weight), recording.number(bias)
    output, mean, scale = torch.native_layer_norm(input, normalized_shape, *plain, eps)
    mean, scale = mean.detach(), scale.detach()

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        if w is not None and weight is not None:
            found = positions((inputs - mean).float().mul_(gradient), last)
            yield w, Rows(torch.bmm(scale.float().reshape(len(found), 1, -1), found).squeeze(1), weight.shape)
        if b is not None and bias is not None:
            yield b, Rows(positions(gradient, last).sum(1), bias.shape)

    return recording.tap(output, uses)


def rms_norm(
    recording: Recording, input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divided by the root mean square over the last dimensions, then scaled."""
    inputs, last = input.detach(), len(normalized_shape)
    output = F.rms_norm(input, normalized_shape, recording.plain(weight), eps)
    unscaled = lambda: F.rms_norm(inputs.float(), normalized_shape, None, eps)  # noqa: E731
    return recording.tap(
        output, _scale_and_shift(recording, weight, None, unscaled, lambda t: positions(t, last).sum(1))
    )


def group_norm(
    recording: Recording,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalised over groups of channels, then scaled and shifted a channel.

    A scale's gradient is Σ g (x − mean) ÷ deviation = (Σ g x − mean Σ g) ÷ deviation: two sums over places.
    """
    inputs, (examples, channels) = input.detach().contiguous(), input.shape[:2]
    w, b = recording.number(weight), recording.number(bias)
    places = math.prod(input.shape[2:])
    plain = recording.plain(weight), recording.plain(bias)
    output, mean, scale = torch.native_group_norm(
        input.contiguous(), *plain, examples, channels, places, num_groups, eps
    )

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        shift = _channels(gradient)
        if w is not None and weight is not None:
            mean_, scale_ = (_each_channel(moment, channels).float() for moment in (mean, scale))
            yield w, Rows(_products(gradient, inputs).sub_(mean_ * shift).mul_(scale_), weight.shape)
        if b is not None and bias is not None:
            yield b, Rows(shift, bias.shape)

    return recording.tap(output, uses)


def instance_norm(recording: Recording, input: Tensor, *rest: Any, **named: Any) -> Tensor:
    """Normalised over each channel of each example; with running statistics examples would mix."""
    order = ("running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps")
    given = {**dict(zip(order, rest, strict=False)), **named}
    if given.get("running_mean") is not None or not given.get("use_input_stats", True) or input.dim() < 3:
        raise NotRecorded
    inputs, eps = input.detach(), given.get("eps", 1e-5)
    weight, bias = given.get("weight"), given.get("bias")
    output = F.instance_norm(input, weight=recording.plain(weight), bias=recording.plain(bias), eps=eps)
    unscaled = lambda: F.instance_norm(inputs.float(), eps=eps)  # noqa: E731
    return recording.tap(output, _scale_and_shift(recording, weight, bias, unscaled, _channels))


def _scale_and_shift(
    recording: Recording,
    weight: Tensor | None,
    bias: Tensor | None,
    unscaled: Callable[[], Tensor],
    sums: Callable[[Tensor], Tensor],
) -> Callable[[Tensor], Found]:
    w, b = recording.number(weight), recording.number(bias)

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        if w is not None and weight is not None:
            yield w, Rows(sums(unscaled().mul_(gradient)), weight.shape)
        if b is not None and bias is not None:
            yield b, Rows(sums(gradient), bias.shape)

    return uses


def _each_channel(moment: Tensor, channels: int) -> Tensor:
    """A number for each group as one for each channel."""
    return moment.detach().repeat_interleave(channels // moment.shape[1], 1)


def _products(first: Tensor, second: Tensor) -> Tensor:
    """The sums of products over each channel of each example; in parts that stay near."""
    each = max(1, _NEAR // max(1, first[0].numel()))
    if len(first) <= each:
        return _channels(first * second)
    pairs = zip(torch.split(first, each), torch.split(second, each), strict=True)
    return torch.cat([_channels(one * other) for one, other in pairs])


def _channels(tensor: Tensor) -> Tensor:
    return tensor.flatten(2).sum(2) if tensor.dim() > 2 else tensor
