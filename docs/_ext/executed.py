"""The tutorials are executed when they are built: a page whose examples no longer print what it says is a warning."""

from __future__ import annotations

import doctest
import logging as plain_logging
import re
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from ahead import TASKS, Task
from public_names import MISSING
from sphinx.util import logging

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDS = {"tutorial-torch": "torch", "tutorial-cluster": "distributed"}
LOG = logging.getLogger(__name__)


def tutorials(docs: Path) -> set[str]:
    """The pages in the menu of the tutorials."""
    menu = re.findall(r"^```\{toctree\}\n(.*?)^```", (docs / "tutorials.md").read_text(encoding="utf-8"), re.M | re.S)
    return {line for line in "\n".join(menu).splitlines() if line and not line.startswith(":")}


def before_reading(app: Any, env: Any, docnames: list[str]) -> None:
    """Have the examples of tutorials run that are to be read; called by Sphinx."""
    for docname in sorted(tutorials(Path(app.srcdir)) & set(docnames)):
        if NEEDS.get(docname) not in MISSING:
            TASKS.append(Task(10.0, execute, Path(env.doc2path(docname)), partial(complain, docname)))


def complain(docname: str, said: str) -> None:
    """Warn of what should not have been printed."""
    if said:
        LOG.warning("an example does not print what the page says:\n%s", said, location=docname)


def execute(page: Path) -> str:
    """Run the examples of a page; what they print that the page does not say, empty if nothing."""
    text = re.sub(r"^\s*```.*$", "", page.read_text(encoding="utf-8"), flags=re.M)  # a fence would count as output
    test = doctest.DocTestParser().get_doctest(text, {}, page.stem, page.stem, 0)
    said: list[str] = []
    plain_logging.disable(plain_logging.CRITICAL)  # what libraries tell of their work is not about the page
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append)
    finally:
        plain_logging.disable(plain_logging.NOTSET)
    return "".join(said)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-before-read-docs", before_reading)
    return {"parallel_read_safe": True}
