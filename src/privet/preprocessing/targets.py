"""The target by public facts: labels to class indices, numbers kept to their range, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.data.cells import Codes, Numbers, Reader
from privet.data.columns import cells_of
from privet.data.tables import is_table, read
from privet.errors import InvalidParameter
from privet.preprocessing.encoding import ends_of
from privet.preprocessing.schema import Target

Floats = NDArray[np.float64]


def encode_target(target: Target, data: Any) -> Floats:
    """Labels as class indices 0, 1, …; numbers and counts clipped to their range, numbers after log1p if so. Private.

    What is missing, unlisted or unreadable becomes NaN, whose record the losses zero out; nothing is raised
    and nothing is said.

    Parameters
    ----------
    target : public facts, with values or range
    data : a table that holds the target's column, or the column itself

    Examples
    --------
    >>> encode_target(Target(column="y", kind="label", values=("no", "yes")), ["yes", "no", "Jane Doe"])
    array([ 1.,  0., nan])
    >>> encode_target(Target(column="y", kind="number", low=0, high=10), {"y": [0, 5, 20]})
    array([ 0.,  5., 10.])
    """
    _check_known(target)
    reader = _reader(target)
    found = read(data, {target.column: reader})[target.column] if is_table(data) else reader.read(cells_of(data))
    if target.kind == "label":
        return np.where(found >= 0, found, np.nan)
    low, high = ends_of(target)
    if target.kind == "number":
        values = np.clip(found, low, high)
        return np.asarray(np.log1p(values) if target.log else values)
    whole = (found >= 0) & (found == np.floor(found))
    return np.where(whole, np.minimum(found, np.floor(high)), np.nan)


def decode_target(target: Target, predictions: Any) -> NDArray[Any]:
    """Class indices as labels, numbers kept to the public range; counts stay as they are.

    Examples
    --------
    >>> decode_target(Target(column="y", kind="label", values=("no", "yes")), [1, 0]).tolist()
    ['yes', 'no']
    >>> decode_target(Target(column="y", kind="number", low=0, high=10), [5.0, 13.0])
    array([ 5., 10.])
    """
    _check_known(target)
    values = np.asarray(predictions)
    if target.kind == "label":
        return np.array(target.classes, dtype=object)[values.astype(np.int64)]
    if target.kind == "count":
        return values.astype(np.float64)
    low, high = ends_of(target)
    numbers = values.astype(np.float64)
    with np.errstate(over="ignore"):
        return np.clip(np.expm1(numbers) if target.log else numbers, low, high)


def _reader(target: Target) -> Reader:
    if target.kind != "label":
        return Numbers()
    return Codes(target.values or (), other=-1 if target.other is None else len(target.classes) - 1)


def _check_known(target: Target) -> None:
    if not isinstance(target, Target):
        raise InvalidParameter(
            f"Expected a Target, got {type(target).__name__}: nothing says how to read the target. "
            'Declare it in the schema, e.g. Target(column="y", kind="label", values=("no", "yes")).'
        )
    if not target.known:
        what = "its list of values" if target.kind == "label" else "its range"
        raise InvalidParameter(
            f"Expected the target {target.column!r} with {what}, got its kind alone: it would have to be read off the "
            "rows. Write values = [...] or range = [low, high], or learn them privately with learn_schema."
        )
