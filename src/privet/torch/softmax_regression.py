"""One linear layer under cross-entropy: its gradients are known without a backward pass."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.uses import Product, Rows, Use, merged


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
        x, y = batch[0].flatten(1), batch[1]
        weight, bias = self._layer.weight.detach(), self._layer.bias
        scores = F.linear(x, weight, None if bias is None else bias.detach())
        residuals = scores.softmax(1)
        residuals.scatter_add_(1, y[:, None], scores.new_full((len(y), 1), -1.0))
        if sizes is not None:
            residuals *= (1.0 / sizes).repeat_interleave(sizes)[:, None]
        found: list[Use] = [Product(x[:, None], residuals[:, None])]
        if bias is not None:
            found.append(Rows(residuals, bias.shape))
        if sizes is not None:
            return [merged(use, sizes, p.shape) for use, p in zip(found, self._layer.parameters(), strict=True)]
        return list(found)
