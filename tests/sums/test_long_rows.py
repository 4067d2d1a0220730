"""Rows that are shortened in sums and not in predictions: sums stay exact, a record's share stays within the clip."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.clipping import Adaptive, Automatic, Bounding, Clip
from privet.geometry import whole_space
from privet.losses import AbsoluteLoss, Loss, Ridge, SquaredLoss
from privet.problems import GroupedProblem, LinearProblem
from privet.sums import blocks, bounded_table
from privet.sums.glm import glm_sum, scores

pytestmark = pytest.mark.usefixtures("both_paths")

REACH = 4.0
RULES: list[Bounding] = [Clip(clip=0.7), Automatic(clip=0.9, stability=0.05), Adaptive(clip=0.6, count_noise=5.0)]
ODD = [0.0, 1.0, -1.0, 0.6, 3.0, -7.0, 1e-300, 1e300, math.nan, math.inf]
RECORD = st.tuples(st.lists(st.sampled_from(ODD), min_size=2, max_size=2), st.sampled_from([0.0, 1.0, -3.0, 1e300]))
THETA = st.lists(st.floats(-5, 5), min_size=2, max_size=2)


def problem(records: list[Any], loss: Loss, people: Any = None) -> Any:
    X = np.array([x for x, _ in records], dtype=np.float64).reshape(-1, 2)
    y = np.array([label for _, label in records], dtype=np.float64)
    table = bounded_table(X, row_norm=1.0, reach=REACH)
    known: dict[str, Any] = {"domain": whole_space(), "ridge": Ridge(alpha=0.0)}
    return LinearProblem(loss, table, y, **known) if people is None else GroupedProblem(loss, table, y, people, **known)


def apart(one: Any, other: Any) -> Fraction:
    moved = np.ravel(np.asarray(one.units, dtype=object) - np.asarray(other.units, dtype=object))
    return sum(Fraction(int(each)) ** 2 for each in moved) * Fraction(one.step) ** 2


@settings(max_examples=60)
@given(st.lists(RECORD, min_size=1, max_size=3), RECORD, THETA, st.sampled_from(RULES), st.booleans(), st.booleans())
def test_one_record_or_person_moves_a_sum_by_at_most_the_clip(
    records: list[Any], other: Any, theta: list[float], rule: Bounding, grouped: bool, absolute: bool
) -> None:
    """For every rule × neighbours × n = 1, 2, 3, in exact arithmetic; also of people with all rows."""
    loss: Loss = AbsoluteLoss() if absolute else SquaredLoss()

    def summed(rows: list[Any], owners: list[int]) -> Any:
        made = problem(rows, loss, np.array(owners, dtype=np.int64) if grouped else None)
        return made.gradient_sum(np.array(theta), rule=rule)

    owners = list(range(len(records)))
    if grouped:  # the first person has a second row
        records, owners = [*records, other], [*owners, 0]
    whole, mine = summed(records, owners), [i for i, owner in enumerate(owners) if owner == 0]
    rest = [i for i in range(len(records)) if i not in mine]
    empty, swapped = list(records), list(records)
    for i in mine:
        empty[i], swapped[i] = ([math.nan, 0.0], 0.0), other
    clip = Fraction(rule.clip)
    assert apart(whole, summed([records[i] for i in rest], list(range(len(rest))))) <= clip**2
    assert apart(whole, summed(empty, owners)) <= clip**2
    assert apart(whole, summed(swapped, owners)) <= (2 * clip) ** 2


def test_a_row_three_times_too_long_is_predicted_for_as_it_was() -> None:
    """Its share is its slope at its own prediction × the shortened row; beyond the reach it is cut, bad rows are 0."""
    X = np.array([[3.0, 0.0], [0.0, 40.0], [0.5, 0.0], [np.nan, 1.0], [1e300, 1e300]])
    table = bounded_table(X, row_norm=1.0, reach=REACH)
    assert table.lengths is not None
    assert table.lengths.tolist() == [3.0, 4.0, 1.0, 1.0, 4.0]
    theta = np.array([1.0, 2.0])
    assert scores(table, theta) == pytest.approx([3.0, 8.0, 0.5, 0.0, 4 * 3 / math.sqrt(2)], rel=1e-4)
    total = glm_sum(lambda z, y: z - y, table, np.ones(5), theta, rule=Clip(clip=100.0)).value
    slopes = np.array([2.0, 7.0, -0.5, 0.0, 4 * 3 / math.sqrt(2) - 1])
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0], [0.0, 0.0], [math.sqrt(0.5)] * 2])
    assert total == pytest.approx(slopes @ rows, rel=1e-3)


def test_without_a_reach_nothing_is_kept() -> None:
    """And rows and sums are as with one where none is too long."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 3))
    plain, long = bounded_table(X, row_norm=1.0), bounded_table(X, row_norm=1.0, reach=REACH)
    assert plain.lengths is None
    assert (plain.units == long.units).all()
    theta = np.array([1.0, 2.0, 3.0])
    assert (scores(plain, theta) == scores(long, theta)).all()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("outputs", [1, 2])
def test_order_blocks_and_threads_never_change_a_bit(
    rule: Bounding, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shuffled rows, blocks of 64 to 4096, 1 to 3 threads; a record alone has the length that it has among others."""
    rng = np.random.default_rng(6)
    X, y = rng.standard_t(2, size=(700, 7)), rng.normal(size=700)
    X[9, 0] = np.inf
    theta, order = rng.normal(size=(7, outputs) if outputs > 1 else 7), rng.permutation(700)

    def slope(z: Any, y: Any) -> Any:
        return z - (y if z.ndim == 1 else y[:, None])

    def found(rows: Any, labels: Any, **how: Any) -> list[int]:
        table = bounded_table(rows, row_norm=3.0, reach=REACH)
        return glm_sum(slope, table, labels, theta, rule=rule, **how).units.ravel().tolist()

    expected = found(X, y)
    assert found(X[order], y[order]) == expected
    assert found(X, y, indices=order) == expected
    assert found(np.asfortranarray(X), y) == expected
    for block, threads in itertools.product((1, 64 * 7, 2**19), (1, 2, 3)):
        monkeypatch.setattr(blocks, "_BLOCK", block)
        assert found(X, y, threads=threads) == expected
    lengths = bounded_table(X, row_norm=3.0, reach=REACH).lengths
    assert lengths is not None
    for i in range(0, 700, 50):
        alone = bounded_table(X[i : i + 1], row_norm=3.0, reach=REACH).lengths
        assert alone is not None
        assert alone[0] == lengths[i]


def test_several_rows_of_people_are_predicted_for_as_they_were() -> None:
    """The mean of a person's gradients, each at its own row's prediction."""
    records = [([3.0, 0.0], 1.0), ([0.0, 2.0], 0.0), ([0.5, 0.0], 0.0)]
    theta = np.array([1.0, 1.0])
    found = problem(records, SquaredLoss(), np.array([0, 0, 1])).gradient_sum(theta, rule=Clip(clip=10.0)).value
    factor = SquaredLoss().derivative(np.ones(1), np.zeros(1))[0]
    first = (np.array([1.0, 0.0]) * (3 - 1) + np.array([0.0, 1.0]) * 2) / 2
    assert found == pytest.approx(factor * (first + np.array([0.5, 0.0]) * 0.5), rel=1e-3)
