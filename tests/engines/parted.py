"""Tables in files for tests, and the same in memory."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet import glm
from privet.arrays import Vector
from privet.clipping import Clip, LatticeSum
from privet.problems.linear_model import LinearModel

COLUMNS = 5


def made_rows(records: int = 700, *, seed: int = 1) -> dict[str, Any]:
    """Columns of features, labels, and a person with one to four rows for each of some labels; some cells odd."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records, COLUMNS))
    X[3, 2], X[9, 0] = np.nan, np.inf
    y = (X[:, 1] > 0).astype(float)
    y[17] = np.nan
    people = np.sort(rng.integers(0, records // 2, size=records))
    return {**{f"x{j}": X[:, j] for j in range(COLUMNS)}, "y": y, "who": [f"p{i}" for i in people]}


def write_files(table: dict[str, Any], folder: Path, edges: list[int], *, row_group: int = 64) -> Path:
    """The rows between each two edges in a file of its own."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = pa.table(table)
    for i, (a, b) in enumerate(itertools.pairwise(edges)):
        pq.write_table(whole.slice(a, b - a), folder / f"{i:03d}.parquet", row_group_size=row_group)
    return folder


def in_memory(table: dict[str, Any], **more: Any) -> Any:
    """The problem of all rows."""
    X = np.column_stack([table[f"x{j}"] for j in range(COLUMNS)])
    return glm("logistic", X, table["y"], row_norm=2.0, **more)


def answers(problem: LinearModel, batch: Any = None) -> list[LatticeSum]:
    """All kinds of sums of a linear problem at some points."""
    theta, other = np.linspace(-1, 1, COLUMNS), np.linspace(0.3, -0.4, COLUMNS)
    rule: Any = Clip(clip=0.75)
    found = [
        problem.gradient_sum(theta, rule=rule, indices=batch),
        problem.gradient_sum(theta, rule=rule, indices=batch, max_records=1000),
        problem.difference_sum(theta, other, rule=rule, indices=batch),
        problem.slope_sum(theta, other, clip=0.5, indices=batch),
        problem.loss_sum(theta, clip=2.0, centre=0.5),
        problem.moment_sum(),
        problem.row_sum(),
        problem.along(theta, doubled, columns=2).gradient_sum(np.array([0.5, 0.25]), rule=rule, indices=batch),
    ]
    if problem.unit == "record":
        one: Any = problem
        found += [
            one.curvature_sum(one.loss.curvature, theta, smoothness=0.25, indices=batch),
            *one.sandwich_sums(theta, clip=0.5, smoothness=0.25),
            one.norm_counts(theta, edges=np.array([1.0, 0.5, 0.1])),
        ]
    return found


def doubled(z: Vector) -> Vector:
    """Rows of two numbers from a score."""
    return np.column_stack([np.clip(z, -0.5, 0.5), np.full_like(z, 0.25)])


def same(one: list[LatticeSum], other: list[LatticeSum]) -> bool:
    """Whether all sums are equal to the last bit, their lattices included."""
    return all(
        np.array_equal(a.units, b.units) and (a.step, a.clip, a.within) == (b.step, b.clip, b.within)
        for a, b in zip(one, other, strict=True)
    )
