"""The plan of a training run, from public facts alone: rate, steps, clip, and the least noise that meets a budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from privet._checks import is_number, positive, whole
from privet.clipping import Bounding, Clip
from privet.errors import InvalidParameter
from privet.noise import Strategy
from privet.plan import Plan, Release
from privet.privacy import Budget, Neighbours, Unit, check_neighbours
from privet.sampling import Passes, Poisson, Sampling
from privet.torch.snapshots import Snapshots


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A part of a run with its own clip and noise, fixed beforehand.

    Parameters
    ----------
    share : of all steps, relative to the other phases
    noise : noise multiplier, relative to the other phases
    clip : of this phase; that of the run if left out

    Examples
    --------
    >>> plan = training_plan(records=10_000, batch_size=100, epochs=2, budget=Budget(epsilon=2, delta=1e-6),
    ...                      clip=1.0, phases=[Phase(noise=2.0), Phase(noise=1.0, clip=0.5)])
    >>> [(r.name, r.times, r.bound.clip, round(r.noise_multiplier, 2)) for r in plan.releases]
    [('gradients 1', 100, 1.0, 1.61), ('gradients 2', 100, 0.5, 0.8)]
    """

    share: float = 1.0
    noise: float = 1.0
    clip: float | None = None

    def __post_init__(self) -> None:
        for name in ("share", "noise"):
            positive(name, getattr(self, name), because="a phase has steps, and each has noise", use="Use e.g. 1.")


def training_plan(
    *,
    records: int,
    batch_size: int,
    budget: Budget,
    epochs: float | None = None,
    steps: int | None = None,
    clip: float | Bounding = 1.0,
    neighbours: Neighbours = "add_remove",
    sampling: Sampling | None = None,
    phases: Sequence[Phase] = (),
    correlation: Strategy | None = None,
    snapshots: Snapshots | None = None,
    unit: Unit = "record",
) -> Plan:
    """The plan of `steps` private gradients, with the least noise that meets the budget.

    Parameters
    ----------
    records : how many examples there are; under "add_remove" a public guess
    batch_size : expected examples a step; the sampling rate is exactly batch_size ÷ records
    budget : what the whole run may cost
    epochs, steps : one of them; an epoch is records ÷ batch_size steps, and steps are rounded up at the end
    clip : most norm of one example's gradient, or a rule: `Clip`, `Automatic`, `Adaptive`
    neighbours : the relation
    sampling : how batches are drawn; Poisson if left out
    phases : parts with a noise and a clip of their own, in order
    correlation : how noise is correlated over the steps; needs a `sampling` for which that is proven
    snapshots : variance reduction (SVRG): snapshots of all examples, and differences to them
    unit : whom the run protects; of "person", `records` and `batch_size` count people

    Examples
    --------
    >>> plan = training_plan(records=60_000, batch_size=512, epochs=20, budget=Budget(epsilon=3, delta=1e-6))
    >>> run = plan.event
    >>> run.count, round(run.event.rate, 5), round(run.event.event.noise_multiplier, 3)
    (2344, 0.00853, 0.949)
    """
    count = whole("records", records, because="the rate is batch_size ÷ records", use="Pass a public number.")
    because = "a batch is drawn from the records"
    batch = whole("batch_size", batch_size, most=count, because=because, use="Use at most the number of records.")
    total = step_count(epochs, steps, count / batch)
    draws = sampling if sampling is not None else Poisson(sampling_rate=batch / count)
    rule = clip if not is_number(clip) else Clip(clip=clip)  # type: ignore[arg-type]
    if not isinstance(rule, Bounding):
        raise InvalidParameter(f"""Expected clip to be a positive number or a clipping rule, got {clip!r}: an example's
            gradient must be bounded. Use clip=1.0.""")
    if isinstance(draws, Passes) and (phases or snapshots):
        raise InvalidParameter("""Expected neither phases nor snapshots for batches that somebody else draws, got some:
            a pass that two of them share would be charged to neither in full. Pass the dataset itself, not a
            DataLoader.""")
    if bool(phases) + (correlation is not None) + (snapshots is not None) > 1:
        raise InvalidParameter("""Expected at most one of phases, correlation and snapshots, got two of them: noise is
            correlated over all steps alike, and differences have a clip of their own. Leave one of them out.""")
    if snapshots is not None:
        releases, ratios = snapshots.releases(rule, draws, total)
    else:
        releases, ratios = _phases(tuple(phases) or (Phase(),), rule, draws, correlation, total)
    plan = Plan(releases=releases, records=count, neighbours=check_neighbours(neighbours), unit=unit)
    return plan.calibrated(budget, ratios=ratios if len(ratios) > 1 else None)


def _phases(
    parts: Sequence[Phase], rule: Bounding, draws: Sampling, correlation: Strategy | None, total: int
) -> tuple[tuple[Release, ...], dict[str, float]]:
    """What the phases of a run of so many steps release, and their noise multipliers, relative to each other."""
    common: dict[str, Any] = {"of": "gradients of the loss", "sampling": draws, "correlation": correlation}
    shares = list(accumulate(phase.share for phase in parts))
    ends = [round(total * share / shares[-1]) for share in shares]
    releases, ratios = [], {}
    for place, (phase, first, last) in enumerate(zip(parts, [0, *ends], ends, strict=False), 1):
        name = "gradients" if len(parts) == 1 else f"gradients {place}"
        bound = rule if phase.clip is None else Clip(clip=phase.clip)
        if last <= first:
            raise InvalidParameter(f"""Expected each phase to have a step, got none for phase {place} of {total} steps:
                it would be left out. Raise its share, or the steps.""")
        releases.append(Release(name=name, bound=bound, times=last - first, **common))
        ratios[name] = phase.noise
    return tuple(releases), ratios


def step_count(epochs: float | None, steps: int | None, an_epoch: float) -> int:
    """How many steps: as said, or those of so many epochs, rounded up."""
    if (epochs is None) == (steps is None):
        raise InvalidParameter("""Expected one of epochs= and steps=, got both or none: the noise is calibrated to a
            number of steps. Use e.g. epochs=20.""")
    if steps is not None:
        return whole("steps", steps, because="without a step nothing is learnt", use="Use e.g. 1000.")
    long = positive("epochs", epochs, because="without a step nothing is learnt", use="Use e.g. 20.")
    return max(1, math.ceil(long * an_epoch - 1e-9))
