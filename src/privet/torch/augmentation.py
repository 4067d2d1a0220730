"""Several changed copies of each example, averaged before the clip: more to learn from at the same privacy cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as tree

from privet._checks import whole
from privet.torch.gradient_ways import length

CHANGES = "the augmentation, user-supplied code, changes each example by itself"


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Each example is read `copies` times, changed by `change`; its share is the mean gradient of its copies, clipped.

    Theorem: the mean is a function of the one example, and it is clipped as any gradient is. De, Berrada, Hayes, Smith
    and Balle 2022, section 3.4 ("augmentation multiplicity"). A step takes `copies` times as long.

    Parameters
    ----------
    change : from a batch, one of as many examples, each made from its own alone; chance is welcome
    copies : of each example

    Examples
    --------
    >>> mirror = Augment(change=lambda batch: (batch[0] * torch.tensor([[1.0], [-1.0]]), batch[1]), copies=2)
    >>> mirror.applied((torch.tensor([[3.0]]), torch.tensor([7])))
    ((tensor([[ 3.],
            [-3.]]), tensor([7, 7])), tensor([2]))
    """

    change: Callable[[Any], Any]
    copies: int

    def __post_init__(self) -> None:
        use = "Use e.g. 8."
        object.__setattr__(self, "copies", whole("copies", self.copies, because="an example is read so often", use=use))

    def applied(self, batch: Any) -> tuple[Any, Tensor]:
        """The copies, those of one example together, and how many each has."""
        count = length(batch)
        copied = tree.tree_map(
            lambda leaf: leaf.repeat_interleave(self.copies, 0) if isinstance(leaf, Tensor) else leaf, batch
        )
        found = self.change(copied)
        if length(found) != count * self.copies:
            # refused at set-up; of data, the examples whose fault it is are left out
            raise ValueError("an augmentation must return as many examples as it gets")
        return found, torch.full((count,), self.copies)
