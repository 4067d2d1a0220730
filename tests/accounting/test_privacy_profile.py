"""A profile is delta at each epsilon: certified, falling, and the same as asking one by one."""

from __future__ import annotations

import numpy as np
import pytest

from privet.accounting import Event, Gaussian, Pure, bounds, profile
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.mixture_grid import Kind
from privet.privacy import Neighbours

RUNS: list[tuple[Event, Neighbours]] = [
    (Gaussian(noise_multiplier=1.1).poisson(rate=256 / 60_000) * 14_062, "add_remove"),
    (Gaussian(noise_multiplier=1.1).poisson(rate=256 / 60_000) * 14_062, "replace_one"),
    (Gaussian(noise_multiplier=0.7).poisson(rate=1e-3) * 3_000, "zero_out"),
    (Gaussian(noise_multiplier=0.5).poisson(rate=1e-5) * 100, "zero_out"),
    (Gaussian(noise_multiplier=2.0) * 5, "zero_out"),
    (Pure(epsilon=0.3) * 7, "replace_one"),
]


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")  # of one rare run, near an epsilon of 0
@pytest.mark.parametrize(("run", "neighbours"), RUNS)
def test_a_profile_falls_and_is_what_single_questions_give(run: Event, neighbours: Neighbours) -> None:
    """Lines kept from one point to the next lose nothing: every point is within 1e-4 of its own bracket, not below."""
    epsilons = np.linspace(0.0, 6.0, 17)
    found = profile(run, epsilons, neighbours=neighbours)
    assert np.all(np.diff(found) <= 0)
    for e, upper in zip(epsilons[::4], found[::4], strict=True):
        low, high = bounds(run, epsilon=float(e), neighbours=neighbours)
        assert low <= upper <= max(high * (1 + 1e-4), high + 1e-18)


def test_points_come_back_in_the_order_asked() -> None:
    """Unsorted and repeated points are answered in their own places."""
    run, neighbours = RUNS[1]
    there = profile(run, [2.0, 0.5, 1.0, 0.5], neighbours=neighbours)
    assert there[1] == there[3] > there[2] > there[0]
    assert profile(run, [], neighbours=neighbours).shape == (0,)


def test_where_levels_give_out_plain_lines_take_over() -> None:
    """With little noise, points far out hold the truth and are as sharp as asked for one by one."""
    run = Gaussian(noise_multiplier=0.3).poisson(rate=0.05) * 100
    points = [45.0, 54.0, 58.0, 70.0, 90.0]
    for found, point in zip(profile(run, points, neighbours="add_remove"), points, strict=True):
        low, high = bounds(run, epsilon=point, neighbours="add_remove")
        assert low <= found <= high * (1 + 2e-5)


@pytest.mark.parametrize(("rate", "shift", "count"), [(0.05, 3.0, 100), (0.001, 1.0, 50)])
def test_both_directions_agree_at_epsilon_zero(rate: float, shift: float, count: int) -> None:
    """The total variation is that of either direction: so one of them is enough there."""
    kinds: tuple[Kind, Kind] = "remove", "add"
    there, back = (fourier_delta([(MixturePair(rate, shift, kind), count)], 0.0, points=1 << 15) for kind in kinds)
    assert max(there[0], back[0]) <= min(there[1], back[1])
    assert there[1] - there[0] < 1e-2 * there[1]
