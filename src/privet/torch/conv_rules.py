"""Convolutions: a product over windows of the input, in one, two or three dimensions, with strides, gaps and groups."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.recording import NotRecorded, Recording
from privet.torch.scratch import Scratch
from privet.torch.uses import GHOST, NARROW, Rows, Use, from_grams, inner_products, lengths, squares


class Convolved:
    """A kernel that slid over an input: gᵢ = Σₜ output gradient ⊗ window, over the places t of example i.

    Norms come from Gram matrices of windows where places are few, else from the gradient itself, which is kept.
    """

    __slots__ = ("_kept", "_places", "_rows", "_settings", "_squared", "inputs", "outputs", "weight")

    def __init__(self, inputs: Tensor, outputs: Tensor, weight: Tensor, settings: tuple[Any, ...]) -> None:
        self.inputs, self.outputs, self.weight, self._settings = inputs, outputs, weight, settings
        self._places, self._kept = math.prod(outputs.shape[2:]), inputs[0].numel() + outputs[0].numel()
        self._rows: Tensor | None = None
        self._squared: Tensor | None = None

    @property
    def numbers(self) -> int:
        formed = self.weight.numel() if self._instantiates else 2 * self._places**2
        return self._kept + formed + self._places * math.prod(self.weight.shape[1:]) * int(self._settings[3])

    @property
    def _instantiates(self) -> bool:
        """Whether the gradients themselves are formed."""
        p, d = self.weight.shape[0], math.prod(self.weight.shape[1:])
        return self._settings[3] > 1 or 2 * self._places * self._places * (d + p) >= GHOST * d * p

    def squared_norms(self, scratch: Scratch) -> Tensor:
        if self._squared is None:
            self._squared = self._squares(scratch)
        return self._squared

    def _squares(self, scratch: Scratch) -> Tensor:
        if self._instantiates:
            found = squares(self.rows(scratch))
            del self.inputs, self.outputs  # the gradients are all that is needed from now on
            return found
        windows, outputs = self._windows(scratch).squeeze(1), self.outputs.flatten(2)
        first, second = inner_products(windows.mT), inner_products(outputs.mT)
        most = (lengths(first, windows.shape[1]) * lengths(second, outputs.shape[1])).sum(1)
        found = from_grams(first, second, most, lambda place: outputs[place] @ windows[place].mT)
        scratch.give_back(windows)
        return found

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        if self._rows is not None:
            total.view(-1).addmv_(self._rows.t(), factors)
            return
        stride, padding, dilation, groups = self._settings
        scaled = self.outputs * factors.view(-1, *[1] * (self.outputs.dim() - 1))
        none = [0] * len(stride)
        mask = [False, True, False]
        back = torch.ops.aten.convolution_backward(
            scaled, self.inputs, self.weight, None, stride, padding, dilation, False, none, groups, mask
        )
        total += back[1]

    def rows(self, scratch: Scratch | None = None) -> Tensor:
        if self._rows is None:
            scratch = Scratch() if scratch is None else scratch
            examples, groups = len(self.outputs), self._settings[3]
            windows = self._windows(scratch)
            rows = scratch.take((examples * groups, len(self.weight) // groups, windows.shape[2]), windows.device)
            outputs = self.outputs.reshape(examples * groups, -1, self._places)
            if windows.shape[2] < min(outputs.shape[1], NARROW):
                rows.copy_(torch.bmm(windows.flatten(0, 1), outputs.mT).mT)
            else:
                torch.bmm(outputs, windows.flatten(0, 1).mT, out=rows)
            scratch.give_back(windows)
            self._rows = rows.view(examples, -1)
        return self._rows

    def _windows(self, scratch: Scratch) -> Tensor:
        """(examples, groups, numbers in a window, places)."""
        stride, padding, dilation, groups = self._settings
        kernel, places = self.weight.shape[2:], self.outputs.shape[2:]
        padded = self._padded(scratch, padding)
        steps = padded.stride()
        inside = [step * gap for step, gap in zip(steps[2:], dilation, strict=True)]
        between = [step * jump for step, jump in zip(steps[2:], stride, strict=True)]
        size = (*padded.shape[:2], *kernel, *places)
        windows = scratch.take(size, padded.device)
        windows.copy_(padded.as_strided(size, (*steps[:2], *inside, *between)))
        scratch.give_back(padded)
        return windows.view(len(padded), groups, -1, math.prod(places))

    def _padded(self, scratch: Scratch, padding: Sequence[int]) -> Tensor:
        if not any(padding):
            return self.inputs.contiguous()
        sizes = [size + 2 * pad for size, pad in zip(self.inputs.shape[2:], padding, strict=True)]
        padded = scratch.take((*self.inputs.shape[:2], *sizes), self.inputs.device).zero_()
        middle = padded
        for place, pad in enumerate(padding):
            middle = middle.narrow(2 + place, pad, self.inputs.shape[2 + place])
        middle.copy_(self.inputs)
        return padded


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
