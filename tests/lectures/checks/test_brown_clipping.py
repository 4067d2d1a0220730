"""What the checks of Brown's lecture 4 find, pinned to the audit of the lectures (its numbers in comments)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privet.lectures import Finding

Find = Callable[[str], Finding]


@pytest.mark.medium
@pytest.mark.parametrize("id", [str(k) for k in range(54, 65)])
def test_verdicts(id: str, finding: Find) -> None:
    """All eleven claims hold, each in the range that the lecture states."""
    assert finding(id).verdict == "holds"


def test_claim_2_3_holds_as_stated_and_is_loose(finding: Find) -> None:
    """No failure up to epsilon 1; 8 of 1632 beyond, all of one step; ratios 1.32 to 584; first failing epsilons."""
    found = finding("58").numbers  # audit 2, rule C
    assert (found["points"], found["false_points"], found["false_points_of_one_step"]) == (1632, 8, 8)
    assert found["false_points_as_stated"] == 0
    ratios = [found[f"ratio_of_{T}_steps"] for T in (1, 10, 1000, 100_000)]
    assert ratios == pytest.approx([1.32, 4.57, 52.4, 584], rel=4e-3)
    frontiers = [found[f"first_false_at_{d}"] for d in ("1e-01", "1e-03", "1e-05", "1e-08", "1e-12")]
    assert frontiers == pytest.approx([7.09, 8.51, 9.39, 10.30, 11.14], abs=6e-3)
    assert found["least_ratio"] == pytest.approx(0.869, abs=5e-4)


def test_composition_is_attained(finding: Find) -> None:
    """Randomised responses cost exactly the sum, adaptively or not."""
    assert finding("54").numbers["worst_log_ratio"] == pytest.approx(1.6, rel=1e-12)
    assert finding("55").numbers["two_randomised_responses"] == pytest.approx(1.4, rel=1e-12)  # audit row 55
    assert finding("55").numbers["charged"] == pytest.approx(1.4, rel=1e-9)


def test_sensitivity_is_attained_under_all_relations(finding: Find) -> None:
    """2C/n for a record exchanged, C/n for one emptied or removed: reached, and never passed."""
    found, whole = finding("60").numbers, 2 * 0.7 / 12
    assert 0.999 * whole < found["move_by_replace_one"] <= whole
    for relation in ("zero_out", "add_remove"):
        assert 0.999 * whole / 2 < found[f"move_by_{relation}"] <= whole / 2


def test_clipping_biases_as_the_audit_found(finding: Find) -> None:
    """Nine 0s and one 10, clipped at 1, end at 0.0556 in place of 1; from 18 on nothing is clipped at the minimum."""
    found = finding("61").numbers  # audit 3, "Clipping bias"
    assert found["end_at_1"] == pytest.approx(1 / 18, rel=1e-6)
    assert found["end_at_18"] == pytest.approx(1.0, rel=1e-6)
    assert found["noise_at_100"] == pytest.approx(100 * found["noise_at_1"], rel=1e-9)


def test_clipping_after_averaging_does_not_help(finding: Find) -> None:
    """Errors 0.1 to 1e-4 before; about 1 after; 0.70 to 0.80 after, to [0, 1/n].

    Means of 20,000 Laplace draws: five standard errors are 3.5 %, false-positive rate 6e-7 each; a sensitivity that is
    5 % off is caught.
    """
    found = finding("64").numbers  # audit 3, "Clip before/after"
    for n in (10, 100, 1000, 10_000):
        assert found[f"error_before_{n}"] == pytest.approx(1 / n, rel=0.035)
        assert found[f"error_after_{n}"] == pytest.approx(1.0, rel=0.035)
        assert found[f"moved_after_{n}"] == 1.0
    assert found["error_after_tightly_10"] == pytest.approx(0.70, abs=0.01)
    assert found["error_after_tightly_10000"] == pytest.approx(0.80, abs=0.01)


def test_only_noise_keeps_descent_from_memorising(finding: Find) -> None:
    """Without noise all random labels are learnt by heart; with it the gap stays within e^0.2 − 1."""
    found = finding("63").numbers
    assert found["gap_without_noise"] > 0.45
    assert abs(found["gap"]) < found["allowed"]
