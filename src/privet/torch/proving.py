"""Before a record is read: are examples independent in this model, and are its gradients those of a loop?

Made-up examples of the right shapes and types stand in for records: numbers from a fixed normal sequence, 0s and 1s for
whole numbers (which any table of embeddings and any list of classes has).
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_leaves, tree_map

from privet.errors import InvalidParameter
from privet.torch.gradient_ways import (
    Looped,
    PerExample,
    Recorded,
    Vmapped,
    Way,
    check_losses,
    script_of,
)
from privet.torch.recording import Call, NotRecorded, Recording
from privet.torch.remembering import Attributes, Memory, check_attributes, check_memory
from privet.torch.softmax_regression import SoftmaxRegression
from privet.torch.uses import Use

_SIZES = (3, 5, 7, 11)
_MANY = 40
_CLOSE = 1e-3


def prove(model: nn.Module, per_example: PerExample, batch: Any) -> tuple[Way, str]:
    """The fastest way that gives the gradients of a loop, and its name; refuses a model that mixes examples."""
    check_layers(model)
    memory = Memory(model, copy=True)
    with torch.random.fork_rng(devices=[]):
        made = made_up(batch, _SIZES[0])
        for size in (_SIZES[0], _MANY):  # a large batch may take a path of its own
            _check_independence(model, per_example, made_up(batch, size), memory)
        expected = Looped(model, _still(per_example)).uses(made, None)
        closed = SoftmaxRegression.of(model, per_example, made)
        if closed is not None and _agrees(closed, made, expected):
            return closed, "closed form"
        script = _script(model, per_example, batch)
        if script is not None and _agrees(Recorded(model, per_example, script, still=True), made, expected):
            return Recorded(model, per_example, script), "book-keeping"
        if _agrees(Vmapped(model, _still(per_example)), made, expected):
            return Vmapped(model, per_example), "torch.func"
    return Looped(model, per_example), "one by one"


def made_up(batch: Any, size: int) -> Any:
    """`size` examples like those of a batch in shape and type, with values of our own."""
    generator = torch.Generator().manual_seed(20_241)

    def like(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        shape = (size, *leaf.shape[1:])
        if leaf.is_floating_point() or leaf.is_complex():
            return torch.randn(shape, generator=generator).to(leaf)
        return torch.randint(2, shape, generator=generator).to(leaf)

    return tree_map(like, batch)


def mixers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Layers that mix or remember examples while they are in training mode, with their names."""
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) or getattr(module, "track_running_stats", False):
            yield name, module


def check_layers(model: nn.Module) -> None:
    """Refuse layers that are known to mix examples, by name."""
    for name, module in mixers(model):
        if isinstance(module, _BatchNorm) and module.training:
            raise InvalidParameter(f"""Expected layers that treat examples one by one, got {type(module).__name__} at
                {name or "the top"!r}: it normalises by statistics of the batch, so that one example changes the
                gradients of all others. Use make_compatible(model), which puts GroupNorm in its place.""")
        if module.training:
            raise InvalidParameter(f"""Expected layers that remember nothing of examples, got {type(module).__name__}
                with track_running_stats=True at {name or "the top"!r}: its running statistics would be released
                without noise. Use make_compatible(model), which switches them off.""")


def _check_independence(model: nn.Module, per_example: PerExample, made: Any, memory: Memory) -> None:
    """Other values in the last example must leave the losses of all others as they are, and the model too."""
    attributes, kept = Attributes(model), []
    size = next(len(leaf) for leaf in tree_leaves(made) if isinstance(leaf, Tensor))
    losses = []
    for change in (None, 3.0, float("nan")):
        changed = made if change is None else tree_map(lambda leaf, by=change: _changed(leaf, by), made)
        torch.manual_seed(7)
        with torch.no_grad():
            found = per_example(model, changed)
        check_memory(memory)
        check_losses(found, size)
        kept.append(attributes.changed())
        losses.append(found[:-1].double())
    check_attributes(*kept[:2])
    for other in losses[1:]:
        if not torch.allclose(losses[0], other, rtol=1e-4, atol=1e-5, equal_nan=True):
            raise InvalidParameter("""Expected losses that depend on their own example alone, got a model or a loss that
                mixes examples (statistics of the batch, a contrastive loss, attention across examples): one record
                would change what all others contribute, and no clipping bounds that. Replace the layer that looks
                across the batch; make_compatible(model) does so for BatchNorm.""")


def _changed(leaf: Any, by: float) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    changed = leaf.clone()
    if leaf.is_floating_point() or leaf.is_complex():
        changed[-1] = changed[-1] * by + by
    elif by == by:  # whole numbers have no NaN
        changed[-1] = 1 - changed[-1].long() if leaf.dtype != torch.bool else ~changed[-1]
    return changed


def _script(model: nn.Module, per_example: PerExample, batch: Any) -> list[Call] | None:
    """The script that two batch sizes agree on; None if there is none."""
    seen: list[list[Call]] = []
    for size in _SIZES:
        try:
            script = script_of(model, per_example, made_up(batch, size))
        except (NotRecorded, RuntimeError, TypeError):
            continue
        if script in seen:
            return script
        seen.append(script)
    return None


def _agrees(way: Way, made: Any, expected: list[Use | None]) -> bool:
    try:
        found = way.uses(made, None)
        for mine, theirs in zip(found, expected, strict=True):
            right = theirs.rows() if theirs is not None else torch.zeros(1)
            wrong = (mine.rows() - right) if mine is not None else right
            scale = float(right.norm())
            if not float(wrong.norm()) <= _CLOSE * scale + 1e-6:
                return False
    except (NotRecorded, RuntimeError, TypeError, NotImplementedError):
        return False
    return True


def _still(per_example: PerExample) -> PerExample:
    """The same losses with nothing dropped out."""

    def losses(model: nn.Module, batch: Any) -> Tensor:
        with Recording((), 0, still=True):
            return per_example(model, batch)

    return losses
