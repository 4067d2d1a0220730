"""Settings of a descent on centred rows, where too little can be told from noise to whiten them; from public facts."""

import math
from dataclasses import dataclass, replace

from privet._checks import whole
from privet.estimators.defaults import HESSIAN, LITTLE, MOMENTUM, MOST_COLUMNS, STEPS, WIDE, Task, clip_for
from privet.losses import Loss
from privet.preprocessing.centring import Centring
from privet.solvers import DPSGD, GradientStep, Solver

_CLIP: dict[Task, float] = {"binary": 0.15, "several": 0.3, "regression": 0.15}
# How far noise alone may move predictions: in log odds, or halves of the target's range.
_NOISE: dict[Task, float] = {"binary": 1.4, "several": 2.2, "regression": 0.27}
_SHARE = 0.03  # of the budget, at most, for a histogram of norms
_SEEN = 3.0  # standard deviations that all records are of such a histogram, at least
_FINE = 30.0  # and for fine bins
_WAVES = 0.05  # of the budget, for waves along the columns of a wide table
_WAVED = 0.8  # effective sample size a column from which those of images stand out


@dataclass(frozen=True, kw_only=True, slots=True)
class CentredSettings:
    """Steps on centred rows of norm 1, as long as noise allows.

    Where nothing pulls back, the noise of all steps adds up to about 0.6 · clip · (their length) ÷ effective sample
    size; as something does, longer ones pay where much can be told from noise. With next to none only the constant is
    learnt. Chosen on training rows of the small shared tables, of MNIST, and on made-up ones.
    """

    steps: int
    clip: float
    step: float  # in units of the inverse curvature
    momentum: float
    curvature: float

    @classmethod
    def of(cls, task: Task, *, loss: Loss, columns: int, effective: float) -> "CentredSettings":
        """The settings of a task; `columns` with the constant."""
        each, curvature = effective / columns, loss.smoothness() or 1.0
        clip = clip_for(_CLIP[task], each, loss.lipschitz())
        steps = round(min(max(20 * (effective / 40) ** 0.4, 6.0), 60.0))
        shy = min(max(effective / 40, 0.5), 1.0) if task == "regression" else min(each / LITTLE, 1.0) ** 2
        reach = effective * max(effective / 100, 1.0) ** -0.25
        length = max(_NOISE[task] * shy * curvature * reach / (0.6 * clip), 2.0**-20)
        longest = 6.0 * max(1.0, math.sqrt(columns / 50))  # that is stable: the more columns, the less each counts
        momentum = min(max(1 - longest * steps / length, MOMENTUM), 0.9)
        step = min(length * (1 - momentum) / steps, longest)
        return cls(steps=steps, clip=clip, step=step, momentum=momentum, curvature=curvature)

    @property
    def constant(self) -> float:
        """How long the constant is, in lengths of a row, for a quarter of the way to its best value in one step."""
        part = min(0.25 / self.step, 0.8)
        return math.sqrt(part / (1 - part))


def centring_for(
    task: Task, *, loss: Loss, columns: int, effective: float, seen: float, whitened: bool
) -> Centring | None:
    """How rows are centred, `whitened` afterwards or not; None of counts and quantiles, for which it did not pay, nor
    of wide tables where a Hessian can be told from noise.

    `seen` is how many standard deviations all records are, in one histogram that spends all of a budget.
    """
    told = WIDE < columns <= MOST_COLUMNS and effective >= HESSIAN * columns and not whitened
    if task not in _CLIP or told:
        return None
    settings = CentredSettings.of(task, loss=loss, columns=columns + 1, effective=effective)
    share = min(max((8.0 / max(seen, 2.0**-20)) ** 2, 0.005), _SHARE)
    seen *= math.sqrt(share)
    return Centring(
        mean_share=min(max(20 * columns / max(effective, 1.0) ** 2, 0.01), 0.1),
        norm_share=0.0 if seen < _SEEN else share,
        fineness=2 if seen < _FINE else 8,
        constant=settings.constant,
        beyond=0.02 if whitened and task != "regression" else 0.3,
        wave_share=_WAVES if task == "several" and WIDE < columns <= min(MOST_COLUMNS, effective / _WAVED) else 0.0,
        columns=columns,
    )


def centred_solver(task: Task, *, loss: Loss, columns: int, effective: float, max_iter: int | None = None) -> Solver:
    """Descent on centred rows; `columns` with the constant."""
    found = CentredSettings.of(task, loss=loss, columns=columns, effective=effective)
    steps = found.steps if max_iter is None else whole("max_iter", max_iter, **STEPS)  # type: ignore[arg-type]
    update = GradientStep(step_size=found.step / found.curvature, momentum=found.momentum)
    return DPSGD(steps=steps, clip=found.clip, update=update, release="tail_average", tail=0.5)


def with_shorter_steps(solver: Solver, times: float) -> Solver:
    """A descent with steps so many times shorter, if that is more than 1; what it releases stays the same."""
    if not isinstance(solver, DPSGD) or not isinstance(solver.update, GradientStep) or times <= 1:
        return solver
    step = solver.update.step_size
    return solver if callable(step) else replace(solver, update=replace(solver.update, step_size=step / times))
