"""A Dask cluster of this machine's cores, whose workers allocate memory as other processes do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

_TRIM = "MALLOC_TRIM_THRESHOLD_"
_SETTINGS = {f"distributed.nanny.pre-spawn-environ.{_TRIM}": None, "distributed.worker.profile.enabled": False}


@contextmanager
def local_client(workers: int | None = None) -> Iterator[Client]:
    """A client of so many worker processes of one thread each; by default one a core. They end with the block.

    Dask's nanny sets MALLOC_TRIM_THRESHOLD_, so that memory which a task frees goes back to the system at once, and
    each block of rows asks for it again, page by page; here it is left unset. Nor are workers looked at a hundred times
    a second, as Dask's profile does. The dashboard listens on this machine only, on a port of the system's choice:
    `client.dashboard_link`.

    Examples
    --------
    >>> with local_client(1) as client:  # doctest: +SKIP
    ...     DaskEngine(client).cores
    1
    """
    kept = os.environ.pop(_TRIM, None)  # a nanny that this process started earlier leaves it there
    try:
        with dask.config.set(_SETTINGS):
            cluster = LocalCluster(
                n_workers=workers or os.cpu_count(), threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
    finally:
        if kept is not None:
            os.environ[_TRIM] = kept
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client
