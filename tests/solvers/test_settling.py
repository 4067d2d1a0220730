"""The constant beside slopes that were found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet import glm
from privet.plan import Meter, Plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import settling
from privet.solvers.constant_draws import drawn
from privet.solvers.settling import SETTLED, Settling, settled_shifts

X = np.column_stack([np.linspace(-0.7, 0.7, 201), np.full(201, 0.5)])
TARGET = 0.4 * X[:, 0] + 0.25


def settled(
    epsilon: float, loss: Any = "half_squared", target: Any = TARGET, neighbours: Any = "replace_one"
) -> tuple[Any, Plan]:
    """What is drawn for slopes that are right, from a constant of 0."""
    problem = glm(loss, X, target, row_norm=1.0)
    draw = Settling(epsilon=epsilon, clip=1.0)
    plan = Plan(releases=(draw.release(),), neighbours=neighbours, records=201)
    meter = Meter(plan, random=fixed_seed_invalidates_guarantee(1))
    found = draw.run(problem, np.array([0.4, 0.0]), 0.5, meter)
    meter.finish()
    return found, plan


def test_where_noise_is_nothing_slopes_balance() -> None:
    """The prediction is moved to where it is right, as near as a shift comes, and slopes stay."""
    found, _ = settled(200.0)
    assert found[0] == 0.4
    assert found[1] * 0.5 == pytest.approx(0.25, rel=0.1)


def test_where_nothing_can_be_told_shifts_are_small() -> None:
    """As many shifts are in every octave, so that half of them are below a sixteenth of the reach."""
    assert np.median(np.abs(settled_shifts(1.0))) <= 1 / 16


def test_it_costs_what_is_planned() -> None:
    """One exponential mechanism of its epsilon, and the guarantee is no more."""
    _, plan = settled(0.5)
    assert [release.name for release in plan.releases] == [SETTLED]
    assert plan[SETTLED].mechanism.epsilon == 0.5  # type: ignore[union-attr]


@pytest.mark.parametrize(("neighbours", "times"), [("replace_one", 2), ("zero_out", 1)])
def test_one_record_moves_scores_by_half_of_what_they_are_drawn_for(
    neighbours: Any, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whole numbers, for the worst of targets; and it does move them by nearly that."""
    heard: list[tuple[list[int], int]] = []

    def listen(name: str, scores: list[int], width: int, meter: Any, **more: Any) -> int:
        heard.append((scores, width))
        return drawn(name, scores, width, meter, **more)

    monkeypatch.setattr(settling, "drawn", listen)
    for first in (np.nan, 1e9, -1e9, 0.0) if times == 2 else (np.nan, 1e9):
        settled(0.5, target=np.append(first, TARGET[1:]), neighbours=neighbours)
    moved = [max(abs(a - b) for a, b in zip(one, other, strict=True)) for one, _ in heard for other, _ in heard]
    widths = {width for _, width in heard}
    assert len(widths) == 1
    assert 0.9 * widths.copy().pop() / 2 <= max(moved) <= widths.pop() / 2
