"""The tutorials are executed when they are built: a page whose examples no longer print what it says is a warning."""

from __future__ import annotations

import doctest
import re
import warnings
from pathlib import Path
from typing import Any

from public_names import MISSING
from sphinx.util import logging

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {"tutorial-torch": "torch", "tutorial-cluster": "distributed"}
LOG = logging.getLogger(__name__)


def tutorials(docs: Path) -> set[str]:
    """The pages in the menu of the tutorials."""
    menu = re.findall(r"^```\{toctree\}\n(.*?)^```", (docs / "tutorials.md").read_text(encoding="utf-8"), re.M | re.S)
    return {line for line in "\n".join(menu).splitlines() if line and not line.startswith(":")}


def on_read(app: Any, docname: str, source: list[str]) -> None:
    """Run the examples of a tutorial; called by Sphinx."""
    if docname not in tutorials(Path(app.srcdir)) or NEEDS.get(docname) in MISSING:
        return
    text = re.sub(r"^\s*```.*$", "", source[0], flags=re.M)  # a closing fence would count as expected output
    test = doctest.DocTestParser().get_doctest(text, {}, docname, docname, 0)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append)
    if said:
        LOG.warning("an example does not print what the page says:\n%s", "".join(said), location=docname)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", on_read, priority=400)  # before the page is changed
    return {"parallel_read_safe": True}
