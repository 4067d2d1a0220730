"""Formulas as MathML, made when the pages are built: no script, no network, and a browser sets them in its own colours.

Pages write `$...$` and `$$...$$`. The font is STIX Two Math, from the package ziamath, so that formulas look alike
everywhere.
"""

from __future__ import annotations

import shutil
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from sphinx.util import logging

FONT = "STIXTwoMath-Regular.ttf"
LOG = logging.getLogger(__name__)


def typeset(latex: str, *, display: bool) -> str:
    """A formula as MathML.

    Examples
    --------
    >>> typeset("x^2", display=False).startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    True
    """
    return str(convert(latex, display="block" if display else "inline"))


def inline(writer: Any, node: Any) -> None:
    """Write a formula in a line of text."""
    writer.body.append(f'<span class="math">{_or_warn(node, display=False)}</span>')
    _skip()


def block(writer: Any, node: Any) -> None:
    """Write a formula on a line of its own."""
    name = f' id="{node["ids"][0]}"' if node["ids"] else ""
    writer.body.append(f'<div class="math"{name}>{_or_warn(node, display=True)}</div>')
    _skip()


def _or_warn(node: Any, *, display: bool) -> str:
    latex = node.astext()
    try:
        return typeset(latex, display=display)
    except Exception as error:  # noqa: BLE001 - whatever the formula does to the converter, its page should be named
        LOG.warning("formula %r: %r", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"


def _skip() -> None:
    from docutils.nodes import SkipNode

    raise SkipNode


def copy_font(app: Any, error: Exception | None) -> None:
    """Put the font beside the pages."""
    spec = find_spec("ziamath")
    if error is None and app.builder.format == "html" and spec is not None and spec.origin is not None:
        found = next(Path(spec.origin).parent.rglob(FONT))
        shutil.copyfile(found, Path(app.outdir) / "_static" / FONT)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    app.connect("build-finished", copy_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
