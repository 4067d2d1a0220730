"""What is refused before any example is touched: on facts about the model, the loss and the optimiser alone."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as everything
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves

from privet.errors import InvalidParameter, PrivetError
from privet.torch.augmentation import Augment
from privet.torch.clipped_gradients import ClippedGradients
from privet.torch.gradient_ways import PerExample, part
from privet.torch.proving import made_up
from privet.torch.recording import Recording, trainable
from privet.torch.softmax_regression import LossOf
from privet.torch.turns import TRIAL

Trainable = Mapping[str, nn.Parameter]


def checked_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that require gradients, by name; refused if there are none, or none that noise suits.

    Examples
    --------
    >>> sorted(checked_parameters(nn.Linear(2, 1)))
    ['bias', 'weight']
    """
    if not isinstance(model, nn.Module):
        raise InvalidParameter(f"""Expected a torch.nn.Module, got {type(model).__name__}: its parameters could not be
            found. Wrap it in a Module.""")
    found = trainable(model)
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


def check_precision(kind: str) -> None:
    """Refuse 16-bit floats of the narrow kind: they need a loss scaler, which skips steps as the data have it."""
    if torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16:
        raise InvalidParameter("""Expected autocast to bfloat16, or none, got float16: it overflows, a GradScaler then
            skips the step, and that depends on the data. Use torch.autocast(..., dtype=torch.bfloat16).""")


def check_hooks(model: nn.Module) -> None:
    """Refuse hooks that would see, or change, gradients of examples before these are clipped.

    Examples
    --------
    >>> layer = nn.Linear(2, 1)
    >>> handle = layer.weight.register_hook(lambda gradient: 2 * gradient)
    >>> check_hooks(layer)
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected no backward hooks, got one at 'Linear': it would see gradients of single \
examples before noise, or never run. Remove it, and change private gradients in an optimiser of your own.
    """
    everywhere = everything._global_backward_hooks or everything._global_backward_pre_hooks
    if not everywhere and not any(map(_hooked, model.modules())):
        return
    hooked = [name or type(module).__name__ for name, module in model.named_modules() if _hooked(module)]
    where = f"at {hooked[0]!r}" if hooked else "of all modules"
    raise InvalidParameter(f"""Expected no backward hooks, got one {where}: it would see gradients of single examples
        before noise, or never run. Remove it, and change private gradients in an optimiser of your own.""")


def _hooked(module: nn.Module) -> bool:
    """Whether it, or one of its own parameters, has a backward hook."""
    if module._backward_hooks or module._backward_pre_hooks:
        return True
    held = module._parameters.values()
    return any(p is not None and (p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None)) for p in held)


def check_optimizer(optimizer: Optimizer, model: nn.Module) -> None:
    """Refuse an optimiser that does not hold the model's trainable parameters, or holds others than the model's."""
    if not isinstance(optimizer, Optimizer):
        raise InvalidParameter(f"""Expected a torch.optim.Optimizer, got {type(optimizer).__name__}: it is asked to step
            on the private gradient. Use e.g. torch.optim.SGD(model.parameters(), lr=0.1).""")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidParameter("""Expected an optimiser that asks for one gradient a step, got LBFGS: each further one
            would need its own noise and budget. Use SGD, Adam or AdamW.""")
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise InvalidParameter("""Expected an optimiser of dense gradients, got SparseAdam: noise is added to every row
            of a table, also to those that nobody asked for. Use Adam or AdamW.""")
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    missing = [name for name, p in checked_parameters(model).items() if id(p) not in held]
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
    return LossOf(loss)


def try_on(engine: ClippedGradients, batch: Any, augment: Augment | None = None) -> None:
    """Refuse a model and a loss that do not treat each example by itself, on made-up examples like those of `batch`.

    Only shapes and types of `batch` are read; weights, buffers and torch's generator are as before.
    """
    try:
        made = made_up(batch, 3)
        if augment is not None:
            made = part(augment.applied(made)[0], 0, 3)
        engine.prove(made)
        with TRIAL, torch.random.fork_rng(devices=[]), torch.no_grad(), Recording((), 0, still=True):
            together, alone = (engine.per_example(engine.model, part(made, 0, count))[:1] for count in (3, 1))
    except PrivetError:
        raise
    except Exception as error:  # noqa: BLE001  # a user's code may raise anything, and here no example is at stake
        made_here = all(
            isinstance(leaf, Tensor) for leaf in tree_leaves(batch)
        )  # texts and the like are an example's own
        said = f" ({str(error)[:200]})" if made_here else ""
        raise InvalidParameter(f"""Expected a model and a loss that take a batch of made-up examples, got
            {type(error).__name__}{said}: they could not be tried before data is touched. Check shapes
            and types; per_example=... takes a batch of any structure, example=... one of the right shape.""") from None
    if not torch.allclose(alone, together, rtol=1e-3, atol=1e-3, equal_nan=True):
        raise InvalidParameter("""Expected a loss that is the same for an example alone and among others, got another:
            it is divided by the size of the batch, or by what depends on it. Return the loss of each example itself;
            the run divides by a public number.""")
