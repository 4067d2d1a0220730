"""Parameters of the theorems: plain and NumPy numbers count alike, truth values never count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privet.accounting import Gaussian, RenyiFilter, ZeroConcentratedFilter, calibrate, epsilon, random_trials
from privet.accounting.query import ask
from privet.accounting.theorems.composition import Cost, advanced, basic, optimal_delta, optimal_epsilon
from privet.accounting.theorems.conversions import (
    gaussian_rho,
    gaussian_tail,
    gaussian_tail_epsilon,
    group,
    group_mu,
    pure_mu,
    pure_rho,
    renyi_delta,
    zcdp_epsilon,
    zcdp_rho,
    zcdp_tight_epsilon,
    zcdp_tight_rho,
)
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds, largest_mu, profile
from privet.accounting.theorems.subsampling import amplified, base_epsilon_for, rate_for, shortcut, shortcut_limit
from privet.accounting.tradeoff import best_guess, implied_profile, posterior
from privet.errors import InvalidParameter

# Of one number, taken to be 0.3 below: no float of 32 bits is equal to it, nor to what follows from it.
OF_A_NUMBER: dict[str, Callable[[Any], object]] = {
    "amplified": lambda x: amplified(x, x, x),
    "rate_for": lambda x: rate_for(3 * x, target=x),
    "base_epsilon_for": lambda x: base_epsilon_for(x, rate=x),
    "shortcut": lambda x: shortcut(x, x),
    "shortcut_limit": lambda x: shortcut_limit(x),
    "profile": lambda x: profile(x, x),
    "delta_bounds": lambda x: delta_bounds(x, x),
    "epsilon_bounds": lambda x: epsilon_bounds(x, x),
    "largest_mu": lambda x: largest_mu(x, x),
    "zcdp_epsilon": lambda x: zcdp_epsilon(x, delta=x),
    "zcdp_rho": lambda x: zcdp_rho(x, delta=x),
    "zcdp_tight_epsilon": lambda x: zcdp_tight_epsilon(x, delta=x),
    "zcdp_tight_rho": lambda x: zcdp_tight_rho(x, delta=x),
    "renyi_delta": lambda x: renyi_delta([9.0], [4.5], epsilon=x),
    "pure_rho": pure_rho,
    "pure_mu": pure_mu,
    "gaussian_rho": gaussian_rho,
    "gaussian_tail": lambda x: gaussian_tail(x, epsilon=x),
    "gaussian_tail_epsilon": lambda x: gaussian_tail_epsilon(x, delta=x),
    "group": lambda x: group(x, x, 2),
    "group_mu": lambda x: group_mu(x, 2),
    "basic": lambda x: basic([Cost(x, x, 2)]),
    "advanced": lambda x: advanced([Cost(x, x, 2)], slack=x),
    "optimal_delta": lambda x: optimal_delta(x, x, 3, epsilon=x),
    "optimal_epsilon": lambda x: optimal_epsilon(x, 0.0, 30, delta=x),
    "RenyiFilter": lambda x: RenyiFilter(epsilon=x, delta=x).limits,
    "ZeroConcentratedFilter": lambda x: ZeroConcentratedFilter(epsilon=x, delta=x).limit,
    "random_trials": lambda x: random_trials(Gaussian(noise_multiplier=x), mean=x, law="poisson"),
    "ask": lambda x: ask(Gaussian(noise_multiplier=4.0).poisson(rate=x) * 9, "add_remove", "auto", None, x),
    "epsilon": lambda x: epsilon(Gaussian(noise_multiplier=4.0).poisson(rate=x) * 9, delta=x, neighbours="add_remove"),
    "calibrate": lambda x: calibrate(
        lambda s: Gaussian(noise_multiplier=s), epsilon=x, delta=x, neighbours="add_remove"
    ),
    "posterior": lambda x: posterior(x, epsilon=1.0),
    "best_guess": lambda x: best_guess(implied_profile(epsilon=1.0, delta=0.0), x),
}
OF_A_COUNT: dict[str, Callable[[Any], object]] = {
    "group": lambda k: group(0.5, 1e-6, k),
    "group_mu": lambda k: group_mu(0.5, k),
    "basic": lambda k: basic([Cost(0.5, 1e-6, k)]),
    "advanced": lambda k: advanced([Cost(0.5, 1e-6, k)], slack=1e-5),
    "optimal_delta": lambda k: optimal_delta(0.5, 0.0, k, epsilon=1.0),
    "optimal_epsilon": lambda k: optimal_epsilon(0.5, 0.0, k, delta=1e-5),
    "Repeated": lambda k: Gaussian(noise_multiplier=1.0) * k,
}


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_number_of_fewer_bits_is_computed_with_in_full(name: str) -> None:
    """A float of 32 bits gives what the equal float of 64 bits gives; computed in 32, bounds would be off by 1e-7."""
    few = np.float32(0.3)
    assert OF_A_NUMBER[name](few) == OF_A_NUMBER[name](float(few))


@pytest.mark.parametrize("name", OF_A_COUNT)
def test_counts_of_numpy_count(name: str) -> None:
    """Whole numbers of NumPy are whole numbers; truth values and fractions are not."""
    assert OF_A_COUNT[name](np.int64(5)) == OF_A_COUNT[name](np.uint8(5)) == OF_A_COUNT[name](5)
    for bad in (True, np.True_, 5.0, np.float64(5), 0, -1, "5"):
        with pytest.raises(InvalidParameter, match="whole number"):
            OF_A_COUNT[name](bad)


@pytest.mark.parametrize("bad", [True, np.True_, "0.5", None])
def test_truth_values_and_texts_are_no_amounts(bad: Any) -> None:
    """Where a theorem takes a rate, a mu, a rho or a prior, True is not 1."""
    for refuses in (
        lambda: amplified(0.5, 0.0, bad),
        lambda: gaussian_rho(bad),
        lambda: zcdp_epsilon(bad, delta=1e-5),
        lambda: profile(bad, 1.0),
        lambda: posterior(bad, epsilon=1.0),
        lambda: Gaussian(noise_multiplier=bad),
        lambda: random_trials(Gaussian(noise_multiplier=1.0), mean=bad, law="poisson"),
        lambda: RenyiFilter(epsilon=1.0, delta=1e-5, orders=(bad,)),
    ):
        with pytest.raises(InvalidParameter, match=r"Expected .*, got "):
            refuses()
