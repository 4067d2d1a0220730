"""One record a step: T = n² steps, and DP-SGD against noisy descent at 1/n of the time (Wu, lecture 13, section 1.3).

A step of DP-SGD reads one of n records, so it is n times as fast as a full gradient, but one record moves it n times
as far. The lecture argues that secret choice makes up for it: a step of known index is (ε, δ)-private with noise
σ = 2G ln(1/δ)/ε, its secret choice makes that about ε/n, and T steps cost about ε√T/n: with T = n², about ε.

The conclusion is right and the way to it is not: lemma 1.2 with strong composition proves far more than ε.

>>> found = n_squared_steps()
>>> f"true {found.true:.3f}, proved {found.proved:.2f} at delta {found.proved_delta:.3g}"
'true 0.293, proved 9.63 at delta 0.00101'

Nor is one record a step always as good as all of them. One record of 200 replaced, with noise of 4 times the
sensitivity it costs 13 % more, with 32 times 1.5 %:

>>> {noise: round(cost, 2) for noise, cost in against_full_batches().items()}
{0.5: 25.38, 1.0: 8.16, 2.0: 5.69, 4.0: 4.95, 8.0: 4.64, 16.0: 4.51, 32.0: 4.44}

How near it comes to the optimum differs little where the noise is larger than the gradients (by less than the standard
error, 0.0049, here):

>>> found = accuracy(4.0)
>>> f"{found.one_record:.4f} and {found.full_batch:.4f}"
'0.1409 and 0.1370'
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privet.accounting import Gaussian, epsilon
from privet.accounting.theorems.composition import Cost, advanced
from privet.accounting.theorems.subsampling import amplified
from privet.geometry import box
from privet.lectures import rule
from privet.lectures.measures import Vector
from privet.lectures.noisy_runs import walk


@dataclass(frozen=True, kw_only=True, slots=True)
class ManySteps:
    """What n² steps of DP-SGD cost: truly at the δ of one step, and as far as the lecture's argument proves.

    `true` is for one record present or not, at distance 2G; `true_replaced` for one record replaced.
    """

    true: float
    true_replaced: float
    proved: float
    proved_delta: float


def n_squared_steps(n: int = 100, step_epsilon: float = 1.0, delta: float = 1e-5) -> ManySteps:
    """Account for T = n² steps, each on one record, with the lecture's noise for one step of known index.

    >>> n_squared_steps(n=50).true < 1  # below the ε of a single step whose record is known
    True
    """
    multiplier = rule("single_step_log").multiplier(step_epsilon, delta, 1)  # noise ÷ 2G
    joined = Gaussian(noise_multiplier=multiplier).poisson(rate=1 / n) * n**2
    replaced = Gaussian(noise_multiplier=2.0 * multiplier).without_replacement(batch=1, records=n) * n**2
    proved, proved_delta = advanced([Cost(*amplified(step_epsilon, delta, 1 / n), n**2)], slack=delta)
    return ManySteps(
        true=epsilon(joined, delta=delta, neighbours="add_remove"),
        true_replaced=epsilon(replaced, delta=delta, neighbours="replace_one"),
        proved=proved,
        proved_delta=proved_delta,
    )


def against_full_batches(
    noises: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0), n: int = 200, mu: float = 1.0, delta: float = 1e-5
) -> dict[float, float]:
    """Account for one record a step, for several noises ÷ sensitivity, where full batches cost that of μ = `mu`.

    As in the lecture: one of n records drawn at random, one of them replaced, sensitivity 2G. A full gradient has 1/n
    of that; T steps with noise of s sensitivities of one record cost √T/(s n) = μ if full, so T = (s n μ)² steps are
    taken, each n times as fast.

    >>> from privet.accounting.theorems.gaussian_profile import epsilon_bounds
    >>> costs, full = against_full_batches([1.0, 8.0]), epsilon_bounds(1.0, 1e-5)[1]
    >>> [f"{cost / full:.3f}" for cost in costs.values()]
    ['1.863', '1.061']
    """
    costs = {}
    for noise in noises:  # the multiplier is noise ÷ G
        step = Gaussian(noise_multiplier=2.0 * noise).without_replacement(batch=1, records=n)
        costs[noise] = epsilon(step * round((noise * n * mu) ** 2), delta=delta, neighbours="replace_one")
    return costs


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """Mean excess risk of one record a step and of full batches, same noise and steps, and what lemma 2.7 allows."""

    one_record: float
    full_batch: float
    standard_error: float
    bound: float


def accuracy(noise: float, *, n: int = 10, copies: int = 400, seed: int = 22) -> Accuracy:
    """Descend on n linear losses of slopes ±1 on [−1, 1], T = (noise n)² steps, noise of `noise` × 2 a gradient.

    Three records of five pull to the right, so the risk is −w/5, and a single gradient says little of it.

    >>> found = accuracy(1.0)
    >>> found.one_record <= found.bound, abs(found.one_record - found.full_batch) < 5 * found.standard_error
    (True, True)
    """
    slopes = np.where(np.arange(n) < 3 * n // 5, -1.0, 1.0)
    T, rng = round((noise * n) ** 2), np.random.default_rng(seed)
    moment = 1.0 + (2.0 * noise) ** 2

    def excess(one: bool) -> Vector:
        def gradient(w: Vector) -> Vector:
            true = slopes[rng.integers(n, size=copies)] if one else slopes.mean()
            return np.asarray(true + 2.0 * noise * rng.standard_normal(copies))

        step = 1.0 / math.sqrt(T * moment)
        found = walk(gradient, size=copies, steps=T - 1, step_size=step, domain=box(low=-1.0, high=1.0, size=copies))
        return np.asarray(-slopes.mean() * (1.0 - found))

    single, whole = excess(True), excess(False)
    error = math.sqrt((single.var() + whole.var()) / copies)
    return Accuracy(
        one_record=float(single.mean()),
        full_batch=float(whole.mean()),
        standard_error=error,
        bound=math.sqrt(moment / T),
    )


def proxy(steps: int, *, n: int = 10, copies: int = 400, seed: int = 13) -> Accuracy:
    """Compare one record a step with full batches without any noise, on the losses |w − x_i| on [−1, 1], from −1.

    Three records of five are at 1 and two at −1, so the risk falls by 1/5 for each unit that w rises.

    >>> found = proxy(100)
    >>> found.full_batch <= found.one_record <= found.bound
    True
    """
    slopes = np.where(np.arange(n) < 3 * n // 5, -1.0, 1.0)
    rng, domain = np.random.default_rng(seed), box(low=-1.0, high=1.0, size=copies)

    def excess(one: bool) -> Vector:
        def gradient(w: Vector) -> Vector:
            return slopes[rng.integers(n, size=copies)] if one else np.full(copies, slopes.mean())

        step, start = 2.0 / math.sqrt(steps), np.full(copies, -1.0)
        found = walk(gradient, size=copies, steps=steps - 1, step_size=step, domain=domain, start=start)
        return np.asarray(-slopes.mean() * (1.0 - found))

    single, whole = excess(True), excess(False)
    return Accuracy(
        one_record=float(single.mean()),
        full_batch=float(whole.mean()),
        standard_error=float(single.std()) / math.sqrt(copies),
        bound=2.0 / math.sqrt(steps),
    )
