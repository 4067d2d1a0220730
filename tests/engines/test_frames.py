from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.engines import Files
from privet.engines.files import as_files
from privet.errors import InvalidParameter
from privet.estimators import LogisticRegression

pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")


def test_a_dask_frame_is_fitted_as_the_rows_in_memory(dask_client: Any, tmp_path: Path) -> None:
    """A frame of Dask goes straight into fit: written once, summed by its workers, the same bits; nothing is left."""
    import dask.dataframe as dd
    import pandas as pd

    from privet.engines.dask_engine import DaskEngine

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 2))
    y = (X[:, 0] + rng.normal(size=3_000) > 0).astype(int)
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame = dd.from_pandas(rows, npartitions=3)
    given: Any = {"delta": 1e-6, "classes": [0, 1], "random_state": 2, "max_iter": 6}
    here = LogisticRegression(1.0, **given).fit(rows[["a", "b"]], y)
    files = Files(frame, engine=DaskEngine(dask_client), cache=tmp_path / "rows")
    there = LogisticRegression(1.0, **given).fit(files, "y")
    assert np.array_equal(there.coef_, here.coef_)
    assert there.guarantee_ == here.guarantee_
    assert [path for path in (tmp_path / "rows").rglob("*") if path.is_file()] == []
    with dask_client.as_current():
        found = as_files(frame)
    assert found is not None
    assert isinstance(found.engine, DaskEngine)
    assert repr(found).startswith("Files(DataFrame")


def test_people_of_a_dask_frame_are_fitted_as_in_memory(dask_client: Any, tmp_path: Path) -> None:
    """Their rows, which are in several partitions, are brought together by the workers; so are CSV files read there."""
    import dask.dataframe as dd
    import pandas as pd

    from privet.engines.dask_engine import DaskEngine

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(2_000, 2)), columns=["a", "b"])
    rows["y"], rows["who"] = (rows["a"] > 0).astype(int), rng.integers(0, 700, size=2_000)
    given: Any = {"delta": 1e-6, "classes": [0, 1], "random_state": 2, "bounds": (-5, 5), "bounds_exact": True}
    here = LogisticRegression(1.0, max_iter=5, **given).fit(rows[["a", "b"]], rows["y"], groups=rows["who"])
    rows[:900].to_csv(tmp_path / "0.csv", index=False)
    rows[900:].to_csv(tmp_path / "1.csv", index=False)
    for table in (dd.from_pandas(rows, npartitions=3), tmp_path):
        files = Files(table, engine=DaskEngine(dask_client), cache=tmp_path / "rows")
        there = LogisticRegression(1.0, max_iter=5, **given).fit(files, "y", groups="who")
        assert np.array_equal(there.coef_, here.coef_)
        assert there.guarantee_ == here.guarantee_
    assert [path for path in (tmp_path / "rows").rglob("*") if path.is_file()] == []


def test_a_frame_needs_its_engine() -> None:
    """What this process cannot write is refused by its kind."""
    with pytest.raises(InvalidParameter, match="no frames of its own"):
        Files(object()).opened()
