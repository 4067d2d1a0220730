"""The book of the lectures: every claim on one page, with what its check finds now; notebooks that run."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from privet.lectures import Check, Finding, all_claims, all_lectures, look_up
from privet.lectures.figures import how_good

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def tool(name: str) -> ModuleType:
    """A script of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool("ahead")  # which the others import
CLAIMS = tool("claims")
NOTEBOOKS = tool("notebooks")


def page(key: str) -> str:
    path: Path = DOCS / "lectures" / CLAIMS.PAGES[key]
    return path.read_text(encoding="utf-8")


def test_every_claim_is_on_the_page_of_its_lecture_once() -> None:
    """All 117 claims appear, each on one page of all the docs, once, and in the order of the notes."""
    asked = {path: CLAIMS.ids_on(path.read_text(encoding="utf-8")) for path in DOCS.rglob("*.md")}
    assert Counter(id for ids in asked.values() for id in ids) == {claim.id: 1 for claim in all_claims()}
    for lecture in all_lectures():
        ids = CLAIMS.ids_on(page(lecture.key))
        own = [claim.id for claim in all_claims() if claim.lecture == lecture]
        assert sorted(ids, key=int) == own
        assert [id for id in ids if id not in ELSEWHERE] == [id for id in own if id not in ELSEWHERE]
        assert all(ids.index(id) < ids.index(later) for id, later in ELSEWHERE.items() if id in ids)


# Claims that the notes have before others of smaller number: the introduction, the motive, the models in practice.
ELSEWHERE = {"53": "36", "63": "61", "102": "76"}
OWED = {"lemma": "proof", "bound": "proof", "calibration": "proof", "exercise": "solution", "remark": "why"}


def test_every_statement_has_its_proof_its_solution_or_its_reason() -> None:
    """Lemmas, bounds and rules are proved, exercises solved, remarks explained, after the claim and on its page."""
    owed, given = dict[str, str](), dict[str, str]()
    for lecture in all_lectures():
        text = page(lecture.key)
        marks, blocks = CLAIMS.marks_on(text), CLAIMS.ids_on(text)
        assert set(marks) <= set(blocks), lecture.key
        owed |= {c.id: OWED[c.kind] for c in all_claims() if c.lecture == lecture and c.kind in OWED}
        given |= marks
        for kind, words in CLAIMS.MARKER.findall(text):
            for id in (look_up(word).id for word in words.split() if kind in CLAIMS.SAID):
                assert text.index(f"{{{{ {kind}{words} }}}}") > text.index(asked_in(text, id)), id
    assert {id: given.get(id) for id in owed if given.get(id) not in (owed[id], "proof")} == {}


def asked_in(text: str, id: str) -> str:
    """The marker that shows a claim."""
    return next(
        f"{{{{ claims{words} }}}}"
        for kind, words in CLAIMS.MARKER.findall(text)
        if kind == "claims" and id in [look_up(word).id for word in words.split()]
    )


def test_the_table_lists_every_statement_and_figure_with_a_link_that_leads_somewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All 117 claims, their proofs and the notes' figures are in one table, and each link has its anchor."""
    monkeypatch.setattr(CLAIMS, "found", lambda id: Finding(verdict="holds", sentence="Said."))
    monkeypatch.setattr(CLAIMS, "_close", lambda claim, finding: "Close.")
    table = CLAIMS.filled((DOCS / "lectures" / "statements.md").read_text(encoding="utf-8"))
    built = {f"{Path(p).stem}.html": CLAIMS.filled(page(key)) for key, p in CLAIMS.PAGES.items()}
    links = re.findall(r'href="([\w-]+\.html)#([\w-]+)"', table)
    assert [link for link in links if f'id="{link[1]}"' not in built[link[0]]] == []
    assert {place for _, place in links} >= {f"claim-{claim.id}" for claim in all_claims()}
    marked = {f"more-{id}" for key in CLAIMS.PAGES for id in CLAIMS.marks_on(page(key))}
    assert {place for _, place in links if place.startswith("more-")} == marked
    for figure in CLAIMS.SKETCHES:
        assert f"({figure.file})" in page(figure.lecture)
    assert table.count("drawn here") == len(CLAIMS.SKETCHES)


def test_the_errata_are_all_on_one_page() -> None:
    """Each claim with an erratum is in the list, with a link; what no check can see is named below."""
    text = (DOCS / "lectures" / "errata.md").read_text(encoding="utf-8")
    listed = CLAIMS.filled(text)
    wrong = [claim.id for claim in all_claims() if claim.erratum]
    assert re.findall(r"#claim-(\d+)", listed) == wrong
    for said in ("transcription", "w_{T+1}", r"\{1, \dots, T\}", "where $=$ is printed"):
        assert said in text


def test_every_page_of_a_lecture_is_in_the_menu() -> None:
    """Whatever lies in docs/lectures is named at the foot of docs/lectures.md."""
    menu = (DOCS / "lectures.md").read_text(encoding="utf-8").partition("```{toctree}")[2]
    assert [p.stem for p in (DOCS / "lectures").glob("*.md") if f"\nlectures/{p.stem}\n" not in menu] == []


def test_a_page_shows_what_the_check_finds_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdict, sentence, erratum and command are shown; with another finding the page says that: nothing is stored."""
    text = CLAIMS.filled("{{ claims 48 64 }}")
    for said in ("fails as printed", "Asked for 1, 5 and 10", "Erratum", "privet lectures check 48", 'id="claim-64"'):
        assert said in text
    assert "{{" not in text
    assert "</p>\n\n$$\n\\sigma = 2 L \\sqrt{T" in text  # between blank lines, or it would be read as HTML
    assert "Varied: ε, δ (408 pairs), T of 50 and 400. How close: the noise is 0.538 of what is needed" in text
    assert "With <code>constant = 1.41421</code> the verdict turns." in text
    numbers = CLAIMS.found("48").numbers
    monkeypatch.setattr(
        CLAIMS, "found", lambda id: Finding(verdict="holds", sentence=f"A <mutant> of {id}.", numbers=numbers)
    )
    changed = CLAIMS.filled("{{ claims 48 }}")
    assert "A &lt;mutant&gt; of 48." in changed
    assert "fails" not in changed


def test_counts_of_verdicts_link_to_the_claims_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count says how many claims a lecture has, and links to those that do not simply hold."""
    monkeypatch.setattr(
        CLAIMS, "found", lambda id: Finding(verdict="fails" if id == "113" else "holds", sentence="Said.")
    )
    link = '<a href="{}nikolov.html#claim-113">113</a>'
    counted = f"15 claims: 14 hold, 0 hold within a range and 1 fail as printed ({link})."
    assert CLAIMS.filled("{{ verdicts nikolov }}") == counted.format("")
    assert CLAIMS.filled("{{ verdicts }}", "lectures/").count(" claims: ") == len(all_lectures())
    assert counted.format("lectures/") in CLAIMS.filled("{{ verdicts }}", "lectures/")


def test_unknown_markers_are_not_passed_over() -> None:
    """A marker of a claim that does not exist is an error; no page has braces that no marker explains."""
    with pytest.raises(ValueError, match="no such claim"):
        CLAIMS.filled("{{ claims 118 }}")
    for path in DOCS.rglob("*.md"):
        assert "{{" not in CLAIMS.MARKER.sub("", path.read_text(encoding="utf-8")), path.name


def test_sentences_of_claims_have_their_scripts_set() -> None:
    """No page shows `w_{t-1}` or `sqrt(T)` as typed, in any statement, erratum or method; names of code stay."""
    said = CLAIMS.sentence("w_{t-1} - eta g_t < e^{-y} and sqrt(T) <= sigma^2; see true_epsilon. Delta is the word.")
    assert said.startswith("w<sub>t−1</sub> - η g<sub>t</sub> &lt; e<sup>−y</sup> and √T ≤ σ<sup>2</sup>; see true_eps")
    assert said.endswith("Delta is the word.")
    assert CLAIMS.sentence("L* - L, n*m") == "L<sup>∗</sup> - L, n*m"
    texts = [text for c in all_claims() for text in (c.statement, c.erratum, CLAIMS.check_for(c.id).method)]
    texts += [CLAIMS.check_for(c.id).varies for c in all_claims()]
    assert [text for text in texts if re.search(r"\^|_[{(]|sqrt\(", CLAIMS.sentence(text))] == []


@pytest.mark.parametrize("name", NOTEBOOKS.PAGES)
def test_notebooks_are_what_the_pages_make(name: str) -> None:
    """The notebooks are up to date (if not: python docs/notebooks.py), and hold no results of some old run."""
    path = DOCS / "notebooks" / f"{Path(name).stem}.ipynb"
    assert path.read_text(encoding="utf-8") == NOTEBOOKS.notebook(name)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")


# Cells of figures, with fewer runs.
QUICK = {
    "risk_against_steps_figure()": "risk_against_steps_figure(n=200, d=5, max_steps=100, seeds=1)",
    'risk_figure("n")': 'risk_figure("n", seeds=1, runs=(60,))',
    'risk_figure("d")': 'risk_figure("d", seeds=1, runs=(100,))',
    'risk_figure("epsilon")': 'risk_figure("epsilon", seeds=1, runs=(0.1,))',
    'bracket_figure("wu")': 'bracket_figure("wu", seeds=1, grid={"n": (99,), "d": (2,), "epsilon": (1.0,)})',
}


def quick(source: str) -> str:
    for slow, fast in QUICK.items():
        source = source.replace(slow, fast)
    return source


@pytest.mark.medium
@pytest.mark.parametrize("name", NOTEBOOKS.PAGES)
def test_notebooks_run(name: str, finding: Callable[[str], Finding], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of a notebook runs, in order; where one run a method and figure is enough, more are left out."""
    monkeypatch.setattr(how_good, "_RANGE", how_good._RANGE | {"n": (50, 2000)})
    monkeypatch.setattr(Check, "__call__", lambda self: finding(self.id))  # once is enough here
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOKS.notebook(name))["cells"]:
        if cell["cell_type"] == "code":
            source = quick("".join(cell["source"])).replace("%matplotlib inline\n", "")  # of the kernel, see below
            exec(compile(source, f"{name}, {cell['id']}", "exec"), names)


def executed(book: Any, folder: Path) -> list[dict[str, Any]]:
    """Let a kernel run a notebook, write it, and open what was written: its cells."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    client = nbclient.NotebookClient(nbformat.from_dict(book), timeout=300, kernel_name="python3")
    nbformat.write(client.execute(), folder / "executed.ipynb")
    cells: list[dict[str, Any]] = json.loads((folder / "executed.ipynb").read_text(encoding="utf-8"))["cells"]
    return cells


def figures_of(name: str) -> Any:
    """The notebook of a page cut down to its first cell and those that draw, with fewer runs."""
    book = json.loads(NOTEBOOKS.notebook(name))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    book["cells"] = [code[0], *(cell for cell in code if re.search(r"_figure\(.*\)$", "".join(cell["source"])))]
    for cell in book["cells"]:
        cell["source"] = quick("".join(cell["source"]))
    return book


def shown(cell: dict[str, Any]) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell["outputs"])


@pytest.mark.medium
def test_an_executed_notebook_shows_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel runs a figure's cell, and there is a picture in the file that it leaves."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # the kernel is a process of its own
    book = figures_of("lectures/constants.md")
    start = "\n".join(NOTEBOOKS.START.splitlines()[:2])
    assert "%matplotlib inline" in start
    book["cells"] = [{**book["cells"][0], "source": start}, book["cells"][1]]
    assert shown(executed(book, tmp_path)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS.PAGES)
def test_executed_notebooks_show_all_figures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file that a kernel leaves of each notebook there are as many pictures as the page has."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    cells = executed(figures_of(name), tmp_path)[1:]
    assert len(cells) == page_figures(name)
    assert ["".join(cell["source"]) for cell in cells if not shown(cell)] == []


def page_figures(name: str) -> int:
    """How many figures a page shows."""
    return len(re.findall(r"^\[!\[", (DOCS / name).read_text(encoding="utf-8"), re.M))


def test_notebooks_say_what_the_pages_say() -> None:
    """A notebook checks every claim of its page, and keeps every heading."""
    text = page("wu")
    cells = json.loads(NOTEBOOKS.notebook("lectures/wu.md"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    words = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    checked = re.findall(r'"(\d+)"', " ".join(re.findall(r"^check\((.*)\)$", code, re.M)))
    assert [look_up(id).id for id in checked] == CLAIMS.ids_on(text)
    assert re.findall(r"^#.*$", words, re.M) == re.findall(r"^#.*$", text, re.M)
