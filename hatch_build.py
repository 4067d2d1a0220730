"""The README as a package index shows it: links into this repository become addresses that work elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")


def outside(text: str, *, site: str, repository: str) -> str:
    """The text with each relative link made an address: of the site for a page of docs/, else of the repository."""

    def address(link: re.Match[str]) -> str:
        path, place = link[1], link[2] or ""
        page = re.fullmatch(r"docs/(.+)\.md", path)
        found = f"{site.rstrip('/')}/{page[1]}.html" if page else f"{repository}/blob/main/{path}"
        return f"]({found}{place})"

    return LINK.sub(address, text)


class Readme(MetadataHookInterface):
    """Called by hatchling when it builds the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata."""
        urls = metadata["urls"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        shown = outside(text, site=urls["Documentation"], repository=urls["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
