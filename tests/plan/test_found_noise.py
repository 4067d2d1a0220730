"""The least noise of a family of runs is looked for once, and never believed without asking for its price."""

from __future__ import annotations

from typing import Any

import pytest

from privet.accounting import Event, Gaussian, Laplace, calibrate, epsilon
from privet.plan import found_noise
from privet.plan.found_noise import least_scale
from privet.privacy import Budget

BUDGET = Budget(epsilon=1, delta=1e-6)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was looked for, anew in each test."""
    found: list[Any] = []

    def counted(run: Any, **asked: Any) -> float:
        found.append(asked)
        return calibrate(run, **asked)

    found_noise._found.cache_clear()
    monkeypatch.setattr(found_noise, "calibrate", counted)
    return found


def mixed(noise: float) -> Event:
    return Gaussian(noise_multiplier=noise) * 9 + Laplace(scale=50.0)


def test_a_family_is_looked_for_once(searches: list[Any]) -> None:
    """The same runs, budget and relation get the same scale without a search; anything else is looked for."""
    first = least_scale(mixed, BUDGET, "zero_out")
    assert least_scale(lambda s: mixed(s), BUDGET, "zero_out") == first
    assert len(searches) == 1
    least_scale(mixed, BUDGET, "replace_one")
    least_scale(mixed, Budget(epsilon=1, delta=1e-7), "zero_out")
    assert least_scale(lambda s: mixed(3 * s), BUDGET, "zero_out") == pytest.approx(first / 3)
    assert least_scale(lambda s: mixed(s) + Laplace(scale=50.0), BUDGET, "zero_out") > first
    assert len(searches) == 5


def test_what_is_known_is_priced_before_it_is_used(searches: list[Any]) -> None:
    """A family that only looks the same where two of its runs are compared gets noise of its own; so does a bad guess.

    Mutant: without the price, a third of the noise would be used.
    """
    known = least_scale(mixed, BUDGET, "zero_out")

    def false_friend(scale: float) -> Event:
        return mixed(scale) if scale in (1.0, 2.0) else mixed(scale / 3)

    for guess in (known, 0.5):
        scale = least_scale(false_friend, BUDGET, "zero_out", guess=guess)
        assert epsilon(false_friend(scale), delta=1e-6, neighbours="zero_out") <= 1
    assert len(searches) == 2
