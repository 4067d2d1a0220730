"""What a forward pass leaves behind in a model: nothing of examples, as a model is released without further noise.

Running statistics, codebooks, tables that are renormalised where they are looked up, activations kept for later: all of
it would be as private as the examples, and is refused.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from privet.errors import InvalidParameter


class Memory:
    """The parameters and buffers of a model as they are now, and whether they still are.

    PyTorch counts how often a tensor was written to, but not through `.data` or by a batch norm: with `copy`, values
    are kept and compared too, and put back.

    Examples
    --------
    >>> model = nn.BatchNorm1d(2)
    >>> memory = Memory(model, copy=True)
    >>> memory.changed()
    ''
    >>> _ = model(torch.randn(4, 2))
    >>> memory.changed() in ("running_mean", "num_batches_tracked")
    True
    """

    def __init__(self, model: nn.Module, *, copy: bool = False) -> None:
        self._modules = tuple(model.modules())
        self._model = model
        self._held = self._tensors()
        self._places = [(held, name, t) for held in self._dictionaries() for name, t in held.items() if t is not None]
        self._written = [_writes(tensor) for tensor in self._held]
        self._values = [tensor.detach().clone() for tensor in self._held] if copy else []

    def changed(self) -> str:
        """The name of a tensor that was written to or exchanged since; empty if there is none."""
        now = self._tensors()
        same = len(now) == len(self._held) and all(a is b for a, b in zip(now, self._held, strict=True))
        if same and [_writes(tensor) for tensor in now] == self._written and not self._others():
            return ""
        before = {id(tensor): writes for tensor, writes in zip(self._held, self._written, strict=True)}
        named, others = [*self._model.named_parameters(), *self._model.named_buffers()], self._others()
        found = (name for name, t in named if before.get(id(t)) != _writes(t) or id(t) in others)
        return next(found, "a part of it")

    def _others(self) -> set[int]:
        """Of tensors whose values are no longer those that were copied."""
        pairs = zip(self._held, self._values, strict=False)
        return {id(now) for now, value in pairs if not torch.allclose(now, value, rtol=0, atol=0, equal_nan=True)}

    @torch.no_grad()
    def put_back(self) -> None:
        """Every tensor as it was, if a copy was taken."""
        if not self._values:
            return
        others = self._others()
        for tensor, value in zip(self._held, self._values, strict=True):
            if id(tensor) in others:
                tensor.copy_(value)
        for held, name, tensor in self._places:
            held[name] = tensor

    def _tensors(self) -> list[Tensor]:
        return [tensor for held in self._dictionaries() for tensor in held.values() if tensor is not None]

    def _dictionaries(self) -> list[dict[str, Any]]:
        return [held for module in self._modules for held in (module._parameters, module._buffers) if held]


def _writes(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def check_memory(memory: Memory) -> None:
    """Refuse parameters and buffers that a forward pass has written to; they are put back if a copy was taken."""
    name = memory.changed()
    if name:
        memory.put_back()
        raise InvalidParameter(f"""Expected parameters and buffers that a forward pass leaves alone, got {name!r}, which
            it changes: what it remembers of examples would be released without noise. Take it out of the model, or keep
            it constant (of an embedding, leave out max_norm).""")


class Attributes:
    """Tensors that modules keep as plain attributes, and which of them a forward pass has changed since."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._before = {place: [(id(t), _writes(t)) for t in kept] for place, kept in self._kept().items()}
        self._alive = self._kept()  # so that no number of a tensor is given to another one

    def changed(self) -> dict[str, list[Tensor]]:
        """By name, copies of what was changed or added since."""
        return {
            place: [tensor.detach().clone() for tensor in kept]
            for place, kept in self._kept().items()
            if self._before.get(place) != [(id(t), _writes(t)) for t in kept]
        }

    def _kept(self) -> dict[str, list[Tensor]]:
        found: dict[str, list[Tensor]] = {}
        for name, module in self._model.named_modules():
            for attribute, value in vars(module).items():
                if not attribute.startswith(("_parameters", "_buffers", "_modules")):
                    found[f"{name}.{attribute}".lstrip(".")] = [t for t in _leaves(value) if isinstance(t, Tensor)]
        return {place: kept for place, kept in found.items() if kept}


def check_attributes(first: dict[str, list[Tensor]], second: dict[str, list[Tensor]]) -> None:
    """Refuse attributes that were changed by two forward passes, to what depends on the examples of each."""
    for name, kept in second.items():
        before = first.get(name)
        if before is not None and not _alike(before, kept):
            raise InvalidParameter(f"""Expected a model that keeps nothing of examples, got {name!r}, an attribute that
                a forward pass sets to what depends on them: it is private, and would be copied and saved with the
                model. Return it instead, or take it out.""")


def _alike(first: list[Tensor], second: list[Tensor]) -> bool:
    return len(first) == len(second) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
        for a, b in zip(first, second, strict=True)
    )


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    return tree_leaves(value) if isinstance(value, tuple | list | dict) else []
