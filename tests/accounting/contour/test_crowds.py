"""Runs of many unlike steps, and of very many steps: answered quickly, and still within certified brackets."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from privet.accounting import Approximate, Gaussian, Laplace, Pure, RandomizedResponse, bounds
from privet.accounting.contour.line import Line
from privet.accounting.pairs.elementary import DiscretePair
from privet.accounting.renyi_orders import best_order
from privet.accounting.theorems.gaussian_profile import epsilon_bounds

LOSSES = np.random.default_rng(2).uniform(0.1, 0.6, size=14)


def enumerated(epsilon: float) -> float:
    """delta of one answer for each of LOSSES, over all 2^14 outcomes."""
    total, log_p = np.zeros(1), np.zeros(1)
    for e in LOSSES:
        total = np.concatenate([total + e, total - e])
        log_p = np.concatenate([log_p - math.log1p(math.exp(-e)), log_p - math.log1p(math.exp(e))])
    return float(np.maximum(0.0, -np.expm1(epsilon - total)) @ np.exp(log_p))


@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
def test_unlike_pure_steps_hold_the_enumerated_truth() -> None:
    """14 unlike answers: the bracket of delta holds the sum over all outcomes, and of epsilon is 1e-5 wide."""
    run = reduce(add, [RandomizedResponse(epsilon=float(e)) for e in LOSSES])
    for epsilon in (1.0, 2.0, 3.0):
        low, high = bounds(run, epsilon=epsilon, neighbours="replace_one", accountant="contour")
        assert low * (1 - 1e-12) <= enumerated(epsilon) <= high * (1 + 1e-12)
        assert high - low < 1e-3 * high
    low, high = bounds(run, delta=1e-4, neighbours="replace_one", accountant="contour")
    assert enumerated(low) >= 1e-4 * (1 - 1e-11)
    assert enumerated(high) <= 1e-4 * (1 + 1e-11)
    assert high - low < 1e-5 * high


def test_a_dropped_blur_is_caught() -> None:
    """Without what the added normal step costs, the lower bound is above the truth: the subtraction is needed."""
    pairs = [DiscretePair((-e, e), (1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e)))) for e in LOSSES.tolist()]
    steps = [(pair, 1) for pair in pairs]
    line = Line.laid(steps, best_order(steps, "log_delta", 2.0), 2.0, math.log(enumerated(2.0)))
    assert line is not None
    assert line.blur > 0
    assert line.lower(2.0) <= enumerated(2.0) <= line.upper(2.0)
    assert replace(line, blur=0.0).lower(2.0) > enumerated(2.0)


def test_a_thousand_unlike_answers() -> None:
    """A thousand unlike answers are bracketed to 1e-5, near what the normal limit says."""
    run = reduce(add, [RandomizedResponse(epsilon=e) for e in np.linspace(0.008, 0.03, 1000).tolist()])
    low, high = bounds(run, delta=1e-6, neighbours="replace_one")
    mu = math.sqrt(sum(e * e for e in np.linspace(0.008, 0.03, 1000).tolist()))
    assert 0 < high - low < 1e-5 * high
    assert high == pytest.approx(epsilon_bounds(mu, 1e-6)[1], rel=5e-3)


@pytest.mark.filterwarnings("ignore::privet.errors.LooseBound")
@pytest.mark.parametrize("steps", [10**15, 10**18])
def test_very_many_steps_are_answered(steps: int) -> None:
    """T up to 1e18 takes no memory that grows with T: tiny steps are as their normal limit, others stay bounded."""
    limit = epsilon_bounds(1e-9 * math.sqrt(steps), 1e-6)[1]
    for event in (Pure(epsilon=1e-9), Approximate(epsilon=1e-9, delta=1e-35)):
        low, high = bounds(event * steps, delta=1e-6, neighbours="replace_one")
        assert low <= limit * (1 + 1e-5)
        assert high == pytest.approx(limit, rel=1e-5)
    for other in (Gaussian(noise_multiplier=2.0).poisson(rate=0.01), Laplace(scale=1e9)):
        assert math.isfinite(bounds(other * steps, delta=1e-6, neighbours="add_remove").upper)


def test_unlike_noise_levels_cost_what_lies_between_their_extremes() -> None:
    """A hundred unlike sampled Gaussian steps cost more than the noisiest alone would, less than the others."""
    for neighbours, rate in itertools.product(("add_remove", "replace_one"), (0.01, 0.2)):
        noises = np.linspace(0.9, 1.6, 100).tolist()
        run = reduce(add, [Gaussian(noise_multiplier=s).poisson(rate=rate) for s in noises])
        found = bounds(run, delta=1e-6, neighbours=neighbours)  # type: ignore[arg-type]
        least, most = (
            bounds(Gaussian(noise_multiplier=s).poisson(rate=rate) * 100, delta=1e-6, neighbours=neighbours)  # type: ignore[arg-type]
            for s in (noises[-1], noises[0])
        )
        assert least.upper < found.lower <= found.upper < most.lower
        assert found.upper - found.lower < 1e-7 * found.upper
