"""Every algorithm of the lectures runs from its lecture's own parameters, with the guarantee that these truly have."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from privet import Budget, box, glm, l2_ball
from privet.accounting import Gaussian, epsilon
from privet.errors import InvalidParameter
from privet.lectures import Algorithm, lectures_prescription, run_lecture
from privet.lectures.prescriptions import Theorem
from privet.randomness import fixed_seed_invalidates_guarantee

BUDGET = Budget(epsilon=1.0, delta=1e-5)
N = 300
BALL = l2_ball(radius=1.0)


def logistic(d: int = 3, **more: Any) -> Any:
    """A logistic problem of N records in the unit ball, the last feature as large as Nikolov's appended 1."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(-1, 1, size=(N, d - 1)), np.ones(N)]) / math.sqrt(d)
    y = (X[:, 0] > 0).astype(float)
    return glm("logistic", X, y, row_norm=1.0, **({"domain": BALL} | more))


def run(name: Any, problem: Any = None, **more: Any) -> Any:
    random = fixed_seed_invalidates_guarantee(7)
    asked: Any = {"budget": BUDGET, "max_steps": 40, "random": random} | more
    return run_lecture(name, logistic() if problem is None else problem, **asked)


CASES: dict[str, dict[str, Any]] = {
    "brown_noisy_descent": {"problem": logistic(domain=None), "radius": 1.0},
    "exponential_mechanism": {"candidates": [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]},
    "objective_perturbation": {"problem": logistic(domain=None), "radius": 1.0},
}


@pytest.mark.parametrize("name", get_args(Algorithm))
def test_every_algorithm_runs_in_one_line(name: Any) -> None:
    """Each returns finite coefficients of the right shape, and a statement that a fixed seed invalidates."""
    result = run(name, **CASES.get(name, {}))
    assert result.coef.shape == (3,)
    assert np.isfinite(result.coef).all()
    assert result.guarantee.epsilon == math.inf


@pytest.mark.parametrize("theorem", get_args(Theorem))
def test_a_prescription_runs_with_its_own_numbers(theorem: Any) -> None:
    """The plan has the printed σ, G and T (one gradient fewer for averages), and epsilon is the accountant's."""
    known: Any = {"n": N, "d": 3, "radius": 1.0, "lipschitz": 1.0, "budget": BUDGET, "max_steps": 40}
    if theorem == "nikolov":
        known |= {"d": 2, "lipschitz": None}
    if theorem == "theorem_4_1":
        known |= {"rank": 3}
    printed = lectures_prescription(theorem, **known)
    problem = logistic(domain=None) if theorem == "theorem_4_1" else logistic()
    result = printed.run(problem)  # the noise is the operating system's: nothing below depends on it
    multiplier = printed.noise_stddev * N / printed.clip
    gradients = printed.steps - (theorem != "shamir_zhang")
    assert result.plan.times("gradients") == gradients
    assert result.plan["gradients"].bound.clip == printed.clip
    truth = epsilon(Gaussian(noise_multiplier=multiplier) * gradients, delta=1e-5, neighbours="replace_one")
    assert result.guarantee.epsilon == pytest.approx(truth, rel=1e-9)
    assert (result.guarantee.epsilon <= 1.0) == (theorem != "theorem_4_1")  # which lacks a √2


def test_steps_move_as_printed() -> None:
    """With little noise: the mean of 0, η, 2η for a constant step, the sum of c/√t for Razaviyayn's."""
    problem = glm("absolute", [[1.0, 0.0]] * N, [5.0] * N, row_norm=1.0, domain=l2_ball(radius=100.0))
    known: Any = {"n": N, "d": 2, "radius": 1.0, "lipschitz": 1.0, "budget": BUDGET, "max_steps": 3}
    for theorem, shape in (("theorem_2_6", 1.0), ("shamir_zhang", 1 + 1 / math.sqrt(2) + 1 / math.sqrt(3))):
        printed: Any = lectures_prescription(theorem, **known)  # type: ignore[arg-type]
        printed = replace(printed, noise_stddev=1e-4, step_size=0.5, steps=3)
        found = printed.run(problem, random=fixed_seed_invalidates_guarantee(2)).coef[0]
        assert found == pytest.approx(0.5 * shape, rel=0.01)


def test_one_record_a_step_has_the_lectures_noise() -> None:
    """Wu's DP-SGD: noise 2 ln(1/δ)/ε of the gradient bound, n² steps unless capped, one record a step."""
    found = run("wu_dp_sgd", max_steps=30)
    assert repr(found.plan.event) == (
        f"Gaussian(noise_multiplier={2 * math.log(1e5)!r}).without_replacement(batch=1, records={N}) * 30"
    )


def test_clipped_descent_has_basic_compositions_noise() -> None:
    """Brown's lecture 4: 2T√(2 ln(2T/δ))/ε clips, all iterates released."""
    found = run("brown_dp_gd", max_steps=10)
    assert found.iterates.shape == (11, 3)
    by_hand = 2 * 10 * math.sqrt(2 * math.log(2 * 10 / 1e-5))
    assert found.plan["gradients"].noise_multiplier == pytest.approx(by_hand, rel=1e-12)


def test_the_exponential_mechanism_draws_from_an_interval() -> None:
    """In one dimension it needs no candidates."""
    median = glm("absolute", [[1.0]] * 50, [0.3] * 50, row_norm=1.0, domain=box(low=[-1.0], high=[1.0]))
    assert abs(run("exponential_mechanism", median).coef[0]) <= 1.0


def test_what_does_not_fit_is_refused() -> None:
    """Unknown names; theorem 4.1 on a ball; another number of records; a prescription that reads nothing."""
    with pytest.raises(InvalidParameter, match="lectures"):
        run("adam")
    with pytest.raises(InvalidParameter, match="projection"):
        run("brown_noisy_descent", radius=1.0)
    known: Any = {"n": N + 1, "d": 3, "radius": 1.0, "lipschitz": 1.0, "budget": BUDGET, "max_steps": 5}
    with pytest.raises(InvalidParameter, match="records"):
        lectures_prescription("theorem_2_6", **known).run(logistic())
    with pytest.raises(InvalidParameter, match="start"):
        lectures_prescription("theorem_2_6", **(known | {"n": N, "max_steps": 1})).run(logistic())
