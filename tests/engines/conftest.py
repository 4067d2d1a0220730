"""Clusters that the tests of engines share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """Three processes of one thread each; a test that kills one leaves the nanny to start another.

    They have no Numba, which takes longer to load than all that is summed here; sums by NumPy alone are the same bits.
    """
    distributed: Any = pytest.importorskip("distributed", reason="Dask is not installed: pip install privet[dask]")

    class WithoutNumba(distributed.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            import sys

            sys.modules["numba"] = None  # type: ignore[assignment]

    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(WithoutNumba(), name="without-numba")
        yield client
