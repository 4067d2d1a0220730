"""Whether code that a user supplies treats each record by itself: tried on made-up records, as nothing can prove it.

A loss that divides by the batch's mean, or a rule by the largest norm, lets one record move what all others add, and no
clip bounds that. Code of this library is not tried: its tests are.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import InvalidParameter

Array = NDArray[Any]
_RECORDS = 8
_SCALES = (1.0, 40.0, 1e-3, 1e4)
_CLOSE = 1e-4  # a matrix product rounds a row differently with the number of rows, and with its place


def user_supplied(code: Any) -> bool:
    """Whether it, or what it holds, comes from outside this library.

    Examples
    --------
    >>> import operator
    >>> from privet.losses import CustomLoss, LinearRecords, LogisticLoss
    >>> user_supplied(LinearRecords(loss=LogisticLoss()))
    False
    >>> user_supplied(CustomLoss(value=operator.sub, derivative=operator.sub, curvature=operator.sub))
    True
    """
    if str(getattr(code, "__module__", "")).partition(".")[0] != "privet":
        return True
    held = [getattr(code, field.name) for field in fields(code)] if is_dataclass(code) else []
    return any(user_supplied(part) for part in held if callable(part) or is_dataclass(part))


def made_up(shape: tuple[int, ...], *, scale: float, kind: str = "f", seed: int = 0) -> Array:
    """Numbers for `_RECORDS` made-up records of that shape; small whole ones where the records hold whole numbers."""
    waves: Array = np.sin(1.7 * seed + 12.9898 * np.arange(_RECORDS * int(np.prod(shape)))).reshape(_RECORDS, *shape)
    return np.asarray(scale * waves) if kind == "f" else (waves > 0).astype(np.int64 if kind in "iu" else np.bool_)


def check_alone(what: str, function: Callable[..., Any], *shapes: tuple[tuple[int, ...], str]) -> str:
    """Refuse a function of records whose answer for one changes with others; else what is assumed all the same.

    `shapes` are those of one record's arguments, each with its kind of number. Labels come last: 0 and 1 in half of the
    trials. The same bits are asked for where the others change and the record stays in its place; nearly the same where
    there are more or fewer of them, or another order.
    """
    for trial, scale in enumerate(_SCALES):
        records = [made_up(shape, scale=scale, kind=kind, seed=trial + i) for i, (shape, kind) in enumerate(shapes)]
        if trial % 2 == 0 and len(records) > 1:
            records[-1] = (records[-1] > 0).astype(records[-1].dtype)
        if _coupled(function, records):
            raise InvalidParameter(f"""Expected {what} to treat each record by itself, got one whose answer for a
                made-up record changed with the records beside it: then one person moves what others add, and no clip
                bounds that. Compute each row from its own record; take means, scales and maxima from public facts.""")
    return (
        f"{what} is user-supplied code: that it treats each record by itself was tried on made-up records, not proven"
    )


def _coupled(function: Callable[..., Any], records: list[Array]) -> bool:
    whole = _answer(function, records)
    if whole is None or whole.shape[:1] != (_RECORDS,):
        return False  # refused by its shape where it is summed
    for others, kept in _companies(records):
        found = _answer(function, others)
        if found is None or found.shape != whole.shape or not np.array_equal(found[kept], whole[kept], equal_nan=True):
            return True
    size = np.abs(whole[np.isfinite(whole)]).max(initial=0.0)
    for places in ([4, 2, 7, 0, 1, 3, 6, 5], [0, 1, 2], [5], [5, 5, 1, 5]):
        found = _answer(function, [part[places] for part in records])
        if found is None or found.shape[:1] != (len(places),):
            return True
        if not np.allclose(found, whole[places], rtol=_CLOSE, atol=_CLOSE * size, equal_nan=True):
            return True
    return False


def _companies(records: list[Array]) -> Iterator[tuple[list[Array], Array]]:
    """Other records in some places, and the places of those that stay."""
    places = np.arange(_RECORDS)
    for one in places:  # nobody but copies of one
        yield [part[np.full(_RECORDS, one)] for part in records], places[[one]]
    for factor in (-1.0, 0.0, 1000.0, np.nan):  # of the others; where there are whole numbers, their order changes
        for kept in (places % 2 == 0, places > 0):
            others = [part * factor if part.dtype.kind == "f" else part[::-1] for part in records]
            mask = [kept.reshape(-1, *[1] * (part.ndim - 1)) for part in records]
            yield [np.where(*parts) for parts in zip(mask, records, others, strict=True)], places[kept]
    yield records, places  # the same again: nothing is remembered


def _answer(function: Callable[..., Any], records: list[Array]) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            found = function(*[part.copy() for part in records])
    except Exception as error:  # noqa: BLE001  # a user's code may raise anything
        raise InvalidParameter(f"""Expected code that takes any value of a record, got {type(error).__name__} for a
            made-up one: an error that depends on a record tells about it. Return NaN for what has no answer; its record
            counts as nothing.""") from None
    return None if found is None else np.asarray(found, dtype=np.float64)
