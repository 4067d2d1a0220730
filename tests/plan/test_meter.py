"""The meter: what runs is what was planned; whatever else is refused before any noise is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privet import Budget, glm
from privet.accounting import ExponentialMechanism
from privet.clipping import Adaptive, Clip, LatticeSum
from privet.errors import InvalidParameter, PrivetError
from privet.plan import Bounded, Computed, Histograms, Meter, Plan, Release, SecondMoments, gradient_plan
from privet.problems import facts_of
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FixedSize, Passes, Poisson
from privet.solvers import DPSGD, DPSVRG, FixedHessian
from privet.sums import record_sum

BUDGET = Budget(epsilon=1, delta=1e-6)
MOMENT = Release(name="moment", of="x xᵀ", bound=SecondMoments(clip=1.0), noise_multiplier=3.0, size=4)
STEPS = Release(name="gradients", of="gradients", bound=Clip(clip=1.0), noise_multiplier=5.0, times=2, size=2)
PLAN = Plan(releases=(MOMENT, STEPS), records=8, neighbours="zero_out", budget=BUDGET)


def moment(clip: float = 1.0, size: int = 2) -> LatticeSum:
    return LatticeSum(units=np.zeros((size, size), dtype=np.int64), step=2.0**-30, clip=clip)


def summed(clip: float = 1.0, columns: int = 2) -> LatticeSum:
    return record_sum(np.ones((8, columns)), rule=Clip(clip=clip), max_records=8)


def started() -> Meter:
    meter = Meter(PLAN)
    meter.open("moment", count=8)
    meter.noisy_symmetric("moment", moment())
    return meter


def test_a_run_as_planned_is_recorded() -> None:
    """Every release in order, and the guarantee is the plan's; a fixed seed's noise invalidates it."""
    meter = started()
    for _ in range(2):
        meter.open("gradients", count=8)
        meter.noisy("gradients", summed())
    assert meter.finish() == ("moment", "gradients", "gradients")
    assert meter.guarantee() == PLAN.guarantee(delta=1e-6)
    assert "NOT PRIVATE" in str(Meter(PLAN, random=fixed_seed_invalidates_guarantee(1)).guarantee())


@pytest.mark.parametrize("says", ["nothing", None, "no", 0, np.False_])
def test_a_generator_that_does_not_declare_itself_cryptographic_invalidates_the_guarantee(says: Any) -> None:
    """Words of PCG64, or of anything that does not say False plainly, promise nothing (docs/footguns.md, 13)."""

    class Foreign:
        def words(self, count: int) -> Any:
            return np.random.default_rng(0).integers(0, 2**64, count, dtype=np.uint64)

    foreign: Any = Foreign()
    if says != "nothing":
        foreign.invalidates_guarantee = says
    meter = Meter(PLAN, random=foreign)
    meter.open("moment", count=8)
    meter.noisy_symmetric("moment", moment())
    assert math.isinf(meter.guarantee().epsilon)
    assert str(meter.guarantee()).startswith("NOT PRIVATE: a generator that does not declare itself cryptographic")
    foreign.invalidates_guarantee = False
    assert meter.guarantee() == PLAN.guarantee(delta=1e-6)


@pytest.mark.parametrize("name", ["gradients", "other", ""])
def test_a_release_that_is_not_next_is_refused(name: str) -> None:
    """Whether it comes later or is not planned at all; nothing is counted for it."""
    meter = Meter(PLAN)
    with pytest.raises(InvalidParameter, match="Expected a release of 'moment'"):
        meter.open(name, count=8)
    with pytest.raises(InvalidParameter, match="Expected a release of 'moment'"):
        meter.skip(name)
    assert meter.record == []


def test_one_release_too_many_is_refused() -> None:
    """After the last one the run is at its end, whatever is asked for."""
    meter = started()
    for _ in range(2):
        meter.open("gradients", count=8)
        meter.noisy("gradients", summed())
    for name in ("gradients", "moment"):
        with pytest.raises(InvalidParameter, match="Expected the run to end here"):
            meter.open(name, count=8)


def test_noise_is_drawn_for_what_was_opened_only() -> None:
    """Without open, for another name, or twice for one opening: refused."""
    meter = Meter(PLAN)
    with pytest.raises(InvalidParameter, match="to be opened"):
        meter.noisy_symmetric("moment", moment())
    meter.open("moment", count=8)
    with pytest.raises(InvalidParameter, match="to be opened"):
        meter.noisy("gradients", summed())
    meter.noisy_symmetric("moment", moment())
    with pytest.raises(InvalidParameter, match="to be opened"):
        meter.noisy_symmetric("moment", moment())


def test_what_was_read_is_released_before_anything_else() -> None:
    """A release that was opened must get its noise before the next one is opened, and before the end."""
    meter = Meter(PLAN)
    meter.open("moment", count=8)
    with pytest.raises(InvalidParameter, match="Expected noise for 'moment'"):
        meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="Expected noise for 'moment'"):
        meter.skip("gradients")
    with pytest.raises(PrivetError, match="ended before"):
        meter.finish()


@pytest.mark.parametrize("columns", [1, 3])
def test_another_number_of_numbers_is_refused(columns: int) -> None:
    """The plan says how many numbers are released each time."""
    meter = started()
    meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="Expected 2 numbers for 'gradients'"):
        meter.noisy("gradients", summed(columns=columns))


@pytest.mark.parametrize("clip", [0.5, 1.0 + 2.0**-52, 2.0])
def test_records_bounded_in_another_way_are_refused(clip: float) -> None:
    """To the last bit: the noise was priced for the planned clip."""
    meter = Meter(PLAN)
    meter.open("moment", count=8)
    with pytest.raises(InvalidParameter, match="Expected a sum of records bounded by 1"):
        meter.noisy_symmetric("moment", moment(clip))
    meter.noisy_symmetric("moment", moment())
    meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="Expected a sum of records bounded by 1"):
        meter.noisy("gradients", summed(clip))


def test_a_run_that_leaves_something_out_is_no_run_of_the_plan() -> None:
    """finish() refuses it: it paid for what it did not release."""
    meter = started()
    with pytest.raises(PrivetError, match="ended before"):
        meter.finish()
    meter.skip("gradients")
    with pytest.raises(PrivetError, match="ended before"):
        meter.finish()
    meter.skip("gradients")
    assert meter.finish() == ("moment", "gradients", "gradients")


def test_skipping_draws_no_batch() -> None:
    """What is public already needs neither records nor randomness: the batch need not even fit."""
    plan = gradient_plan(
        bounding=Clip(clip=1.0),
        sampling=FixedSize(batch=5),
        noise_multiplier=1.0,
        steps=1,
        records=8,
        neighbours="zero_out",
    )
    meter = Meter(plan)
    meter.skip("gradients")
    assert meter.finish() == ("gradients",)


def test_a_sensitivity_of_the_run_must_be_given_and_is_refused_where_the_plan_has_one() -> None:
    """Positive and finite; and no release with a planned clip takes another one at run time."""
    turn = Release(name="turn", of="turns", bound=Computed(how="by theorem", when_replaced=1.0), noise_multiplier=3.0)
    meter = Meter(Plan(releases=(turn, STEPS), records=8, neighbours="replace_one"))
    for wrong in (None, 0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="sensitivity of 'turn'"):
            meter.noise_stddev("turn", sensitivity=wrong)
    assert meter.noise_stddev("turn", sensitivity=10.0) == pytest.approx(15.0)  # one record moves it by 10, not 20
    meter.open("turn", count=8)
    meter.noisy_units("turn", np.zeros(2, dtype=np.int64), step=2.0**-20, sensitivity=10.0)
    meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="whose bound is in the plan"):
        meter.noisy_units("gradients", np.zeros(2, dtype=np.int64), step=2.0**-20, sensitivity=0.1)
    with pytest.raises(InvalidParameter, match="a release of counts"):
        meter.noisy_counts("gradients", np.zeros(2, dtype=np.int64))


def test_counts_have_the_noise_of_a_histogram() -> None:
    """Stddev of 20,000 counts within 4 % of √2/2 × the multiplier under replace_one: 8 standard errors."""
    counts = Release(name="counts", of="bins", bound=Histograms(), noise_multiplier=6.0)
    meter = Meter(
        Plan(releases=(counts,), records=8, neighbours="replace_one"), random=fixed_seed_invalidates_guarantee(3)
    )
    with pytest.raises(InvalidParameter, match="no clipping rule"):
        meter.rule("counts")
    meter.open("counts", count=8)
    found = meter.noisy_counts("counts", np.full(20_000, 7, dtype=np.int64))
    assert abs(found.mean() - 7) < 0.2
    assert found.std() == pytest.approx(6.0 * math.sqrt(2) / 2, rel=0.04)


def test_a_draw_of_its_own_is_counted() -> None:
    """An exact choice gets the run's randomness once it is opened, and only then."""
    choice = Release(
        name="choice", of="losses", bound=Bounded(clip=1.0, how="cut"), mechanism=ExponentialMechanism(epsilon=0.5)
    )
    meter = Meter(Plan(releases=(choice,), records=8, neighbours="zero_out"))
    with pytest.raises(InvalidParameter, match="to be opened"):
        meter.draw("choice")
    meter.open("choice", count=8)
    assert meter.draw("choice") is meter.random
    assert meter.finish() == ("choice",)


def test_an_adaptive_clip_is_the_one_that_must_be_used() -> None:
    """After a step the clip has moved, and a sum bounded by the old one is refused."""
    plan = gradient_plan(
        bounding=Adaptive(clip=1.0, count_noise=20.0),
        noise_multiplier=2.0,
        steps=2,
        records=8,
        neighbours="zero_out",
    )
    meter = Meter(plan)
    meter.open("gradients", count=8)
    meter.noisy("gradients", summed())
    assert meter.rule("gradients").clip != 1.0
    meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="bounded by"):
        meter.noisy("gradients", summed())


def test_a_meter_of_another_plan_runs_nothing() -> None:
    """A solver with a meter refuses to run a plan that the meter does not hold."""
    problem = glm("half_squared", np.ones((8, 1)), np.zeros(8), row_norm=1.0)
    solver = DPSGD(steps=2, clip=1.0)
    plan = solver.plan(facts_of(problem, "zero_out"), BUDGET)
    with pytest.raises(InvalidParameter, match="holds this plan"):
        solver.run(plan, problem, meter=Meter(PLAN))


# Mutants: a solver that releases something else than it planned.

Mutant = Callable[[tuple[Release, ...]], tuple[Release, ...]]
MUTANTS: dict[str, Mutant] = {
    "adds": lambda releases: releases[:-1],  # it releases one more than the plan has
    "drops": lambda releases: (*releases, replace(releases[0], name="forgotten")),
    "reorders": lambda releases: releases[::-1],
    "repeats less": lambda releases: tuple(replace(r, times=r.times + 1) for r in releases),
    "is of another size": lambda releases: tuple(replace(r, size=r.size + 1) for r in releases),
}
SOLVERS: dict[str, Any] = {
    "fixed hessian": FixedHessian(clip=0.5, steps=3),
    "svrg": DPSVRG(
        epochs=2, epoch_steps=3, sampling=Poisson(sampling_rate=0.5), clip=1.0, difference_clip=0.5, step_size=0.1
    ),
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_release_what_they_plan(solver: str) -> None:
    """The record of a run is the plan, release by release."""
    problem = glm("logistic", np.eye(2)[[0, 1] * 20], [0, 1] * 20, row_norm=1.0)
    plan = SOLVERS[solver].plan(facts_of(problem, "zero_out"), BUDGET)
    meter = Meter(plan)
    SOLVERS[solver].run(plan, problem, meter=meter)
    assert meter.finish() == tuple(r.name for r in plan.releases for _ in range(r.times))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught_by_the_meter(mutant: str, solver: str) -> None:
    """A run that adds, drops or reorders a release, or makes another one than was priced, does not come to its end."""
    problem = glm("logistic", np.eye(2)[[0, 1] * 20], [0, 1] * 20, row_norm=1.0)
    plan = SOLVERS[solver].plan(facts_of(problem, "zero_out"), BUDGET)
    other = replace(plan, releases=MUTANTS[mutant](plan.releases))
    meter = Meter(other)

    def run() -> None:
        SOLVERS[solver].run(other, problem, meter=meter)
        meter.finish()

    with pytest.raises(PrivetError):
        run()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_problem_that_clips_otherwise_is_caught_by_the_meter(solver: str) -> None:
    """A sum whose records are bounded by another clip than the plan's gets no noise, and so is not released."""
    problem: Any = glm("logistic", np.eye(2)[[0, 1] * 20], [0, 1] * 20, row_norm=1.0)
    inner = problem.gradient_sum
    problem.gradient_sum = lambda theta, **settings: inner(theta, **{**settings, "rule": Clip(clip=2.0)})
    plan = SOLVERS[solver].plan(facts_of(problem, "zero_out"), BUDGET)
    with pytest.raises(InvalidParameter, match="as planned, got 2"):
        SOLVERS[solver].run(plan, problem)


FLOATS = gradient_plan(bounding=Clip(clip=2.0), noise_multiplier=3.0, steps=3, records=8, neighbours="zero_out")


def test_noise_in_floats_is_counted_bounded_and_given_once() -> None:
    """The standard deviation is the plan's, for the planned clip only, after open(), once."""
    meter = Meter(FLOATS)
    with pytest.raises(InvalidParameter, match="opened before"):
        meter.float_noise("gradients", clip=2.0, size=5)
    meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="bounded by 2"):
        meter.float_noise("gradients", clip=2.5, size=5)
    assert 6.0 <= meter.float_noise("gradients", clip=2.0, size=5) < 6.0 + 1e-12
    with pytest.raises(InvalidParameter, match="opened before"):
        meter.float_noise("gradients", clip=2.0, size=5)


def test_noise_in_floats_moves_a_clip_that_adapts() -> None:
    """All records above the clip raise it, and the next noise is of the new clip; the count is noised exactly."""
    rule = Adaptive(clip=1.0, count_noise=10.0, rate=1.0)
    plan = gradient_plan(bounding=rule, noise_multiplier=3.0, steps=2, records=8000, neighbours="zero_out")
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(3))
    meter.open("gradients", count=8000)
    first = meter.float_noise("gradients", clip=1.0, size=5, within=-8000)
    moved = meter.rule("gradients").clip
    assert moved == pytest.approx(math.exp(0.5), rel=1e-2)
    meter.open("gradients", count=8000)
    assert meter.float_noise("gradients", clip=moved, size=5, within=8000) == pytest.approx(first * moved, rel=1e-12)
    assert meter.rule("gradients").clip == pytest.approx(1.0, rel=1e-2)  # all within: back by as much


def test_the_count_of_a_clip_that_adapts_has_the_planned_noise() -> None:
    """As many records within as beyond: the share is ½ plus noise of count_noise ÷ batch, in floats as on the lattice.

    500 moves each: a standard deviation off by 16 % would be seen with power 0.99 at 2.7 standard errors (3.2 % each);
    the seed is fixed, and twice the noise, as of a count that is not centred, is 31 of them.
    """
    rule = Adaptive(clip=1.0, count_noise=10.0, rate=1.0)
    plan = gradient_plan(bounding=rule, noise_multiplier=3.0, steps=500, records=200, neighbours="zero_out")
    for exact in (False, True):
        meter, clips = Meter(plan, random=fixed_seed_invalidates_guarantee(7)), [1.0]
        for _ in range(500):
            meter.open("gradients", count=200)
            if exact:
                units = np.zeros(1, dtype=np.int64)
                meter.noisy("gradients", LatticeSum(units=units, step=2.0**-40, clip=clips[-1], within=0))
            else:
                meter.float_noise("gradients", clip=clips[-1], size=1, within=0)
            clips.append(meter.rule("gradients").clip)
        moves = np.diff(np.log(clips))
        assert moves.std() == pytest.approx(10.0 / 200, rel=0.09)
        assert abs(moves.mean()) < 3 * 0.05 / math.sqrt(500)


def test_a_resumed_meter_goes_on_where_the_charges_end() -> None:
    """What an earlier process was charged is not made again; one release more than the plan has is refused."""
    meter = Meter(FLOATS)
    meter.resume(2, clips={})
    assert meter.next_name == "gradients"
    meter.open("gradients", count=8)
    meter.float_noise("gradients", clip=2.0, size=5)
    assert meter.next_name is None
    with pytest.raises(InvalidParameter, match="end here"):
        meter.open("gradients", count=8)
    with pytest.raises(InvalidParameter, match="end here"):
        Meter(FLOATS).resume(4, clips={})
    adapting = gradient_plan(
        bounding=Adaptive(clip=1.0, count_noise=10.0), noise_multiplier=3.0, steps=2, records=80, neighbours="zero_out"
    )
    again = Meter(adapting)
    again.resume(1, clips={"gradients": 0.25})
    assert (again.rule("gradients").clip, again.clips) == (0.25, {"gradients": 0.25})
    with pytest.raises(InvalidParameter, match="clip"):
        Meter(adapting).resume(1, clips={"gradients": math.nan})


def test_batches_drawn_elsewhere_are_only_for_plans_that_say_so() -> None:
    """A batch of unknown origin is refused where the price is that of batches drawn here."""
    with pytest.raises(InvalidParameter, match="drawn elsewhere"):
        Meter(FLOATS).open_elsewhere("gradients")
    plan = gradient_plan(
        bounding=Clip(clip=1.0),
        noise_multiplier=3.0,
        steps=8,
        records=8,
        neighbours="zero_out",
        sampling=Passes(batch=2, batches=4),
    )
    meter = Meter(plan)
    meter.open_elsewhere("gradients")
    assert meter.record == ["gradients"]
