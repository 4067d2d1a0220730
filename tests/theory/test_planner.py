from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import Budget
from privet.accounting import delta as delta_of
from privet.accounting import epsilon as epsilon_of
from privet.errors import InvalidParameter
from privet.privacy import Neighbours
from privet.theory import Method, Prescription, last_iterate_steps, noise_to_signal, plan_for

BUDGET = Budget(epsilon=1, delta=1e-5)
METHODS: tuple[Method, ...] = get_args(Method)
DESCENT: tuple[Method, ...] = ("average", "last", "last_linear", "rank", "nikolov")
RELATIONS: tuple[Neighbours, ...] = get_args(Neighbours)


def plan(method: Method = "average", **change: Any) -> Prescription:
    """A plan for n = 1000, d = 10, radius 1, G = 1, (1, 1e-5), replace_one, with changes."""
    known: dict[str, Any] = {"n": 1000, "d": 10, "radius": 1.0, "budget": BUDGET, "neighbours": "replace_one"}
    if method != "nikolov":
        known["lipschitz"] = 1.0
    if method == "rank":
        known["rank"] = 5
    return plan_for(method=method, **(known | change))


def test_plans_meet_the_reference_table() -> None:
    """floor_bound, output_perturbation_bound, exp_mech_bound and section 3.2's 0.0334 at n = 1000, d = 10."""
    average = plan("average")
    assert average.floor == pytest.approx(0.0235945861541918, rel=1e-9)
    assert average.excess_risk == pytest.approx(0.0334, abs=1e-4)
    assert average.steps == 1797  # ⌈n²μ²/(4d)⌉
    assert plan("output_perturbation").excess_risk == pytest.approx(0.217230689149539, rel=1e-9)
    assert plan("exponential", diameter=1.0).excess_risk == pytest.approx(0.02, rel=1e-12)
    assert plan("exponential").excess_risk == pytest.approx(0.04, rel=1e-12)  # diameter 2


def test_best_last_iterate_meets_the_reference_table() -> None:
    """lastiter_T_star of the reference table: 8080.81089000855."""
    a = noise_to_signal(n=1000, d=10, budget=BUDGET, neighbours="replace_one")
    assert last_iterate_steps(a) == pytest.approx(8080.81089000855, rel=1e-9)
    assert plan("last").steps in (8080, 8081)


@pytest.mark.parametrize("ratio", [1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.15, 0.18, 0.19, 1.0, 100.0])
def test_best_last_iterate_by_grid_search(ratio: float) -> None:
    """No whole T has a smaller (2 + ln T)√(1/T + a) than the one chosen, be it Lambert's or 1."""

    def shape(t: Any) -> Any:
        return (2 + np.log(t)) * np.sqrt(1 / t + ratio)

    grid = np.unique(np.concatenate([np.arange(1, 5000), np.geomspace(5000, 1e12, 200_000)]).round())
    best = last_iterate_steps(ratio)
    chosen = min(shape(1), shape(max(1, math.floor(best))), shape(math.ceil(best)))
    assert chosen <= shape(grid).min() * (1 + 1e-13)


@pytest.mark.parametrize("d", [10, 1000, 20_000, 10**6])
def test_the_planned_last_iterate_is_the_best_whole_number(d: int) -> None:
    """plan_for agrees with a search over T at every noise level, also where T = 1 beats Lambert's T."""
    found = plan("last", d=d)
    assert found.steps is not None
    a = noise_to_signal(n=1000, d=d, budget=BUDGET, neighbours="replace_one")
    t = np.arange(1, 20_000)
    shape = (2 + np.log(t)) * np.sqrt(1 / t + a)
    assert (2 + math.log(found.steps)) * math.sqrt(1 / found.steps + a) <= shape.min() * (1 + 1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("budget", [BUDGET, Budget(epsilon=0.01, delta=1e-12), Budget(epsilon=30, delta=0.1)])
def test_every_plan_meets_its_budget_and_wastes_nothing(method: Method, neighbours: Neighbours, budget: Budget) -> None:
    """The event of a plan costs at most the budget, and Gaussian noise spends 99.99 % of its delta."""
    found = plan(method, neighbours=neighbours, budget=budget, max_steps=1000)
    assert epsilon_of(found.event, delta=budget.delta, neighbours=neighbours) <= budget.epsilon
    if found.noise_multiplier is not None:
        spent = delta_of(found.event, epsilon=budget.epsilon, neighbours=neighbours)
        assert budget.delta * (1 - 1e-4) <= spent <= budget.delta


@pytest.mark.parametrize("method", ["average", "last", "last_linear", "rank", "nikolov"])
def test_noise_belongs_to_the_gradients_that_are_used(method: Method) -> None:
    """Averages and linear decay pay for T − 1 gradients, c/√t for T; the multiplier is that of the sum."""
    found = plan(method)
    assert found.steps is not None
    assert found.noisy_steps == found.steps - (method != "last")
    assert found.noise_stddev is not None
    assert found.noise_multiplier == pytest.approx(found.noise_stddev * 1000 / found.clip, rel=1e-12)
    mu = 0.268051123211294  # mu_exact_1_1e-5 of the reference table
    assert found.noise_stddev == pytest.approx(2 * found.clip * math.sqrt(found.noisy_steps) / (1000 * mu), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_fall_with_records_and_epsilon_and_rise_with_dimension(method: Method) -> None:
    """More records or budget never raises the proven risk; more dimensions never lowers it; nor does more distance."""

    def risk(**change: Any) -> float:
        return plan(method, max_steps=10**7, **change).excess_risk

    by_n = [risk(n=n) for n in (1, 10, 100, 1000, 10**4, 10**5)]
    by_epsilon = [risk(budget=Budget(epsilon=e, delta=1e-5)) for e in (0.01, 0.1, 1, 5, 20)]
    assert by_n == sorted(by_n, reverse=True)
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_n[-1] < by_n[0]
    if method != "rank":
        by_d = [risk(d=d) for d in (1, 10, 100, 1000, 10**5)]
        assert by_d == sorted(by_d)
        assert by_d[-1] > by_d[0]
    else:
        by_rank = [risk(d=1000, rank=r) for r in (1, 10, 100, 1000)]
        assert by_rank == sorted(by_rank)
        assert risk(d=10) == risk(d=10**6)
    assert risk(radius=2.0) >= risk(radius=1.0)


@pytest.mark.parametrize("method", METHODS)
def test_zero_out_is_never_dearer_than_replace_one(method: Method) -> None:
    """Half of the sensitivity never proves a larger risk; add_remove proves the same, and says what n is."""
    one, half, either = (plan(method, neighbours=relation, max_steps=10**6) for relation in RELATIONS)
    assert half.excess_risk <= one.excess_risk
    assert either.excess_risk == half.excess_risk
    assert any("private" in assumption for assumption in either.bound.assumptions)
    assert not any("number of records is private" in assumption for assumption in half.bound.assumptions)


def test_with_too_few_records_the_start_is_released() -> None:
    """Where noise drowns everything the plan is T = 1, its bound that of the start, and it says so."""
    for method in ("average", "last_linear", "rank"):
        found = plan(method, n=1)
        assert found.steps == 1
        assert found.noisy_steps == 0
        assert found.vacuous
        assert found.excess_risk == pytest.approx(1.0, rel=1e-12)
    assert plan("last", n=1).excess_risk == pytest.approx(2.0, rel=1e-12)  # G × diameter, wherever it ends
    assert plan("exponential", n=1).excess_risk == pytest.approx(2.0, rel=1e-12)
    assert plan("output_perturbation", n=1).excess_risk == pytest.approx(2.0, rel=1e-12)
    assert not plan("average").vacuous


@given(st.integers(1, 10**7), st.integers(1, 10**4), st.floats(0.01, 20), st.floats(0.01, 2.0))
@settings(max_examples=60, deadline=None)
def test_slack_is_kept(n: int, d: int, epsilon: float, slack: float) -> None:
    """The bound is within 1 + slack of its floor, or is the start's; and never above the start's."""
    budget = Budget(epsilon=epsilon, delta=1e-6)
    found = plan("average", n=n, d=d, budget=budget, slack=slack)
    assert found.floor is not None
    assert found.excess_risk <= found.trivial * (1 + 1e-12)
    assert found.steps == 1 or found.excess_risk <= (1 + slack) * found.floor * (1 + 1e-9)


def test_a_cap_is_kept_and_bounded_honestly() -> None:
    """max_steps caps T, fixed steps are taken as they are, and the bound is the one for that T."""
    for method in DESCENT:
        capped, fixed = plan(method, max_steps=50), plan(method, steps=50)
        assert capped == fixed
        assert capped.steps == 50
        assert capped.excess_risk >= plan(method).excess_risk
    assert plan("average", n=10**9, max_steps=10**4).steps == 10**4


def test_schedules_follow_their_theorems() -> None:
    """Constant; c/√t from t = 1; η(1 − t/T), which is still positive at its last update."""
    constant, falling, linear = plan("average"), plan("last"), plan("last_linear")
    assert constant.step_size_at(1) == constant.step_size_at(1796) == constant.step_size
    assert falling.step_size is not None
    assert falling.step_size_at(1) == falling.step_size
    assert falling.step_size_at(4) == pytest.approx(falling.step_size / 2)
    assert linear.step_size is not None
    assert linear.step_size_at(1796) == pytest.approx(linear.step_size / 1797)
    for bad in (0, 1797):
        with pytest.raises(InvalidParameter):
            constant.step_size_at(bad)
    with pytest.raises(InvalidParameter, match="has no step size"):
        plan("exponential").step_size_at(1)


def test_nikolov_uses_the_constant_of_the_ball() -> None:
    """G is √(d+1)/(1 + exp(−R√(d+1))) and the dimension d + 1."""
    found = plan("nikolov", d=9)
    assert found.clip == pytest.approx(3.03385686655846, rel=1e-14)  # logistic_lipschitz_on_ball, reference table
    same = plan("average", d=10, lipschitz=found.clip)
    assert found.excess_risk == same.excess_risk


def test_output_perturbation_balances_its_two_terms() -> None:
    """At the prescribed λ noise and regulariser cost the same, so any other λ would cost more; zero_out gains √2."""
    found = plan("output_perturbation")
    assert found.regularisation is not None
    assert found.noise_stddev is not None
    assert found.regularisation / 2 == pytest.approx(found.noise_stddev * math.sqrt(10), rel=1e-9)
    half = plan("output_perturbation", neighbours="zero_out")
    assert half.excess_risk == pytest.approx(found.excess_risk / math.sqrt(2), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_reads_as_a_sentence(method: Method) -> None:
    """str names the method, the risk and the theorem."""
    text = str(plan(method))
    assert text.startswith(method)
    assert "excess risk at most" in text


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"n": 10.5},
        {"d": 0},
        {"radius": 0.0},
        {"radius": math.inf},
        {"lipschitz": None},
        {"lipschitz": math.nan},
        {"neighbours": "both"},
        {"method": "best"},
        {"diameter": 0.5},
        {"diameter": 2.5},
        {"rank": 3},
        {"method": "rank", "rank": None},
        {"method": "rank", "rank": 11},
        {"method": "nikolov"},
        {"method": "exponential", "steps": 5},
        {"steps": 0},
        {"max_steps": 0},
        {"steps": 10, "max_steps": 5},
        {"slack": 0.0},
        {"n": 10**15},
        {"method": "exponential", "budget": Budget(epsilon=0, delta=1e-5)},
    ],
)
def test_nonsense_is_refused(change: dict[str, Any]) -> None:
    """Every argument outside its range raises, with what to do; so does a T that no machine could run."""
    known: dict[str, Any] = {"n": 1000, "d": 10, "radius": 1.0, "lipschitz": 1.0, "budget": BUDGET}
    with pytest.raises(InvalidParameter, match="Expected"):
        plan_for(**({"neighbours": "replace_one"} | known | change))


def test_extreme_budgets_plan_without_a_warning() -> None:
    """Epsilon 0, a tiny delta, a huge epsilon: a finite positive noise and bound."""
    for budget in (Budget(epsilon=0, delta=1e-9), Budget(epsilon=1e-6, delta=1e-300), Budget(epsilon=1e4, delta=0.5)):
        for method in DESCENT:
            found = plan(method, budget=budget, max_steps=100)
            assert found.noise_stddev is not None
            assert 0 < found.noise_stddev < math.inf
            assert 0 < found.excess_risk < math.inf
