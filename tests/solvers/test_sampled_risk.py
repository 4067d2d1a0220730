"""DP-SGD's `result.bound`: runs stay below it, and it is claimed only where its theorem holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet import Budget, dp_gd, dp_sgd, glm, l2_ball, per_record
from privet.clipping import Adaptive, Automatic, Clip, Declared
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, LogisticLoss
from privet.problems import facts_of
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Poisson, TruncatedPoisson
from privet.solvers import Adam, GradientStep
from privet.solvers.sampled_risk import Sampled
from privet.solvers.stochastic_descent import DPSGD, noise_gain
from privet.theory import sampled_descent_bound

BUDGET = Budget(epsilon=1, delta=1e-6)
FIFTH = Poisson(sampling_rate=0.2)
BALL = l2_ball(radius=1.0)
ROWS = np.eye(4)[np.arange(1200) % 4]
LABELS = np.array([0.5, -0.5, 0.5, -0.5])[np.arange(1200) % 4]


def medians(**more: Any) -> Any:
    """Four medians at once, |w_j − y_j| each on a quarter of the records: the least risk in the unit ball is 0."""
    return glm("absolute", ROWS, LABELS, row_norm=1.0, **({"domain": BALL} | more))


def run(problem: Any = None, *, seed: int = 1, sampling: Any = FIFTH, **more: Any) -> Any:
    asked: Any = {"steps": 60, "clip": 1.0, "step_size": None, "budget": BUDGET} | more
    random = fixed_seed_invalidates_guarantee(seed)
    return dp_sgd(medians() if problem is None else problem, sampling=sampling, random=random, **asked)


@pytest.mark.medium
@pytest.mark.parametrize("release", ["average", "last"])
@pytest.mark.parametrize("sampling", [FIFTH, FixedSize(batch=240), FullBatch()], ids=repr)
def test_mean_excess_risk_is_within_the_bound(sampling: Any, release: Any) -> None:
    """Means of 8 runs are below the bound by five standard errors, and for the average above 0.05 of it."""
    found = [run(seed=seed, sampling=sampling, release=release) for seed in range(8)]
    excess = [float(np.abs(ROWS @ result.coef - LABELS).mean()) for result in found]
    bound, error = found[0].bound, np.std(excess) / np.sqrt(8)
    assert np.mean(excess) + 5 * error <= bound
    assert release == "last" or np.mean(excess) >= 0.05 * bound


@pytest.mark.parametrize("sampling", [FIFTH, FullBatch()])
def test_the_bound_is_the_theorems(sampling: Any) -> None:
    """`result.bound` is `sampled_descent_bound` with the noise of the plan, at a step of one's own or the best one."""
    rate = {"sampling_rate": 0.2} if isinstance(sampling, Poisson) else {}
    size = sampling.batch_size(1200)
    for step in (0.05, None):
        result = run(sampling=sampling, step_size=step, steps=3)
        noise = result.plan["gradients"].sum_multiplier / size
        by_hand = sampled_descent_bound(
            steps=3, distance=1.0, lipschitz=1.0, d=4, noise_stddev=noise, batch=size, step_size=step, **rate
        )
        assert result.bound == pytest.approx(by_hand.value, rel=1e-9)


def test_batches_of_a_fixed_size_vary_in_nothing() -> None:
    """One record a step has the second moment of all of them: the bound differs by the noise alone."""
    facts = facts_of(medians(), "replace_one")
    known: Any = {"steps": 60, "bounding": Clip(clip=1.0), "facts": facts, "radius": None, "last": False}
    found = [
        Sampled(**known, sampling=each, noise_stddev=0.3).bound(None)
        for each in (OneRecord(), FixedSize(batch=7), FullBatch(), FIFTH)
    ]
    assert found[0] == found[1] == found[2] is not None
    assert found[3] > found[0]  # type: ignore[operator]


def test_a_bound_is_claimed_only_where_its_theorem_holds() -> None:
    """Unbounded sets, penalties, other batches, rules, updates, releases, per-record losses: none, not a false one."""
    assert run().bound is not None
    assert run(release="last").bound == run(release="all").bound is not None
    assert run(step_size=0.1).bound is not None
    assert run(clip=None, bounding=Declared(lipschitz=1.0)).bound == run().bound
    assert run(step_size=0.1, release="last").bound is None
    assert run(step_size=lambda t: 0.1).bound is None
    assert run(release="tail_average", step_size=0.1).bound is None
    assert run(sampling=Cyclic(batch=240)).bound is None
    assert (
        run(sampling=TruncatedPoisson(sampling_rate=0.2, batch=400), neighbours="zero_out", step_size=0.1).bound is None
    )
    assert run(update=Adam(step_size=0.1)).bound is None
    assert run(update=GradientStep(step_size=0.1, momentum=0.5)).bound is None
    assert run(medians(domain=None), step_size=0.1).bound is None
    assert run(medians(domain=None), radius=1.0).bound is not None
    assert run(medians(ridge=0.1)).bound is None
    assert run(clip=None, bounding=Automatic(clip=1.0), step_size=0.1).bound is None
    assert run(clip=None, bounding=Adaptive(clip=1.0, count_noise=50.0), step_size=0.1).bound is None
    records = per_record(LinearRecords(loss=LogisticLoss()), ROWS, np.ones(1200), shape=4, domain=BALL)
    assert run(records, step_size=0.1).bound is None


def test_another_start_may_be_a_diameter_away() -> None:
    """From a point of one's own the minimiser may be a diameter away, unless a radius is given; none in free space."""
    start = np.array([0.9, 0.0, 0.0, 0.0])
    assert run(start=start).bound == pytest.approx(2 * run().bound, rel=1e-9)
    assert run(start=start, radius=1.0).bound == run().bound
    assert run(medians(domain=None), start=start, step_size=0.1).bound is None


def test_a_clip_above_the_slope_changes_nothing_but_the_noise() -> None:
    """The second moment takes the smaller of clip and proven slope: 1 of a clip of 2, with noise for 2."""
    result = run(clip=2.0)
    noise = 2 * result.plan["gradients"].sum_multiplier / 240
    by_hand = sampled_descent_bound(
        steps=60, distance=1.0, lipschitz=1.0, d=4, noise_stddev=noise, batch=240, sampling_rate=0.2
    )
    assert result.bound == pytest.approx(by_hand.value, rel=1e-9)


def test_full_batches_have_it_too() -> None:
    """`dp_gd` with a step by theorem: a bound for the last iterate, which is what it returns as `coef`."""
    random = fixed_seed_invalidates_guarantee(1)
    assert dp_gd(medians(), budget=BUDGET, steps=20, clip=1.0, step_size=None, random=random).bound is not None
    assert dp_gd(medians(), budget=BUDGET, steps=20, clip=1.0, step_size=0.1, random=random).bound is None


def test_a_step_by_theorem_needs_a_distance() -> None:
    """Without a bounded domain or a radius, or with a rule the theorem does not know, no step follows; kind words."""
    with pytest.raises(InvalidParameter, match="radius"):
        run(medians(domain=None))
    with pytest.raises(InvalidParameter, match="step_size"):
        run(clip=None, bounding=Automatic(clip=1.0))
    with pytest.raises(InvalidParameter, match="radius"):
        run(radius=-1.0)
    with pytest.raises(InvalidParameter, match="step size"):
        noise_gain(DPSGD(steps=3, clip=1.0, step_size=None))
