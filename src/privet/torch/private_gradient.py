"""One private gradient: draw a batch, sum clipped gradients, add noise, divide by a public number, write `p.grad`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as tree

from privet.arrays import IntArray
from privet.clipping import Bounding
from privet.errors import InvalidParameter, PrivetError
from privet.plan import Meter, Plan
from privet.privacy import Guarantee
from privet.randomness import Random
from privet.torch.adaptive_moments import AdamBC
from privet.torch.augmentation import CHANGES, Augment
from privet.torch.batches import Part, Rows
from privet.torch.clipped_gradients import ClippedGradients, ClippedSum, one_row
from privet.torch.correlated_tensors import CorrelatedTensors
from privet.torch.float_noise import FloatNoise, in_one_row
from privet.torch.gradient_ways import PerExample
from privet.torch.lattice_noise import FLOAT_SUMS, LatticeNoise
from privet.torch.network_checks import check_hooks, check_precision, checked_parameters, try_on
from privet.torch.noise_ahead import NoiseAhead
from privet.torch.processes import Processes
from privet.torch.scaled_adam import ScaledAdam
from privet.torch.snapshots import SNAPSHOTS, Anchor

ALONE = "model and loss treat each example by itself: tried on made-up ones, not proven"
_WORTH_A_THREAD = 1 << 16  # numbers whose noise takes longer than to ask another thread for it
NoiseKind = type[FloatNoise] | type[LatticeNoise]


class PrivateGradient:
    """The noisy, clipped mean gradient of a model, in `p.grad`: for a training loop of one's own.

    Promise: what is written has the noise that `plan` fixed, on a sum to which each example added at most its clip; a
    batch is drawn here, as planned, and there are no more of them than planned. An example whose loss is not finite, or
    on which the model raises, adds nothing. The divisor is the public `batch_size`, never the number that was drawn.

    Parameters
    ----------
    model : its trainable parameters are those that require gradients now; refused later if there are others
    per_example : from the model and a batch, the vector of losses, one for each example
    plan : e.g. `gradient_plan(...)`, calibrated to a budget
    batch_size : the public divisor; that of the plan if left out
    micro_batch : most examples at once in memory; it changes no result
    augment : several changed copies of each example, averaged before the clip
    noise : `FloatNoise`, drawn on a spare core while the model computes, or `LatticeNoise`, exact and slower
    random : the cryptographic generator if left out

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> from privet.sampling import Poisson
    >>> x, y = torch.randn(1000, 3), torch.randn(1000, 1)
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), sampling=Poisson(sampling_rate=0.1), noise_multiplier=1.0,
    ...                      steps=20, records=1000, neighbours="zero_out")
    >>> model = nn.Linear(3, 1)
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> private = PrivateGradient(model, lambda model, batch: (model(batch[0]) - batch[1]).square().sum(1), plan)
    >>> while private.steps_left:
    ...     drawn = torch.from_numpy(private.draw(1000))
    ...     private.write((x[drawn], y[drawn]))
    ...     private.step(optimizer)
    >>> round(private.guarantee(delta=1e-6).epsilon, 2)
    4.28
    """

    def __init__(
        self,
        model: nn.Module,
        per_example: PerExample,
        plan: Plan,
        *,
        batch_size: float | None = None,
        micro_batch: int | None = None,
        augment: Augment | None = None,
        noise: NoiseKind = FloatNoise,
        random: Random | None = None,
    ) -> None:
        self._batch_size, self._augment = batch_size, augment
        self._size = sum(p.numel() for p in checked_parameters(model).values())
        check_hooks(model)
        self._engine = ClippedGradients(model, per_example, micro_batch=micro_batch)
        self.meter = Meter(plan, random=random)
        self._noise = noise(self.meter.random)
        self._ours = frozenset(id(p) for p in self._engine.parameters)
        self._ahead: NoiseAhead | None = None
        independent = all(release.correlation is None for release in plan.releases)
        if not independent and not isinstance(self._noise, FloatNoise):
            raise InvalidParameter("""Expected FloatNoise where noise is correlated, got another: there is no exact form
                for tensors yet. Leave noise= out.""")
        if isinstance(self._noise, FloatNoise) and self._size >= _WORTH_A_THREAD and independent:
            self._ahead = NoiseAhead(self._noise, self._size)
        self._correlated: dict[str, CorrelatedTensors] = {}
        self._scaled_by: ScaledAdam | None = None
        self._scales: list[Tensor] | None = None
        self._anchor = Anchor()
        self._processes = Processes()
        self._processes.start_alike(model)
        self._open: str | None = None
        self.noise_stddev = 0.0  # of each number that was written last

    @property
    def plan(self) -> Plan:
        """What is released, and with what noise."""
        return self.meter.plan

    @property
    def steps_made(self) -> int:
        """How many steps were charged."""
        return len(self.meter.record)

    @property
    def steps_left(self) -> int:
        """How many steps the plan still has."""
        return sum(release.times for release in self.plan.releases) - self.steps_made

    def draw(self, count: int) -> IntArray | None:
        """Charge the next step and draw its batch out of `count` examples; None for all of them. Private."""
        name = self._next()
        found = self._processes.part(self.meter.open(name, count=count), count)
        self._begin(name)
        return found

    def draw_elsewhere(self) -> None:
        """Charge the next step, whose batch somebody else draws, as the plan says."""
        if self._processes.count > 1:
            raise InvalidParameter("""Expected a dataset in several processes, got a DataLoader: each process would read
                another order. Pass the dataset itself, and Poisson batches are drawn from it.""")
        name = self._next()
        self.meter.open_elsewhere(name)
        self._begin(name)

    def write(self, batch: Any) -> None:
        """The noisy mean gradient of the drawn examples, written to `p.grad` of each trainable parameter.

        `batch` is what `per_example` takes, the example dimension first in each of its tensors, or a list of parts that
        `Examples.read` made. Everything about it that is wrong counts as nothing.
        """
        name = self._open
        if name is None:
            raise InvalidParameter("""Expected a batch that was drawn for this step, got none drawn: what is summed
                would not be what was charged. Call draw() before each write().""")
        check_precision(self._engine.parameters[0].device.type)
        check_hooks(self._engine.model)
        rule = self.meter.rule(name)
        self._scales = self._scaled_by.scales(self._engine.parameters) if self._scaled_by is not None else None
        for parameter in self._engine.parameters:
            parameter.grad = None  # its memory is that of the sum, from now on
        total, within = self._sum(batch if isinstance(batch, list) else as_parts(batch), rule, self._anchor.of(name))
        within = self._processes.total(within)
        correlation = self.plan[name].correlation
        stddev = self.meter.float_noise(name, clip=rule.clip, size=self._size, within=within, correlation=correlation)
        self._open = None
        divisor = (self._batch_size if name != SNAPSHOTS else None) or self.plan.batch_size(name)
        self.noise_stddev = stddev / divisor
        if self._processes.first:
            self._add_noise(name, total, stddev)
        self._processes.add_up(total)
        if self._processes.count > 1 and self.meter.clips:
            self.meter.resume(self.steps_made, clips=self._processes.told(self.meter.clips))
        for share, scale in zip(total, self._scales or (), strict=self._scales is not None):
            share /= scale
        for row in in_one_row(total):
            row /= divisor
        for parameter, share in zip(self._engine.parameters, total, strict=True):
            parameter.grad = share.to(parameter.dtype)
        self.noise_stddev = self._anchor.finished(name, self._engine.parameters, self.noise_stddev)

    def _add_noise(self, name: str, total: list[Tensor], stddev: float) -> None:
        correlation = self.plan[name].correlation
        if correlation is not None:
            if name not in self._correlated and isinstance(self._noise, FloatNoise):
                times = self.plan.times(name)
                self._correlated[name] = CorrelatedTensors(correlation, steps=times, fresh=self._noise)
            self._correlated[name].add_(total, stddev)
        elif self._ahead is not None:
            self._ahead.add_(total, stddev)
        else:
            for share in in_one_row(total):
                self._noise.add_(share, stddev)

    def prove(self, batch: Any) -> None:
        """Try model and loss on made-up examples of these shapes; refuses what cannot be trained in private.

        Without it they are tried on the shapes of the first batch that is written.
        """
        try_on(self._engine, moved(batch, self._engine.parameters[0].device), self._augment)

    def scale_by(self, optimizer: Optimizer) -> None:
        """Scale gradients before the clip, if it is `ScaledAdam` that steps on them."""
        self._scaled_by = optimizer if isinstance(optimizer, ScaledAdam) else None

    def step(self, optimizer: Optimizer) -> None:
        """Let the optimiser step on what was written; `AdamBC` is told how much noise that has.

        Gradients of parameters that are not trained here are forgotten: it would step on them without noise.
        """
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in self._ours:
                    parameter.grad = None
        if isinstance(optimizer, AdamBC):
            optimizer.noise_stddev = self.noise_stddev
        optimizer.step()

    def guarantee(self, *, delta: float | None = None, assumptions: tuple[str, ...] = ()) -> Guarantee:
        """What all steps of the plan promise, however many were made."""
        held = dict.fromkeys((*self._noise.assumptions, FLOAT_SUMS, *(() if self._augment is None else (CHANGES,))))
        return self.meter.guarantee(delta=delta, assumptions=(*held, ALONE, *assumptions))

    def _begin(self, name: str) -> None:
        self._open = name
        if self._ahead is not None:
            self._ahead.prepare()

    def _next(self) -> str:
        name = self.meter.next_name
        if name is None:
            raise InvalidParameter("""Expected no step after the last that was planned, got one more: the guarantee
                does not cover it. Plan for more steps.""")
        return name

    def _sum(self, parts: list[Part], rule: Bounding, anchor: list[Tensor] | None = None) -> tuple[list[Tensor], int]:
        """Σ over all parts; one on which the model raises is taken apart until only the guilty are left out."""
        total: list[Tensor] = []
        within, waiting, device = 0, list(parts), self._engine.parameters[0].device
        while waiting:
            part = waiting.pop()
            try:
                found = self._of(moved(part.batch, device), rule, getattr(part, "sizes", None), anchor)
            except (PrivetError, MemoryError, torch.OutOfMemoryError):
                raise  # a refusal on public facts, or a machine too small: no example's own doing
            except Exception:  # noqa: BLE001  # a label out of range, a shape that does not fit: it would tell
                waiting.extend(part.halves())
                continue
            within += found.within
            for sum_, share in zip(total, found.gradients, strict=bool(total)):
                sum_ += share
            total = total or list(found.gradients)
        return total or list(one_row(self._engine.parameters)[1]), within

    def _of(self, batch: Any, rule: Bounding, sizes: Tensor | None, anchor: list[Tensor] | None) -> ClippedSum:
        if self._augment is not None:
            batch, each = self._augment.applied(batch)
            sizes = each if sizes is None else sizes * self._augment.copies
        return self._engine.sum(batch, rule, sizes=sizes, scales=self._scales, anchor=anchor)


def as_parts(batch: Any) -> list[Part]:
    """A batch that a user put together, as one part; none if it has no example."""
    leaves = [leaf for leaf in tree.tree_leaves(batch) if isinstance(leaf, Tensor)]
    if not leaves or not len(leaves[0]):
        return []
    if isinstance(batch, tuple | list) and all(isinstance(item, Tensor) for item in batch):
        return [Rows(tuple(batch))]
    return [_Tree(batch)]


class _Tree:
    """A batch of any structure, whose tensors all have the example first."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self.count = len(next(leaf for leaf in tree.tree_leaves(batch) if isinstance(leaf, Tensor)))

    def halves(self) -> tuple[Part, ...]:
        middle = self.count // 2
        pieces = (slice(None, middle), slice(middle, None)) if middle else ()
        return tuple(_Tree(tree.tree_map(lambda leaf, at=at: _piece(leaf, at), self.batch)) for at in pieces)


def _piece(leaf: Any, at: slice) -> Any:
    return leaf[at] if isinstance(leaf, Tensor) else leaf


def moved(batch: Any, device: torch.device) -> Any:
    """The batch on the model's device."""
    if isinstance(batch, tuple | list) and all(isinstance(leaf, Tensor) and leaf.device == device for leaf in batch):
        return batch
    return tree.tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, Tensor) else leaf, batch)
