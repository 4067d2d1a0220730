"""Razaviyayn, lecture 11, extensions and discussion of DP-SGD: other optimisers, no assumptions (96 to 98)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Gaussian, epsilon
from privet.clipping import Clip
from privet.geometry import l2_ball
from privet.lectures.claim import Finding
from privet.lectures.registry import check
from privet.lectures.toy_problems import pointwise, separable
from privet.losses import SquaredLoss
from privet.plan import gradient_plan
from privet.privacy import Budget
from privet.problems import glm
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Poisson
from privet.solvers import Adafactor, Adam, AdamW, GradientStep, UpdateRule, dp_sgd, dp_svrg, follow
from privet.solvers.updates import Move

Vector = NDArray[np.float64]


class _Overheard:
    """An optimiser that writes down every gradient it is handed."""

    def __init__(self, rule: UpdateRule) -> None:
        self.rule, self.heard = rule, list[Vector]()

    def start(self) -> Move:
        move = self.rule.start()

        def listening(theta: Vector, gradient: Vector, variance: float) -> Vector:
            self.heard.append(gradient)
            return move(theta, gradient, variance)

        return listening


@check("96", mutant={"shift": 0.0})
def optimisers_see_noisy_gradients_only(shift: float = 1.0) -> Finding:
    """Run clipped DP-SGD with momentum and Adam, then replay the noisy gradients without the data."""
    X, y = separable(200, 3, seed=96)
    problem, apart = glm("logistic", X, y, row_norm=1.0), 0.0
    for rule in (GradientStep(step_size=0.5, momentum=0.9), Adam(step_size=0.1)):
        ear = _Overheard(rule)
        found = dp_sgd(
            problem,
            budget=Budget(epsilon=1.0, delta=1e-5),
            steps=30,
            sampling=Poisson(sampling_rate=0.1),
            clip=0.5,
            update=ear,
            release="all",
            random=fixed_seed_invalidates_guarantee(96),
        )
        points, move = np.asarray(found.iterates), rule.start()
        for t, gradient in enumerate(ear.heard):
            apart = max(apart, float(np.abs(move(points[t], gradient, 0.0) - points[t + round(shift)]).max()))
    return Finding.judged(
        apart < 1e-12,
        f"From w_t, its own state and the noisy gradient alone each optimiser reproduces w_(t+{shift:g}) to "
        f"{apart:.1e}, in 60 steps without the data.",
        largest_difference=apart,
    )


@check("97", mutant={"with_svrg": 0.0})
def other_optimisers(with_svrg: float = 1.0) -> Finding:
    """Run each optimiser with the noise of plain DP-SGD, and compare what its run costs."""
    X, y = separable(200, 3, seed=97)
    problem = glm("logistic", X, y, row_norm=1.0)
    plan = gradient_plan(
        bounding=Clip(clip=1.0),
        sampling=Poisson(sampling_rate=0.1),
        noise_multiplier=2.0,
        steps=20,
        records=200,
        neighbours="add_remove",
    )
    rules: dict[str, UpdateRule] = {
        "plain": GradientStep(step_size=0.1),
        "adam": Adam(step_size=0.1),
        "adamw": AdamW(adam=Adam(step_size=0.1)),
        "adafactor": Adafactor(step_size=0.1),
    }
    costs = {
        name: follow(plan, problem, delta=1e-5, update=rule, random=fixed_seed_invalidates_guarantee(97))
        .plan.guarantee(delta=1e-5)  # the result's own is invalidated, as the seed is fixed
        .epsilon
        for name, rule in rules.items()
    }
    variance_reduced = dp_svrg(
        problem,
        budget=Budget(epsilon=costs["plain"], delta=1e-5),
        epochs=2,
        epoch_steps=10,
        sampling=Poisson(sampling_rate=0.1),
        clip=1.0,
        difference_clip=1.0,
        step_size=0.1,
        neighbours="add_remove",
        records=200,
        random=fixed_seed_invalidates_guarantee(97),
    )
    # its steps and its snapshots, with the same noise as above
    snapshots = Gaussian(noise_multiplier=2.0) * 2
    same = Gaussian(noise_multiplier=2.0).poisson(rate=0.1) * 18 + snapshots
    costs["svrg"] = epsilon(same, delta=1e-5, neighbours="add_remove")
    kept = variance_reduced.plan["differences"].noise_multiplier
    judged = [cost for name, cost in costs.items() if with_svrg or name != "svrg"]
    return Finding.judged(
        max(judged) <= costs["plain"] * (1 + 1e-12),
        f"20 steps cost epsilon {costs['plain']:.4f} with plain steps, Adam, AdamW and Adafactor alike; SVRG with the "
        f"same noise {costs['svrg']:.4f}, as its snapshots are full gradients. To keep epsilon it takes noise "
        f"{kept:.3f} instead of 2.",
        noise_for_the_same_price=kept,
        table={f"epsilon_{name}": cost for name, cost in costs.items()},
    )


@check("98", mutant={"sign": -1.0})
def no_assumptions_but_loose_composition(sign: float = 1.0) -> Finding:
    """Run DP-SGD on a loss without Lipschitz constant and with an outlier; find its epsilon by theorem and exactly."""
    X, y = separable(200, 3, seed=98)
    X[0] *= 1e6  # one gradient is a million times too large
    problem = pointwise(SquaredLoss(factor=2.0), X, y, domain=l2_ball(radius=5.0))
    found = dp_sgd(
        problem,
        budget=Budget(epsilon=1.0, delta=1e-5),
        steps=20,
        sampling=Poisson(sampling_rate=0.1),
        clip=1.0,
        neighbours="add_remove",
        records=200,
        random=fixed_seed_invalidates_guarantee(98),
    )
    priced = found.plan.guarantee(delta=1e-5).epsilon  # the result's own is invalidated, as the seed is fixed
    run = Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1_000
    exact, loose = (
        epsilon(run, delta=1e-5, neighbours="add_remove", accountant=name) for name in ("contour", "advanced")
    )
    return Finding.judged(
        priced <= 1
        and bool(np.isfinite(found.coef).all())
        and problem.lipschitz is None
        and sign * (loose - exact) > 0,
        f"Without a Lipschitz constant, and with an outlier, the run keeps epsilon {priced:.4f}; for 1,000 "
        f"steps at rate 0.01 advanced composition proves {loose:.3f} where {exact:.3f} is exact.",
        epsilon_of_the_run=priced,
        epsilon_advanced=loose,
        epsilon_exact=exact,
    )
