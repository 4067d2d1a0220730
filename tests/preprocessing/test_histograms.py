from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from privet.accounting import delta
from privet.accounting.theorems.gaussian_profile import delta_bounds
from privet.errors import InvalidParameter
from privet.plan import Histograms, Meter, Plan, Release
from privet.preprocessing.ranges import check_noise
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_invalidates_guarantee

RELATIONS: tuple[Neighbours, ...] = get_args(Neighbours)


def release(columns: int, noise: float) -> Release:
    """Histograms of so many columns with so much noise."""
    return Release(name="counts", of="values", bound=Histograms(columns=columns), noise_multiplier=noise)


def vector(record: tuple[int | None, ...], bins: int) -> np.ndarray:
    """What a record adds: one in one bin of each column, or nothing where it has no value."""
    found = np.zeros((len(record), bins))
    for column, place in enumerate(record):
        if place is not None:
            found[column, place] = 1
    return found.ravel()


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_reach_is_what_enumeration_finds(neighbours: Neighbours, columns: int) -> None:
    """Over all records of up to three columns with three bins or no value: the largest move is the claimed one."""
    records = [vector(r, 3) for r in itertools.product((None, 0, 1, 2), repeat=columns)]
    nothing = [np.zeros(3 * columns)]
    others = records if neighbours == "replace_one" else nothing
    largest = max(float(np.sum((a - b) ** 2)) for a in records for b in others)
    assert math.isclose(math.sqrt(largest), Histograms(columns=columns).sensitivity(neighbours), rel_tol=1e-15)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_event_costs_exactly_what_the_reach_does(neighbours: Neighbours) -> None:
    """The event's price under its relation is the Gaussian mechanism's with mu = reach ÷ stddev: no less, no more."""
    for columns, noise in itertools.product((1, 3, 14), (0.5, 7.3)):
        reach = Histograms(columns=columns).sensitivity(neighbours)
        counts = release(columns, noise)
        exact = delta_bounds(reach / counts.noise_stddev(neighbours), 0.3)
        claimed = delta(counts.event(records=9, neighbours=neighbours), epsilon=0.3, neighbours=neighbours)
        assert exact[0] <= claimed * (1 + 1e-12)
        assert claimed <= exact[1] * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_noise_is_never_rounded_down(neighbours: Neighbours) -> None:
    """stddev² ≥ noise² · reach² / (4 or 1) in exact arithmetic, for many sizes."""
    each, twice = (2, 2) if neighbours == "replace_one" else (1, 1)
    for columns, noise in itertools.product(range(1, 60), (0.1, 1.0, 3.7, 1e5)):
        wanted = Fraction(noise) ** 2 * each * columns / twice**2
        assert Fraction(release(columns, noise).noise_stddev(neighbours)) ** 2 >= wanted


@pytest.mark.parametrize("noise", [2.0**-10, 0.3, 5.0, 1000.0, 2.0**20])
def test_noise_has_the_claimed_deviation_on_a_lattice(noise: float) -> None:
    """Sums come back whole multiples of a power of two, with the noise that was priced.

    False positive rate 1e-6 each; 10^5 draws; a deviation off by 1.7 % is caught with power 0.99. Mutant: half of it.
    """
    counts = release(2, noise)
    meter = Meter(Plan(releases=(counts,), neighbours="add_remove"), random=fixed_seed_invalidates_guarantee(4))
    meter.open("counts", count=1)
    found = meter.noisy_counts("counts", np.full(10**5, 3))
    step = 2.0 ** (math.frexp(counts.noise_stddev("add_remove"))[1] - 22)
    assert (found / step == np.rint(found / step)).all()
    ratio = (found - 3).std() / (noise * math.sqrt(2.0))
    assert abs(ratio - 1) < 4.9 / math.sqrt(2e5)
    assert abs(0.5 * ratio - 1) > 4.9 / math.sqrt(2e5)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf, 2.0**-11, 2.0**21, True, "1", None])
def test_noise_that_promises_nothing_is_refused(noise: Any) -> None:
    """Zero, negative, not a number, or beyond what a histogram can use (docs/footguns.md, 20)."""
    with pytest.raises(InvalidParameter, match="Calibrate"):
        check_noise(noise)


@pytest.mark.parametrize("relation", ["all", "", None])
def test_a_relation_that_is_none_is_refused(relation: Any) -> None:
    """A sensitivity is one for a named relation, never a default's."""
    with pytest.raises(InvalidParameter, match="neighbours"):
        Histograms().sensitivity(relation)
