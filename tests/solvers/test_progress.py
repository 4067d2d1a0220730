from __future__ import annotations

import io

import pytest

from privet.solvers import descent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal no line is written, however long it takes."""
    quiet = io.StringIO()
    monkeypatch.setattr("sys.stderr", quiet)
    monkeypatch.setattr(descent, "_PATIENCE", 0.0)
    assert list(descent.shown(5, "work")) == [0, 1, 2, 3, 4]
    assert quiet.getvalue() == ""


def test_a_long_run_shows_how_far_it_got_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, after the patience has run out, steps are counted and the line is erased at the end."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(descent, "_PATIENCE", 0.0)
    monkeypatch.setattr(descent, "_EVERY", 0.0)
    list(descent.shown(3, "work"))
    assert "work: step 3 of 3" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\033[K")


def test_a_short_run_is_left_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the patience nothing appears."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    list(descent.shown(3, "work"))
    assert terminal.getvalue() == ""
