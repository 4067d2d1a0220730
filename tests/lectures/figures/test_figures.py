"""The lectures' figures show what the library computes, and fit their paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from privet.accounting import Gaussian, delta
from privet.accounting.theorems.subsampling import amplified
from privet.errors import InvalidParameter
from privet.lectures import check_for, rule
from privet.lectures.examples.rank_and_projection import allowed, excess
from privet.lectures.figures.costs import (
    amplification_figure,
    asked_and_given_figure,
    one_record_figure,
    privacy_loss_figure,
    variance_rule_figure,
)
from privet.lectures.figures.how_good import proven_risk, risk_figure, simulated_risk
from privet.lectures.figures.runs import averaging_figure, clip_figure, rank_figure, risk_against_steps_figure
from privet.privacy import Budget
from privet.theory import plan_for

draw_clips = cache(clip_figure)
FIGURES: dict[str, Callable[[], Any]] = {
    "amplification": amplification_figure,
    "asked": asked_and_given_figure,
    "averaging": averaging_figure,
    "clip": draw_clips,
    "how good": lambda: risk_figure("d", seeds=1, runs=(100,)),
    "loss": privacy_loss_figure,
    "one record": one_record_figure,
    "rank": lambda: rank_figure(dimensions=(5, 50), runs=1),
    "steps": lambda: risk_against_steps_figure(n=200, d=5, max_steps=100, seeds=1),
    "variance": lambda: variance_rule_figure(points=12),
}


def lines(figure: Any) -> dict[str, Any]:
    (axes,) = figure.axes
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


@pytest.mark.medium
@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_words_fit_the_paper(draw: Callable[[], Any]) -> None:
    """Title, subtitle, labels and remarks lie within the paper, and both axes say what they show."""
    figure = draw()
    figure.canvas.draw()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in (axes.title, axes._left_title, axes.xaxis.label, *axes.texts)]
    width, height = figure.bbox.width, figure.bbox.height
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)
    assert axes.get_xlabel()
    assert axes.get_ylabel()


def test_asked_and_given_is_the_rules_true_epsilon() -> None:
    """Claim 3.2's curve is what its noise truly gives; it leaves the diagonal where the rule stops being true."""
    line = lines(asked_and_given_figure())["claim 3.2"]
    at, given = line.get_xdata(), line.get_ydata()
    assert given[7] == rule("claim_3_2").true_epsilon(epsilon=float(at[7]), delta=1e-5, steps=1)
    false = at[given > at]
    assert false.min() == pytest.approx(rule("claim_3_2").frontier(delta=1e-5), rel=0.1)


def test_amplification_is_the_lemma() -> None:
    """The curve of a rate is the amplified epsilon ÷ (rate × epsilon)."""
    line = lines(amplification_figure())["rate 0.25"]
    at, ratio = line.get_xdata(), line.get_ydata()
    assert ratio[50] == pytest.approx(amplified(float(at[50]), 0.0, 0.25)[0] / (0.25 * at[50]), rel=1e-12)


def test_privacy_loss_is_that_of_the_accountant() -> None:
    """The legend's delta agrees with the accountant's to its two digits, and each density has mass 1."""
    for name, line in lines(privacy_loss_figure()).items():
        steps, said = int(name.split()[0]), float(name.split("= ")[1])
        run = Gaussian(noise_multiplier=2.0).poisson(rate=0.1) * steps
        assert said == pytest.approx(delta(run, epsilon=1.0, neighbours="add_remove"), rel=0.05)
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.medium
def test_clip_figure_agrees_with_the_check() -> None:
    """Bias and noise at the ends are those that the check of claim 61 finds."""
    found, drawn = check_for("61")().numbers, lines(draw_clips())
    assert drawn["bias"].get_ydata()[0] == pytest.approx(1.0 - found["end_at_1"])
    assert drawn["noise"].get_ydata()[0] == pytest.approx(found["noise_at_1"])
    assert drawn["noise"].get_ydata()[-1] == pytest.approx(found["noise_at_100"])


def test_rank_figure_shows_the_example() -> None:
    """The points are the worked example's excess, and both ways start below the bound."""
    drawn = lines(rank_figure(dimensions=(5, 50), runs=1))
    assert drawn["projected on a ball"].get_ydata()[1] == excess(50, projected=True, runs=1)
    assert max(drawn["not projected"].get_ydata()) < allowed()


def test_runs_lie_below_the_bound_on_steps() -> None:
    """Mean excess of noisy descent is below lemma 2.7's bound at each T, on a fixed seed; a mutant bound is not."""
    drawn = lines(risk_against_steps_figure(n=200, d=5, max_steps=100, seeds=2))
    bound, runs = drawn["proven, lemma 2.7"], drawn["runs, logistic loss"]
    allowed_ = np.interp(runs.get_xdata(), bound.get_xdata(), bound.get_ydata())
    assert (runs.get_ydata() < allowed_).all()
    assert not (runs.get_ydata() < 0.1 * allowed_).all()


@pytest.mark.parametrize("method", ["average", "last", "output_perturbation", "exponential"])
def test_proven_risk_is_the_planners(method: Any) -> None:
    """The lines are plan_for's excess risk with radius and gradients 1, or 1 where that is vacuous."""
    known = {"n": 5000, "d": 7, "radius": 1.0, "lipschitz": 1.0, "neighbours": "replace_one"}
    plan = plan_for(**known, budget=Budget(epsilon=0.5, delta=1e-5), method=method)  # type: ignore[arg-type]
    assert proven_risk(method, n=5000, d=7, epsilon=0.5) == min(1.0, plan.excess_risk)


@pytest.mark.medium
@pytest.mark.parametrize("method", ["average", "last_linear", "output_perturbation", "objective_perturbation"])
def test_simulated_risk_is_within_what_is_proven(method: Any) -> None:
    """Two runs of each method, seeds fixed, are in [0, bound] on average; the bounds are 2 to 10 times as large."""
    found = simulated_risk(method, n=300, d=5, epsilon=1.0, seeds=2)
    proven = proven_risk(method, n=300, d=5, epsilon=1.0)
    assert -1e-4 <= found <= proven


def test_only_what_is_known_can_be_drawn() -> None:
    """Other axes and methods are refused, with what there is."""
    with pytest.raises(InvalidParameter, match="n, d, epsilon"):
        risk_figure("delta")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="last_linear"):
        simulated_risk("newton", n=100, d=2, epsilon=1.0)
