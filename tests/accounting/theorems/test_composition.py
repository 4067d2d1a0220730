from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.accounting.theorems.composition import (
    Cost,
    advanced,
    advanced_epsilon,
    basic,
    optimal_delta,
    optimal_epsilon,
)
from privet.errors import InvalidParameter

# The project's reference table, mpmath at 30 digits: (epsilon, steps, slack) to epsilon.
ADVANCED = {
    (0.1, 100, 1e-6): 5.75610551933573,
    (0.01, 1000, 1e-5): 1.56742671272265,
    (1.0, 10, 1e-5): 19.7954428664516,
}
DELTAS = [10.0**-k for k in range(1, 13)]

costs = st.lists(
    st.builds(Cost, st.floats(0, 5), st.one_of(st.just(0.0), st.floats(1e-12, 1e-3)), st.integers(1, 1000)),
    min_size=1,
    max_size=5,
)


def oracle(step: float, steps: int, epsilon: float) -> mpmath.mpf:
    """The hockey stick of composed randomized response, term by term, with 40 digits."""
    with mpmath.workdps(40):
        e0, e = mpmath.mpf(step), mpmath.mpf(epsilon)
        wrong = 1 / (1 + mpmath.exp(e0))
        term, total = (1 - wrong) ** steps, mpmath.mpf(0)
        for j in range(steps + 1):
            loss = (steps - 2 * j) * e0
            if loss <= e:
                break
            total += term * (1 - mpmath.exp(e - loss))
            term *= mpmath.mpf(steps - j) / (j + 1) * wrong / (1 - wrong)
        return total


def printed_advanced(step: float, steps: int, slack: float, denominator: str) -> float:
    """Advanced composition with the denominator as the lecture prints it, e^(eps+1), or as it is, e^eps + 1."""
    below = math.exp(step + 1) if denominator == "printed" else math.exp(step) + 1
    return step * math.sqrt(2 * steps * math.log(1 / slack)) + steps * step * math.expm1(step) / below


@given(costs)
def test_basic_is_the_exact_sum_rounded_up(steps: list[Cost]) -> None:
    """Neither sum is ever below the exact one, nor a float more than needed."""
    epsilon, delta = basic(steps)
    exact = sum(Fraction(c.epsilon) * c.times for c in steps)
    assert Fraction(epsilon) >= exact
    assert epsilon == 0.0 or Fraction(math.nextafter(epsilon, 0.0)) < exact
    assert delta == 1.0 or Fraction(delta) >= sum(Fraction(c.delta) * c.times for c in steps)


@given(costs, st.floats(1e-12, 0.5))
def test_advanced_is_never_above_basic(steps: list[Cost], slack: float) -> None:
    """Whoever asks for advanced composition gets the better of the two."""
    assert advanced(steps, slack)[0] <= basic(steps)[0]
    assert advanced(steps, slack)[1] >= slack


@given(st.floats(1e-3, 2), st.integers(1, 500), st.integers(1, 500), st.floats(1e-10, 0.1))
def test_k_at_once_is_k_one_by_one(epsilon: float, first: int, second: int, slack: float) -> None:
    """Splitting a repetition into two parts changes nothing but rounding."""
    whole = advanced([Cost(epsilon, 0.0, first + second)], slack)[0]
    parts = advanced([Cost(epsilon, 0.0, first), Cost(epsilon, 0.0, second)], slack)[0]
    assert whole == pytest.approx(parts, rel=1e-13)


def test_golden_values_of_advanced_composition() -> None:
    """The reference table is met from above; where it exceeds basic composition, basic answers."""
    for (step, steps, slack), value in ADVANCED.items():
        expected = min(value, step * steps)
        assert expected <= advanced([Cost(step, 0.0, steps)], slack)[0] <= expected * (1 + 1e-13)


def test_advanced_epsilon_spends_what_the_steps_leave() -> None:
    """Own deltas are paid first; nothing left means basic, too little means no promise."""
    steps = [Cost(0.01, 2.0**-20, 1024)]
    assert advanced_epsilon(steps, 2.0**-9) == advanced(steps, 2.0**-10)[0]
    assert advanced_epsilon(steps, 2.0**-10) == basic(steps)[0]
    assert advanced_epsilon(steps, 2.0**-11) == math.inf


def test_optimal_delta_agrees_with_the_sum_in_many_digits() -> None:
    """Never below the exact sum, and within 2e-11 of it, down to 1e-280; then 1e-300 at least."""
    draw = random.Random(2)
    for _ in range(150):
        step, steps = 10 ** draw.uniform(-3, 1), int(10 ** draw.uniform(0, 3))
        epsilon = draw.random() ** draw.choice([1, 3]) * steps * step
        exact = oracle(step, steps, epsilon)
        value = optimal_delta(step, 0.0, steps, epsilon=epsilon)
        assert value >= 1e-300
        if exact > 1e-280:
            assert exact * (1 - mpmath.mpf(10) ** -30) <= value <= exact * (1 + mpmath.mpf("2e-11")), (step, steps)


@settings(deadline=None)
@given(st.floats(0.01, 3), st.floats(0, 1e-3), st.integers(1, 300), st.floats(0, 1))
def test_optimal_delta_matches_the_paper_at_its_own_points(step: float, own: float, steps: int, where: float) -> None:
    """At epsilon = (T − 2i) eps0 the closed formula of theorem 3.3 comes out."""
    i = round(where * (steps // 2))
    with mpmath.workdps(60):
        e0 = mpmath.mpf(step)
        total = (
            sum(
                mpmath.binomial(steps, k) * (mpmath.exp((steps - k) * e0) - mpmath.exp((steps - 2 * i + k) * e0))
                for k in range(i)
            )
            / (1 + mpmath.exp(e0)) ** steps
        )
        expected = 1 - (1 - mpmath.mpf(own)) ** steps * (1 - total)
        epsilon = (steps - 2 * i) * step
        got = optimal_delta(step, own, steps, epsilon=epsilon)
        rounding = 1e-15 * epsilon  # the point itself, as a float, may lie below the paper's
        assert abs(got - expected) <= 1e-11 * expected + 1e-13 * step * steps * min(total + 1e-12, 1) + rounding


@settings(deadline=None)
@given(st.floats(1e-3, 3), st.floats(0, 1e-6), st.integers(1, 2000), st.floats(-12, -0.5).map(lambda x: 10**x))
def test_optimal_inverse_is_safe_and_below_the_loose_ones(step: float, own: float, steps: int, delta: float) -> None:
    """Its delta is within the budget, and neither basic nor advanced composition is better."""
    epsilon = optimal_epsilon(step, own, steps, delta=delta)
    if epsilon == math.inf:
        assert -math.expm1(steps * math.log1p(-own)) > delta * (1 - 1e-9)
        return
    assert optimal_delta(step, own, steps, epsilon=epsilon) <= delta
    assert epsilon <= advanced_epsilon([Cost(step, own, steps)], delta) * (1 + 1e-12)
    assert epsilon == 0.0 or optimal_delta(step, own, steps, epsilon=epsilon * (1 - 1e-9) - 1e-12) >= delta * (1 - 1e-6)


def test_optimal_composition_of_a_million_steps() -> None:
    """T = 1e6 and 1e8 steps of 1/√T approach the Gaussian limit mu = 1 and cost moments, not minutes."""
    gaussian_limit = 4.886554  # exact epsilon of mu = 1 at delta = 1e-6
    previous = 0.0
    for steps in (10**4, 10**6, 10**8):
        epsilon = optimal_epsilon(1 / math.sqrt(steps), 0.0, steps, delta=1e-6)
        assert previous < epsilon < gaussian_limit + 1e-5
        previous = epsilon
    assert previous == pytest.approx(gaussian_limit, abs=1e-5)


def test_advanced_composition_is_true_and_the_printed_denominator_is_not() -> None:
    """Against the optimum, e^eps + 1 fails at 0 of 480 settings; the mutant e^(eps+1), as printed, at 144."""
    failures = {"printed": 0, "correct": 0}
    for step in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0):
        for steps in (1, 10, 1000, 100_000):
            for slack in DELTAS:
                for denominator in failures:
                    claimed = printed_advanced(step, steps, slack, denominator)
                    true = optimal_delta(step, 0.0, steps, epsilon=claimed)
                    failures[denominator] += true > slack * (1 + 1e-9)
    assert failures == {"printed": 144, "correct": 0}


def test_audited_examples() -> None:
    """T = 1000, eps = 0.3: printed 74.1 has delta 5.8e-4, optimum 83.5, formula 90.2 (privet lectures show 74)."""
    claimed = printed_advanced(0.3, 1000, 1e-5, "printed")
    assert claimed == pytest.approx(74.1, abs=0.05)
    assert optimal_delta(0.3, 0.0, 1000, epsilon=claimed) == pytest.approx(5.8e-4, rel=0.01)
    assert optimal_epsilon(0.3, 0.0, 1000, delta=1e-5) == pytest.approx(83.5, abs=0.05)
    assert advanced([Cost(0.3, 0.0, 1000)], 1e-5)[0] == pytest.approx(90.2, abs=0.05)
    claimed = printed_advanced(1.0, 1000, 1e-5, "printed")
    assert optimal_delta(1.0, 0.0, 1000, epsilon=claimed) == pytest.approx(0.9965, abs=1e-4)


def test_edges_of_optimal_composition() -> None:
    """Free steps are free, huge steps cost their sum, own deltas add up."""
    assert optimal_epsilon(0.0, 0.0, 5, delta=1e-6) == 0.0
    assert optimal_delta(0.0, 0.0, 5, epsilon=0.0) == 0.0
    assert optimal_epsilon(800.0, 0.0, 3, delta=1e-5) == pytest.approx(2400 + math.log1p(-1e-5), rel=1e-12)
    assert optimal_delta(1.0, 1e-6, 100, epsilon=100.0) == pytest.approx(1e-4, rel=1e-4)
    assert optimal_delta(1.0, 1e-6, 100, epsilon=100.0) >= -math.expm1(100 * math.log1p(-1e-6))


@pytest.mark.parametrize("cost", [Cost(-1.0), Cost(math.nan), Cost(1.0, 1.0), Cost(1.0, 0.0, 0), Cost(1.0, 0.0, True)])
def test_impossible_costs_are_refused(cost: Cost) -> None:
    """Negative or NaN epsilon, delta of 1, no steps: an error, at once."""
    with pytest.raises(InvalidParameter):
        basic([cost])
