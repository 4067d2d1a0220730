from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet import Budget, dp_gd, glm, per_record
from privet.clipping import LatticeSum
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, SquaredLoss
from privet.noise import add_gaussian
from privet.plan import Meter, Plan, Release, SecondMoments, meter
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import fixed_hessian_descent
from privet.solvers.fixed_hessian import SECOND_MOMENT
from privet.sums import gram_sum

VAST = Budget(epsilon=1e6, delta=1e-6)


def minimiser(problem: Any, X: Any) -> Any:
    """Newton's method to the end, without bounds or noise."""
    theta = np.zeros(X.shape[1])
    for _ in range(30):
        z = X @ theta
        gradient = X.T @ problem.loss.derivative(z, problem.labels) / len(X) + problem.ridge.gradient(theta)
        curvature = (X.T * problem.loss.curvature(z, problem.labels)) @ X / len(X)
        theta = theta - np.linalg.solve(curvature + problem.ridge.alpha * np.eye(len(theta)), gradient)
    return theta


@pytest.mark.medium
@pytest.mark.parametrize(("loss", "ridge", "clip"), [("logistic", 0.5, 1.0), ("squared", 0.0, 1.0)])
@pytest.mark.parametrize("solver", ["hessian", "gd"])
def test_with_a_vast_budget_the_minimiser_is_found(loss: str, ridge: float, clip: float, solver: str) -> None:
    """At epsilon = 10^6: the minimiser of the same bounded problem to 1e-6, and of the raw one to 1e-4.

    What noise is left moves a coefficient by some 1.4e-3 × clip ÷ (n × curvature), 1e-7 here; 40 steps of noisy
    Newton without momentum, or 200 plain ones, converge below that.
    """
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    score = X @ np.array([1.0, -0.5, 0.25])
    y = (score + 0.3 * rng.normal(size=20_000) > 0).astype(float) if loss == "logistic" else score
    problem = glm(loss, X, y, row_norm=1.0, ridge=ridge)
    common: dict[str, Any] = {"budget": VAST, "clip": clip, "release": "tail_average"}
    random = fixed_seed_invalidates_guarantee(2)
    if solver == "hessian":
        result = fixed_hessian_descent(problem, steps=40, momentum=0.0, random=random, **common)
    else:
        size = 1 / (2 / 3 if loss == "squared" else ridge + 1 / 12)
        result = dp_gd(problem, steps=200, step_size=size, random=random, **common)
    assert np.abs(result.coef - minimiser(problem, problem.table.units * problem.table.step)).max() < 1e-6
    assert np.abs(result.coef - minimiser(problem, X)).max() < 1e-4


def noisy_gram(
    total: LatticeSum, multiplier: float, seed: int, *, size: int, neighbours: Neighbours = "zero_out"
) -> tuple[Any, float]:
    """A second moment released through a meter, and how far a record moves it by the plan."""
    bound = SecondMoments(clip=total.clip)
    moment = Release(name="moment", of="x xᵀ", bound=bound, noise_multiplier=multiplier, size=size * size)
    plan = Plan(releases=(moment,), records=3, neighbours=neighbours)
    run = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
    run.open("moment", count=3)
    return run.noisy_symmetric("moment", total), bound.sensitivity(neighbours)


@pytest.mark.medium
def test_the_gram_matrix_gets_the_noise_it_is_priced_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagonal at least multiplier × row_norm², above it 1/√2 of that, exactly; mirrored, not drawn twice.

    Where a record is replaced, at least multiplier ÷ 2 × √2 row_norm²: the event is priced at 2 clips.
    """
    asked: list[float] = []

    def spy(units: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["noise_stddev"])
        return add_gaussian(units, **kwargs)

    monkeypatch.setattr(meter, "add_gaussian", spy)
    rng = np.random.default_rng(3)
    for _ in range(300):
        norm, multiplier = float(rng.uniform(0.5, 2)), float(rng.uniform(0.1, 10))
        problem = glm("half_squared", rng.normal(size=(3, 2)), np.zeros(3), row_norm=norm)
        asked.clear()
        released, _ = noisy_gram(gram_sum(problem.table), multiplier, 1, size=2)
        above, diagonal = (Fraction(stddev) for stddev in asked)
        assert (released == released.T).all()
        # One record's xxᵀ, as a vector (diagonal, √2 × triangle), is at most row_norm² long.
        assert diagonal >= Fraction(multiplier) * Fraction(norm) ** 2 * (1 - Fraction(1, 2**52))
        assert 2 * above**2 >= (Fraction(multiplier) * Fraction(problem.row_norm * problem.row_norm)) ** 2
        assert diagonal >= Fraction(multiplier) * Fraction(problem.row_norm * problem.row_norm)
        asked.clear()
        _, moved = noisy_gram(gram_sum(problem.table), multiplier, 1, size=2, neighbours="replace_one")
        above, diagonal = (Fraction(stddev) for stddev in asked)
        assert Fraction(moved) ** 2 >= 2 * Fraction(problem.row_norm * problem.row_norm) ** 2
        assert diagonal >= Fraction(multiplier) * Fraction(moved) / 2
        assert 2 * above**2 >= (Fraction(multiplier) * Fraction(moved) / 2) ** 2


def test_the_released_gram_matrix_is_unbiased_with_the_planned_spread() -> None:
    """Over 30 × 30 entries the noise's stddev is within 15 % of the plan's (false-positive rate below 1e-5)."""
    total = LatticeSum(units=np.zeros((30, 30), dtype=np.int64), step=2.0**-28, clip=1.0)
    released, _ = noisy_gram(total, 2.0, 4, size=30)
    off = released[np.triu_indices(30, 1)]
    assert off.std() == pytest.approx(2**0.5, rel=0.15)
    assert np.diag(released).std() == pytest.approx(2.0, rel=0.6)


def test_the_hessian_is_part_of_the_price() -> None:
    """hessian_share of the squared signal-to-noise ratio goes to the Gram matrix, and the event has both.

    See docs/footguns.md, 40.
    """
    problem = glm("logistic", np.eye(2), [0, 1], row_norm=1.0)
    result = fixed_hessian_descent(problem, budget=Budget(epsilon=1, delta=1e-6), steps=30, clip=1.0, hessian_share=0.2)
    hessian = result.plan[SECOND_MOMENT].noise_multiplier
    share = hessian**-2 / (hessian**-2 + 30 * result.plan["gradients"].noise_multiplier ** -2)
    assert share == pytest.approx(0.2)
    assert 0.999 < result.guarantee.epsilon <= 1


@pytest.mark.parametrize(
    "more", [{"hessian_share": 0.0}, {"hessian_share": 1.0}, {"floor": 0.0}, {"floor": np.inf}, {"clip": 0.0}]
)
def test_parameters_out_of_range_are_refused(more: dict[str, float]) -> None:
    """Both parts need a share, and the matrix must be invertible."""
    problem = glm("logistic", np.eye(2), [0, 1], row_norm=1.0)
    with pytest.raises(InvalidParameter):
        fixed_hessian_descent(problem, **{"budget": VAST, "clip": 1.0, **more})  # type: ignore[arg-type]


def test_losses_without_curvature_and_other_problems_are_refused() -> None:
    """Only a smooth generalised linear model has this Hessian."""
    for problem in (
        glm("absolute", np.eye(2), [0, 1], row_norm=1.0),
        per_record(LinearRecords(loss=SquaredLoss()), np.eye(2), np.ones(2), shape=2),
    ):
        with pytest.raises(InvalidParameter, match=r"smooth loss|generalised linear"):
            fixed_hessian_descent(problem, budget=VAST, clip=1.0)  # type: ignore[arg-type]
