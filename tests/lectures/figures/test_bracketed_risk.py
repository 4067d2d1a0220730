"""Lower bound <= runs on its tables <= proven bound, for every method that a lecture covers, on a grid in n, d, ε."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.lectures.figures.bracketed_risk import BASE, GRID, METHODS, BracketLecture, bracket, bracket_figure
from privet.lectures.hard_tables import hard_labels, hard_medians
from privet.theory import GaussianDP, logistic_lower_bound

SMALL: list[dict[str, Any]] = [
    {"n": 300, "d": 5, "epsilon": 1.0},
    {"n": 600, "d": 10, "epsilon": 1.0},
    {"n": 300, "d": 5, "epsilon": 0.3},
]
ALL = [(lecture, method) for lecture, methods in METHODS.items() for method in methods]


@pytest.mark.medium
@pytest.mark.parametrize(("lecture", "method"), ALL)
def test_runs_lie_between_the_bounds(lecture: Any, method: str) -> None:
    """At a base and with n and d, or ε, moved, 8 runs each: two standard errors off both bounds, seeds fixed.

    A lower bound 30 times larger (a mutant) is above some run, and a proven one 1000 times smaller below all.
    """
    for at in SMALL:
        found = bracket(lecture, method, **at, seeds=8, max_steps=40)
        assert 0 < found.lower <= found.gaussian
        assert found.gaussian <= found.measured - 2 * found.error
        assert found.measured + 2 * found.error <= found.proven < math.inf
        assert 30 * found.gaussian > found.measured > found.proven / 1000


@pytest.mark.slow
@pytest.mark.parametrize(("lecture", "method"), ALL)
def test_runs_lie_between_the_bounds_on_the_whole_grid(lecture: Any, method: str) -> None:
    """The figures' grid, 8 runs a point: three standard errors off both bounds everywhere."""
    for against, values in GRID.items():
        for x in values:
            at: Any = BASE | {against: x}
            found = bracket(lecture, method, n=int(at["n"]), d=int(at["d"]), epsilon=at["epsilon"], seeds=8)
            assert found.gaussian <= found.measured - 3 * found.error
            assert found.measured + 3 * found.error <= found.proven


@pytest.mark.medium
@pytest.mark.parametrize("lecture", get_args(BracketLecture))
def test_every_lecture_has_a_figure(lecture: Any) -> None:
    """Three panels with their axes named, proven and measured for each method, and both lower bounds."""
    figure = bracket_figure(lecture, seeds=1, max_steps=10, grid={"n": (100, 200), "d": (2, 4), "epsilon": (1.0, 2.0)})
    figure.canvas.draw()
    assert [axes.get_xlabel() for axes in figure.axes] == ["n, records", "d, parameters", "ε (nats)"]
    assert all(len(axes.lines) == 2 * len(METHODS[lecture]) + 2 for axes in figure.axes)
    for axes in figure.axes:
        *_, gaussian, lower = axes.lines
        assert (np.asarray(gaussian.get_ydata()) >= np.asarray(lower.get_ydata())).all()


def test_no_figure_of_nobody() -> None:
    """A lecture that is not one of the five is refused by name."""
    with pytest.raises(InvalidParameter, match="lecture"):
        bracket_figure("smith")  # type: ignore[arg-type]


def test_hard_tables_are_what_the_proof_draws() -> None:
    """Medians: the minimiser is on the sphere with risk 0. Labels: no point of the ball beats `least`; pairs cancel."""
    table = hard_medians(60, 4, mu=0.5, seed=2)
    best = np.array([table.y[table.X[:, j] == 1][0] for j in range(4)])
    assert np.linalg.norm(best) == pytest.approx(1.0)
    assert table.excess(best) == pytest.approx(0.0, abs=1e-12)
    labels = hard_labels(60, 5, mu=0.5, seed=2)
    rng = np.random.default_rng(0)
    assert (np.abs(labels.X) <= 1).all()
    for _ in range(300):
        w = rng.normal(size=6)
        assert labels.excess(w / np.linalg.norm(w) * rng.random() ** 0.1) >= -1e-12
    gram = (labels.y[:, None] * labels.X).sum(axis=0)
    assert gram[-1] == 0  # the intercept sees no label more than the other


@pytest.mark.parametrize("n", [60, 61])
def test_an_odd_label_gains_no_more_than_is_taken_away(n: int) -> None:
    """For odd n the bound is below that of n + 1 records by at most a label's worth, and still positive."""
    found = logistic_lower_bound(n=n, d=4, radius=1.0, privacy=GaussianDP(mu=0.3)).value
    even = logistic_lower_bound(n=60, d=4, radius=1.0, privacy=GaussianDP(mu=0.3)).value
    assert 0.9 * even <= found <= even
