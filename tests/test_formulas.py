"""Formulas on the pages: TeX between dollars that converters can read, and none left in the text around it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from privet.lectures import all_claims

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TAUGHT = [page for page in PAGES if page.parent.name in ("proofs", "lectures")]

# What latex2mathml and KaTeX both know, as tried on every formula when they were written.
KNOWN = set(
    re.findall(
        r"\w+",
        """
    alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau varphi chi psi omega
    Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega varrho ell infty partial nabla
    le ge ne ll gg in notin subset to mapsto leftarrow Rightarrow propto approx equiv sim preceq mid perp top
    pm mp times div cdot ast circ otimes setminus bmod
    sum prod int frac tfrac sqrt binom left right bigl bigr Bigl Bigr lvert rvert lVert rVert Vert langle rangle
    lfloor rfloor lceil rceil log ln exp min max sup inf sin cos tan cot sinh cosh tanh det
    operatorname text mathbb tilde hat bar dots quad qquad tag begin end
    """,
    )
)
PAIRS = (("lvert", "rvert"), ("lVert", "rVert"), ("langle", "rangle"), ("left", "right"), ("begin", "end"))
CODE = re.compile(r"^\s*```.*?^\s*```|`[^`\n]*`|\]\([^)]*\)|\{\{.*?\}\}", re.M | re.S)
DISPLAY = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.M | re.S)
INLINE = re.compile(r"\$([^$]+)\$")
UNICODE = re.compile(r"[²³⁰⁴-⁻ⁿ₀-₋∑∫∂∇⟨⟩≤≥∈∞Ͱ-Ͽℓ]")


def read(text: str) -> tuple[list[str], str]:
    """The formulas of a page, and the text around them, without code; a formula on a line is one unit of that text."""
    text = CODE.sub("`", text)
    found: list[str] = DISPLAY.findall(text)
    text = DISPLAY.sub("", text)
    found += INLINE.findall(text)
    return found, INLINE.sub("§", text)


def mistakes_in(formula: str) -> list[str]:
    """What no converter, or no table, would take; nothing is converted here."""
    said = [f"not ASCII: {c}" for c in formula if not c.isascii()]
    said += [rf"unknown: \{name}" for name in re.findall(r"\\([A-Za-z]+)", formula) if name not in KNOWN]
    bare = re.sub(r"\\[{}]", "", formula)
    depth = 0
    for c in bare:
        depth += (c == "{") - (c == "}")
        if depth < 0:
            break
    said += ["braces"] if depth else []
    counts = {name: len(re.findall(rf"\\{name}(?![A-Za-z])", formula)) for pair in PAIRS for name in pair}
    said += [f"{one} and {other}" for one, other in PAIRS if counts[one] != counts[other]]
    said += ["a bar for which a table ends"] if "|" in formula else []
    said += ["a script of nothing"] if re.search(r"[\^_]\s*($|[\^_}])", bare) else []
    said += ["a line that begins a list, a heading or a quotation"] if re.search(r"\n\s*[-+*=>#]", formula) else []
    said += ["a space at an end"] if formula != formula.strip() else []
    return said


def mistakes(text: str) -> list[str]:
    """All that is wrong with the formulas of a page, or with the text around them."""
    formulas, rest = read(text)
    said = [f"{formula}: {what}" for formula in formulas for what in mistakes_in(formula)]
    said += [f"a dollar alone: {line}" for line in rest.splitlines() if "$" in line]
    said += [f"stuck to a formula: {near}" for near in re.findall(r"\w§.{0,20}|.{0,20}§\w", rest)]
    return said + [f"raw: {near}" for near in re.findall(r"[^\n]{0,20}(?:[\^_]\{|\\[A-Za-z]{2,})[^\n]{0,20}", rest)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_formulas_are_tex_and_nothing_else_is(page: Path) -> None:
    """Dollars, braces, bars and brackets match; commands are known; no TeX is outside of dollars."""
    assert mistakes(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", TAUGHT, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_formula_is_left_in_the_text_of_a_proof(page: Path) -> None:
    """Proofs and lectures have their symbols in formulas; headings, which make links, may have them plainly."""
    _, rest = read(page.read_text(encoding="utf-8"))
    left = [line for line in rest.splitlines() if not line.startswith("#") and UNICODE.search(line)]
    assert left == []


# How a plain formula of a claim spells what TeX has a command for.
SPELT = {"varepsilon": "epsilon", "varphi": "phi", "ell": "l", "infty": "infinity", "nabla": "grad", "partial": "d"}
SPELT |= {"le": "<=", "ge": ">=", "ne": "!=", "sim": "~", "to": "->", "Rightarrow": "=>", "dots": "..", "mid": "|"}
SPELT |= {"langle": "<", "rangle": ">", "lvert": "|", "rvert": "|"}
SPELT |= dict.fromkeys(("quad", "text", "operatorname", "mathbb", "hat"), "")


def spelt(formula: str) -> str:
    """A formula without brackets, scripts, commas and spaces, its commands as plain text."""
    formula = re.sub(r"\\tilde ?(\\?[A-Za-z]+)", r" \1~", formula).replace("10^{-5}", "1e-5")
    formula = re.sub(r"\\([A-Za-z]+)", lambda name: SPELT.get(name[1], name[1]), formula)
    return re.sub(r"[\s\\{}()\[\]^_,;:]", "", formula)


def test_claims_are_typeset_as_they_are_written() -> None:
    """docs/claim_formulas.toml says in TeX what each claim says in plain text, symbol by symbol."""
    typeset = tomllib.loads((ROOT / "docs" / "claim_formulas.toml").read_text(encoding="utf-8"))
    plain = {claim.id: claim.formula for claim in all_claims() if claim.formula != "none"}
    assert [f"{id}: {what}" for id in typeset for line in typeset[id] for what in mistakes_in(line)] == []
    assert {id: spelt(" ".join(lines)) for id, lines in typeset.items()} == {id: spelt(f) for id, f in plain.items()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a $x + y", "a dollar alone"),
        (r"$\frac{1}{2$", "braces"),
        (r"$\lvert x\rVert$", "lvert and rvert"),
        ("$x^$", "a script of nothing"),
        ("mass$x$", "stuck to a formula"),
        ("$x$2", "stuck to a formula"),
        ("e^{-x}", "raw"),
        (r"the \sigma of", "raw"),
        (r"$\newcommand{a}$", r"unknown: \newcommand"),
        ("$σ^2$", "not ASCII"),
        ("| $|x|$ |", "a bar"),
        ("$a\n+ b$", "begins a list"),
        ("$$\nx\n\n", "a dollar alone"),
    ],
)
def test_mistakes_are_found(text: str, said: str) -> None:
    """Each kind of slip is told, so that the silence about the pages says something."""
    assert any(said in what for what in mistakes(text))


def test_code_is_not_taken_for_formulas() -> None:
    """A dollar of a shell, and a brace in code, are left alone; a display is a formula."""
    assert mistakes("```console\n$ privet epsilon\n```\n`^{x}` and `$HOME`\n\n$$\nx^{2}\n$$\n") == []
    assert read("`a` $x$\n\n$$\ny\n$$\n")[0] == ["y", "x"]
