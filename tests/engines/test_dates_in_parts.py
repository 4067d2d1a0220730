"""Dates in files: read as in memory, by every door."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.test_parts import Pickled

from privet.engines import Files
from privet.engines.plain_columns import arrow_types, plain_frame
from privet.errors import InvalidParameter
from privet.estimators import fit_table
from privet.ledger import Account
from privet.preprocessing import Date, Number, Schema, Target
from privet.privacy import Budget
from privet.randomness import fixed_seed_invalidates_guarantee

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
SCHEMA = Schema(
    columns={
        "seen": Date(low="2019-06-01", high="2021-12-31", parts=("season", "hour"), missing="indicator"),
        "born": Date(low="1930-01-01", high="2010-12-31", parts=("weekday",)),
        "age": Number(low=0, high=9),
    },
    target=Target(column="ill", kind="label", values=("no", "yes")),
    ignored=("who",),
)


def made(records: int) -> dict[str, Any]:
    """Columns as lists, some cells missing."""
    rng = np.random.default_rng(records)
    hours = rng.integers(0, 30_000, size=records)
    return {
        "seen": [dt.datetime(2019, 1, 1) + dt.timedelta(hours=int(h)) if h % 7 else None for h in hours],
        "born": [dt.date(1925, 1, 1) + dt.timedelta(days=int(h)) if h % 5 else None for h in hours],
        "age": (hours % 10).tolist(),
        "ill": ["yes" if h > 15_000 else "no" for h in hours],
        "who": [f"p{h % (records // 2)}" for h in hours],
    }


def fitted(table: Any, groups: str | None) -> Any:
    seed = fixed_seed_invalidates_guarantee(4)
    return fit_table(table, SCHEMA, epsilon=4, delta=1e-8, groups=groups, random=seed)


@pytest.mark.medium
@pytest.mark.parametrize("groups", [None, "who"])
def test_dates_in_files_are_those_in_memory(tmp_path: Path, groups: str | None) -> None:
    """CSV as pandas writes it, Parquet with and without a zone, sent to workers or not: to the last bit."""
    columns = made(900)
    here = fitted(columns, groups)
    frame = pd.DataFrame({**columns, "seen": pd.Series(columns["seen"], dtype="datetime64[us]")})
    zoned = frame.assign(seen=frame["seen"].dt.tz_localize("Asia/Tokyo"))
    zoned.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=300)
    zoned.to_parquet(tmp_path / "b.parquet")
    sent = Files(tmp_path / "b.parquet", engine=Pickled(2, twice=True))
    for table in (tmp_path / "a.csv", tmp_path / "a.parquet", sent):
        there = fitted(table, groups)
        assert np.array_equal(there.estimator_.coef_, here.estimator_.coef_)
        assert (there.plan, there.guarantee) == (here.plan, here.guarantee)


def test_numbers_in_files_are_refused_as_dates_before_an_account_is_charged(tmp_path: Path) -> None:
    """By the declared type, in one sentence."""
    columns = made(50)
    pq.write_table(pa.table({**columns, "seen": list(range(50))}), tmp_path / "a.parquet")
    account = Account(Budget(epsilon=9, delta=1e-5), neighbours="replace_one")
    with pytest.raises(InvalidParameter, match="Expected column 'seen' to hold dates, as the schema says, got numbers"):
        fit_table(tmp_path / "a.parquet", SCHEMA, epsilon=1, delta=1e-6, account=account)
    assert not account.charges


def test_dates_of_a_cluster_are_stored_as_dates() -> None:
    """Partitions that declare dates keep them; a cell that is none is missing."""
    days = pd.Series(dtype=pd.ArrowDtype(pa.date32()))
    empty = pd.DataFrame({"seen": pd.Series(dtype="datetime64[us]"), "born": days})
    types = arrow_types(empty)
    part = pd.DataFrame({"seen": [dt.datetime(2020, 1, 1), "Jane Doe"], "born": [dt.date(2020, 1, 1), 7]}, dtype=object)
    found = plain_frame(part, types, None, None)
    assert found["seen"].isna().tolist() == [False, True]
    assert found["born"][0] == dt.date(2020, 1, 1)
