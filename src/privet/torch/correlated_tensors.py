"""Correlated noise for the gradients of a network: one stream over all of its parameters."""

from collections.abc import Sequence
from typing import Protocol

import torch

from privet.errors import InvalidParameter
from privet.noise import NoiseFilter, Strategy
from privet.noise.past import NeverSaved, StepCount


class FreshNoise(Protocol):
    """What draws independent noise, `FloatNoise` for one."""

    def fill(self, out: torch.Tensor, stddev: float) -> None:
        """Overwrite a float32 tensor with noise."""


class CorrelatedTensors(NeverSaved):
    """Adds C⁻¹z to gradients, step by step: z is independent, drawn by `fresh`, over all parameters at once.

    Promise: what all steps add is C⁻¹ times what `fresh` drew, up to float32; `correlated_mechanism` is its price, if
    the noise is ideal, which is to be said among the assumptions. The stddev is the same at every step; more than
    `steps`, other shapes, and going on after a step that was interrupted are refused. It keeps bands − 1 vectors of the
    size of the model, is never saved, and cannot be: after a crash the steps that are left begin a new one, which costs
    no more if they read the batches planned for them (docs/proofs/correlated.md, section 5).

    Parameters
    ----------
    strategy : of the plan's release
    steps : of the whole run
    fresh : draws independent noise into a tensor

    Examples
    --------
    >>> from privet.noise import banded_inverse_square_root
    >>> class Ones:
    ...     def fill(self, out, stddev):
    ...         out.fill_(stddev)
    >>> noise = CorrelatedTensors(banded_inverse_square_root(2), steps=3, fresh=Ones())
    >>> gradient = torch.zeros(2)
    >>> noise.add_([gradient], 4.0); noise.add_([gradient], 4.0)          # 4, then 4 − 4/2
    >>> gradient
    tensor([6., 6.])
    """

    __slots__ = ("_count", "_filter", "_fresh", "_sizes", "_stddev")

    def __init__(self, strategy: Strategy, *, steps: int, fresh: FreshNoise) -> None:
        self._filter = NoiseFilter(strategy, steps=steps, zeros=torch.zeros)
        self._fresh, self._count = fresh, StepCount(steps)
        self._sizes: tuple[int, ...] | None = None
        self._stddev = 0.0

    def add_(self, tensors: Sequence[torch.Tensor], stddev: float) -> None:
        """Add the noise of the next step to float32 tensors, in place; `stddev` is that of z."""
        sizes = tuple(tensor.numel() for tensor in tensors)
        if any(tensor.dtype != torch.float32 for tensor in tensors):
            raise InvalidParameter("""Expected float32 sums, got another type: fewer bits lose the noise, and more are
                left bare by it. Sum up in float32.""")
        if self._sizes is None:
            self._sizes, self._stddev = sizes, stddev
        if self._sizes != sizes or self._stddev != stddev:
            raise InvalidParameter("""Expected the same parameters and the same noise at every step, got others: noise
                is correlated over all steps, and its price is for one size. Plan one noise for the whole run.""")
        with self._count, torch.no_grad():
            drawn = torch.empty(sum(sizes))
            self._fresh.fill(drawn, stddev)
            noise = self._filter.next(drawn)
            for tensor, part in zip(tensors, noise.split(sizes), strict=True):
                tensor.add_(part.view(tensor.shape).to(tensor.device))
