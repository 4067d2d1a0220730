from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest

from privet import _progress
from privet._progress import say, say_read, shown, task
from privet.data import read
from privet.data.cells import Numbers
from privet.estimators import fit_table
from privet.preprocessing import Number, Schema, Target

SCHEMA = Schema(columns={"age": Number(low=0, high=9)}, target=Target(column="ill", kind="label", values=("no", "yes")))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def looking(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal, and no patience; not a fixture, as pytest puts its own back after those."""
    found = Terminal()
    monkeypatch.setattr("sys.stderr", found)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "_EVERY", 0.0)
    return found


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal no line is written, however long it takes."""
    quiet = io.StringIO()
    monkeypatch.setattr("sys.stderr", quiet)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    assert list(shown(5, "work")) == [0, 1, 2, 3, 4]
    with task():
        say(lambda: "work")
    assert quiet.getvalue() == ""


def test_a_long_run_shows_how_far_it_got_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, after the patience has run out, steps are counted and the line is erased at the end."""
    terminal = looking(monkeypatch)
    list(shown(3, "work"))
    assert "work: step 3 of 3" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\033[K")


def test_a_short_run_is_left_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the patience nothing appears."""
    found = Terminal()
    monkeypatch.setattr("sys.stderr", found)
    list(shown(3, "work"))
    with task():
        say(lambda: "work")
    assert found.getvalue() == ""


def test_only_the_outermost_task_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a part of it counts in silence, and it is heard again afterwards, also when something failed."""
    terminal = looking(monkeypatch)
    with task(), task():
        list(shown(3, "part"))
        say(lambda: "whole")
    assert "part" not in terminal.getvalue()
    assert terminal.getvalue().count("whole") == 1
    with pytest.raises(ZeroDivisionError), task():
        raise ZeroDivisionError
    say(lambda: "late")
    assert "late" not in terminal.getvalue()
    list(shown(3, "next"))
    assert "next: step 3 of 3" in terminal.getvalue()


def test_a_count_that_was_left_alone_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that an error interrupted, and that its traceback keeps, does not silence others."""
    terminal = looking(monkeypatch)
    kept = shown(9, "left")
    next(kept)
    with task():
        say(lambda: "whole")
    assert "whole" in terminal.getvalue()


def test_other_threads_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is written from the main thread alone."""
    terminal = looking(monkeypatch)

    def work() -> None:
        with task():
            say(lambda: "work")
        list(shown(3, "work"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def lines(terminal: Terminal) -> set[str]:
    return {part for part in terminal.getvalue().replace("\033[K", "\r").split("\r") if part}


@pytest.mark.medium
def test_a_fit_shows_releases_and_no_other_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which release of how many, as the plan says, and nothing of the records."""
    terminal = looking(monkeypatch)
    table = {"age": [i % 10 for i in range(5000)], "ill": ["no", "yes"] * 2500}
    model = fit_table(table, SCHEMA, epsilon=1, delta=1e-6)
    most = sum(release.times for release in model.plan.releases)
    assert lines(terminal) == {f"privet is fitting: release {k} of {most}" for k in range(1, most + 1)}
    assert terminal.getvalue().endswith("\r\033[K")


@pytest.mark.medium
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_reading_shows_a_share_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """In per cent, growing to all of it; how many rows there are is not told."""
    terminal = looking(monkeypatch)
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": range(40_000), "ill": ["no", "yes"] * 20_000})
    path = tmp_path / f"people.{ending}"
    frame.to_parquet(path, row_group_size=5000) if ending == "parquet" else frame.to_csv(path, index=False)
    if ending == "parquet":
        fit_table(path, SCHEMA, epsilon=1, delta=1e-6)
    else:
        read(path, {"age": Numbers()})
    said = {line for line in lines(terminal) if "reading" in line}
    shares = [int(line.removeprefix(f"privet is reading people.{ending}: ").removesuffix("%")) for line in said]
    assert max(shares) == 100
    assert all(0 <= share <= 100 for share in shares)
    assert "40" not in "".join(said).replace(": 40%", "")


def test_a_share_is_never_more_than_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows while it is read is read to its end."""
    terminal = looking(monkeypatch)
    with task():
        say_read("a/b.csv", lambda: 1.7)
    assert "privet is reading b.csv: 100%" in terminal.getvalue()
