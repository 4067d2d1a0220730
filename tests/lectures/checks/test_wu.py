"""What the checks of Wu's lecture find, pinned to the audit of the lectures (its section and number in comments)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from privet.lectures import Finding

Find = Callable[[str], Finding]

VERDICTS = {
    "12": "holds_within",
    "17": "holds_within",
    "20": "holds_within",
    "21": "fails",
    "22": "holds_within",
    "28": "holds_within",
    "35": "fails",
}


@pytest.mark.medium
@pytest.mark.parametrize("id", [f"{k:02d}" for k in range(1, 36)])
def test_verdicts(id: str, finding: Find) -> None:
    """Of 35 claims two fail as printed, five hold in a range, the others hold."""
    assert finding(id).verdict == VERDICTS.get(id, "holds")


def test_lemma_1_1_fails_where_the_audit_found_it(finding: Find) -> None:
    """18 of 408 points, none up to epsilon 1; frontiers, and the truths at (10, 1e-5) and (1, 1e-5)."""
    found = finding("12").numbers  # audit 2, rule A
    assert (found["points"], found["false_points"], found["false_points_up_to_1"]) == (408, 18, 0)
    frontiers = [found[f"first_false_at_{d}"] for d in ("1e-01", "1e-03", "1e-05", "1e-08", "1e-12")]
    assert frontiers == pytest.approx([5.12, 6.98, 7.97, 8.94, 9.83], abs=5e-3)
    larger = [found[f"first_false_at_{d}"] for d in ("0_5", "0_9", "0_98", "0_99")]
    assert larger == pytest.approx([3.534, 1.861, 1.007, 0.766], abs=1e-3)
    assert found["true_epsilon_of_10"] == pytest.approx(10.52, abs=5e-3)
    assert found["true_delta_of_10"] == pytest.approx(2.88e-5, rel=2e-3)
    assert found["ratio_at_1"] == pytest.approx(1.286, abs=5e-4)
    assert found["least_ratio"] == pytest.approx(0.761, abs=5e-4)


def test_releases_leak_what_the_audit_found(finding: Find) -> None:
    """The last iterate has all of μ, the average √(3(T−1)/(2(2T−1)))."""
    found = finding("10").numbers  # audit 2.9; avg_leak_ratio of the reference table
    assert found["last_of_all"] == pytest.approx(1.0, rel=1e-12)
    assert found["average_of_all"] == pytest.approx(0.863846720071851, rel=1e-12)


def test_amplification_meets_the_audit(finding: Find) -> None:
    """Lemma 1.2 is an equality one way; the fraction epsilon' gives 0.0170 and 0.1586; the survey 6.487e-6 and 0.5."""
    assert finding("16").numbers["distance_from_equality"] < 1e-9  # audit 2.5
    found = finding("17").numbers
    assert (found["epsilon_at_001"], found["epsilon_at_01"]) == pytest.approx((0.0170, 0.1586), abs=5e-5)
    assert found["exact_fraction_for_01"] == pytest.approx(0.0612070245600891, rel=1e-12)
    assert found["largest_ratio"] == pytest.approx(math.e - 1, rel=1e-4)
    survey = finding("18").numbers
    assert survey["epsilon"] == pytest.approx(6.48719166512793e-06, rel=1e-13)
    assert survey["epsilon_of_known_participant"] == pytest.approx(0.5, rel=1e-12)


def test_one_known_step_fails_where_the_audit_found_it(finding: Find) -> None:
    """3 of 408 points, from 6.10 on at delta = 0.1; at delta = 0.7 even below epsilon = 1."""
    found = finding("20").numbers  # audit 2, rule H
    assert found["false_points_of_the_grid"] == 3
    assert found["first_false_at_01"] == pytest.approx(6.10, abs=5e-3)
    assert found["first_false_at_07"] < 1


def test_dp_sgd_costs_what_the_audit_found(finding: Find) -> None:
    """T = n² costs 0.293, proved only (9.63, 1.01e-3); against full batches 25.4 down to 4.44."""
    found = finding("21").numbers  # audit 2.7
    assert found["epsilon_of_n_squared_steps"] == pytest.approx(0.293, abs=5e-4)
    assert found["epsilon_by_strong_composition"] == pytest.approx(9.63, abs=5e-3)
    assert found["delta_by_strong_composition"] == pytest.approx(1.01e-3, rel=1e-9)
    costs = finding("22").numbers  # one of 200 records drawn, one replaced, as in the lecture
    seen = [costs[f"epsilon_at_{s}"] for s in ("0_5", "1", "2", "4", "8", "16", "32")]
    assert seen == pytest.approx([25.38, 8.157, 5.694, 4.947, 4.644, 4.507, 4.441], abs=6e-3)
    assert costs["ratio_at_4"] == pytest.approx(1.13, abs=1e-3)
    assert costs["share_of_lemma_2_7"] < 1
    assert costs["epsilon_full_batch"] == pytest.approx(4.377, abs=5e-4)


@pytest.mark.medium
def test_bounds_are_tight_where_the_audit_found_it(finding: Find) -> None:
    """Theorem 2.1 is attained; theorem 2.6 hides (9 + 1/Λ)/2; the exponential mechanism attains d/β."""
    assert finding("23").numbers["largest_share"] == pytest.approx(1.0, rel=1e-9)  # audit 3
    found = finding("31").numbers
    assert found["hidden_constant"] == pytest.approx((9 + 1 / math.log(1e5)) / 2, rel=1e-9)
    assert found["explicit_bound"] == pytest.approx(0.048750226193295, rel=1e-9)
    assert finding("32").numbers["excess"] == pytest.approx(0.02, rel=1e-3)
