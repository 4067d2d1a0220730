"""Releases made before a solver ran are paid from the same budget, whichever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet import Budget, dp_gd, dp_sgd, glm
from privet.accounting import Gaussian, epsilon
from privet.clipping import Clip
from privet.plan import Release
from privet.privacy import Neighbours
from privet.sampling import Poisson
from privet.solvers import fixed_hessian_descent, newton_descent, objective_perturbation, output_perturbation

SOLVERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "dp_gd": (dp_gd, {"steps": 5}),
    "dp_sgd": (dp_sgd, {"steps": 5, "sampling": Poisson(sampling_rate=0.1)}),
    "fixed_hessian_descent": (fixed_hessian_descent, {"steps": 5}),
    "newton_descent": (newton_descent, {"steps": 2}),
    "objective_perturbation": (objective_perturbation, {"radius": 3.0}),
    "output_perturbation": (output_perturbation, {"radius": 3.0}),
}


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("name", SOLVERS)
def test_earlier_releases_are_paid_from_the_same_budget(name: str, neighbours: Neighbours) -> None:
    """The plan begins with them, the whole meets the budget, and there is more noise than without them."""
    solver, settings = SOLVERS[name]
    X = np.random.default_rng(0).normal(size=(500, 2)) / 4
    problem = glm("logistic", X, X[:, 0] > 0, row_norm=1.0)
    budget = Budget(epsilon=1, delta=1e-6)
    before = Release(name="ranges", of="ranges", bound=Clip(clip=1.0), noise_multiplier=20.0)
    alone = solver(problem, budget=budget, clip=1.0, neighbours=neighbours, **settings)
    found = solver(problem, budget=budget, clip=1.0, neighbours=neighbours, before=(before,), **settings)
    assert found.plan.releases[0] == before
    assert found.plan.event.parts[0] == Gaussian(noise_multiplier=20.0)
    assert epsilon(found.plan.event, delta=1e-6, neighbours=neighbours) <= 1
    assert 0.999 < found.guarantee.epsilon <= 1
    for name in alone.plan.names:
        ours, theirs = found.plan[name], alone.plan[name]
        if ours.mechanism is None:
            assert ours.noise_multiplier > theirs.noise_multiplier
        else:
            assert ours.mechanism.epsilon < theirs.mechanism.epsilon
