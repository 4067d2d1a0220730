from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privet.data.times import Times, by_the_clock, read_column, seconds_in, seconds_of

FAR = [2**63 - 1, -(2**63) + 1, 0]
BORN = ["2020-06-01", "1931-12-24", "2001-02-28"]


@pytest.mark.parametrize("text", ["2020-06-01T10:30", " 2020-06-01 10:30:00.75 ", "20200601T1030", "2020-W23-1T10:30Z"])
def test_texts_are_read_by_iso_8601(text: str) -> None:
    """Whatever is ISO 8601 is read, to the second, without its zone."""
    assert seconds_of(text) == (dt.datetime(2020, 6, 1, 10, 30) - dt.datetime(1970, 1, 1)).total_seconds()


def test_a_zone_is_dropped_and_the_clock_is_kept() -> None:
    """Ten o'clock is ten o'clock, as a text, as Python's, and in a column with a zone."""
    zone = dt.timezone(dt.timedelta(hours=-3))
    expected = seconds_of(dt.datetime(2020, 6, 1, 10))
    cells = ["2020-06-01T10:00-03:00", dt.datetime(2020, 6, 1, 10, tzinfo=zone), pd.Timestamp("2020-06-01 10", tz=zone)]
    assert Times().read(cells).tolist() == [expected] * 3
    assert read_column(Times(), pd.Series(cells[1:]), name="x").tolist() == [expected] * 2


def test_an_odd_cell_is_missing_and_moves_no_other(odd: Any, hostile: Any) -> None:
    """Beside any cell the others are read as ever, and it is a date only if its type is one."""
    expected = Times().read(BORN)
    for cell in (odd, hostile):
        cells = np.fromiter([*BORN, cell], dtype=object, count=4)  # pandas may ask a list's cells what they are
        for column in ([*BORN, cell], pd.Series(cells)):
            found = read_column(Times(), column, name="born")
            assert found[:3].tolist() == expected.tolist()
            assert np.isnan(found[3]) or isinstance(cell, dt.date | np.datetime64)


def test_a_format_is_what_texts_are_read_by() -> None:
    """With a format, texts of another form are missing, and dates are still dates."""
    found = Times("%d.%m.%Y").read(["01.06.2020", "2020-06-01", dt.date(2020, 6, 1), "31.02.2020", "01.06.20"])
    assert found[0] == found[2] == seconds_of("2020-06-01")
    assert np.isnan(found[[1, 3, 4]]).all()


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "3M"])
def test_dates_as_far_as_there_are_any_raise_nothing(unit: str) -> None:
    """The last dates of a unit are far away on their side, 0 is 1970, and what is not there is missing."""
    found = seconds_in(np.array([*FAR, -(2**63)]).view(f"M8[{unit}]"))
    assert found[0] > 0 > found[1]
    assert found[2] == 0
    assert np.isnan(found[3])


def test_far_dates_with_a_zone_raise_nothing() -> None:
    """Where libraries raise, as the clock there would be past their last date, each cell is judged alone."""
    zone, near = "America/New_York", seconds_of(dt.datetime(1969, 12, 31, 19))
    tables: list[Any] = [
        pd.Series([pd.Timestamp.max, pd.Timestamp.min, pd.Timestamp(0)]).dt.tz_localize("UTC").dt.tz_convert(zone),
        pa.array(FAR, pa.timestamp("us", zone)),
        pl.Series(FAR).cast(pl.Datetime("us")).dt.replace_time_zone("UTC").dt.convert_time_zone(zone),
    ]
    for column in tables:
        found = read_column(Times(), column, name="x")
        assert found[0] > near > found[1]
        assert found[2] == near


def test_clocks_follow_summer_time() -> None:
    """As Python's zones have it, summer and winter, for each record by itself."""
    utc = [dt.datetime(2020, month, 1, 12, tzinfo=dt.UTC) for month in range(1, 13)]
    zone = pd.Timestamp("2020", tz="Europe/Berlin").tz
    found = by_the_clock(np.array([time.timestamp() for time in utc]), zone)
    assert found.tolist() == [seconds_of(time.astimezone(zone)) for time in utc]
