from __future__ import annotations

import math
import random

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from privet.accounting.theorems.gaussian_profile import MARGIN, delta_bounds, epsilon_bounds, largest_mu, profile
from privet.errors import InvalidParameter

# Golden values: the project's own reference table, computed with mpmath at 30 digits or more, rounded to 15.
MU = {
    (1, 1e-5): 0.268051123211294,
    (0.1, 1e-6): 0.0275446502438276,
    (10, 1e-5): 2.00044562043063,
    (0.01, 1e-12): 0.00172712207918018,
    (2, 0.1): 1.36620375236278,
}
DELTA = {
    (0, 1): 0.382924922548026,
    (1, 1): 0.126936737506644,
    (0.5, 0.25): 0.00270888021831819,
    (5, 0.5): 4.41544347029962e-24,
    (3, 2): 0.183813076544472,
}
EPSILON = {(1e-5, 1): 4.37717809568122, (1e-6, 0.2): 0.834117548624052, (1e-10, 3): 23.0487284620061}

mus = st.floats(-6, 3).map(lambda x: 10.0**x)
epsilons = st.floats(-6, 4).map(lambda x: 10.0**x)
deltas = st.floats(-290, -1e-4).map(lambda x: 10.0**x)


def oracle(mu: float, epsilon: float) -> mpmath.mpf:
    """The formula of the theorem as it stands, with 80 digits."""
    with mpmath.workdps(80):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)

        def tail(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)


def settings_of_all_kinds(count: int, seed: int) -> list[tuple[float, float]]:
    """Draw (mu, epsilon) with delta from 1e-300 to 1: centre, tails, and the edge where the formulas meet."""
    draw = random.Random(seed)
    found: list[tuple[float, float]] = []
    while len(found) < count:
        mu = 10 ** draw.uniform(-6, 3)
        u = draw.choice([draw.uniform(-5, 37), draw.uniform(-0.1, 0.1), 2 * mu - 1 + draw.uniform(-1e-3, 1e-3)])
        epsilon = max(0.0, mu * (u + mu / 2))
        if u < 36.9 and epsilon <= 1e5:
            found.append((mu, epsilon))
    return found


def test_profile_agrees_with_many_digits() -> None:
    """The relative error is below 2e-13, a fifth of the margin, over the whole stated range."""
    for mu, epsilon in settings_of_all_kinds(600, seed=1):
        exact = oracle(mu, epsilon)
        assert abs(profile(mu, epsilon) / exact - 1) < 2e-13, (mu, epsilon)
        lower, upper = delta_bounds(mu, epsilon)
        assert lower <= exact <= upper
        assert upper <= lower * (1 + 2.1 * MARGIN) or exact < 2e-300


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-9, 0.0), (1e-30, 1e-29), (1e5, 5e9), (1e6, 5e11), (1e-3, 1e-12)])
def test_profile_agrees_beyond_the_stated_range(mu: float, epsilon: float) -> None:
    """Extremes of either argument are no special case."""
    assert abs(profile(mu, epsilon) / oracle(mu, epsilon) - 1) < 2e-13


def test_golden_values() -> None:
    """The reference table's mu, delta and epsilon are met to its 15 digits, from the safe side."""
    for (epsilon, delta), mu in MU.items():
        assert mu * (1 - 2e-12) < largest_mu(epsilon, delta) < mu * (1 + 1e-14)
    for (epsilon, mu), delta in DELTA.items():
        assert profile(mu, epsilon) == pytest.approx(delta, rel=3e-15)
    for (delta, mu), epsilon in EPSILON.items():
        lower, upper = epsilon_bounds(mu, delta)
        assert lower <= epsilon * (1 + 1e-15)
        assert upper >= epsilon * (1 - 1e-15)
        assert upper - lower < 1e-11 * epsilon


@settings(deadline=None)
@given(mus, deltas)
def test_epsilon_brackets_the_truth(mu: float, delta: float) -> None:
    """At the upper end the true delta is at most the one asked, at the lower end at least, with room for rounding.

    The width is what a relative margin of 1e-12 on delta makes of epsilon: margin ÷ slope, large near delta = 1.
    """
    lower, upper = epsilon_bounds(mu, delta)
    assert 0.0 <= lower <= upper
    assert delta_bounds(mu, upper)[1] <= delta
    assert lower == 0.0 or delta_bounds(mu, lower)[0] >= delta
    slope = math.exp(upper + float(log_ndtr(-mu / 2 - upper / mu)))  # -d delta / d epsilon
    assert upper - lower <= 1e-10 * (upper + mu) + 4e-12 * delta / slope


@settings(deadline=None)
@given(st.one_of(st.just(0.0), epsilons), deltas.filter(lambda d: d < 0.5))
def test_largest_mu_is_safe_and_tight(epsilon: float, delta: float) -> None:
    """The mu returned is certainly private, and one 1e-11 larger is certainly not."""
    mu = largest_mu(epsilon, delta)
    assert delta_bounds(mu, epsilon)[1] <= delta
    assert delta_bounds(mu * (1 + 1e-11), epsilon)[0] > delta


@settings(deadline=None)
@given(mus, epsilons, st.floats(1.0001, 3))
def test_monotone_in_both(mu: float, epsilon: float, factor: float) -> None:
    """More mu costs more delta, more epsilon less."""
    assert profile(mu * factor, epsilon) >= profile(mu, epsilon)
    assert profile(mu, epsilon * factor) <= profile(mu, epsilon)


def test_edges() -> None:
    """No release costs nothing, no noise everything; what underflows keeps a positive upper bound."""
    assert delta_bounds(0.0, 0.0) == (0.0, 0.0)
    assert epsilon_bounds(0.0, 0.5) == (0.0, 0.0)
    assert delta_bounds(math.inf, 7.0) == (1.0, 1.0)
    assert epsilon_bounds(math.inf, 1e-6) == (math.inf, math.inf)
    assert delta_bounds(1e-3, 1.0) == (0.0, 2e-300)
    assert epsilon_bounds(0.1, 0.9) == (0.0, 0.0)
    assert delta_bounds(1e4, 1.0)[1] == 1.0
    assert 0 < largest_mu(0.0, 1e-310) <= 2.6e-310
    assert delta_bounds(largest_mu(1e-300, 1e-250), 1e-300)[1] <= 1e-250


@pytest.mark.parametrize("mu", [-1.0, math.nan, "1"])
def test_impossible_mu_is_refused(mu: float) -> None:
    """A mu that no release has is refused with the remedy."""
    with pytest.raises(InvalidParameter, match="non-negative number"):
        profile(mu, 1.0)


def test_naive_formula_would_fail_the_oracle() -> None:
    """Mutant: the formula in plain floats, as printed, is off by far more at small mu, so the oracle test bites."""
    mu, epsilon = 1e-3, 5e-3

    def naive_cdf(x: float) -> float:
        return (1 + math.erf(x / math.sqrt(2))) / 2

    naive = naive_cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * naive_cdf(-mu / 2 - epsilon / mu)
    assert abs(naive / oracle(mu, epsilon) - 1) > 1e-8
