"""Sums and fits over encoded parts on Dask: those in memory to the last bit, whoever dies meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")

import cloudpickle
import dask.dataframe as dd
import pandas as pd
from distributed import Client
from tests.engines import parted
from tests.engines.parted import COLUMNS, answers, in_memory, made_rows, same, write_files

from privet import Budget
from privet.engines import Files, parted_glm
from privet.engines.dask_engine import DaskEngine
from privet.errors import EngineFailure
from privet.estimators import LogisticRegression
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import fixed_hessian_descent

pytestmark = [
    pytest.mark.medium,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAMES = [f"x{j}" for j in range(COLUMNS)]


@pytest.fixture(scope="module", autouse=True)
def _sent_whole() -> Iterator[None]:
    """Functions of tests are sent by their code: workers cannot import tests."""
    for module in (sys.modules[__name__], parted):
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in (sys.modules[__name__], parted):
        cloudpickle.unregister_pickle_by_value(module)


@dataclass(frozen=True)
class Dies:
    """A job whose worker is killed once, when its first part is done."""

    job: Callable[[Sequence[Any]], Any]
    mark: str

    def __call__(self, bunch: Sequence[Any]) -> Any:
        self.job(bunch[:1])
        if not os.path.exists(self.mark):
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.job(bunch)


class Dealt(DaskEngine):
    """Parts dealt out to so many bunches; with a mark, one worker is killed in the first job that follows."""

    count, mark = 1, ""

    @property
    def cores(self) -> int:
        return self.count

    def run(self, job: Any, bunches: Any) -> list[Any]:
        return super().run(Dies(job, self.mark) if self.mark else job, bunches)


@pytest.fixture
def engine(dask_client: Client) -> Dealt:
    dask_client.wait_for_workers(1, timeout=60)
    return Dealt(dask_client)


@pytest.mark.parametrize("death", ["summing", pytest.param("encoding", marks=pytest.mark.slow)])
def test_sums_over_parts_on_dask_are_those_in_memory(engine: Dealt, tmp_path: Path, death: str) -> None:
    """Every kind of sum, of all rows and of a batch, dealt out to one, two or three bunches, with a worker killed in
    the middle of a bunch: equal to the last bit to the sums in memory.
    """
    table = made_rows()
    files = write_files(table, tmp_path / "files", [0, 100, 101, 400, 700])
    here, batch = in_memory(table), np.random.default_rng(0).permutation(700)[:150]
    engine.count, engine.mark = 3, str(tmp_path / "killed") if death == "encoding" else ""
    there = parted_glm("logistic", files, "y", row_norm=2.0, columns=NAMES, engine=engine, folder=tmp_path / "cache")
    assert len(list((tmp_path / "cache").rglob("*.arrow"))) == 4
    for count in (1, 2, 3):
        engine.count, engine.mark = count, str(tmp_path / "killed") if count == 2 else ""
        assert same(answers(there), answers(here))
        assert same(answers(there, batch), answers(here, batch))
    assert (tmp_path / "killed").exists()


def test_a_job_goes_on_when_the_only_worker_died(tmp_path: Path) -> None:
    """The only worker is killed, and another comes in its place, at another address: the job is done by that."""
    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None, set_as_default=False) as client:
        dying = Dies(len, str(tmp_path / "killed"))
        assert DaskEngine(client).run(dying, [["a", "b"], ["c"]]) == [2, 1]
    assert (tmp_path / "killed").exists()


def test_a_fit_of_a_dask_frame_is_the_fit_in_memory(engine: Dealt, tmp_path: Path) -> None:
    """A frame whose people are spread over its partitions, stored by Dask, then fitted with the noise of a fixed seed:
    the coefficients of the same rows in memory.
    """
    table = made_rows()
    mixed = np.random.default_rng(2).permutation(700)
    frame = dd.from_pandas(pd.DataFrame(table).iloc[mixed], npartitions=3, sort=False)
    engine.store(frame, tmp_path / "files", groups="who")
    engine.count = 2
    pose: Any = {"row_norm": 2.0, "columns": NAMES, "groups": "who", "engine": engine, "folder": tmp_path / "cache"}
    there: Any = parted_glm("logistic", tmp_path / "files", "y", ridge=0.1, **pose)
    here = in_memory(table, groups=table["who"], ridge=0.1)
    assert (there.unit, there.records) == ("person", here.records)
    assert same(answers(there), answers(here))
    found = [
        fixed_hessian_descent(
            problem, budget=Budget(epsilon=2, delta=1e-6), steps=4, clip=1.0, random=fixed_seed_invalidates_guarantee(5)
        )
        for problem in (there, here)
    ]
    assert np.array_equal(found[0].coef, found[1].coef)
    there, here = (result.guarantee for result in found)
    assert (there.epsilon, there.delta, there.unit) == (here.epsilon, here.delta, here.unit)
    assert set(there.assumptions) - set(here.assumptions) == {"all rows of a person are in one file"}


def test_a_part_that_was_changed_stops_the_run(engine: Dealt, tmp_path: Path) -> None:
    """A worker that finds another file than was written says so, and the driver raises its sentence."""
    files = write_files(made_rows(), tmp_path / "files", [0, 300, 700])
    there = parted_glm(
        "logistic", files, "y", row_norm=2.0, columns=NAMES, engine=engine, folder=tmp_path / "cache", keep=True
    )
    part = next((tmp_path / "cache").rglob("*.arrow"))
    os.utime(part, ns=(0, 0))
    with pytest.raises(EngineFailure, match=r"got a file that was changed.*What was charged stays charged"):
        there.moment_sum()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_an_estimator_on_dask_is_the_one_in_memory(engine: Dealt, tmp_path: Path) -> None:
    """A whole fit, scales learnt and steps taken on workers, one of which is killed: coefficients, plan and guarantee
    of the fit in memory with the same noise.
    """
    table = made_rows()
    del table["who"]
    y = table["y"] = np.nan_to_num(table["y"]).astype(int)
    files = write_files(table, tmp_path / "files", [0, 300, 301, 700])
    engine.count, engine.mark = 2, str(tmp_path / "killed")
    model: Any = {"epsilon": 2.0, "delta": 1e-6, "classes": [0, 1], "random_state": 1}
    here = LogisticRegression(**model).fit(np.column_stack([table[name] for name in NAMES]), y)
    there = LogisticRegression(**model).fit(Files(files, engine=engine, cache=tmp_path / "cache"), "y")
    assert (tmp_path / "killed").exists()
    assert np.array_equal(there.coef_, here.coef_)
    assert np.array_equal(there.intercept_, here.intercept_)
    assert (there.plan_, there.guarantee_) == (here.plan_, here.guarantee_)
