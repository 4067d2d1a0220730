"""A table in files, and where the work on it is done: what an estimator is given in place of rows."""

import os
import sys
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from privet.engines.cache import Cache
from privet.engines.engine import Engine, Stream
from privet.engines.part import Part
from privet.engines.sources import PARQUET, Paths, source_parts


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files of one table, the engine that reads them, and the folder for rows that it encodes.

    Parameters
    ----------
    paths : a file, a folder of files, a pattern, or several of them; private
    engine : where the work is done; this process by default
    cache : a folder that nobody else may read, for encoded rows; the system's for temporary files by default
    keep : whether they stay there afterwards

    Examples
    --------
    >>> Files("people/*.parquet")
    Files('people/*.parquet', engine=Stream())
    """

    paths: Paths
    engine: Engine = field(default_factory=Stream, kw_only=True)
    cache: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    keep: bool = field(default=False, kw_only=True)

    def opened(self) -> tuple[list[Part], Cache]:
        """The parts, and an empty folder; refuses what the engine cannot work with. No row is read."""
        parts, cache = source_parts(self.paths), Cache(self.cache, keep=self.keep)
        self.engine.check(cache.folder.parent)
        return parts, cache

    def __repr__(self) -> str:
        return f"Files({self.paths!r}, engine={self.engine!r})"


def as_files(data: Any) -> Files | None:
    """A path, or a frame of a cluster, as files; None for what is in memory."""
    if isinstance(data, Files):
        return data
    if not isinstance(data, str | os.PathLike):
        return None
    path = os.fspath(data)
    return Files(path) if os.path.isdir(path) or path.endswith(PARQUET) else None


def is_frame(data: Any, package: str, kind: str) -> bool:
    """Whether it is a frame of a package that was imported."""
    module = sys.modules.get(package)
    return module is not None and isinstance(data, attrgetter(kind)(module))
