"""Memory that is used over and over: fresh pages cost more than the arithmetic on them."""

import bisect
import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Scratch:
    """Buffers of float32 that are lent and given back; what is in them is left over from before.

    Examples
    --------
    >>> scratch = Scratch()
    >>> first = scratch.take((2, 3), torch.device("cpu"))
    >>> scratch.release()
    >>> scratch.take((3, 2), torch.device("cpu")).data_ptr() == first.data_ptr()
    True
    """

    __slots__ = ("_free", "_lent")

    def __init__(self) -> None:
        self._free: list[Tensor] = []  # by size
        self._lent: list[Tensor] = []

    def take(self, shape: Sequence[int], device: torch.device) -> Tensor:
        """A tensor of that shape, until `release` or until it is given back."""
        size = math.prod(shape)
        place = bisect.bisect_left(self._free, size, key=Tensor.numel)
        if place < len(self._free) and self._free[place].device == device:
            buffer = self._free.pop(place)
        else:
            buffer = torch.empty(size + size // 8, device=device)  # batches differ in size from step to step
        self._lent.append(buffer)
        return buffer[:size].view(tuple(shape))

    def give_back(self, tensor: Tensor) -> None:
        """The caller has done with it."""
        for place, buffer in enumerate(self._lent):
            if buffer.data_ptr() == tensor.data_ptr():
                bisect.insort(self._free, self._lent.pop(place), key=Tensor.numel)
                return

    def release(self) -> None:
        """All that is lent is free again; as much as the last round needed is kept."""
        self._free = sorted(self._lent + self._free[-len(self._lent) :], key=Tensor.numel) if self._lent else []
        self._lent = []
