"""The short line for a record that joins: its moments, its decay, and that it bounds delta from above."""

import math

import mpmath
import numpy as np
import pytest

from privet.accounting.contour.few_nodes import _Joining, _moments, joining_upper
from privet.accounting.contour.integral import contour_delta
from privet.accounting.pairs.mixture import MixturePair


def drawn(rng: np.random.Generator) -> tuple[float, float, int]:
    """A rate, a shift and a number of steps."""
    return 10 ** rng.uniform(-4, -0.7), 10 ** rng.uniform(-0.8, 0.3), int(10 ** rng.uniform(0, 5))


def joining(rate: float, shift: float, count: int) -> _Joining:
    return _Joining(rate, shift, count, _moments(rate, shift))


@pytest.mark.parametrize("shift", [0.05, 0.5, 1.0, 2.5])
def test_moments_of_w_keep_their_digits(shift: float) -> None:
    """E[(w - 1)^k] is that of the binomial formula, which cancels, in 60 digits."""
    with mpmath.workdps(60):
        square = mpmath.mpf(shift) ** 2
        for k, found in enumerate(_moments(0.01, shift)):
            terms = [
                (-1) ** (k - j) * mpmath.binomial(k, j) * mpmath.exp(square * j * (j - 1) / 2) for j in range(k + 1)
            ]
            exact = mpmath.mpf(0.01) ** k * mpmath.fsum(terms)
            assert abs(found - exact) <= 1e-13 * exact


def test_the_error_of_a_taylor_polynomial_is_bounded() -> None:
    """log M at complex orders is that of quadrature, within both bounds; and the bound is often small."""
    rng, sharp = np.random.default_rng(11), 0
    for _ in range(200):
        rate, shift, count = drawn(rng)
        t = complex(10 ** rng.uniform(-0.5, 2), 10 ** rng.uniform(-1, 2))
        value, wrong = joining(rate, shift, count).log_moment(t)
        one, relative = MixturePair(rate, shift, "add").log_moment(np.array([t]))
        if wrong < 1.0:
            off = abs(np.expm1(count * complex(one[0]) - value))
            assert off <= math.expm1(wrong + count * math.log1p(float(relative[0]))) * (1 + 1e-9) + 1e-13 * count
            sharp += wrong < 0.01
    assert sharp > 50


def test_decay_is_not_overstated() -> None:
    """|M| is no larger than said, at the frequency and beyond it; and something is said."""
    rng, said = np.random.default_rng(12), 0
    for _ in range(200):
        rate, shift, count = drawn(rng)
        tilt, frequency = 10 ** rng.uniform(-0.5, 2), 10 ** rng.uniform(-1, 2.5)
        pair = MixturePair(rate, shift, "add")
        nodes = tilt + 1j * frequency * np.array([0.0, 1.0, 1.1, 1.7, 3.0, 10.0, 100.0])
        logs = pair.log_moment(nodes)[0].real
        fall = joining(rate, shift, count).decay(tilt, frequency, math.exp(float(logs[0])) * (1 + 1e-12))
        assert fall <= count * float((logs[0] - logs[1:]).min()) * (1 + 1e-9) + 1e-9 + 1e-13 * count
        said += fall > 0.3 * count * float(logs[0] - logs[1]) > 0
    assert said > 80


def test_it_bounds_delta_and_is_often_sharp() -> None:
    """No bound is below the lower end of the long line; at ordinary settings it is within some percent of it."""
    rng, sharp, asked = np.random.default_rng(13), 0, 0
    for _ in range(120):
        rate, shift, count = drawn(rng)
        steps = [(MixturePair(rate, shift, "add"), count)]
        spread = count * rate**2 * math.expm1(shift**2)
        epsilon = spread / 2 + math.sqrt(spread) * rng.uniform(1, 5)
        found = contour_delta(steps, epsilon)
        if found is None or not found[1] > 1e-15:
            continue
        bound = joining_upper(steps, epsilon, found[1])
        assert bound >= found[0]
        sharp, asked = sharp + (bound < 1.1 * found[1]), asked + 1
    assert asked > 60
    assert sharp > asked / 3


def test_unlike_steps_are_composed() -> None:
    """Two kinds of steps are bounded together, as sharply as one."""
    steps = [(MixturePair(0.02, 0.5, "add"), 500), (MixturePair(0.005, 0.9, "add"), 2000)]
    found = contour_delta(steps, 1.2)
    assert found is not None
    assert found[0] <= joining_upper(steps, 1.2, found[1]) <= 1.1 * found[1]


@pytest.mark.parametrize(
    "pair", [MixturePair(0.01, 1.0, "remove"), MixturePair(0.95, 1.0, "add"), MixturePair(0.01, 5.0, "add")]
)
def test_what_it_does_not_know_it_does_not_bound(pair: MixturePair) -> None:
    """Other directions, rates near 1 and little noise have no bound here."""
    assert joining_upper([(pair, 100)], 1.0, 1e-5) == math.inf
