"""Clusters that the tests of engines share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """Three processes of one thread each; a test that kills one leaves the nanny to start another."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
