from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from privet import Budget
from privet.accounting import Approximate, Gaussian, epsilon
from privet.accounting.pairs.dominating import leaves
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.noise import add_gaussian
from privet.plan import Histograms, Meter, Plan, gradient_plan, meter
from privet.preprocessing import (
    Category,
    Number,
    Schema,
    SchemaLearner,
    TableEncoder,
    Target,
    learn_schema,
    learning,
)
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import Strided

RELATIONS: tuple[Neighbours, ...] = get_args(Neighbours)
SCHEMA = Schema(
    columns={"age": Number(), "sex": Category(values=("f", "m")), "gain": Number(log=True), "job": Category()},
    target=Target(column="y", kind="label"),
    ignored=("id",),
)


def people(count: int = 20_000) -> dict[str, Any]:
    rng = np.random.default_rng(11)
    return {
        "id": np.arange(count),
        "age": rng.integers(18, 90, count),
        "sex": rng.choice(["f", "m"], count),
        "gain": np.where(rng.random(count) < 0.8, 0, rng.integers(100, 9000, count)),
        "job": rng.choice(["baker", "smith", "tinker"], count, p=[0.5, 0.4, 0.1]),
        "y": rng.choice(["no", "yes"], count),
    }


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_budget_is_met_and_used_up(neighbours: Neighbours) -> None:
    """The guarantee is within the budget and within 1e-6 of it, for the relation that was asked for."""
    budget = Budget(epsilon=0.5, delta=1e-6)
    learnt = learn_schema(people(), SCHEMA, budget=budget, neighbours=neighbours)
    assert budget.epsilon * (1 - 1e-6) <= learnt.guarantee.epsilon <= budget.epsilon
    assert learnt.guarantee.neighbours == neighbours
    assert epsilon(learnt.plan.event, delta=1e-6, neighbours=neighbours) <= budget.epsilon
    assert "one row" in learnt.guarantee.details
    assert learnt.schema.unknown == ()
    assert learnt.schema.columns["sex"] == SCHEMA.columns["sex"]
    assert TableEncoder(learnt.schema).transform(people(5)).shape[0] == 5


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_what_is_learnt_is_near_the_truth(neighbours: Neighbours) -> None:
    """Names are all there, ranges hold most values and are less than four times as wide; a fixed seed."""
    known: Any = {"neighbours": neighbours, "random": fixed_seed_invalidates_guarantee(1)}
    learnt = learn_schema(people(), SCHEMA, budget=Budget(epsilon=0.5, delta=1e-6), **known)
    assert learnt.schema.columns["job"] == Category(values=("baker", "smith", "tinker"))
    assert learnt.schema.target == Target(column="y", kind="label", values=("no", "yes"))
    age, gain = learnt.schema.columns["age"], learnt.schema.columns["gain"]
    assert isinstance(age, Number)
    assert isinstance(gain, Number)
    assert (age.low or 0) < 30 < 70 < (age.high or 0) <= 128
    assert gain.log
    assert (gain.low, 5000 < (gain.high or 0) <= 16384) == (0.0, True)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_plan_prices_what_runs(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every noise that is drawn is in the plan's event, with its own reach, and nothing else is.

    Mutant: noise for one column instead of all of a kind would be √2 smaller here.
    """
    learner = SchemaLearner(schema=SCHEMA, threshold_delta=1e-7)
    plan = Plan(releases=learner.releases(noise_multiplier=6.0), neighbours=neighbours)
    drawn: list[float] = []
    usual = add_gaussian

    def spy(units: Any, *, step: float, noise_stddev: float, random: Any) -> Any:
        drawn.append(noise_stddev)
        return usual(units, step=step, noise_stddev=noise_stddev, random=random)

    monkeypatch.setattr(meter, "add_gaussian", spy)
    running = Meter(plan)
    learner.run(learner.read(people(500)), running)
    assert running.finish() == tuple(release.name for release in plan.releases)
    unit = Histograms(columns=2).sensitivity(neighbours) / (2 if neighbours == "replace_one" else 1)
    parts = dict(leaves(plan.event, neighbours))
    priced = [event.noise_multiplier * unit for event, count in parts.items() if isinstance(event, Gaussian)]
    ranges, names = priced
    assert drawn == pytest.approx([ranges, ranges, names], rel=1e-14)  # two histograms of ranges; one of all names
    assert parts[Approximate(epsilon=0.0, delta=1e-7)] == 1
    share = sum(count / e.noise_multiplier**2 for e, count in parts.items() if isinstance(e, Gaussian))
    assert share == pytest.approx(1 / 6.0**2, rel=1e-12)


def test_learning_and_fitting_are_one_guarantee() -> None:
    """Its releases come first in a training plan, and one calibration covers both."""
    learning = SchemaLearner(schema=SCHEMA, threshold_delta=1e-7).releases(noise_multiplier=30.0)
    plan = gradient_plan(bounding=Clip(clip=1.0), steps=10, records=1000, neighbours="zero_out")
    plan = replace(plan, releases=(*learning, *plan.releases))
    promise = plan.calibrated(Budget(epsilon=1.0, delta=1e-5)).guarantee(delta=1e-5)
    assert 0.999 < promise.epsilon <= 1.0


@pytest.mark.parametrize("drop", [0, 17])
def test_nothing_but_the_noisy_sums_depends_on_the_data(drop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record and replay: with the noisy answers of D, the whole outcome on D without a row is the same."""
    table = people(3000)
    table["job"][drop], table["age"][drop] = "Jane Doe", 10**9
    answers: list[Any] = []
    usual = Meter.noisy_counts

    def record(self: Meter, name: str, units: Any) -> Any:
        answers.append(usual(self, name, units))
        return answers[-1]

    def replay(self: Meter, name: str, units: Any) -> Any:
        usual(self, name, units)
        return answers.pop(0)

    budget = Budget(epsilon=1.0, delta=1e-5)
    schema = replace(SCHEMA, columns={**SCHEMA.columns, "job": Category(values=())})
    monkeypatch.setattr(Meter, "noisy_counts", record)
    one = learn_schema(table, schema, budget=budget)
    monkeypatch.setattr(Meter, "noisy_counts", replay)
    rest = {name: np.delete(column, drop) for name, column in table.items()}
    assert learn_schema(rest, schema, budget=budget) == one
    assert "Jane" not in repr(one)


def test_targets_are_learnt_too() -> None:
    """A number's range and a count's bound, which starts at 0 and is whole."""
    rng = np.random.default_rng(1)
    table = {"a": rng.random(9000), "y": rng.poisson(4.0, 9000)}
    for kind in ("number", "count"):
        schema = Schema(columns={"a": Number(low=0, high=1)}, target=Target(column="y", kind=kind))
        target = learn_schema(table, schema, budget=Budget(epsilon=1, delta=1e-6)).schema.target
        assert target is not None
        assert target.high is not None
        assert 7 <= target.high <= 17
        assert kind == "number" or (target.low == 0.0 and target.high == math.floor(target.high))


def test_a_fixed_seed_invalidates_the_guarantee() -> None:
    """Learning from predictable words says NOT PRIVATE."""
    learnt = learn_schema(
        people(100), SCHEMA, budget=Budget(epsilon=1, delta=1e-6), random=fixed_seed_invalidates_guarantee(1)
    )
    assert math.isinf(learnt.guarantee.epsilon)
    assert str(learnt.guarantee).startswith("NOT PRIVATE")


def test_public_mistakes_are_refused() -> None:
    """Nothing to learn, no noise, no budget, an unknown relation, a column that is not there: no row is touched."""
    complete = Schema(columns={"age": Number(low=0, high=1)})
    budget = Budget(epsilon=1, delta=1e-6)
    with pytest.raises(InvalidParameter, match="nothing to learn"):
        learn_schema(people(9), complete, budget=budget)
    with pytest.raises(InvalidParameter, match="Calibrate"):
        SchemaLearner(schema=SCHEMA, threshold_delta=1e-7).releases(noise_multiplier=math.nan)
    with pytest.raises(InvalidParameter, match="budget"):
        learn_schema(people(9), SCHEMA, budget=Budget(epsilon=0, delta=1e-6))
    with pytest.raises(InvalidParameter, match="neighbours"):
        learn_schema(people(9), SCHEMA, budget=budget, neighbours="row")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="'age'"):
        learn_schema({"job": ["Jane Doe"], "y": [1], "gain": [1]}, SCHEMA, budget=budget)


def test_only_names_charge_a_threshold() -> None:
    """With ranges alone to learn, the event is Gaussian, and none of delta is set aside."""
    learner = SchemaLearner(schema=Schema(columns={"a": Number()}), threshold_delta=1e-7)
    plan = Plan(releases=learner.releases(noise_multiplier=5.0), neighbours="zero_out")
    assert all(isinstance(event, Gaussian) for event, _ in leaves(plan.event, "zero_out"))
    assert (learner.numbers, learner.names) == (("a",), ())


def tall(rate: float, **more: Any) -> SchemaLearner:
    schema = Schema(columns={"age": Number(), "gain": Number(low=0, high=1e6)})
    return SchemaLearner(schema=schema, threshold_delta=1e-7, inside=("gain",), rate=rate, **more)


def test_ranges_are_learnt_from_the_sample_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows outside of the sample change no release; one of the sample, the bins of its own cells, by one each."""
    monkeypatch.setattr(learning, "Poisson", lambda sampling_rate: Strided(batch=5_000))
    summed: list[Any] = []
    right = Meter.noisy_counts

    def kept(self: Meter, name: str, counts: Any, **named: Any) -> Any:
        summed.append(np.array(counts))
        return right(self, name, counts, **named)

    monkeypatch.setattr(Meter, "noisy_counts", kept)
    inside = Strided(batch=5_000).indices(20_000, 0, fixed_seed_invalidates_guarantee(1))
    assert inside is not None
    outside = np.setdiff1d(np.arange(20_000), inside)
    found = []
    for places in (inside[:0], outside, inside[:1]):
        table = people()
        table["age"], table["gain"] = table["age"].astype(np.float64), table["gain"].astype(np.float64)
        table["age"][places], table["gain"][places] = np.inf, 2.0**19
        learner = tall(0.25)
        plan = learner.plan(Budget(epsilon=8.0, delta=1e-6), "replace_one")
        summed.clear()
        learner.run(learner.read(table), Meter(plan, random=fixed_seed_invalidates_guarantee(3)))
        found.append([each.copy() for each in summed])
    assert all(np.array_equal(one, other) for one, other in zip(found[0], found[1], strict=True))
    moved = found[2][0] - found[0][0]
    assert (np.abs(moved).sum(axis=1) == [1, 2]).all()  # infinity is in no bin


@pytest.mark.parametrize(("neighbours", "groups"), [("add_remove", None), ("zero_out", "id")])
def test_a_sample_is_refused_where_it_is_not_proven(neighbours: Neighbours, groups: str | None) -> None:
    """Of people, and where the number of rows is private."""
    learner = tall(0.25, groups=groups)
    plan = learner.plan(Budget(epsilon=8.0, delta=1e-6), neighbours)
    with pytest.raises(InvalidParameter, match="Expected rate=1"):
        learner.run(learner.read(people()), Meter(plan))
