"""Private descent on people with many rows: what is priced, drawn and promised is about a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet import Budget, dp_gd, dp_sgd, follow, glm, l2_ball, noisy_gradient_descent
from privet.clipping import Adaptive, Clip
from privet.errors import InvalidParameter, NoProvenBound
from privet.plan import Meter, gradient_plan
from privet.privacy import Guarantee
from privet.problems import GroupedProblem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Cyclic, CyclicPoisson, FullBatch, Poisson, Strided
from privet.solvers import (
    GradientStep,
    choose_best,
    dp_svrg,
    exponential_mechanism,
    fixed_hessian_descent,
    newton_descent,
    objective_perturbation,
    output_perturbation,
    zeroth_order_descent,
)
from privet.solvers.gradient import PrivateGradient

BUDGET = Budget(epsilon=1, delta=1e-6)


def crowd(people: int = 200, rows: int = 5, **extra: Any) -> GroupedProblem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(people * rows, 3)) / 2
    y = (X @ [2.0, -1.0, 0.5] + rng.normal(size=len(X)) / 4 > 0).astype(np.float64)
    return glm("logistic", X, y, row_norm=1.0, groups=np.repeat(np.arange(people), rows), **extra)


def test_solvers_promise_something_about_a_person() -> None:
    """Every solver that takes people says so, has as many records as there are people, and meets the budget."""
    problem = crowd(domain=l2_ball(radius=3.0))
    runs = [
        dp_gd(problem, budget=BUDGET, steps=3, clip=0.5),
        dp_sgd(problem, budget=BUDGET, steps=3, clip=0.5, sampling=Poisson(sampling_rate=0.1)),
        dp_gd(problem, budget=BUDGET, steps=3, bounding=Adaptive(clip=1, count_noise=50)),
        noisy_gradient_descent(problem, budget=BUDGET),
        fixed_hessian_descent(problem, budget=BUDGET, clip=0.5, steps=3),
        zeroth_order_descent(problem, budget=BUDGET, clip=1.0, steps=3, step_size=0.1),
        dp_svrg(
            problem,
            budget=BUDGET,
            clip=1.0,
            difference_clip=0.5,
            epochs=2,
            epoch_steps=3,
            step_size=0.1,
            sampling=FullBatch(),
        ),
    ]
    for run in runs:
        assert run.plan.records == problem.records == 200
        assert_personal(run.guarantee)
        assert run.guarantee.epsilon <= 1
    assert runs[3].bound is not None
    points = [[0.0] * 3, [1.0] * 3]
    assert_personal(choose_best(problem, points, loss_clip=1.0, epsilon=1.0, neighbours="replace_one").guarantee)
    assert_personal(exponential_mechanism(problem, epsilon=1.0, candidates=points).guarantee)


def assert_personal(guarantee: Guarantee) -> None:
    assert guarantee.unit == "person"
    assert "all rows of one person replaced by any others, the number of people public" in guarantee.details
    assert "which are under one label" in guarantee.details
    assert "one record" not in guarantee.details


@pytest.mark.parametrize(("relation", "words"), [("zero_out", "zeroed out"), ("add_remove", "added or removed")])
def test_relations_are_told_of_people(relation: Any, words: str) -> None:
    """The sentence names what happens to the person, and whether the number of people is public."""
    run = dp_gd(crowd(), budget=BUDGET, steps=2, clip=0.5, neighbours=relation, records=200)
    assert words in run.guarantee.details
    assert ("number of people private" in run.guarantee.details) == (relation == "add_remove")


def test_a_plan_for_records_does_not_run_on_people() -> None:
    """Nor the other way round: the promise would be about somebody else."""
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=20.0, steps=2, records=200, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="unit='person'"):
        follow(plan, crowd(), delta=1e-6, update=GradientStep(step_size=1.0))
    plain = glm("logistic", np.zeros((200, 3)), np.zeros(200), row_norm=1.0)
    person = gradient_plan(
        bounding=Clip(clip=1.0), noise_multiplier=20.0, steps=2, records=200, neighbours="zero_out", unit="person"
    )
    with pytest.raises(InvalidParameter, match="unit='record'"):
        follow(person, plain, delta=1e-6, update=GradientStep(step_size=1.0))
    with pytest.raises(InvalidParameter, match="one of 'record', 'person'"):
        gradient_plan(bounding=Clip(clip=1.0), steps=2, records=200, neighbours="zero_out", unit="row")  # type: ignore[arg-type]


def test_what_is_not_proven_for_people_is_refused() -> None:
    """Batches by place, whose members one person's rows could move, and solvers that read rows by themselves."""
    problem = crowd(domain=l2_ball(radius=3.0), ridge=0.1)
    for sampling in (Cyclic(batch=10), Strided(batch=10), CyclicPoisson(sampling_rate=0.5, groups=4)):
        with pytest.raises(NoProvenBound, match="by place"):
            dp_sgd(problem, budget=BUDGET, steps=2, clip=0.5, sampling=sampling)
    with pytest.raises(InvalidParameter, match="people with many rows"):
        newton_descent(problem, budget=BUDGET, clip=0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="Expected a generalised linear model, got GroupedProblem"):
        output_perturbation(problem, budget=BUDGET)
    with pytest.raises(InvalidParameter, match="Expected a generalised linear model, got GroupedProblem"):
        objective_perturbation(problem, budget=BUDGET)


def test_sampling_draws_people() -> None:
    """At rate ½ each batch holds whole people: the sum of a batch is a sum of whole shares, never of a part of one."""
    X, groups = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 4), ["a"] * 3 + ["b"] * 4
    problem = glm("half_squared", X, -np.ones(7), row_norm=1.0, groups=groups)
    random, seen = fixed_seed_invalidates_guarantee(2), set()
    for _ in range(40):
        chosen = Poisson(sampling_rate=0.5).indices(problem.records, 0, random)
        seen.add(tuple(problem.gradient_sum(np.zeros(2), rule=Clip(clip=2.0), indices=chosen).value.round(6).tolist()))
    assert seen == {(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)}


@pytest.mark.medium
def test_noise_is_calibrated_to_a_person() -> None:
    """A person of 50 rows that all pull one way, there or emptied, moves the release by a clip, and noise is z clips.

    800 draws each, z = 1: the stddev is within 12.5 % of 1 and the mean moves by 1 ± 0.25: 5 standard errors each, so a
    false alarm has probability below 2e-6. Noise that is a quarter too small, and the mutant that clips rows and
    promises people, which moves the mean by 50, are caught always.
    """
    rng = np.random.default_rng(5)
    others, canary = rng.normal(size=(60, 2)) / 9, np.tile([1.0, 0.0], (50, 1))
    groups = np.repeat(np.arange(21), [3] * 20 + [50])
    y = np.concatenate([np.zeros(60), -9 * np.ones(50)])
    plan = gradient_plan(
        bounding=Clip(clip=0.5), noise_multiplier=1.0, steps=800, records=21, neighbours="zero_out", unit="person"
    )

    def released(rows: Any, seed: int) -> Any:
        problem = glm("half_squared", np.vstack([others, rows]), y, row_norm=1.0, groups=groups)
        gradient = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(seed)))
        return np.array([gradient(np.zeros(2))[0] for _ in range(plan.times("gradients"))]) * plan.records / 0.5

    there, emptied = released(canary, 1), released(np.full((50, 2), np.nan), 2)
    assert abs(there.std() - 1) < 0.125
    assert abs(emptied.std() - 1) < 0.125
    assert abs(there.mean() - emptied.mean()) == pytest.approx(1.0, abs=0.25)
    rows = glm("half_squared", np.vstack([others, canary]), y, row_norm=1.0)
    mutant = (
        rows.gradient_sum(np.zeros(2), rule=Clip(clip=0.5)).value
        - rows.gradient_sum(np.zeros(2), rule=Clip(clip=0.5), indices=np.arange(60)).value
    )
    assert abs(mutant[0]) / 0.5 == pytest.approx(50.0)


def test_plain_gradient_is_that_of_the_mean_over_people() -> None:
    """Without bounds the sum is the gradient of the average over people of the average over their rows."""
    rng = np.random.default_rng(1)
    X, y, groups = rng.normal(size=(40, 3)) / 4, rng.integers(2, size=40), rng.integers(9, size=40)
    problem = glm("logistic", X, y, row_norm=1.0, groups=groups, ridge=0.2)
    theta = np.array([1.0, -0.5, 0.25])
    bounded = problem.gradient_sum(theta, rule=Clip(clip=9.0), max_records=9).value / problem.records
    assert np.allclose(bounded + 0.2 * theta, problem.plain_gradient(theta), atol=1e-8)
