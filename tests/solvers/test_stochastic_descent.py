"""DP-GD, DP-SGD, SVRG and zeroth-order descent: what they promise beyond the loop that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet import Budget, dp_gd, dp_sgd, follow, glm
from privet.accounting import Gaussian
from privet.clipping import Adaptive, Automatic, Clip, Declared
from privet.errors import InvalidParameter, NoProvenBound
from privet.plan import Meter, gradient_plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Poisson
from privet.solvers import Adafactor, Adam, AdamW, GradientStep, dp_svrg, zeroth_order_descent
from privet.solvers.descent import descend
from privet.solvers.gradient import PrivateGradient

WIDE = Budget(epsilon=200, delta=1e-6)


def line(n: int = 2000) -> Any:
    """Labels 0.5 x: the minimiser is 0.5."""
    X = np.random.default_rng(1).choice([-1.0, 1.0], (n, 1))
    return glm("half_squared", X, 0.5 * X[:, 0], row_norm=1.0)


@pytest.mark.medium
@pytest.mark.parametrize(
    "sampling",
    [FullBatch(), Poisson(sampling_rate=0.05), FixedSize(batch=100), Cyclic(batch=100), OneRecord()],
    ids=repr,
)
@pytest.mark.parametrize(
    "bounding", [Clip(clip=1.0), Declared(lipschitz=1.0), Automatic(), Adaptive(clip=1.0, count_noise=5.0)]
)
def test_every_scheme_and_rule_descends(sampling: Any, bounding: Any) -> None:
    """Any sampling with any bounding finds a minimiser when noise is small; its event is the scheme's own."""
    steps = 60 if not isinstance(sampling, OneRecord) else 200
    plan = gradient_plan(
        sampling=sampling, bounding=bounding, noise_multiplier=0.05, steps=steps, records=2000, neighbours="replace_one"
    )
    rule = GradientStep(step_size=lambda t: 0.5 / t**0.5)
    path = follow_quietly(plan, line(), rule)
    assert path == pytest.approx([0.5], abs=0.12)
    assert plan.event == sampling.event(
        Gaussian(noise_multiplier=0.05), steps=steps, records=2000, neighbours="replace_one"
    )


def follow_quietly(plan: Any, problem: Any, update: Any) -> Any:
    """Run a plan without pricing it: sampled runs with hardly any noise are slow to price, not private here anyway."""
    private = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(2)))
    return descend(
        private,
        start=np.zeros(problem.shape),
        steps=plan.times("gradients"),
        update=update,
        domain=problem.domain,
        release="tail_average",
        noise_stddev=lambda: private.noise_stddev,
    ).released


@pytest.mark.parametrize(
    "update",
    [
        GradientStep(step_size=0.2, momentum=0.5),
        Adam(step_size=0.03),
        Adam(step_size=0.03, corrected=True),
        AdamW(adam=Adam(step_size=0.03), decay=0.001),
        Adafactor(step_size=0.03),
    ],
    ids=repr,
)
def test_update_rules_run_on_private_gradients(update: Any) -> None:
    """Every rule is post-processing: same event, and the minimiser is found."""
    result = dp_gd(
        line(),
        budget=WIDE,
        steps=80,
        clip=1.0,
        update=update,
        release="tail_average",
        random=fixed_seed_invalidates_guarantee(3),
    )
    assert result.coef == pytest.approx([0.5], abs=0.1)
    assert 199 < result.plan.guarantee(delta=1e-6).epsilon <= 200


def test_dp_gd_releases_all_iterates() -> None:
    """As the lecture has it; coef is the last of them."""
    result = dp_gd(line(), budget=WIDE, steps=5, clip=1.0)
    assert result.iterates is not None
    assert result.iterates.shape == (6, 1)
    assert (result.coef == result.iterates[-1]).all()
    assert result.bound is None


def test_fixed_batches_of_a_private_number_of_records_are_refused() -> None:
    """Under add_remove only Poisson and full batches have a proven price (docs/footguns.md, 33, 35)."""
    for sampling in (FixedSize(batch=10), OneRecord(), Cyclic(batch=10)):
        with pytest.raises((NoProvenBound, InvalidParameter)):
            dp_sgd(
                line(),
                budget=WIDE,
                steps=2,
                clip=1.0,
                sampling=sampling,
                neighbours="add_remove",
                records=2000,
            )


def test_a_foreign_sampler_is_charged_as_it_says_itself() -> None:
    """Sampling is an object with its own event; one that claims none cannot run (docs/footguns.md, 35)."""

    class Shuffle:
        def indices(self, count: int, step: int, random: Any) -> Any:
            return np.arange(3)

        def event(self, mechanism: Any, *, steps: int, records: int, neighbours: Any) -> Any:
            raise NoProvenBound("nobody priced this")

        def batch_size(self, records: int) -> float:
            return 3.0

        def most(self, records: int) -> int:
            return 3

    with pytest.raises(NoProvenBound, match="nobody priced"):
        dp_sgd(line(), budget=WIDE, steps=2, clip=1.0, sampling=Shuffle())
    plan = gradient_plan(
        bounding=Clip(clip=1.0),
        noise_multiplier=1.0,
        steps=1,
        records=2000,
        neighbours="zero_out",
        sampling=Shuffle(),
    )
    with pytest.raises(NoProvenBound):
        follow(plan, line(), delta=1e-6, update=GradientStep(step_size=1.0))


def test_svrg_charges_its_snapshots_and_descends() -> None:
    """The event is snapshots plus differences, in that order, as they happen (docs/footguns.md, 40)."""
    result = dp_svrg(
        line(),
        budget=WIDE,
        epochs=4,
        epoch_steps=10,
        sampling=FullBatch(),
        clip=1.0,
        difference_clip=0.5,
        step_size=0.3,
        snapshot_noise=2.0,
        random=fixed_seed_invalidates_guarantee(4),
    )
    noise = result.plan["differences"].noise_multiplier
    assert result.plan.event == Gaussian(noise_multiplier=2 * noise) * 4 + Gaussian(noise_multiplier=noise) * 36
    assert result.coef == pytest.approx([0.5], abs=0.1)
    for more in ({"epochs": 0}, {"epoch_steps": 1}, {"snapshot_noise": 0.0}, {"difference_clip": 0.0}, {"epochs": 1.5}):
        arguments: dict[str, Any] = {
            "budget": WIDE,
            "epochs": 1,
            "epoch_steps": 2,
            "sampling": FullBatch(),
            "clip": 1.0,
            "difference_clip": 1.0,
            "step_size": 1.0,
            **more,
        }
        with pytest.raises(InvalidParameter):
            dp_svrg(line(), **arguments)


def test_zeroth_order_descends_on_one_number_a_step() -> None:
    """The slope's noise does not grow with d; the direction is public and of length √d."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    target = np.array([0.5, -0.5, 0.25, 0.0])
    problem = glm("half_squared", X, X @ target, row_norm=1.0)
    result = zeroth_order_descent(
        problem,
        budget=WIDE,
        steps=400,
        clip=2.0,
        step_size=0.4,
        release="last",
        random=fixed_seed_invalidates_guarantee(6),
    )
    assert result.coef == pytest.approx(target, abs=0.1)
    assert result.plan["slopes"].bound == Clip(clip=2.0 * 1e-3)
    for spread in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidParameter, match="spread"):
            zeroth_order_descent(problem, budget=WIDE, steps=2, clip=1.0, step_size=1.0, spread=spread)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, np.nan, "x"])
def test_a_plan_is_followed_at_a_delta(delta: Any) -> None:
    """delta must lie in (0, 1)."""
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=1, records=2000, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="delta"):
        follow(plan, line(), delta=delta, update=GradientStep(step_size=1.0))


@pytest.mark.parametrize("budget", [Budget(epsilon=0, delta=1e-6), None, 1.0])
def test_budgets_that_no_noise_can_meet_are_refused(budget: Any) -> None:
    """Epsilon 0 and what is no budget are refused by every solver, before any record is read."""
    problem = line()
    problem.gradient_sum = None
    with pytest.raises(InvalidParameter, match="budget"):
        dp_gd(problem, budget=budget, steps=2, clip=1.0)
    with pytest.raises(InvalidParameter, match="budget"):
        zeroth_order_descent(problem, budget=budget, steps=2, clip=1.0, step_size=1.0)
    with pytest.raises(InvalidParameter, match="noise multiplier"):
        dp_gd(problem, budget=Budget(epsilon=1e-5, delta=1e-9), steps=1000, clip=1.0)
