from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.errors import InvalidParameter, RuleOutOfRange
from privet.lectures.noise_rules import RULES, Rule, rule
from privet.theory.least_noise import exact_noise

# Grid of the claims audit, section 2: 34 epsilons (22 of them at most 1) and 12 deltas, 408 pairs.
EPSILONS = [*np.geomspace(0.01, 10, 31).round(12).tolist(), 0.5, 2.0, 5.0]
DELTAS = [10.0**-k for k in range(1, 13)]
FAILURES = {  # rule: (false at, of which epsilon <= 1), one step
    "lemma_1_1": (18, 0),
    "claim_3_2": (276, 138),
    "basic_composition": (8, 0),
    "advanced_composition": (0, 0),
    "advanced_composition_unsimplified": (0, 0),
    "rho": (0, 0),
    "rho_as_equality": (276, 138),
    "classical": (14, 0),
    "single_step_log": (3, 0),
    "zcdp": (0, 0),
}
FRONTIERS = {  # first false epsilon at delta = 1e-1, 1e-3, 1e-5, 1e-8, 1e-12, as the audit prints them
    "lemma_1_1": (5.12, 6.98, 7.97, 8.94, 9.83),
    "claim_3_2": (2.18, 1.136, 0.324, 0.0225, 0.0004),
    "basic_composition": (7.09, 8.51, 9.39, 10.30, 11.14),
    "classical": (5.74, 7.46, 8.42, 9.37, 10.25),
    "single_step_log": (6.10, 54, 168, 473, 1139),
    "advanced_composition": (300, 1767, 4521, 11098, 24473),
}
# The project's reference table (mpmath, 30 digits, rounded to 15): (G, n, T, epsilon, delta), then the noise.
RUNS = [(1, 1000, 100, 1.0, 1e-5), (1, 10000, 1000, 0.5, 1e-6), (2.5, 500, 1, 0.1, 1e-3), (1, 60000, 100000, 8.0, 1e-5)]
NOISE = {
    "lemma_1_1": (0.0959705182437616, 0.0664903254507644, 0.371692218884984, 0.00632261303910478),
    "claim_3_2": (0.0678614042441511, 0.047015760009536, 0.262826088487847, 0.00447076255476947),
    "basic_composition": (1.1596979893582, 2.61787168623713, 0.389894920704081, 2.86980195010259),
    "advanced_composition": (1.30809516265006, 1.059864370669, 3.12961840434252, 0.12253301248678),
    "rho": (0.099971652466621, 0.0676724897293356, 0.374363420039982, 0.00804830435047613),
}
EXACT = (0.0746126326963188, 0.0509608538315134, 0.174043962030312, 0.00632696995332779)
CLASSICAL = {(0.5, 1e-5): 9.68961052521078, (1.0, 1e-5): 4.84480526260539, (10.0, 1e-2): 0.310751146009224}

rules = st.sampled_from(RULES)
deltas = st.floats(-15, -0.05).map(lambda x: 10.0**x)


def test_printed_noise_meets_the_reference_table() -> None:
    """Each rule, in the units of the lectures (sensitivity 2G/n), gives the tabled number."""
    for name, values in NOISE.items():
        for (g, n, steps, epsilon, delta), value in zip(RUNS, values, strict=True):
            got = rule(name).printed_noise(epsilon=epsilon, delta=delta, steps=steps, sensitivity=2 * g / n)
            assert got == pytest.approx(value, rel=3e-15), name
    for (epsilon, delta), value in CLASSICAL.items():
        got = rule("classical").printed_noise(epsilon=epsilon, delta=delta, sensitivity=1.0)
        assert got == pytest.approx(value, rel=3e-15)


def test_exact_noise_meets_the_reference_table_from_above() -> None:
    """The least private noise is the tabled root, rounded to the safe side."""
    for (g, n, steps, epsilon, delta), value in zip(RUNS, EXACT, strict=True):
        got = exact_noise(epsilon=epsilon, delta=delta, steps=steps, sensitivity=2 * g / n)
        assert value <= got <= value * (1 + 1e-11)


@pytest.mark.parametrize("name", [known.name for known in RULES])
def test_audit_counts(name: str) -> None:
    """On the audit's grid each rule is false exactly as often as the audit found."""
    false = [e for e in EPSILONS for d in DELTAS if not rule(name).is_true(epsilon=e, delta=d)]
    assert (len(false), sum(e <= 1 for e in false)) == FAILURES[name]


def test_composed_rules_are_true_for_many_steps() -> None:
    """The rules that mention T fail nowhere on the grid for T = 10, 1e3, 1e5; lemma 1.1 and rho do not feel T."""
    for steps in (10, 1000, 100_000):
        for name in ("basic_composition", "advanced_composition", "advanced_composition_unsimplified"):
            assert all(rule(name).is_true(epsilon=e, delta=d, steps=steps) for e in EPSILONS for d in DELTAS)
        for name in ("lemma_1_1", "claim_3_2", "rho", "zcdp"):
            mus = [rule(name).mu(epsilon=2.0, delta=1e-5, steps=t) for t in (1, steps)]
            assert mus[0] == pytest.approx(mus[1], rel=1e-13)


@pytest.mark.parametrize("name", FRONTIERS)
def test_frontiers_of_the_audit(name: str) -> None:
    """Where each rule first fails agrees with the audit's table to its digits."""
    for delta, value in zip((1e-1, 1e-3, 1e-5, 1e-8, 1e-12), FRONTIERS[name], strict=True):
        assert rule(name).frontier(delta=delta) == pytest.approx(value, rel=5e-3, abs=5e-5)


@settings(deadline=None)
@given(rules, deltas, st.sampled_from([1, 2, 100, 10**5]), st.floats(1e-3, 0.999))
def test_frontier_separates_true_from_false(of: Rule, delta: float, steps: int, below: float) -> None:
    """At and below the frontier the rule is true, just beyond it and far beyond it is not."""
    limit = of.frontier(delta=delta, steps=steps)
    if limit == math.inf:
        assert of.is_true(epsilon=1e4 * below, delta=delta, steps=steps)
        return
    assert of.is_true(epsilon=limit, delta=delta, steps=steps)
    assert of.is_true(epsilon=limit * below, delta=delta, steps=steps)
    assert not of.is_true(epsilon=limit * (1 + 1e-7), delta=delta, steps=steps)
    assert not of.is_true(epsilon=limit / below * (1 + 1e-7), delta=delta, steps=steps)


@settings(deadline=None)
@given(st.sampled_from([r for r in RULES if r.always]), st.floats(-4, 3).map(lambda x: 10.0**x), deltas)
def test_rules_true_everywhere_are(of: Rule, epsilon: float, delta: float) -> None:
    """What is declared true by proof is also true by the exact profile."""
    assert delta_bounds(of.mu(epsilon=epsilon, delta=delta), epsilon)[1] <= delta


@settings(deadline=None)
@given(rules, st.floats(0.01, 20), deltas, st.integers(1, 10**6))
def test_noise_that_is_given_is_private_and_at_least_the_exact(of: Rule, epsilon: float, delta: float, k: int) -> None:
    """A rule either gives noise that is private, hence no less than the exact one, or refuses."""
    try:
        noise = of.noise(epsilon=epsilon, delta=delta, steps=k, sensitivity=0.5)
    except RuleOutOfRange:
        assert of.true_epsilon(epsilon=epsilon, delta=delta, steps=k) > epsilon * (1 - 1e-9)
    else:
        assert noise >= exact_noise(epsilon=epsilon, delta=delta, steps=k, sensitivity=0.5) * (1 - 1e-11)
        assert epsilon_bounds(math.sqrt(k) * 0.5 / noise, delta)[0] <= epsilon


def test_refusal_says_what_is_true_and_what_to_use() -> None:
    """The message carries the true epsilon and delta, the frontier and the exact noise, all checkable."""
    with pytest.raises(RuleOutOfRange) as refused:
        rule("claim_3_2").noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=2 / 1000)
    message = str(refused.value)
    # True epsilon 1.10986966…, delta 4.28435…e-05 and exact noise 0.0746126… are entries of the reference table.
    for part in ("claim_3_2", "0.0678614", "1.10987", "4.28435e-05", "0.3244", "exact_noise", "0.0746126"):
        assert part in message


def test_selected_truths_of_the_audit() -> None:
    """True delta and epsilon of rules A, B, F and E at the audit's selected points."""
    table = {
        ("lemma_1_1", 1.0, 1e-5): (5.28e-8, 0.759),
        ("lemma_1_1", 10.0, 1e-5): (2.88e-5, 10.52),
        ("claim_3_2", 5.0, 1e-5): (1.26e-3, 6.90),
        ("claim_3_2", 10.0, 0.1): (0.946, 29.3),
        ("classical", 10.0, 1e-5): (2.27e-5, 10.39),
        ("rho", 10.0, 1e-5): (2.48e-9, 7.45),
        ("rho", 1.0, 1e-12): (5.4e-16, 0.863),
    }
    for (name, epsilon, delta), (true_delta, true_epsilon) in table.items():
        mu = rule(name).mu(epsilon=epsilon, delta=delta)
        assert profile(mu, epsilon) == pytest.approx(true_delta, rel=0.01)
        assert rule(name).true_epsilon(epsilon=epsilon, delta=delta) == pytest.approx(true_epsilon, rel=2e-3)
    assert profile(rule("lemma_1_1").mu(epsilon=1.0, delta=1e-5), 1.0) == pytest.approx(5.2815830424008e-08, rel=1e-11)


def test_one_step_rules_used_for_many_steps_are_refused() -> None:
    """The classical rule says nothing about composition: 100 steps with one step's noise is refused."""
    with pytest.raises(RuleOutOfRange, match="100 step"):
        rule("classical").noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=1.0)


def test_nikolovs_rho_solves_its_equation() -> None:
    """k rho + sqrt(2 k rho ln(1/delta)) at the noise given is the epsilon asked (oracle: 30 digits)."""
    with mpmath.workdps(30):
        sigma = mpmath.mpf(rule("rho").printed_noise(epsilon=1.0, delta=1e-6, steps=100, sensitivity=1.0))
        k_rho = 100 / sigma**2
        epsilon = k_rho + mpmath.sqrt(2 * k_rho * mpmath.log(1 / mpmath.mpf(1e-6)))
        assert abs(epsilon - 1) < 1e-14


def test_exact_noise_at_epsilon_zero() -> None:
    """Epsilon 0 is no special case for the exact rule; the lectures' rules divide by it and say so."""
    noise = exact_noise(epsilon=0.0, delta=0.1, sensitivity=1.0)
    assert delta_bounds(1 / noise, 0.0)[1] <= 0.1
    assert 1 / noise == pytest.approx(largest_mu(0.0, 0.1))
    with pytest.raises(InvalidParameter, match="divide by it"):
        rule("rho").noise(epsilon=0.0, delta=0.1, sensitivity=1.0)


def test_unknown_rules_and_bad_numbers_are_refused() -> None:
    """A name that is none, no steps, no sensitivity: an error with the remedy."""
    with pytest.raises(InvalidParameter, match="lemma_1_1"):
        rule("lemma_9")
    with pytest.raises(InvalidParameter, match="positive int"):
        rule("lemma_1_1").mu(epsilon=1.0, delta=1e-5, steps=0)
    with pytest.raises(InvalidParameter, match="2G/n"):
        exact_noise(epsilon=1.0, delta=1e-5, sensitivity=0.0)
