"""What the figures of risk have stored is what their runs give, and is all that they show."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any, get_args

import pytest

from privet.lectures.figures.bracketed_risk import GRID, METHODS, Bracket, brackets_along
from privet.lectures.figures.how_good import _RUNS, RUN_METHODS, Against, proven_risk, risks_along
from privet.lectures.figures.stored_runs import stored_brackets, stored_risks

RISKS = [(against, method) for against in get_args(Against) for method in RUN_METHODS]
BRACKETS = [
    (lecture, method, against) for lecture, methods in METHODS.items() for method in methods for against in GRID
]
AGAIN = "if it is meant to differ: python docs/measure_runs.py"


def test_every_mark_of_the_figures_is_stored() -> None:
    """A number for each place, positive, and of a bracket between its bounds; if not: python docs/measure_runs.py."""
    for against, method in RISKS:
        assert len(stored_risks(against, method)) == len(_RUNS[against])
        assert all(0 < risk < 1 for risk in stored_risks(against, method))
    for lecture, method, against in BRACKETS:
        found = [Bracket.of(numbers) for numbers in stored_brackets(lecture, method, against)]
        assert len(found) == len(GRID[against])
        assert all(0 < each.lower <= each.gaussian <= each.measured <= each.proven for each in found)


@pytest.mark.medium
def test_a_stored_number_is_what_its_runs_give() -> None:
    """One of each kind, made again; a twelfth run more or less would change the first in its third digit."""
    assert stored_risks("n", "output_perturbation")[:1] == pytest.approx(
        risks_along("n", "output_perturbation", _RUNS["n"][:1]), rel=1e-6
    ), AGAIN
    (first,) = brackets_along("brown-clipping", "DP-GD, last iterate", "n", GRID["n"][:1])
    assert stored_brackets("brown-clipping", "DP-GD, last iterate", "n")[0] == pytest.approx(astuple(first), rel=1e-6)


def test_stored_risks_of_averages_are_within_what_is_proven() -> None:
    """Twelve runs of the average at four numbers of records, each below its line."""
    for n, risk in zip(_RUNS["n"], stored_risks("n", "average"), strict=True):
        assert risk <= proven_risk("average", n=int(n), d=10, epsilon=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("against", "method"), RISKS)
def test_all_stored_risks_are_what_runs_give(against: Any, method: str) -> None:
    """All twelve runs of each mark again."""
    assert stored_risks(against, method) == pytest.approx(risks_along(against, method), rel=1e-6), AGAIN


@pytest.mark.slow
@pytest.mark.parametrize(("lecture", "method", "against"), BRACKETS)
def test_all_stored_brackets_are_what_runs_give(lecture: Any, method: str, against: str) -> None:
    """All runs of each bracket again."""
    found = [list(astuple(each)) for each in brackets_along(lecture, method, against)]
    for stored, again in zip(stored_brackets(lecture, method, against), found, strict=True):
        assert stored == pytest.approx(again, rel=1e-6), AGAIN
