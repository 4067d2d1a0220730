"""The options of a training run by name and type, for whoever passes them on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from torch import Tensor

from privet.clipping import Bounding
from privet.ledger import Account
from privet.noise import Strategy
from privet.privacy import Neighbours
from privet.randomness import Random
from privet.sampling import Sampling
from privet.torch.augmentation import Augment
from privet.torch.batches import Collate
from privet.torch.gradient_ways import PerExample
from privet.torch.private_gradient import NoiseKind
from privet.torch.snapshots import Snapshots
from privet.torch.training_plan import Phase


class TrainingSettings(TypedDict):
    """All options of `PrivateTraining`, which explains them; only a budget is required."""

    epsilon: float
    delta: float
    loss: NotRequired[Callable[..., Tensor] | None]
    per_example: NotRequired[PerExample | None]
    epochs: NotRequired[float | None]
    steps: NotRequired[int | None]
    batch_size: NotRequired[int | None]
    clip: NotRequired[float | Bounding]
    neighbours: NotRequired[Neighbours | None]
    records: NotRequired[int | None]
    sampling: NotRequired[Sampling | None]
    phases: NotRequired[Sequence[Phase]]
    correlation: NotRequired[Strategy | None]
    snapshots: NotRequired[Snapshots | None]
    collate: NotRequired[Collate | None]
    groups: NotRequired[Any]
    example: NotRequired[Any]
    augment: NotRequired[Augment | None]
    micro_batch: NotRequired[int | None]
    ema: NotRequired[float | None]
    account: NotRequired[Account | None]
    label: NotRequired[str]
    journal: NotRequired[str | Path | None]
    noise: NotRequired[NoiseKind]
    random: NotRequired[Random | None]


# Those that a run takes anew when it is resumed: the others are in its plan, or were charged.
RESUMED = ("loss", "per_example", "collate", "groups", "example", "augment", "micro_batch", "noise", "random")
