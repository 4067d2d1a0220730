"""Runs at tiny rates: absurd outcomes left out, against mpmath, the Fourier accountant and the plain contour."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from privet.accounting import Event, Gaussian, bounds
from privet.accounting.contour.integral import contour_delta, contour_epsilon
from privet.accounting.contour.rare_outcomes import (
    line_delta,
    line_epsilon,
    rare_delta,
    rare_epsilon,
    surely_free,
    without_rare,
)
from privet.accounting.fourier.brackets import fourier_epsilon
from privet.accounting.pairs.dominating import directions
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.truncated_mixture import CutPair
from privet.privacy import Neighbours

mpmath.mp.dps = 30

NODES = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(4, mpmath.mp.prec)  # 24 of them

CUTS = [
    (CutPair(MixturePair(1e-6, 1 / 0.7, "remove"), 9.9), 48.0),
    (CutPair(MixturePair(2e-6, 1 / 22, "remove"), 8.5), 1.3e6),
    (CutPair(MixturePair(1e-5, 4.0, "remove"), 12.0), 0.8),
    (CutPair(MixturePair(5e-6, 1 / 55, "replace"), 11.3), 1e5),
    (CutPair(MixturePair(7e-4, 1.03, "replace"), 8.4), 20.0),
]

# noise, rate, steps, δ, neighbours: the corner in which nothing else is both certified and narrow
CORNER: list[tuple[float, float, int, float, Neighbours]] = [
    (0.7, 1e-6, 1_000_000, 1e-9, "add_remove"),
    (0.25, 1e-5, 100_000, 1e-7, "add_remove"),
    (0.3, 1e-4, 1_000, 1e-5, "replace_one"),
    (0.2, 1e-6, 1_000_000, 1e-9, "add_remove"),
    (0.917, 1.33e-6, 29, 1.4e-17, "add_remove"),
    (1.35, 3e-5, 3, 3e-14, "add_remove"),
    (0.6384, 2.148e-6, 3847, 1.667e-4, "add_remove"),
    (0.7325, 1.76e-5, 207_086, 2e-14, "replace_one"),
    (22.8, 1e-6, 470, 3.5e-7, "add_remove"),
    (9.75, 2.9e-6, 52_136, 8e-18, "add_remove"),
    (48.0, 1.4e-6, 1403, 2.8e-17, "replace_one"),
]


def sgd(noise: float, rate: float, steps: int) -> Event:
    return Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps


def exact_moments(cut: CutPair, orders: Sequence[complex]) -> list[Any]:
    """M(t) at each order by quadrature with thirty digits."""
    q, s, totals = mpmath.mpf(cut.pair.rate), mpmath.mpf(cut.pair.shift), [mpmath.mpf(0)] * len(orders)
    for left, right in itertools.pairwise(np.linspace(-12 - cut.pair.shift, cut.cut, 120).tolist()):
        centre, half = (mpmath.mpf(right) + left) / 2, (mpmath.mpf(right) - left) / 2
        for node, weight in NODES:
            x = centre + half * node
            up, down = (mpmath.log(1 - q + q * mpmath.exp(sign * s * x - s * s / 2)) for sign in (1, -1))
            density, loss = half * weight * mpmath.npdf(x), up - (down if cut.pair.kind == "replace" else 0)
            for k, t in enumerate(orders):
                totals[k] += density * mpmath.exp(up + mpmath.mpmathify(t) * loss)
    return totals


@pytest.mark.medium
@pytest.mark.parametrize(("cut", "tilt"), CUTS, ids=range(len(CUTS)))
def test_cut_moments_are_within_their_bounds(cut: CutPair, tilt: float) -> None:
    """log M of the cut pair is as exact as it says, on both ways to compute it."""
    line, line_error = cut.log_moments(tilt, tilt / 4, 41)
    orders = (complex(tilt), tilt * (1 + 10j))
    for t, exact in zip(orders, exact_moments(cut, orders), strict=True):
        value, error = cut.log_moment(np.array([t]))
        found = [(value[0], error[0])] + ([(line[40], line_error[40])] if t.imag else [])
        log_exact = mpmath.log(exact)
        for one, bound in found:
            assert abs(mpmath.expm1(mpmath.mpmathify(complex(one)) - log_exact)) <= bound < 1e-10


@pytest.mark.parametrize(("cut", "tilt"), CUTS, ids=range(len(CUTS)))
def test_cut_moments_decay_at_least_as_promised(cut: CutPair, tilt: float) -> None:
    """log M(tilt)/|M(tilt + iv)| is at least `decay` for every v beyond the frequency."""
    frequency = tilt * np.geomspace(0.1, 100, 10)
    bound = cut.decay(tilt, frequency)
    top = cut.log_moment(np.array([complex(tilt)]))[0].real
    assert bound[-1] > 0
    for k, u in enumerate(frequency):
        beyond = cut.log_moment(tilt + 1j * u * np.array([1.0, 1.4, 2.2]))[0].real
        assert np.all(top - beyond >= bound[k] * (1 - 1e-9) - 1e-15)


@pytest.mark.medium
@pytest.mark.parametrize(("noise", "rate", "steps", "delta", "neighbours"), CORNER)
def test_the_corner_is_narrow_and_the_fourier_accountant_agrees(
    noise: float, rate: float, steps: int, delta: float, neighbours: Neighbours
) -> None:
    """The bracket is within 1e-5 where it was up to all of epsilon, and overlaps with the Fourier accountant's."""
    run = sgd(noise, rate, steps)
    low, high = bounds(run, delta=delta, neighbours=neighbours)
    assert 0 < high - low <= 1e-5 * high
    witness = [fourier_epsilon(way.steps, delta, points=1 << 16) for way in directions(run, neighbours)]
    assert low <= max(upper for _, upper in witness) * (1 + 1e-12)
    assert high >= max(lower for lower, _ in witness) * (1 - 1e-12)


@pytest.mark.medium
@pytest.mark.parametrize(("noise", "rate", "steps", "delta", "neighbours"), CORNER[:3] + CORNER[7:10])
def test_delta_and_epsilon_agree_in_the_corner(
    noise: float, rate: float, steps: int, delta: float, neighbours: Neighbours
) -> None:
    """At the certified ends of epsilon, certified δ lies on the right side of the δ asked for."""
    steps_of_run = directions(sgd(noise, rate, steps), neighbours)[0].steps
    found = line_epsilon(steps_of_run, delta)
    assert found is not None
    for epsilon, side in zip(found, (1, -1), strict=True):
        at = line_delta(steps_of_run, epsilon)
        assert at is not None
        assert at[1] - at[0] < 1e-4 * at[1]
        assert at[1] >= delta if side > 0 else at[0] <= delta


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [(1.1, 256 / 60_000, 14_062, 1e-5), (2.0, 0.01, 5_000, 1e-8), (0.8, 0.002, 20_000, 1e-6), (5.0, 0.1, 300, 1e-6)],
)
def test_ordinary_runs_are_priced_as_before(noise: float, rate: float, steps: int, delta: float) -> None:
    """Where the plain line is narrow it alone answers, and leaving out rare outcomes would have told the same."""
    for way in directions(sgd(noise, rate, steps), "add_remove"):
        plain = contour_epsilon(way.steps, delta, patient=False)
        assert plain is not None
        assert line_epsilon(way.steps, delta) == plain
        other = rare_epsilon(way.steps, delta)
        if way.name == "forward":
            assert other is not None
            assert max(plain[0], other[0]) <= min(plain[1], other[1])
            at, rare = contour_delta(way.steps, plain[1]), rare_delta(way.steps, plain[1], delta)
            assert at is not None
            assert rare is not None
            assert max(at[0], rare[0]) <= min(at[1], rare[1])


@pytest.mark.medium
def test_more_of_anything_costs_more() -> None:
    """epsilon rises with steps and rate and falls with noise and δ, across the ways in which runs are priced."""

    def priced(noise: float = 0.9, rate: float = 2e-5, steps: int = 300, delta: float = 1e-10) -> tuple[float, float]:
        low, high = bounds(sgd(noise, rate, steps), delta=delta, neighbours="add_remove")
        return low, high

    chains = [
        [priced(steps=steps) for steps in (3, 30, 300, 3_000, 30_000, 300_000)],
        [priced(rate=rate) for rate in (2e-6, 2e-5, 2e-4, 2e-3, 2e-2)],
        [priced(noise=noise) for noise in (30.0, 5.0, 2.0, 1.2, 0.7, 0.4, 0.25)],
        [priced(delta=delta) for delta in (1e-4, 1e-6, 1e-9, 1e-12, 1e-15, 1e-18)],
    ]
    for chain in chains:
        for (low, _), (_, high) in itertools.pairwise(chain):
            assert low <= high
        assert chain[0][1] < chain[-1][0]


def test_phases_lose_their_rare_outcomes_too() -> None:
    """Two unlike phases at tiny rates: what is left out is counted, and the Fourier accountant agrees."""
    run = sgd(8.0, 3e-6, 40_000) + sgd(15.0, 1e-5, 9_000)
    low, high = bounds(run, delta=1e-15, neighbours="add_remove")
    assert high - low <= 1e-5 * high
    witness = [fourier_epsilon(way.steps, 1e-15, points=1 << 16) for way in directions(run, "add_remove")]
    assert low <= max(upper for _, upper in witness)
    assert high >= max(lower for lower, _ in witness)
    found = without_rare(directions(run, "add_remove")[0].steps, 1e-23)
    assert found is not None
    assert 0 < found[1] <= 1.001e-23
    assert without_rare(directions(run, "add_remove")[1].steps, 1e-23) is None


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_small_total_variation_costs_nothing(neighbours: Neighbours) -> None:
    """epsilon is 0 where total variations add up to δ, and not at a third of that."""
    run = sgd(0.5, 1e-6, 10)
    size = {"add_remove": 1e-5 * (2 * 0.8413447460685429 - 1), "replace_one": 1e-5 * (2 * 0.9772498680518208 - 1)}
    steps = directions(run, neighbours)[0].steps
    assert surely_free(steps, size[neighbours] * (1 + 1e-9))
    assert not surely_free(steps, size[neighbours] * (1 - 1e-9))
    assert bounds(run, delta=1.01 * size[neighbours], neighbours=neighbours).upper == 0.0
    assert bounds(run, delta=0.3 * size[neighbours], neighbours=neighbours).lower > 0.0
