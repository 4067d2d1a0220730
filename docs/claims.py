"""Put live claims into the pages of the lectures when they are built; an extension of Sphinx, see conf.py.

A page says `{{ claims 23 24 }}` where the claims of those ids belong, and `{{ verdicts wu }}` where the count of a
lecture's verdicts does (of all five without a key). `{{ proof 23 }}`, `{{ solution 25 }}` and `{{ why 28 }}` begin the
paragraph that proves, solves or explains. `{{ statements wu }}` lists all of it with links, `{{ errata wu }}` what is
wrong in print. Every check runs once a build; no verdict is stored.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from ahead import TASKS, Task  # beside this file, in no package

from privet.lectures import Claim, Finding, all_claims, all_lectures, check_for, look_up, select

_PARTS = 6  # that the checks are run in
MARKER = re.compile(r"\{\{ (claims|verdicts|proof|solution|why|statements|errata)((?: \w+)*) \}\}")
SAID = {"proof": "Proof of", "solution": "Solution of", "why": "On"}
WORDS = {"holds": "holds", "holds_within": "holds within a range", "fails": "fails as printed"}
# The page of each lecture, under docs/lectures.
PAGES = {
    "wu": "wu.md",
    "brown_glm": "brown-glm.md",
    "brown_dpgd": "brown-clipping.md",
    "razaviyayn": "razaviyayn.md",
    "nikolov": "nikolov.md",
}


class Sketch(NamedTuple):
    """A figure of the notes: where it is there, what it shows, and where it is here."""

    lecture: str
    place: str
    shows: str
    file: str
    near: str


# Pictures did not survive the transcription; these are drawn from the words around them.
SKETCHES = (
    Sketch("wu", "Proof of Lemma 2.2", "the angle at a projection", "wu-projection.svg", "more-24"),
    Sketch("wu", "Proof of Claim 2.4", "the triangle of a step", "wu-triangle.svg", "more-26"),
    Sketch("razaviyayn", "Applying DP to practical models", "where to put privacy", "razaviyayn-where.svg", "more-102"),
    Sketch("razaviyayn", "Limitations of objective perturbation", "a tilt", "razaviyayn-median.svg", "more-82"),
    Sketch("nikolov", "Linear separators", "realisable and agnostic", "nikolov-separators.svg", "claim-106"),
    Sketch("nikolov", "Logistic regression, sensitivity", "the sigmoid", "nikolov-logistic.svg", "more-108"),
    Sketch("nikolov", "Convex loss", "convex, and not", "nikolov-convex.svg", "more-109"),
    Sketch("nikolov", "Gradient descent", "a path in the ball", "nikolov-ball.svg", "claim-110"),
)
FORMULAS: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).parent / "claim_formulas.toml").read_text(encoding="utf-8")
)
# What sentences of claims spell out.
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ"}
GREEK |= {"lambda": "λ", "mu": "μ", "rho": "ρ", "sigma": "σ"}
SCRIPT = r"(?:\{([^{}]*)\}|\(([^()]*)\)|(-?[A-Za-zα-ω0-9.]*[A-Za-zα-ω0-9]'*))(?!_)"


def ids_on(page: str) -> list[str]:
    """The ids of the claims that a page's markers ask for, in its order."""
    return [look_up(word).id for kind, words in MARKER.findall(page) if kind == "claims" for word in words.split()]


def marks_on(page: str) -> dict[str, str]:
    """What a page has to say on a claim beyond its block, by id: proof, solution or why."""
    return {look_up(word).id: kind for kind, words in MARKER.findall(page) if kind in SAID for word in words.split()}


def mark(kind: str, ids: list[str]) -> str:
    """The words that begin a proof, a solution or a reason."""
    return f"{SAID[kind]} {' and '.join(ids)}."


def sentence(text: str) -> str:
    """A sentence of a claim as HTML: its plain-text mathematics with letters, roots and scripts as one writes them."""
    text = re.sub(rf"(?<![A-Za-z_])({'|'.join(GREEK)})(?![A-Za-z]|_[a-z]{{2}})", lambda name: GREEK[name[1]], text)
    text = re.sub(r"(?<=[a-z] )Delta\b", "Δ", text)  # where a sentence begins with it, it is the word
    text = re.sub(r"\bsqrt\((\w+)\)", r"√\1", text).replace("sqrt(", "√(").replace("<=", "≤").replace(">=", "≥")
    text = escape(text, quote=False)
    text = re.sub(r"(?<=[A-Za-zα-ω])\*(?=[\s,;:.)&]|$)", "<sup>∗</sup>", text)
    for tag, mark in (("sub", r"(?<![A-Za-z_])([A-Za-zα-ω]~?)_"), ("sup", r"()\^")):
        text = re.sub(mark + SCRIPT, lambda m, tag=tag: f"{m[1]}<{tag}>{_minus(m[2] or m[3] or m[4])}</{tag}>", text)
    return text


def _minus(script: str) -> str:
    return script.replace("-", "−")


FOUND: dict[str, Finding] = {}


def found(id: str) -> Finding:
    """What the check of a claim finds, once a build."""
    if id not in FOUND:
        FOUND.update(checked([id]))
    return FOUND[id]


def checked(ids: list[str]) -> dict[str, Finding]:
    """What the checks of some claims find."""
    return {id: check_for(id)() for id in ids}


def block(claim: Claim) -> str:
    """A claim as HTML around its formulas: what it says, what was found, the erratum, and the code that made it."""
    finding, words = found(claim.id), WORDS[found(claim.id).verdict]
    lines = [
        f'<div class="claim {finding.verdict}" id="claim-{claim.id}">',
        f'<p><strong>{claim.id} · {escape(claim.place)}</strong> <span class="verdict">{words}</span></p>',
        f"<p>{sentence(claim.statement)}</p>",
        "".join(f"\n$$\n{formula}\n$$\n" for formula in FORMULAS.get(claim.id, [])),
        f'<p class="found"><strong>Found:</strong> {sentence(finding.sentence)}</p>',
        f'<p class="erratum"><strong>Erratum:</strong> {sentence(claim.erratum)}</p>' if claim.erratum else "",
        f"<details><summary>How it was checked</summary><p>{sentence(check_for(claim.id).method)}</p>",
        f"<p>Varied: {sentence(check_for(claim.id).varies)}. {_close(claim, finding)}</p>",
        f"<p><code>privet lectures check {claim.id}</code></p>",
        f"<p>{', '.join(f'<code>{escape(name)}</code>' for name in claim.realised_by)}</p>",
        "</details></div>",
    ]
    return "\n".join(line for line in lines if line)


def _close(claim: Claim, finding: Finding) -> str:
    """How close the check came, and the mutant of the claim that turns it round."""
    known = check_for(claim.id)
    mutant = ", ".join(f"<code>{name} = {value:g}</code>" for name, value in known.mutant.items())
    return f"How close: {sentence(known.close(finding))}. With {mutant} the verdict turns."


def verdicts(key: str, folder: str) -> str:
    """How many claims of a lecture hold, hold within a range and fail, the last with links."""
    chosen = select([key])
    count = Counter(found(claim.id).verdict for claim in chosen)
    said = [f"{len(chosen)} claims: {count['holds']} hold"]
    for verdict, word in (("holds_within", "hold within a range"), ("fails", "fail as printed")):
        links = [
            f'<a href="{folder}{Path(PAGES[key]).stem}.html#claim-{claim.id}">{claim.id}</a>'
            for claim in chosen
            if found(claim.id).verdict == verdict
        ]
        said.append(f"{count[verdict]} {word}" + (f" ({', '.join(links)})" if links else ""))
    return ", ".join(said[:-1]) + f" and {said[-1]}."


def statements(key: str) -> str:
    """A lecture's statements, proofs, exercises and figures as a table, each with a link to its place."""
    page = PAGES[key]
    marks = marks_on((Path(__file__).parent / "lectures" / page).read_text(encoding="utf-8"))
    rows = []
    for claim in select([key]):
        more = marks.get(claim.id, "")
        link = f'<a href="{Path(page).stem}.html#more-{claim.id}">{more}</a>' if more else ""
        own = f'<a href="{Path(page).stem}.html#claim-{claim.id}">{claim.id}</a>'
        rows.append((own, escape(claim.place), claim.kind, link, WORDS[found(claim.id).verdict]))
    for figure in (figure for figure in SKETCHES if figure.lecture == key):
        own = f'<a href="{Path(page).stem}.html#{figure.near}">figure</a>'
        rows.append((own, f"{figure.place}: {figure.shows}", "figure", "", "drawn here"))
    return _table(("", "place in the notes", "kind", "here", "verdict"), rows)


def errata(key: str) -> str:
    """What is wrong in a lecture's print, with links to the claims."""
    stem = Path(PAGES[key]).stem
    rows = [
        (f'<a href="{stem}.html#claim-{claim.id}">{claim.id}</a>', escape(claim.place), sentence(claim.erratum))
        for claim in select([key])
        if claim.erratum
    ]
    return _table(("", "place in the notes", "what is meant, or true"), rows)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    top = "".join(f"<th>{head}</th>" for head in heads)
    return "\n".join([f'<table class="table">\n<thead><tr>{top}</tr></thead>\n<tbody>', *lines, "</tbody></table>"])


def filled(page: str, folder: str = "") -> str:
    """A page with its markers replaced; `folder` leads from it to the pages of the lectures."""

    def answer(match: re.Match[str]) -> str:
        kind, words = match[1], match[2].split()
        if kind == "claims":
            return "\n\n".join(block(look_up(word)) for word in words)
        if kind in SAID:
            ids = [look_up(word).id for word in words]
            anchors = "".join(f'<span id="more-{id}"></span>' for id in ids)
            return f"{anchors}<strong>{mark(kind, ids)}</strong>"
        if kind in ("statements", "errata"):
            return "\n".join((statements if kind == "statements" else errata)(word) for word in words)
        if words:
            return "\n".join(verdicts(word, folder) for word in words)
        return "\n".join(
            f"- [{lecture}]({folder}{PAGES[lecture.key]}): {verdicts(lecture.key, folder)}"
            for lecture in all_lectures()
        )

    return MARKER.sub(answer, page)


def on_read(app: Any, docname: str, source: list[str]) -> None:
    """Fill a page; called by Sphinx."""
    source[0] = filled(source[0], "" if docname.startswith("lectures/") else "lectures/")


def before_reading(app: Any, env: Any, docnames: list[str]) -> None:
    """Have the checks run once, before Sphinx shares the pages out among processes."""
    if any(docname.startswith("lectures") for docname in docnames):
        ids = [claim.id for claim in all_claims()]
        TASKS.extend(Task(2.0, checked, ids[first::_PARTS], FOUND.update) for first in range(_PARTS))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-before-read-docs", before_reading)
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True}
