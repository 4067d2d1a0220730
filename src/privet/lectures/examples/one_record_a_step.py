"""One record a step: T = n² steps, and DP-SGD against noisy descent at 1/n of the time (Wu, lecture 13, section 1.3).

A step of DP-SGD reads one of n records, so it is n times as fast as a full gradient, but one record moves it n times
as far. The lecture argues that secret choice makes up for it: a step of known index is (ε, δ)-private with noise
σ = 2G ln(1/δ)/ε, its secret choice makes that about ε/n, and T steps cost about ε√T/n: with T = n², about ε.

The conclusion is right and the way to it is not: lemma 1.2 with strong composition proves far more than ε.

>>> found = n_squared_steps()
>>> f"true {found.true:.3f}, proved {found.proved:.2f} at delta {found.proved_delta:.3g}"
'true 0.293, proved 9.63 at delta 0.00101'

Nor is one record a step always as good as all of them. With noise of 4 times the sensitivity it is, to 2 %:

>>> {noise: round(cost, 2) for noise, cost in against_full_batches().items()}
{0.5: 20.76, 0.7: 9.37, 1.0: 6.1, 1.5: 5.03, 2.0: 4.72, 4.0: 4.46, 8.0: 4.4}
"""

from collections.abc import Sequence
from dataclasses import dataclass

from privet.accounting import Gaussian, epsilon
from privet.accounting.theorems.composition import Cost, advanced
from privet.accounting.theorems.subsampling import amplified
from privet.lectures import rule


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
    noises: Sequence[float] = (0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 8.0), n: int = 200, mu: float = 1.0, delta: float = 1e-5
) -> dict[float, float]:
    """Account for one record a step, for several noises ÷ sensitivity, where full batches cost that of μ = `mu`.

    A full gradient has 1/n of the sensitivity; T steps with noise of s sensitivities of one record cost √T/(s n) = μ if
    full, so T = (s n μ)² steps are taken, each n times as fast.

    >>> from privet.accounting.theorems.gaussian_profile import epsilon_bounds
    >>> costs, full = against_full_batches([1.0, 8.0]), epsilon_bounds(1.0, 1e-5)[1]
    >>> [f"{cost / full:.3f}" for cost in costs.values()]
    ['1.394', '1.005']
    """
    costs = {}
    for noise in noises:
        run = Gaussian(noise_multiplier=noise).poisson(rate=1 / n) * round((noise * n * mu) ** 2)
        costs[noise] = epsilon(run, delta=delta, neighbours="add_remove")
    return costs
