"""Big steps told from small ones: blurred windows against mpmath, and levels against exact answers and each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from privet.accounting.contour.big_steps import Levels
from privet.accounting.contour.rough_epsilon import one_step_delta
from privet.accounting.pairs.blurred_window import Window, _normal
from privet.accounting.pairs.mixture import MixturePair

mpmath.mp.dps = 30

WINDOWS = [
    Window(MixturePair(3.3e-5, 2.23, "remove"), 5.3, 3.1, 4.0, 0.157, 50.0, 45.0),
    Window(MixturePair(3.5e-5, 2.09, "replace"), 7.55, 5.32, 6.3, 0.168, 5.0, 45.0),
    Window(MixturePair(3.5e-5, 2.09, "replace"), 9.55, 6.3, math.inf, 0.168, 2.0, 45.0),
    Window(MixturePair(3e-5, 0.74, "remove"), 8.0, 3.3, 5.0, 0.47, 3000.0, 45.0),
]


NODES = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(4, mpmath.mp.prec)  # 24 of them


def integral(function: Callable[[float], Any], places: Iterable[float]) -> Any:
    """Composite Gauss-Legendre rule with thirty digits."""
    edges = [mpmath.mpf(place) for place in sorted(places)]
    total = function(edges[0]) * 0
    for left, right in itertools.pairwise(edges):
        centre, half = (mpmath.mpf(right) + left) / 2, (mpmath.mpf(right) - left) / 2
        for x, weight in NODES:
            total += half * weight * function(centre + half * x)
    return total


def exact_moments(window: Window, orders: Sequence[complex]) -> list[tuple[Any, Any]]:
    """M(t) - 1 and B(t) at each order by quadrature with thirty digits."""
    q, s = mpmath.mpf(window.pair.rate), mpmath.mpf(window.pair.shift)

    def beyond(x: float, threshold: float) -> Any:
        return mpmath.ncdf((x - threshold) / window.blur) if math.isfinite(threshold) else mpmath.mpf(0)

    def integrand(x: float) -> Any:
        up, down = (mpmath.log(1 - q + q * mpmath.exp(sign * s * x - s * s / 2)) for sign in (1, -1))
        density, loss = mpmath.npdf(x), up - (down if window.pair.kind == "replace" else 0)
        low, high = beyond(x, window.low), beyond(x, window.high)
        powers = [density * mpmath.exp(up + mpmath.mpmathify(t) * loss) for t in orders]
        return mpmath.matrix([part * share for part in powers for share in (1 - high, low - high)])

    found = integral(integrand, np.linspace(-12 - window.pair.shift, window.cut, 36).tolist())
    return [(found[2 * k] - 1, found[2 * k + 1]) for k in range(len(orders))]


def one_step(pair: MixturePair, epsilon: Any) -> Any:
    """δ(epsilon) of one step, thirty digits."""
    q, s = mpmath.mpf(pair.rate), mpmath.mpf(pair.shift)
    if pair.kind == "remove":
        excess = mpmath.expm1(epsilon) + q
        if excess <= 0:
            return 1 - mpmath.exp(epsilon)
        x = mpmath.log(excess / q) / s + s / 2
        return (1 - q) * mpmath.ncdf(-x) + q * mpmath.ncdf(s - x) - mpmath.exp(epsilon) * mpmath.ncdf(-x)
    x = (epsilon / 2 + mpmath.asinh((1 - q) * mpmath.sinh(epsilon / 2) / (q * mpmath.exp(-s * s / 2)))) / s
    low = (1 - q) * mpmath.ncdf(-x) + q * mpmath.ncdf(-s - x)
    return (1 - q) * mpmath.ncdf(-x) + q * mpmath.ncdf(s - x) - mpmath.exp(epsilon) * low


def two_steps(pair: MixturePair, epsilon: float) -> float:
    """δ(epsilon) of two steps by one quadrature, with nodes crowded where the second's loss starts."""
    q, s = mpmath.mpf(pair.rate), mpmath.mpf(pair.shift)

    def integrand(x: float) -> Any:
        up, down = (1 - q + q * mpmath.exp(sign * s * x - s * s / 2) for sign in (1, -1))
        loss = mpmath.log(up) - (mpmath.log(down) if pair.kind == "replace" else 0)
        return mpmath.npdf(x) * up * one_step(pair, epsilon - loss)

    places = set(np.linspace(-12 - pair.shift, 16 + pair.shift, 50).tolist())
    if pair.kind == "remove":
        kink = float(mpmath.log((mpmath.exp(epsilon - mpmath.log(1 - q)) - (1 - q)) / q) / s + s / 2)
    else:
        kink = float(
            (epsilon / 2 + mpmath.asinh((1 - q) * mpmath.sinh(epsilon / 2) / (q * mpmath.exp(-s * s / 2)))) / s
        )
    places |= {kink} | {kink + sign * 2.0**-k for k in range(1, 20) for sign in (1, -1)}
    return float(integral(integrand, places))


def test_the_complex_error_function_is_as_exact_as_assumed() -> None:
    """Φ at complex arguments is good to the relative error that the windows allow for it."""
    for real in np.linspace(-9, 0, 13):
        for imaginary in (0.0, 0.4, 1.1, 2.3, 4.4):
            z = complex(real, imaginary)
            exact = mpmath.erfc(-mpmath.mpmathify(z) / mpmath.sqrt(2)) / 2
            assert abs(_normal(np.array([z]))[0] - complex(exact)) <= 1e-13 * abs(exact)


@pytest.mark.medium
@pytest.mark.parametrize("window", WINDOWS, ids=range(len(WINDOWS)))
def test_moments_of_windows_are_within_their_bounds(window: Window) -> None:
    """M and B differ from thirty-digit values by no more than `errors` says, which is not much."""
    orders = (window.tilt * (1 + 8j), complex(1.3 * window.tilt))
    for t, (most, part) in zip(orders, exact_moments(window, orders), strict=True):
        bounds = window.errors(np.array([t.real]))[0]
        size = 1 + 2 * abs(t)
        m, b = window.moments(np.array([t]))
        assert abs(mpmath.mpmathify(complex(m[0])) - most) <= bounds[0] + bounds[1] * size < 1e-10
        assert abs(mpmath.mpmathify(complex(b[0])) - part) <= bounds[2] + bounds[3] * size
        assert bounds[2] + bounds[3] * size < 1e-6 * window.mass
    m, b = window.moments_on_line(window.tilt / 5, 41)
    same_m, same_b = window.moments(window.tilt + 1j * window.tilt / 5 * np.arange(41))
    assert np.allclose(m, same_m, rtol=0, atol=1e-14)
    assert np.allclose(b, same_b, rtol=0, atol=1e-13 * window.mass)


@pytest.mark.parametrize("window", WINDOWS, ids=range(len(WINDOWS)))
def test_windows_decay_at_least_as_promised(window: Window) -> None:
    """|B| beyond a frequency is nowhere above `decay` there, which falls."""
    frequency = window.tilt * np.geomspace(0.3, 60, 12)
    bound = window.decay(frequency)
    assert np.all(np.diff(bound) <= 1e-9)
    assert bound[-1] < bound[0] - 2
    for k, u in enumerate(frequency):
        beyond = window.moments(window.tilt + 1j * u * np.array([1.0, 1.3, 2.0]))[1]
        assert np.all(np.log(np.abs(beyond)) <= bound[k] + 1e-9)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("pair", "epsilon"),
    [
        (MixturePair(7.5e-3, 2.48, "remove"), 5.26),
        (MixturePair(4e-6, 1.77, "remove"), 0.68),
        (MixturePair(1.6e-5, 0.99, "replace"), 2.5e-4),
        (MixturePair(1.4e-2, 1.64, "replace"), 0.81),
    ],
)
def test_two_steps_hold_the_exact_answer(pair: MixturePair, epsilon: float) -> None:
    """The bracket holds thirty-digit quadrature and is narrower than 1e-6."""
    truth = two_steps(pair, epsilon)
    levels = Levels.laid(pair, 2, epsilon, truth)
    assert levels is not None
    assert levels.lower(epsilon) <= truth * (1 + 1e-12)
    assert levels.upper(epsilon) >= truth * (1 - 1e-12)
    assert levels.upper(epsilon) - levels.lower(epsilon) < 1e-6 * truth


@pytest.mark.parametrize(
    ("pair", "epsilon"), [(MixturePair(2e-2, 4.0, "remove"), 17.8), (MixturePair(7.1e-3, 1.536, "replace"), 3.69)]
)
def test_one_step_is_the_closed_form(pair: MixturePair, epsilon: float) -> None:
    """A single step's bracket holds P(L > epsilon) - e^epsilon·Q(L > epsilon)."""
    truth = float(one_step(pair, epsilon))
    assert one_step_delta(pair, epsilon) == pytest.approx(truth, rel=1e-9)
    levels = Levels.laid(pair, 1, epsilon, truth)
    assert levels is not None
    assert levels.lower(epsilon) <= truth <= levels.upper(epsilon) < truth * (1 + 1e-5)


@pytest.mark.parametrize(
    ("pair", "count", "epsilon", "delta"),
    [
        (MixturePair(1.763e-5, 1 / 0.7325, "replace"), 207_086, 0.8, 2e-14),
        (MixturePair(9.17e-4, 1 / 1.42, "remove"), 96, 0.222, 1.1e-16),
        (MixturePair(1.156e-6, 1 / 0.2558, "remove"), 786_143, 30.4, 5.4e-14),
        (MixturePair(3.28e-5, 1 / 0.449, "remove"), 15, 0.0264, 6.7e-6),
    ],
)
def test_unlike_levels_tell_the_same(pair: MixturePair, count: int, epsilon: float, delta: float) -> None:
    """Thresholds, tilts and periods that differ lead to brackets that overlap, and none is wide."""
    brackets = []
    for factor in (0.97, 1.0, 1.02):
        levels = Levels.laid(pair, count, factor * epsilon, delta)
        assert levels is not None
        brackets.append((levels.lower(epsilon), levels.upper(epsilon)))
    assert max(low for low, _ in brackets) <= min(high for _, high in brackets)
    assert all(high - low < 1e-4 * high for low, high in brackets)


def test_no_part_may_be_left_out() -> None:
    """Without any one of its parts that matter, what is certified would be wrong: the parts add up to the whole."""
    pair, epsilon = MixturePair(3.28e-5, 1 / 0.449, "remove"), 0.0264
    levels = Levels.laid(pair, 15, epsilon, 6.7e-6)
    other = Levels.laid(pair, 15, 1.02 * epsilon, 6.7e-6)
    assert levels is not None
    assert other is not None
    shares = [line.total(epsilon) / other.lower(epsilon) for line in levels.lines]
    assert sum(share > 1e-3 for share in shares) >= 2
    for line, share in zip(levels.lines, shares, strict=True):
        if share > 1e-4:
            assert levels.upper(epsilon) - line.total(epsilon) < other.lower(epsilon)
