"""The private Newton step: priced as one release, noisy as it says, exact where it must be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet import Budget, accounting, glm, per_record
from privet.accounting import Gaussian
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, MultinomialLoss, SquaredLoss
from privet.plan import Meter, Plan
from privet.plan.plan import whole_noise
from privet.privacy import Neighbours
from privet.problems import Facts, facts_of
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import NewtonInference, OneStep
from privet.solvers.newton_inference import ALTERED, BREAD, GRADIENT, MEAT, NORMS

BUDGET = Budget(epsilon=1, delta=1e-6)


def problem(n: int = 2000, noise: float = 0.05, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return glm("half_squared", X, X @ [0.5, -0.3, 0.2] + rng.normal(0, noise, n), row_norm=1.0)


def planned(facts: Facts, noise: float, **options: Any) -> Plan:
    """The releases that together are one Gaussian release of that noise multiplier."""
    alone = NewtonInference(**options).releases(facts, BUDGET, share=1.0)
    scale = noise / whole_noise(BUDGET, facts.neighbours)
    releases = tuple(replace(release, noise_multiplier=release.noise_multiplier * scale) for release in alone)
    return Plan(releases=releases, records=facts.records, neighbours=facts.neighbours)


def ran(
    found: Any, theta: Any, noise: float, seed: int = 0, neighbours: Neighbours = "zero_out", **options: Any
) -> OneStep:
    return made(found, theta, planned(facts_of(found, neighbours), noise, **options), seed, **options)


def made(found: Any, theta: Any, plan: Plan, seed: int, **options: Any) -> OneStep:
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
    step = NewtonInference(**options).run(
        found, np.asarray(theta, dtype=float), altered=np.zeros(found.records, dtype=bool), meter=meter
    )
    assert meter.finish() == plan.names
    return step


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("choose_clip", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_all_releases_together_cost_what_one_does(neighbours: Neighbours, choose_clip: bool, share: float) -> None:
    """The Gaussian releases compose to one with that share of the budget, on the safe side, under each relation."""
    facts = facts_of(problem(), neighbours, 2000)
    releases = NewtonInference(clip=0.5, choose_clip=choose_clip).releases(facts, BUDGET, share=share)
    names = [GRADIENT, BREAD, MEAT, ALTERED]
    assert [release.name for release in releases] == ([NORMS, *names] if choose_clip else names)
    one = Gaussian(noise_multiplier=whole_noise(BUDGET, neighbours) / math.sqrt(share))
    whole = accounting.epsilon(one, delta=1e-6, neighbours=neighbours)
    plan = Plan(releases=releases, records=2000, neighbours=neighbours)
    parts = accounting.epsilon(plan.event, delta=1e-6, neighbours=neighbours)
    assert parts == pytest.approx(whole, rel=1e-9)
    assert parts <= whole * (1 + 1e-9)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("neighbours", "choose_clip"),
    [
        ("replace_one", False),
        ("zero_out", True),
        pytest.param("replace_one", True, marks=pytest.mark.slow),
        pytest.param("zero_out", False, marks=pytest.mark.slow),
    ],
)
def test_noise_is_as_large_as_the_event_says(neighbours: Neighbours, choose_clip: bool) -> None:
    """On 400 runs or more, every release scatters by its multiplier × its clip, and by less where a record moves less.

    Replaced, one record moves a clipped gradient by two clips, second moments by √2 of theirs, a count by 1.

    False positive rate below 1e-6 by a chi-square of 400 or more each; 25 % less noise is caught with power 0.99.
    """
    found, runs = problem(50), 700 if choose_clip else 400
    plan = planned(facts_of(found, neighbours), 3.0, clip=0.5, choose_clip=choose_clip)
    steps = [made(found, np.zeros(3), plan, seed, clip=0.5, choose_clip=choose_clip) for seed in range(runs)]
    steps = [step for step in steps if step.clip == 0.5]  # where the histogram was all noise, as is usual here
    runs = len(steps)
    assert runs >= 400
    replaced = neighbours == "replace_one"
    for name, release, unit, moved in (
        ("gradient", GRADIENT, 0.5, 2.0),
        ("bread", BREAD, 1.0, math.sqrt(2)),
        ("meat", MEAT, 0.25, math.sqrt(2)),
        ("altered", ALTERED, 1.0, 1.0),
    ):
        values = np.array([getattr(step, name) for step in steps])
        claimed = plan[release].noise_multiplier * unit * (moved / 2 if replaced else 1.0)
        assert getattr(steps[0], f"{name}_noise") == pytest.approx(claimed)
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
    assert step.undetermined.shape == (3, 0)
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
    plan = planned(facts_of(found, "zero_out"), 10.0, clip=0.5, choose_clip=True)
    assert step.gradient_noise == pytest.approx(plan[GRADIENT].noise_multiplier * step.clip)
    assert step.meat_noise == pytest.approx(plan[MEAT].noise_multiplier * step.clip**2)


def test_with_nothing_but_noise_the_clip_stays_and_the_start_is_kept() -> None:
    """A histogram in which nothing is clear chooses no clip; a bread that is noise moves no coefficient."""
    step = ran(problem(20), [0.3, 0.0, 0.0], 200.0, clip=0.5, choose_clip=True)
    assert step.undetermined.shape == (3, 3)
    assert np.array_equal(step.coef, step.start)


def undetermined_pair(turn: float) -> OneStep:
    """Two directions of noise, turned by noise among themselves, and two that are determined."""
    turned = np.eye(4)
    turned[:2, :2] = [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    return OneStep(
        start=np.array([0.1, 0.0, 1.0, 1.0]),
        gradient=np.zeros(4),
        bread=turned.T @ np.diag([-0.5, 0.5, 40.0, 60.0]) @ turned,
        meat=np.eye(4),
        altered=0.0,
        clip=1.0,
        gradient_noise=1.0,
        bread_noise=1.0,
        meat_noise=1.0,
        altered_noise=1.0,
    )


@pytest.mark.parametrize("turn", [0.0, 0.3, math.pi / 4])
def test_what_is_not_determined_is_bounded_however_noise_turned_it(turn: float) -> None:
    """Any combination as long as all coefficients, in any contrast, is within what is told; so is what it mixes."""
    step, units = undetermined_pair(turn), np.diag([1.0, 50.0, 1.0, 1.0])
    contrasts = np.array([[0.3, 0.0, 1.0, 0.0], [-0.2, 0.1, 0.0, 1.0]])
    own, mixed = step.unseen(contrasts, units)
    size = float(np.linalg.norm(units @ step.coef))
    for angle in np.linspace(0, math.pi, 50):
        along = np.array([math.cos(angle), math.sin(angle), 0.0, 0.0])
        missed = along * size / float(np.linalg.norm(units @ along))  # θ° there
        for weights in np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0], [1.0, 1.0]]):
            c = weights @ contrasts
            assert (c @ missed) ** 2 <= weights @ own @ weights * (1 + 1e-9)
            most = step.bread_noise**2 * np.square(step.inverse @ c).sum() * float(missed @ missed)
            assert most <= weights @ mixed @ weights * (1 + 1e-9)
    np.testing.assert_allclose(own, undetermined_pair(0.0).unseen(contrasts, units)[0], rtol=1e-9)


def test_records_of_another_kind_are_refused() -> None:
    """Per-record problems, several classes: their shares in the second moments are not the ones that are priced."""
    solver = NewtonInference(clip=1.0)
    rows = LinearRecords(loss=SquaredLoss(factor=1.0))
    for other in (
        glm(MultinomialLoss(classes=3), [[0.5]], [0], row_norm=1.0),
        per_record(rows, [[0.5]], [0.0], shape=1),
    ):
        with pytest.raises(InvalidParameter, match="one row, one prediction and no weight"):
            solver.releases(facts_of(other, "zero_out"), BUDGET, share=0.5)


@pytest.mark.parametrize("wrong", [{"clip": 0.0}, {"share": math.inf}, {"share": -1.0}, {"share": 0.0}])
def test_a_plan_without_noise_or_bound_is_refused(wrong: dict[str, Any]) -> None:
    """Before any record is read."""
    given: dict[str, Any] = {"clip": 1.0, "share": 0.5} | wrong
    with pytest.raises(InvalidParameter):
        NewtonInference(clip=given["clip"]).releases(facts_of(problem(), "zero_out"), BUDGET, share=given["share"])
