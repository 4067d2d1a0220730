"""The figure of batches: its curves are the planner's, the dot is the one chosen, and steps stand below the sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.plan import plan_training
from privet.report import batches_figure

ASKED: dict[str, Any] = {"records": 1000, "delta": 1e-6, "compute": 10_000}


def test_curves_are_those_of_the_planner() -> None:
    """One for each plan, with a dot at the chosen batch; ticks name sizes and the steps that they leave."""
    found = {f"ε = {epsilon}": plan_training(epsilon=epsilon, **ASKED) for epsilon in (1, 4)}
    axes = batches_figure(found).axes[0]
    curves = {line.get_label(): line for line in axes.lines}
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    for (name, choices), dot in zip(found.items(), dots, strict=True):
        rows = np.array([(row.batch_size, row.mean_noise) for row in choices.rows])
        assert np.array_equal(curves[name].get_xydata(), rows)
        assert np.array_equal(dot.get_xydata(), [(choices.chosen.batch_size, choices.chosen.mean_noise)])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["16\n625", "32\n312", "64\n156"]
    assert len(axes.get_yticklabels()) >= 2


def test_nothing_to_draw_is_refused() -> None:
    """Without a plan there is no figure."""
    with pytest.raises(InvalidParameter, match="at least one result"):
        batches_figure({})
