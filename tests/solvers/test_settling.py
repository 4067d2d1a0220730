"""The last gradients: of the constant alone where slopes were dropped, else a descent that goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privet import Budget, glm
from privet.plan import Meter, Plan
from privet.problems import facts_of
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import DPSGD, FixedHessian, GradientStep
from privet.solvers.keeping import Keeping
from privet.solvers.settling import SETTLED, Settling, last_part, settled

RNG = np.random.default_rng(4)
X = np.column_stack([RNG.uniform(-0.5, 0.5, size=(400, 2)), np.full(400, 0.5)])
Y = 0.3 + X[:, 0] * 0.4 + 0.05 * RNG.normal(size=400)
PLAIN = DPSGD(steps=12, clip=1.0, update=GradientStep(step_size=0.8, momentum=0.5), release="tail_average", tail=0.5)
LAST = Settling(clip=1.0, curvature=1.0)
VAST = Budget(epsilon=1e5, delta=1e-6)


def posed(**more: Any) -> Any:
    return glm("half_squared", X, Y, row_norm=1.0, **more)


def run(solver: Any, part: float, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Meter]:
    """With next to no noise, and that part of the coefficients kept."""
    keeping, problem = Keeping(epsilon=1.0), posed()
    monkeypatch.setattr(Keeping, "run", lambda self, problem, theta, meter: _kept(theta, part, meter))
    after = (keeping.release(), *LAST.releases(noise_multiplier=0.05))
    plan = solver.plan(facts_of(problem, "replace_one"), VAST, after=after)
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(1))
    found = settled(solver, problem, keeping, LAST, 0.5, meter).coef
    meter.finish()
    return found, meter


def _kept(theta: Any, part: float, meter: Meter) -> Any:
    meter.open("part kept", count=400)
    meter.draw("part kept")
    return theta if part == 1 else np.append(theta[:-1] * part, theta[-1])


@pytest.mark.parametrize("solver", [PLAIN, FixedHessian(steps=12, clip=1.0)])
@pytest.mark.parametrize("part", [0.0, 0.35])
def test_the_constant_is_the_best_beside_what_is_kept(
    solver: Any, part: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With next to no noise it is the mean of what the slopes leave, whatever it was before; slopes stay."""
    found, meter = run(solver, part, monkeypatch)
    left = Y - X[:, :2] @ found[:2]
    assert found[2] * 0.5 == pytest.approx(left.mean(), abs=2e-3)
    assert (found[:2] == 0).all() == (part == 0)
    assert meter.record.count(SETTLED) == LAST.steps


def test_a_descent_whose_slopes_are_kept_goes_on_as_if_it_had_not_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With next to no noise, as one of so many steps more."""
    found, _ = run(PLAIN, 1.0, monkeypatch)
    longer = replace(PLAIN, steps=PLAIN.steps + LAST.steps)
    plan = longer.plan(facts_of(posed(), "replace_one"), VAST)
    whole = longer.run(plan, posed(), random=fixed_seed_invalidates_guarantee(1)).coef
    np.testing.assert_allclose(found, whole, atol=2e-3)


def test_the_average_is_that_of_a_descent() -> None:
    """Of the same path, the last part's mean is what `tail_average` releases, to rounding."""
    facts = facts_of(posed(), "replace_one")
    plan = PLAIN.plan(facts, Budget(epsilon=1, delta=1e-6))
    both = [
        replace(PLAIN, release=release).run(plan, posed(), random=fixed_seed_invalidates_guarantee(1))
        for release in ("tail_average", "all")
    ]
    np.testing.assert_allclose(last_part(both[1].iterates, PLAIN.tail), both[0].coef, rtol=1e-12)


def test_all_steps_together_cost_what_one_release_does() -> None:
    """Five steps of √5 times the noise are one Gaussian release."""
    (release,) = LAST.releases(noise_multiplier=7.0)
    plan = Plan(releases=(release,), neighbours="replace_one", records=400)
    one = Plan(releases=(replace(release, times=1, noise_multiplier=7.0),), neighbours="replace_one", records=400)
    assert plan.guarantee(delta=1e-6).epsilon == pytest.approx(one.guarantee(delta=1e-6).epsilon, rel=1e-6)


@pytest.mark.medium
def test_the_constant_has_the_noise_of_one_release() -> None:
    """Its standard deviation over 60 seeds is noise · clip ÷ records, within 40 %; half the noise would be caught.

    Of 60 numbers a standard deviation is within 40 % but for one time in 10⁵.
    """
    problem, noise = posed(), 40.0
    plan = Plan(releases=LAST.releases(noise_multiplier=noise), neighbours="replace_one", records=400)
    found = [
        LAST.run(problem, np.zeros(3), 0.5, Meter(plan, random=fixed_seed_invalidates_guarantee(seed)))[2] * 0.5
        for seed in range(60)
    ]
    assert np.std(found) == pytest.approx(noise / 400, rel=0.4)
