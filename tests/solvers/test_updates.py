from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.solvers import Adafactor, Adam, AdamW, GradientStep

RNG = np.random.default_rng(0)
GRADIENTS = RNG.normal(size=(30, 2, 3))
VARIANCES = RNG.random(30)


def path(rule: Any, gradients: Any, start: Any, variances: Any = None) -> Any:
    move, theta, points = rule.start(), np.array(start, dtype=float), []
    for t, gradient in enumerate(gradients):
        theta = move(theta, gradient, 0.0 if variances is None else float(variances[t]))
        points.append(theta)
    return np.array(points)


def test_plain_steps_and_the_heavy_ball() -> None:
    """θ − η g, and θ − η v with v ← m v + g; step sizes may be functions of t from 1."""
    theta, v, expected = np.ones((2, 3)), np.zeros((2, 3)), []
    for t, g in enumerate(GRADIENTS, 1):
        v = 0.7 * v + g
        theta = theta - 0.3 / t * v
        expected.append(theta)
    rule = GradientStep(step_size=lambda t: 0.3 / t, momentum=0.7)
    assert path(rule, GRADIENTS, np.ones((2, 3))) == pytest.approx(np.array(expected), rel=1e-13)
    assert (path(GradientStep(step_size=0.5), GRADIENTS[:1], np.zeros((2, 3)))[0] == -0.5 * GRADIENTS[0]).all()


@pytest.mark.parametrize("corrected", [False, True])
def test_adam_is_the_papers(corrected: bool) -> None:
    """Ten lines of Kingma and Ba 2015, with the noise's variance taken out of v if corrected."""
    theta, m, v, phi, expected = np.ones((2, 3)), 0.0, 0.0, 0.0, []
    for t, (g, s2) in enumerate(zip(GRADIENTS, VARIANCES, strict=True), 1):
        m = 0.8 * m + 0.2 * g
        v = 0.9 * v + 0.1 * g**2
        phi = 0.9 * phi + 0.1 * s2
        v_hat = v / (1 - 0.9**t)
        if corrected:
            v_hat = np.maximum(v_hat - phi / (1 - 0.9**t), 1e-3)
        theta = theta - 0.05 * (m / (1 - 0.8**t)) / (np.sqrt(v_hat) + 1e-8)
        expected.append(theta)
    rule = Adam(step_size=0.05, beta1=0.8, beta2=0.9, corrected=corrected, floor=1e-3)
    assert path(rule, GRADIENTS, np.ones((2, 3)), VARIANCES) == pytest.approx(np.array(expected), rel=1e-12)


def test_adamw_decays_weights_apart_from_the_gradient() -> None:
    """θ ← Adam(θ) − η decay θ, at the θ before the step."""
    adam = Adam(step_size=lambda t: 0.1 / t, beta2=0.9)
    move, inner, theta = AdamW(adam=adam, decay=0.2).start(), adam.start(), np.ones((2, 3))
    for t, g in enumerate(GRADIENTS, 1):
        expected = inner(theta, g, 0.0) - 0.1 / t * 0.2 * theta
        theta = move(theta, g, 0.0)
        assert theta == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("matrix", [False, True])
def test_adafactor_is_the_papers(corrected: bool, matrix: bool) -> None:
    """Ten lines of Shazeer and Stern 2018: factored second moments, clipped updates."""
    theta = np.ones((2, 3)) if matrix else np.ones(6)
    gradients = GRADIENTS if matrix else GRADIENTS.reshape(30, 6)
    R: Any = 0.0
    C: Any = 0.0
    expected = []
    for t, (g, s2) in enumerate(zip(gradients, VARIANCES, strict=True), 1):
        beta = 1 - t**-0.8
        square = g**2 - (s2 if corrected else 0.0)
        if matrix:
            R = beta * R + (1 - beta) * square.mean(axis=1)
            C = beta * C + (1 - beta) * square.mean(axis=0)
            rows, columns = np.maximum(R, 1e-3), np.maximum(C, 1e-3)
            v = np.outer(rows, columns) / rows.mean()
        else:
            R = beta * R + (1 - beta) * square
            v = np.maximum(R, 1e-3)
        u = g / np.sqrt(v)
        u = u / max(1.0, math.sqrt((u**2).mean()) / 1.5)
        theta = theta - 0.1 * u
        expected.append(theta)
    rule = Adafactor(step_size=0.1, threshold=1.5, corrected=corrected, floor=1e-3)
    start = np.ones((2, 3)) if matrix else np.ones(6)
    assert path(rule, gradients, start, VARIANCES) == pytest.approx(np.array(expected), rel=1e-12)


def test_the_correction_takes_out_the_noise_that_is_there() -> None:
    """With gradients 1 plus noise of known variance 9, corrected Adam steps like noiseless Adam; plain Adam does not.

    Over 4,000 steps the second moment of a coordinate is 1 ± 0.25, and the median step of 200 of them 1 ± 0.02: the
    false-positive rate is below 1e-6. Without the correction the step is 0.32.
    """
    rng = np.random.default_rng(1)
    gradients = 1 + 3 * rng.normal(size=(4000, 200))
    lengths = {}
    for corrected in (False, True):
        rule = Adam(step_size=1.0, beta1=0.9995, beta2=0.9995, corrected=corrected, floor=1e-4)
        points = path(rule, gradients, np.zeros(200), np.full(4000, 9.0))
        lengths[corrected] = float(np.median(points[-2] - points[-1]))
    assert lengths[False] == pytest.approx(10**-0.5, rel=0.1)
    assert lengths[True] == pytest.approx(1.0, rel=0.1)


def test_a_rule_serves_many_runs() -> None:
    """`start` makes a fresh memory each time."""
    for rule in (
        GradientStep(step_size=0.1, momentum=0.9),
        Adam(step_size=0.1),
        AdamW(adam=Adam(step_size=0.1)),
        Adafactor(step_size=0.1),
    ):
        assert (path(rule, GRADIENTS, np.ones((2, 3))) == path(rule, GRADIENTS, np.ones((2, 3)))).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: GradientStep(step_size=0.0),
        lambda: GradientStep(step_size=-1.0),
        lambda: GradientStep(step_size=math.nan),
        lambda: GradientStep(step_size=math.inf),
        lambda: GradientStep(step_size=0.1, momentum=1.0),
        lambda: GradientStep(step_size=0.1, momentum=-0.1),
        lambda: Adam(step_size=0.0),
        lambda: Adam(step_size=0.1, beta1=1.0),
        lambda: Adam(step_size=0.1, beta2=math.nan),
        lambda: Adam(step_size=0.1, stability=0.0),
        lambda: Adam(step_size=0.1, floor=-1.0),
        lambda: AdamW(adam=Adam(step_size=0.1), decay=-1.0),
        lambda: AdamW(adam=Adam(step_size=0.1), decay=math.inf),
        lambda: Adafactor(step_size=-0.1),
        lambda: Adafactor(step_size=0.1, decay=0.0),
        lambda: Adafactor(step_size=0.1, threshold=0.0),
    ],
)
def test_rules_that_would_not_descend_are_refused(make: Any) -> None:
    """η ≤ 0, shares outside [0, 1), and what is not finite are refused when the rule is written."""
    with pytest.raises(InvalidParameter, match="Expected"):
        make()
