"""One example at a time: clipped gradients without any tricks, and plain cryptographic noise in floats.

The slow and obvious way that the fast one is tested against.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as tree

from privet.clipping import Bounding
from privet.randomness import Random, uniforms

PerExample = Callable[[nn.Module, Any], Tensor]
"""From a model and a collated batch, the losses, one for each example."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ClippedSum:
    """Σ of clipped gradients, one tensor a parameter; private until its noise is in.

    `within` is that of `LatticeSum`: examples within the clip, less half of all that counted, in halves.
    """

    gradients: tuple[Tensor, ...]
    within: int = 0


class ExampleLoop:
    """Sums of clipped gradients by a loop over examples.

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> model = nn.Linear(2, 1, bias=False)
    >>> engine = ExampleLoop(model, lambda model, batch: model(batch[0]).squeeze(1))
    >>> engine.sum((torch.tensor([[3.0, 4.0], [float("nan"), 0.0]]),), Clip(clip=1.0)).gradients
    (tensor([[0.6000, 0.8000]]),)
    """

    def __init__(self, model: nn.Module, per_example: PerExample, *, micro_batch: int | None = None) -> None:
        self.model, self.per_example = model, per_example
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names = tuple(name for name, _ in named)
        self.parameters = tuple(p for _, p in named)

    def sum(self, batch: Any, rule: Bounding) -> ClippedSum:
        """Each example's whole gradient shortened by `rule`, to norm at most its clip; non-finite ones are nothing."""
        total = [torch.zeros_like(p) for p in self.parameters]
        within = 0
        for one in _singles(batch):
            loss = self.per_example(self.model, one).sum()
            found = torch.autograd.grad(loss, self.parameters, allow_unused=True, materialize_grads=True)
            norm = float(torch.stack([g.double().norm() for g in found]).norm())
            if not np.isfinite(norm):
                continue
            within += 1 if norm <= rule.clip else -1
            asked = rule.factor(np.array([norm]))
            factor = rule.clip / max(norm, rule.clip) if asked is None else float(asked[0])
            factor = min(factor, rule.clip / norm) if norm > 0 else 0.0
            for sum_, gradient in zip(total, found, strict=True):
                sum_ += gradient * (factor * (1 - 2.0**-20))
        return ClippedSum(gradients=tuple(total), within=within)


class PlainNoise:
    """Gaussian noise in floats from cryptographic words: taken for ideal, which no float is.

    Examples
    --------
    >>> from privet.randomness import fixed_seed_invalidates_guarantee
    >>> noisy = PlainNoise(fixed_seed_invalidates_guarantee(1)).add_(torch.zeros(10_000), 3.0)
    >>> bool(2.9 < noisy.std() < 3.1)
    True
    """

    def __init__(self, random: Random) -> None:
        self.random = random

    def add_(self, tensor: Tensor, stddev: float) -> Tensor:
        """Add independent noise to each number of `tensor`, in place."""
        pairs = (tensor.numel() + 1) // 2
        first, second = uniforms(self.random, 2 * pairs).reshape(2, pairs)
        radius = stddev * np.sqrt(-2 * np.log1p(-first))
        normal = np.concatenate([radius * np.cos(2 * np.pi * second), radius * np.sin(2 * np.pi * second)])
        noise = torch.from_numpy(normal[: tensor.numel()]).to(tensor)
        return tensor.add_(noise.reshape(tensor.shape))


def _singles(batch: Any) -> Iterator[Any]:
    leaves, shape = tree.tree_flatten(batch)
    for place in range(len(leaves[0]) if leaves else 0):
        yield tree.tree_unflatten([leaf[place : place + 1] for leaf in leaves], shape)
