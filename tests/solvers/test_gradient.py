from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet import glm, per_record
from privet.clipping import Adaptive, Clip
from privet.errors import InvalidParameter, NoProvenBound
from privet.losses import LinearRecords, SquaredLoss
from privet.noise import add_gaussian
from privet.plan import Meter, gradient_plan, meter
from privet.randomness import fixed_seed_invalidates_guarantee, system_random
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Poisson
from privet.solvers.gradient import PrivateGradient


def canary(columns: int, others: int, clip: float) -> Any:
    """One record whose gradient at 0 is far beyond the clip, along the first axis, among empty ones."""
    X = np.zeros((others + 1, columns))
    X[0, 0] = 1.0
    return glm("half_squared", X, np.full(others + 1, -1e6 * clip), row_norm=1.0)


@pytest.mark.parametrize("sampling", [FullBatch(), Poisson(sampling_rate=0.5), FixedSize(batch=4)], ids=repr)
def test_the_noise_that_is_added_is_the_noise_that_was_planned(sampling: Any) -> None:
    """Step audit with a Dirac canary: observed stddev within 2 % of multiplier × clip ÷ batch size.

    See docs/footguns.md, 22.

    50,000 draws: the stddev of the estimate is 0.32 %, so the false-positive rate is below 1e-9; noise that is off by a
    batch size, by 2, or by 4 % is seen with power above 0.99.
    """
    problem = canary(1001, 7, clip=2.0)
    plan = gradient_plan(
        sampling=sampling,
        bounding=Clip(clip=2.0),
        noise_multiplier=1.5,
        steps=50,
        records=8,
        neighbours="zero_out",
    )
    private = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(1)))
    released = np.array([private(np.zeros(1001)) for _ in range(50)])
    expected = plan["gradients"].sum_multiplier * 2.0 / plan.batch_size("gradients")
    assert private.noise_stddev == pytest.approx(expected)
    assert released[:, 1:].std() == pytest.approx(expected, rel=0.02)
    inside = (
        released[:, 0] * plan.batch_size("gradients") / 2.0
    )  # in clips: 1 where the canary was drawn, 0 elsewhere, plus noise
    share = {FullBatch: 1.0, Poisson: 0.5, FixedSize: 0.5}[type(sampling)]
    assert abs(inside.mean() - share) < 6 * math.sqrt((1.5**2 + share * (1 - share)) / 50)


def test_the_noise_never_falls_short_of_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """stddev ≥ multiplier × clip in exact arithmetic, for clips and multipliers of any size (docs/footguns.md, 22)."""
    rng = np.random.default_rng(2)
    asked: list[float] = []

    def spy(units: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["noise_stddev"])
        return add_gaussian(units, **kwargs)

    monkeypatch.setattr(meter, "add_gaussian", spy)
    for _ in range(200):
        clip, noise = float(10.0 ** rng.uniform(-20, 20)), float(10.0 ** rng.uniform(-2, 3))
        plan = gradient_plan(
            bounding=Clip(clip=clip), noise_multiplier=noise, steps=1, records=8, neighbours="zero_out"
        )
        PrivateGradient(canary(1, 7, 1.0), Meter(plan, random=fixed_seed_invalidates_guarantee(1)))(np.zeros(1))
        assert Fraction(asked[-1]) >= Fraction(noise) * Fraction(clip)
        assert asked[-1] <= noise * clip * (1 + 1e-15)


def test_released_values_lie_on_a_public_lattice() -> None:
    """A released sum is a whole multiple of a power of two that does not depend on the data.

    See docs/footguns.md, 1, 2.
    """
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=20, records=8, neighbours="zero_out")
    for problem in (canary(50, 7, 1.0), glm("half_squared", np.zeros((8, 50)), np.zeros(8), row_norm=1.0)):
        private = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(2)))
        for _ in range(20):
            lattice = private(np.zeros(50)) * 8 * 2.0**20
            assert (lattice == np.rint(lattice)).all()


def test_a_run_takes_no_more_steps_than_were_priced() -> None:
    """The step after the last is refused, and reads nothing (docs/footguns.md, 37)."""
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=2, records=8, neighbours="zero_out")
    problem = canary(2, 7, 1.0)
    private = PrivateGradient(problem, Meter(plan, random=system_random()))
    private(np.zeros(2))
    private.difference(np.zeros(2), np.ones(2))
    problem.gradient_sum = None
    for late in (lambda: private(np.zeros(2)), lambda: private.slope(np.zeros(2), np.ones(2))):
        with pytest.raises(InvalidParameter, match="end here"):
            late()


def test_a_step_is_counted_before_its_records_are_read() -> None:
    """Whatever fails while records are read, the step stays counted (docs/footguns.md, 37)."""
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=2, records=8, neighbours="zero_out")
    problem = canary(2, 7, 1.0)
    run = Meter(plan)
    private = PrivateGradient(problem, run)

    def fails(*_: Any, **__: Any) -> Any:
        assert run.record == ["gradients"]
        raise MemoryError

    problem.gradient_sum = fails
    with pytest.raises(MemoryError):
        private(np.zeros(2))
    assert run.record == ["gradients"]


def test_an_empty_batch_is_a_step_of_noise_alone() -> None:
    """With a tiny rate all batches are empty, yet every step is released and counted (docs/footguns.md, 25)."""
    plan = gradient_plan(
        sampling=Poisson(sampling_rate=1e-9),
        bounding=Clip(clip=1.0),
        noise_multiplier=1.0,
        steps=30,
        records=1,
        neighbours="add_remove",
    )
    run = Meter(plan, random=fixed_seed_invalidates_guarantee(3))
    private = PrivateGradient(canary(3, 0, 1.0), run)
    released = np.array([private(np.zeros(3)) for _ in range(30)])
    assert run.finish() == ("gradients",) * 30
    assert np.isfinite(released).all()
    assert len(np.unique(released)) == 90


def test_a_gradient_that_overflows_skips_no_step() -> None:
    """Records whose gradients are infinite, or no number, make the releases of empty ones, bit for bit, all 30 of them.

    There is no loss scaler that such a step could be skipped for (docs/footguns.md, 12).
    """
    loss = LinearRecords(loss=SquaredLoss(factor=2))
    huge, target = np.full((5, 3), 1e200), np.array([1e200, -1e200, 1e300, -1e300, 1e200])
    huge[3] = np.array([1e308, -1e308, 1e308])
    with np.errstate(all="ignore"):
        assert not np.isfinite(loss.gradients(np.ones(3), huge, target)).all(axis=1).any()
    plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=1.0, steps=30, records=5, neighbours="zero_out")
    released = []
    for rows, labels in ((huge, target), (np.zeros((5, 3)), np.zeros(5))):
        run = Meter(plan, random=fixed_seed_invalidates_guarantee(3))
        private = PrivateGradient(per_record(loss, rows, labels, shape=3), run)
        released.append([private(np.ones(3)).tolist() for _ in range(30)])
        assert run.finish() == ("gradients",) * 30
    assert released[0] == released[1]


def test_the_divisor_is_the_planned_size_not_the_drawn_one() -> None:
    """Batches of 1, 2, … records are divided by one public number (docs/footguns.md, 23, 24)."""
    problem = glm("half_squared", np.ones((20, 1)), -np.ones(20), row_norm=1.0)
    plan = gradient_plan(
        sampling=Poisson(sampling_rate=0.1),
        bounding=Clip(clip=2.0),
        noise_multiplier=1e-6,
        steps=60,
        records=50,
        neighbours="add_remove",
    )
    private = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(4)))
    sizes = np.array([float(private(np.zeros(1))[0]) for _ in range(60)]) * 5.0  # 0.1 × 50, whatever the 20 are
    assert np.abs(sizes - np.rint(sizes)).max() < 1e-3
    assert len(set(np.rint(sizes))) >= 4


@pytest.mark.parametrize("records", [7, 9, 80])
def test_a_plan_for_another_number_of_records_is_refused(records: int) -> None:
    """Where the number of records is public it must be the plan's; under add_remove the plan's is a guess.

    See docs/footguns.md, 24.
    """
    base: dict[str, Any] = {"bounding": Clip(clip=1.0), "noise_multiplier": 1.0, "steps": 1, "records": records}
    for neighbours in ("replace_one", "zero_out"):
        with pytest.raises(InvalidParameter, match="a plan for 8 records"):
            PrivateGradient(canary(1, 7, 1.0), Meter(gradient_plan(**base, neighbours=neighbours)))
    PrivateGradient(canary(1, 7, 1.0), Meter(gradient_plan(**base, neighbours="add_remove")))


def test_unpriceable_plans_are_refused_before_any_record_is_read() -> None:
    """No noise, cyclic batches of a private number, noise beyond the lattice: refused by public facts.

    See docs/footguns.md, 20.
    """
    problem = canary(1, 7, 1.0)
    problem.gradient_sum = None
    base: dict[str, Any] = {"bounding": Clip(clip=1.0), "steps": 1, "records": 8}
    plans = [
        gradient_plan(**base, neighbours="zero_out"),
        gradient_plan(**base, neighbours="add_remove", noise_multiplier=1.0, sampling=Cyclic(batch=2)),
        gradient_plan(**base, neighbours="zero_out", noise_multiplier=2.0**-31),
        gradient_plan(**base, neighbours="zero_out", noise_multiplier=2.0**19),
        gradient_plan(**base, neighbours="zero_out", noise_multiplier=1.0, sampling=FixedSize(batch=9)),
    ]
    for plan in plans:
        with pytest.raises((InvalidParameter, NoProvenBound)):
            PrivateGradient(problem, Meter(plan, random=system_random()))


@pytest.mark.parametrize("multiplier", [2.0**-29, 1e-6, 1.0, 1e5])
@pytest.mark.parametrize("clip", [1.0, 0.75, 0.5000001, 1e-100])
def test_noise_at_the_ends_of_the_lattice_runs(multiplier: float, clip: float) -> None:
    """What the check lets through, the noise accepts: it never refuses once records were read.

    See docs/footguns.md, 20.
    """
    for records, sampling in ((8, FullBatch()), (8, OneRecord())):
        plan = gradient_plan(
            bounding=Clip(clip=clip),
            sampling=sampling,
            noise_multiplier=multiplier,
            steps=1,
            records=records,
            neighbours="zero_out",
        )
        assert np.isfinite(PrivateGradient(canary(2, 7, 1.0), Meter(plan, random=system_random()))(np.zeros(2))).all()


def test_an_adaptive_clip_finds_its_quantile_and_counts_with_noise() -> None:
    """From 100 times too large the clip falls to the median norm; each step draws its count's own noise.

    See docs/footguns.md, 40.
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 2))
    problem = glm("half_squared", X / np.linalg.norm(X, axis=1, keepdims=True), -rng.random(2000), row_norm=1.0)
    plan = gradient_plan(
        bounding=Adaptive(clip=50.0, count_noise=20.0),
        noise_multiplier=5.0,
        steps=120,
        records=2000,
        neighbours="zero_out",
    )
    run = Meter(plan, random=fixed_seed_invalidates_guarantee(6))
    private = PrivateGradient(problem, run)
    clips = []
    for _ in range(120):
        stddev = private.noise_stddev
        assert stddev == pytest.approx(plan["gradients"].sum_multiplier * run.rule("gradients").clip / 2000)
        private(np.zeros(2))
        clips.append(run.rule("gradients").clip)
    assert clips[-1] == pytest.approx(0.5, rel=0.1)
    assert len({round(math.log(a / b), 9) for a, b in itertools.pairwise(clips[60:])}) > 50


def test_an_adaptive_clip_stays_within_its_range_for_ever() -> None:
    """However long every gradient is within, the clip ends 2^40 below its start and the run goes on."""
    problem = glm("half_squared", np.ones((50, 1)), np.zeros(50), row_norm=1.0)
    plan = gradient_plan(
        bounding=Adaptive(clip=1.0, rate=200.0, count_noise=1.0),
        noise_multiplier=1.0,
        steps=12,
        records=50,
        neighbours="zero_out",
    )
    run = Meter(plan, random=fixed_seed_invalidates_guarantee(7))
    private = PrivateGradient(problem, run)
    for _ in range(12):
        assert np.isfinite(private(np.zeros(1))).all()
    assert run.rule("gradients").clip == 2.0**-40


def test_ridge_is_added_after_the_noise_and_outside_the_clip() -> None:
    """At a tiny clip the penalty's gradient is still there in full."""
    problem = glm("half_squared", np.ones((8, 2)) / 2, np.ones(8) * 1e6, row_norm=1.0, ridge=3.0)
    plan = gradient_plan(bounding=Clip(clip=1e-6), noise_multiplier=1.0, steps=3, records=8, neighbours="zero_out")
    private = PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(8)))
    theta, anchor = np.array([100.0, -7.0]), np.array([1.0, 1.0])
    assert private(theta) == pytest.approx(3.0 * theta, abs=1e-4)
    assert private.difference(theta, anchor) == pytest.approx(3.0 * (theta - anchor), abs=1e-4)
    assert private.slope(theta, anchor) == pytest.approx(3.0 * float(theta @ anchor), abs=1e-4)
