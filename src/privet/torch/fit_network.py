"""Private training in one call, with a line on the terminal and metrics on public data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from privet._progress import shown
from privet.errors import InvalidParameter
from privet.ledger import Account
from privet.plan import Plan
from privet.privacy import Guarantee
from privet.torch.batches import Examples
from privet.torch.network_checkpoint import Checkpoint
from privet.torch.network_checks import losses_of
from privet.torch.private_gradient import moved
from privet.torch.private_training import PrivateTraining
from privet.torch.processes import Processes
from privet.torch.training_settings import RESUMED, TrainingSettings

Metric = Callable[[nn.Module, Any], Tensor]
_AT_ONCE = 1024  # public examples that are measured at once


@dataclass(frozen=True, kw_only=True, repr=False)
class Fitted:
    """A trained model, what is promised of it, and its metrics on public data after each epoch.

    `model` is the one that was passed, or with `ema` a copy with the average of its weights.

    Examples
    --------
    >>> data = torch.randn(500, 3), torch.randn(500, 1)
    >>> squares = nn.MSELoss(reduction="none")
    >>> found = fit(nn.Linear(3, 1), data, per_example=lambda model, batch: squares(model(batch[0]), batch[1]).sum(1),
    ...             epsilon=1, delta=1e-6, epochs=1, batch_size=50)
    >>> print(found)
    Trained in 10 steps. ε = 1, δ = 1e-06, zero out one, 10 releases of Gaussian noise on Poisson batches; .details for
    all of it
    """

    model: nn.Module
    guarantee: Guarantee
    plan: Plan
    history: tuple[dict[str, float], ...]

    def __str__(self) -> str:
        last = "".join(f", {name} {value:.4g}" for name, value in (self.history[-1] if self.history else {}).items())
        return f"Trained in {sum(release.times for release in self.plan.releases):,} steps{last}. {self.guarantee}"


def fit(
    model: nn.Module,
    dataset: Any,
    *,
    optimizer: Optimizer | None = None,
    validation: Any = None,
    metrics: Mapping[str, Metric] | None = None,
    checkpoint: str | Path | None = None,
    **settings: Unpack[TrainingSettings],
) -> Fitted:
    """Train `model` on private `dataset`, with all options of `PrivateTraining`, by their names, and four more.

    Parameters
    ----------
    optimizer : Adam at a learning rate of 0.002 if left out
    validation : PUBLIC examples, measured after each epoch: what is measured is released, without noise. Never a part
        of the private data
    metrics : by name, from the model and a batch, one number for each example; the loss, and the accuracy where labels
        are whole numbers, if left out
    checkpoint : a file that is written before the first step and after each epoch; needs `journal`. If it is there
        already, the run goes on from it: the same call, made again after a crash, makes the rest of its plan

    Examples
    --------
    >>> x = torch.randn(3000, 4)
    >>> y = (x[:, 0] > 0).long()
    >>> found = fit(nn.Linear(4, 2), (x[:2000], y[:2000]), loss=nn.CrossEntropyLoss(reduction="none"), epsilon=2,
    ...             delta=1e-6, epochs=5, batch_size=200, validation=(x[2000:], y[2000:]))
    >>> found.guarantee.epsilon <= 2, len(found.history), sorted(found.history[-1])
    (True, 5, ['accuracy', 'loss'])
    """
    if validation is not None and validation is dataset:
        raise InvalidParameter("""Expected public examples for validation, got the private ones: metrics of them would
            be released without noise. Pass public data, or leave validation out.""")
    if checkpoint is not None and settings.get("journal") is None:
        raise InvalidParameter("""Expected journal=... with checkpoint=..., got none: steps made after the checkpoint
            would be made again, uncounted. Use e.g. journal="run.steps".""")
    public = None if validation is None else Examples(validation)
    loss, losses = settings.get("loss"), losses_of(settings.get("loss"), settings.get("per_example"))
    settings.setdefault("label", "fit" if checkpoint is None else f"fit, {Path(str(settings['journal'])).name}")
    stepper = optimizer if optimizer is not None else torch.optim.Adam(model.parameters(), lr=2e-3)
    run = started(model, stepper, dataset, checkpoint, settings)
    measures = metrics if metrics is not None else {"loss": losses, **({} if loss is None else {"accuracy": _right})}
    averaged = settings.get("ema") is not None
    history: list[dict[str, float]] = list(run.extra.get("history", []))
    for _, batch in zip(shown(run.steps_left, "privet is training"), run, strict=False):
        run.step(batch)
        if run.steps_made % run.steps_an_epoch == 0 or not run.steps_left:
            if public is not None:
                history.append(measured(run.averaged() if averaged else model, public, measures))
            _save(run, checkpoint, history)
    final = run.averaged() if averaged else model
    return Fitted(model=final, guarantee=run.guarantee, plan=run.plan, history=tuple(history))


def started(
    model: nn.Module, optimizer: Optimizer, dataset: Any, checkpoint: str | Path | None, settings: TrainingSettings
) -> PrivateTraining:
    """A new run; or, if there is a checkpoint, the one that wrote it, whose plan must be the one asked for."""
    if checkpoint is None or not Processes().told(Path(checkpoint).exists()):
        run = PrivateTraining(model, optimizer, dataset, **settings)
        _save(run, checkpoint, [])
        return run
    asked = cast("TrainingSettings", {**settings, "journal": None, "account": None})  # nothing is charged for asking
    plan = PrivateTraining(model, optimizer, dataset, **asked).plan
    if Checkpoint.load(checkpoint).plan != plan:
        raise InvalidParameter(f"""Expected the settings of the run that wrote {Path(checkpoint).name!r}, got others:
            its budget was charged for another plan. Use the same settings, or another checkpoint and journal for a new
            run.""")
    Processes().once(lambda: _charged(plan, settings.get("account"), settings["label"]))
    again: dict[str, Any] = {name: value for name, value in settings.items() if name in (*RESUMED, "journal")}
    return PrivateTraining.resume(checkpoint, model, optimizer, dataset, **again)


def _charged(plan: Plan, account: Account | None, label: str) -> None:
    """Charge an account that does not know of the run yet: it was charged when the run began, but may not be kept."""
    if account is not None and (label, plan.event) not in [(charge.label, charge.event) for charge in account.charges]:
        account.reserve(plan, label=label)


def _save(run: PrivateTraining, checkpoint: str | Path | None, history: list[dict[str, float]]) -> None:
    if checkpoint is not None and Processes().first:
        run.save(checkpoint, extra={"history": history})


@torch.no_grad()
def measured(model: nn.Module, public: Examples, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """The mean of each metric over public examples; what has no meaning for them is left out."""
    modes, device = [(module, module.training) for module in model.modules()], next(model.parameters()).device
    model.eval()
    found: dict[str, list[Tensor]] = {name: [] for name in metrics}
    try:
        for first in range(0, len(public), _AT_ONCE):
            for part in public.read(range(first, min(first + _AT_ONCE, len(public)))):
                for name, metric in metrics.items():
                    found[name].append(metric(model, moved(part.batch, device)).double().reshape(-1))
    finally:
        for module, training in modes:  # each as it was: a layer may be frozen in evaluation mode
            module.training = training
    values = {name: torch.cat(parts) for name, parts in found.items() if parts}
    return {name: float(value.mean()) for name, value in values.items() if value.numel()}


def _right(model: nn.Module, batch: Any) -> Tensor:
    """Whether the largest output is the label's; nothing where labels are no whole numbers."""
    *inputs, target = batch
    scores: Tensor = model(*inputs)
    if target.is_floating_point() or scores.dim() != 2 or target.dim() != 1:
        return torch.empty(0)
    return torch.eq(scores.argmax(1), target)
