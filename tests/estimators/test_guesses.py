"""Under "add_remove" the number of records is a guess: one that is far too low costs little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.estimators import LinearRegression, LogisticRegression
from privet.estimators.centred_defaults import with_shorter_steps
from privet.solvers import DPSGD, FixedHessian, GradientStep

RNG = np.random.default_rng(0)


@pytest.mark.medium
@pytest.mark.parametrize(("rows", "columns"), [(40_000, 3), (12_000, 10)])  # whitened, and centred
def test_a_guess_forty_times_too_low_costs_little(rows: int, columns: int) -> None:
    """Of a line R² is above 0.9, of labels accuracy within 3 points of that with a true guess; the plan is as planned.

    Steps were forty times too long: R² of −9, and the worst predictions off by all of the target's range.
    """
    X = RNG.uniform(-1, 1, size=(rows, columns))
    score = X @ np.resize([2.0, -1.5, 1.0], columns) / np.sqrt(columns)
    number, label = score + 5 + 0.2 * RNG.normal(size=rows), score + 0.3 * RNG.normal(size=rows) > 0.3
    scores = {}
    for guess in (rows, rows // 40):
        known: dict[str, Any] = {"bounds": (-1, 1), "neighbours": "add_remove", "records": guess, "random_state": 1}
        line = LinearRegression(1.0, target_range=(0, 10), **known).fit(X, number)
        assert line.score(X, number) > 0.9
        assert line.plan_ == line.plan(records=guess, columns=columns)
        scores[guess] = LogisticRegression(1.0, classes=[False, True], **known).fit(X, label).score(X, label)
    assert scores[rows // 40] > scores[rows] - 0.03


def test_steps_are_shortened_and_never_lengthened() -> None:
    """A descent's step is divided by what is more than 1; nothing else of it changes, nor any other solver."""
    solver = DPSGD(steps=7, clip=0.5, update=GradientStep(step_size=3.0, momentum=0.5))
    assert with_shorter_steps(solver, 0.5) == solver
    shorter = with_shorter_steps(solver, 6.0)
    assert shorter == DPSGD(steps=7, clip=0.5, update=GradientStep(step_size=0.5, momentum=0.5))
    assert with_shorter_steps(FixedHessian(clip=0.1), 6.0) == FixedHessian(clip=0.1)
