from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from privet import Budget, glm
from privet.errors import InvalidParameter
from privet.problems import LinearProblem, facts_of
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Strided
from privet.solvers import GradientStep, PilotNewton, solve

SOLVER = PilotNewton(clip=1.0, rate=0.1, update=GradientStep(step_size=4.0, momentum=0.5))


def problem(rows: int = 4000, *, sort: bool = False) -> LinearProblem:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 3)) / 4
    y = (rng.random(rows) < expit(X @ [6.0, -3.0, 0.0])).astype(float)
    order = np.argsort(y, kind="stable") if sort else np.arange(rows)
    made: LinearProblem = glm("logistic", X[order], y[order], row_norm=1.0)
    return made


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_next_to_no_noise_finds_the_minimum(sort: bool, neighbours: Any) -> None:
    """Fifteen Newton steps make the gradient vanish to four digits, also on a table that is sorted by its labels."""
    found, given = problem(sort=sort), fixed_seed_invalidates_guarantee(1)
    solver = replace(SOLVER, steps=15, release="last")
    result = solve(solver, found, Budget(epsilon=1e6, delta=1e-6), neighbours, records=4000, random=given)
    assert np.linalg.norm(found.plain_gradient(result.coef)) < 1e-4 * np.linalg.norm(found.plain_gradient(np.zeros(3)))


def test_a_record_pays_for_the_passes_that_read_it() -> None:
    """Ten steps of batches of a tenth are one Gaussian release, as priced; eleven are two."""
    facts, budget = facts_of(problem(), "replace_one"), Budget(epsilon=1, delta=1e-6)
    for steps, passes in ((10, 1), (11, 2)):
        plan = replace(SOLVER, pilot_steps=steps).plan(facts, budget)
        pilot = plan["pilot gradients"]
        assert pilot.sampling == Strided(batch=400)
        mu = passes / pilot.noise_multiplier**2
        rest = SOLVER.steps / plan["gradients"].noise_multiplier ** 2
        assert mu / rest == pytest.approx(SOLVER.pilot_share / (1 - SOLVER.pilot_share - SOLVER.curvature_share))


def test_what_has_no_proof_is_refused() -> None:
    """People, several classes, and shares that leave nothing for the gradients."""
    facts, budget = facts_of(problem(), "replace_one"), Budget(epsilon=1, delta=1e-6)
    for other in (replace(facts, unit="person"), replace(facts, shape=(3, 4))):
        with pytest.raises(InvalidParameter, match="bounded row by row"):
            SOLVER.plan(other, budget)
    with pytest.raises(InvalidParameter, match="part of the budget"):
        replace(SOLVER, pilot_share=0.9)
    with pytest.raises(InvalidParameter, match="rate"):
        replace(SOLVER, rate=0.0)
