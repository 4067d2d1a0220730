"""Output perturbation: the sensitivity of a minimiser, the noise on it, and what is refused."""

from __future__ import annotations

import importlib
import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from privet import Budget, box, glm, l2_ball, per_record, whole_space
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet
from privet.losses import CustomLoss, LinearRecords, LogisticLoss, MultinomialLoss, SquaredLoss
from privet.plan import Meter
from privet.privacy import Neighbours
from privet.problems import LinearProblem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import OutputPerturbation, Result, output_perturbation
from privet.solvers.minimise import Minimiser
from privet.solvers.perturbed_output import SolvedTo

Vector = NDArray[np.float64]
BUDGET = Budget(epsilon=1, delta=1e-6)
RELATIONS: list[Neighbours] = ["replace_one", "zero_out", "add_remove"]

LOGISTIC_BY_HAND = CustomLoss(
    value=LogisticLoss().value,
    derivative=LogisticLoss().derivative,
    curvature=LogisticLoss().curvature,
    lipschitz_constant=1.0,
    smoothness_constant=0.25,
    convex=True,
)
# Records on and beyond the clip's border, opposite ones, an empty one, and one that is not a number.
POOL = [
    ((1.0, 0.0), 9.0),
    ((-1.0, 0.0), 9.0),
    ((0.6, 0.8), -9.0),
    ((0.1, 0.0), 0.2),
    ((0.0, 0.0), 1.0),
    ((math.nan, 1.0), 1.0),
]


def solved(rows: tuple[Any, ...], domain: ConvexSet, strength: float, loss: Any = "half_squared") -> Vector:
    X = np.array([x for x, _ in rows]).reshape(-1, 2)
    problem = glm(loss, X, np.array([y for _, y in rows]), row_norm=1.0, domain=domain)
    solver = Minimiser(problem=problem, clip=1.0, strength=strength, centre=np.zeros(2), reach=200.0)
    return solver.solve(1e-9)


@pytest.mark.medium
@pytest.mark.parametrize(
    "domain", [whole_space(), l2_ball(radius=0.4), box(low=[-0.1, -1.0], high=[0.3, 0.2])], ids=repr
)
@pytest.mark.parametrize("strength", [0.5, 4.0])
def test_minimiser_moves_by_no_more_than_the_sensitivity(domain: ConvexSet, strength: float) -> None:
    """Brute force over all data sets of 0 to 3 records of a hostile pool, all neighbours, all three relations."""
    bounds = SolvedTo(gradient_clip=1.0, strength=strength, tolerance=1e-9)
    found = {
        rows: solved(rows, domain, strength)
        for n in range(4)
        for rows in itertools.combinations_with_replacement(POOL, n)
    }
    added, exchanged = 0.0, 0.0
    for rows, w in found.items():
        for record in POOL:
            if len(rows) < 3:
                more = tuple(sorted((*rows, record), key=POOL.index))
                added = max(added, float(np.linalg.norm(found[more] - w)))
            for out in range(len(rows)):
                other = tuple(sorted((*rows[:out], record, *rows[out + 1 :]), key=POOL.index))
                exchanged = max(exchanged, float(np.linalg.norm(found[other] - w)))
    assert added <= bounds.clip
    assert exchanged <= 2 * bounds.clip
    if isinstance(domain, type(whole_space())):  # attained, so a sensitivity without the factor 2 is caught
        assert added >= 0.999 * bounds.clip
        assert exchanged >= 1.999 * bounds.clip


def test_solver_that_has_not_converged_breaks_the_plain_sensitivity_and_is_never_certified() -> None:
    """Two steps of descent put neighbours further apart than clip/strength allows; the certificate refuses them.

    So a mutant that ignores the tolerance, with such a solver, would release too little noise.
    """
    strength, tilt = 0.01, np.zeros(2)

    def unconverged(rows: list[Any]) -> tuple[Vector, float]:
        X, y = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
        problem = glm("half_squared", X, y, row_norm=1.0)
        solver = Minimiser(problem=problem, clip=1.0, strength=strength, centre=np.zeros(2), reach=1e4)
        w = solver.start
        for _ in range(3):
            w = w - 150.0 * solver.gradient(w, tilt)  # within 2/strength, yet too far for this curvature
        return w, solver._distance(w, tilt)[0]

    one, first = unconverged([((1.0, 0.0), 9.0)])
    other, second = unconverged([((1.0, 0.0), 9.0), ((1.0, 0.0), -9.0)])
    exact = SolvedTo(gradient_clip=1.0, strength=strength, tolerance=0.0).clip
    assert np.linalg.norm(one - other) > 1.3 * exact
    assert max(first, second) > np.linalg.norm(one - other) / 2 - exact / 2  # what the certificate must cover
    assert max(first, second) > 1e-6


def regression(n: int = 400, d: int = 4, **more: Any) -> LinearProblem:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d)) / (2 * math.sqrt(d))
    y = X @ np.linspace(2, -2, d) + rng.normal(size=n) / 10 > 0
    made: LinearProblem = glm("logistic", X, y, row_norm=1.0, **more)
    return made


def sensitivity(result: Result, problem: LinearProblem, **settings: Any) -> SolvedTo:
    """What bounds one record's influence in that run."""
    return OutputPerturbation(**settings).solved_to(result.plan, problem)


def noise_ratio(stddev_factor: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """Sum of squares of 250 released points about the minimiser, in units of the claimed noise: chi², 1000 degrees."""
    module = importlib.import_module("privet.plan.meter")
    true_noise = module.add_gaussian
    monkeypatch.setattr(
        module,
        "add_gaussian",
        lambda units, *, step, noise_stddev, random: true_noise(
            units, step=step, noise_stddev=noise_stddev * stddev_factor, random=random
        ),
    )
    problem = regression()
    random = fixed_seed_invalidates_guarantee(11)
    exact = output_perturbation(problem, budget=Budget(epsilon=1e9, delta=1e-6), regularisation=0.1).coef
    total = 0.0
    for _ in range(250):
        result = output_perturbation(problem, budget=BUDGET, regularisation=0.1, random=random)
        stddev = result.plan["minimiser"].noise_multiplier * sensitivity(result, problem, regularisation=0.1).clip
        total += float(np.sum(((result.coef - exact) / stddev) ** 2))
    return total


@pytest.mark.medium
def test_noise_is_as_large_as_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spread of releases is that of the plan. Fixed seed; else wrong once in 1e9 (two-sided chi², 1000 degrees)."""
    assert stats.chi2.ppf(5e-10, 1000) < noise_ratio(1.0, monkeypatch) < stats.chi2.ppf(1 - 5e-10, 1000)


@pytest.mark.medium
def test_mutant_with_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test fails if the noise is halved; it has power above 0.99 from 20 % too little noise on."""
    assert noise_ratio(0.5, monkeypatch) < stats.chi2.ppf(5e-10, 1000)
    assert 0.8**2 * stats.chi2.ppf(0.99, 1000) < stats.chi2.ppf(5e-10, 1000)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("budget", [BUDGET, Budget(epsilon=0.01, delta=1e-9), Budget(epsilon=30, delta=1e-3)])
def test_guarantee_meets_the_budget(neighbours: Neighbours, budget: Budget) -> None:
    """For every relation, the promise is within the budget, hardly below it, and says what it rests on."""
    problem = regression(domain=l2_ball(radius=3))
    result = output_perturbation(problem, budget=budget, neighbours=neighbours, records=400)
    assert 0.999 * budget.epsilon < result.guarantee.epsilon <= budget.epsilon
    assert result.guarantee.delta <= budget.delta
    assert "certified" in result.guarantee.details
    assert result.guarantee.neighbours == neighbours


def test_noise_multiplier_is_noise_over_the_whole_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event's noise multiplier is never more than the noise drawn ÷ (sensitivity + twice the tolerance)."""
    problem, asked = regression(), []
    true_noise = Meter.noisy_units

    def spy(self: Meter, name: str, units: Any, *, step: float, sensitivity: float) -> Vector:
        asked.append((sensitivity, self.noise_stddev(name, sensitivity=sensitivity)))
        return true_noise(self, name, units, step=step, sensitivity=sensitivity)

    monkeypatch.setattr(Meter, "noisy_units", spy)
    result = output_perturbation(problem, budget=BUDGET, regularisation=0.1)
    solved_to = sensitivity(result, problem, regularisation=0.1)
    assert asked[0][0] == solved_to.clip
    assert Fraction(asked[0][1]) >= Fraction(result.plan["minimiser"].noise_multiplier) * Fraction(solved_to.clip)
    assert solved_to.clip >= solved_to.gradient_clip / solved_to.strength + 2 * solved_to.tolerance
    assert solved_to.strength == pytest.approx(0.1 * 400)
    assert solved_to.tolerance < 1e-4 * solved_to.clip


def test_plan_depends_on_no_record() -> None:
    """Penalty, tolerance and noise are the same for any records; under add_remove also for any number of them."""
    rng = np.random.default_rng(0)
    plans: list[Any] = []
    for n, scale in ((50, 1.0), (50, 1e-9), (50, 1e9)):
        problem = glm(
            "logistic", scale * rng.normal(size=(n, 2)), rng.integers(0, 2, n), row_norm=1.0, domain=l2_ball(radius=2)
        )
        plans.append(output_perturbation(problem, budget=BUDGET).plan)
    assert plans[0] == plans[1] == plans[2]
    plans = []
    for n in (0, 1, 50, 3000):
        problem = glm(
            "logistic", rng.normal(size=(n, 2)), rng.integers(0, 2, n), row_norm=1.0, domain=l2_ball(radius=2)
        )
        plans.append(output_perturbation(problem, budget=BUDGET, neighbours="add_remove", records=50).plan)
    assert len(set(map(repr, plans))) == 1


def test_bad_records_count_as_empty_and_raise_nothing() -> None:
    """NaN, infinities, labels outside the set and huge values give a result like any other."""
    X = np.array([[np.nan, 1.0], [np.inf, 0.0], [1e300, -1e300], [0.1, 0.2]])
    for y in ([0, 1, 2, 1], [np.nan, np.inf, -np.inf, 7]):
        result = output_perturbation(glm("logistic", X, y, row_norm=1.0, domain=l2_ball(radius=2)), budget=BUDGET)
        assert np.isfinite(result.coef).all()
    result = output_perturbation(
        glm("half_squared", X, [1e300, -1e300, 1e308, 0], row_norm=1.0), budget=BUDGET, clip=1.0, regularisation=0.5
    )
    assert np.isfinite(result.coef).all()


@pytest.mark.medium
@pytest.mark.parametrize("domain", [whole_space(), l2_ball(radius=0.5)], ids=repr)
def test_large_epsilon_gives_the_minimiser(domain: ConvexSet) -> None:
    """With ε → ∞ the release is the non-private minimiser of the same penalised problem, to 1e-6."""
    problem = regression(domain=domain)
    result = output_perturbation(problem, budget=Budget(epsilon=1e14, delta=1e-4), regularisation=0.02)
    rows = problem.table.units * problem.table.step
    w = np.zeros(4)
    for _ in range(4_000):
        slope = 1 / (1 + np.exp(-(rows @ w))) - problem.labels
        w = domain.project(w - 8.0 * (rows.T @ slope / 400 + 0.02 * w))
    assert np.allclose(result.coef, w, atol=1e-6)


def test_ridge_is_the_penalty_and_stays_centred_at_zero() -> None:
    """A ridge is the regularisation, about 0 wherever the domain's centre is; with both, they add."""
    domain = l2_ball(radius=9.0, centre=[1.0, 1.0, 1.0, 1.0])
    near = Budget(epsilon=1e14, delta=1e-4)
    own = output_perturbation(regression(domain=domain, ridge=0.05), budget=near)
    other = output_perturbation(regression(), budget=near, regularisation=0.05)
    assert np.allclose(own.coef, other.coef, atol=1e-6)
    assert own.bound is None
    both = output_perturbation(regression(ridge=0.02), budget=near, regularisation=0.03)
    assert np.allclose(both.coef, other.coef, atol=1e-6)


def test_excess_risk_stays_below_the_proven_bound() -> None:
    """Over 30 runs the mean excess risk is below `result.bound`, which is finite and above zero."""
    problem = regression(n=2000, domain=l2_ball(radius=2))
    rows = problem.table.units * problem.table.step

    def risk(w: Vector) -> float:
        return float(np.mean(np.logaddexp(0, -(2 * problem.labels - 1) * (rows @ w))))

    best = output_perturbation(problem, budget=Budget(epsilon=1e14, delta=1e-4), regularisation=1e-4).coef
    runs = [output_perturbation(problem, budget=BUDGET) for _ in range(30)]
    bound = runs[0].bound
    assert bound is not None
    assert np.mean([risk(run.coef) for run in runs]) - risk(best) < bound < 2.0


def test_release_is_on_the_lattice() -> None:
    """Every released coordinate is a multiple of a public power of two near the noise × 2^-20: no low bits leak."""
    problem = regression()
    result = output_perturbation(problem, budget=BUDGET, regularisation=0.1)
    stddev = result.plan["minimiser"].noise_multiplier * sensitivity(result, problem, regularisation=0.1).clip
    units = result.coef / 2.0 ** (math.floor(math.log2(stddev)) - 21)
    assert np.array_equal(units, np.rint(units))


def test_fixed_seed_invalidates_the_guarantee() -> None:
    """A fixed seed repeats the release and withdraws the promise."""
    runs = [
        output_perturbation(regression(), budget=BUDGET, regularisation=0.1, random=fixed_seed_invalidates_guarantee(3))
        for _ in range(2)
    ]
    assert np.array_equal(runs[0].coef, runs[1].coef)
    assert math.isinf(runs[0].guarantee.epsilon)
    assert "NOT PRIVATE" in str(runs[0].guarantee)


def test_what_is_refused_is_refused_on_public_facts() -> None:
    """Each refusal names its reason, and none needs a record."""
    ball = l2_ball(radius=1)

    def problem(loss: Any, **more: Any) -> LinearProblem:
        made: LinearProblem = glm(loss, np.zeros((3, 2)), [1, 1, 0], row_norm=1.0, **more)
        return made

    cases: list[tuple[Any, dict[str, Any], str]] = [
        (problem("logistic"), {"regularisation": 0.0}, "strong"),
        (problem("logistic"), {}, "strong"),
        (problem("logistic"), {"regularisation": -1.0}, "positive regularisation"),
        (problem("logistic"), {"regularisation": math.nan}, "positive regularisation"),
        (problem("hinge", domain=ball), {}, "smooth"),
        (problem("absolute", domain=ball), {}, "kink"),
        (problem("poisson"), {"regularisation": 1.0}, "smooth"),
        (problem("squared"), {"regularisation": 1.0}, "proven bound"),
        (problem("logistic", domain=ball), {"clip": 0.0}, "clip"),
        (problem("logistic", domain=ball), {"radius": -1.0}, "radius"),
        (problem("logistic", domain=ball), {"neighbours": "add_remove"}, "records"),
        (glm("logistic", np.zeros((0, 2)), [], row_norm=1.0), {"regularisation": 1.0}, "records"),
        (problem("logistic"), {"regularisation": 1.0, "neighbours": "swap"}, "neighbours"),
        (problem("logistic", domain=ball), {"neighbours": "add_remove", "records": 3, "max_records": 2}, "at most"),
        (problem(MultinomialLoss(classes=3), domain=ball), {"clip": 0.5}, "several outputs"),
        (
            problem(replace(LOGISTIC_BY_HAND, convex=False), domain=ball),
            {},
            "convex",
        ),
        (
            per_record(LinearRecords(loss=SquaredLoss()), [[1.0]], [1.0], shape=1),
            {"regularisation": 1.0},
            "linear model",
        ),
        (problem("logistic"), {"regularisation": 1.0, "budget": Budget(epsilon=1e40, delta=1e-4)}, "floats"),
    ]
    for subject, options, reason in cases:
        with pytest.raises(InvalidParameter, match=reason):
            output_perturbation(subject, **{"budget": BUDGET, **options})


def test_several_outputs_work_where_nothing_is_clipped() -> None:
    """A multinomial model with its proven constant is solved and released in its own shape."""
    rng = np.random.default_rng(1)
    problem = glm(
        MultinomialLoss(classes=3),
        rng.normal(size=(300, 2)),
        rng.integers(0, 3, 300),
        row_norm=1.0,
        domain=l2_ball(radius=2),
    )
    result = output_perturbation(problem, budget=BUDGET)
    assert result.coef.shape == (2, 3)
    assert result.bound is not None
