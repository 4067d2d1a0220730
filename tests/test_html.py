from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from privet import _html

WILD = '<script>alert("1")</script>&<img src=x onerror=1>'


class Tags(HTMLParser):
    """The tags, attributes and text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the tag."""
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """What was opened last is closed first."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember the text."""
        self.text += data


@pytest.mark.parametrize(
    "shown",
    [
        _html.table([[WILD, 1]], head=[WILD, "n"], title=WILD),
        _html.folded(WILD, WILD),
        _html.line(WILD),
    ],
)
def test_whatever_is_shown_is_text(shown: str) -> None:
    """Markup in any place is shown letter by letter: no tag but ours, all of them closed."""
    found = Tags(shown)
    assert found.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "p"}
    assert found.open == []
    assert WILD in found.text


def test_tables_have_no_colours_of_their_own() -> None:
    """Light or dark, text and lines take the colour of what is around them."""
    shown = _html.table([["a", 1]], head=["x", "y"], title="t") + _html.folded("a", "b") + _html.line("c")
    assert set(re.findall(r"(?<![-\w])(?:color|background):([^;\"]+)", shown)) == {"inherit", "none"}
    assert "#" not in shown


def test_numbers_stand_to_the_right() -> None:
    """So do numbers with separators and per cent; names stand to the left."""
    for cell, side in (("1,234.5", "right"), ("3 %", "right"), (2, "right"), ("x1", "left"), ("", "left")):
        assert f"text-align:{side}" in _html.table([[cell]])
