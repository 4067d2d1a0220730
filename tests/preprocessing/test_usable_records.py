from __future__ import annotations

import itertools
import math
from typing import Any, get_args

import numpy as np
import pytest
from scipy.stats import binom

from privet import Budget
from privet.plan import Meter, Plan, Presences
from privet.plan.plan import whole_noise
from privet.preprocessing import Category, Number, Schema, TableEncoder, Target
from privet.preprocessing.usable_records import FEATURES, TARGETS, UsableCounts
from privet.privacy import Neighbours
from privet.randomness import fixed_seed_invalidates_guarantee

COLUMNS: dict[str, Any] = {
    "age": Number(low=0, high=100),
    "pay": Number(low=0, high=9, log=True, missing="indicator"),
    "job": Category(values=("baker", "smith")),
}
SCHEMA = Schema(columns=COLUMNS, target=Target(column="ill", kind="label", values=("no", "yes")))
BUDGET = Budget(epsilon=1, delta=1e-6)
EMPTY = {"age": None, "pay": None, "job": None, "ill": None}
ODD: list[dict[str, Any]] = [
    EMPTY,
    {"age": 1, "pay": 2, "job": "smith", "ill": "no"},
    {"age": "2020-01-01", "pay": math.inf, "job": "Baker", "ill": "Yes"},
    {"age": 500, "pay": -3, "job": "baker", "ill": ""},
    {"age": math.nan, "pay": "1e3", "job": 3, "ill": "yes"},
]


def counts(rows: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    """Of each feature and of the target, without noise."""
    encoder = TableEncoder(SCHEMA)
    return np.append(encoder.rows(rows).usable(), np.isfinite(encoder.encode_target(rows)).sum())


def test_what_the_schema_can_read_is_counted() -> None:
    """A number that is finite, in the range or not; a name of the code book; nothing else."""
    assert [counts([row]).tolist() for row in ODD] == [[0] * 4, [1] * 4, [0] * 4, [1, 1, 1, 0], [0, 1, 0, 1]]
    assert counts(ODD).tolist() == [2, 3, 2, 2]


def test_columns_of_which_no_name_was_learnt_are_counted_in_their_places() -> None:
    """They have no feature of their own, so that the next column stands where they do; and their zero is no misfit."""
    none = Category(values=())
    kinds = {"a": none, "b": none, "age": COLUMNS["age"], "c": none, "job": COLUMNS["job"], "d": none}
    schema = Schema(columns=kinds, target=SCHEMA.target)
    rows = [{"age": 1, "job": "smith", "ill": "no"}, {"age": 2, "ill": "yes"}] * 2000
    made = TableEncoder(schema).rows([{**dict.fromkeys("abcd", "x"), "job": None, **row} for row in rows])
    assert made.usable().tolist() == [0, 0, 4000, 0, 2000, 0]
    planned = UsableCounts.planned(
        schema, records=4000, whole_noise=whole_noise(BUDGET, "replace_one"), neighbours="replace_one"
    )
    meter = Meter(
        Plan(releases=planned.releases, neighbours="replace_one", records=4000),
        random=fixed_seed_invalidates_guarantee(7),
    )
    usable = planned.run(schema, made, np.zeros(4000), meter)
    assert FEATURES in planned.releases[-1].name
    assert (list(usable.counts), usable.misfits) == (["ill", *schema.columns], ())


@pytest.mark.parametrize("neighbours", get_args(Neighbours))
def test_no_record_moves_counts_further_than_their_reach(neighbours: Neighbours) -> None:
    """By brute force over neighbours with odd cells; the reach is attained, and less would be wrong."""
    base = ODD[1:3]
    moves = []
    for one, other in itertools.product(ODD, repeat=2):
        if neighbours == "zero_out" and other is not EMPTY:
            continue
        there = base if neighbours == "add_remove" else [*base, other]
        moves.append(np.linalg.norm(counts([*base, one])[:3] - counts(there)[:3]))
    assert max(moves) == pytest.approx(Presences(columns=3).sensitivity(neighbours), rel=1e-15)


@pytest.mark.parametrize(
    ("rows", "readable", "named"), [(1000, 1.0, 0), (1000, 0.5, 0), (1000, 0.0, 4), (9000, 0.3, 0)]
)
def test_columns_are_named_if_and_only_if_next_to_nothing_can_be_read(rows: int, readable: float, named: int) -> None:
    """At a thousand records and epsilon 1 it is bought, and what half can be read of is not named.

    Of 200 runs with a fixed seed: at a false alarm rate of 1e-3 more than 4 alarms have probability 2e-6; at a power
    of 0.97 a column, at least 180 of 200 are named but for 1e-5.
    """
    noise = whole_noise(BUDGET, "replace_one")
    planned = UsableCounts.planned(SCHEMA, records=rows, whole_noise=noise, neighbours="replace_one")
    plan = Plan(releases=planned.releases, neighbours="replace_one", records=rows)
    known = round(rows * readable)
    facts = (("age", 3), ("pay", 3), ("job", "smith"))
    made = TableEncoder(SCHEMA).rows({name: [value] * known + ["?"] * (rows - known) for name, value in facts})
    target = np.where(np.arange(rows) < known, 1.0, np.nan)
    random, found = fixed_seed_invalidates_guarantee(7), []
    for _ in range(200):
        meter = Meter(plan, random=random)
        found.append(len(planned.run(SCHEMA, made, target, meter).misfits))
        meter.finish()
    if named:
        assert sum(found) >= 4 * 180
    else:
        assert sum(each > 0 for each in found) <= 4
        assert binom.sf(4, 200, 1e-3) < 1e-5


def test_few_records_buy_nothing_and_many_buy_little() -> None:
    """Too few to tell: no release, no word. The more there are, the less it takes, down to a per mille each."""
    noise = whole_noise(BUDGET, "replace_one")

    def shares(records: int) -> dict[str, float]:
        planned = UsableCounts.planned(SCHEMA, records=records, whole_noise=noise, neighbours="replace_one")
        return {release.name: (noise / release.noise_multiplier) ** 2 for release in planned.releases}

    assert shares(200) == {}
    assert set(shares(350)) == {TARGETS}
    assert 0.01 < shares(350)[TARGETS] <= 0.02
    assert shares(2000)[FEATURES] <= 0.01
    assert shares(10**6) == {TARGETS: pytest.approx(1e-3), FEATURES: pytest.approx(1e-3)}
