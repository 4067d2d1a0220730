"""The tail of a line where nothing decays, and the moments at large imaginary orders it is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from privet.accounting.contour import turned_mixture
from privet.accounting.contour.fermi_tail import _lay, _neglected
from privet.accounting.contour.turned_mixture import TurnedMixture
from privet.accounting.pairs.mixture import MixturePair

PAIRS = [
    ("remove", 1e-3, 1.0),
    ("replace", 0.01, 1.6),
    ("remove", 0.3, 2.8),
    ("replace", 0.3, 0.8),
    ("replace", 0.5, 3.0),
]


def moments(pair: MixturePair, orders: Sequence[complex]) -> list[mp.mpc]:
    """M(t) at each order with 25 digits, by a trapezoid sum on another line than the code's; its strip gains e^-80."""
    q, s, most = mp.mpmathify(pair.rate), mp.mpmathify(pair.shift), max(t.real for t in orders)
    right = 11 + pair.shift * (1 + most)
    left = -11 - (pair.shift * (1 + most) if pair.kind == "replace" else 0.0)
    step, totals = 0.05 / s, [mp.mpf(0)] * len(orders)
    for k in range(int((right - left) / step) + 1):
        xi = left + step * k + 0.7j * mp.pi / s
        up = mp.log(1 - q + q * mp.exp(s * xi - s * s / 2))
        down = mp.log(1 - q + q * mp.exp(-s * xi - s * s / 2)) if pair.kind == "replace" else 0
        base, loss = up - xi * xi / 2, up - down
        totals = [total + mp.exp(base + mp.mpmathify(t) * loss) for total, t in zip(totals, orders, strict=True)]
    return [total * step / mp.sqrt(2 * mp.pi) for total in totals]


@pytest.mark.medium
@pytest.mark.parametrize(("kind", "rate", "shift"), PAIRS)
def test_turned_moments_are_within_their_bound(kind: Any, rate: float, shift: float) -> None:
    """log M on the bottom line agrees with a 25-digit sum within the bound it states, at both ends of the line."""
    pair = MixturePair(rate, shift, kind)
    turned = TurnedMixture.of(pair, 3, 6.0)
    t = np.array([0.0, 6.0]) + 1j * turned.least_height(6.0)
    value, error = turned.log_moment(t)
    with mp.workdps(25):
        for exact, found, wrong in zip(moments(pair, t.tolist()), value, error, strict=True):
            assert abs(mp.exp(mp.mpmathify(found) / 3) - exact) <= mp.expm1(wrong / 3) * abs(exact) * 2
    assert np.all(error < 0.01)


@pytest.mark.parametrize(("kind", "rate", "shift"), PAIRS)
def test_no_moment_exceeds_its_box(kind: Any, rate: float, shift: float) -> None:
    """|M| at random orders of a box is at most the box's bound, which is taken on another line."""
    pair = MixturePair(rate, shift, kind)
    turned = TurnedMixture.of(pair, 1, 8.0)
    low = turned.least_height(8.0)
    rng = np.random.default_rng(5)
    for left, width, factor in ((0.0, 0.5, 1.0), (2.0, 3.0, 1.3), (7.5, 0.5, 4.0)):
        high = factor * low * 1.5
        box = np.array([left]), np.array([left + width]), np.array([factor * low])
        bound = float(turned.log_modulus(*box, np.hypot(1 + box[1], high))[0])
        t = left + width * rng.random(12) + 1j * (factor * low + (high - factor * low) * rng.random(12))
        value, error = pair.log_moment(t)
        assert np.all(value.real - np.log1p(np.minimum(error, 0.5)) <= bound + 1e-9)


@pytest.mark.parametrize(("kind", "rate", "shift"), PAIRS)
def test_tails_at_two_heights_differ_by_the_terms_between(kind: Any, rate: float, shift: float) -> None:
    """The tail from K is the terms from K to K′, summed one by one, plus the tail from K′: within what both neglect."""
    pair, count, tilt, epsilon, end = MixturePair(rate, shift, kind), 3, 2.0, 4.0, 8.0
    spacing = 2 * math.pi * tilt / 40
    turned = TurnedMixture.of(pair, count, end + 1.25 * spacing)
    first = math.ceil(turned.least_height(end + 1.25 * spacing) / spacing + 4.5)
    sums, bounds = [], []
    for k in (first, first + 37):
        height = (k - 0.5) * spacing
        t, weights, log_m, error = _lay([turned], [], tilt, spacing, end, height)
        terms = np.exp(log_m - t * epsilon) * weights
        sums.append(float(terms.imag.sum()))
        wrong = math.exp(_neglected([turned], [], tilt, spacing, end, height, epsilon))
        bounds.append(wrong + float((np.abs(terms) * np.expm1(error)).sum()))
    t = tilt + 1j * spacing * np.arange(first, first + 37)
    value, _ = pair.log_moment(t)
    between = spacing / math.pi * np.exp(count * value - t * epsilon) / (t * (1 + t))
    gap = abs(sums[0] - sums[1] - float(between.real.sum()))
    size = float(np.abs(between).sum())
    assert gap <= min(sum(bounds) + 1e-12 * size, 1e-5 * size)


def test_a_strip_that_reaches_too_far_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the strip's lower edge at 0.3π, as it once was, the bound on the moments says nothing."""
    pair = MixturePair(1e-3, 2.0, "remove")
    honest = TurnedMixture.of(pair, 3, 12.0)
    t = np.array([12.0 + 1j * honest.least_height(12.0)])
    monkeypatch.setattr(turned_mixture, "_LOW", 0.3 * math.pi)
    mutant = TurnedMixture.of(pair, 3, 12.0)
    assert honest.log_moment(t)[1][0] < 1e-9
    assert mutant.log_moment(t)[1][0] > 1e-3
