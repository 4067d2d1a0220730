"""Convolutions: a product over windows of the input, in one, two or three dimensions, with strides, gaps and groups."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.recording import NotRecorded, Recording
from privet.torch.uses import GHOST, Rows, Use, squares


class Convolved:
    """A kernel that slid over an input: gᵢ = Σₜ output gradient ⊗ window, over the places t of example i.

    Norms come from Gram matrices of windows where places are few, else from the gradient itself, which is kept.
    """

    __slots__ = ("_rows", "_settings", "inputs", "outputs", "weight")

    def __init__(self, inputs: Tensor, outputs: Tensor, weight: Tensor, settings: tuple[Any, ...]) -> None:
        self.inputs, self.outputs, self.weight, self._settings = inputs, outputs, weight, settings
        self._rows: Tensor | None = None

    @property
    def instantiates(self) -> bool:
        """Whether the gradients themselves are formed."""
        places = math.prod(self.outputs.shape[2:])
        p, d = self.weight.shape[0], math.prod(self.weight.shape[1:])
        return self._settings[3] > 1 or 2 * places * places * (d + p) >= GHOST * d * p

    def squared_norms(self) -> Tensor:
        if self.instantiates:
            return squares(self.rows())
        windows, outputs = self._windows().squeeze(1), self.outputs.flatten(2)
        grams = (windows.mT @ windows).flatten(1), (outputs.mT @ outputs).flatten(1)
        return (grams[0] * grams[1]).sum(1).clamp_(min=0)

    def weighted(self, factors: Tensor) -> Tensor:
        if self._rows is not None:
            return (factors @ self._rows).view(self.weight.shape)
        stride, padding, dilation, groups = self._settings
        scaled = self.outputs * factors.view(-1, *[1] * (self.outputs.dim() - 1))
        none = [0] * len(stride)
        mask = [False, True, False]
        back = torch.ops.aten.convolution_backward(
            scaled, self.inputs, self.weight, None, stride, padding, dilation, False, none, groups, mask
        )
        found: Tensor = back[1]
        return found

    def rows(self) -> Tensor:
        if self._rows is None:
            groups = self._settings[3]
            outputs = self.outputs.reshape(len(self.outputs), groups, -1, math.prod(self.outputs.shape[2:]))
            self._rows = (outputs @ self._windows().mT).flatten(1)
        return self._rows

    def _windows(self) -> Tensor:
        """(examples, groups, numbers in a window, places), without a copy until they are laid side by side."""
        stride, padding, dilation, groups = self._settings
        kernel = self.weight.shape[2:]
        sides = [side for pad in reversed(padding) for side in (pad, pad)]
        padded = F.pad(self.inputs, sides) if any(sides) else self.inputs.contiguous()
        steps = padded.stride()
        size = (*padded.shape[:2], *kernel, *self.outputs.shape[2:])
        inside = [step * gap for step, gap in zip(steps[2:], dilation, strict=True)]
        between = [step * jump for step, jump in zip(steps[2:], stride, strict=True)]
        seen = padded.as_strided(size, (*steps[:2], *inside, *between))
        return seen.reshape(len(padded), groups, -1, math.prod(self.outputs.shape[2:]))


def convolution(function: Any, dimensions: int) -> Callable[..., Tensor]:
    """The rule of one of the three convolutions."""

    def rule(
        recording: Recording,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        w, b = recording.number(weight), recording.number(bias)
        if input.dim() != dimensions + 2:
            raise NotRecorded
        plain = recording.plain(weight)
        strides, gaps = _each(stride, dimensions), _each(dilation, dimensions)
        input, pads = _padded(input, weight, padding, gaps)
        output = function(input, plain, recording.plain(bias), strides, pads, gaps, groups)
        inputs = input.detach()

        def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
            if w is not None:
                yield w, Convolved(inputs.float(), gradient, plain.float(), (strides, pads, gaps, groups))
            if b is not None and bias is not None:
                yield b, Rows(gradient.flatten(2).sum(2), bias.shape)

        return recording.tap(output, uses)

    return rule


def _each(value: Any, dimensions: int) -> list[int]:
    several = list(value) if isinstance(value, list | tuple) else [value]
    return [int(v) for v in (several * dimensions if len(several) == 1 else several)]


def _padded(input: Tensor, weight: Tensor, padding: Any, gaps: list[int]) -> tuple[Tensor, list[int]]:
    """The input and the padding at both sides; where the sides differ, the input is padded already."""
    if not isinstance(padding, str):
        return input, _each(padding, len(gaps))
    if padding == "valid":
        return input, [0] * len(gaps)
    whole = [gap * (size - 1) for gap, size in zip(gaps, weight.shape[2:], strict=True)]
    if all(total % 2 == 0 for total in whole):
        return input, [total // 2 for total in whole]
    sides = [side for total in reversed(whole) for side in (total // 2, total - total // 2)]
    return F.pad(input, sides), [0] * len(gaps)


CONVOLUTIONS: dict[Any, Callable[..., Tensor]] = {
    function: convolution(function, dimensions)
    for functions, dimensions in (
        ((F.conv1d, torch.conv1d), 1),
        ((F.conv2d, torch.conv2d), 2),
        ((F.conv3d, torch.conv3d), 3),
    )
    for function in functions
}
