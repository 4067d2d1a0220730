"""The package as others get it: extras that exist, links that lead somewhere, versions and addresses that agree."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import privet
from privet._pages import SITE, page

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "privet"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MINORS = ["3.11", "3.12", "3.13", "3.14"]


def told() -> Iterator[tuple[Path, str]]:
    """Every text that may tell somebody what to install, or where to look."""
    for folder in ("src", "docs", "examples", "benchmarks", ".github"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".md", ".toml", ".yml", ".ipynb", ".txt"} and "_figures" not in path.parts:
                yield path, path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), ROOT / "pyproject.toml", ROOT / "CITATION.cff", ROOT / "hatch_build.py"):
        yield path, path.read_text(encoding="utf-8")


def test_extras_that_are_named_exist() -> None:
    """Every `privet[...]`, and every `.[...]` to install, names extras of pyproject.toml."""
    named = [
        (path.relative_to(ROOT).as_posix(), extra.strip())
        for path, text in told()
        for found in re.findall(r"(?:\bprivet|[\"' ]\.)\[([a-z][a-z, -]*)\]", text)
        for extra in found.split(",")
    ]
    assert len(named) > 20
    assert [(path, extra) for path, extra in named if extra not in PROJECT["optional-dependencies"]] == []


def printed(tree: ast.Module) -> Iterator[ast.Constant]:
    """The texts of a file that are no docstrings."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    silent = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, kinds) and isinstance(n.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node


def test_what_is_printed_names_pages_by_their_address() -> None:
    """In texts that can be printed a page is named by `page("docs/...")` alone, and is a file of docs/."""
    guilty, pages = [], set()
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        asked = {
            id(node.args[0])
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "page" and node.args
        }
        for text in printed(tree):
            if path.name != "_pages.py" and re.search(r"docs/|\.md\b", text.value):
                pages.add(text.value)
                if id(text) not in asked or not (ROOT / text.value).is_file():
                    guilty.append(f"{path.relative_to(ROOT)}:{text.lineno} {text.value}")
    assert guilty == []
    assert "docs/proofs/contour.md" in pages
    assert page("docs/proofs/contour.md") == f"{SITE}/proofs/contour.html"


def test_pages_that_docstrings_cite_exist() -> None:
    """A docstring or a comment of src that names a file of docs/ names one that is there."""
    cited = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 15
    assert {name for name in cited if not (ROOT / name).is_file()} == set()


def test_addresses_agree() -> None:
    """What is printed, the metadata, the citation and the templates name one home (see CONTRIBUTING.md)."""
    urls = PROJECT["urls"]
    owner = urls["Repository"].split("/")[-2]
    assert urls["Repository"] == f"https://github.com/{owner}/privet"
    assert urls["Documentation"].rstrip("/") == SITE
    assert f"`{owner}`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    homes = {
        (path.name, found)
        for path, text in told()
        for found in re.findall(r"https://(?:github\.com/[\w-]+/privet\b|[\w-]+\.github\.io/privet\b)", text)
        if not found.startswith((urls["Repository"], SITE))
    }
    assert homes == set()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"repository-code: {urls['Repository']}\n" in citation
    assert f"\nversion: {privet.__version__}\n" in citation


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """hatch_build.py, whether or not the tool that calls it is installed here."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_links_of_the_readme_survive_outside_the_repository(hook: ModuleType) -> None:
    """On a package index every link is an address, of a page or a file that exists here."""
    urls = PROJECT["urls"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = hook.outside(readme, site=urls["Documentation"], repository=urls["Repository"])
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 15
    for link in links:
        assert link.startswith("https://"), link
        target = link.partition("#")[0]
        if target.startswith(SITE):
            assert (ROOT / "docs" / target.removeprefix(SITE + "/").replace(".html", ".md")).is_file(), link
        elif target.startswith(urls["Repository"]):
            assert (ROOT / target.removeprefix(urls["Repository"] + "/blob/main/")).exists(), link
    assert (
        hook.outside("[a](docs/plan.md#b), [c](d.md)", site="S/", repository="R")
        == "[a](S/plan.html#b), [c](R/blob/main/d.md)"
    )


def test_supported_pythons_are_the_ones_that_are_tested() -> None:
    """Classifiers, the least version and the workflow name the same minor versions."""
    found = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert found == MINORS
    assert PROJECT["requires-python"] == f">={MINORS[0]}"
    assert "python: [" + ", ".join(f'"{minor}"' for minor in MINORS) + "]" in workflow
    assert "run: .ci/run" in workflow


def test_every_dependency_has_a_lower_bound_to_test() -> None:
    """.ci/lowest.py pins each dependency of every extra once, the package's own among them."""
    command = [sys.executable, str(ROOT / ".ci" / "lowest.py"), *PROJECT["optional-dependencies"], "--without", "torch"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert all(re.fullmatch(r"[\w.-]+(\[\w+\])?==[\d.]+", line) for line in lines)
    names = [re.split(r"[\[=]", line)[0] for line in lines]
    assert len(set(names)) == len(names)
    assert {"numpy", "scikit-learn", "pandas", "dask", "pytest"} <= set(names)
    assert "torch" not in names
