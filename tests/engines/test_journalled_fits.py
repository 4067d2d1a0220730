"""Fits with a journal on few records, and paths that are not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet.engines import Files
from privet.errors import InvalidParameter
from privet.estimators import LogisticRegression


def test_a_path_with_nothing_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """By its name, which is public."""
    with pytest.raises(InvalidParameter, match=r"typo\.csv.*Check the path"):
        LogisticRegression(bounds=(-1, 1), classes=[0, 1]).fit(str(tmp_path / "typo.csv"), y="y")


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("epsilon", [0.05, 0.3])  # a vote alone, and rates before the descent
def test_draws_for_few_records_are_kept_in_a_journal(tmp_path: Path, epsilon: float) -> None:
    """A fit that is run to its end twice has the same coefficients, and counts nothing twice."""
    rows = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1], "y": (rows[:, 0] > 0).astype(int)})
    pq.write_table(table, tmp_path / "t.parquet")
    files = Files(tmp_path / "t.parquet", journal=tmp_path / "journal")
    first, again = (LogisticRegression(epsilon, bounds=(-1, 1), classes=[0, 1]).fit(files, y="y") for _ in range(2))
    assert "class rates" in first.plan_.names
    assert np.array_equal(first.coef_, again.coef_)
    assert np.array_equal(first.intercept_, again.intercept_)
    assert again.plan_ == first.plan_
