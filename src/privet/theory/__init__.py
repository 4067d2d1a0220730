"""Utility bounds, and a planner that takes steps and noise from a theorem.

>>> from privet import Budget
>>> from privet.theory import plan_for
>>> plan = plan_for(n=10_000, d=20, radius=1.0, lipschitz=1.0, budget=Budget(epsilon=1, delta=1e-6),
...                 neighbours="replace_one", max_steps=2_000)
>>> plan.steps, f"{plan.excess_risk:.4f}"
(2000, '0.0227')

The lectures' own rules and prescriptions, for comparison and teaching, are in :mod:`privet.lectures`.
"""

from privet.theory.closeness import ApproximateDP, GaussianDP
from privet.theory.descent_bounds import (
    average_iterate_bound,
    estimated_gradient_bound,
    gradient_descent_bound,
    last_iterate_bound,
    linear_decay_bound,
    nikolov_bound,
    rank_bound,
    second_moment,
)
from privet.theory.generalisation import (
    glm_population_bound,
    lipschitz_gap,
    uniform_convergence_gap,
    uniform_convergence_sample_size,
)
from privet.theory.growth import Order, printed_order
from privet.theory.least_noise import exact_noise
from privet.theory.lower_bounds import (
    RiskLowerBound,
    lipschitz_lower_bound,
    logistic_lower_bound,
    rank_lower_bound,
    strongly_convex_lower_bound,
)
from privet.theory.perturbation_bounds import exponential_mechanism_bound, logistic_lipschitz, output_perturbation_bound
from privet.theory.planner import plan_for
from privet.theory.prescription import Method, Prescription, Schedule
from privet.theory.risk import RiskBound, trivial_bound
from privet.theory.sampled_bounds import sampled_descent_bound, sampled_moment
from privet.theory.setting import last_iterate_steps, noise_to_signal
from privet.theory.span import projector, rank, seminorm

__all__ = [
    "ApproximateDP",
    "GaussianDP",
    "Method",
    "Order",
    "Prescription",
    "RiskBound",
    "RiskLowerBound",
    "Schedule",
    "average_iterate_bound",
    "estimated_gradient_bound",
    "exact_noise",
    "exponential_mechanism_bound",
    "glm_population_bound",
    "gradient_descent_bound",
    "last_iterate_bound",
    "last_iterate_steps",
    "linear_decay_bound",
    "lipschitz_gap",
    "lipschitz_lower_bound",
    "logistic_lipschitz",
    "logistic_lower_bound",
    "nikolov_bound",
    "noise_to_signal",
    "output_perturbation_bound",
    "plan_for",
    "printed_order",
    "projector",
    "rank",
    "rank_bound",
    "rank_lower_bound",
    "sampled_descent_bound",
    "sampled_moment",
    "second_moment",
    "seminorm",
    "strongly_convex_lower_bound",
    "trivial_bound",
    "uniform_convergence_gap",
    "uniform_convergence_sample_size",
]
