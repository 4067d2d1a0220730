"""CSV files: one record of the file is one record, whatever its cells hold."""

from __future__ import annotations

import csv
import io
import math
import random
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.data import grouped_by, header, read
from privet.data.cells import Names, Numbers, number_of
from privet.errors import InvalidParameter


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


def test_numbers_read_together_are_those_read_alone(tmp_path: Path) -> None:
    """However a number is written; one cell that is none leaves the others of its block as they are."""
    ways = [
        "7",
        " 7.5\t",
        "1_000",
        "+3",
        "-0.0",
        "1e5",
        "1E400",
        "-inf",
        "nan",
        "٣",
        "0x10",
        "",
        "Jane Doe",
        "1,5",
        "½",
    ]
    for odd in ways:
        cells = ["20"] * 300 + [odd] + ["1e-320", "40.0"]
        found = ages(written(tmp_path, [[cell, "a", 1] for cell in cells]))
        expected = [number_of(cell) for cell in cells]
        assert [x.hex() for x in found.tolist()] == [x.hex() for x in expected], odd


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


def test_a_quote_left_open_ends_with_its_line(tmp_path: Path) -> None:
    """Unless it is closed as CSV says, before a comma or a line end: then it may be a cell of several lines."""
    path = tmp_path / "open.csv"
    files: dict[str, list[float]] = {
        '20,a\n30,"b\n40,c\n50,d"\n60,e\n': [20, 30, 60],  # well-formed
        '20,a\n30,"b\n40,c\n50,d" \n60,e\n': [20, 30, 60],  # so are blanks behind it, says many a writer
        '70,"f\n80,g\n90,h\n': [70, 80, 90],
        '70,"f\n80,"g"\n90,h\n': [70, 80, 90],
        '70,"f\n80,""\n90,"h"\n100,""\n': [70, 80, 90, 100],
        '"70,f\n80,g"h\n90,"i,""\n100,j\n': [math.nan, 80, 90, 100],
        '70,"f\n80,"g\n90,"h\n100,i\n': [70, 80, 90, 100],
        '70,"f,""\n80,"\n90,g\n': [70, 90],  # which is one cell of two lines
        '70,"f\n80,g\n90': [70],  # cut off within a line, so within a cell of the last record
    }
    for text, expected in files.items():
        path.write_text("age,note\n" + text, encoding="utf-8")
        assert np.array_equal(ages(path), expected, equal_nan=True), text


@pytest.mark.medium
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_one_broken_line_takes_no_other_record(tmp_path: Path, quoting: Any, end: str) -> None:
    """Whatever one line holds, the records of a well-formed file around it stay as they are: 100 files of each kind.

    But for cells that begin, quotes aside, with a comma or a line end: a quote left open may be closed there.
    """
    draw = random.Random(f"{quoting} {end}")
    signs = ['"', '""', ",", "a", " ", "7", "\n", "\r", "\x00", "\u2028", "\x0c"]
    path = tmp_path / "broken.csv"
    for _ in range(100):
        cells = ["".join(draw.choices(signs, k=draw.randrange(6))) for _ in range(6)]
        table = [[20 + i, re.sub('^("*[ ,\r\n]+)+', "", cell), i] for i, cell in enumerate(cells)]
        place, odd = draw.randrange(7), "".join(draw.choices(signs, k=draw.randrange(1, 12)))
        odd = odd.replace("\n", " ").replace("\r", " ").strip() or "x"
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator=end, quoting=quoting).writerows(table[:place])
        text.write(odd + end)
        csv.writer(text, lineterminator=end, quoting=quoting).writerows(table[place:])
        path.write_bytes(b"age,note,id" + end.encode() + text.getvalue().encode())
        assert np.delete(ages(path), place).tolist() == [20 + i for i in range(6)], text.getvalue()


@pytest.mark.parametrize(
    "start",
    [
        "age,note\u202820,Jane\u202830,Jane\n", "age,note\x8520,Jane\n", "age,note\x0c20,Jane\n",
        'age,"no\rte"\n20,Jane\n',
        "PAR1\x15\x04Jane\n", "a\x00g\x00e\x00\n\x00J\x00a\x00n\x00e\x00", "\x1f\x8b\x08Jane\n",
    ],
)  # fmt: skip
def test_a_first_line_that_is_no_header_is_refused_unseen(tmp_path: Path, start: str) -> None:
    """Lines that end otherwise, and files of another format: else `privet schema` would print rows as names."""
    path = tmp_path / "other.csv"
    path.write_bytes(start.encode("utf-8"))
    with pytest.raises(InvalidParameter, match="Expected a CSV file") as caught:
        header(path)
    assert "Jane" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_blank_line_is_a_record_where_there_is_one_column(tmp_path: Path) -> None:
    """A missing cell is all that such a record has; where there are more columns, a blank line is no record."""
    path = tmp_path / "one.csv"
    path.write_text("age\n20\n\n40\n", encoding="utf-8")
    assert np.array_equal(ages(path), [20, math.nan, 40], equal_nan=True)


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
