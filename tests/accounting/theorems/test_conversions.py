from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.accounting.theorems.conversions import (
    bounded_range_rho,
    gaussian_rho,
    gaussian_tail,
    gaussian_tail_epsilon,
    group,
    group_mu,
    pure_mu,
    pure_rho,
    renyi_delta,
    renyi_epsilon,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_tight_epsilon,
    zcdp_tight_rho,
)
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.errors import InvalidParameter

epsilons = st.floats(-4, 1.5).map(lambda x: 10.0**x)
deltas = st.floats(-15, -0.1).map(lambda x: 10.0**x)
mus = st.floats(-3, 1).map(lambda x: 10.0**x)
ORDERS = np.geomspace(0.1, 1e4, 60)


def test_golden_values() -> None:
    """The project's reference table (mpmath, 30 digits, rounded to 15) is met from the safe side."""
    above = [
        (zcdp_epsilon(0.5, delta=1e-5), 5.29852591218808),
        (zcdp_epsilon(0.02, delta=1e-6), 1.07130435395139),
        (gaussian_rho(math.sqrt(50) * 0.002 / 0.05), 0.04),
        (group(0.1, 1e-6, 10)[1], 1.63379939996636e-05),
        (group(1.0, 1e-6, 3)[1], 1.11073379273897e-05),
        (group(0.5, 1e-8, 5)[1], 1.72377482684279e-07),
        (gaussian_tail(1.0, epsilon=1.0), 0.308537538725987),
    ]
    for got, value in above:
        assert value * (1 - 4e-15) <= got <= value * (1 + 4e-14)
    rho = 0.0208199383395355
    assert rho * (1 - 1e-13) <= zcdp_rho(1.0, delta=1e-5) <= rho * (1 + 3e-15)


@given(epsilons, deltas)
def test_zcdp_inverse_lands_on_the_safe_side(epsilon: float, delta: float) -> None:
    """The rho returned costs at most epsilon, one 1e-12 larger costs more."""
    rho = zcdp_rho(epsilon, delta=delta)
    assert zcdp_epsilon(rho, delta=delta) <= epsilon
    assert zcdp_epsilon(rho * (1 + 1e-12), delta=delta) > epsilon


@settings(deadline=None)
@given(mus, deltas)
def test_tight_is_below_loose_and_above_the_truth(mu: float, delta: float) -> None:
    """For Gaussian noise: exact <= Rényi over all orders <= zCDP as the lectures use it."""
    rho = gaussian_rho(mu)
    exact = epsilon_bounds(mu, delta)[0]
    tight = zcdp_tight_epsilon(rho, delta=delta)
    assert exact <= tight <= zcdp_epsilon(rho, delta=delta)
    assert tight <= renyi_epsilon(ORDERS, ORDERS * (1 + ORDERS) * rho, delta=delta) * (1 + 1e-12)


@settings(deadline=None, max_examples=40)
@given(epsilons, deltas)
def test_tight_zcdp_inverse_is_safe_and_better(epsilon: float, delta: float) -> None:
    """It costs at most epsilon, allows at least what the loose one does, and no more than the exact Gaussian."""
    rho = zcdp_tight_rho(epsilon, delta=delta)
    assert zcdp_tight_epsilon(rho, delta=delta) <= epsilon
    assert zcdp_rho(epsilon, delta=delta) <= rho <= largest_mu(epsilon, delta) ** 2 / 2 * (1 + 1e-10)


@settings(deadline=None)
@given(st.floats(0.01, 50), st.floats(0, 20), st.floats(0, 20))
def test_renyi_constant_is_the_best_for_one_order(exponent: float, moment: float, epsilon: float) -> None:
    """log(t^t/(1+t)^(1+t)) is the maximum of −t y + log(1 − e^−y), and delta and epsilon are inverse to each other."""
    y = math.log1p(1 / exponent)  # where the derivative −t + e^−y/(1 − e^−y) vanishes
    best = -exponent * y + math.log(-math.expm1(-y))
    for other in (0.9 * y, 1.1 * y):
        assert -exponent * other + math.log(-math.expm1(-other)) < best
    delta = renyi_delta([exponent], [moment], epsilon=epsilon)
    assert delta == pytest.approx(min(1.0, math.exp(min(0.0, moment - exponent * epsilon + best))), rel=1e-11)
    if 1e-290 < delta < 1.0:
        assert renyi_epsilon([exponent], [moment], delta=delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(st.floats(0.01, 4), st.floats(0.0, 10.0))
def test_renyi_bound_holds_for_gaussian_noise(mu: float, epsilon: float) -> None:
    """No order proves less than the exact delta."""
    assert renyi_delta(ORDERS, ORDERS * (1 + ORDERS) * mu * mu / 2, epsilon=epsilon) >= profile(mu, epsilon)


def test_infinite_moments_are_skipped_and_nonsense_refused() -> None:
    """An order without a moment proves nothing; lengths, signs and NaN are checked."""
    assert renyi_epsilon([1.0, 2.0], [1.0, math.inf], delta=1e-5) == renyi_epsilon([1.0], [1.0], delta=1e-5)
    assert renyi_epsilon([1.0], [math.inf], delta=1e-5) == math.inf
    assert renyi_delta([1.0], [math.inf], epsilon=1.0) == 1.0
    for bad in ([-1.0], [0.0], [math.nan], []):
        with pytest.raises(InvalidParameter, match="positive exponents"):
            renyi_epsilon(bad, [1.0] * len(bad), delta=1e-5)
    with pytest.raises(InvalidParameter, match="none of them NaN"):
        renyi_epsilon([1.0], [math.nan], delta=1e-5)


@given(st.floats(-8, 2.5).map(lambda x: 10.0**x))
def test_pure_conversions(epsilon: float) -> None:
    """pure → GDP agrees with 40 digits from above, and the Gaussian curve passes above randomized response."""
    mu = pure_mu(epsilon)
    with mpmath.workdps(300):
        exact_delta = mpmath.erf(mpmath.mpf(mu) / (2 * mpmath.sqrt(2)))
        assert exact_delta >= mpmath.tanh(mpmath.mpf(epsilon) / 2)  # delta(0) of Gaussian and of randomized response
        smaller = mpmath.erf(mpmath.mpf(mu) * (1 - mpmath.mpf("1e-12")) / (2 * mpmath.sqrt(2)))
        assert smaller <= mpmath.tanh(mpmath.mpf(epsilon) / 2)
    assert pure_rho(epsilon) >= epsilon * epsilon / 2
    assert pure_rho(epsilon) == pytest.approx(4 * bounded_range_rho(epsilon), rel=1e-13)


@given(st.floats(0.01, 5), st.floats(0, 0.999))
def test_pure_conversions_dominate_randomized_response(epsilon: float, part: float) -> None:
    """At every epsilon′ below epsilon, the delta of randomized response is at most that of the mu returned."""
    at = part * epsilon
    response = (math.exp(epsilon) - math.exp(at)) / (1 + math.exp(epsilon))
    assert response <= delta_bounds(pure_mu(epsilon), at)[1] * (1 + 1e-12)


@given(epsilons, deltas, st.integers(1, 30))
def test_group_privacy_by_its_recursion(epsilon: float, delta: float, size: int) -> None:
    """One more record: epsilon grows by one step, delta to delta + e^epsilon × delta; never rounded below."""
    with mpmath.workdps(50):
        exact = mpmath.mpf(0)
        for _ in range(size):
            exact = mpmath.mpf(delta) + mpmath.exp(mpmath.mpf(epsilon)) * exact
        got_epsilon, got_delta = group(epsilon, delta, size)
        assert got_epsilon >= size * epsilon
        assert got_delta >= min(1, exact) * (1 - mpmath.mpf(10) ** -40)
        assert got_delta <= exact * (1 + mpmath.mpf("2e-12"))


def test_group_privacy_of_gaussians_is_better() -> None:
    """(1, 1e-6) for 10 records: in general 0.0128, for Gaussian noise 4.8e-4 (privet lectures show 72)."""
    mu = group_mu(largest_mu(1.0, 1e-6), 10)
    assert group(1.0, 1e-6, 10)[1] == pytest.approx(0.0128, rel=0.01)
    assert profile(mu, 10.0) == pytest.approx(4.8e-4, rel=0.01)
    assert group(0.0, 1e-6, 5)[1] == pytest.approx(5e-6)
    assert group(100.0, 1e-6, 50)[1] == 1.0
    assert group(100.0, 0.0, 50)[1] == 0.0
    with pytest.raises(InvalidParameter, match="size to be a whole number of at least 1, got 0"):
        group(1.0, 1e-6, 0)


@settings(deadline=None)
@given(mus, epsilons, deltas)
def test_tail_theorem_is_sufficient(mu: float, epsilon: float, delta: float) -> None:
    """The tail is never below the exact delta, and the epsilon it proves never below the exact one."""
    tail = gaussian_tail(mu, epsilon=epsilon)
    assert tail >= profile(mu, epsilon) * (1 - 1e-13)
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.erfc((e / m - m / 2) / mpmath.sqrt(2)) / 2
        if exact > 1e-250:
            assert tail >= exact
            assert tail <= exact * (1 + mpmath.mpf("1e-9"))
    assert gaussian_tail_epsilon(mu, delta=delta) >= epsilon_bounds(mu, delta)[0]


def test_tail_theorem_is_not_necessary() -> None:
    """Converse false: at mu = eps = 1 the tail is 0.3085 but delta 0.1269 suffices; at mu(1, 1e-5), 1.61e-4."""
    assert gaussian_tail(1.0, epsilon=1.0) > 2 * profile(1.0, 1.0)
    assert gaussian_tail(largest_mu(1.0, 1e-5), epsilon=1.0) == pytest.approx(1.61e-4, rel=0.01)
    assert gaussian_tail(0.0, epsilon=0.0) == 0.0


def test_dropping_the_constant_is_looser() -> None:
    """Mutant: the older conversion ln(1/delta)/t, without t^t/(1+t)^(1+t), gives 5.30 where 4.73 is proven."""
    t = np.geomspace(0.1, 100, 2000)
    older = float(np.min((t * (1 + t) * 0.5 + math.log(1e5)) / t))
    assert older == pytest.approx(zcdp_epsilon(0.5, delta=1e-5), rel=1e-5)
    assert zcdp_tight_epsilon(0.5, delta=1e-5) < 0.9 * older


@pytest.mark.parametrize("rho", [-1.0, math.nan, math.inf])
def test_impossible_amounts_are_refused(rho: float) -> None:
    """A rho that no release has is refused."""
    with pytest.raises(InvalidParameter, match="rho to be a finite number of at least 0"):
        zcdp_epsilon(rho, delta=1e-5)
