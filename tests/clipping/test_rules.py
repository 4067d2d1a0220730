from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.clipping import Adaptive, Automatic, Clip, Declared
from privet.errors import InvalidParameter


@given(st.floats(1e-4, 1e4), st.floats(1e-3, 1 - 1e-9))
def test_gradient_and_count_together_cost_one_release(count_noise: float, part: float) -> None:
    """1/z_g² + 1/(2 count_noise)² ≤ 1/z², in exact arithmetic: the count is charged."""
    z = 2 * count_noise * part
    gradient = Adaptive(clip=1.0, count_noise=count_noise).gradient_multiplier(z)
    assert 1 / Fraction(gradient) ** 2 + 1 / (2 * Fraction(count_noise)) ** 2 <= 1 / Fraction(z) ** 2
    assert gradient >= z


def test_a_count_dearer_than_its_step_is_refused() -> None:
    """z < 2 × count_noise is enforced."""
    rule = Adaptive(clip=1.0, count_noise=0.5)
    for z in (1.0, 2.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="below 2 × count_noise"):
            rule.gradient_multiplier(z)


def test_the_clip_follows_the_quantile_and_stays_near_its_start() -> None:
    """Too many within shrinks the clip, too few grows it; never beyond 2^40 of the first, and no rate overflows."""
    rule = Adaptive(clip=2.0, quantile=0.5, rate=0.2, count_noise=1.0)
    assert rule.moved(2.0, 0.5) == 2.0
    assert rule.moved(2.0, 0.9) == pytest.approx(2 * math.exp(-0.08))
    assert rule.moved(2.0, 7.0) == rule.moved(2.0, 1.0) < 2 < rule.moved(2.0, 0.0) == rule.moved(2.0, -7.0)
    fast = Adaptive(clip=2.0, rate=1e6, count_noise=1.0)
    assert (fast.moved(2.0, 0.0), fast.moved(2.0, 1.0)) == (2.0**41, 2.0**-39)
    assert Adaptive(clip=2.0**-395, rate=1e6, count_noise=1.0).moved(2.0**-395, 1.0) == 2.0**-400


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda v: Clip(clip=v), [0, -1, math.nan, math.inf, "1"]),
        (lambda v: Declared(lipschitz=v), [0, -1, math.nan, math.inf, "1"]),
        (lambda v: Automatic(stability=v), [0, -1.0, math.nan, math.inf]),
        (lambda v: Adaptive(clip=1.0, count_noise=v), [0, -1.0, math.nan, math.inf, 1e-9, 1e9]),
        (lambda v: Adaptive(clip=1.0, count_noise=1.0, rate=v), [0, -1.0, math.nan, math.inf]),
        (lambda v: Adaptive(clip=1.0, count_noise=1.0, quantile=v), [0, 1, -1.0, math.nan]),
    ],
)
def test_parameters_that_bound_nothing_are_refused(make: Any, values: list[Any]) -> None:
    """Zero, negative, not finite, or of the wrong type: refused when the rule is written."""
    for value in values:
        with pytest.raises(InvalidParameter):
            make(value)


def test_rules_say_what_they_do() -> None:
    """Each rule describes itself for the guarantee; a declared constant is enforced, not believed."""
    assert "enforced by clipping" in Declared(lipschitz=1.0).describe()
    for rule in (Clip(clip=3.0), Automatic(clip=3.0), Adaptive(clip=3.0, count_noise=1.0)):
        assert "3" in rule.describe()
    assert Declared(lipschitz=3.0).clip == 3.0
    assert Automatic(clip=1.0, stability=0.5).factor(np.array([0.0, 0.5])).tolist() == [2.0, 1.0]
