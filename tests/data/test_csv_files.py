"""CSV files: one record of the file is one record, whatever its cells hold."""

from __future__ import annotations

import csv
import io
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.data import grouped_by, header, read
from privet.data.cells import Names, Numbers, number_of


def written(folder: Path, cells: list[list[Any]], end: str = "\r\n") -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows([["age", "note", "id"], *cells])
    path = folder / "table.csv"
    path.write_bytes(text.getvalue().encode("utf-8", errors="replace"))
    return path


def ages(path: Path) -> Any:
    return read(path, {"age": Numbers()})["age"]


NOTES = {
    "long": "x" * 300_000,
    "long with rows": "31,no,1\r\n" * 40_000,
    "long with quotes": '"\r\n44,"' * 40_000,
    "quote": '"',
    "newline": "a\nb",
    "carriage return": "a\rb",
    "NUL": "a\x00b",
    "separators of Unicode": "a\u2028b\x85c\x0bd\x1ce",
    "comma": ",,,,",
    "undecodable": "\ud800",
}


@pytest.mark.parametrize("note", NOTES.values(), ids=list(NOTES))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_record_is_one_record_whatever_it_holds(tmp_path: Path, note: str, end: str) -> None:
    """A cell with rows, quotes or 300,000 letters in it, read or not, leaves the other records as they are."""
    before = csv.field_size_limit()
    path = written(tmp_path, [[20, "a", 1], [30, note, 2], [40, "b", 1]], end)
    assert header(path) == ["age", "note", "id"]
    assert ages(path).tolist() == [20, 30, 40]
    assert grouped_by(path, "id").tolist() == [0, 1, 0]
    reader = Names()
    assert reader.ranked(read(path, {"note": reader})["note"])[0].count("a") == 1
    assert csv.field_size_limit() == before


def test_an_odd_cell_of_a_file_is_a_number_or_missing(tmp_path: Path, odd: Any) -> None:
    """Whatever a cell is printed as, the other records are as they were."""
    printed = str(odd)
    found = ages(written(tmp_path, [[20, "a", 1], [printed, "a", 2], [40, "b", 1]]))
    assert np.array_equal(found, [20, number_of(printed), 40], equal_nan=True)


def test_the_header_is_the_first_line_and_no_more(tmp_path: Path) -> None:
    """A quote left open in the header ends with its line: no private row is read into a public name."""
    path = tmp_path / "open.csv"
    path.write_text('age,"note\n20,Jane\n30,"x"\n', encoding="utf-8")
    assert header(path) == ["age", "note"]
    assert ages(path).tolist() == [20, 30]
    path.write_text("age," + "n" * 200_000 + "\n20,Jane\n", encoding="utf-8")
    assert ages(path).tolist() == [20]
    path.write_text("", encoding="utf-8")
    assert header(path) == []


def test_a_quote_left_open_takes_what_csv_says(tmp_path: Path) -> None:
    """It ends at the next quote, or with the file; nothing is raised, and what stands before it is read."""
    path = tmp_path / "open.csv"
    path.write_text('age,note\n20,a\n30,"b\n40,c\n50,d"\n60,e\n70,"f\n80,g\n', encoding="utf-8")
    assert ages(path).tolist() == [20, 30, 60, 70]


def test_the_limit_is_lifted_for_our_readers_only(tmp_path: Path) -> None:
    """Two files read at once by two threads: each sees no limit, and afterwards it is what it was, errors included."""
    path = written(tmp_path, [[i, "x" * 140_000, i] for i in range(20)])
    before = csv.field_size_limit(140_001 - 2)
    found: list[list[float]] = []
    try:
        threads = [threading.Thread(target=lambda: found.append(ages(path).tolist())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[float(i) for i in range(20)]] * 4

        class Failing(Numbers):
            def one(self, cell: Any) -> float:
                raise KeyError

        with pytest.raises(KeyError):
            read(path, {"age": Failing()})
        assert csv.field_size_limit() == 139_999
    finally:
        csv.field_size_limit(before)


def test_a_line_end_of_another_kind_makes_no_record(tmp_path: Path) -> None:
    """How lines end is seen at the header, which is public; a lone one of the other kind in a cell is a blank."""
    path = tmp_path / "mixed.csv"
    path.write_bytes(b"age,note\n20,a\r99,b\r99,c\n30,d\r\n\n40,e\rf")
    assert ages(path).tolist() == [20, 30, 40]
    path.write_bytes(b"age,note\r\n20,a\r\n30,b\n40,\rc\r\n")
    assert ages(path).tolist() == [20, 30, 40]
    path.write_bytes(b"age,note\r20,a\n99,b\r30,c\r\r40,d")
    assert ages(path).tolist() == [20, 30, 40]


def test_a_record_of_other_length_is_one_record(tmp_path: Path) -> None:
    """Missing cells are missing, further ones are dropped."""
    path = tmp_path / "ragged.csv"
    path.write_text("age,note\n20\n30,a,b,c\n,\n40,d\n", encoding="utf-8")
    assert np.array_equal(ages(path), [20, 30, math.nan, 40], equal_nan=True)
