"""Variance reduction: now and then the gradient of all examples, in between noisy differences to it. All is charged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privet._checks import positive, whole
from privet.clipping import Adaptive, Bounding, Clip
from privet.errors import InvalidParameter
from privet.plan import Release
from privet.sampling import Sampling

SNAPSHOTS, DIFFERENCES = "snapshots", "differences"


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshots:
    """SVRG: every so many steps the noisy gradient of *all* examples is taken, and the weights kept as a snapshot; each
    step in between adds to it the noisy mean, over a batch, of gradient here − gradient at the snapshot.

    An example's difference is clipped as one vector. Near the snapshot it is short, so that `difference_clip`, and with
    it the noise, may be a fraction of the clip of a gradient; that is what is gained. Snapshots are further queries,
    each as charged as any, and a pass over all data. Any optimiser steps on the sum of both.
    Theorem: each release is a sum of clipped vectors of single examples at public points. Johnson and Zhang 2013 for
    the idea; `privet.solvers.DPSVRG` is the same for convex losses.

    Parameters
    ----------
    every : steps from one snapshot to the next, its own included
    difference_clip : most norm of one example's difference
    noise : noise multiplier of snapshots ÷ that of differences

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.torch import training_plan
    >>> plan = training_plan(records=10_000, batch_size=500, steps=20, budget=Budget(epsilon=2, delta=1e-6),
    ...                      snapshots=Snapshots(every=10, difference_clip=0.2))
    >>> [(release.name, release.times, release.bound.clip) for release in plan.releases]
    [('snapshots', 1, 1.0), ('differences', 9, 0.2), ('snapshots', 1, 1.0), ('differences', 9, 0.2)]
    """

    every: int
    difference_clip: float
    noise: float = 1.0

    def __post_init__(self) -> None:
        because, use = "without a step after it a snapshot reduces nothing", "Use e.g. 20."
        object.__setattr__(self, "every", whole("every", self.every, least=2, because=because, use=use))
        Clip(clip=self.difference_clip)
        positive("noise", self.noise, because="snapshots need noise too", use="Use 1.")

    def releases(self, rule: Bounding, sampling: Sampling, steps: int) -> tuple[tuple[Release, ...], dict[str, float]]:
        """What a run of so many steps releases, and its noise multipliers, relative to each other."""
        if steps % self.every:
            raise InvalidParameter(f"""Expected a multiple of every={self.every} steps, got {steps:,}: the plan has
                whole rounds of a snapshot and its differences. Use steps={-(-steps // self.every) * self.every}.""")
        if isinstance(rule, Adaptive):
            raise InvalidParameter("""Expected a clip that is fixed where there are snapshots, got one that adapts: it
                would learn of two kinds of gradients. Use a number, Automatic or PerLayer.""")
        whole_one = Release(name=SNAPSHOTS, of="gradients of the loss, of all examples", bound=rule)
        difference = Release(
            name=DIFFERENCES,
            of="differences of gradients, here and at the snapshot",
            bound=Clip(clip=self.difference_clip),
            times=self.every - 1,
            sampling=sampling,
        )
        return (whole_one, difference) * (steps // self.every), {SNAPSHOTS: self.noise, DIFFERENCES: 1.0}


class Anchor:
    """The last snapshot: weights, their noisy gradient and its noise. Public: all of it was released.

    A run without snapshots has none. One that is resumed has none before the next snapshot: its differences are then
    to nothing, which are plain gradients, clipped as differences are.

    Examples
    --------
    >>> weight = nn.Parameter(torch.zeros(1))
    >>> anchor = Anchor()
    >>> for name, gradient in (("snapshots", 3.0), ("differences", 0.5)):
    ...     weight.grad = torch.tensor([gradient])
    ...     noise = anchor.finished(name, [weight], 2.0)
    >>> weight.grad, round(noise, 3)                                # 3 + 0.5, and the noise of both
    (tensor([3.5000]), 2.828)
    """

    def __init__(self) -> None:
        self.weights: list[Tensor] = []
        self._gradient: list[Tensor] = []
        self._noise_stddev = 0.0

    def of(self, name: str) -> list[Tensor] | None:
        """The weights whose gradients are subtracted in a release of that name; None for none."""
        return self.weights or None if name == DIFFERENCES else None

    @torch.no_grad()
    def finished(self, name: str, parameters: Sequence[nn.Parameter], noise_stddev: float) -> float:
        """Keep what a snapshot wrote, or add it to what a difference wrote; the noise of what is written now."""
        if name == SNAPSHOTS:
            self.weights = [parameter.detach().clone() for parameter in parameters]
            self._gradient = [parameter.grad.clone() for parameter in parameters if parameter.grad is not None]
            self._noise_stddev = noise_stddev
        elif name == DIFFERENCES and self.weights:
            for parameter, gradient in zip(parameters, self._gradient, strict=True):
                if parameter.grad is not None:
                    parameter.grad += gradient
            return math.hypot(noise_stddev, self._noise_stddev)
        return noise_stddev
