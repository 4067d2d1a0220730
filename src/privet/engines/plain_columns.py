"""Partitions of a frame as columns of declared types, and whose row each is. A cell that does not fit is missing."""

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privet.data.cells import Reader, text_of
from privet.data.columns import cells_of
from privet.data.people import label_of
from privet.errors import EngineFailure, InvalidParameter


def arrow_types(empty: pd.DataFrame) -> dict[str, Any]:
    """The columns that a frame without rows declares, and the type of each in a file: text where it says nothing.

    Examples
    --------
    >>> arrow_types(pd.DataFrame({"age": np.zeros(0), "job": np.zeros(0, dtype=object)}))
    {'age': DataType(double), 'job': DataType(string)}
    """
    names = [str(name) for name in empty.columns]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice or not names:
        raise InvalidParameter(
            f"""Expected columns of different names, got {
                "several " + repr(twice[0]) if twice else "no column"
            }: columns are matched by name. Rename them."""
        )
    found = {}
    for place, name in enumerate(names):
        try:
            declared = pa.array(empty.iloc[:, place]).type
        except (pa.ArrowException, TypeError, ValueError):
            raise InvalidParameter(f"""Expected columns of numbers or texts, got {name!r} of type
                {empty.dtypes.iloc[place]}: a Parquet file cannot hold it. Convert or drop it first.""") from None
        if pa.types.is_dictionary(declared):
            declared = declared.value_type
        found[name] = pa.string() if pa.types.is_null(declared) else declared
    return found


def plain_frame(part: pd.DataFrame, types: Mapping[str, Any], groups: str | None, key: str | None) -> pd.DataFrame:
    """A partition with just these types; with `groups`, a column `key` in which rows of one person are alike. Private.

    Promise: each cell is judged alone, and one that is not of its column's type is missing; nothing is raised for it.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [31, "Jane Doe"], "who": ["7", 7.0]}, dtype=object)
    >>> found = plain_frame(table, {"age": pa.int64(), "who": pa.string()}, "who", "person")
    >>> found["age"].tolist(), found["who"].tolist(), found["person"].nunique()
    ([31, <NA>], ['7', '7'], 1)
    """
    columns = _columns(part, types)
    found = {name: pd.array(column, dtype=pd.ArrowDtype(types[name])) for name, column in columns.items()}
    if groups is not None and key is not None:
        found[key] = person_keys(columns[groups])
    return pd.DataFrame(found)


def write_plain(part: pd.DataFrame, types: Mapping[str, Any], path: str) -> None:
    """Write a partition to a Parquet file, for its owner alone; what is there is whole or not there."""
    table = pa.table(_columns(part, types))
    half = f"{path}.{os.getpid()}"
    with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        pq.write_table(table, file)
    os.replace(half, path)


def person_keys(labels: Any) -> NDArray[np.int64]:
    """A number for each row, alike for rows of one person wherever they are; without a label, its place. Private.

    Labels are compared as `privet.data.people` compares them: 7, 7.0, "7" and "07" are one person.

    Examples
    --------
    >>> keys = person_keys(["7", 7.0, "07", "ann", None, None])
    >>> len(set(keys[:3])), len(set(keys))
    (1, 4)
    """
    keys = _Keys().read(cells_of(labels, name="groups"))
    return np.where(keys == 0, np.arange(len(keys)), keys)


class _Keys(Reader):
    """Cells as hashes of the labels that they are; 0 for a missing one."""

    dtype = np.dtype(np.int64)
    missing = 0

    def one(self, cell: Any) -> int:
        label = label_of(cell)
        if label is None:
            return 0
        raw = hashlib.blake2b(label.encode("utf-8", errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(raw, "little", signed=True)


def _columns(part: pd.DataFrame, types: Mapping[str, Any]) -> dict[str, Any]:
    """Arrow columns of these types."""
    names = [str(name) for name in part.columns]
    if any(names.count(name) != 1 for name in types):
        raise EngineFailure("""Expected the columns that the frame declares in each of its partitions, got one with
            others: records would be mixed up. Nothing was charged. Make the partitions alike first.""")
    return {name: _column(part.iloc[:, names.index(name)], kind) for name, kind in types.items()}


def _column(series: Any, kind: Any) -> Any:
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    try:
        found = pa.array(series, type=kind, from_pandas=True)
    except Exception:  # noqa: BLE001  # it quotes the first cell that does not fit
        found = pa.array([_cell(cell, kind) for cell in series.astype(object).tolist()], type=kind)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _cell(cell: Any, kind: Any) -> Any:
    """One cell, if it is of this type; else None."""
    try:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            cell = cell if isinstance(cell, str) else text_of(cell)
        return pa.scalar(cell, type=kind, from_pandas=True).as_py()
    except Exception:  # noqa: BLE001  # as above
        return None
