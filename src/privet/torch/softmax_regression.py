"""One linear layer under cross-entropy: its gradients are known without a backward pass."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.torch.few_threads import few_threads
from privet.torch.uses import BELOW, LONG, LOST, Product, Rows, Use, merged, squares

_MODERATE = 2.0**40  # clips up to this, and down to its inverse, are plain float32 numbers beside what is lost
_LARGE = 2.0**80  # a norm of so many clips: its factor is still well above LEAST


@dataclass(frozen=True, slots=True)
class LossOf:
    """Losses of a batch that ends in its targets: loss(model(inputs), targets), one an example.

    Losses of several numbers an example are averaged over them.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> per_example = LossOf(nn.CrossEntropyLoss(reduction="none"))
    >>> per_example(nn.Linear(3, 2), (torch.zeros(4, 3), torch.zeros(4, dtype=torch.long))).shape
    torch.Size([4])
    """

    loss: Any

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        *inputs, targets = batch
        losses: Tensor = self.loss(model(*inputs), targets)
        return losses.flatten(1).mean(1) if losses.dim() > 1 else losses


class SoftmaxRegression:
    """A way to gradients for `nn.Linear` under `nn.CrossEntropyLoss`: (softmax − one-hot) ⊗ x."""

    def __init__(self, layer: nn.Linear) -> None:
        self._layer = layer
        self._minus = torch.full((1, 1), -1.0, dtype=layer.weight.dtype, device=layer.weight.device)

    @classmethod
    def of(cls, model: nn.Module, per_example: Any, batch: Any) -> "SoftmaxRegression | None":
        """This way, if model, loss and batch are such."""
        layers = list(model.children()) if type(model) is nn.Sequential else [model]
        loss = getattr(per_example, "loss", None)
        plain = type(loss) is nn.CrossEntropyLoss and loss.weight is None and not loss.label_smoothing
        if loss is None or getattr(loss, "ignore_index", 0) >= 0:
            return None  # a class that is left out would be trained on
        if not (isinstance(per_example, LossOf) and plain and len(batch) == 2):
            return None
        *before, last = layers
        x, y = batch
        fits = type(last) is nn.Linear and all(type(layer) is nn.Flatten for layer in before)
        flat = (x.dim() == 2 or bool(before)) and y.dim() == 1 and not y.is_floating_point()
        trains = all(parameter.requires_grad for parameter in model.parameters())
        hooked = any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)
        return cls(last) if fits and flat and trains and not hooked else None  # type: ignore[arg-type]

    def uses(self, batch: Any, sizes: Tensor | None) -> list[Use | None]:
        x = batch[0].flatten(1)
        residuals = self._residuals(x, batch[1]).t().contiguous()
        if sizes is not None:
            residuals *= (1.0 / sizes).repeat_interleave(sizes)[:, None]
        found: list[Use] = [Product(x[:, None], residuals[:, None])]
        if self._layer.bias is not None:
            found.append(Rows(residuals, self._layer.bias.shape))
        if sizes is not None:
            return [merged(use, sizes, p.shape) for use, p in zip(found, self._layer.parameters(), strict=True)]
        return list(found)

    def add_clipped(self, batch: Any, clip: float, totals: Sequence[Tensor]) -> int | None:
        """Add gradients clipped to `clip` to the totals; None, and nothing added, where that takes more care.

        Norms are those of `uses`, ‖residuals‖ · √(‖x‖² + 1), rounded up alike. Returned is how many examples are within
        the clip, less those beyond.
        """
        x = batch[0] if batch[0].dim() == 2 else batch[0].flatten(1)
        weight = totals[0]
        odd = x.device.type != "cpu" or x.dtype != torch.float32 or len(weight) > LONG
        if odd or not 1.0 / _MODERATE <= clip <= _MODERATE:
            return None
        with few_threads(x.shape[0] * weight.numel()):
            return self._clipped(x, batch[1], clip, totals)

    def _clipped(self, x: Tensor, y: Tensor, clip: float, totals: Sequence[Tensor]) -> int | None:
        weight, bias = totals[0], len(totals) > 1
        residuals = self._residuals(x, y)
        # (‖r‖ + a)² (‖x‖ + b)², a and b what float32 squares lose; ‖r‖² ≤ 2, so that 2a‖r‖ + a² ≤ 4a
        with np.errstate(all="ignore"):
            if x.shape[1] > LONG:
                squared = squares(x).float().numpy()
            else:
                squared = torch.linalg.vector_norm(x, dim=1).numpy()
                squared += math.sqrt(x.shape[1]) * LOST
                squared *= squared
            if bias:
                squared += 1.0
            squared *= residuals.square().sum(0).numpy() + np.float32(4.0 * math.sqrt(len(residuals)) * LOST)
            norms = np.sqrt(squared, out=squared)
            if not float(norms.max(initial=0.0)) < clip * _LARGE:
                return None  # not finite, or its factor would be nothing
            within = 2 * int(np.count_nonzero(norms <= clip)) - len(norms)
            factors = np.float32(clip * BELOW) / np.maximum(norms, clip, out=norms)
        residuals *= torch.from_numpy(factors)
        weight.addmm_(residuals, x)
        if bias:
            totals[1].add_(residuals.sum(1))
        return within

    def _residuals(self, x: Tensor, y: Tensor) -> Tensor:
        """Softmax − one-hot, a column an example: so the product with a narrow matrix takes half the time."""
        weight, bias = self._layer.weight.detach(), self._layer.bias
        scores = torch.mm(weight, x.t()) if bias is None else torch.addmm(bias.detach()[:, None], weight, x.t())
        return scores.softmax(0).scatter_add_(0, y[None], self._minus.expand(1, len(y)))
