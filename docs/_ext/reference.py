"""A page for every public name, and one for every room, written into docs/reference before Sphinx reads the pages.

What is not installed (PyTorch, say) is mocked, here and in conf.py, so that its room has its pages all the same.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docstrings import escaped, prose, rst
from public_names import Name, meant, names, rooms, said_of

MEMBERS = ("   :members:", "   :undoc-members:", "   :inherited-members:")
_MOST_PAGES = 8  # that a name's page sends on to


def first_line(name: Name) -> str:
    """What a name is, in a sentence, as reStructuredText."""
    value = name.value
    text = inspect.getdoc(value) if _explained(value) else said_of(name)
    promise = (text or "").split("\n\n")[0].replace("\n", " ").strip()
    return prose(promise, lambda code: meant(code, name.room)) if promise else ""


def _explained(value: Any) -> bool:
    kinds = (inspect.isclass, inspect.isroutine, inspect.ismodule)
    return any(kind(value) for kind in kinds) or hasattr(value, "__wrapped__")


def name_page(name: Name) -> Iterator[str]:
    """The lines of a name's page."""
    title = escaped(name.short)
    yield from (title, "=" * (len(title) + 2), "", f".. py:currentmodule:: {name.room}", "")
    value = name.value
    if inspect.ismodule(value):
        yield from (f"The module :py:mod:`{value.__name__}`: {first_line(name)}", "")
    elif name.home != name.room:
        yield from (f".. py:data:: {name.short}", "   :no-index-entry:", "")
        yield from (f"   Short for :py:obj:`{name.home}.{name.short}`, the same object: {first_line(name)}", "")
    elif inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        yield from (
            f".. {kind}:: {name.dotted}",
            *(("   :show-inheritance:",) if kind == "autoexception" else MEMBERS),
            "",
        )
    elif inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        yield from (f".. autofunction:: {name.dotted}", "")
    elif hasattr(value, "commands"):
        yield from (f".. py:function:: {name.short}()", "", "   The command ``privet``: see :doc:`/cli`.", "")
    else:
        yield from (f".. py:data:: {name.short}", f"   :value: {_shown(value)}", "")
        yield from (f"   {line}".rstrip() for line in rst(said_of(name), lambda code: meant(code, name.room)))
    found = [f":doc:`/{page}`" for page in pages_with(name.short)[:_MOST_PAGES]]
    if found:
        yield from ("", ".. rubric:: In the guides", "", " · ".join(found), "")


def _shown(value: Any) -> str:
    text = " ".join(re.sub(r"<[^>]*>|typing\.|privet\.[a-z_.]+\.", "", repr(value)).split())
    return text if len(text) <= 200 else f"{text[:200]}…"


@cache
def _words() -> dict[str, tuple[Counter[str], Counter[str]]]:
    """Of each page, how often each word is in its code, and how often in a line that imports."""
    docs = Path(__file__).parents[1]
    found = {}
    for path in docs.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"^```python\n.*?^```|`[^`\n]+`", text, re.M | re.S))
        imports = "\n".join(re.findall(r"^>>> from privet\S* import .*$", code, re.M))
        page = path.relative_to(docs).with_suffix("").as_posix()
        found[page] = (Counter(re.findall(r"\w+", code)), Counter(re.findall(r"\w+", imports)))
    return found


def pages_with(short: str) -> list[str]:
    """The pages that use a name in their examples or name it in code, those first that do so most."""
    plain = re.fullmatch("[a-z]+", short) is not None  # also a word of every day: count only where it is imported
    counts = {page: (imports if plain else code)[short] for page, (code, imports) in _words().items()}
    return sorted((page for page, count in counts.items() if count), key=lambda page: (-counts[page], page))


def room_page(room: str) -> Iterator[str]:
    """The lines of a room's page: what it is, and its names with what each promises."""
    mine = [name for name in names() if name.room == room]
    yield from (room, "=" * len(room), "", f".. py:module:: {room}", "")
    yield from rst(inspect.cleandoc(importlib.import_module(room).__doc__ or ""), lambda code: meant(code, room))
    yield from ("", ".. list-table::", "   :class: names", "   :widths: 30 70", "")
    for name in mine:
        target = f":doc:`{escaped(name.short)} </reference/{name.dotted}>`"
        yield from (f"   * - {target}", f"     - {first_line(name)}")
    yield from ("", ".. toctree::", "   :hidden:", "", *(f"   {name.short} <{name.dotted}>" for name in mine), "")


def write_all(app: Any) -> None:
    """Write the pages, and remove those of names that are gone; called by Sphinx."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    pages = {f"{name.dotted}.rst": name_page(name) for name in names()}
    pages |= {f"{room}.rst": room_page(room) for room in rooms()}
    pages["privet.errors.rst"] = room_page("privet.errors")  # a name of privet, and a room
    for path in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        path.unlink()
    for file, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_all)
    return {"parallel_read_safe": True}
