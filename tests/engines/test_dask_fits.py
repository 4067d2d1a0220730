"""Whole fits on Dask with people, weights, names, dates, intervals: those in memory, though a worker is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")

import cloudpickle
import dask.dataframe as dd
import pandas as pd
from distributed import Client
from tests.engines import whole_fits
from tests.engines.parted import write_files
from tests.engines.whole_fits import FITS, Struck, in_memory

from privet.engines import Files
from privet.engines.dask_engine import DaskEngine

pytestmark = [
    pytest.mark.medium,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
        "ignore::privet.errors.SmallEffectiveSample",
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _sent_whole() -> Iterator[None]:
    """Jobs of tests are sent by their code: workers cannot import tests."""
    cloudpickle.register_pickle_by_value(whole_fits)
    yield
    cloudpickle.unregister_pickle_by_value(whole_fits)


class Fated(DaskEngine):
    """Dask, with a worker killed in the first job of a kind."""

    kind, mark = "", ""

    def run(self, job: Any, bunches: Any) -> list[Any]:
        return super().run(Struck(job, self.mark) if type(job).__name__ == self.kind else job, bunches)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_a_frame_is_the_fit_in_memory(dask_client: Client, name: str) -> None:
    """Coefficients, covariance, names, plan and guarantee are those of the rows in memory, with the same noise."""
    table, here = in_memory(name)
    dask_client.wait_for_workers(1, timeout=60)
    frame = dd.from_pandas(pd.DataFrame(table), npartitions=3, sort=False)
    assert FITS[name][0](Files(frame, engine=DaskEngine(dask_client))) == here


@pytest.mark.parametrize("name", [n if n == "people" else pytest.param(n, marks=pytest.mark.slow) for n in FITS])
def test_a_worker_that_is_killed_changes_no_fit(dask_client: Client, tmp_path: Path, name: str) -> None:
    """While rows are brought together, encoded, summed, or their names counted: the same again, and nothing is left."""
    table, here = in_memory(name)
    files = write_files(table, tmp_path / "files", [0, 700, 701, 2_400])
    dask_client.wait_for_workers(1, timeout=60)
    engine = Fated(dask_client)
    engine.kind, engine.mark = FITS[name][2], str(tmp_path / "killed")
    assert FITS[name][0](Files(files, engine=engine, cache=tmp_path / "rows")) == here
    assert (tmp_path / "killed").exists()
    assert [path for path in (tmp_path / "rows").rglob("*") if path.is_file()] == []
