"""The house's docstrings as reStructuredText: plain text stays as it was written, formulas get their indices.

In a docstring `x` is code, docs/proofs/sums.md a page, w_0 and e^(−B) are formulas, w* is a point; stars that do not
enclose words are stars. "Promise:", "Theorem:" and their like begin a paragraph. Parameters are a list of terms, each
with what the text says of it; types are in the signature.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from public_names import meant, rooms

LABEL = re.compile(r"(Promise|Theorem|Theorems|Edges|Cost|Unit|Lecture|Assumes|Source|Utility): ?")
LABELLED = re.compile(rf"\n(?={LABEL.pattern.replace('(', '(?:')})")
LISTS = ("Parameters", "Attributes", "Returns")
TOKEN = re.compile(
    r"(?P<role>:\w+:`[^`]+`)|(?P<code>``[^`]+``|`[^`]+`)|(?P<url>https?://[^\s)>,]+)|(?P<page>docs/(?P<doc>[\w/-]+)\.md)"
    r"|(?P<strong>\*\*[^*\s][^*]*\*\*)|(?P<words>(?<![\w*])\*[^*\s](?:[^*]*[^*\s])?\*(?!\w))"
    r"|(?P<point>(?<=[^\W\d_])\*(?=[\s,;:.)|_\]²]|$))"
    r"|(?P<base>(?<!\w)[^\W\d_]|[|‖)∗])_(?P<low>\{[^}]*\}|[^\W_]{1,2}(?!\w))"
    r"|(?<=\S)\^(?P<high>\{[^}]*\}|\([^()]*\)|[−-]?\w+)"
)


def escaped(text: str) -> str:
    """Text in which reStructuredText finds nothing to do."""
    return re.sub(r"([\\*|`_])", r"\\\1", text)


def prose(text: str, resolve: Callable[[str], str | None] = meant) -> str:
    r"""A paragraph of a docstring as reStructuredText.

    Examples
    --------
    >>> prose("|w_0 − w*| in *l2*; see `clip` and docs/plan.md", lambda code: None)
    '\\|w\\ :sub:`0`\\  − w\\ :sup:`∗`\\ \\| in *l2*; see ``clip`` and :doc:`docs/plan.md </plan>`'
    """
    parts, end = [], 0
    for match in TOKEN.finditer(text):
        parts += [escaped(text[end : match.start()]), _token(match, resolve)]
        end = match.end()
    found = "".join([*parts, escaped(text[end:])]).strip()
    return re.sub(r"^(?=[-+•#=~:.>\"'(]|\w+[.)] )", r"\\", found)  # no list, no field, no heading begins by accident


def _token(match: re.Match[str], resolve: Callable[[str], str | None]) -> str:
    kind = match.lastgroup
    text = match[0]
    if match["code"]:
        code = text.strip("`").strip()
        target = resolve(code)
        return f":py:obj:`{code} <{target}>`" if target else f"``{code}``"
    if match["page"]:
        return f":doc:`{text} </{match['doc']}>`"
    if match["point"]:
        return r"\ :sup:`∗`\ "
    if match["low"]:
        return rf"{escaped(match['base'])}\ :sub:`{_inside(match['low'])}`\ "
    if match["high"]:
        return rf"\ :sup:`{_inside(match['high'])}`\ "
    return text if kind in ("role", "url", "strong", "words") else escaped(text)


def _inside(group: str) -> str:
    bare = group[1:-1] if group[0] in "{(" else group
    return escaped(re.sub(r"[_^]\{?|\}", "", bare)).replace(r"\`", "")


def rst(text: str, resolve: Callable[[str], str | None] = meant) -> list[str]:
    """A whole docstring as lines of reStructuredText."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text.expandtabs(), flags=re.M)
    lines = list(_paragraphs(parts[0], resolve))
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines += [f".. rubric:: {title}", ""]
        lines += (_terms if title in LISTS else _paragraphs)(body, resolve)
    return lines


def _paragraphs(text: str, resolve: Callable[[str], str | None]) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if lines[0].lstrip().startswith(">>>"):
            yield from (*inspect.cleandoc(block).split("\n"), "")
        elif lines[0].startswith("    ") or re.search("^[├└│]", block, re.M):
            yield from ("::", "", *(f"    {line}" for line in lines), "")
        elif block.strip():
            for paragraph in re.split(LABELLED, block):
                label = LABEL.match(paragraph)
                said = f"**{label[1]}.** " if label else ""
                rest = " ".join(paragraph[label.end() if label else 0 :].split())
                yield from (said + prose(rest, resolve), "")


def _terms(text: str, resolve: Callable[[str], str | None]) -> Iterator[str]:
    for entry in re.split(r"\n(?=\S)", text.strip("\n")):
        head, colon, said = entry.partition(" :")
        terms = ", ".join(f"``{word.strip()}``" for word in head.replace("\n", " ").split(",") if word.strip())
        if not colon:
            yield from (prose(" ".join(entry.split()), resolve), "")
            continue
        yield terms
        choices = re.split(r'\n\s+(?=")', said) if not said.split("\n")[0].strip() else [said]
        for choice in choices:
            if choice.strip():
                yield from (f"    {prose(' '.join(choice.split()), resolve)}", "")
    yield ""


def room_of(dotted: str) -> str:
    """The room that a dotted name lies in, for what its docstring means by a name of its own room."""
    return max((room for room in rooms() if f"{dotted}.".startswith(f"{room}.")), key=len, default="privet")


def parameters(value: Any) -> frozenset[str]:
    """The words that are a function's own parameters."""
    try:
        return frozenset(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return frozenset()


def on_docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring; called by Sphinx for every one."""
    if what != "module":
        home, own = room_of(name), parameters(value)
        lines[:] = rst("\n".join(lines), lambda code: meant(code, home, own))


def on_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what others wrote, and fields that say nothing beyond the signature; called by Sphinx."""
    inner = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
    if name.startswith("_") or not str(getattr(inner, "__module__", "privet")).startswith("privet"):
        return True
    callable_ = inspect.isroutine(inner) or isinstance(value, property)
    return None if callable_ else True


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", on_docstring)
    app.connect("autodoc-skip-member", on_member)
    return {"parallel_read_safe": True}
