"""A table in files or on a cluster, and where the work on it is done: what an estimator is given in place of rows."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from privet.data.csv_files import CsvFile
from privet.engines.cache import Cache
from privet.engines.csv_cells import csv_parts
from privet.engines.engine import Engine, Stream
from privet.engines.part import Part, told_apart
from privet.engines.sources import PARQUET, are_csv, source_parts, table_files
from privet.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet or CSV files of one table, or a frame of a cluster; the engine that reads it, and the folder for rows.

    A frame is written once to Parquet files in that folder, by the cluster itself: what it would be worked out to a
    second time need not be the same rows. CSV files are read once, to files of cells in that folder.

    Parameters
    ----------
    paths : a file, a folder of files, a pattern, or several of them; or a frame of the engine's; private
    engine : where the work is done; this process by default
    cache : a folder that nobody else may read, for encoded rows; the system's for temporary files by default
    keep : whether they stay there afterwards
    journal : a file of what a fit has released so far, made if it is not there: the same fit, called again after the
        process was killed, goes on from it. For files that do not change in between
    sep : the sign between the cells of CSV files

    Examples
    --------
    >>> Files("people/*.parquet")
    Files('people/*.parquet', engine=Stream())
    """

    paths: Any
    engine: Engine = field(default_factory=Stream, kw_only=True)
    cache: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    keep: bool = field(default=False, kw_only=True)
    journal: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    sep: str = field(default=",", kw_only=True)

    def __post_init__(self) -> None:
        CsvFile("", sep=self.sep)  # which refuses what is no sign

    def opened(
        self,
        *,
        columns: Sequence[str] | None = None,
        beside: Sequence[str] = (),
        texts: Sequence[str] = (),
        delta: float | None = None,
    ) -> tuple[list[Part], Cache]:
        """The parts, and a folder; refuses what the engine cannot work with. No row is read, but of CSV files.

        Those are read here, once: `columns` (all for None) and others `beside` them, as numbers, or `texts` as such;
        with `delta`, no further than it could be promised.
        """
        files: Any = self.paths
        parts, text = list[Part](), False
        if _named(files):  # which refuses what is not there before a folder is made
            files = table_files(files)
            text = are_csv(files)
            parts = [] if text else source_parts(files)
        self.kept()  # refuses a journal for what is no file
        cache = Cache(self.cache, keep=self.keep)
        self.engine.check(cache.folder.parent)
        if text:
            which: dict[str, Any] = {"columns": columns, "beside": beside, "texts": texts}
            return csv_parts(files, self.engine, cache, delta=delta, sep=self.sep, **which), cache
        if not _named(files):
            parts = source_parts(self.engine.store(files, cache.folder))  # deleted with the cache, or kept
        return parts, cache

    def kept(self, settings: str = "") -> dict[str, Any]:
        """The journal, if there is one, and what must be the same when a fit goes on from it: settings, and files."""
        if self.journal is None:
            return {}
        if not _named(self.paths):
            raise InvalidParameter(f"""Expected files for a fit with a journal, got {type(self.paths).__name__}: what a
                frame is worked out to a second time need not be the same rows. Store it first: engine.store(frame,
                folder).""")
        sign = "" if self.sep == "," else f" {self.sep!r}"
        return {"journal": self.journal, "of": f"{settings} {told_apart(table_files(self.paths))}{sign}"}

    def __repr__(self) -> str:
        what = repr(self.paths) if _named(self.paths) else type(self.paths).__name__
        return f"Files({what}, engine={self.engine!r})"


def as_files(data: Any) -> Files | None:
    """A path, or a frame of a cluster, as files; None for what is in memory."""
    if isinstance(data, Files):
        return data
    if isinstance(data, CsvFile):
        found = as_files(data.path)
        return None if found is None else replace(found, sep=data.sep)
    if isinstance(data, str | os.PathLike):
        path = os.fspath(data)
        if os.path.isdir(path) or path.endswith(PARQUET):
            return Files(path)
        there = os.path.isfile(path) or glob.has_magic(path)  # and then CSV, which is read into memory without Arrow
        return Files(path) if there and find_spec("pyarrow") is not None else None
    home = type(data).__module__.partition(".")[0]
    if home in ("dask", "dask_expr") and hasattr(data, "npartitions"):
        from distributed import get_client

        from privet.engines.dask_engine import DaskEngine

        return Files(data, engine=DaskEngine(get_client()))
    if home == "pyspark" and hasattr(data, "sparkSession"):
        from privet.engines.spark_engine import SparkEngine

        return Files(data, engine=SparkEngine(data.sparkSession))
    return None


def _named(paths: Any) -> bool:
    """Whether it is files by name, not a frame."""
    return isinstance(paths, str | os.PathLike | list | tuple)
