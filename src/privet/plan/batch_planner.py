"""Which batch size, and how many steps, for a budget and a number of gradients that one can afford."""

from dataclasses import dataclass

from privet._checks import whole
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.plan.plan import Plan, gradient_plan
from privet.privacy import Budget, Neighbours
from privet.sampling import Poisson

_SMALLEST = 16
_CLOSE = 1.1  # times the least noise


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A batch size and the steps that are affordable with it, with the noise that the budget then needs.

    `step_noise` is the noise on each number of one mean gradient, `mean_noise` that of the average over all steps: both
    in units of the clip.

    Examples
    --------
    >>> row = plan_training(records=1000, epsilon=2, delta=1e-6, compute=10_000).chosen
    >>> row.batch_size * row.steps <= 10_000, row.plan.guarantee().epsilon <= 2
    (True, True)
    """

    batch_size: int
    steps: int
    epochs: float
    noise_multiplier: float
    step_noise: float
    mean_noise: float
    plan: Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """All batch sizes that were tried, and the one to begin with. Its `str` is a table.

    Examples
    --------
    >>> found = plan_training(records=1000, epsilon=2, delta=1e-6, compute=10_000)
    >>> [row.batch_size for row in found.rows], found.chosen.batch_size
    ([16, 32, 64], 32)
    """

    rows: tuple[Choice, ...]
    chosen: Choice

    def __str__(self) -> str:
        head = "     batch      steps  epochs   noise   in a step   in the mean"
        lines = [
            f"{row.batch_size:10,} {row.steps:10,} {row.epochs:7.3g} {row.noise_multiplier:7.3f} "
            f"{row.step_noise:11.2e} {row.mean_noise:13.2e}{'  <' if row == self.chosen else ''}"
            for row in self.rows
        ]
        return "\n".join([head, *lines])


def plan_training(
    *,
    records: int,
    epsilon: float,
    delta: float,
    compute: int,
    least_steps: int = 100,
    neighbours: Neighbours = "add_remove",
) -> Choices:
    """Batch sizes in powers of two that spend `compute` gradients of single examples, each with its noise.

    With small batches every step needs noise of its own, and their average is noisy; from some size on, larger ones no
    longer help: noise per step then falls as fast as the number of steps does. Chosen is the smallest batch, and so the
    most steps, whose average is within a tenth of the least noise: a rule of thumb, not a theorem. Nothing is read but
    public numbers.

    Parameters
    ----------
    records : how many examples, or a public guess
    compute : how many gradients of single examples can be afforded: batch size × steps, e.g. 20 × records for 20 epochs
    least_steps : batches that leave fewer are not tried

    Examples
    --------
    >>> print(plan_training(records=60_000, epsilon=3, delta=1e-6, compute=20 * 60_000, least_steps=300))
         batch      steps  epochs   noise   in a step   in the mean
            16     75,000      20   0.552    3.45e-02      1.26e-04
            32     37,500      20   0.590    1.85e-02      9.53e-05
            64     18,750      20   0.640    9.99e-03      7.30e-05
           128      9,375      20   0.706    5.51e-03      5.69e-05
           256      4,687      20   0.802    3.13e-03      4.57e-05
           512      2,343      20   0.949    1.85e-03      3.83e-05
         1,024      1,171      20   1.175    1.15e-03      3.35e-05  <
         2,048        585      20   1.517    7.41e-04      3.06e-05
    """
    count = whole("records", records, because="rates follow from it", use="Pass a public number.")
    spend = whole("compute", compute, because="it is batch size × steps", use="Use e.g. 20 times the records.")
    least = whole("least_steps", least_steps, because="a descent takes steps", use="Use e.g. 100.")
    most = min(count, spend // least)
    if most < _SMALLEST:
        raise InvalidParameter(f"""Expected compute for {least:,} steps of at least {_SMALLEST} examples each, got
            {spend:,} for {count:,} records: there is no batch to choose. Raise compute, or lower least_steps.""")
    sizes = [_SMALLEST << k for k in range((most // _SMALLEST).bit_length())]
    budget = Budget(epsilon=epsilon, delta=delta)
    rows = tuple(_choice(count, size, spend // size, budget, neighbours) for size in sizes)
    least_noise = min(row.mean_noise for row in rows)
    return Choices(rows=rows, chosen=next(row for row in rows if row.mean_noise <= _CLOSE * least_noise))


def _choice(records: int, batch: int, steps: int, budget: Budget, neighbours: Neighbours) -> Choice:
    draws = Poisson(sampling_rate=batch / records)
    asked = gradient_plan(bounding=Clip(clip=1.0), steps=steps, records=records, neighbours=neighbours, sampling=draws)
    plan = asked.calibrated(budget)
    noise = plan.releases[0].noise_multiplier
    return Choice(
        batch_size=batch,
        steps=steps,
        epochs=batch * steps / records,
        noise_multiplier=noise,
        step_noise=noise / batch,
        mean_noise=noise / batch / steps**0.5,
        plan=plan,
    )
