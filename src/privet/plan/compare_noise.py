"""Independent and correlated noise side by side, at one budget: which of them leaves running sums least noisy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privet._checks import whole
from privet.clipping import Clip
from privet.noise import Banded, Strategy, optimised_bands
from privet.noise.running_error import running_rows
from privet.plan.plan import gradient_plan
from privet.privacy import Budget, Neighbours
from privet.sampling import CyclicPoisson, Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseRow:
    """One way to draw batches and noise: its noise multiplier, and the standard deviation of running means of batches.

    `mean` is the root mean square over all steps, `worst` the largest, both in clips.

    Examples
    --------
    >>> NoiseRow(name="independent", noise_multiplier=2.0, mean=0.1, worst=0.2).worst
    0.2
    """

    name: str
    noise_multiplier: float
    mean: float
    worst: float


@dataclass(frozen=True, slots=True)
class NoiseTable:
    """Rows to compare, the first being what the others are measured by; prints as a table.

    Examples
    --------
    >>> print(NoiseTable((NoiseRow(name="independent", noise_multiplier=2.0, mean=0.1, worst=0.2),)))
                   noise  mean error  worst error   gain
    independent        2         0.1          0.2  1.00×
    """

    rows: tuple[NoiseRow, ...]

    def __str__(self) -> str:
        wide = max(len(row.name) for row in self.rows)
        lines = [f"{'':<{wide}}    noise  mean error  worst error   gain"]
        first = self.rows[0]
        lines += [
            f"{row.name:<{wide}}  {row.noise_multiplier:7.3g}  {row.mean:10.3g}  {row.worst:11.3g}  "
            f"{first.mean / row.mean:4.2f}×"
            for row in self.rows
        ]
        return "\n".join(lines)


def compare_noise(
    ways: Mapping[str, tuple[Sampling, Strategy | None]],
    *,
    budget: Budget,
    steps: int,
    records: int,
    neighbours: Neighbours,
    momentum: float = 0.0,
    decay: float = 1.0,
) -> NoiseTable:
    """Calibrate each way to the budget, and tell how noisy the running sums are that descent takes.

    Theorem: the noise on Σ_{s≤t} x_s ÷ batch size has standard deviation ‖row t of A·C⁻¹‖ × noise multiplier × clip ÷
    batch size, A the running sums, or what momentum and weight decay make of them. What sampling itself adds, the
    spread of the batches, is not in it: it is the same for equal batch sizes.

    Parameters
    ----------
    ways : for each name how batches are drawn, and the strategy, None for independent noise; the gain is over the first
    budget, steps, records, neighbours : of the run; public
    momentum, decay : of the descent that sums up

    Examples
    --------
    >>> from privet.noise import banded_inverse_square_root
    >>> from privet.sampling import Cyclic, Poisson
    >>> ways = {"independent, Poisson": (Poisson(sampling_rate=0.01), None),
    ...         "BISR, cyclic": (Cyclic(batch=500), banded_inverse_square_root(100))}
    >>> print(compare_noise(ways, budget=Budget(epsilon=8, delta=1e-6), steps=1_000, records=50_000,
    ...                     neighbours="zero_out"))
                            noise  mean error  worst error   gain
    independent, Poisson ...
    BISR, cyclic ...
    """
    rows = []
    for name, (sampling, strategy) in ways.items():
        plan = gradient_plan(
            bounding=Clip(clip=1.0),
            steps=steps,
            records=records,
            neighbours=neighbours,
            sampling=sampling,
            correlation=strategy,
        ).calibrated(budget)
        noise = plan["gradients"].noise_multiplier
        used = strategy if strategy is not None else Banded(coefficients=(1.0,))
        spread = running_rows(used, steps=steps, momentum=momentum, decay=decay)
        scale = noise / plan.batch_size("gradients")
        mean, worst = scale * math.sqrt(float(np.mean(spread))), scale * math.sqrt(float(spread.max()))
        rows.append(NoiseRow(name=name, noise_multiplier=noise, mean=mean, worst=worst))
    return NoiseTable(tuple(rows))


def best_noise(
    *, batch: int, budget: Budget, steps: int, records: int, neighbours: Neighbours
) -> tuple[CyclicPoisson, Banded]:
    """The sampling and the banded strategy, of 1, 2, 4, … bands, that leave running sums least noisy at that budget.

    One band is independent noise on Poisson batches; as many as there are batches a pass is no amplification at all.
    Little budget favours few bands, much budget many (Choquette-Choo et al. 2023, arXiv 2306.08153). All of it follows
    from public numbers.

    Parameters
    ----------
    batch : expected number of records of a step
    budget, steps, records, neighbours : of the run; public

    Examples
    --------
    >>> asked = {"batch": 500, "steps": 1_000, "records": 50_000, "neighbours": "zero_out"}
    >>> [best_noise(budget=Budget(epsilon=e, delta=1e-6), **asked)[1].bands for e in (0.1, 2, 8)]
    [1, 8, 32]
    """
    count = whole("records", records, because="rates follow from it", use="Pass a public number of records.")
    size = whole("batch", batch, most=count, because="a step reads records", use="Use e.g. 256.")
    most = min(count // size, whole("steps", steps, because="without a step nothing is learnt", use="Use e.g. 100."))
    bands = [1 << bit for bit in range(most.bit_length())]
    ways: dict[str, tuple[CyclicPoisson, Banded]] = {}
    for number in sorted({*bands, most}):
        sampling = CyclicPoisson(sampling_rate=min(1.0, number * size / count), groups=number)
        ways[str(number)] = sampling, optimised_bands(number, steps=steps)
    table = compare_noise(ways, budget=budget, steps=steps, records=count, neighbours=neighbours)
    return ways[min(table.rows, key=lambda row: row.mean).name]
