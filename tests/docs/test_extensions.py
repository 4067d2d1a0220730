"""What makes the pages: every page is in the menu, every public name gets one, docstrings read as they were written."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The extension that writes the reference; it and what it imports lie in docs/_ext, in no package."""
    if not importlib.util.find_spec("torch"):
        pytest.importorskip("sphinx", reason="without PyTorch, its names are imitated by Sphinx")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "_ext"))
        return importlib.import_module("reference")


def menu(page: Path) -> list[Path]:
    """The pages that a page's toctrees name."""
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    entries = [line.strip() for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    return [page.parent / (re.sub(r".*<(.*)>", r"\1", entry) + ".md") for entry in entries]


def test_every_page_is_in_the_menu_once() -> None:
    """From the first page every other is reached by one path of menus; what is written when they are built aside."""
    found: list[Path] = []
    open_ = [DOCS / "index.md"]
    while open_:
        page = open_.pop()
        found.append(page)
        open_ += [entry for entry in menu(page) if entry.is_file()]
    assert {page: count for page, count in Counter(found).items() if count > 1} == {}
    assert set(DOCS.rglob("*.md")) - set(found) == set()


def test_every_room_is_in_the_menu(extension: ModuleType) -> None:
    """The page of the reference names every room that exports something, and nothing else."""
    named = {entry.stem for entry in menu(DOCS / "reference.md") if entry.parent.name == "reference"}
    assert named == set(extension.rooms())


def test_every_public_name_gets_a_page_that_explains_it(extension: ModuleType) -> None:
    """A page documents its name by autodoc, by its own text, or sends on to the same object elsewhere."""
    names = extension.names()
    assert len({name.dotted for name in names}) == len(names)
    for name in names:
        page = "\n".join(extension.name_page(name))
        made = rf"^\.\. (auto\w+:: {re.escape(name.room)}\.|py:(?:data|function):: ){re.escape(name.short)}\b"
        assert re.search(made, page, re.M) or ":py:mod:`" in page, page
        assert name.home == name.room or f":py:obj:`{name.home}.{name.short}`" in page


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("sum of |w_0 − w*|", r"sum of \|w\ :sub:`0`\  − w\ :sup:`∗`\ \|"),
        ("c_{t−j} and e^(−B)", r"c\ :sub:`t−j`\  and e\ :sup:`−B`\ "),
        ("beside the *sum* and a**b", r"beside the *sum* and a\*\*b"),
        ("`clip` of foo_bar_", r"``clip`` of foo\_bar\_"),
        ("see docs/proofs/sums.md, section 4", "see :doc:`docs/proofs/sums.md </proofs/sums>`, section 4"),
        ("- not a list", r"\- not a list"),
    ],
)
def test_plain_text_stays_as_it_was_written(extension: ModuleType, written: str, made: str) -> None:
    """Indices are set, stars and underscores survive, a page becomes a link."""
    assert extension.prose(written, lambda code: None) == made.strip()


def test_parameters_become_terms(extension: ModuleType) -> None:
    """Names that share a text stay together, and a text that goes on over lines is one."""
    text = 'Promise.\n\nParameters\n----------\na, b : one\n    and two\nc :\n    "x": this;\n    "y": that\n'
    lines = [line for line in extension.rst(text, lambda code: None) if line]
    assert lines == [
        "Promise.",
        ".. rubric:: Parameters",
        "``a``, ``b``",
        "    one and two",
        "``c``",
        '    \\"x": this;',
        '    \\"y": that',
    ]


def test_code_in_a_text_means_a_public_name_or_nothing(extension: ModuleType) -> None:
    """Long names are linked anywhere, words of every day in their own room only, a function's own parameters never."""
    assert extension.meant("StandardScaler") is None
    assert extension.meant("LogisticRegression(epsilon=1)") == "privet.estimators.LogisticRegression"
    assert extension.meant("l2_ball") == "privet.geometry.l2_ball"
    assert extension.meant("epsilon") is None
    assert extension.meant("guarantee", "privet.accounting") == "privet.accounting.guarantee"
    assert extension.meant("delta", "privet.accounting", frozenset({"delta"})) is None


def test_formulas_are_set_as_tex_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars open and close, a slash and infinity take no room of an operator; what is unknown names its page."""
    pytest.importorskip("sphinx")
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    typeset = importlib.import_module("mathml").typeset
    found = typeset(r"\lvert x\rvert < \infty/2", display=False)
    assert found.count('form="prefix"') == found.count('form="postfix"') == 1
    assert "<mi>∞</mi>" in found
    assert '<mo lspace="0" rspace="0">/</mo>' in found
    assert 'display="block"' in typeset(r"\sum_i x_i", display=True)
