"""The algorithms, one a file. Each takes a problem and a budget, and returns what may be published."""

from __future__ import annotations

from privet.solvers.choosing import Choice, best_iterate, choose_best
from privet.solvers.clipped_descent import dp_gd
from privet.solvers.descent import Path, Release
from privet.solvers.exponential import exponential_mechanism
from privet.solvers.fixed_hessian import fixed_hessian_descent
from privet.solvers.newton import newton_descent
from privet.solvers.noisy_descent import noisy_gradient_descent
from privet.solvers.one_step import OneStep, OneStepPlan
from privet.solvers.perturbed_objective import objective_perturbation
from privet.solvers.perturbed_output import output_perturbation
from privet.solvers.plain_descent import projected_gradient_descent
from privet.solvers.result import Draw, Result
from privet.solvers.stochastic_descent import dp_sgd, follow
from privet.solvers.updates import Adafactor, Adam, AdamW, GradientStep, UpdateRule
from privet.solvers.variance_reduced import dp_svrg
from privet.solvers.zeroth_order import zeroth_order_descent

__all__ = [
    "Adafactor",
    "Adam",
    "AdamW",
    "Choice",
    "Draw",
    "GradientStep",
    "OneStep",
    "OneStepPlan",
    "Path",
    "Release",
    "Result",
    "UpdateRule",
    "best_iterate",
    "choose_best",
    "dp_gd",
    "dp_sgd",
    "dp_svrg",
    "exponential_mechanism",
    "fixed_hessian_descent",
    "follow",
    "newton_descent",
    "noisy_gradient_descent",
    "objective_perturbation",
    "output_perturbation",
    "projected_gradient_descent",
    "zeroth_order_descent",
]
