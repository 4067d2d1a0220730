from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.accounting.theorems.gaussian_profile import profile
from privet.accounting.theorems.subsampling import (
    SHORTCUT_LIMIT,
    amplified,
    base_epsilon_for,
    rate_for,
    shortcut,
    shortcut_limit,
)
from privet.errors import InvalidParameter, RuleOutOfRange

# The project's reference table, mpmath at 30 digits: (epsilon, rate) to the amplified epsilon.
AMPLIFIED = {
    (0.5, 1e-5): 6.48719166512793e-06,
    (1.0, 0.01): 0.0170368632361765,
    (0.5, 0.1): 0.0628547234737304,
    (3.0, 0.5): 2.3554401710138,
}

epsilons = st.floats(-6, 2.8).map(lambda x: 10.0**x)
rates = st.floats(-8, 0).map(lambda x: 10.0**x)


def oracle(epsilon: float, rate: float) -> mpmath.mpf:
    with mpmath.workdps(400):
        return mpmath.log(1 + mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))


def test_golden_values() -> None:
    """The reference table is met from above, and so is its inverse, from below."""
    for (epsilon, rate), value in AMPLIFIED.items():
        assert value * (1 - 1e-14) <= amplified(epsilon, 0.0, rate)[0] <= value * (1 + 4e-14)
    assert rate_for(1.0, target=0.1) == pytest.approx(0.0612070245600891, rel=5e-14)


@pytest.mark.medium
@given(epsilons, rates, st.floats(1e-12, 0.5))
def test_lemma_is_rounded_upwards(epsilon: float, rate: float, delta: float) -> None:
    """Never below the exact value, within 5e-14 of it, never above the step's own price."""
    got, got_delta = amplified(epsilon, delta, rate)
    exact = oracle(epsilon, rate)
    assert exact * (1 - mpmath.mpf(10) ** -100) <= got <= exact * (1 + mpmath.mpf("5e-14"))
    assert got <= epsilon
    assert mpmath.mpf(rate) * mpmath.mpf(delta) <= got_delta <= delta * (1 + 2e-14)


@given(epsilons, rates)
def test_inverses_land_on_the_safe_side(epsilon: float, rate: float) -> None:
    """Using the rate or epsilon returned costs at most the target, and 1e-12 more of it does not."""
    target = amplified(epsilon, 0.0, rate)[0]
    found = rate_for(epsilon, target=target)
    assert amplified(epsilon, 0.0, found)[0] <= target
    assert found >= rate * (1 - 1e-11)
    base = base_epsilon_for(target, rate=rate)
    assert amplified(base, 0.0, rate)[0] <= target
    assert base >= epsilon * (1 - 1e-11)


@given(st.floats(0.05, 5), st.floats(0.2, 5), st.floats(1e-4, 1.0))
def test_lemma_is_tight_for_one_gaussian_step(epsilon: float, mu: float, rate: float) -> None:
    """From present to absent: the mixture's hockey stick at the amplified epsilon is rate × the step's own delta."""
    # (1−q)Q + qP exceeds e^ε′ Q exactly where P exceeds e^ε Q, so the two hockey sticks are integrals over one set.
    with mpmath.workdps(30):
        edge = mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2
        p, q = mpmath.ncdf(mu - edge), mpmath.ncdf(-edge)
        mixture = (1 - rate) * q + rate * p - mpmath.exp(oracle(epsilon, rate)) * q
        assert abs(mixture - rate * profile(mu, epsilon)) <= 1e-12 * rate * p


def test_shortcut_and_its_range() -> None:
    """2 q eps is given where true, refused elsewhere with the truth; its limits are the roots of the equality."""
    assert shortcut(1.0, 0.01) == pytest.approx(0.02)
    with pytest.raises(RuleOutOfRange, match=r"costs 0\.174672.*Use amplified"):
        shortcut(3.0, 0.01)
    assert abs(SHORTCUT_LIMIT - 1.25643120862617) < 2e-14
    assert math.expm1(SHORTCUT_LIMIT) <= 2 * SHORTCUT_LIMIT
    # At q = 1/4 the equality is y² − 4y + 3 = 0 for y = e^{eps/2}.
    assert shortcut_limit(0.25) == pytest.approx(2 * math.log(3), rel=1e-12)
    assert shortcut_limit(0.1) == pytest.approx(1.51, abs=0.005)
    assert shortcut_limit(0.4) == pytest.approx(4.50, abs=0.005)
    assert shortcut_limit(0.5) == math.inf
    assert shortcut_limit(1e-12) == pytest.approx(SHORTCUT_LIMIT, rel=1e-11)


@given(rates.filter(lambda q: q < 0.499))
def test_shortcut_limit_separates_true_from_false(rate: float) -> None:
    """At the limit the shortcut answers, a little beyond it refuses, and the universal limit is the smallest."""
    limit = shortcut_limit(rate)
    assert limit >= SHORTCUT_LIMIT * (1 - 1e-11)
    shortcut(limit, rate)
    if limit < 300:
        with pytest.raises(RuleOutOfRange):
            shortcut(limit * (1 + 1e-10), rate)


def test_edges() -> None:
    """Everyone in the batch gains nothing, free steps stay free, hopeless targets need rate 0."""
    assert amplified(2.0, 1e-6, 1.0) == (2.0, 1e-6)
    assert amplified(0.0, 0.0, 0.1) == (0.0, 0.0)
    assert rate_for(1.0, target=2.0) == 1.0
    assert rate_for(1.0, target=0.0) == 0.0
    assert base_epsilon_for(0.0, rate=0.1) == 0.0
    assert amplified(800.0, 0.0, 0.5)[0] == pytest.approx(800 + math.log(0.5))


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan])
def test_impossible_rates_are_refused(rate: float) -> None:
    """A probability outside (0, 1] is refused with the remedy."""
    with pytest.raises(InvalidParameter, match="batch ÷ records"):
        amplified(1.0, 0.0, rate)
