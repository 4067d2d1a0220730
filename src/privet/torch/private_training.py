"""Private training in a loop: the run draws the batches, and each step is charged before it is made."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from privet.clipping import Bounding
from privet.errors import InvalidParameter, NoAmplification
from privet.ledger import Account
from privet.noise import Strategy
from privet.plan import Plan
from privet.privacy import Budget, Guarantee, Neighbours
from privet.randomness import Random
from privet.sampling import Sampling
from privet.torch import training_facts as facts
from privet.torch.augmentation import Augment
from privet.torch.batch_source import DrawnBatch, Source
from privet.torch.batches import Collate
from privet.torch.float_noise import FloatNoise
from privet.torch.gradient_ways import PerExample
from privet.torch.network_checkpoint import Checkpoint
from privet.torch.network_checks import check_optimizer, losses_of
from privet.torch.private_gradient import NoiseKind, PrivateGradient
from privet.torch.processes import Processes
from privet.torch.recording import trainable
from privet.torch.snapshots import Snapshots
from privet.torch.training_plan import Phase, training_plan
from privet.torch.weight_average import WeightAverage

SHAPES = "the shapes and types of an example are public"


class PrivateTraining:
    """A training loop whose steps are private: `for batch in run: run.step(batch)`, then `run.guarantee`.

    Promise: what the optimiser sees in each step is the sum of clipped gradients of a batch drawn here, plus noise of
    the plan, divided by the public `batch_size`. The plan is made from public facts before an example is read: the
    least noise that meets (epsilon, delta). The rate is exactly batch_size ÷ records; an empty batch is a step. Data
    that cannot be read, or that no loss comes of, count as nothing, and nothing tells.

    Parameters
    ----------
    model, optimizer : any `torch.nn.Module` that treats each example by itself, and any optimiser of its parameters
    dataset : a map-style dataset, or a tuple of tensors; Poisson batches are drawn from it. A `DataLoader` is taken in
        its own order, charged without amplification, and a `NoAmplification` warning says so
    loss : one loss for each example, e.g. `torch.nn.CrossEntropyLoss(reduction="none")`, of the model's answer to all
        but the last part of a batch, and the last part
    per_example : instead of `loss`, from the model and a batch of any structure, the vector of losses
    epsilon, delta : the budget of the whole run
    epochs, steps : one of them
    batch_size : expected examples a step, and the divisor
    clip : most norm of one example's gradient, or a rule: `Clip`, `Automatic`, `Adaptive`
    neighbours, records : the relation. With `records`, a public guess of the number of examples, it is "add_remove",
        unless told otherwise; without, the number of examples is public, and it is "zero_out", at the same cost
    sampling : how batches are drawn, Poisson if left out; `phases` : parts with a noise and a clip of their own;
        `correlation` : of the noise over steps (docs/correlated-noise.md); `snapshots` : variance reduction (SVRG)
    collate : from a list of examples, a batch; it must treat each by itself
    groups : whose each example is, for a promise about people: `batch_size` and `records` then count people, and a
        person's share is the mean gradient of all rows, clipped
    example : a made-up example, for its shapes; else they are read off the first one, and are public
    augment : several changed copies of each example, averaged before the clip
    micro_batch : most examples at once in memory
    ema : decay of a running average of weights, `run.averaged()`
    account, label : an `Account` that is charged for the whole plan, before any step
    journal : a file that counts the steps; needed for `save` and `resume`
    noise : `FloatNoise`, or `LatticeNoise`, exact and slower

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(1000, 4)
    >>> data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
    >>> model = nn.Linear(4, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    >>> run = PrivateTraining(model, optimizer, data, loss=nn.CrossEntropyLoss(reduction="none"),
    ...                       epsilon=2, delta=1e-6, epochs=3, batch_size=100)
    >>> for batch in run:
    ...     run.step(batch)
    >>> run.guarantee.epsilon <= 2, run.steps_made
    (True, 30)
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        dataset: Any,
        *,
        loss: Callable[..., Tensor] | None = None,
        per_example: PerExample | None = None,
        epsilon: float,
        delta: float,
        epochs: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        clip: float | Bounding = 1.0,
        neighbours: Neighbours | None = None,
        records: int | None = None,
        sampling: Sampling | None = None,
        phases: Sequence[Phase] = (),
        correlation: Strategy | None = None,
        snapshots: Snapshots | None = None,
        collate: Collate | None = None,
        groups: Any = None,
        example: Any = None,
        augment: Augment | None = None,
        micro_batch: int | None = None,
        ema: float | None = None,
        account: Account | None = None,
        label: str = "training",
        journal: str | Path | None = None,
        noise: NoiseKind = FloatNoise,
        random: Random | None = None,
    ) -> None:
        losses, source = losses_of(loss, per_example), Source.of(dataset, collate, groups)
        relation: Neighbours = neighbours or ("zero_out" if records is None or source.loader else "add_remove")
        size, scheme = facts.batches_of(source, batch_size, sampling)
        by_passes = epochs is not None and steps is None and source.loader is not None
        plan = training_plan(
            records=facts.public_records(len(source.examples), relation, records),
            batch_size=size,
            budget=Budget(epsilon=epsilon, delta=delta),
            epochs=None if by_passes else epochs,
            steps=facts.passes(epochs) * source.batches if by_passes else steps,
            clip=clip,
            neighbours=relation,
            sampling=scheme,
            phases=phases,
            correlation=correlation,
            snapshots=snapshots,
            unit=source.unit,
        )
        settings = {"micro_batch": micro_batch, "augment": augment, "noise": noise, "random": random}
        self._set_up(model, optimizer, source, losses, plan, float(size), example, settings)
        self._average: WeightAverage | None = None if ema is None else WeightAverage(trainable(model), decay=ema)
        self._journal = Processes().once(lambda: facts.charge(plan, account, label, journal))
        if source.loader is not None:
            warnings.warn(NoAmplification.__doc__ or "", NoAmplification, stacklevel=2)

    @classmethod
    def resume(
        cls,
        path: str | Path,
        model: nn.Module,
        optimizer: Optimizer,
        dataset: Any,
        *,
        journal: str | Path,
        loss: Callable[..., Tensor] | None = None,
        per_example: PerExample | None = None,
        collate: Collate | None = None,
        groups: Any = None,
        example: Any = None,
        augment: Augment | None = None,
        micro_batch: int | None = None,
        noise: NoiseKind = FloatNoise,
        random: Random | None = None,
    ) -> "PrivateTraining":
        """Go on with a run from the checkpoint at `path`, whose weights and optimiser state are loaded.

        All steps that the journal counts were charged, also those made after the checkpoint and lost: what is left is
        the rest of the plan, and the guarantee is the plan's. The data must be that of the run before.
        """
        found = Checkpoint.load(path)
        losses, source = losses_of(loss, per_example), Source.of(dataset, collate, groups)
        facts.check_source(found.plan, source)
        run = cls.__new__(cls)
        settings = {"micro_batch": micro_batch, "augment": augment, "noise": noise, "random": random}
        run._set_up(model, optimizer, source, losses, found.plan, found.batch_size, example, settings)
        run._journal, counted = facts.reopened(journal, found.plan, found.run, found.made)
        run._private.meter.resume(source.next_pass(counted, found.plan), clips=found.clips)
        model.load_state_dict(found.model)
        optimizer.load_state_dict(dict(found.optimizer))
        Processes().start_alike(model)
        run._average = WeightAverage.restored(trainable(model), found.average)
        run.extra = dict(found.extra)
        return run

    def _set_up(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        source: Source,
        losses: PerExample,
        plan: Plan,
        batch_size: float,
        example: Any,
        settings: dict[str, Any],
    ) -> None:
        """Check what is public, and try model and loss on made-up examples."""
        check_optimizer(optimizer, model)
        self._private = PrivateGradient(model, losses, plan, batch_size=batch_size, **settings)
        self._private.scale_by(optimizer)
        self._private.prove(source.examples.of_two(source.examples.first() if example is None else example))
        self.model, self.optimizer, self._source, self._batch_size = model, optimizer, source, batch_size
        self._assumed = ((SHAPES,) if example is None else ()) + source.assumed
        self._order = source.order()
        self._drawn: DrawnBatch | None = None
        self.extra: dict[str, Any] = {}

    def __iter__(self) -> Iterator[DrawnBatch]:
        """All batches that are left, one at a time; each is charged when it is drawn."""
        while self.steps_left:
            yield self._draw()

    def epoch(self) -> Iterator[DrawnBatch]:
        """The batches of the next epoch, or what is left."""
        for _ in range(min(self.steps_left, self.steps_an_epoch)):
            yield self._draw()

    @property
    def steps_an_epoch(self) -> int:
        """About records ÷ batch_size, a whole number; with a loader, the batches of a pass."""
        return self._source.batches or max(1, round(self.plan.count / self._batch_size))

    def __len__(self) -> int:
        return self.steps_made + self.steps_left

    def _draw(self) -> DrawnBatch:
        if self._drawn is not None:
            raise InvalidParameter("""Expected run.step(batch) for the batch that was drawn before, got a request for
                the next one: to leave out a step after looking at its examples would tell of them. Call step for each
                batch; to stop, leave the loop.""")
        if self._journal is not None:
            self._journal.charge()
        self._drawn = self._source.draw(self._private, self._order)
        return self._drawn

    def step(self, batch: DrawnBatch) -> None:
        """Clip, sum, add noise, divide, and let the optimiser step on that; `p.grad` keeps the private gradient."""
        if batch is not self._drawn:
            raise InvalidParameter("""Expected the batch that this run drew last, once, got another one: only what the
                run draws by chance, and charges, is what the guarantee is about. Use `for batch in run:
                run.step(batch)`.""")
        self._private.write(batch.parts)
        self._drawn = None
        self._private.step(self.optimizer)
        if self._average is not None:
            self._average.update()

    @property
    def plan(self) -> Plan:
        """What is released, and with what noise."""
        return self._private.plan

    @property
    def steps_made(self) -> int:
        """How many steps were charged."""
        return self._private.steps_made

    @property
    def steps_left(self) -> int:
        """How many steps the plan still has."""
        return self._private.steps_left

    @property
    def epsilon_spent(self) -> float:
        """The epsilon of the steps charged so far, at the budget's delta; what is promised is `guarantee`.

        Whoever stops because of what was learnt so far may rely on the guarantee of the whole plan alone.
        """
        return facts.spent(self.plan, self.steps_made)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole plan promises, however much of it has run, and what that rests on."""
        return self._private.guarantee(assumptions=self._assumed)

    def averaged(self) -> nn.Module:
        """A copy of the model with the running average of its weights; the run must have `ema`."""
        if self._average is None:
            raise InvalidParameter("Expected a run with ema=..., got one without: no average was kept. Set it up so.")
        return self._average.applied(self.model)

    def save(self, path: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Write a checkpoint: weights, optimiser, plan and steps charged; no random state.

        `extra`: plain values and tensors of yours, e.g. of a schedule; after `resume` it is `run.extra`.
        """
        if self._journal is None:
            raise InvalidParameter("""Expected a run with journal=..., got one without: if it were resumed, steps made
                after the checkpoint would be made again, uncounted. Set it up with journal="run.steps".""")
        Checkpoint(
            plan=self.plan,
            run=self._journal.run,
            made=self.steps_made,
            batch_size=self._batch_size,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            clips=self._private.meter.clips,
            average=None if self._average is None else self._average.state(),
            extra=extra or {},
        ).save(path)
