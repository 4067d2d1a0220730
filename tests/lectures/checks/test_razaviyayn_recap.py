from __future__ import annotations

import pytest

from privet.lectures import check_for


def test_the_classical_noise_fails_where_the_audit_says() -> None:
    """14 of 408 points, none up to epsilon 1, from 5.74 to 10.25 on; as a variance it gives 2.64, 10.2 and 0.06."""
    found = check_for("69")()
    assert found.verdict == "holds_within"
    assert (found.numbers["false_points"], found.numbers["false_points_up_to_1"]) == (14, 0)
    assert found.numbers["least_ratio"] == pytest.approx(0.798, abs=5e-4)
    frontiers = [found.numbers[f"first_false_at_{d}"] for d in ("1e-01", "1e-03", "1e-05", "1e-08", "1e-12")]
    assert frontiers == pytest.approx([5.74, 7.46, 8.42, 9.37, 10.25], abs=6e-3)
    literal = [found.numbers[f"literal_variance_{name}"] for name in ("at_2", "at_20", "of_a_mean_of_1000")]
    assert literal == pytest.approx([2.64, 10.2, 0.06], rel=6e-3)


def test_the_tail_is_sufficient_and_not_necessary() -> None:
    """Section 2.8: 0.3085 against 0.1269 at mu = 1, and 1.61e-4 against 1e-5."""
    numbers = check_for("67")().numbers
    assert numbers["tail_at_mu_1"] == pytest.approx(0.3085, abs=5e-5)
    assert numbers["delta_at_mu_1"] == pytest.approx(0.1269, abs=5e-5)
    assert numbers["tail_at_1e_5"] == pytest.approx(1.61e-4, rel=5e-3)


def test_group_privacy_holds_and_is_loose() -> None:
    """Section 2.10: 0 of 1632 points, ratio 1.0000136 at best; 0.0128 claimed and 4.8e-4 true for (1, 1e-6) and ten."""
    numbers = check_for("72")().numbers
    assert (numbers["points"], numbers["false_points"]) == (1632, 0)
    assert numbers["least_ratio"] == pytest.approx(1.0000136, abs=1e-7)
    assert (numbers["claimed_for_10"], numbers["true_for_10"]) == pytest.approx((0.0128, 4.8e-4), rel=1e-2)


def test_advanced_composition_as_printed_fails() -> None:
    """Section 2.4: 144 of 480 points; 74.1 said, delta 5.8e-4, optimum 83.5, corrected 90.2; 384, 0.9965 and 578."""
    found = check_for("74")()
    assert found.verdict == "fails"
    numbers = found.numbers
    assert (numbers["points"], numbers["false_points"]) == (480, 144)
    assert numbers["least_false_epsilon_at_1000"] == 0.3
    assert numbers["least_false_epsilon_at_100000"] == 0.03
    said = [numbers[name] for name in ("said", "delta_there", "optimum", "corrected")]
    assert said == pytest.approx([74.1, 5.8e-4, 83.5, 90.2], rel=1e-2)
    large = [numbers[name] for name in ("said_for_1", "delta_there_for_1", "optimum_for_1")]
    assert large == pytest.approx([384, 0.9965, 578], rel=1e-3)
    assert check_for("74").mutated().numbers["false_points"] == 0


def test_the_tilted_median_shows_the_moved_point() -> None:
    """Section 3: 0.498, 0.476, 0.339 and 0.156, which are Phi(2/s) − 1/2, within five standard errors."""
    found = check_for("82")()
    assert found.verdict == "holds_within"
    shares = [found.numbers[f"moved_point_at_{s}"] for s in ("0_1", "1", "2", "5")]
    assert shares == pytest.approx([0.5, 0.4772, 0.3413, 0.1554], abs=5 * 0.0036)
    assert found.numbers["standard_errors"] < 5


@pytest.mark.parametrize("id", ["77", "81"])
def test_bounds_hold_on_the_solvers(id: str) -> None:
    """The excess that the solvers have is below the bound that they prove."""
    numbers = check_for(id)().numbers
    if id == "77":
        assert 0 < numbers["share_of_logistic"] < 0.5
    else:
        assert 0.1 < numbers["least_share"] <= numbers["largest_share"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("id", ["77", "81", "82"])
def test_longer_forms_agree(id: str) -> None:
    """The long simulations find what the short ones do."""
    assert check_for(id)(full=True).verdict == check_for(id)().verdict
