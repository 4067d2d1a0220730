"""A Dask frame written once to Parquet files: by its workers, whole or not at all, a person's rows in one file."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
from distributed import Client, Future

from privet.data.columns import cells_of
from privet.engines.half_folders import clear_halves, half_folder
from privet.engines.plain_columns import arrow_types, plain_frame, write_plain
from privet.engines.sealed_work import guarded
from privet.errors import EngineFailure, InvalidParameter

_TRIES = 3
Awaited = Callable[[Callable[[], Sequence[Future]]], list[Any]]
Staff = Callable[[], frozenset[str]]


def write_frame(
    frame: Any, folder: Path, *, groups: str | None, client: Client, awaited: Awaited, staff: Staff
) -> list[Path]:
    """The files of a frame, a partition each, in a new or empty folder; with `groups`, whole people a file.

    A worker that dies takes rows with it, which the scheduler has made again; where they do not come out the same, a
    record would be in two files or in none. So all is written anew unless the same workers were there from first to
    last.
    """
    types = _checked(frame, groups)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter(f"""Expected a new or empty folder, got {str(folder)!r} with something in it: rows of
            two tables would be mixed. Name another folder.""")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_halves(folder.parent, f"{folder.name}-")
    for _ in range(_TRIES):
        before = staff()
        with half_folder(folder) as half:
            try:
                files = _written(frame, types, half, groups, client, awaited)
            except EngineFailure:
                if staff() >= before:
                    raise
                continue
            if staff() >= before:
                return _named(files, half, folder)
    raise EngineFailure(f"""Expected workers that stay while a frame is written, got {_TRIES} times some that died or
        left: a record could have been written twice. Nothing was charged. Hold the cluster at one size, or pass
        Parquet files.""")


def _checked(frame: Any, groups: str | None) -> dict[str, Any]:
    """The columns of a frame and their types in a file; refused on what is declared."""
    if not isinstance(frame, dd.DataFrame):
        raise InvalidParameter(f"""Expected a Dask DataFrame, got {type(frame).__name__}: this engine writes frames of
            its own kind. Pass a dask.dataframe, or the path of Parquet files.""")
    types = arrow_types(frame._meta)
    if groups is not None:
        if groups not in types:
            raise InvalidParameter(f"""Expected one column {groups!r} in the frame, got none of that name: a person's
                rows could not be found. Name the column that says whose row it is.""")
        cells_of(frame._meta.iloc[:, list(types).index(groups)], name=f"column {groups!r}")
    return types


def _written(
    frame: Any, types: Mapping[str, Any], half: Path, groups: str | None, client: Client, awaited: Awaited
) -> list[Path]:
    """The files, all there."""
    key = None
    if groups is not None:
        key = "person"
        while key in types:
            key += "_"
    empty = plain_frame(frame._meta, types, groups, key)
    plain = frame.map_partitions(_plain, dict(types), groups, key, meta=empty, enforce_metadata=False)
    name = f"privet-store-{secrets.token_hex(16)}"
    with client.as_current():  # or the rows of people would be brought together on another cluster
        if key is not None:
            plain = plain.shuffle(on=key, npartitions=frame.npartitions)
        files = [half / f"{i:05d}.parquet" for i in range(plain.npartitions)]
        tasks = [
            dask.delayed(_write)(part, dict(types), str(file), dask_key_name=f"{name}-{i}")
            for i, (part, file) in enumerate(zip(plain.to_delayed(), files, strict=True))
        ]
        awaited(lambda: client.compute(tasks))
    if not all(file.is_file() for file in files):
        raise EngineFailure(f"""Expected files of all workers in {str(half.parent)!r}, got only some: they write to
            another drive. Nothing was charged. Name a folder that all of them see.""")
    return files


def _plain(part: pd.DataFrame, types: Mapping[str, Any], groups: str | None, key: str | None) -> pd.DataFrame:
    return guarded(lambda: plain_frame(part, types, groups, key))


def _write(part: pd.DataFrame, types: Mapping[str, Any], path: str) -> None:
    guarded(lambda: write_plain(part, types, path))


def _named(files: Sequence[Path], half: Path, folder: Path) -> list[Path]:
    """The files where they belong, for their owner alone."""
    for file in files:
        file.chmod(0o600)
    half.rename(folder)
    return [folder / file.name for file in files]
