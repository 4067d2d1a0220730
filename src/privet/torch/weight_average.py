"""A running average of weights: what is averaged was released, so that it costs nothing."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from privet._checks import between
from privet.torch.network_checks import Trainable


class WeightAverage:
    """Exponential average of the trainable weights: a ← d·a + (1 − d)·w with d = min(decay, (1 + t) ÷ (10 + t)).

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> average = WeightAverage({"w": weight}, decay=0.5)
    >>> weight.data += 1.0
    >>> average.update()
    >>> average.weights["w"]
    tensor([0.9000])
    """

    def __init__(self, weights: Trainable, *, decay: float) -> None:
        because = "it is how much of the average a step keeps"
        self.decay = between("ema", decay, 0, 1, because=because, use="Use e.g. 0.99.")
        self._live = dict(weights)
        self.weights = {name: p.detach().clone() for name, p in weights.items()}
        self._steps = 0

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights as they are now into the average."""
        keep = min(self.decay, (1 + self._steps) / (10 + self._steps))
        self._steps += 1
        for name, average in self.weights.items():
            average.lerp_(self._live[name].detach(), 1 - keep)

    @torch.no_grad()
    def applied(self, model: nn.Module) -> nn.Module:
        """A copy of the model with these weights."""
        found = copy.deepcopy(model)
        for name, parameter in found.named_parameters():
            if name in self.weights:
                parameter.copy_(self.weights[name])
        return found

    def state(self) -> dict[str, object]:
        """What a checkpoint keeps of it."""
        return {"decay": self.decay, "steps": self._steps, "weights": dict(self.weights)}

    @classmethod
    def restored(cls, weights: Trainable, state: Mapping[str, Any] | None) -> "WeightAverage | None":
        """The average that a checkpoint kept of such weights, if it did."""
        if state is None:
            return None
        found = cls(weights, decay=state["decay"])
        found._steps = state["steps"]
        for name, value in state["weights"].items():
            found.weights[name].copy_(value)
        return found
