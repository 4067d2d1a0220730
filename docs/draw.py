"""Draw the figures of the pages when the pages are built: mkdocs calls `on_files`, see mkdocs.yml."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import matplotlib as mpl
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from privet.report import constants_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Where a page finds the figure, and what draws it.
FIGURES: dict[str, Callable[[], Figure]] = {
    "lectures/constants-1.svg": constants_figure,
    "lectures/constants-1000.svg": partial(constants_figure, steps=1000),
}


def svg(figure: Figure) -> bytes:
    """The figure as SVG, letters as outlines, the same bytes each time."""
    with mpl.rc_context({"svg.hashsalt": "privet", "svg.fonttype": "path"}), io.BytesIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the figures to the files of the site; called by mkdocs."""
    for place, draw in FIGURES.items():
        files.append(File.generated(config, place, content=svg(draw())))
    return files
