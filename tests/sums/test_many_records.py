from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.clipping import Clip, LatticeSum, lattice
from privet.clipping.lattice import saturated
from privet.errors import InvalidParameter
from privet.plan import gradient_plan
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
        assert saturated(a, b).tolist() == exact
        moved = a + rng.integers(-1000, 1000, size=3)
        inside = np.clip(moved, -FULL, FULL)
        change = [abs(x - y) for x, y in zip(saturated(inside, b).tolist(), saturated(a, b).tolist(), strict=True)]
        assert all(x <= abs(int(p) - int(q)) for x, p, q in zip(change, inside, a, strict=True))
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert saturated(ends, ends).tolist() == [-FULL, FULL]


def test_a_guess_of_many_records_makes_a_coarser_lattice() -> None:
    """Under add_remove the lattice follows from the public guess, which may be far more than usual."""
    plans = [
        gradient_plan(
            bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=1, records=records, neighbours="add_remove"
        ).max_records("gradients")
        for records in (1000, 10**10)
    ]
    assert plans == [2**27, 4 * 10**10]
