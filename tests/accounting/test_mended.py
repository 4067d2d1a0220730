"""Bounds that were once too tight, found by a review that tried to break them: each stays mended.

Truths are from the Fourier accountant or from mpmath with 30 digits, as stated.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from privet.accounting import Approximate, ExponentialMechanism, Gaussian, Pure, bounds, epsilon
from privet.accounting.contour.big_steps import Levels
from privet.accounting.contour.integral import contour_delta
from privet.accounting.contour.rare_outcomes import line_epsilon, rare_epsilon, without_rare
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.blurred_window import Window
from privet.accounting.pairs.elementary import LaplacePair
from privet.accounting.pairs.fixed_size import FixedSizePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.sampled import SampledLaplacePair
from privet.accounting.stepwise import basic_epsilon
from privet.errors import NoProvenBound


def test_laplace_losses_far_apart_do_not_decay() -> None:
    """Where e^{c·distance} overflows, the decay of Laplace noise is still the true one (it was log 2 a step)."""
    pair, tilt = LaplacePair(20.0), 40.0
    frequency = np.array([3.0])
    value, _ = pair.log_moment(np.array([complex(tilt), tilt + 3.0j]))
    assert pair.decay(tilt, frequency)[0] <= value[0].real - value[1].real + 1e-12
    found = contour_delta([(pair, 65)], 1299.95)
    low, high = fourier_delta([(pair, 65)], 1299.95)
    assert found is None or (found[0] <= high and low <= found[1])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("rate", "shift", "kind", "t"),
    [
        (0.01, 5.0, "add", 10.0),
        (0.01, 5.0, "replace", 0.05 + 0.3j),
        (0.5, 0.1, "add", 400.0),
        (0.9, 1.0, "remove", 1 + 8j),
        (1 - 1.45e-8, 4.46, "add", 16.89 + 0.2j),
        (1 - 2.5e-10, 6.01, "add", 0.3),
        (1 - 1.2e-11, 0.843, "replace", 16.5),
        (0.9999, 0.5, "replace", 20.0),
    ],
)
def test_moments_keep_their_bound_where_the_grid_was_short(rate: float, shift: float, kind: str, t: complex) -> None:
    """The mass of w₊ and w₋ far out, peaks left of 0, rates near 1 and moments near 0 are inside the stated error."""
    value, error = MixturePair(rate, shift, kind).log_moment(np.array([complex(t)]))  # type: ignore[arg-type]
    with mp.workdps(30):
        q, s, order = mp.mpf(rate), mp.mpf(shift), mp.mpmathify(complex(t))

        def weight(x: mp.mpf, sign: int) -> mp.mpf:
            return 1 - q + q * mp.exp(sign * s * x - s * s / 2)

        powers = {"remove": (1 + order, 0), "add": (-order, 0), "replace": (1 + order, -order)}[kind]
        step = mp.mpf(1) / 24  # the trapezoid rule, whose error is e^{-2π·24·strip}
        points = (step * k for k in range(-60 * 24, 60 * 24))
        parts = [(sign, power) for sign, power in zip((1, -1), powers, strict=True) if power]
        truth = step * mp.fsum(mp.npdf(x) * mp.fprod(weight(x, sign) ** n for sign, n in parts) for x in points)
        assert abs(mp.exp(mp.mpmathify(complex(value[0]))) / truth - 1) <= error[0]


def test_a_million_joining_steps_are_not_undercut() -> None:
    """Truth 9.99999998e-7 by a wider grid; the upper bound was 9.99998944e-7."""
    found = contour_delta([(MixturePair(0.01, 5.0, "add"), 10**6)], 9188.4914511)
    assert found is not None
    assert found[1] >= 9.99999997e-7


@pytest.mark.parametrize(
    ("rate", "noise", "delta", "truth"),
    [
        # mpmath, 130 digits, one step in closed form and the other summed: delta is 1.0000035e-100 and 1.0000002e-100
        (0.9999, 5.0, 1e-100, 12.0925927),
        (0.99, 20.0, 1e-100, 2.95226074),
    ],
)
def test_rates_near_one_are_not_undercut_when_a_record_changes(
    rate: float, noise: float, delta: float, truth: float
) -> None:
    """The integrand of high orders lay beyond the grid: the bound was up to 2.1e-6 below the truth."""
    low, high = bounds(Gaussian(noise_multiplier=noise).poisson(rate=rate) * 2, delta=delta, neighbours="replace_one")
    assert truth <= high <= truth * (1 + 1e-8)
    assert low <= high


@pytest.mark.parametrize(("rate", "distance"), [(1 - 1e-12, 40.0), (1 - 1e-6, 30.0), (0.7, 1.0), (1e-9, 0.01)])
def test_ends_of_sampled_laplace_losses_keep_their_digits(rate: float, distance: float) -> None:
    """log(1 - q + q·e^{-d}) where it is far below 0 (it was off by up to 1.5e-7)."""
    with mp.workdps(40):
        truth = [mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(mp.mpf(e))) for e in (-distance, distance)]
        found = SampledLaplacePair(rate, distance, "remove")
        assert abs(found.lowest / truth[0] - 1) < 1e-15
        assert abs(found.highest / truth[1] - 1) < 1e-15


@pytest.mark.medium
@pytest.mark.parametrize(("rate", "distance", "t"), [(1 - 1e-10, 15.0, 3.0), (1 - 1e-6, 8.0, 2.0 + 5.0j)])
def test_sampled_laplace_moments_keep_their_bound_at_rates_near_one(rate: float, distance: float, t: complex) -> None:
    """Where w is near 0, 1 + (w - 1) had lost its digits."""
    value, error = SampledLaplacePair(rate, distance, "add").log_moment(np.array([complex(t)]))
    with mp.workdps(30):
        q, d, order = mp.mpf(rate), mp.mpf(distance), mp.mpmathify(complex(t))

        def power(y: mp.mpf) -> mp.mpf:
            return (1 - q + q * mp.exp(y)) ** -order

        between = mp.quad(lambda y: mp.exp(-(d + y) / 2) / 4 * power(y), mp.linspace(-d, d, 61))
        truth = power(-d) / 2 + power(d) * mp.exp(-d) / 2 + between
        assert abs(truth * mp.exp(-mp.mpmathify(complex(value[0]))) - 1) <= error[0]


def test_tiny_declared_epsilons_are_amplified_without_cancellation() -> None:
    """log(1 + q(e^ε - 1)) to 1e-12, and never below it (it was 3.6e-5 too low)."""
    for size in (1.5488e-12, 3e-11, 7e-10):
        price = epsilon(Pure(epsilon=size).poisson(rate=0.5), delta=1e-30, neighbours="add_remove")
        truth = math.log1p(0.5 * math.expm1(size))
        assert truth * (1 - 1e-15) <= price <= truth * (1 + 1e-6)


@pytest.mark.parametrize(
    "declared", [Pure(epsilon=1.0), Approximate(epsilon=1.0, delta=1e-6), ExponentialMechanism(epsilon=1.0)]
)
def test_declared_parts_in_fixed_size_batches_are_refused_for_emptied_records(declared: Pure) -> None:
    """Two outcomes with odds e and 1/e against the empty record: batch 1 of 2 costs 0.814, not log(1 + (e-1)/2)."""
    with pytest.raises(NoProvenBound):
        bounds(declared.without_replacement(batch=1, records=2), delta=1e-6, neighbours="zero_out")


def test_basic_composition_does_not_overspend_delta() -> None:
    """Ten deltas of 1e-6 do not fit into a hair less than 1e-5."""
    run = Approximate(epsilon=1.0, delta=1e-6) * 10
    assert math.isinf(basic_epsilon(run, "replace_one", 1e-5 * (1 - 5e-13)))


def test_the_fixed_size_decay_uses_the_right_phase() -> None:
    """Where (1 + 2c)q is about 1 the phase of the two verticals does not cancel: the bound stays below the truth."""
    pair, tilt = FixedSizePair(0.05, 1.0), 9.5
    frequency = np.geomspace(0.5, 40.0, 12)
    value, error = pair.log_moment(np.concatenate([[tilt], tilt + 1j * frequency]))
    fallen = value[0].real - value[1:].real + error[0] + error[1:]
    assert np.all(pair.decay(tilt, frequency) <= fallen + 1e-12)


def test_cuts_and_levels_leave_rates_near_one_alone() -> None:
    """There log w₋ has lost the digits that their bounds count on: epsilon was 1e-4 below the truth, δ 2 % above."""
    rate, shift, delta = 1 - 1.5777739590652082e-12, 2.707590191681868, 4.859601756595654e-18
    pair = MixturePair(rate, shift, "replace")
    with mp.workdps(40):
        q, s, wrong = mp.mpf(rate), mp.mpf(shift), mp.mpf("53.60707020271572")  # what was returned
        x = (wrong / 2 + mp.asinh((1 - q) * mp.sinh(wrong / 2) / (q * mp.exp(-s * s / 2)))) / s
        low = (1 - q) * mp.ncdf(-x) + q * mp.ncdf(-s - x)
        assert (1 - q) * mp.ncdf(-x) + q * mp.ncdf(s - x) - mp.exp(wrong) * low > 1.019 * delta
    found = line_epsilon([(pair, 1)], delta)
    assert found is None or found[1] > 53.613109
    assert without_rare([(pair, 1)], 1e-8 * delta) is None
    assert rare_epsilon([(pair, 1)], delta) is None
    assert Levels.laid(pair, 1, 53.6, delta) is None
    kept = without_rare([(pair, 1), (MixturePair(1e-3, 1.0, "replace"), 5)], 1e-20)
    assert kept is not None
    assert kept[0][0] == (pair, 1)


def test_windows_far_left_count_what_lies_left_of_their_nodes() -> None:
    """Left of the first node, a window whose thresholds lie there is not bounded by its factor at that node."""
    window = Window(MixturePair(1e-3, 0.5, "remove"), 3.0, -16.0, -15.0, 0.5, 1.0, 45.0)
    start = window.cut + float(window._nodes()[0].tau[0])
    assert start > window.high
    _, missed = window._left(np.array([start]), np.array([0.0]), np.array([1.0]))
    with mp.workdps(30):
        between = mp.quad(
            lambda x: mp.npdf(x) * (mp.ncdf((x + 16) / 0.5) - mp.ncdf((x + 15) / 0.5)), [-20, -17, -15, -13, start]
        )
    assert missed[0] >= between * (1 - 1e-3) ** 2
