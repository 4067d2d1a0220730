"""Runs of many unlike steps, and of very many steps: answered quickly, and still within certified brackets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from privet.accounting import (
    Approximate,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    bounds,
)
from privet.accounting.contour.line import Line
from privet.accounting.contour.rare_outcomes import line_epsilon
from privet.accounting.fourier.brackets import fourier_epsilon
from privet.accounting.pairs.dominating import directions
from privet.accounting.pairs.elementary import DiscretePair
from privet.accounting.query import ask
from privet.accounting.renyi_orders import best_order
from privet.accounting.theorems.gaussian_profile import epsilon_bounds
from privet.privacy import Neighbours

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


UNLIKE: dict[str, tuple[Callable[[float], Event], Neighbours]] = {
    "laplace": (lambda u: Laplace(scale=4.0 + 4.0 * u), "add_remove"),
    "sampled laplace": (lambda u: Laplace(scale=1.0 + u).poisson(rate=0.05), "add_remove"),
    "exponential": (lambda u: ExponentialMechanism(epsilon=0.2 - 0.1 * u), "replace_one"),
    "fixed size": (
        lambda u: Gaussian(noise_multiplier=1.5 + u).without_replacement(batch=100, records=2_000),
        "replace_one",
    ),
    "fixed-size laplace": (
        lambda u: Laplace(scale=1.0 + u).without_replacement(batch=100, records=2_000),
        "replace_one",
    ),
}


@pytest.mark.medium
@pytest.mark.parametrize("kind", UNLIKE)
def test_unlike_steps_cost_what_a_lattice_says(kind: str) -> None:
    """Unlike steps of a kind, forty or a hundred: line integrals and a lattice, which share no code, agree."""
    event, neighbours = UNLIKE[kind]
    many = 100 if kind == "sampled laplace" else 40  # fewer of those are left to the lattice
    steps = directions(reduce(add, [event(k / many) for k in range(many)]), neighbours)[0].steps
    found = line_epsilon(steps, 1e-5)
    assert found is not None
    assert 0 < found[1] - found[0] < 1e-5 * found[1]
    low, high = fourier_epsilon(steps, 1e-5, points=1 << 15)
    assert low <= found[1]
    assert found[0] <= high
    assert high - low < 1e-3 * high


@pytest.mark.medium
@pytest.mark.parametrize("kind", UNLIKE)
def test_a_thousand_unlike_steps_of_any_kind_are_bracketed(kind: str) -> None:
    """A thousand unlike steps have a bracket of 1e-5, between a thousand of the cheapest and of the dearest."""
    event, neighbours = UNLIKE[kind]
    found = ask(reduce(add, [event(k / 1000) for k in range(1000)]), neighbours, "contour", 1e-6, None)[0]
    cheap, dear = (ask(event(u) * 1000, neighbours, "auto", 1e-6, None)[0] for u in (1.0, 0.0))
    assert cheap.lower < found.lower <= found.upper < dear.upper
    assert found.upper - found.lower < 1e-5 * found.upper


@pytest.mark.medium
@pytest.mark.parametrize(
    ("batch", "noise", "width"), [(10, 1.0, 1e-3), (100, 1.0, 1e-6), (1000, 1.0, 1e-8), (100, 0.3, 1e-5)]
)
def test_rare_fixed_size_batches_are_bracketed(batch: int, noise: float, width: float) -> None:
    """1,000 batches out of a million records: the bracket is narrow, and the lattice's one meets it."""
    run = Gaussian(noise_multiplier=noise).without_replacement(batch=batch, records=10**6) * 1000
    steps = directions(run, "replace_one")[0].steps
    found = line_epsilon(steps, 1e-6)
    assert found is not None
    assert found[1] - found[0] < width * found[1]
    low, high = fourier_epsilon(steps, 1e-6, points=1 << 15)
    assert low <= found[1]
    assert found[0] <= high
