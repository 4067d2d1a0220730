"""What a solver hands back: released values and their guarantee, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.plan import Plan
from privet.privacy import Guarantee


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Coefficients that may be published, and the statement that goes with them.

    `bound` is the proven bound on the expected excess risk over the domain, where a theorem gives one: for the loss
    as it was bounded, which is the loss itself if nothing was clipped. `iterates` is there only if all were released.
    Everything here is public once the result is.
    """

    coef: NDArray[np.float64]
    guarantee: Guarantee
    plan: Plan
    bound: float | None = None
    iterates: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"Result(shape={self.coef.shape}, {self.guarantee})"
