"""Make the notebook twins of three pages: `python docs/notebooks.py` writes docs/notebooks/*.ipynb.

Text stays text, each example becomes a cell, a figure the call that draws it, and a marker of claims a cell that checks
them. The tests demand that the files are what this script makes, and run every cell.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from claims import MARKER, SAID, mark  # noqa: E402 - both files are beside this one, in no package
from draw import FIGURES  # noqa: E402

PAGES = ("lectures/constants.md", "lectures/how-good.md", "lectures/wu.md")

START = """\
# Needs privet and matplotlib: pip install "privet[plot]"
%matplotlib inline

from privet.lectures import check_for, look_up


def check(*ids):
    for id in ids:
        claim, found = look_up(id), check_for(id)()
        print(f"{claim.id} · {claim.place}: {found.verdict}\\n    {claim.statement}\\n    Found: {found.sentence}")
        if claim.erratum:
            print(f"    Erratum: {claim.erratum}")"""

SPLIT = re.compile(
    r"^```python\n(?P<code>.*?)^```$|^\[!\[[^]]*\]\((?P<figure>[^)]*)\)\]\([^)]*\)$"
    r"|^(?P<marker>\{\{ (?:claims|verdicts)[^}]* \}\})$",
    re.M | re.S,
)


def cells_of(page: str, folder: str) -> list[dict[str, Any]]:
    """The cells of a page that lies in that folder of the docs."""
    found: list[tuple[str, str]] = []
    end = 0
    for match in SPLIT.finditer(page):
        found.append(("markdown", _text(page[end : match.start()])))
        end = match.end()
        if match["code"]:
            found += [("code", source) for source in _examples(match["code"])]
        elif match["figure"]:
            found.append(("code", _call(f"{folder}/{match['figure']}")))
        else:
            found.append(("code", _checks(match["marker"])))
    found.append(("markdown", _text(page[end:])))
    found.insert(1, ("code", START))
    return [_cell(number, kind, source) for number, (kind, source) in enumerate(found) if source]


def notebook(page: str) -> str:
    """The notebook of a page, as the text of its file."""
    path = DOCS / page
    cells = cells_of(path.read_text(encoding="utf-8"), Path(page).parent.as_posix())
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _text(markdown: str) -> str:
    """Text without links into the pages, which a notebook elsewhere would not find, and without word of itself."""
    markdown = MARKER.sub(_begun, markdown)
    markdown = re.sub(r"[^.]*\[as a notebook\]\([^)]*\)(, too)?\.", "", markdown)
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", markdown).strip()


def _begun(marker: re.Match[str]) -> str:
    """How a proof begins in a notebook."""
    return f"**{mark(marker[1], marker[2].split())}**" if marker[1] in SAID else marker[0]


def _examples(block: str) -> list[str]:
    """The examples of a block: a cell ends after each that prints, since a cell shows its last value only."""
    cells, lines = [], ""
    for example in doctest.DocTestParser().get_examples(block):
        lines += example.source
        if example.want:
            cells.append(lines.strip())
            lines = ""
    if lines and "figure = " not in lines:  # a figure has its own cell already, where it is shown
        cells.append(lines.strip())
    return cells


def _call(place: str) -> str:
    draw = FIGURES[place]
    function = draw.func if isinstance(draw, partial) else draw
    words = [repr(arg) for arg in draw.args] if isinstance(draw, partial) else []
    words += [f"{name}={value!r}" for name, value in draw.keywords.items()] if isinstance(draw, partial) else []
    call = f"{function.__name__}({', '.join(words).replace(chr(39), chr(34))})"
    return f"from {function.__module__} import {function.__name__}\n\n{call}"


def _checks(marker: str) -> str:
    kind, words = MARKER.fullmatch(marker).groups()  # type: ignore[union-attr]
    if kind == "claims":
        return f"check({', '.join(f'{chr(34)}{word}{chr(34)}' for word in words.split())})"
    return (
        "from collections import Counter\n\nfrom privet.lectures import select\n\n"
        f'Counter(check_for(claim.id)().verdict for claim in select(["{words.strip()}"]))'
    )


def _cell(number: int, kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell | {"source": source.splitlines(keepends=True)}


def main() -> None:
    """Write them all."""
    folder = DOCS / "notebooks"
    folder.mkdir(exist_ok=True)
    for page in PAGES:
        (folder / f"{Path(page).stem}.ipynb").write_text(notebook(page), encoding="utf-8")


if __name__ == "__main__":
    main()
