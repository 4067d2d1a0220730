"""From files of rows to a linear problem in parts, on any engine."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.data.floats import FrameRows
from privet.engines.cache import Cache
from privet.engines.engine import Engine, Stream
from privet.engines.part import Part
from privet.engines.sources import source_blocks, source_header, source_parts
from privet.engines.tasks import encode
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet
from privet.losses import FeatureMap, Loss, loss_named
from privet.problems import GroupedProblem, LinearProblem, glm
from privet.problems.parted import PartedProblem

_BYTES = 1 << 26  # of floats that are encoded together


@dataclass(frozen=True, kw_only=True, slots=True)
class GlmEncoder:
    """Blocks of a part's rows as `glm` poses them; a value to be sent."""

    loss: Loss
    columns: tuple[str, ...]
    target: str
    groups: str | None
    row_norm: float
    features: FeatureMap | None

    def __call__(self, part: Part) -> Iterator[LinearProblem | GroupedProblem]:
        read = (*self.columns, self.target, *(() if self.groups is None else (self.groups,)))
        rows = max(1 << 12, _BYTES // (8 * len(self.columns))) if self.groups is None else None
        for block in source_blocks(part, read, rows=rows):
            whose = {} if self.groups is None else {"groups": block.column(self.groups)}
            X: Any = block.select(list(self.columns))
            X = X if self.features is not None else FrameRows(X)  # whole for a map, which sees many rows at a time
            y = block.column(self.target)
            yield glm(self.loss, X, y, row_norm=self.row_norm, features=self.features, **whose)


def parted_glm(
    loss: str | Loss,
    source: Any,
    y: str,
    *,
    row_norm: float,
    columns: Sequence[str] | None = None,
    groups: str | None = None,
    engine: Engine | None = None,
    folder: str | os.PathLike[str] | None = None,
    keep: bool = False,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
) -> PartedProblem:
    """As `glm`, of a table that is in files: each row is encoded once to 16 bits a column, and never in memory whole.

    Promise: every sum, and so every result with the same noise, is that of `glm` on the same rows in memory, to the
    last bit, on every engine.

    Parameters
    ----------
    source : Parquet files: a path, a folder, a pattern, or several of them; or a frame of the engine; private
    y : the column of labels
    columns : the columns of features; all others by default, which is then taken as public, as file headers are
    groups : the column that says whose row it is; all rows of a person must be in one file, as `store` of the engines
        writes them, which is not checked, and which the guarantee lists among its assumptions
    engine : where the work is done; `Stream()`, this process, by default
    folder : where encoded rows go, which nobody else may read; the system's folder for temporary files by default
    keep : whether they stay there when the problem is gone
    others : as in `glm`

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> file = tempfile.mkdtemp() + "/people.parquet"
    >>> pq.write_table(pa.table({"age": [0.2, 0.7], "ill": [0, 1]}), file)
    >>> parted_glm("logistic", file, "ill", row_norm=1.0)
    PartedProblem(private records, LogisticLoss(labels='zero_one'), row_norm=1, domain=whole_space())
    """
    chosen = loss if isinstance(loss, Loss) else loss_named(loss)
    on = engine if engine is not None else Stream()
    cache = Cache(folder, keep=keep)
    on.check(cache.folder.parent)
    sources = source_parts(source, whole=groups is not None)
    names = feature_columns(sources[0], columns, y, groups)
    encoder = GlmEncoder(loss=chosen, columns=names, target=y, groups=groups, row_norm=row_norm, features=features)
    nobody = np.full((1, len(names)), np.nan), np.full(1, np.nan)
    like = glm(chosen, *nobody, row_norm=row_norm, domain=domain, ridge=ridge, features=features)
    if groups is not None:  # a refusal would tell of somebody's rows
        like.assumptions += ("all rows of a person are in one file",)
    parts = cache.made(lambda where: encode(on, sources, encoder, where))
    return PartedProblem(like, parts.moved(cache), unit="record" if groups is None else "person")


def feature_columns(part: Part, columns: Sequence[str] | None, y: str, *others: str | None) -> tuple[str, ...]:
    """The columns of features: those named, or all but the labels' and others such as the groups'; public."""
    present = source_header(part).schema.names
    beside = (y, *(other for other in others if other is not None))
    names = tuple(name for name in present if name not in beside) if columns is None else tuple(columns)
    for name in (*names, *beside):
        if present.count(name) != 1:
            what = "none of that name" if name not in present else "several of that name"
            raise InvalidParameter(f"""Expected one column {name!r} in the files, got {what}: columns are matched by
                name. Rename it in the files, or name another.""")
    if not names or len({*names, *beside}) < len(names) + len(beside):
        raise InvalidParameter(f"""Expected columns of features, each once, beside {", ".join(map(repr, beside))}, got
            {list(names)!r}: labels must not be learnt from themselves. List the features' names.""")
    return names
