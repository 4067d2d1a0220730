"""All accountants side by side: every row a bound or a reason, none below the tight one."""

from __future__ import annotations

import pytest

from privet.accounting import (
    Comparison,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Row,
    ZeroConcentrated,
    bounds,
    compare,
    epsilon,
)
from privet.accounting.accountants import ACCOUNTANTS, THEOREMS
from privet.errors import InvalidParameter, NoProvenBound
from privet.privacy import Neighbours

RUNS: list[tuple[Event, Neighbours]] = [
    (Gaussian(noise_multiplier=2.0) * 10, "replace_one"),
    (Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1000, "add_remove"),
    (Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 1000, "replace_one"),
    (Gaussian(noise_multiplier=3.0).without_replacement(batch=10, records=500) * 200, "zero_out"),
    (Laplace(scale=4.0) * 10 + Gaussian(noise_multiplier=5.0) * 10, "add_remove"),
    (Pure(epsilon=0.1) * 50, "add_remove"),
    (ZeroConcentrated(rho=0.1) * 3, "zero_out"),
]


@pytest.mark.medium
@pytest.mark.parametrize(("run", "neighbours"), RUNS)
def test_every_accountant_has_a_row(run: Event, neighbours: Neighbours) -> None:
    """One row an accountant, in order, with its theorem; a bound as asked alone, or None and why."""
    found = compare(run, delta=1e-6, neighbours=neighbours)
    assert [row.accountant for row in found.rows] == list(ACCOUNTANTS)
    for row in found.rows:
        assert row.theorem == THEOREMS[row.accountant]
        if row.epsilon is None:
            assert row.note.startswith("does not apply: ")
            assert len(row.note) > len("does not apply: ")
            with pytest.raises(NoProvenBound):
                epsilon(run, delta=1e-6, neighbours=neighbours, accountant=row.accountant)
        else:
            assert row.note == ""
            assert row.epsilon == epsilon(run, delta=1e-6, neighbours=neighbours, accountant=row.accountant)


@pytest.mark.medium
@pytest.mark.parametrize(("run", "neighbours"), RUNS)
def test_tight_is_below_loose(run: Event, neighbours: Neighbours) -> None:
    """No accountant's upper bound lies below another's lower bound, and auto's is the least up to a millionth."""
    found = compare(run, delta=1e-6, neighbours=neighbours)
    numbers = {row.accountant: row.epsilon for row in found.rows if row.epsilon is not None}
    best = bounds(run, delta=1e-6, neighbours=neighbours)
    assert best.upper <= min(numbers.values()) * (1 + 1e-6)
    assert all(value >= best.lower for value in numbers.values())
    for name in numbers:
        low, high = bounds(run, delta=1e-6, neighbours=neighbours, accountant=name)
        assert low <= best.upper
        assert high >= best.lower


def test_the_table_can_be_read() -> None:
    """str() is a table: a head with delta and relation, a line an accountant, rounded up, a dash where there
    is none.
    """
    found = compare(RUNS[1][0], delta=1e-6, neighbours="add_remove")
    head, *lines = str(found).splitlines()
    assert head == "epsilon at delta = 1e-06, add_remove:"
    assert len(lines) == len(found.rows)
    for line, row in zip(lines, found.rows, strict=True):
        name, value = line.split()[:2]
        assert name == row.accountant
        if row.epsilon is None:
            assert value == "–"
            assert "does not apply" in line
        else:
            assert row.epsilon <= float(value) <= row.epsilon * (1 + 1e-7)
            assert row.theorem in line


def test_no_noise_compares_without_a_crash() -> None:
    """A run without noise has infinity, or a reason, in every row."""
    found = compare(Gaussian(noise_multiplier=0.0), delta=1e-6, neighbours="add_remove")
    assert all(row.epsilon in (None, float("inf")) for row in found.rows)
    assert "inf" in str(found)


def test_rows_are_found_by_name_and_are_values() -> None:
    """comparison["renyi"] is that row; rows and comparisons are immutable values."""
    found = compare(RUNS[0][0], delta=1e-6, neighbours="replace_one")
    assert found["renyi"] == next(row for row in found.rows if row.accountant == "renyi")
    assert found == Comparison(delta=1e-6, neighbours="replace_one", rows=found.rows)
    with pytest.raises(AttributeError):
        found.rows[0].epsilon = 0.0  # type: ignore[misc]
    assert Row(accountant="x", epsilon=None, theorem="y").note == ""


def test_an_event_without_a_bound_has_none_in_any_row() -> None:
    """Where no theorem applies under the relation, every row says so; nothing is guessed."""
    found = compare(RandomizedResponse(epsilon=1.0), delta=1e-6, neighbours="add_remove")
    assert all(row.epsilon is None for row in found.rows)


def test_questions_are_checked() -> None:
    """A delta or a relation that promises nothing is refused."""
    with pytest.raises(InvalidParameter, match="delta"):
        compare(RUNS[0][0], delta=0.0, neighbours="add_remove")
    with pytest.raises(InvalidParameter, match="neighbours"):
        compare(RUNS[0][0], delta=1e-6, neighbours="other")  # type: ignore[arg-type]
