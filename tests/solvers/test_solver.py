"""What every solver promises as a value: it plans from public facts, has its place among others, and runs its plan."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from privet import Budget, box, glm
from privet.accounting import epsilon
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.noise import banded_square_root
from privet.plan import Histograms, Meter, Release
from privet.privacy import Neighbours
from privet.problems import LinearProblem, facts_of
from privet.sampling import Poisson
from privet.solvers import (
    DPSGD,
    DPSVRG,
    BestIterate,
    Exponential,
    FixedHessian,
    GradientStep,
    Newton,
    NoisyGradientDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    PilotNewton,
    Solver,
    ZerothOrder,
    solve,
)

BUDGET = Budget(epsilon=1, delta=1e-6)
SOLVERS: list[Any] = [
    BestIterate(descent=DPSGD(steps=4, clip=1.0, release="all"), loss_clip=1.0),
    BestIterate(descent=FixedHessian(steps=4, clip=1.0, release="all"), loss_clip=1.0),
    DPSGD(steps=4, clip=1.0, sampling=Poisson(sampling_rate=0.1)),
    DPSGD(steps=4, clip=1.0, correlation=banded_square_root(3)),
    DPSVRG(epochs=2, epoch_steps=3, sampling=Poisson(sampling_rate=0.1), clip=1.0, difference_clip=0.5, step_size=0.1),
    Exponential(pieces=8),
    FixedHessian(clip=0.5, steps=3),
    Newton(clip=0.5, steps=3),
    NoisyGradientDescent(radius=2.0, max_steps=5),
    ObjectivePerturbation(radius=2.0),
    OutputPerturbation(radius=2.0),
    PilotNewton(clip=1.0, rate=0.2, update=GradientStep(step_size=1.0), pilot_steps=7, steps=2),
    ZerothOrder(steps=3, clip=1.0, step_size=0.1),
]
NAMES = [type(solver).__name__ for solver in SOLVERS]
BEFORE = (
    Release(name="ranges", of="octaves", bound=Histograms(columns=2), noise_multiplier=40.0, times=2),
    Release(name="means", of="rows", bound=Clip(clip=1.0), noise_multiplier=40.0),
)
AFTER = (Release(name="final", of="rows", bound=Clip(clip=2.0), noise_multiplier=40.0),)


def problem_for(solver: Any, scale: float = 1.0) -> LinearProblem:
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(300, 1)) / 4
    more: dict[str, Any] = {"domain": box(low=[-1.0], high=[1.0])} if isinstance(solver, Exponential) else {}
    made: LinearProblem = glm("logistic", X, rng.integers(0, 2, 300), row_norm=1.0, **more)
    return made


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_solver_is_a_frozen_value(solver: Any) -> None:
    """It satisfies the protocol, equals its like, and cannot be changed."""
    assert replace(solver) == solver
    with pytest.raises(FrozenInstanceError):
        setattr(solver, fields(solver)[0].name, None)
    assert isinstance(solver, Solver)


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_plan_is_made_of_public_facts(solver: Any, neighbours: Neighbours) -> None:
    """The plan that runs on records is the one that was made without them; other records have the same plan."""
    problem, other = problem_for(solver), problem_for(solver, 1e6)
    plan = solver.plan(facts_of(problem, neighbours, 300), BUDGET)
    assert plan == solver.plan(facts_of(other, neighbours, 300), BUDGET)
    result = solve(solver, problem, budget=BUDGET, neighbours=neighbours, records=300)
    assert result.plan == plan
    assert result.guarantee == plan.guarantee()
    assert 0.99 < result.guarantee.epsilon <= 1


@pytest.mark.medium
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_solver_has_its_place_among_other_releases(solver: Any, neighbours: Neighbours) -> None:
    """What comes before and after stands first and last, as it is; all meets the budget and runs on one meter."""
    problem = problem_for(solver)
    plan = solver.plan(facts_of(problem, neighbours, 300), BUDGET, before=BEFORE, after=AFTER)
    assert plan.releases[:2] == BEFORE
    assert plan.releases[-1:] == AFTER
    assert 0.99 < epsilon(plan.event, delta=1e-6, neighbours=neighbours) <= 1
    meter = Meter(plan)
    for name in ("ranges", "ranges", "means"):
        meter.skip(name)
    result = solver.run(plan, problem, meter=meter)
    assert result.guarantee == plan.guarantee()
    meter.skip("final")
    assert meter.finish() == tuple(r.name for r in plan.releases for _ in range(r.times))


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_solver_does_not_run_before_its_turn(solver: Any) -> None:
    """While earlier releases are not yet made, the meter refuses the solver's."""
    problem = problem_for(solver)
    plan = solver.plan(facts_of(problem, "zero_out"), BUDGET, before=BEFORE)
    with pytest.raises(InvalidParameter, match="Expected a release of 'ranges'"):
        solver.run(plan, problem)


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_plan_for_others_is_refused(solver: Any) -> None:
    """A plan for another number of records does not run, before any of them is read."""
    problem = problem_for(solver)
    plan = solver.plan(facts_of(problem, "zero_out", 299), BUDGET)
    meter = Meter(plan)
    with pytest.raises(InvalidParameter, match="a plan for 300 records"):
        solver.run(plan, problem, meter=meter)
    assert meter.record == []


def test_a_bound_on_the_risk_is_not_claimed_for_a_part_of_the_budget() -> None:
    """With other releases in the plan there is more noise than the theorem was asked about."""
    rng = np.random.default_rng(0)
    problem = glm("logistic", rng.normal(size=(300, 2)) / 4, rng.integers(0, 2, 300), row_norm=1.0)
    solver = NoisyGradientDescent(radius=2.0, max_steps=5)
    settings: dict[str, Any] = {"budget": BUDGET, "neighbours": "zero_out"}
    assert solve(solver, problem, **settings).bound is not None
    assert solve(solver, problem, **settings, before=BEFORE).bound is None
    plan = solver.plan(facts_of(problem, "zero_out"), BUDGET)
    with pytest.raises(InvalidParameter, match="radius"):
        NoisyGradientDescent(max_steps=5, radius=None).run(plan, problem, start=np.zeros(2))


def test_the_best_of_an_unreleased_path_is_refused() -> None:
    """When the value is made, before anything is planned."""
    with pytest.raises(InvalidParameter, match="release='all'"):
        BestIterate(descent=DPSGD(steps=4, clip=1.0), loss_clip=1.0)
