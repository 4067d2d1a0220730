"""What the checks of Nikolov's lecture find, pinned to the audit of the lectures (its section in comments)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from privet.lectures import Finding

Find = Callable[[str], Finding]

PAIRS = ("1_1e-05", "5_1e-05", "10_1e-05", "10_1e-01", "1_1e-12")


@pytest.mark.medium
@pytest.mark.parametrize("id", [str(k) for k in range(103, 118)])
def test_verdicts(id: str, finding: Find) -> None:
    """Of 15 claims two fail as printed, two are orders of magnitude, the others hold."""
    assert finding(id).verdict == {"111": "holds_within", "113": "holds_within", "115": "fails", "117": "fails"}.get(
        id, "holds"
    )


def test_rho_as_an_equality_fails_where_the_audit_found_it(finding: Find) -> None:
    """276 of 408 points, 138 of 264 up to epsilon 1; frontiers and truths at five pairs. As an order it is fine."""
    found = finding("113").numbers  # audit 2, rule E~, as B
    assert (found["points"], found["false_points"]) == (408, 276)
    assert (found["points_up_to_1"], found["false_points_up_to_1"]) == (264, 138)
    assert found["least_ratio"] == pytest.approx(0.538, abs=5e-4)
    assert found["median_ratio"] == pytest.approx(0.899, abs=5e-4)
    assert found["largest_ratio"] == pytest.approx(40, abs=0.5)
    frontiers = [found[f"first_false_at_{d}"] for d in ("1e-01", "1e-03", "1e-05", "1e-08")]
    assert frontiers == pytest.approx([2.18, 1.136, 0.324, 0.0225], rel=2.5e-3)
    assert found["first_false_at_1e-12"] < 0.001
    deltas = [found[f"true_delta_at_{pair}"] for pair in PAIRS]
    assert deltas == pytest.approx([4.28e-5, 1.26e-3, 0.0150, 0.946, 4.09e-9], rel=5e-3)
    epsilons = [found[f"true_epsilon_at_{pair}"] for pair in PAIRS]
    assert epsilons == pytest.approx([1.110, 6.90, 16.3, 29.3, 1.257], rel=2e-3)
    ratios = [found[f"ratio_at_{pair}"] for pair in PAIRS]
    assert ratios == pytest.approx([0.910, 0.761, 0.679, 0.538, 0.802], abs=6e-4)


def test_printed_variance_fails_where_the_audit_found_it(finding: Find) -> None:
    """With 4d + 1 for 4(d + 1), d = 1: 147 of 408 points, 65 of 264 up to epsilon 1, only for delta up to 1e-6."""
    found = finding("115").numbers  # audit 2, rule E with 4d+1
    assert (found["points"], found["false_points"]) == (408, 147)
    assert (found["points_up_to_1"], found["false_points_up_to_1"]) == (264, 65)
    ratios = [found[f"{name}_ratio"] for name in ("least", "median", "largest")]
    assert ratios == pytest.approx([0.902, 1.05, 45], rel=1e-2)
    frontiers = [found[f"first_false_at_1e-{k:02d}"] for k in (6, 8, 12)]
    assert frontiers == pytest.approx([1.66, 0.332, 0.0175], rel=2e-3)
    assert found["first_false_at_1e-01"] == found["first_false_at_1e-05"] == math.inf
    assert [found[f"digits_of_delta_for_d_{d}"] for d in (1, 2, 3, 10)] == [6, 11, 17, 61]


def test_rho_rule_is_as_loose_as_the_audit_found(finding: Find) -> None:
    """Never false; 1.141 to 56 times the least noise, and the truths at five pairs."""
    found = finding("112").numbers  # audit 2, rule E
    assert (found["points"], found["false_points"]) == (408, 0)
    ratios = [found[f"{name}_ratio"] for name in ("least", "median", "largest")]
    assert ratios == pytest.approx([1.141, 1.33, 56], rel=1e-2)
    assert found["distance_from_rule"] < 1e-14
    deltas = [found[f"true_delta_at_{pair}"] for pair in PAIRS]
    assert deltas == pytest.approx([1.77e-8, 1.10e-8, 2.48e-9, 1.98e-4, 5.4e-16], rel=1e-2)
    epsilons = [found[f"true_epsilon_at_{pair}"] for pair in PAIRS]
    assert epsilons == pytest.approx([0.726, 3.78, 7.45, 4.70, 0.863], abs=5e-3)
    ratios = [found[f"ratio_at_{pair}"] for pair in PAIRS]
    assert ratios == pytest.approx([1.340, 1.273, 1.274, 1.566, 1.154], abs=6e-4)


def test_plugging_in_fails_beyond_epsilon_1(finding: Find) -> None:
    """(d + 1)/epsilon² is too much at 0.5, right at 1 and too little at 2: the gradient does not know epsilon."""
    found = finding("117").numbers
    assert found["share_at_0_5"] < 0.5
    assert found["share_at_1"] == pytest.approx(1.0, abs=0.05)
    assert found["share_at_2"] > 3
    assert 0.9 < found["least_of_order"] < found["most_of_order"] < 4
    assert 0.5 < found["reached_of_bound"] <= 1


def test_sensitivity_is_approached(finding: Find) -> None:
    """Longest gradient and largest move come within 1e-4 of the bounds, which they never reach."""
    found = finding("114").numbers  # audit 1, row 114: "sup, approached"
    assert found["longest_share"] == pytest.approx(1.0, abs=1e-6)
    assert 0.9999 < found["largest_move_share"] < 1


def test_accuracy_theorem_is_tight_without_noise(finding: Find) -> None:
    """The largest coordinate attains RB/√T, R being the radius."""
    assert finding("116").numbers["share_largest_0"] == pytest.approx(1.0, rel=1e-9)  # audit 3


def test_exact_basic_composition_is_linear(finding: Find) -> None:
    """(epsilon/k, delta/k) calibrated exactly takes noise of order k, without a logarithm; the rule has one."""
    found = finding("111").numbers
    assert found["growth_of_basic"] == pytest.approx(1.0, abs=1e-3)
    assert found["basic_by_rule_at_1000000"] / found["basic_by_rule_at_100"] > 120


def test_sample_size_is_never_too_small(finding: Find) -> None:
    """At Hoeffding's n the exact chance of a miss is at most a sixth of what is allowed."""
    found = finding("105").numbers
    assert found["records_for_1000_concepts"] == 2303
    assert found["largest_share"] == pytest.approx(0.161, abs=5e-4)
