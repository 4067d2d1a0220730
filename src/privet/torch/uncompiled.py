"""Compiled models: their private steps run as they are written, as a compiled graph shows no layer's input."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn


def uncompiled(model: nn.Module) -> AbstractContextManager[object]:
    """Run `torch.compile`d parts of a model as they were before, while this lasts.

    Gradients would be the same; but the compiler would look at the book-keeping too, anew for each batch, in vain.

    Examples
    --------
    >>> model = torch.compile(nn.Linear(3, 2), backend="eager")
    >>> with uncompiled(model):
    ...     model(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """
    compiled = ("_orig_mod" in m._modules or m._compiled_call_impl is not None for m in model.modules())
    return torch.compiler.set_stance("force_eager") if any(compiled) else nullcontext()
