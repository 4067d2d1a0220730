"""One linear layer under cross-entropy: its gradients are known without a backward pass."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from privet.torch.uses import BELOW, LEAST, LONG, LOST, Product, Rows, Use, merged


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
        weight, bias = totals[0], len(totals) > 1
        if x.device.type != "cpu" or x.dtype != torch.float32 or max(weight.shape) > LONG:
            return None
        residuals = self._residuals(x, batch[1])
        lengths = _raised(torch.linalg.vector_norm(x, dim=1).numpy(), x.shape[1])
        norms = _raised(np.sqrt(residuals.square().sum(0).numpy()), len(residuals))
        norms *= np.sqrt(lengths * lengths + 1.0) if bias else lengths
        if not math.isfinite(norms.sum()):
            return None
        factors = np.minimum(clip / norms, 1.0)
        factors *= BELOW
        factors[factors <= LEAST] = 0.0
        residuals *= torch.from_numpy(factors.astype(np.float32))
        weight.addmm_(residuals, x)
        if bias:
            totals[1].add_(residuals.sum(1))
        return 2 * int(np.count_nonzero(norms <= clip)) - len(norms)

    def _residuals(self, x: Tensor, y: Tensor) -> Tensor:
        """Softmax − one-hot, a column an example: so the product with a narrow matrix takes half the time."""
        weight, bias = self._layer.weight.detach(), self._layer.bias
        scores = torch.mm(weight, x.t()) if bias is None else torch.addmm(bias.detach()[:, None], weight, x.t())
        return scores.softmax(0).scatter_add_(0, y[None], self._minus.expand(1, len(y)))


def _raised(norms: NDArray[np.float32], features: int) -> NDArray[np.float64]:
    """Norms of vectors, and no less: what float32 squares lose is added. None is 0."""
    return norms + np.float64(math.sqrt(features) * LOST)
