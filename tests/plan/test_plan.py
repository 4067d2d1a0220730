from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from privet import Budget, Plan
from privet.accounting import Gaussian, guarantee
from privet.clipping import Adaptive, Automatic, Clip, Declared
from privet.errors import InvalidParameter, NoProvenBound
from privet.sampling import Cyclic, FixedSize, FullBatch, OneRecord, Poisson

BASE: dict[str, Any] = {"bounding": Clip(clip=2.0), "steps": 10, "records": 100, "neighbours": "replace_one"}


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize(
    "sampling", [FullBatch(), Poisson(sampling_rate=0.1), FixedSize(batch=10), OneRecord(), Cyclic(batch=10)], ids=repr
)
def test_a_plan_is_priced_as_its_sampling_says(sampling: Any, neighbours: Any) -> None:
    """plan.guarantee is the price of the scheme's event under the plan's relation, or a refusal (row 33)."""
    plan = Plan(**{**BASE, "neighbours": neighbours}, sampling=sampling, noise_multiplier=3.0)
    if neighbours == "add_remove" and not isinstance(sampling, FullBatch | Poisson):
        with pytest.raises(NoProvenBound):
            plan.guarantee(delta=1e-5)
        return
    event = sampling.event(Gaussian(noise_multiplier=3.0), steps=10, records=100, neighbours=neighbours)
    assert plan.event == event
    found = plan.guarantee(delta=1e-5)
    assert found.epsilon == guarantee(event, delta=1e-5, neighbours=neighbours).epsilon
    assert found.neighbours == neighbours
    assert "clipped to norm 2" in " ".join(found.assumptions)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    ("sampling", "epsilon"),
    [
        (FullBatch(), 0.1),
        (FullBatch(), 1.0),
        (FullBatch(), 1e3),
        (FullBatch(), 1e6),
        (Poisson(sampling_rate=0.1), 1.0),
        pytest.param(Poisson(sampling_rate=0.1), 50.0, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_calibration_lands_on_the_safe_side(sampling: Any, neighbours: Any, epsilon: float) -> None:
    """The calibrated plan meets its budget and wastes at most 1e-5 of it; noise falls as the budget grows."""
    plan = Plan(**{**BASE, "neighbours": neighbours}, sampling=sampling).calibrated(Budget(epsilon=epsilon, delta=1e-6))
    assert epsilon * (1 - 1e-5) <= plan.guarantee(delta=1e-6).epsilon <= epsilon
    assert plan.steps == 10


def test_the_count_of_adaptive_clipping_is_part_of_the_price() -> None:
    """The step's two releases together cost the plan's noise multiplier, so the gradient's own is larger (row 40)."""
    rule = Adaptive(clip=1.0, count_noise=2.0)
    plan = Plan(**{**BASE, "bounding": rule}, noise_multiplier=1.0)
    assert plan.event == Gaussian(noise_multiplier=1.0) * 10
    assert plan.gradient_multiplier == pytest.approx((1 - 1 / 16) ** -0.5)
    assert 1 / plan.gradient_multiplier**2 + 1 / (2 * 2.0) ** 2 == pytest.approx(1.0)
    with pytest.raises(InvalidParameter, match="count_noise"):
        Plan(**{**BASE, "bounding": rule}, noise_multiplier=4.0)


def test_adaptive_plans_calibrate_up_to_their_limit() -> None:
    """The search for noise is not stopped by a limit that the answer respects; beyond it the refusal names the cure."""
    free = Plan(**BASE).calibrated(Budget(epsilon=5, delta=1e-5)).noise_multiplier
    near = Plan(**{**BASE, "bounding": Adaptive(clip=1.0, count_noise=free * 0.51)})
    assert near.calibrated(Budget(epsilon=5, delta=1e-5)).noise_multiplier == pytest.approx(free)
    far = Plan(**{**BASE, "bounding": Adaptive(clip=1.0, count_noise=free * 0.49)})
    with pytest.raises(InvalidParameter, match="Raise count_noise"):
        far.calibrated(Budget(epsilon=5, delta=1e-5))


def test_further_releases_are_priced_with_the_run() -> None:
    """What a solver releases besides its gradients is part of the event (row 40)."""
    plan = Plan(**BASE, noise_multiplier=3.0, also=(Gaussian(noise_multiplier=2.0),))
    assert plan.event == Gaussian(noise_multiplier=3.0) * 10 + Gaussian(noise_multiplier=2.0)
    assert plan.guarantee(delta=1e-5).epsilon > Plan(**BASE, noise_multiplier=3.0).guarantee(delta=1e-5).epsilon


def test_every_scalar_comes_from_public_numbers() -> None:
    """Divisor, capacity, price: functions of the plan alone, which never sees data (row 24)."""
    plan = Plan(**{**BASE, "neighbours": "add_remove"}, sampling=Poisson(sampling_rate=0.1), noise_multiplier=1.0)
    assert plan.batch_size == 10.0
    assert plan.most_records == 2**27  # a bound on the realised batch must not come from the data
    assert Plan(**BASE, sampling=FixedSize(batch=7), noise_multiplier=1.0).most_records == 7
    assert Plan(**BASE, noise_multiplier=1.0).most_records == 100


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("steps", [0, -1, 2.5, True, "3", None, math.inf]),
        ("records", [0, -1, 2.5, True, "3", None]),
        ("noise_multiplier", [0, 0.0, -1.0, math.inf, "1"]),
        ("neighbours", ["replace", "", None]),
    ],
)
def test_plans_that_promise_nothing_are_refused(field: str, values: list[Any]) -> None:
    """T = 0, no records, no noise, no relation: refused when the plan is written (rows 20, 33, 37)."""
    for value in values:
        with pytest.raises(InvalidParameter, match=field):
            Plan(**{**BASE, "noise_multiplier": 1.0, field: value})


def test_a_plan_without_noise_can_be_neither_priced_nor_run() -> None:
    """Leaving the noise out is allowed until the plan is used."""
    plan = Plan(**BASE)
    for use in (lambda: plan.event, lambda: plan.guarantee(delta=1e-5), lambda: plan.gradient_multiplier):
        with pytest.raises(InvalidParameter, match="noise_multiplier"):
            use()


@pytest.mark.parametrize("budget", [None, 1.0, (1.0, 1e-6), Budget(epsilon=0, delta=1e-6)])
def test_budgets_that_no_noise_can_meet_are_refused(budget: Any) -> None:
    """Epsilon 0, or what is no budget, is refused before any search."""
    with pytest.raises(InvalidParameter, match="budget"):
        Plan(**BASE).calibrated(budget)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter):
            Plan(**BASE, noise_multiplier=1.0).guarantee(delta=delta)


def test_plans_are_values() -> None:
    """A plan is frozen, equal to its like, and shows all of itself: it is public."""
    plan = Plan(**BASE, noise_multiplier=1.0)
    assert plan == Plan(**BASE, noise_multiplier=1.0)
    assert plan != dataclasses.replace(plan, bounding=Declared(lipschitz=2.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.steps = 5  # type: ignore[misc]
    assert Plan(**{**BASE, "bounding": Automatic()}, noise_multiplier=float(np.float64(2.0))).gradient_multiplier == 2.0
