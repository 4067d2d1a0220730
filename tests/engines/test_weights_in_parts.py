"""Weights that are a column of a table in files, and columns given by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.test_parts import Pickled

from privet.engines import Files
from privet.errors import InvalidParameter
from privet.estimators import LinearRegression, LogisticRegression

pytestmark = pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
FIXED: dict[str, Any] = {"delta": 1e-6, "random_state": 1, "max_iter": 8}
MODELS: dict[str, Callable[[], Any]] = {
    "bounded": lambda: LogisticRegression(1.0, classes=[0, 1], max_weight=2.0, bounds=(-5, 50), **FIXED),
    "balanced": lambda: LogisticRegression(4.0, classes=[0, 1], class_weight="balanced", **FIXED),
    "linear": lambda: LinearRegression(1.0, target_range=(-1, 2), **FIXED),
    "add_remove": lambda: LogisticRegression(
        1.0, classes=[0, 1], neighbours="add_remove", records=2500, max_weight=3.0, **FIXED
    ),
}


def table() -> dict[str, Any]:
    """Rows of two features, labels, and weights, some of them odd."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2_500, 2)) * [1.0, 20.0]
    weight = rng.uniform(0, 3, size=2_500)
    weight[[3, 40, 1_900, 1_901]] = np.nan, -1.0, np.inf, 0.0
    y = (X[:, 0] + rng.normal(size=2_500) > 0).astype(int)
    return {"a": X[:, 0], "weight": weight, "b": X[:, 1], "ill": y}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The rows as three Parquet files, and as CSV."""
    folder, rows = tmp_path_factory.mktemp("weighted"), pa.table(table())
    for i, (first, last) in enumerate(((0, 300), (300, 301), (301, 2_500))):
        pq.write_table(rows.slice(first, last - first), folder / f"{i}.parquet", row_group_size=500)
    csv = folder / "rows.csv"
    rows.to_pandas().to_csv(csv, index=False)
    return folder, csv


@pytest.mark.medium
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in ("linear", "balanced") else n for n in MODELS]
)
def test_weights_in_files_are_those_in_memory(places: tuple[Path, Path], name: str) -> None:
    """With the same noise, coefficients, plan and guarantee are those of arrays."""
    model = MODELS[name]
    folder, csv = places
    rows = table()
    here = model().fit(np.column_stack([rows["a"], rows["b"]]), rows["ill"], sample_weight=rows["weight"])
    for given in (csv, Files(folder, engine=Pickled(3, twice=True))):
        there = model().fit(given, "ill", sample_weight="weight")
        assert np.array_equal(there.coef_, here.coef_)
        assert np.array_equal(there.intercept_, here.intercept_)
        assert (there.plan_, there.guarantee_) == (here.plan_, here.guarantee_)
        assert there.n_features_in_ == 2


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_by_name_are_no_features(kind: Any) -> None:
    """Targets and weights, or groups, of a frame: the fit is that of arrays; a name that it has not is refused."""
    rows = table()
    X, y = np.column_stack([rows["a"], rows["b"]]), rows["ill"]
    for given, named in (({"sample_weight": rows["weight"]}, {"sample_weight": "weight"}), ({}, {"groups": "weight"})):
        there = MODELS["bounded"]().fit(kind(rows), "ill", **named)
        here = MODELS["bounded"]().fit(X, y, **(given or {"groups": rows["weight"]}))
        assert np.array_equal(there.coef_, here.coef_)
        assert there.guarantee_ == here.guarantee_
        assert there.n_features_in_ == 2
    with pytest.raises(InvalidParameter, match="one column 'who'"):
        there.fit(kind(rows), "ill", groups="who")


def test_weights_are_refused_by_public_facts(tmp_path: Path, places: tuple[Path, Path]) -> None:
    """Text for weights, by its type; zero weights only, which are taken as public; no cell is told."""
    pq.write_table(pa.table({"a": [0.5], "w": ["Jane Doe"], "ill": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidParameter, match="Expected sample_weight to be numbers, got text") as told:
        LogisticRegression(classes=[0, 1]).fit(tmp_path / "a.parquet", "ill", sample_weight="w")
    assert "Jane" not in str(told.value)
    pq.write_table(pa.table({"a": [0.5], "w": [-1.0], "ill": [1]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidParameter, match="zero weights only"):
        LogisticRegression(classes=[0, 1]).fit(tmp_path / "a.parquet", "ill", sample_weight="w")
