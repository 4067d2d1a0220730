"""Private training in one call, with a line on the terminal and metrics on public data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from privet.clipping import Bounding
from privet.errors import InvalidParameter
from privet.ledger import Account
from privet.plan import Plan
from privet.privacy import Guarantee, Neighbours
from privet.randomness import Random
from privet.solvers.descent import shown
from privet.torch.batches import Examples
from privet.torch.gradient_ways import PerExample
from privet.torch.network_checks import losses_of
from privet.torch.private_gradient import moved
from privet.torch.private_training import PrivateTraining

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
    Trained in 10 steps. The release is (1, 1e-06)-differentially private for one record zeroed out, ...
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
    loss: Callable[..., Tensor] | None = None,
    per_example: PerExample | None = None,
    epsilon: float,
    delta: float,
    batch_size: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    optimizer: Optimizer | None = None,
    validation: Any = None,
    metrics: Mapping[str, Metric] | None = None,
    clip: float | Bounding = 1.0,
    neighbours: Neighbours | None = None,
    records: int | None = None,
    ema: float | None = None,
    account: Account | None = None,
    random: Random | None = None,
) -> Fitted:
    """Train `model` on private `dataset`; parameters as of `PrivateTraining`, and three more.

    Parameters
    ----------
    optimizer : Adam at a learning rate of 0.002 if left out
    validation : PUBLIC examples, measured after each epoch: what is measured is released, without noise. Never a part
        of the private data
    metrics : by name, from the model and a batch, one number for each example; the loss, and the accuracy where labels
        are whole numbers, if left out

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
    public = None if validation is None else Examples(validation)
    losses = losses_of(loss, per_example)
    run = PrivateTraining(
        model,
        optimizer if optimizer is not None else torch.optim.Adam(model.parameters(), lr=2e-3),
        dataset,
        per_example=losses,
        epsilon=epsilon,
        delta=delta,
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        clip=clip,
        neighbours=neighbours,
        records=records,
        ema=ema,
        account=account,
        label="fit",
        random=random,
    )
    measures = metrics if metrics is not None else {"loss": losses, **({} if loss is None else {"accuracy": _right})}
    history: list[dict[str, float]] = []
    for step, batch in zip(shown(len(run), "privet is training"), run, strict=False):
        run.step(batch)
        if public is not None and ((step + 1) % run.steps_an_epoch == 0 or not run.steps_left):
            history.append(measured(run.averaged() if ema is not None else model, public, measures))
    final = run.averaged() if ema is not None else model
    return Fitted(model=final, guarantee=run.guarantee, plan=run.plan, history=tuple(history))


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
