from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet import Budget, glm
from privet.accounting import Approximate, ExponentialMechanism, Gaussian, epsilon, guarantee
from privet.clipping import Adaptive, Automatic, Clip, Declared
from privet.errors import InvalidParameter, NoProvenBound
from privet.plan import Bounded, Histograms, MomentSums, Plan, Presences, Release, SecondMoments, gradient_plan
from privet.plan.plan import whole_noise
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Poisson
from privet.solvers import FixedHessian, solve

BASE: dict[str, Any] = {"bounding": Clip(clip=2.0), "steps": 10, "records": 100, "neighbours": "replace_one"}


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize(
    "sampling", [FullBatch(), Poisson(sampling_rate=0.1), FixedSize(batch=10), OneRecord(), Cyclic(batch=10)], ids=repr
)
def test_a_plan_is_priced_as_its_sampling_says(sampling: Any, neighbours: Any) -> None:
    """plan.guarantee is the price of the scheme's event under the plan's relation, or a refusal.

    See docs/footguns.md, 33.
    """
    plan = gradient_plan(**{**BASE, "neighbours": neighbours}, sampling=sampling, noise_multiplier=3.0)
    if neighbours == "add_remove" and not isinstance(sampling, FullBatch | Poisson):
        with pytest.raises(NoProvenBound):
            plan.guarantee(delta=1e-5)
        return
    event = sampling.event(Gaussian(noise_multiplier=3.0), steps=10, records=100, neighbours=neighbours)
    assert plan.event == event
    found = plan.guarantee(delta=1e-5)
    assert found.epsilon == guarantee(event, delta=1e-5, neighbours=neighbours).epsilon
    assert found.neighbours == neighbours
    assert "clipped to norm 2" in " ".join(found.assumptions)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    ("sampling", "epsilon"),
    [
        (FullBatch(), 0.1),
        (FullBatch(), 1.0),
        (FullBatch(), 1e3),
        (FullBatch(), 1e6),
        (Poisson(sampling_rate=0.1), 1.0),
        pytest.param(Poisson(sampling_rate=0.1), 50.0, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_calibration_lands_on_the_safe_side(sampling: Any, neighbours: Any, epsilon: float) -> None:
    """The calibrated plan meets its budget and wastes at most 1e-5 of it; noise falls as the budget grows."""
    plan = gradient_plan(**{**BASE, "neighbours": neighbours}, sampling=sampling).calibrated(
        Budget(epsilon=epsilon, delta=1e-6)
    )
    assert epsilon * (1 - 1e-5) <= plan.guarantee(delta=1e-6).epsilon <= epsilon
    assert plan.times("gradients") == 10


def test_the_count_of_adaptive_clipping_is_part_of_the_price() -> None:
    """The step's two releases together cost the plan's noise multiplier, so the gradient's own is larger.

    See docs/footguns.md, 40.
    """
    rule = Adaptive(clip=1.0, count_noise=2.0)
    plan = gradient_plan(**{**BASE, "bounding": rule}, noise_multiplier=1.0)
    assert plan.event == Gaussian(noise_multiplier=1.0) * 10
    assert plan["gradients"].sum_multiplier == pytest.approx((1 - 1 / 16) ** -0.5)
    assert 1 / plan["gradients"].sum_multiplier ** 2 + 1 / (2 * 2.0) ** 2 == pytest.approx(1.0)
    with pytest.raises(InvalidParameter, match="count_noise"):
        gradient_plan(**{**BASE, "bounding": rule}, noise_multiplier=4.0)


def test_adaptive_plans_calibrate_up_to_their_limit() -> None:
    """The search for noise is not stopped by a limit that the answer respects; beyond it the refusal names the cure."""
    free = gradient_plan(**BASE).calibrated(Budget(epsilon=5, delta=1e-5))["gradients"].noise_multiplier
    near = gradient_plan(**{**BASE, "bounding": Adaptive(clip=1.0, count_noise=free * 0.51)})
    assert near.calibrated(Budget(epsilon=5, delta=1e-5))["gradients"].noise_multiplier == pytest.approx(free)
    far = gradient_plan(**{**BASE, "bounding": Adaptive(clip=1.0, count_noise=free * 0.49)})
    with pytest.raises(InvalidParameter, match="Raise count_noise"):
        far.calibrated(Budget(epsilon=5, delta=1e-5))


def test_further_releases_are_priced_with_the_run() -> None:
    """What a solver releases besides its gradients is part of the event (docs/footguns.md, 40)."""
    more = Release(name="more", of="more", bound=Clip(clip=1.0), noise_multiplier=2.0)
    alone = gradient_plan(**BASE, noise_multiplier=3.0)
    plan = dataclasses.replace(alone, releases=(*alone.releases, more))
    assert plan.event == Gaussian(noise_multiplier=3.0) * 10 + Gaussian(noise_multiplier=2.0)
    assert (
        plan.guarantee(delta=1e-5).epsilon > gradient_plan(**BASE, noise_multiplier=3.0).guarantee(delta=1e-5).epsilon
    )


def test_every_scalar_comes_from_public_numbers() -> None:
    """Divisor, capacity, price: functions of the plan alone, which never sees data (docs/footguns.md, 24)."""
    plan = gradient_plan(
        **{**BASE, "neighbours": "add_remove"}, sampling=Poisson(sampling_rate=0.1), noise_multiplier=1.0
    )
    assert plan.batch_size("gradients") == 10.0
    assert plan.max_records("gradients") == 2**27  # a bound on the realised batch must not come from the data
    assert gradient_plan(**BASE, sampling=FixedSize(batch=7), noise_multiplier=1.0).max_records("gradients") == 7
    assert gradient_plan(**BASE, noise_multiplier=1.0).max_records("gradients") == 100


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("steps", [0, -1, 2.5, True, "3", None, math.inf]),
        ("records", [0, -1, 2.5, True, "3", None]),
        ("noise_multiplier", [0, 0.0, -1.0, math.inf, "1"]),
        ("neighbours", ["replace", "", None]),
    ],
)
def test_plans_that_promise_nothing_are_refused(field: str, values: list[Any]) -> None:
    """T = 0, no records, no noise, no relation: refused when the plan is written (docs/footguns.md, 20, 33, 37)."""
    for value in values:
        with pytest.raises(InvalidParameter, match=field):
            gradient_plan(**{**BASE, "noise_multiplier": 1.0, field: value})


def test_a_plan_without_noise_can_be_neither_priced_nor_run() -> None:
    """Leaving the noise out is allowed until the plan is used."""
    plan = gradient_plan(**BASE)
    for use in (lambda: plan.event, lambda: plan.guarantee(delta=1e-5), lambda: plan["gradients"].sum_multiplier):
        with pytest.raises(InvalidParameter, match="noise_multiplier"):
            use()


@pytest.mark.parametrize("budget", [None, 1.0, (1.0, 1e-6), Budget(epsilon=0, delta=1e-6)])
def test_budgets_that_no_noise_can_meet_are_refused(budget: Any) -> None:
    """Epsilon 0, or what is no budget, is refused before any search."""
    with pytest.raises(InvalidParameter, match="budget"):
        gradient_plan(**BASE).calibrated(budget)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter):
            gradient_plan(**BASE, noise_multiplier=1.0).guarantee(delta=delta)


def test_plans_are_values() -> None:
    """A plan is frozen, equal to its like, and shows all of itself: it is public."""
    plan = gradient_plan(**BASE, noise_multiplier=1.0)
    assert plan == gradient_plan(**BASE, noise_multiplier=1.0)
    assert plan != gradient_plan(**{**BASE, "bounding": Declared(lipschitz=2.0)}, noise_multiplier=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.records = 5  # type: ignore[misc]
    assert (
        gradient_plan(**{**BASE, "bounding": Automatic()}, noise_multiplier=float(np.float64(2.0)))[
            "gradients"
        ].sum_multiplier
        == 2.0
    )


def release(name: str, **more: Any) -> Release:
    return Release(**{"name": name, "of": "what is summed", "bound": Clip(clip=1.0), **more})


def test_releases_of_one_name_are_the_same_release() -> None:
    """A name stands for one release, made several times if it stands in the plan several times; another is refused."""
    one, other = release("one", noise_multiplier=4.0, times=2), release("other", noise_multiplier=5.0)
    plan = Plan(releases=(one, other, one), records=10, neighbours="zero_out")
    assert plan.names == ("one", "other")
    assert plan.times("one") == 4
    assert plan.event == Gaussian(noise_multiplier=4.0) * 4 + Gaussian(noise_multiplier=5.0)
    assert "one" in plan
    assert "two" not in plan
    with pytest.raises(InvalidParameter, match="'one', 'other'"):
        plan["two"]
    for releases in ((), (one, release("one", noise_multiplier=9.0)), (one, "two")):
        with pytest.raises(InvalidParameter, match="release"):
            Plan(releases=releases, records=10, neighbours="zero_out")  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_shares_are_parts_of_the_squared_signal(neighbours: Any) -> None:
    """A share gets whole_noise ÷ √share, however often it is released; the rest of the budget goes to the others."""
    blank = Plan(
        releases=(release("range", bound=Histograms(columns=3), times=2), release("gradients", times=30)),
        records=1000,
        neighbours=neighbours,
    )
    budget = Budget(epsilon=1.0, delta=1e-6)
    plan = blank.calibrated(budget, shares={"range": 0.2})
    assert plan["range"].noise_multiplier == pytest.approx(whole_noise(budget, neighbours) * math.sqrt(2 / 0.2))
    spent = [plan.times(name) / plan[name].noise_multiplier ** 2 for name in plan.names]
    assert spent[0] / sum(spent) == pytest.approx(0.2, rel=1e-4)
    assert 0.9999 < plan.guarantee().epsilon <= 1
    assert plan.budget == budget
    for shares in ({"other": 0.1}, {"range": 0.0}, {"range": -0.1}, {"range": 0.7, "gradients": 0.4}):
        with pytest.raises(InvalidParameter, match="shares"):
            blank.calibrated(budget, shares=shares)


def test_noise_that_is_known_is_kept() -> None:
    """What was released already keeps its noise; the rest is calibrated to what it leaves, in the ratios asked for."""
    plan = Plan(
        releases=(release("made", noise_multiplier=20.0), release("one"), release("two")),
        records=1000,
        neighbours="zero_out",
    ).calibrated(Budget(epsilon=1, delta=1e-6), ratios={"two": 3.0})
    assert plan["made"].noise_multiplier == 20.0
    assert plan["two"].noise_multiplier == pytest.approx(3 * plan["one"].noise_multiplier, rel=1e-12)
    assert 0.9999 < plan.guarantee().epsilon <= 1


def test_known_noise_that_breaks_the_budget_is_refused() -> None:
    """A plan never carries a budget that it does not meet, also where there is nothing left to calibrate."""
    plan = Plan(releases=(release("made", noise_multiplier=1.0),), records=1000, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="none is left to raise"):
        plan.calibrated(Budget(epsilon=1, delta=1e-6))
    assert plan.calibrated(Budget(epsilon=10, delta=1e-6)).guarantee().epsilon <= 10


def test_a_plan_is_printed_as_a_table() -> None:
    """Shares of the squared signal where all is Gaussian on all records; else the epsilon of each release alone."""
    parts = (release("range", bound=Histograms()), release("gradients", times=30))
    budget = Budget(epsilon=1.0, delta=1e-6)
    plan = Plan(releases=parts, records=1000, neighbours="zero_out")
    assert "?" in str(plan)
    shown = str(plan.calibrated(budget, shares={"range": 0.2}))
    assert "20.0%" in shown
    assert "80.0%" in shown
    sampled = dataclasses.replace(
        plan, releases=(parts[0], release("steps", times=9, sampling=Poisson(sampling_rate=0.1)))
    )
    table = str(dataclasses.replace(sampled, neighbours="add_remove").calibrated(budget, shares={"range": 0.2}))
    assert "a public guess" in table
    assert "ε alone" in table
    assert "Poisson(sampling_rate=0.1)" in table


@pytest.mark.parametrize("bound", [Histograms(), MomentSums(columns=2), Presences(), SecondMoments(clip=0.5)], ids=repr)
def test_noise_for_one_relation_is_refused_under_another(bound: Any) -> None:
    """A range made under replace_one cannot be priced under add_remove: its noise multiplier would be another."""
    made = release("range", bound=bound, noise_multiplier=4.0)
    event = made.event(records=100, neighbours="replace_one")
    with pytest.raises(InvalidParameter, match="replace_one"):
        guarantee(event, delta=1e-6, neighbours="add_remove")
    plain = release("sum", noise_multiplier=4.0).event(records=100, neighbours="replace_one")
    assert guarantee(plain, delta=1e-6, neighbours="add_remove").epsilon > 0


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize(
    "bound",
    [Clip(clip=0.3), Histograms(columns=3), MomentSums(), Presences(columns=3), SecondMoments(clip=0.7)],
    ids=repr,
)
def test_noise_is_never_less_than_the_event_says(bound: Any, neighbours: Any) -> None:
    """stddev ÷ sensitivity ≥ multiplier ÷ factor, in exact arithmetic: what a Gaussian event of that relation means."""
    rng = np.random.default_rng(0)
    factor = 2 if neighbours == "replace_one" else 1
    for noise in 10.0 ** rng.uniform(-2, 3, 200):
        stddev = Fraction(release("sum", bound=bound, noise_multiplier=noise).noise_stddev(neighbours))
        sensitivity = (
            Fraction(bound.sensitivity(neighbours)) if hasattr(bound, "sensitivity") else factor * Fraction(bound.clip)
        )
        assert stddev * factor >= Fraction(noise) * Fraction(sensitivity)
        assert stddev * factor <= Fraction(noise) * Fraction(sensitivity) * (1 + Fraction(1, 10**14))


def test_two_positive_semidefinite_matrices_are_at_most_root_two_apart() -> None:
    """‖A − B‖² ≤ ‖A‖² + ‖B‖² for sums of r rᵀ, in fractions; attained by orthogonal rows (sums.md, section 5).

    Indefinite ones, which a mutant that cuts entries by themselves would make, can be twice as far apart.
    """
    rng = np.random.default_rng(1)

    def inner(a: Any, b: Any) -> Fraction:
        return sum((x * y for x, y in zip(np.ravel(a), np.ravel(b), strict=True)), start=Fraction(0))

    def moment(rows: Any) -> Any:
        whole = np.array([[Fraction(int(x), 2**15) for x in row] for row in rows], dtype=object)
        return sum(np.outer(row, row) for row in whole)

    for _ in range(200):
        d, many = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        a, b = (moment(rng.integers(-(2**15), 2**15, (many, d))) for _ in range(2))
        assert inner(a, b) >= 0
        assert inner(a - b, a - b) <= inner(a, a) + inner(b, b)
    one, other = moment([[2**15, 0]]), moment([[0, 2**15]])
    assert inner(one - other, one - other) == inner(one, one) + inner(other, other) == 2
    assert Fraction(SecondMoments(clip=1.0).sensitivity("replace_one")) ** 2 >= 2
    assert inner(one - (-one), one - (-one)) == 4


@pytest.mark.parametrize(
    "mechanism", [ExponentialMechanism(epsilon=1.0), Approximate(epsilon=1.0, delta=1e-7)], ids=repr
)
def test_a_draw_made_for_one_relation_is_refused_under_another(mechanism: Any) -> None:
    """What is no Gaussian sum was scaled for its plan's relation too: zeroed out at ε = 1 would be replaced at 2."""
    draw = Release(name="draw", of="losses", bound=Bounded(clip=1.0, how="losses are cut"), mechanism=mechanism)
    event = Plan(releases=(draw,), neighbours="zero_out").event
    assert epsilon(event, delta=1e-6, neighbours="zero_out") <= 1.0
    for other in ("replace_one", "add_remove"):
        with pytest.raises(InvalidParameter, match="zero_out"):
            epsilon(event, delta=1e-6, neighbours=other)


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_a_delta_of_one_over_n_is_refused_wherever_n_is_public(neighbours: Any) -> None:
    """By any plan with a number of records, which under "add_remove" is what was declared, and by every solver's.

    On what was: plans and solvers took any delta below 1.
    """
    plan: Any = gradient_plan(bounding=Clip(clip=1.0), steps=2, records=1000, neighbours=neighbours)
    problem = glm("logistic", [[1.0], [0.0]] * 500, [0, 1] * 500, row_norm=1.0)
    solver = FixedHessian(clip=1.0, steps=1)
    assert plan.calibrated(Budget(epsilon=1, delta=9.99e-4)).guarantee().delta == 9.99e-4
    for asked in (
        lambda: plan.calibrated(Budget(epsilon=1, delta=1e-3)),
        lambda: dataclasses.replace(plan, budget=Budget(epsilon=1, delta=0.5)),
        lambda: plan.calibrated(Budget(epsilon=1, delta=1e-6)).guarantee(delta=2e-3),
        lambda: solve(solver, problem, budget=Budget(epsilon=1, delta=1e-3), neighbours=neighbours, records=1000),
    ):
        with pytest.raises(InvalidParameter, match=r"delta below 1/n = 0\.001"):
            asked()
    noisy = dataclasses.replace(plan.releases[0], noise_multiplier=5.0)
    assert Plan(releases=(noisy,), neighbours=neighbours).guarantee(delta=0.1).delta == 0.1  # of nobody knows how many
