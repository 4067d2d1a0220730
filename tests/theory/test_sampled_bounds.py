"""The bound for batches: never below runs of a plain NumPy oracle, and near to them, with named mutants."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privet.theory import average_iterate_bound, sampled_descent_bound, sampled_moment


def largest_coordinate(
    steps: int, d: int, sigma: float, batch: float, rate: float | None, *, last: bool = False, runs: int = 400
) -> tuple[float, float]:
    """Mean and standard error of the excess of max_j w_j in the unit ball, n records alike, at the theorem's step."""
    known = {"steps": steps, "lipschitz": 1.0, "d": d, "noise_stddev": sigma, "batch": batch, "sampling_rate": rate}
    eta = 1 / math.sqrt((steps + 1) * sampled_moment(**known))  # type: ignore[arg-type]
    rng, w = np.random.default_rng(4), np.zeros((runs, d))
    total = w.copy()
    for t in range(1, steps + 1):
        g = sigma * rng.standard_normal((runs, d))
        g[np.arange(runs), w.argmax(axis=1)] += (
            1 if rate is None else rng.binomial(round(batch / rate), rate, runs) / batch
        )
        w = w - eta * (1 - t / (steps + 1) if last else 1.0) * g
        w /= np.maximum(1, np.linalg.norm(w, axis=1, keepdims=True))
        total += w
    excess = (w if last else total / (steps + 1)).max(axis=1) + 1 / math.sqrt(d)
    return float(excess.mean()), float(excess.std()) / math.sqrt(runs)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("d", "sigma", "batch", "rate", "near"),
    [(100, 0.0, 1, None, 0.999), (100, 0.03, 5, None, 0.65), (100, 0.03, 5, 0.1, 0.65), (100, 0.1, 5, 0.1, 0.55)],
)
def test_the_largest_coordinate_comes_near_the_bound(
    d: int, sigma: float, batch: float, rate: float | None, near: float, last: bool
) -> None:
    """Between `near` of the bound and all of it, for one record, fixed size and Poisson; 8 standard errors to spare."""
    bound = sampled_descent_bound(
        steps=99, distance=1.0, lipschitz=1.0, d=d, noise_stddev=sigma, batch=batch, sampling_rate=rate
    ).value
    mean, error = largest_coordinate(99, d, sigma, batch, rate, last=last)
    assert near * bound <= mean - 8 * error
    assert mean + 8 * error <= bound


def test_half_the_noise_variance_would_be_too_little() -> None:
    """On a linear loss where noise is 5 times the gradient the runs reach 0.87 of the bound: halved noise is false.

    4,000 runs of 200 steps of Poisson batches; the mutant's bound is 0.76 of ours, twelve standard errors below.
    """
    steps, sigma, batch, rate, runs = 200, 5.0, 20, 0.1, 4000
    known = {"steps": steps, "lipschitz": 1.0, "d": 1, "batch": batch, "sampling_rate": rate}
    moment = sampled_moment(**known, noise_stddev=sigma)  # type: ignore[arg-type]
    eta, rng = 1 / math.sqrt((steps + 1) * moment), np.random.default_rng(5)
    w, total = np.zeros(runs), np.zeros(runs)
    for _ in range(steps):
        w = np.clip(w - eta * (rng.binomial(200, rate, runs) / batch + sigma * rng.standard_normal(runs)), -1, 1)
        total += w
    excess = total / (steps + 1) + 1
    mean, error = float(excess.mean()), float(excess.std()) / math.sqrt(runs)
    bound = sampled_descent_bound(**known, distance=1.0, noise_stddev=sigma, step_size=eta).value  # type: ignore[arg-type]
    halved = sampled_descent_bound(**known, distance=1.0, noise_stddev=sigma / math.sqrt(2), step_size=eta).value  # type: ignore[arg-type]
    assert mean + 8 * error <= bound
    assert mean - 8 * error > halved


def test_sampling_variance_is_what_is_added() -> None:
    """Second moments of Poisson and fixed-size batches of unlike gradients, by enumeration, are below B²; alike, equal.

    Without the (1 − q)/b (a mutant) the Poisson moment would be too small.
    """
    n, rate = 6, 0.5
    rng = np.random.default_rng(6)
    for rows in (np.tile([1.0, 0.0], (n, 1)), rng.normal(size=(n, 2))):
        rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        subsets = np.array([[i >> j & 1 for j in range(n)] for i in range(2**n)], dtype=float)
        sizes = subsets.sum(axis=1)
        squares = ((subsets @ rows / 3) ** 2).sum(axis=1)
        poisson, fixed = float(squares.mean()), float(squares[sizes == 3].mean())
        long = sampled_moment(steps=10**9, lipschitz=1.0, d=2, noise_stddev=0.0, batch=3, sampling_rate=rate)
        short = sampled_moment(steps=10**9, lipschitz=1.0, d=2, noise_stddev=0.0, batch=3)
        assert poisson <= long * (1 + 1e-8)
        assert fixed <= short * (1 + 1e-8)
        if (rows[0] == rows[1]).all():
            assert poisson == pytest.approx(long, rel=1e-8)
            assert poisson > 1.1 * short


def test_all_records_are_a_batch() -> None:
    """With the whole table as a batch it is the bound of noisy descent, T − 1 gradients noisy."""
    known = {"distance": 2.0, "lipschitz": 3.0, "d": 4, "noise_stddev": 0.2, "step_size": 0.1}
    found = sampled_descent_bound(**known, steps=9, batch=100, sampling_rate=1.0)  # type: ignore[arg-type]
    assert found.value == pytest.approx(average_iterate_bound(**known, steps=10, noisy_steps=9).value, rel=1e-12)  # type: ignore[arg-type]
