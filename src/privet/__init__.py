"""Private gradient descent, with a guarantee that is true, tight and checkable.

>>> from privet import Budget, glm, l2_ball, noisy_gradient_descent
>>> problem = glm("logistic", [[0.6, 0.8], [1.0, 0.0]] * 500, [0, 1] * 500, domain=l2_ball(radius=5), row_norm=1.0)
>>> result = noisy_gradient_descent(problem, budget=Budget(epsilon=1, delta=1e-6), max_steps=200)
>>> result.guarantee.epsilon <= 1
True

Importing this costs next to nothing: names, and rooms such as `privet.estimators`, load what they need when they are
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privet import errors
from privet.privacy import Budget, Guarantee

if TYPE_CHECKING:
    from privet.geometry import box, l1_ball, l2_ball, simplex, whole_space
    from privet.plan import Plan
    from privet.problems import glm, per_record
    from privet.solvers import dp_gd, dp_sgd, follow, noisy_gradient_descent

__all__ = [
    "Budget",
    "Guarantee",
    "Plan",
    "__version__",
    "box",
    "dp_gd",
    "dp_sgd",
    "errors",
    "follow",
    "glm",
    "l1_ball",
    "l2_ball",
    "noisy_gradient_descent",
    "per_record",
    "simplex",
    "whole_space",
]

__version__ = "0.1.0"

_HOMES = {
    "privet.geometry": ("box", "l1_ball", "l2_ball", "simplex", "whole_space"),
    "privet.plan": ("Plan",),
    "privet.problems": ("glm", "per_record"),
    "privet.solvers": ("dp_gd", "dp_sgd", "follow", "noisy_gradient_descent"),
}

_ROOMS = (
    "accounting",
    "clipping",
    "data",
    "engines",
    "estimators",
    "geometry",
    "ledger",
    "lectures",
    "losses",
    "noise",
    "plan",
    "preprocessing",
    "problems",
    "randomness",
    "report",
    "sampling",
    "solvers",
    "sums",
    "theory",
    "torch",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"privet.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'privet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*__all__, *_ROOMS))
