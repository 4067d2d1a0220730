"""Columns of dates: time within a public range, and what a calendar says of it. Each of its own record only."""

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from privet._checks import one_of
from privet.arrays import Vector
from privet.data.times import seconds_of
from privet.errors import InvalidParameter
from privet.preprocessing.missing import Missing, check_missing

Part = Literal["season", "month", "weekday", "hour"]
_DAY = 86_400
_LAST = dt.time(23, 59, 59)
_WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BLOCKS: dict[str, tuple[str, ...]] = {
    "month": tuple(map(str, range(1, 13))),
    "weekday": _WEEK,
    "hour": tuple(map(str, range(24))),
}
_COSINES, _SINES = (
    np.array([[turn(2 * math.pi * day / length) for day in range(366)] for length in (365, 366)])
    for turn in (math.cos, math.sin)
)  # for each length of a year


@dataclass(frozen=True, kw_only=True, slots=True)
class Date:
    """A column of dates, or of dates with times, with a public range.

    Its first feature is time, in days from the middle of the range. Each of `parts` is something that the calendar says
    beside it: "season" the day of the year on a circle, as a cosine and a sine; "month", "weekday" and "hour" a block
    of 0 and 1. What is outside the range counts as its nearest end, what is no date as missing.

    A cell may be a date of Python, NumPy, pandas, polars or Arrow, or a text: by `format`, in the language of
    `datetime.strptime`, or without one by ISO 8601. Clocks are read as they stand: 10:00+02:00 is ten o'clock.
    Fractions of a second are dropped.

    Parameters
    ----------
    low, high : the first and the last date that can occur, as dates or in ISO 8601; a day as `high` is meant to its end
    parts : which of "season", "month", "weekday" and "hour"
    format : how texts are written, if not by ISO 8601
    missing : as of other columns

    Examples
    --------
    >>> born = Date(low="1920-01-01", high="2010-12-31", parts=("weekday",), format="%d.%m.%Y")
    >>> born.ends
    ('1920-01-01', '2010-12-31')
    """

    low: Any
    high: Any
    parts: tuple[Part, ...] = ()
    format: str | None = None
    missing: Missing = "neutral"

    def __post_init__(self) -> None:
        for end, time in (("low", dt.time.min), ("high", _LAST)):
            object.__setattr__(self, end, _end(getattr(self, end), time))
        if not self.low < self.high:
            raise InvalidParameter(
                f"Expected range = [first, last] with the first before the last, got {list(self.ends)}: nothing can be "
                "scaled by it. Write the first and the last date that can occur."
            )
        if isinstance(self.parts, str | bytes) or not isinstance(self.parts, Iterable):
            raise InvalidParameter(
                f"Expected parts to be a list of words, got {type(self.parts).__name__}: each is something that the "
                'calendar says. Write parts = ["month", "weekday"].'
            )
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            because, use = "the calendar says nothing else of a date", 'Write e.g. parts = ["month", "weekday"].'
            one_of("parts", part, get_args(Part), because=because, use=use)
        if len(set(self.parts)) < len(self.parts):
            raise InvalidParameter("Expected each of parts once, got one twice: it would count twice. Leave one out.")
        check_missing(self.missing)
        self._check_format()

    def _check_format(self) -> None:
        """Refuse a format that does not give back the range's ends, to the day: it is public, and so are they."""
        if self.format is None:
            return
        try:
            found = [seconds_of(end.strftime(self.format), self.format) // _DAY for end in (self.low, self.high)]
        except Exception:  # noqa: BLE001  # whatever strftime says of it
            found = []
        if found != [seconds_of(end) // _DAY for end in (self.low, self.high)]:
            raise InvalidParameter(
                f"Expected format to be one of datetime.strptime that says day, month and whole year, got "
                f"{self.format!r}: the ends of the range do not come back from it. Write e.g. '%d.%m.%Y', or '%Y%m%d'."
            )

    @property
    def known(self) -> bool:
        """Whether the range is declared, as it must be."""
        return True

    @property
    def ends(self) -> tuple[str, str]:
        """The range as it is written: days where it begins and ends with one."""
        low = self.low.date() if self.low.time() == dt.time.min else self.low
        high = self.high.date() if self.high.time() == _LAST else self.high
        return low.isoformat(), high.isoformat()

    @property
    def shares(self) -> int:
        """How many columns of norm at most 1 it counts as: one for time, one a part, two for the season."""
        return 1 + len(self.parts) + ("season" in self.parts)

    @property
    def features(self) -> tuple[str, ...]:
        """What its features are called, after its own name and without the indicator."""
        found = [" (days)"]
        for part in self.parts:
            if part == "season":
                found += [" season (cos)", " season (sin)"]
            else:
                found += [f" {part}={value}" for value in _BLOCKS[part]]
        return tuple(found)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """The public ranges of these features."""
        half = self._span / 2 / _DAY
        found = [(-half, half)]
        for part in self.parts:
            found += [(-1.0, 1.0)] * 2 if part == "season" else [(0.0, 1.0)] * len(_BLOCKS[part])
        return tuple(found)

    @property
    def _span(self) -> float:
        return seconds_of(self.high) - seconds_of(self.low)

    def columns(self, seconds: Vector) -> Iterator[tuple[int, tuple[float, float] | None, Vector]]:
        """Of times, missing ones NaN: for each part its first feature, its range or None for a block, its values.

        A value is the feature's, or of a block its place; where no date is, NaN. Each is of its own record. Private.
        """
        low, high = seconds_of(self.low), seconds_of(self.high)
        gone = np.isnan(seconds)
        kept = np.clip(np.where(gone, low, seconds), low, high)
        times = kept.astype(np.int64).view("M8[s]")

        def known(values: Any) -> Vector:
            return np.where(gone, np.nan, values)

        yield 0, self.bounds[0], known((kept - low - self._span / 2) / _DAY)
        place = 1
        for part in self.parts:
            if part == "season":
                for each in _season(times):
                    yield place, (-1.0, 1.0), known(each)
                    place += 1
            else:
                yield place, None, known(_places(part, times))
                place += len(_BLOCKS[part])


def _season(times: Any) -> tuple[Vector, Vector]:
    """The day of the year on a circle that begins with the first of January: cosine and sine.

    Looked up, not computed beside others': how an array's cosines are rounded may depend on where in it they stand.
    """
    years = times.astype("M8[Y]")
    begin, end = (each.astype("M8[D]") for each in (years, years + 1))
    day, leap = (times.astype("M8[D]") - begin).view(np.int64), (end - begin).view(np.int64) - 365
    return _COSINES[leap, day], _SINES[leap, day]


def _places(part: str, times: Any) -> Any:
    """The month, the day of the week (Monday is 0) or the hour, counted from 0."""
    if part == "month":
        return times.astype("M8[M]").view(np.int64) % 12
    whole = times.view(np.int64)
    return (whole // _DAY + 3) % 7 if part == "weekday" else whole // 3600 % 24  # 1970 began on a Thursday


def _end(value: Any, time: dt.time) -> dt.datetime:
    """An end of a range to the second; a day at the given time."""
    found = value
    if isinstance(found, str):
        try:
            text = found.strip()
            found = dt.date.fromisoformat(text) if len(text) <= 10 else dt.datetime.fromisoformat(text)
        except ValueError:
            found = None
    if isinstance(found, dt.date) and not isinstance(found, dt.datetime):
        found = dt.datetime.combine(found, time)
    if not isinstance(found, dt.datetime) or found.tzinfo is not None or math.isnan(seconds_of(found)):
        raise InvalidParameter(
            f"Expected a range of two dates without a zone, got {value!r}: a time could not be bounded. Write range = "
            '["2015-01-01", "2024-12-31"], known without looking at the data.'
        )
    return found.replace(microsecond=0)
