"""Small tables for notebooks: all text escaped, no colours of their own, so that they read in light and in dark."""

from collections.abc import Iterable, Sequence
from typing import Any

_CELL = "padding:0.15em 0.8em;vertical-align:top;color:inherit;background:none"
_TABLE = "border-collapse:collapse;color:inherit;background:none"
_CAPTION = "caption-side:top;text-align:left;color:inherit;padding:0.15em 0.8em"
_LINE = "border-bottom:1px solid currentColor"


def table(rows: Iterable[Sequence[Any]], *, head: Sequence[Any] = (), title: str = "") -> str:
    """An HTML table of these cells, with a line of names above and a title; numbers stand to the right.

    Promise: whatever a cell, a name or the title holds is shown as text, and never read as HTML.

    Examples
    --------
    >>> "<b>" in table([["<b>", 1]]), "&lt;b&gt;" in table([["<b>", 1]])
    (False, True)
    """
    found = [f'<table style="{_TABLE}">']
    if title:
        found.append(f'<caption style="{_CAPTION}">{_escape(title)}</caption>')
    if head:
        cells = "".join(f'<th style="{_CELL};{_LINE};text-align:left">{_escape(str(name))}</th>' for name in head)
        found.append(f"<thead><tr>{cells}</tr></thead>")
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return "".join([*found, f"<tbody>{body}</tbody></table>"])


def folded(title: str, text: str) -> str:
    """A line that opens to a longer text.

    Examples
    --------
    >>> folded("more", "1 < 2")
    '<details><summary>more</summary><p style="white-space:pre-wrap;color:inherit">1 &lt; 2</p></details>'
    """
    words = f'<p style="white-space:pre-wrap;color:inherit">{_escape(text)}</p>'
    return f"<details><summary>{_escape(title)}</summary>{words}</details>"


def line(text: str) -> str:
    """One line of text.

    Examples
    --------
    >>> line("a & b")
    '<p style="color:inherit">a &amp; b</p>'
    """
    return f'<p style="color:inherit">{_escape(text)}</p>'


def _escape(text: str) -> str:
    from html import escape  # not before it is needed: `import privet` is to cost nothing

    return escape(text)


def _cell(cell: Any) -> str:
    text = str(cell)
    side = "right" if _is_number(text) else "left"
    return f'<td style="{_CELL};text-align:{side}">{_escape(text)}</td>'


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").rstrip("% "))
    except ValueError:
        return False
    return True
