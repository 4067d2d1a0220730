"""Plans as text: read back unchanged, or refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from privet import Budget, Plan, glm
from privet.clipping import Adaptive, Automatic, Clip, Declared, PerLayer
from privet.errors import PlanFormat
from privet.noise import banded_square_root
from privet.plan import (
    Histograms,
    MomentSums,
    Presences,
    Release,
    gradient_plan,
    plan_from_json,
    plan_to_json,
)
from privet.problems import facts_of
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Passes, Poisson, Strided, TruncatedPoisson
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
    ZerothOrder,
)

BUDGET = Budget(epsilon=1, delta=1e-6)
SOLVERS: list[Any] = [
    BestIterate(descent=DPSGD(steps=5, clip=1.0, release="all"), loss_clip=1.0),
    DPSGD(steps=5, clip=1.0, sampling=Poisson(sampling_rate=0.1)),
    DPSGD(steps=4, clip=1.0, correlation=banded_square_root(3)),
    DPSVRG(epochs=2, epoch_steps=3, sampling=FullBatch(), clip=1.0, difference_clip=0.5, step_size=0.1),
    Exponential(lipschitz=1.0),
    FixedHessian(clip=0.5, steps=3),
    Newton(clip=0.5, steps=3),
    NoisyGradientDescent(radius=2.0),
    ObjectivePerturbation(radius=2.0),
    OutputPerturbation(radius=2.0),
    PilotNewton(clip=1.0, rate=0.2, update=GradientStep(step_size=1.0), pilot_steps=7, steps=2),
    ZerothOrder(steps=3, clip=1.0, step_size=0.1),
]
BEFORE = (
    Release(name="octaves", of="octaves", bound=Histograms(columns=2), noise_multiplier=40.0, size=32),
    Release(name="present", of="records", bound=Presences(columns=2), noise_multiplier=40.0, size=2),
    Release(name="moments", of="moments", bound=MomentSums(columns=2), noise_multiplier=40.0, size=6),
)
SIMPLE = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=9, records=100, neighbours="zero_out")


@pytest.mark.parametrize("before", [(), BEFORE], ids=["alone", "after ranges"])
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_every_solvers_plan_is_read_back_unchanged(solver: Any, before: tuple[Release, ...]) -> None:
    """Equal to the last bit, with the same event and the same guarantee."""
    problem = glm("logistic", np.zeros((200, 2)), np.zeros(200), row_norm=1.0)
    plan = solver.plan(facts_of(problem, "replace_one"), BUDGET, before=before)
    again = plan_from_json(plan_to_json(plan))
    assert again == plan
    assert again.event == plan.event
    assert again.guarantee().details == plan.guarantee().details
    assert str(again) == str(plan)
    assert plan.guarantee().epsilon <= 1


@pytest.mark.parametrize(
    "bounding",
    [Clip(clip=0.1), Declared(lipschitz=3.0), Automatic(), Adaptive(clip=1.0, count_noise=9.0), PerLayer(clip=2.0)],
    ids=repr,
)
@pytest.mark.parametrize(
    "sampling",
    [
        FullBatch(),
        Poisson(sampling_rate=0.01),
        FixedSize(batch=3),
        OneRecord(),
        Cyclic(batch=3),
        Strided(batch=3),
        TruncatedPoisson(sampling_rate=0.01, batch=9),
        TruncatedPoisson(sampling_rate=0.01, batch=9, most_records=200),
        Passes(batch=3, batches=4),
    ],
    ids=repr,
)
def test_every_scheme_and_rule_is_read_back(bounding: Any, sampling: Any) -> None:
    """Also before it is calibrated, and for people, who have no batches by place."""
    unit: Any = "record" if isinstance(sampling, Cyclic) else "person"
    plan = gradient_plan(bounding=bounding, sampling=sampling, steps=7, records=100, neighbours="zero_out", unit=unit)
    assert plan_from_json(plan_to_json(plan)) == plan


@pytest.mark.parametrize(
    ("old", "new"),
    [('"times": 9', '"times": 8'), ("5.0", "4.0"), ('"clip": 1.0', '"clip": 2.0'), ("zero_out", "add_remove")],
)
def test_an_edited_plan_is_refused(old: str, new: str) -> None:
    """One number changed by hand: its releases are no longer those that were priced."""
    text = plan_to_json(SIMPLE)
    assert old in text
    with pytest.raises(PlanFormat, match="edited"):
        plan_from_json(text.replace(old, new))


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_plan_of_another_version_is_refused(version: Any) -> None:
    """A newer plan may mean something else."""
    document = json.loads(plan_to_json(SIMPLE)) | {"privet_plan": version}
    with pytest.raises(PlanFormat, match="version"):
        plan_from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '{"plan": {}}', '"privet_plan"'])
def test_what_is_no_plan_is_refused(text: str) -> None:
    """Neither a plan nor JSON."""
    with pytest.raises(PlanFormat, match="the JSON of a plan"):
        plan_from_json(text)


@pytest.mark.parametrize("field", ["releases", "records", "neighbours", "unit", "budget"])
def test_a_plan_with_fields_missing_is_refused(field: str) -> None:
    """Even where its digest fits."""
    from privet.plan.plan_json import _digest

    document = json.loads(plan_to_json(SIMPLE))
    del document["plan"][field]
    document["digest"] = _digest(document["plan"])
    with pytest.raises(PlanFormat, match="fields missing"):
        plan_from_json(json.dumps(document))


def test_a_rule_of_ones_own_is_not_written() -> None:
    """Nobody could read it back, and a name alone does not say what it does."""

    @dataclass(frozen=True)
    class Mine(Clip):
        pass

    plan: Plan = replace(SIMPLE, releases=(replace(SIMPLE.releases[0], bound=Mine(clip=1.0)),))
    with pytest.raises(PlanFormat, match="Mine"):
        plan_to_json(plan)
