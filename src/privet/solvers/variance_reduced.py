"""DP-SVRG: variance reduction with every gradient paid for, the snapshots' too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Gaussian, calibrate
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.plan import Plan, check_budget
from privet.privacy import Budget, Neighbours
from privet.problems import Problem
from privet.randomness import Random, system_random
from privet.sampling import Sampling
from privet.solvers.descent import Release, check_release, descended, guaranteed, starting_point
from privet.solvers.gradient import PrivateGradient
from privet.solvers.planning import public_records
from privet.solvers.result import Result
from privet.solvers.updates import GradientStep, StepSize

__all__ = ["dp_svrg"]

Vector = NDArray[np.float64]


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
    release: Release = "tail_average",
    records: int | None = None,
    start: Vector | None = None,
    random: Random | None = None,
) -> Result:
    """Each epoch takes one noisy full gradient at a snapshot, then steps along it plus noisy gradient differences.

    A record's difference ∇ℓ(θ) − ∇ℓ(snapshot) is clipped as one vector: clipping the two apart would leave a bias,
    and clipping neither no bound. Snapshots are further queries (CLAIMS row 4.10) and are part of the event.

    Parameters
    ----------
    epochs, epoch_steps : snapshots, and steps from each, the snapshot's own step included
    sampling : batches of the differences
    clip, difference_clip : bounds on one record's gradient at a snapshot, and on its difference
    snapshot_noise : noise multiplier of the snapshots ÷ that of the differences
    others : as in `dp_sgd`

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.sampling import Poisson
    >>> from privet.solvers import dp_svrg
    >>> problem = glm("half_squared", [[1.0]] * 500, [0.5] * 500, row_norm=1.0)
    >>> dp_svrg(problem, budget=Budget(epsilon=2, delta=1e-6), epochs=2, epoch_steps=5,
    ...         sampling=Poisson(sampling_rate=0.1), clip=1.0, difference_clip=0.5, step_size=0.5).plan.event
    Gaussian(noise_multiplier=...).poisson(rate=0.1) * 8 + Gaussian(noise_multiplier=...) * 2
    """
    check_budget(budget)
    check_release(release)
    if epochs < 1 or epoch_steps < 2 or not snapshot_noise > 0:
        raise InvalidParameter(
            f"Expected epochs of at least 1, epoch_steps of at least 2 and a positive snapshot_noise, got {epochs}, "
            f"{epoch_steps} and {snapshot_noise}: there would be nothing to reduce. Use e.g. 5 epochs of 20 steps."
        )
    random = random if random is not None else system_random()
    count = public_records(problem, neighbours, records)
    blank = Plan(
        bounding=Clip(clip=difference_clip),
        sampling=sampling,
        steps=epochs * (epoch_steps - 1),
        records=count,
        neighbours=neighbours,
        unit=problem.unit,
    )

    def priced(noise: float) -> Plan:
        snapshots = Gaussian(noise_multiplier=snapshot_noise * noise) * epochs
        return replace(blank, noise_multiplier=noise, also=(snapshots,))

    noise = calibrate(lambda s: priced(s).event, epsilon=budget.epsilon, delta=budget.delta, neighbours=neighbours)
    plan = priced(noise)
    guarantee = guaranteed(plan, budget.delta, random)
    differences = PrivateGradient(problem, plan, random=random)
    snapshots = PrivateGradient(
        problem,
        Plan(
            bounding=Clip(clip=clip),
            noise_multiplier=snapshot_noise * noise,
            steps=epochs,
            records=count,
            neighbours=neighbours,
            unit=problem.unit,
        ),
        random=random,
    )
    anchor = anchor_gradient = np.zeros(problem.shape)
    taken = 0

    def gradient(theta: Vector) -> Vector:
        nonlocal anchor, anchor_gradient, taken
        taken += 1
        if taken % epoch_steps == 1:
            anchor, anchor_gradient = theta, snapshots(theta)
            return anchor_gradient
        return anchor_gradient + differences.difference(theta, anchor)

    return descended(
        gradient,
        problem=problem,
        plan=plan,
        guarantee=guarantee,
        start=starting_point(problem, start),
        steps=epochs * epoch_steps,
        update=GradientStep(step_size=step_size),
        release=release,
    )
