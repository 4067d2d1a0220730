"""What the lectures print up to constants: for tables that compare how bounds grow."""

import math
from typing import Literal

from privet.errors import InvalidParameter
from privet.privacy import Budget
from privet.theory.risk import positive, whole

Order = Literal[
    "theorem_2_6", "exponential", "output_perturbation", "objective_perturbation", "last_iterate", "nikolov"
]
"""Bounds that the lectures print up to constants: see `printed_order`."""


def printed_order(name: Order, *, n: int, d: int, diameter: float, lipschitz: float, budget: Budget) -> float:
    """Return what a lecture prints as the order of the excess risk, its O(·) taken as 1, at most G × diameter.

    For tables that compare growth; it is no bound. "theorem_2_6": RG√(dΛ)/(εn) (claim 31); "exponential": RGd/(εn)
    (claim 32); "output_perturbation": LD(√d/(εn))^{1/2} (claim 77); "objective_perturbation": LD√d/(εn) (claim 81, not
    derived here); "last_iterate": LD√d/(εn) (claim 89); "nikolov": Rd√Λ/(εn), its T → ∞ (claim 117).

    Examples
    --------
    >>> from privet import Budget
    >>> known = dict(n=1000, d=10, diameter=1.0, lipschitz=1.0, budget=Budget(epsilon=1, delta=1e-5))
    >>> [f"{printed_order(name, **known):.4f}" for name in ("objective_perturbation", "output_perturbation")]
    ['0.0032', '0.0562']
    """
    share = 1.0 / (positive("epsilon of the lectures' rules", budget.epsilon) * whole("n", n))
    d, log = whole("d", d), -math.log(budget.delta)
    orders = {
        "theorem_2_6": share * math.sqrt(d * log),
        "exponential": share * d,
        "output_perturbation": math.sqrt(share * math.sqrt(d)),
        "objective_perturbation": share * math.sqrt(d),
        "last_iterate": share * math.sqrt(d),
        "nikolov": share * d * math.sqrt(log),
    }
    if name not in orders:
        raise InvalidParameter(f"""Expected one of {", ".join(orders)}, got {name!r}: the lectures print no order for
            it.""")
    return positive("lipschitz", lipschitz) * positive("diameter", diameter) * min(1.0, orders[name])
