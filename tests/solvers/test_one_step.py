"""The private Newton step: priced as one release, noisy as it says, exact where it must be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet import accounting, glm, per_record
from privet.accounting import Gaussian
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, MultinomialLoss, SquaredLoss
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_voids_guarantee
from privet.solvers import OneStep, OneStepPlan


def problem(n: int = 2000, noise: float = 0.05, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return glm("half_squared", X, X @ [0.5, -0.3, 0.2] + rng.normal(0, noise, n), row_norm=1.0)


def ran(found: Any, theta: Any, noise: float, seed: int = 0, **options: Any) -> OneStep:
    return OneStepPlan(noise_multiplier=noise, **options).run(
        found,
        np.asarray(theta, dtype=float),
        altered=np.zeros(found.records, dtype=bool),
        most_records=found.records,
        random=fixed_seed_voids_guarantee(seed),
    )


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_all_releases_together_cost_what_one_does(neighbours: Neighbours) -> None:
    """The five Gaussian releases compose to the planned one, on the safe side, under each relation."""
    plan = OneStepPlan(clip=0.5, noise_multiplier=8.0)
    whole = accounting.epsilon(Gaussian(noise_multiplier=8.0), delta=1e-6, neighbours=neighbours)
    parts = accounting.epsilon(plan.event, delta=1e-6, neighbours=neighbours)
    assert parts == pytest.approx(whole, rel=1e-9)
    assert parts <= whole * (1 + 1e-9)


@pytest.mark.medium
def test_noise_is_as_large_as_the_event_says() -> None:
    """On 400 runs, every release scatters by its multiplier × its clip.

    False positive rate below 1e-6 by a chi-square of 400 or more each; 25 % less noise is caught with power 0.99.
    """
    found, runs = problem(50), 400
    plan = OneStepPlan(clip=0.5, noise_multiplier=3.0)
    steps = [ran(found, np.zeros(3), 3.0, seed, clip=0.5) for seed in range(runs)]
    for name, unit in (("gradient", 0.5), ("bread", 1.0), ("meat", 0.25), ("altered", 1.0)):
        values = np.array([getattr(step, name) for step in steps])
        claimed = plan.multiplier(name) * unit
        parts = [values.reshape(runs, -1)]
        if values.ndim == 3:  # symmetric: 1/√2 of the noise above the diagonal
            assert np.array_equal(values, values.transpose(0, 2, 1))
            above = values[:, *np.triu_indices(3, 1)]
            parts = [np.diagonal(values, axis1=1, axis2=2), above * math.sqrt(2)]
        for part in parts:
            squares = float(np.square(part - part.mean(axis=0)).sum()) / claimed**2
            low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], part.size - part.shape[1])
            assert low < squares < high, name


def test_a_step_without_noise_to_speak_of_is_newtons() -> None:
    """For least squares it lands on the solution, and the covariance is the sandwich that statisticians know."""
    found = problem()
    X, y = found.table.units * found.table.step, found.labels
    step = ran(found, [0.1, 0.0, 0.0], 1e-3, clip=0.9)
    solution = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(step.coef, solution, atol=1e-3)
    gradients = X * (X @ step.start - y)[:, None]
    inverse = np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(step.covariance, inverse @ (gradients.T @ gradients) @ inverse, rtol=0.01, atol=1e-8)
    assert step.conditioning > 100
    assert step.degrees(np.eye(3)).min() > 1000


def test_the_clip_is_chosen_above_nearly_all_gradients_and_scales_the_noise() -> None:
    """Few are clipped, and noise is in proportion to what was chosen, not to what was allowed."""
    found = problem(20_000)
    theta = np.array([0.5, -0.3, 0.2])
    X = found.table.units * found.table.step
    sizes = np.abs(X @ theta - found.labels) * np.linalg.norm(X, axis=1)
    step = ran(found, theta, 10.0, clip=0.5, choose_clip=True)
    assert 0.5 / 16 < step.clip < 0.25
    assert np.mean(sizes > step.clip) < 0.01
    plan = OneStepPlan(clip=0.5, noise_multiplier=10.0)
    assert step.gradient_noise == pytest.approx(plan.multiplier("gradient") * step.clip)
    assert step.meat_noise == pytest.approx(plan.multiplier("meat") * step.clip**2)


def test_with_nothing_but_noise_the_clip_stays_and_the_start_is_kept() -> None:
    """A histogram in which nothing is clear chooses no clip; a bread that is noise moves no coefficient."""
    step = ran(problem(20), [0.3, 0.0, 0.0], 200.0, clip=0.5, choose_clip=True)
    assert step.conditioning < 1
    assert np.array_equal(step.released, step.start)


def test_records_of_another_kind_are_refused() -> None:
    """Per-record problems, several classes: their shares in the second moments are not the ones that are priced."""
    plan = OneStepPlan(clip=1.0, noise_multiplier=1.0)
    rows = LinearRecords(loss=SquaredLoss(factor=1.0))
    for other in (
        glm(MultinomialLoss(classes=3), [[0.5]], [0], row_norm=1.0),
        per_record(rows, [[0.5]], [0.0], shape=1),
    ):
        with pytest.raises(InvalidParameter, match="one row, one prediction and no weight"):
            plan.check(other)


@pytest.mark.parametrize("wrong", [{"clip": 0.0}, {"noise_multiplier": math.inf}, {"noise_multiplier": -1.0}])
def test_a_plan_without_noise_or_bound_is_refused(wrong: dict[str, Any]) -> None:
    """Before any record is read."""
    given: dict[str, Any] = {"clip": 1.0, "noise_multiplier": 1.0}
    with pytest.raises(InvalidParameter):
        OneStepPlan(**(given | wrong))
