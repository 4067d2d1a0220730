from __future__ import annotations

import pytest

from privet.accounting.theorems.composition import optimal_delta
from privet.lectures import check_for


def test_numerical_tails_beat_chernoff() -> None:
    """At each epsilon the numerical delta is exact, Chernoff's larger, advanced composition's larger still."""
    numbers = check_for("100")().numbers
    for epsilon in (2, 3, 4, 5):
        tails = [numbers[f"{name}_at_{epsilon}"] for name in ("numerical", "chernoff", "advanced")]
        assert tails == sorted(tails)
        assert tails[0] == pytest.approx(optimal_delta(0.1, 0.0, 100, epsilon=epsilon), rel=1e-3)


def test_the_recipe_by_hand_agrees_with_the_library() -> None:
    """FFT to the power T equals convolution to rounding, and the library's bracket lies within the recipe's."""
    numbers = check_for("101")().numbers
    assert numbers["apart"] < 1e-14
    assert numbers["by_hand_down"] < numbers["library_lower"] <= numbers["library_upper"] < numbers["by_hand_up"]


def test_a_model_costs_once_and_answers_each_time() -> None:
    """Ten thousand questions cost a private model nothing more; private answers add up."""
    numbers = check_for("102")().numbers
    assert numbers["model"] <= 1
    assert numbers["outputs_at_1"] < numbers["outputs_at_100"] < numbers["outputs_at_10000"]
