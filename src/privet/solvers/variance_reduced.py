"""DP-SVRG: variance reduction with every gradient paid for, the snapshots' too."""

from dataclasses import dataclass

import numpy as np

from privet._checks import positive, whole
from privet.arrays import Vector
from privet.clipping import Clip
from privet.plan import Meter, Plan, Release
from privet.privacy import Budget, Neighbours
from privet.problems import Facts, Problem
from privet.randomness import Random
from privet.sampling import Sampling
from privet.solvers.descent import Course, DescentSolver, ReleaseRule
from privet.solvers.gradient import PrivateGradient
from privet.solvers.solver import Releases, Result, Start, solve
from privet.solvers.updates import GradientStep, StepSize


@dataclass(frozen=True, kw_only=True, slots=True)
class DPSVRG(DescentSolver):
    """Each epoch takes one noisy full gradient at a snapshot, then steps along it plus noisy gradient differences.

    A record's difference ∇ℓ(θ) − ∇ℓ(snapshot) is clipped as one vector: clipping the two apart would leave a bias,
    and clipping neither no bound. Snapshots are further queries (claim 97) and are part of the plan.

    Parameters
    ----------
    epochs, epoch_steps : snapshots, and steps from each, the snapshot's own step included
    sampling : batches of the differences
    clip, difference_clip : bounds on one record's gradient at a snapshot, and on its difference
    snapshot_noise : noise multiplier of the snapshots ÷ that of the differences
    step_size, release, tail : as in `DPSGD`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> from privet.sampling import Poisson
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> solver = DPSVRG(epochs=2, epoch_steps=5, sampling=Poisson(sampling_rate=0.1), clip=1.0, difference_clip=0.5,
    ...                 step_size=0.5)
    >>> plan = solver.plan(facts_of(problem, "zero_out"), Budget(epsilon=2, delta=1e-6))
    >>> [(release.name, release.times) for release in plan.releases]
    [('snapshots', 1), ('differences', 4), ('snapshots', 1), ('differences', 4)]
    """

    epochs: int
    epoch_steps: int
    sampling: Sampling
    clip: float
    difference_clip: float
    step_size: StepSize
    snapshot_noise: float = 1.0
    release: ReleaseRule = "tail_average"

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        because, use = "there would be nothing to reduce", "Use e.g. 5 epochs of 20 steps."
        whole("epochs", self.epochs, because=because, use=use)
        whole("epoch_steps", self.epoch_steps, least=2, because=because, use=use)
        positive("snapshot_noise", self.snapshot_noise, because="snapshots need noise too", use="Use 1.")

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        d, rule = facts.dimension, Clip(clip=self.clip)
        snapshot = Release(name="snapshots", of="gradients at a snapshot", bound=rule, size=d)
        differences = Release(
            name="differences",
            of="differences of gradients, here and at the snapshot",
            bound=Clip(clip=self.difference_clip),
            times=self.epoch_steps - 1,
            sampling=self.sampling,
            size=d,
        )
        return (snapshot, differences) * self.epochs, {"snapshots": self.snapshot_noise}

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        snapshots = PrivateGradient(problem, meter, "snapshots")
        differences = PrivateGradient(problem, meter, "differences")
        anchor = anchor_gradient = np.zeros(problem.shape)
        taken = 0

        def gradient(theta: Vector) -> Vector:
            nonlocal anchor, anchor_gradient, taken
            taken += 1
            if taken % self.epoch_steps == 1:
                anchor, anchor_gradient = theta, snapshots(theta)
                return anchor_gradient
            return anchor_gradient + differences.difference(theta, anchor)

        steps = self.epochs * self.epoch_steps
        return Course(direction=gradient, steps=steps, update=GradientStep(step_size=self.step_size))


def dp_svrg(
    problem: Problem,
    *,
    budget: Budget,
    epochs: int,
    epoch_steps: int,
    sampling: Sampling,
    clip: float,
    difference_clip: float,
    step_size: StepSize,
    snapshot_noise: float = 1.0,
    neighbours: Neighbours = "replace_one",
    release: ReleaseRule = "tail_average",
    records: int | None = None,
    before: Releases = (),
    start: Start = None,
    random: Random | None = None,
) -> Result:
    """Run `DPSVRG` on a problem, all of it for one budget; other parameters as in `solve`.

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.sampling import Poisson
    >>> from privet.solvers import dp_svrg
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> dp_svrg(problem, budget=Budget(epsilon=2, delta=1e-6), epochs=2, epoch_steps=5,
    ...         sampling=Poisson(sampling_rate=0.1), clip=1.0, difference_clip=0.5, step_size=0.5).plan.event
    Gaussian(noise_multiplier=...) * 2 + Gaussian(noise_multiplier=...).poisson(rate=0.1) * 8
    """
    solver = DPSVRG(
        epochs=epochs,
        epoch_steps=epoch_steps,
        sampling=sampling,
        clip=clip,
        difference_clip=difference_clip,
        step_size=step_size,
        snapshot_noise=snapshot_noise,
        release=release,
    )
    return solve(solver, problem, budget, neighbours, records=records, before=before, random=random, start=start)
