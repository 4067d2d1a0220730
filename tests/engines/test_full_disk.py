"""A disk that is full: one sentence, no model, no rows left."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq

from privet import Budget
from privet.engines import Cache, Files
from privet.errors import EngineFailure
from privet.estimators import LogisticRegression
from privet.ledger import Account


@contextmanager
def full_disk() -> Iterator[None]:
    """In here the system writes no file beyond 20 kB, as on a disk that is full."""
    resource: Any = pytest.importorskip("resource", reason="limits of files are POSIX's")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("name", "charges"), [("rows.parquet", 1), ("rows.csv", 0)])
def test_a_full_disk_leaves_no_model_and_no_rows(tmp_path: Path, name: str, charges: int) -> None:
    """One sentence: what happened, that the charge stays, what to do. Cells of CSV are written before any charge."""
    X = np.random.default_rng(0).normal(size=(6_000, 3))
    table = pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "y": (X[:, 0] > 0).astype(int)})
    pq.write_table(table, tmp_path / name) if name.endswith("parquet") else csv.write_csv(table, tmp_path / name)
    account = Account(Budget(epsilon=3, delta=1e-5), neighbours="replace_one")
    model = LogisticRegression(1.0, classes=[0, 1], bounds=(-5, 5), bounds_exact=True, account=account)
    said = "Expected room for rows in .*: the table is not encoded. What was charged stays charged. Free some space"
    with full_disk(), pytest.raises(EngineFailure, match=said):
        model.fit(Files(tmp_path / name, cache=tmp_path / "cache"), "y")
    assert len(account.charges) == charges
    assert not hasattr(model, "coef_")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.suffix not in ("", ".alive")] == []


def test_a_disk_too_full_for_a_folder_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one on which not even a folder or a lock can be made."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

    cache = Cache(tmp_path / "rows")
    cases: list[tuple[Any, str, Any]] = [
        (os, "open", lambda: cache.made(lambda where: where)),
        (os, "mkdir", lambda: cache.made(lambda where: where)),
        (os, "open", lambda: Cache(tmp_path / "rows")),
        (tempfile, "mkdtemp", lambda: Cache(None)),
    ]
    for module, name, make in cases:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(EngineFailure, match="got No space left on device"):
                make()
