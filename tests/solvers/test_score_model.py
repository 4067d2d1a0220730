"""The public model of a score: what gradients on its windows are, and which slope and intercept they speak for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from privet.arrays import Vector
from privet.solvers.score_model import Look, Window, believed, mean_odds, pulled, with_slope

SCORES = np.random.default_rng(0).normal(size=1_000_000)
POINTS = [np.array([1.8, -7.0]), np.array([1.0, 0.3]), np.array([0.2, 2.0]), np.array([6.0, -1.0])]


def look(window: Window, point: Vector, right: Vector, noise: Vector, stddev: float) -> Look:
    """What a gradient would be of normal scores, and noise."""
    gradient = Look(window=window, point=point, gradient=noise, noise=stddev).expected(right, 1.0)[0] + noise
    return Look(window=window, point=point, gradient=gradient, noise=stddev)


@pytest.mark.parametrize("right", POINTS)
def test_expected_gradients_are_those_of_normal_scores(right: Vector) -> None:
    """Against a million drawn scores, to five standard errors; its derivative, to a difference."""
    window = Window.about(right, told=1e3, long=None)
    point = right * [0.5, 1.0]
    rows = window.rows(SCORES)
    assert (np.square(rows).sum(axis=1) <= 1 + 1e-12).all()
    each = (expit(rows @ window.coefficients(point)) - expit(right[0] * SCORES + right[1]))[:, None] * rows
    asked = Look(window=window, point=point, gradient=np.zeros(2), noise=1.0)
    found, turn = asked.expected(right, 1.0)
    assert (np.abs(found - each.mean(axis=0)) < 5 * each.std(axis=0) / 1_000 + 1e-9).all()
    for place, small in enumerate(np.eye(2) * 1e-5):
        difference = asked.expected(right + small, 1.0)[0] - asked.expected(right - small, 1.0)[0]
        np.testing.assert_allclose(turn[:, place], difference / 2e-5, rtol=1e-5, atol=1e-9)
    assert asked.expected(right, 0.25)[0] == pytest.approx(0.25 * found)


def test_a_window_is_where_the_rare_class_is() -> None:
    """Of a half per cent, at 1.8 logits a standard deviation, about 1.7; of even classes about 0."""
    assert Window.about(np.array([1.8, -7.0]), told=1e3, long=None).centre == pytest.approx(1.7, abs=0.1)
    assert Window.about(np.array([1.8, 0.0]), told=1e3, long=None).centre == pytest.approx(0.0, abs=1e-9)
    assert Window.about(POINTS[0], told=1e9, long=None).long > Window.about(POINTS[0], told=1.0, long=None).long


@pytest.mark.parametrize("right", POINTS)
def test_looks_without_noise_find_what_is_right(right: Vector) -> None:
    """Five looks, each at what was likeliest before, to 1 %; from a slope three times too small."""
    start = right * [1 / 3, 1.0]
    point, looks = start, []
    for _ in range(5):
        window = Window.about(point, told=1e6, long=None)
        looks.append(look(window, point, right, np.zeros(2), 1e-7))
        point = believed(looks, start, weight=1.0, pull=0.0, spreads=(2.0, 0.5)).point
    np.testing.assert_allclose(point, right, rtol=0.01)


def test_the_doubt_about_a_slope_is_its_spread() -> None:
    """Over 400 noisy looks at what is right, slopes vary by what is said, to 15 % (four standard errors)."""
    right, rng, stddev = np.array([1.8, -7.0]), np.random.default_rng(1), 5e-5
    window = Window.about(right, told=1e3, long=8.0)  # nothing is cut: that would be doubted as well
    noise = rng.normal(size=(400, 2)) * stddev
    found = [
        believed([look(window, right, right, each, stddev)], right, weight=1.0, pull=0.0, spreads=(1e3, 1e3))
        for each in noise
    ]
    unsure = np.median([each.unsure for each in found])
    assert np.std([each.point[0] for each in found]) == pytest.approx(float(unsure), rel=0.15)
    assert unsure < 0.2  # else nothing is tested


def test_looks_drowned_in_noise_leave_the_mean_as_it_was() -> None:
    """The log odds of the mean move by less than their spread before, slope and intercept stay finite."""
    start, rng = np.array([1.0, -5.0]), np.random.default_rng(2)
    window = Window.about(start, told=1.0, long=None)
    for _ in range(50):
        looks = [look(window, start, start, rng.normal(size=2), 1.0)]
        found = believed(looks, start, weight=1.0, pull=0.0, spreads=(2.0, 0.5)).point
        assert np.isfinite(found).all()
        assert abs(mean_odds(found) - mean_odds(start)) < 0.5


@pytest.mark.parametrize("point", POINTS)
def test_another_slope_keeps_the_mean_and_a_penalty_the_balance(point: Vector) -> None:
    """With a slope of 0 the intercept is the log odds of the mean; a penalty's slope and the loss's add up to 0."""
    for slope in (0.0, 0.5, 3.0):
        assert mean_odds(with_slope(point, slope)) == pytest.approx(mean_odds(point), abs=1e-6)
    assert with_slope(point, 0.0)[1] == pytest.approx(mean_odds(point), abs=1e-6)
    assert np.array_equal(pulled(point, pull=0.0, weight=1.0), point)
    pull, weight = 0.05, 0.5
    slope, intercept = pulled(point, pull=pull, weight=weight)
    away = expit(slope * SCORES + intercept) - expit(point[0] * SCORES + point[1])
    assert weight * float((away * SCORES).mean()) == pytest.approx(-pull * slope, abs=2e-3)
    assert weight * float(away.mean()) == pytest.approx(0.0, abs=2e-3)
    assert 0 < slope < point[0]
    assert math.isfinite(intercept)
