"""One step alone: the closed form, also where nearly nothing is sampled."""

import mpmath as mp
import numpy as np
import pytest

from privet.accounting import Gaussian, bounds, delta


def changed(rate: float, noise: float, epsilon: float) -> mp.mpf:
    """delta(epsilon) of one sampled Gaussian step when a record changes: the threshold by bisection, 60 digits."""
    q, s, e = mp.mpf(rate), 1 / mp.mpf(noise), mp.exp(mp.mpf(epsilon))

    def gain(x: mp.mpf) -> mp.mpf:
        return (1 - q) * (1 - e) + q * (mp.exp(s * x - s * s / 2) - e * mp.exp(-s * x - s * s / 2))

    low, high = mp.mpf(0), mp.mpf(10)
    while gain(high) < 0:
        high *= 2
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) < 0 else (low, middle)
    return q * (mp.ncdf(s - low) - e * mp.ncdf(-s - low)) + (1 - q) * (1 - e) * mp.ncdf(-low)


@pytest.mark.medium
def test_a_step_that_samples_nearly_nothing_keeps_its_digits() -> None:
    """Rates from 1e-13 on: the bracket of a record that changes holds 60 digits' delta, and is 1e-8 wide at most."""
    rng = np.random.default_rng(11)
    with mp.workdps(60):
        for _ in range(40):
            rate, noise, epsilon = (float(10**x) for x in rng.uniform((-13, -1, -13), (-0.01, 1.2, 1)))
            run = Gaussian(noise_multiplier=noise).poisson(rate=rate)
            low, high = bounds(run, epsilon=epsilon, neighbours="replace_one", accountant="closed")
            truth = changed(rate, noise, epsilon)
            assert low <= truth <= high
            assert truth < 1e-250 or high - low < 1e-8 * high


def test_epsilon_at_a_rate_of_1e12_is_sharp() -> None:
    """At rate 1e-12 and delta 1e-16, epsilon is bracketed to 1e-9 (it was half a percent, or fifteen)."""
    run = Gaussian(noise_multiplier=1.0).poisson(rate=1e-12)
    low, high = bounds(run, delta=1e-16, neighbours="replace_one")
    assert 0 < high - low < 1e-9 * high
    with mp.workdps(60):
        assert changed(1e-12, 1.0, high) <= 1e-16 <= changed(1e-12, 1.0, low)


@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_delta_at_the_cliff_is_next_to_nothing(neighbours: str) -> None:
    """One epoch at epsilon 1: a delta that no float of interest can tell from 0 is certified to be below 1e-40."""
    run = Gaussian(noise_multiplier=2.0).poisson(rate=1e-6) * 10**6
    assert 0 < delta(run, epsilon=1.0, neighbours=neighbours) < 1e-40  # type: ignore[arg-type]
