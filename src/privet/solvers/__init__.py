"""The algorithms, one a file: each a value that plans from public facts and runs its plan, and a function for short."""

from privet.solvers.choosing import BestIterate, Choice, best_iterate, choose_best
from privet.solvers.descent import ReleaseRule
from privet.solvers.exponential import Exponential, exponential_mechanism
from privet.solvers.fixed_hessian import FixedHessian, fixed_hessian_descent
from privet.solvers.newton import Newton, newton_descent
from privet.solvers.newton_inference import NewtonInference, OneStep
from privet.solvers.noisy_descent import NoisyGradientDescent, noisy_gradient_descent
from privet.solvers.perturbed_objective import ObjectivePerturbation, objective_perturbation
from privet.solvers.perturbed_output import OutputPerturbation, output_perturbation
from privet.solvers.pilot_newton import PilotNewton
from privet.solvers.recalibration import Recalibration
from privet.solvers.solver import Result, Solver, solve
from privet.solvers.stochastic_descent import DPSGD, dp_gd, dp_sgd, follow
from privet.solvers.updates import Adafactor, Adam, AdamW, GradientStep, UpdateRule
from privet.solvers.variance_reduced import DPSVRG, dp_svrg
from privet.solvers.zeroth_order import ZerothOrder, zeroth_order_descent

__all__ = [  # noqa: RUF022  # by letters, as everywhere: DPSGD is a class, no constant
    "Adafactor",
    "Adam",
    "AdamW",
    "BestIterate",
    "Choice",
    "DPSGD",
    "DPSVRG",
    "Exponential",
    "FixedHessian",
    "GradientStep",
    "Newton",
    "NewtonInference",
    "NoisyGradientDescent",
    "ObjectivePerturbation",
    "OneStep",
    "OutputPerturbation",
    "PilotNewton",
    "Recalibration",
    "ReleaseRule",
    "Result",
    "Solver",
    "UpdateRule",
    "ZerothOrder",
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
    "solve",
    "zeroth_order_descent",
]
