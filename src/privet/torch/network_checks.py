"""What is refused before any example is touched: on facts about the model, the loss and the optimiser alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as tree
from torch.utils.data import default_collate

from privet.errors import InvalidParameter, PrivetError

PerExample = Callable[[nn.Module, Any], Tensor]
Trainable = Mapping[str, nn.Parameter]
_TRIED = 4  # made-up examples


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that require gradients, by name; refused if there are none, or none that noise suits.

    Examples
    --------
    >>> sorted(trainable(nn.Linear(2, 1)))
    ['bias', 'weight']
    """
    if not isinstance(model, nn.Module):
        raise InvalidParameter(f"""Expected a torch.nn.Module, got {type(model).__name__}: its parameters could not be
            found. Wrap it in a Module.""")
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise InvalidParameter("""Expected a model with parameters that require gradients, got none: nothing would be
            trained. Unfreeze what is to be trained: p.requires_grad_(True).""")
    if len(devices := {p.device.type for p in found.values()}) > 1 or "meta" in devices:
        raise InvalidParameter(f"""Expected all trainable parameters on one device, got {sorted(devices)}: their
            gradients are one vector with one clip. Move the model: model.to("cpu").""")
    low = [name for name, p in found.items() if p.dtype not in (torch.float32, torch.float64)]
    if low:
        raise InvalidParameter(f"""Expected trainable parameters of 32 or 64 bits, got {found[low[0]].dtype} for
            {low[0]!r}: so few bits swallow the noise. Keep parameters in float32, and run the forward pass under
            torch.autocast("cpu", dtype=torch.bfloat16).""")
    return found


def check_unchanged(model: nn.Module, kept: Trainable) -> None:
    """Refuse a model whose trainable parameters are no longer those it was set up with."""
    now = [p for p in model.parameters() if p.requires_grad]
    if len(now) != len(kept) or any(one is not other for one, other in zip(now, kept.values(), strict=True)):
        raise InvalidParameter("""Expected the trainable parameters of the set-up, got others: what was added, replaced
            or unfrozen since would be trained without a clip. Set up the run after the model is complete.""")


def check_precision(model: nn.Module) -> None:
    """Refuse 16-bit floats of the narrow kind: they need a loss scaler, which skips steps as the data have it."""
    kind = next(model.parameters()).device.type
    if torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16:
        raise InvalidParameter("""Expected autocast to bfloat16, or none, got float16: it overflows, a GradScaler then
            skips the step, and that depends on the data. Use torch.autocast(..., dtype=torch.bfloat16).""")


def check_modules(model: nn.Module) -> bool:
    """Refuse layers that mix the examples of a batch; True if some would, once they are put into training mode."""
    found = False
    for name, module in model.named_modules():
        if not isinstance(module, nn.modules.batchnorm._BatchNorm):
            continue
        found = True
        if module.training or not module.track_running_stats:
            raise InvalidParameter(f"""Expected layers that treat each example by itself, got {type(module).__name__}
                at {name or "the top"!r}: batch statistics let one example move what all others add. Use GroupNorm or
                LayerNorm, or make_compatible(model).""")
    return found


def check_optimizer(optimizer: Optimizer, model: nn.Module) -> None:
    """Refuse an optimiser that does not hold the model's trainable parameters, or holds others than the model's."""
    if not isinstance(optimizer, Optimizer):
        raise InvalidParameter(f"""Expected a torch.optim.Optimizer, got {type(optimizer).__name__}: it is asked to step
            on the private gradient. Use e.g. torch.optim.SGD(model.parameters(), lr=0.1).""")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidParameter("""Expected an optimiser that asks for one gradient a step, got LBFGS: each further one
            would need its own noise and budget. Use SGD, Adam or AdamW.""")
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    missing = [name for name, p in trainable(model).items() if id(p) not in held]
    if missing:
        raise InvalidParameter(f"""Expected an optimiser that holds all trainable parameters of the model, got one
            without {missing[0]!r}{f" and {len(missing) - 1} more" if len(missing) > 1 else ""}: budget would be spent
            on gradients that nobody uses. Build it from model.parameters() after the model is complete, or freeze the
            parameter.""")
    if held - {id(p) for p in model.parameters()}:
        raise InvalidParameter("""Expected an optimiser that holds this model's parameters only, got others too: their
            gradients are neither clipped nor noised. Build it from model.parameters().""")


def losses_of(loss: Callable[..., Tensor] | None, per_example: PerExample | None) -> PerExample:
    """`per_example`, or one that applies `loss` to what the model makes of all but the last part of a batch.

    Examples
    --------
    >>> losses_of(nn.CrossEntropyLoss(), None)
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected a loss with reduction='none', got 'mean': losses that are added up \
before they are clipped cannot be told apart. Use CrossEntropyLoss(reduction='none').
    """
    if (loss is None) == (per_example is None):
        raise InvalidParameter("""Expected one of loss= and per_example=, got both or none: it must be clear what is
            minimised. Use loss=torch.nn.CrossEntropyLoss(reduction="none").""")
    if per_example is not None:
        return per_example
    reduction = getattr(loss, "reduction", "none")
    if reduction != "none":
        raise InvalidParameter(f"""Expected a loss with reduction='none', got {reduction!r}: losses that are added up
            before they are clipped cannot be told apart. Use {type(loss).__name__}(reduction='none').""")

    def of_last(model: nn.Module, batch: Any) -> Tensor:
        *inputs, target = batch
        return loss(model(*inputs), target)  # type: ignore[misc]  # not None here

    return of_last


def one_each(per_example: PerExample) -> PerExample:
    """The same, but it raises `ManyLosses` where there is not one loss for each example.

    An odd shape that a model flattens would else be taken for several examples, each with a clip of its own.
    """

    def checked(model: nn.Module, batch: Any) -> Tensor:
        found = per_example(model, batch)
        first = next((leaf for leaf in tree.tree_leaves(batch) if isinstance(leaf, Tensor) and leaf.dim()), None)
        if isinstance(found, Tensor) and first is not None and found.shape != (len(first),):
            raise ManyLosses(tuple(found.shape))
        return found

    return checked


class ManyLosses(Exception):
    """Losses of another shape than one for each example."""


def made_up(example: Any, collate: Callable[[list[Any]], Any] | None) -> Any:
    """A batch of made-up examples, of the shapes of `example` and none of its values: waves, and zeros for labels."""
    return (collate or default_collate)([_invented(example, seed) for seed in range(_TRIED)])


def _invented(example: Any, seed: int) -> Any:
    def leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = torch.from_numpy(value)
        if isinstance(value, Tensor):
            if not value.is_floating_point():
                return torch.zeros_like(value)
            waves = torch.sin(1.7 * seed + 12.9898 * torch.arange(value.numel(), dtype=torch.float64))
            return waves.reshape(value.shape).to(value.dtype)
        return type(value)() if isinstance(value, bool | int) else 0.5 * seed if isinstance(value, float) else value

    return tree.tree_map(leaf, example)


def try_on_made_up(model: nn.Module, per_example: PerExample, batch: Any) -> None:
    """Refuse a loss that is not one for each example, changes with the others, or leaves traces in the model.

    Nothing is read but made-up examples; weights, buffers and torch's generator are as before.
    """
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            together = _losses(model, per_example, batch)
            for kept in (slice(0, 1), slice(0, _TRIED - 1)):
                others = tree.tree_map(lambda leaf, kept=kept: _with_others(leaf, kept), batch)
                if not torch.equal(_losses(model, per_example, others)[kept], together[kept]):
                    raise InvalidParameter("""Expected model and loss to treat each example by itself, got a loss that
                        changed with the examples beside it: then one of them moves what all others add, and no clip
                        bounds that. Take means and scales over an example's own numbers, never over the batch.""")
            alone = _losses(model, per_example, tree.tree_map(lambda leaf: _first(leaf), batch))
            if not torch.allclose(alone, together[:1], rtol=1e-3, atol=1e-3, equal_nan=True):
                raise InvalidParameter("""Expected a loss that is the same for an example alone and among others, got
                    another: it is divided by the size of the batch, or by what depends on it. Return the loss of each
                    example itself; the run divides by a public number.""")
        changed = [name for name, buffer in model.named_buffers() if not _same(buffer, buffers.get(name))]
        if changed:
            raise InvalidParameter(f"""Expected buffers that a forward pass leaves alone, got {changed[0]!r} changed:
                what it keeps of the examples would be released without noise. Freeze it, or call .eval() on its
                module.""")
    finally:
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in buffers and buffer.shape == buffers[name].shape:
                    buffer.copy_(buffers[name])


def _losses(model: nn.Module, per_example: PerExample, batch: Any) -> Tensor:
    torch.manual_seed(0)  # dropout falls alike each time; the caller's generator is put back
    try:
        found = per_example(model, batch)
    except PrivetError:
        raise
    except ManyLosses as many:
        raise InvalidParameter(f"""Expected one loss for each of the made-up examples, got losses of shape
            {many.args[0]}: if they are added up, or spread out, they cannot be clipped by example. Use
            reduction="none", and add up an example's own parts: losses.flatten(1).sum(1).""") from None
    except Exception as error:  # noqa: BLE001  # a user's code may raise anything, and here no example is at stake
        raise InvalidParameter(f"""Expected a model and a loss that take a batch of made-up examples, got
            {type(error).__name__} ({str(error)[:200]}): they could not be tried before data is touched. Check shapes
            and types; per_example=... takes a batch of any structure, example=... one of the right shape.""") from None
    if not isinstance(found, Tensor) or not found.is_floating_point():
        raise InvalidParameter(f"""Expected a tensor of losses, got {type(found).__name__}: there is nothing to take
            gradients of. Return one loss for each example.""")
    return found


def _with_others(leaf: Any, kept: slice) -> Any:
    """The tensor with all examples but those `kept` replaced by wild ones; whole numbers stay."""
    if not isinstance(leaf, Tensor) or not leaf.is_floating_point():
        return leaf
    wild = leaf * -37.0 + 11.0
    wild[kept] = leaf[kept]
    return wild


def _first(leaf: Any) -> Any:
    return leaf[:1] if isinstance(leaf, Tensor) and leaf.dim() else leaf


def _same(now: Tensor, before: Tensor | None) -> bool:
    return before is not None and now.shape == before.shape and torch.equal(now, before)
