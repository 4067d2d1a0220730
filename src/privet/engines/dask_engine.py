"""Jobs on the workers of a Dask cluster that the user has."""

import asyncio
import math
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle
import dask
from distributed import Client, Future, KilledWorker

import privet
from privet.engines.engine import Engine, Job
from privet.engines.sealed_work import Sealed, WorkFailed, done
from privet.errors import EngineFailure, InvalidParameter

_RETRIES = 2  # of a task that raised; one whose worker died is counted by the scheduler
_LOOK = 0.5  # seconds between two looks at the cluster while tasks run
_FRESH = 2.0  # seconds for which who the workers are is not asked again; a stale answer costs a step some time at most
_CHARGED = "What was charged stays charged."


class _Homeless(Exception):
    """A worker that tasks would rather be on has left."""


class DaskEngine(Engine):
    """The workers of a `distributed.Client`, used as it is; or of a scheduler's address.

    Promise: one answer a bunch, however often its task was started. Only paths, coefficients and integers travel, as
    bytes that neither logs nor the dashboard show; keys of tasks are random. A cluster that is gone, or stays without
    workers, ends in `EngineFailure` after at most `patience` seconds, never in a wait without end.

    Parameters
    ----------
    client : a `distributed.Client`, not asynchronous, or the address of a scheduler
    patience : seconds to wait for a scheduler that is silent, or for a worker where there is none; public

    Examples
    --------
    >>> with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
    ...     engine = DaskEngine(client)
    ...     engine.cores, engine.run(len, [["a", "b"], ["c"]])
    (2, [2, 1])
    """

    def __init__(self, client: Client | str, *, patience: float = 20.0) -> None:
        if not patience > 0:
            raise InvalidParameter(f"""Expected patience above 0 seconds, got {patience}: no cluster answers at once.
                Use e.g. 20.""")
        self._owned = isinstance(client, str)
        self._client = _connected(client, patience) if isinstance(client, str) else client
        self._patience = patience
        self._known: Mapping[str, int] = {}
        self._looked = -math.inf
        if not isinstance(self._client, Client) or self._client.asynchronous:
            raise InvalidParameter(f"""Expected a distributed.Client that is not asynchronous, or the address of a
                scheduler, got {type(client).__name__}: sums are waited for. Use Client(address).""")

    @property
    def cores(self) -> int:
        return sum(self._threads().values())

    def check(self, folder: Path) -> None:
        self._looked = -math.inf
        if not self.cores:
            raise EngineFailure("""Expected workers, got a Dask cluster that has none: nothing can be summed. Nothing
                was charged. Start workers, then run again.""")
        token = secrets.token_hex(16)
        mark = Path(folder).absolute() / f".privet-{token}"
        try:
            mark.write_text(token, encoding="utf-8")
            mark.chmod(0o600)
            look = _look_at(str(mark))
            found = {"the scheduler": self._asked(self._client.run_on_scheduler, look)}
            found |= self._asked(self._client.run, look, on_error="return")
        except OSError as error:
            raise EngineFailure(f"""Expected a folder that can be written to, got {str(folder)!r}
                ({type(error).__name__}). Nothing was charged. Name another folder.""") from None
        finally:
            mark.unlink(missing_ok=True)
        _judge(found, token, folder)

    def run(self, job: Job, bunches: Sequence[Sequence[Any]]) -> list[Any]:
        work = Sealed(cloudpickle.dumps(job, protocol=5))
        shares = [Sealed(cloudpickle.dumps(bunch, protocol=5)) for bunch in bunches]
        if not shares:
            return []
        homes = [address for address, threads in sorted(self._threads().items()) for _ in range(threads)]
        found: list[Any] | None = None
        with suppress(_Homeless):
            found = self._awaited(lambda: self._submitted(work, shares, homes), frozenset(homes))
        if found is None:  # Dask lets tasks wait for ever whose home left while nobody else was there: from the start
            self._looked = -math.inf
            found = self._awaited(lambda: self._submitted(work, shares, ()))
        return [answer.open() for answer in found]

    def store(self, frame: Any, folder: Path, *, groups: str | None = None) -> list[Path]:
        """As `Engine.store`, by the workers: whole or not at all, and anew if a worker dies or leaves meanwhile.

        Rows without a person's label, which are left out wherever people count, are spread over the files.
        """
        from privet.engines.dask_files import write_frame  # which loads pandas; sums need none

        ways: Any = {"client": self._client, "awaited": self._awaited, "staff": self._staff}
        return write_frame(frame, Path(folder).absolute(), groups=groups, **ways)

    def close(self) -> None:
        """Leave the cluster, if the engine was made from an address; a client of the user's stays as it is."""
        if self._owned:
            with suppress(OSError, TimeoutError):
                self._client.close(timeout=self._patience)

    def __repr__(self) -> str:
        return f"DaskEngine({self._client.scheduler.address!r})" if self._client.scheduler else "DaskEngine(closed)"

    def _submitted(self, work: Sealed, shares: Sequence[Sealed], homes: Sequence[str]) -> list[Future]:
        """A task for each share, on the same worker every time if that is free: its maps are open there."""
        name = f"privet-{secrets.token_hex(16)}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):  # it tells a batch's size
            return [
                self._client.submit(
                    done,
                    work,
                    share,
                    key=f"{name}-{i}",
                    pure=False,
                    retries=_RETRIES,
                    workers=[homes[i % len(homes)]] if homes else None,
                    allow_other_workers=bool(homes),
                )
                for i, share in enumerate(shares)
            ]

    def _awaited(self, start: Callable[[], Sequence[Future]], homes: frozenset[str] = frozenset()) -> list[Any]:
        """What futures come to; whatever goes wrong is an `EngineFailure` that holds nothing but a type.

        With `homes`, workers that tasks would rather be on, one that left is a `_Homeless` at the next look.
        """
        futures: list[Future] = []
        try:
            futures += start()
            found: list[Any] = self._client.sync(self._gathered, futures, homes)
            return found
        except _Homeless:
            raise
        except EngineFailure as error:
            said = str(error)
        except WorkFailed as error:
            said = error.sentence or _failed(error.kind)
        except KilledWorker:
            said = f"""Expected workers that live, got several that died at one task, perhaps for want of memory: the
                sum is not complete. {_CHARGED} Give workers more memory, or make parts smaller; then run again."""
        except Exception as error:  # noqa: BLE001  # it may quote what was sent
            ours = not any(future.status == "error" for future in futures)
            said = (_gone if ours else _failed)(type(error).__name__)
        raise EngineFailure(said)  # out here, so that nothing is chained to it

    async def _gathered(self, futures: list[Future], homes: frozenset[str]) -> list[Any]:
        """All answers, while looking whether there is anybody who could still give one."""
        gathering = asyncio.ensure_future(self._client.gather(futures))
        seen = time.monotonic()
        try:
            while not (await asyncio.wait({gathering}, timeout=_LOOK))[0]:
                if alive := await asyncio.wait_for(self._client.nthreads(), self._patience):
                    seen = time.monotonic()
                    if homes - alive.keys():
                        raise _Homeless
                elif time.monotonic() - seen > self._patience:
                    raise EngineFailure(f"""Expected workers, got none for {self._patience:g} seconds: all of them died
                        or left. {_CHARGED} Start workers, then run again.""")
            return list(await gathering)
        finally:
            gathering.cancel()

    def _threads(self) -> Mapping[str, int]:
        """The workers' addresses, and how many tasks each runs at once, as they were a moment ago."""
        if time.monotonic() - self._looked > _FRESH:
            self._known = self._asked(self._client.nthreads)
            self._looked = time.monotonic()
        return self._known

    def _staff(self) -> frozenset[str]:
        """Who the workers are; one that was started anew is another, even at the same address."""
        found = self._asked(self._client.run, os.getpid, on_error="return")
        return frozenset(
            f"{address} {process if isinstance(process, int) else None}" for address, process in found.items()
        )

    def _asked(self, question: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """What the cluster answers to one of the client's methods; a silent one is a failure."""
        try:
            return self._client.sync(question, *args, callback_timeout=self._patience, **named)
        except Exception as error:  # noqa: BLE001  # as above
            said = _gone(type(error).__name__)
        raise EngineFailure(said)


def _connected(address: str, patience: float) -> Client:
    try:
        return Client(address, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        said = type(error).__name__
    raise EngineFailure(f"""Expected a Dask scheduler at {address!r}, got {said}: nobody answers there. Nothing was
        charged. Check the address, e.g. tcp://host:8786, and that the scheduler runs.""")


def _failed(kind: str) -> str:
    return f"""Expected an answer from every task, got {kind} from one: nothing of what others found is used.
        {_CHARGED} Look for the cause at the workers, then run again."""


def _gone(kind: str) -> str:
    return f"""Expected an answer from the Dask cluster, got {kind}: its scheduler is gone, silent or closed.
        {_CHARGED} Start the cluster again, then run again."""


def _look_at(path: str) -> Callable[[], tuple[str | None, str | None]]:
    """A function for a worker that may have no privet: its version there, and what the file holds.

    It is made in here so that it is sent by its code, not by its name.
    """

    def look() -> tuple[str | None, str | None]:
        try:
            import privet

            version: str | None = privet.__version__
        except Exception:  # noqa: BLE001
            version = None
        try:
            with open(path, encoding="utf-8") as file:
                return version, file.read()
        except OSError:
            return version, None

    return look


def _judge(found: Mapping[str, Any], token: str, folder: Path) -> None:
    """Refuse what workers have found when they looked."""
    for where, seen in found.items():
        if not isinstance(seen, tuple):
            raise EngineFailure(f"""Expected an answer from {where}, got {type(seen).__name__}. Nothing was charged.
                Restart that worker, then run again.""")
        version, read = seen
        if version != privet.__version__:
            what = "none" if version is None else f"version {version}"
            raise EngineFailure(f"""Expected privet {privet.__version__} at {where}, got {what}: sums might differ.
                Nothing was charged. Install the same version there, then restart it.""")
        if read != token and where != "the scheduler":
            raise EngineFailure(f"""Expected a folder that all workers see, got {str(folder)!r}, which {where} does not:
                parts are read where they lie. Nothing was charged. Name a folder on a shared drive.""")
