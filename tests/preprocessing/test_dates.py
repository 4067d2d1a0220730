from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.preprocessing import Category, Date, Number, Schema, TableEncoder, dump_schema, parse_schema

RANGE: dict[str, Any] = {"low": "2015-01-01", "high": "2024-12-31"}
ALL = Date(**RANGE, parts=("season", "month", "weekday", "hour"), missing="indicator")


def features(date: Date, *cells: Any) -> list[dict[str, float]]:
    """What is not 0 of each cell, by name."""
    encoder = TableEncoder(Schema(columns={"t": date}))
    names = encoder.get_feature_names_out()[:-1]
    rows = encoder.features({"t": list(cells)}).tolist()
    return [{name: value for name, value in zip(names, row, strict=True) if value} for row in rows]


def test_a_date_is_what_the_calendar_says() -> None:
    """Days from the middle of the range, the season on a circle, and the month, weekday and hour by name."""
    (found,) = features(ALL, "2020-07-01T15:10")
    low, high = dt.datetime(2015, 1, 1), dt.datetime(2024, 12, 31, 23, 59, 59)
    middle = low + (high - low) / 2
    assert found.pop("t (days)") == pytest.approx((dt.datetime(2020, 7, 1, 15, 10) - middle) / dt.timedelta(days=1))
    angle = 2 * np.pi * (dt.date(2020, 7, 1) - dt.date(2020, 1, 1)) / dt.timedelta(days=366)
    assert found.pop("t season (cos)") == pytest.approx(np.cos(angle))
    assert found.pop("t season (sin)") == pytest.approx(np.sin(angle))
    assert found == {"t month=7": 1.0, "t weekday=Wed": 1.0, "t hour=15": 1.0}


def test_every_day_has_its_month_and_weekday() -> None:
    """As Python's calendar has it, for forty years, before 1970 too."""
    days = [dt.date(1955, 1, 1) + dt.timedelta(days=i) for i in range(0, 15_000, 11)]
    date = Date(low="1950-01-01", high="2000-12-31", parts=("month", "weekday"))
    for day, found in zip(days, features(date, *days), strict=True):
        assert {name for name in found if "=" in name} == {f"t month={day.month}", f"t weekday={day:%a}"}


def test_what_is_outside_counts_as_the_nearest_end() -> None:
    """With all that the calendar says of that end; a day as the last is meant to its end."""
    inside = features(ALL, "2015-01-01", "2024-12-31T23:59:59")
    assert features(ALL, "0001-01-01", "9999-12-31") == inside
    assert features(ALL, np.datetime64("-9999-01-01"), np.datetime64("22222-01-01")) == inside
    assert inside[1]["t (days)"] == -inside[0]["t (days)"]


def test_what_is_no_date_is_missing() -> None:
    """Zeros, or a 1 in the column for it; in units of the features, no number."""
    schema = Schema(columns={"t": ALL, "u": Date(**RANGE, parts=("season",))})
    encoder = TableEncoder(schema)
    rows = encoder.transform({"t": ["Jane Doe", 7, None], "u": ["", "2020", b"\xff"]})
    held = [name for name, value in zip(encoder.get_feature_names_out(), rows[0], strict=True) if value]
    assert held == ["t is missing", "(constant)"]
    assert (rows == rows[0]).all()


def test_rows_with_dates_have_norm_at_most_one() -> None:
    """Exactly, with every part, at the ends of the range too; dense and sparse rows are the same."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(-3 * 10**9, 4 * 10**9, size=300)
    cells: list[Any] = [*seconds.view("M8[s]").tolist(), "2015-01-01", "2024-12-31T23:59:59", None]
    schema = Schema(columns={"t": ALL, "n": Number(low=0, high=1), "c": Category(values=("a",))})
    table = {"t": cells, "n": [1] * len(cells), "c": ["a"] * len(cells)}
    rows = TableEncoder(schema).transform(table)
    assert max(sum(Fraction(value) ** 2 for value in row) for row in rows.tolist()) <= 1
    assert max(sum(Fraction(value) ** 2 for value in row) for row in rows.tolist()) > 0.8
    np.testing.assert_array_equal(TableEncoder(schema, as_csr=True).transform(table).toarray(), rows)
    low, high = TableEncoder(schema).bounds
    features = TableEncoder(schema).features(table)[:-1]
    assert ((low <= features) & (features <= high)).all()


def test_a_row_is_of_its_own_record_alone() -> None:
    """Other records, however odd, change no bit of it."""
    encoder = TableEncoder(Schema(columns={"t": ALL}))
    alone = encoder.features({"t": ["2020-02-29T12:00"]})
    beside = encoder.features({"t": [dt.date.max, "Jane Doe", "2020-02-29T12:00", np.datetime64("-5000")]})
    np.testing.assert_array_equal(beside[2:3], alone)


@pytest.mark.parametrize("form", ["toml", "json"])
def test_a_schema_with_dates_is_written_and_read_back(form: str) -> None:
    """Equal to what it was, days as days and times as times."""
    other = Date(low=dt.datetime(2015, 1, 1, 6), high=dt.date(2024, 12, 31), format="%d.%m.%Y")
    schema = Schema(columns={"t": ALL, "u": other})
    text = dump_schema(schema, form=form)
    assert parse_schema(text, form=form) == schema
    assert '"2024-12-31"' in text
    assert "2015-01-01T06:00:00" in text


def test_tomls_own_dates_are_dates() -> None:
    """With or without quotes."""
    bare, quoted = (parse_schema(f"[columns]\nt = {{ kind = 'date', range = {ends} }}")
                    for ends in ("[2015-01-01, 2024-12-31]", "['2015-01-01', '2024-12-31']"))  # fmt: skip
    assert bare == quoted == Schema(columns={"t": Date(**RANGE)})


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"low": None, "high": None}, "range of two dates"),
        ({"low": 2015, "high": 2024}, "range of two dates"),
        ({"low": "2015-01-01T00:00+01:00", "high": "2024-12-31"}, "without a zone"),
        ({"low": "2024-12-31", "high": "2015-01-01"}, "the first before the last"),
        ({**RANGE, "parts": "month"}, "list of words"),
        ({**RANGE, "parts": ["year"]}, "one of 'season'"),
        ({**RANGE, "parts": ["month", "month"]}, "once"),
        ({**RANGE, "format": "%d.%m."}, "day, month and whole year"),
        ({**RANGE, "format": "%"}, "day, month and whole year"),
        ({"low": "1930-01-01", "high": "2020-01-01", "format": "%d.%m.%y"}, "whole year"),
        ({**RANGE, "missing": "mean"}, "missing"),
    ],
)
def test_what_is_no_date_column_is_refused(facts: Any, said: str) -> None:
    """In a sentence that says what to write."""
    with pytest.raises(InvalidParameter, match=said):
        Date(**facts)
