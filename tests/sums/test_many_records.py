from __future__ import annotations

import operator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from privet import glm
from privet.clipping import Clip, LatticeSum, lattice
from privet.clipping.lattice import summed
from privet.errors import InvalidParameter
from privet.losses import LinearRecords, LogisticLoss
from privet.plan import gradient_plan
from privet.problems import per_record, records
from privet.sums import blocks, bounded_table, curvature_sum, glm_sum, gram_sum, norm_counts, sandwich_sums, scalar_sum

FULL = 2**62 - 1


def sums(table: Any, y: Any, theta: Any, **more: Any) -> list[LatticeSum]:
    """All sums over records."""
    slope, bend, rule = (lambda z, y: z - y), (lambda z, y: np.ones_like(z)), Clip(clip=1.0)
    return [
        glm_sum(slope, table, y, theta, rule=rule, **more),
        scalar_sum(slope, table, y, theta, clip=1.0, **more),
        gram_sum(table),
        curvature_sum(bend, table, y, theta, smoothness=1.0, **more),
        *sandwich_sums(slope, bend, table, y, theta, clip=1.0, smoothness=1.0, **more),
        norm_counts(slope, table, y, theta, edges=np.array([0.5, 0.1]), **more),
    ]


def test_more_records_than_usual_are_summed_in_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many records there are shows in no refusal, and lots of them add up to what all of them do."""
    rng = np.random.default_rng(0)
    table = bounded_table(rng.normal(size=(1000, 3)), row_norm=1.0)
    y, theta = rng.normal(size=1000), np.array([0.1, -0.2, 0.3])
    whole = sums(table, y, theta)
    for room in (blocks, lattice):
        monkeypatch.setattr(room, "MOST_RECORDS", 300)
    for one, other in zip(sums(table, y, theta), whole, strict=True):
        assert np.array_equal(one.units, other.units)
    places = rng.permutation(1000)[:700]
    few = glm_sum(lambda z, y: z - y, table, y, theta, rule=Clip(clip=1.0), indices=places)
    some = glm_sum(lambda z, y: z - y, table.rows(places), y[places], theta, rule=Clip(clip=1.0))
    assert np.array_equal(few.units, some.units)


def test_a_declared_number_of_records_is_still_a_bound() -> None:
    """Who declares that there are fewer is told otherwise: lattice and noise were made for those."""
    table = bounded_table(np.ones((6, 1)), row_norm=1.0)
    with pytest.raises(InvalidParameter, match="at most 5"):
        glm_sum(lambda z, y: z - y, table, np.zeros(6), np.zeros(1), rule=Clip(clip=1.0), max_records=5)


def test_sums_saturate_and_never_wrap() -> None:
    """Beyond what 64 bits hold a sum stays at the end, and moves by no more than a record does, from wherever it is."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, b = (np.array([int(each) for each in rng.integers(-(2**62), 2**62, size=3)]) for _ in range(2))
        exact = [min(max(int(x) + int(y), -FULL), FULL) for x, y in zip(a, b, strict=True)]
        assert summed(a, b)[0].tolist() == exact
        moved = a + rng.integers(-1000, 1000, size=3)
        inside = np.clip(moved, -FULL, FULL)
        change = [abs(x - y) for x, y in zip(summed(inside, b)[0].tolist(), summed(a, b)[0].tolist(), strict=True)]
        assert all(x <= abs(int(p) - int(q)) for x, p, q in zip(change, inside, a, strict=True))
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert summed(ends, ends)[0].tolist() == [-FULL, FULL]
    assert summed(ends)[0].tolist() == [-FULL, FULL]
    one = LatticeSum(units=np.array(FULL), step=1.0, clip=1.0)  # one number
    assert int((one + one).units) == FULL
    assert int((one + one + replace(one, units=np.array(-FULL))).units) == FULL


def test_one_record_more_moves_no_other_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums saturate, a record that joins in front pushes others into the next lots; the sum moves by that record
    alone. Kept within lot by lot, it would move by parts of others, a coordinate each: four times as far here.
    """
    monkeypatch.setattr(lattice, "_FULL", 50)
    rng = np.random.default_rng(3)
    worst = {"once": 0.0, "lot by lot": 0.0}
    for _ in range(300):
        drift = np.repeat(rng.integers(-1, 2, size=(8, 4)), 5, axis=0)  # up, then down again
        rows = np.clip(12 * drift + rng.integers(-9, 10, size=(40, 4)), -20, 20)
        new = np.array([1, 0, 0, 0])
        found: dict[str, list[Any]] = {"once": [], "lot by lot": []}
        for table in (rows, np.vstack([new, rows])):
            lots = [
                LatticeSum(units=lot.sum(axis=0), step=1.0, clip=1.0)
                for lot in np.split(table, range(2, len(table), 2))
            ]
            found["once"].append(reduce(operator.add, lots).units)
            found["lot by lot"].append(reduce(lambda a, b: replace(a + b, whole=None), lots).units)
            assert np.array_equal(summed(*(lot.units for lot in lots))[0], found["once"][-1])
            assert np.array_equal(reduce(operator.add, lots[::-1]).units, found["once"][-1])
        for how, (one, other) in found.items():
            worst[how] = max(worst[how], float(np.linalg.norm(one - other)))
    assert worst["once"] <= 1.0
    assert worst["lot by lot"] > 4.0


def test_more_people_or_losses_than_usual_are_summed_in_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """People with one row and with several, and losses of one's own: no number is refused, and sums are the same."""
    rng = np.random.default_rng(0)
    X, y, who = rng.normal(size=(900, 3)), rng.integers(0, 2, size=900), rng.integers(0, 400, size=900)
    theta, rule, batch = np.array([0.1, -0.2, 0.3]), Clip(clip=0.5), rng.permutation(350)[:300]
    people: Any = glm("logistic", X, y, row_norm=1.0, groups=who)
    others = per_record(LinearRecords(loss=LogisticLoss()), X, y, shape=3)

    def told() -> list[LatticeSum]:
        return [
            *(each.gradient_sum(theta, rule=rule, indices=at) for each in (people, others) for at in (None, batch)),
            *(each.slope_sum(theta, -theta, clip=0.5) for each in (people, others)),
            people.moment_sum(),
        ]

    whole = told()
    for room in (blocks, lattice, records):
        monkeypatch.setattr(room, "MOST_RECORDS", 100)
    for one, other in zip(told(), whole, strict=True):
        assert np.array_equal(one.units, other.units)
        assert one.within == other.within
    with pytest.raises(InvalidParameter, match="at most 90"):
        people.gradient_sum(theta, rule=rule, max_records=90)


def test_a_guess_of_many_records_makes_a_coarser_lattice() -> None:
    """Under add_remove the lattice follows from the public guess, which may be far more than usual."""
    plans = [
        gradient_plan(
            bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=1, records=records, neighbours="add_remove"
        ).max_records("gradients")
        for records in (1000, 10**10)
    ]
    assert plans == [2**27, 4 * 10**10]
