"""Three ways to the gradients of single examples: by book-keeping, by `torch.func`, and one after the other.

All give the same numbers; the first is the fast one, the last works for every model whose examples are independent.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils._pytree import tree_leaves, tree_map

from privet.errors import InvalidParameter
from privet.torch.recording import Call, NotRecorded, Recording, Sources, trainable
from privet.torch.scratch import Scratch
from privet.torch.uses import Product, Rows, Use, merged, together

PerExample = Callable[[nn.Module, Any], Tensor]
"""The losses of a batch, one number an example."""


class Way(Protocol):
    """A way to the gradients of single examples."""

    def uses(self, batch: Any, sizes: Tensor | None) -> list[Use | None]:
        """How each trainable parameter was used by each unit, in order; None where it was not.

        A unit has `sizes` neighbouring examples, and its gradient is their mean; without sizes, one.
        """


class Recorded:
    """What went into each layer and what came back to it, by a forward pass that follows `script`."""

    def __init__(
        self, model: nn.Module, per_example: PerExample, script: Sequence[Call] | None, *, still: bool = False
    ) -> None:
        self._model, self._per_example, self._script, self._still = model, per_example, script, still
        self.scratch: Scratch | None = None

    def uses(self, batch: Any, sizes: Tensor | None) -> list[Use | None]:
        parameters = tuple(trainable(self._model).values())
        scratch = self.scratch if sizes is None else None
        recording = Recording(parameters, length(batch), script=self._script, still=self._still, scratch=scratch)
        try:
            self._watch(recording, parameters, batch, sizes)
            with torch.no_grad():
                return _by_parameter(recording, len(parameters), sizes)
        finally:
            recording.taps.clear()  # a ring of references that runs through autograd would never be freed

    def _watch(
        self, recording: Recording, parameters: tuple[nn.Parameter, ...], batch: Any, sizes: Tensor | None
    ) -> None:
        """Forward and back, in the sight of `recording`."""
        before = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        try:
            with torch.enable_grad():
                with recording:
                    losses = self._per_example(self._model, batch)
                check_losses(losses, recording.size)
                total = losses.sum(dtype=torch.float32) if sizes is None else (losses * _shares(sizes)).sum()
            if total.requires_grad:
                total.backward()  # type: ignore[no-untyped-call]
            seen = self._script is None or len(recording.calls) == len(self._script)
            if not seen or any(parameter.grad is not None for parameter in parameters):
                raise NotRecorded  # a path of the graph led to a parameter: a use was not seen
        finally:
            for parameter, gradient in zip(parameters, before, strict=True):
                parameter.grad = gradient


def script_of(model: nn.Module, per_example: PerExample, batch: Any) -> list[Call]:
    """The calls of a forward pass in which trainable parameters took part."""
    recording = Recording(tuple(trainable(model).values()), length(batch), still=True)
    try:
        with torch.enable_grad(), recording:
            check_losses(per_example(model, batch), length(batch))
    finally:
        recording.taps.clear()
    return recording.calls


class Vmapped:
    """All gradients at once, each of its own copy of the model, by `torch.func`."""

    def __init__(self, model: nn.Module, per_example: PerExample) -> None:
        self._model, self._per_example = model, per_example

    def uses(self, batch: Any, sizes: Tensor | None) -> list[Use | None]:
        parameters = {name: parameter.detach() for name, parameter in trainable(self._model).items()}
        moving = [leaf for leaf in tree_leaves(batch) if isinstance(leaf, Tensor)]

        def loss(values: dict[str, Tensor], *row: Tensor) -> Tensor:
            rows = iter(row)
            alone = tree_map(lambda leaf: next(rows)[None] if isinstance(leaf, Tensor) else leaf, batch)
            shim = _Shim(self._model, self._per_example)
            found: Tensor = functional_call(shim, {f"model.{name}": value for name, value in values.items()}, (alone,))
            return found.sum()

        dims = (None, *[0] * len(moving))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop")  # slower, and as right
            rows = vmap(grad(loss), in_dims=dims, randomness="different")(parameters, *moving)
        return _as_uses(rows.values(), [value.shape for value in parameters.values()], sizes)


class _Shim(nn.Module):
    """Losses as the output of a module, so that its parameters can be exchanged for a call."""

    def __init__(self, model: nn.Module, per_example: PerExample) -> None:
        super().__init__()
        self.model, self._per_example = model, per_example

    def forward(self, batch: Any) -> Tensor:
        return self._per_example(self.model, batch)


class Looped:
    """One example after the other: slow, and right for every model."""

    def __init__(self, model: nn.Module, per_example: PerExample) -> None:
        self._model, self._per_example = model, per_example

    def uses(self, batch: Any, sizes: Tensor | None) -> list[Use | None]:
        parameters = tuple(trainable(self._model).values())
        rows: list[list[Tensor]] = [[] for _ in parameters]
        for place in range(length(batch)):
            with torch.enable_grad():
                losses = self._per_example(self._model, part(batch, place, place + 1))
                check_losses(losses, 1)
                found = torch.autograd.grad(losses.sum(), parameters, allow_unused=True)
            for row, parameter, gradient in zip(rows, parameters, found, strict=True):
                row.append(torch.zeros_like(parameter) if gradient is None else gradient.to_dense())
        stacked = [torch.stack(row).float() for row in rows]
        return _as_uses(stacked, [parameter.shape for parameter in parameters], sizes)


def length(batch: Any) -> int:
    """How many examples a batch holds: the first dimension of its first tensor."""
    for leaf in batch if isinstance(batch, tuple | list) else tree_leaves(batch):
        if isinstance(leaf, Tensor):
            if leaf.dim():
                return leaf.shape[0]
        elif isinstance(leaf, tuple | list | dict):
            return length(tree_leaves(batch))
    return 0


def part(batch: Any, start: int, stop: int) -> Any:
    """Examples `start` to `stop` of a batch."""
    return tree_map(lambda leaf: leaf[start:stop] if isinstance(leaf, Tensor) else leaf, batch)


def chosen(batch: Any, places: Tensor) -> Any:
    """These examples of a batch."""
    return tree_map(lambda leaf: leaf[places.to(leaf.device)] if isinstance(leaf, Tensor) else leaf, batch)


def check_losses(losses: Any, size: int) -> None:
    """Refuse losses that are not one an example."""
    if not isinstance(losses, Tensor) or losses.shape != (size,):
        what = f"a tensor of shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
        raise InvalidParameter(f"""Expected one loss for each of {size} examples, got {what}: what one example
            contributes could not be told from the others. Use a loss with reduction="none", averaged over all but the
            first dimension.""")


def _shares(sizes: Tensor) -> Tensor:
    return (1.0 / sizes).repeat_interleave(sizes)


def _by_parameter(recording: Recording, count: int, sizes: Tensor | None) -> list[Use | None]:
    sources = recording.sources
    found: dict[int, list[Use]] = {}
    for number, use in recording.found():
        turned = sources.turned.get(number)
        if turned is not None and isinstance(use, Product):
            number, use = turned, use.transposed()
        found.setdefault(number, []).append(use)
    for number in sorted((n for n in found if n >= count), reverse=True):
        rows = together(found.pop(number), sources.tensors[number].shape).rows()
        for root, row in _carried_back(sources, number, rows):
            found.setdefault(root, []).append(Rows(row, sources.tensors[root].shape))
    result: list[Use | None] = [None] * count
    for number, uses in found.items():
        shape = sources.tensors[number].shape
        use = together(uses, shape)
        result[number] = use if sizes is None else merged(use, sizes, shape)
    return result


def _carried_back(sources: Sources, number: int, rows: Tensor) -> Iterator[tuple[int, Tensor]]:
    """The gradients of a tensor that was computed from parameters, as gradients of those."""
    tensor, roots = sources.tensors[number], sources.roots[number]
    upstream = rows.view(len(rows), *tensor.shape).to(tensor.dtype)
    wanted = [sources.tensors[root] for root in roots]
    settings: dict[str, Any] = {"is_grads_batched": True, "retain_graph": True, "allow_unused": True}
    for root, gradient in zip(roots, torch.autograd.grad(tensor, wanted, upstream, **settings), strict=True):
        if gradient is not None:
            yield root, gradient.float()


def _as_uses(rows: Any, shapes: Sequence[torch.Size], sizes: Tensor | None) -> list[Use | None]:
    found: list[Use | None] = []
    for row, shape in zip(rows, shapes, strict=True):
        mine = row if sizes is None else row * _shares(sizes).view(-1, *[1] * len(shape))
        use: Use = Rows(mine.float(), shape)
        found.append(use if sizes is None else merged(use, sizes, shape))
    return found
