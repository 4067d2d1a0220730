"""Formulas as MathML, made when the pages are built: no script, no network, and a browser sets them in its own colours.

Pages write `$...$` and `$$...$$`. The font is STIX Two Math, from the package ziamath, so that formulas look alike
everywhere.
"""

from __future__ import annotations

import re
import shutil
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from sphinx.util import logging

FONT = "STIXTwoMath-Regular.ttf"
LOG = logging.getLogger(__name__)


# Left and right bars are told apart by letters of nobody's, as latex2mathml writes both alike.
BARS = {"lvert": "\ue000", "rvert": "\ue001", "lVert": "\ue002", "rVert": "\ue003"}
BAR = re.compile(r"(?<!left)(?<!right)(?<![bB]igl)(?<![bB]igr)\\([lr][vV]ert)(?![A-Za-z])")
# What latex2mathml writes, and what a browser sets as TeX would.
BETTER = {
    f"<mi>{BARS['lvert']}</mi>": '<mo form="prefix" stretchy="false">|</mo>',
    f"<mi>{BARS['rvert']}</mi>": '<mo form="postfix" stretchy="false">|</mo>',
    f"<mi>{BARS['lVert']}</mi>": '<mo form="prefix" stretchy="false">‖</mo>',
    f"<mi>{BARS['rVert']}</mi>": '<mo form="postfix" stretchy="false">‖</mo>',
    "<mo>&#x0221E;</mo>": "<mi>∞</mi>",
    "<mo>&#x0002F;</mo>": '<mo lspace="0" rspace="0">/</mo>',
    "<mi>:</mi><mo>&#x0003D;</mo>": "<mo>≔</mo>",
    "<mi>:</mi>": '<mo lspace="0">:</mo>',
    "<mi>;</mi>": '<mo separator="true">;</mo>',
}


def typeset(latex: str, *, display: bool) -> str:
    """A formula as MathML.

    Examples
    --------
    >>> typeset("x^2", display=False).startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    True
    """
    found = str(convert(BAR.sub(lambda bar: BARS[bar[1]], latex), display="block" if display else "inline"))
    for written, better in BETTER.items():
        found = found.replace(written, better)
    return found


def inline(writer: Any, node: Any) -> None:
    """Write a formula in a line of text."""
    writer.body.append(f'<span class="math">{_or_warn(node, display=False)}</span>')
    _skip()


def block(writer: Any, node: Any) -> None:
    """Write a formula on a line of its own."""
    name = f' id="{node["ids"][0]}"' if node["ids"] else ""
    tag = re.search(r"\\tag\{([^}]*)\}", node.astext())
    number = f'<span class="number">({tag[1].replace("*", "∗")})</span>' if tag else ""
    writer.body.append(f'<div class="math"{name}>{_or_warn(node, display=True)}{number}</div>')
    _skip()


def _or_warn(node: Any, *, display: bool) -> str:
    latex = re.sub(r"\\tag\{[^}]*\}", "", node.astext()).strip()
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
