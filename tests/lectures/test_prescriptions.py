from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privet import Budget
from privet.errors import InvalidParameter
from privet.lectures import LecturePrescription, lectures_prescription
from privet.theory import printed_order

BUDGET = Budget(epsilon=1, delta=1e-5)
LOG = math.log(1e5)


def printed(theorem: Any = "theorem_2_6", **change: Any) -> LecturePrescription:
    """A lecture's prescription for n = 1000, d = 10, R = G = 1, (1, 1e-5), with changes."""
    known: dict[str, Any] = {"n": 1000, "d": 10, "radius": 1.0, "diameter": 1.0, "lipschitz": 1.0, "budget": BUDGET}
    return lectures_prescription(theorem, **(known | change))


def test_theorem_2_6_meets_the_reference_table() -> None:
    """thm2.6_bound_printed_eta: T = ε²n²/d, the printed η and lemma 1.1's noise prove (9 + 1/Λ)/2 of the order."""
    found = printed()
    assert found.steps == 100_000
    assert found.bound.value == pytest.approx(0.048750226193295, rel=1e-9)
    assert found.bound.value == pytest.approx(found.printed_risk * (9 + 1 / LOG) / 2, rel=1e-9)
    assert found.step_size == pytest.approx(1000 / (100_000 * math.sqrt(10 * LOG)), rel=1e-12)


def test_theorem_2_6_costs_more_than_the_explicit_prescription() -> None:
    """0.0488 against 0.0334 at 55 times the steps; a start at the centre, where R may be the radius, doubles that."""
    found = printed()
    assert found.explicit.excess_risk == pytest.approx(0.0334, abs=1e-4)
    assert found.times_the_risk == pytest.approx(1.46, abs=0.01)
    assert found.times_the_steps == pytest.approx(55.6, abs=0.1)
    centred = printed(diameter=None)
    assert centred.times_the_risk == pytest.approx(2 * found.times_the_risk, rel=1e-9)


def test_theorem_4_1_is_not_private_and_proves_4_not_2() -> None:
    """T = n²ε² with claim 3.2's noise: true epsilon 1.1099; the bound is L|θ|√(1 + 4rΛ)/(εn), above the print."""
    found = printed("theorem_4_1", d=500, rank=5, diameter=None)
    assert found.steps == 10**6
    assert not found.private
    assert found.true_epsilon == pytest.approx(1.10986966092799, rel=1e-9)  # true_eps_of_claim3.2, reference table
    assert found.bound.value == pytest.approx(math.sqrt(1 + 4 * 5 * LOG) / 1000, rel=1e-9)
    assert found.printed_risk == pytest.approx(math.sqrt(1 + 2 * 5 * LOG) / 1000, rel=1e-12)
    assert found.explicit.method == "rank"


def test_shamir_zhang_as_printed_is_vacuous_where_the_explicit_one_is_not() -> None:
    """Advanced composition's noise costs so much that the bound is G D; T is the best on a grid."""
    found = printed("shamir_zhang", n=100_000, diameter=None)
    assert found.private
    assert found.schedule == "inverse_sqrt"
    assert found.times_the_risk > 5
    noise = [8 * math.sqrt(t) / 100_000 * (math.log(1.25e5) + math.log(t + 1)) for t in (1, 10, 10**3, 10**5, 10**7)]
    shape = [
        2 * 2 * math.sqrt(1 + 10 * s * s) * (2 + math.log(t)) / math.sqrt(t)
        for s, t in zip(noise, (1, 10, 10**3, 10**5, 10**7), strict=True)
    ]
    assert found.bound.value <= min(shape)
    assert printed("shamir_zhang", diameter=None).bound.value == pytest.approx(2.0, rel=1e-12)


def test_nikolov_as_printed_balances_its_terms() -> None:
    """σ by the ρ rule is private; the bound is R B/√T with B² = (d+1)(1 + σ²)."""
    found = printed("nikolov", lipschitz=None, diameter=None, d=9)
    assert found.private
    assert found.steps == math.ceil(10**6 / (10 * LOG))
    by_hand = math.sqrt(10 * (1 + found.noise_stddev**2) / found.steps)
    assert found.bound.value == pytest.approx(by_hand, rel=1e-9)
    assert 1.0 < found.times_the_risk < 2.0


@pytest.mark.parametrize("theorem", ["theorem_2_6", "theorem_4_1", "shamir_zhang", "nikolov"])
@pytest.mark.parametrize("n", [1, 30, 10**5])
def test_steps_are_whole_and_the_explicit_plan_is_never_worse(theorem: str, n: int) -> None:
    """T is an int of at least 1; where the printed noise is private, the explicit bound is no larger."""
    change: dict[str, Any] = {"n": n, "diameter": None, "max_steps": 10**6}
    if theorem == "theorem_4_1":
        change["rank"] = 5
    if theorem == "nikolov":
        change["lipschitz"] = None
    found = printed(theorem, **change)
    assert isinstance(found.steps, int)
    assert 1 <= found.steps <= 10**6
    if found.private:
        assert found.explicit.excess_risk <= found.bound.value * (1 + 1e-9)


def test_orders_as_printed() -> None:
    """Row by row, the formula with its O(·) taken as 1, and never above G × diameter."""
    known: dict[str, Any] = {"n": 1000, "d": 16, "diameter": 2.0, "lipschitz": 3.0, "budget": BUDGET}
    assert printed_order("theorem_2_6", **known) == pytest.approx(6 * math.sqrt(16 * LOG) / 1000)
    assert printed_order("exponential", **known) == pytest.approx(6 * 16 / 1000)
    assert printed_order("output_perturbation", **known) == pytest.approx(6 * math.sqrt(4 / 1000))
    assert printed_order("objective_perturbation", **known) == pytest.approx(6 * 4 / 1000)
    assert printed_order("last_iterate", **known) == pytest.approx(6 * 4 / 1000)
    assert printed_order("nikolov", **known) == pytest.approx(6 * 16 * math.sqrt(LOG) / 1000)
    assert printed_order("exponential", **(known | {"d": 10**6})) == 6.0


def test_nonsense_is_refused() -> None:
    """Unknown names, epsilon 0 (the rules divide by it), and a T that no machine could run."""
    with pytest.raises(InvalidParameter):
        printed("theorem_9")
    with pytest.raises(InvalidParameter):
        printed(budget=Budget(epsilon=0, delta=1e-5))
    with pytest.raises(InvalidParameter, match="max_steps"):
        printed("theorem_4_1", n=10**10, rank=2, d=10**9, max_steps=None)
    with pytest.raises(InvalidParameter):
        printed_order("best", n=1, d=1, diameter=1, lipschitz=1, budget=BUDGET)  # type: ignore[arg-type]


def test_a_rounding_does_not_add_a_step() -> None:
    """T = ε²n²/d is exact where it is whole, though 0.1² is not."""
    assert printed(budget=Budget(epsilon=0.1, delta=1e-5)).steps == 1000
    assert printed("theorem_4_1", n=10**6, rank=2).steps == 10**12
    assert np.isfinite(printed(budget=Budget(epsilon=0.001, delta=1e-5)).bound.value)
