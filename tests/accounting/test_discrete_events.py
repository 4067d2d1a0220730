"""Responses of k answers and noise on a grid, against sums over all outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privet.accounting import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    KaryResponse,
    Laplace,
    RandomizedResponse,
    bounds,
    delta,
    epsilon,
    from_json,
    to_json,
)
from privet.errors import InvalidParameter, NoProvenBound

Z = np.arange(-4000, 4001)


def stick(p: np.ndarray, q: np.ndarray, at: float) -> float:
    """Σ (p − e^at q)₊ over all outcomes."""
    return float(np.maximum(p - math.exp(at) * q, 0.0).sum())


def geometric(scale: float, moved: int) -> np.ndarray:
    weights = np.exp(-np.abs(Z - moved) / scale)
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("answers", [2, 3, 50])
@pytest.mark.parametrize("at", [0.0, 0.4, 0.99, 1.0])
def test_a_response_of_k_answers_is_exact(answers: int, at: float) -> None:
    """delta is that of the two laws of k answers, and less than with two answers."""
    p, q = np.ones(answers), np.ones(answers)
    p[0] = q[1] = math.e
    truth = stick(p / p.sum(), q / q.sum(), at)
    run = KaryResponse(epsilon=1.0, answers=answers)
    low, high = bounds(run, epsilon=at, neighbours="replace_one")
    assert low - 1e-14 <= truth <= high + 1e-16
    assert high - low < 1e-13
    assert high <= delta(RandomizedResponse(epsilon=1.0), epsilon=at, neighbours="replace_one") + 1e-14


@pytest.mark.medium
def test_two_answers_are_a_randomized_response() -> None:
    """Composed, too, k = 2 costs what the randomized response does; more answers cost less."""
    prices = [
        epsilon(run * 12, delta=1e-4, neighbours="zero_out")
        for run in (RandomizedResponse(epsilon=0.5), *(KaryResponse(epsilon=0.5, answers=k) for k in (2, 4, 40)))
    ]
    assert prices[0] == pytest.approx(prices[1], rel=1e-5)
    assert prices[1] > prices[2] > prices[3]
    with pytest.raises(NoProvenBound, match="number of answers"):
        epsilon(KaryResponse(epsilon=0.5, answers=4), delta=1e-4, neighbours="add_remove")


@pytest.mark.parametrize("clip", [1, 2, 7])
@pytest.mark.parametrize("at", [0.0, 0.05, 0.3, 0.45])
def test_discrete_laplace_noise_is_exact(clip: int, at: float) -> None:
    """delta is the sum over all whole numbers, for each relation; moving less never costs more."""
    run = DiscreteLaplace(scale=2.0, clip=clip)
    for moves, neighbours in ((1, "add_remove"), (1, "zero_out"), (2, "replace_one")):
        low, high = bounds(run, epsilon=at, neighbours=neighbours)  # type: ignore[arg-type]
        truths = [stick(geometric(2.0 * clip, 0), geometric(2.0 * clip, j), at) for j in range(moves * clip + 1)]
        assert truths == sorted(truths)
        assert low - 1e-13 <= truths[-1] <= high + 1e-13
        assert high - low < 1e-13


def test_discrete_laplace_noise_on_batches_is_the_mixture() -> None:
    """One Poisson step is the worse direction of the mixture, summed outcome by outcome."""
    rate, at, run = 0.3, 0.1, DiscreteLaplace(scale=1.5, clip=2)
    p, q = geometric(3.0, 0), geometric(3.0, 2)
    mixed = (1 - rate) * q + rate * p
    truth = max(stick(mixed, q, at), stick(q, mixed, at))
    assert delta(run.poisson(rate=rate), epsilon=at, neighbours="add_remove") == pytest.approx(truth, rel=1e-12)
    fixed = run.without_replacement(batch=3, records=10)
    far = geometric(3.0, 4)
    truth = stick(0.7 * far + 0.3 * p, far, at)
    assert delta(fixed, epsilon=at, neighbours="replace_one") == pytest.approx(truth, rel=1e-12)
    assert bounds(fixed, epsilon=at, neighbours="replace_one").lower == pytest.approx(truth, rel=1e-12)


def test_a_fine_grid_is_the_continuum() -> None:
    """With 100 units a clip, discrete Laplace noise costs what Laplace noise does to four digits, composed."""
    found, limit = (
        epsilon(run * 20, delta=1e-5, neighbours="zero_out")
        for run in (DiscreteLaplace(scale=2.0, clip=100), Laplace(scale=2.0))
    )
    assert limit <= found <= limit * (1 + 1e-4)


def test_too_fine_a_grid_is_refused_with_the_way_out() -> None:
    """Beyond 256 units the pair is not computed: the refusal names the pure epsilon."""
    with pytest.raises(NoProvenBound, match="pure epsilon"):
        epsilon(DiscreteLaplace(scale=2.0, clip=300), delta=1e-5, neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="clip"):
        DiscreteLaplace(scale=2.0, clip=0)
    with pytest.raises(InvalidParameter, match="answers"):
        KaryResponse(epsilon=1.0, answers=1)
    assert epsilon(DiscreteLaplace(scale=0.0), delta=1e-5, neighbours="zero_out") == math.inf


@pytest.mark.parametrize("parameter", [0.6, 1.0, 3.0])
def test_discrete_gaussian_noise_is_bounded(parameter: float) -> None:
    """The bound is above the sum over all whole numbers, and near the cost of Gaussian noise."""
    weights = [np.exp(-((Z - moved) ** 2) / (2 * parameter**2)) for moved in (0, 1)]
    p, q = (w / w.sum() for w in weights)
    run = DiscreteGaussian(noise_multiplier=parameter)
    for at in (0.2, 1.0, 3.0):
        assert delta(run, epsilon=at, neighbours="zero_out") >= stick(p, q, at)
    found, limit = (
        epsilon(event * 10, delta=1e-6, neighbours="zero_out") for event in (run, Gaussian(noise_multiplier=parameter))
    )
    assert limit <= found <= 1.2 * limit
    assert bounds(run, delta=1e-6, neighbours="zero_out").lower == 0
    with pytest.raises(NoProvenBound):
        epsilon(run.poisson(rate=0.1), delta=1e-6, neighbours="zero_out")


def test_new_events_are_written_and_read() -> None:
    """JSON brings them back as they were."""
    run = (
        KaryResponse(epsilon=1.0, answers=4) * 3
        + DiscreteLaplace(scale=2.5, clip=3)
        + DiscreteGaussian(noise_multiplier=2)
    )
    assert from_json(to_json(run)) == run
