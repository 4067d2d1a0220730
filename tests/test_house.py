"""The house rules: imports point down, what is exported exists and is explained, what is written is true."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import privet
from privet.cli import main

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "privet"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKED = [PAGES[0], *(pytest.param(page, marks=pytest.mark.medium) for page in PAGES[1:])]

# Imports point to the left only.
ROOMS = [
    "arrays",
    "errors",
    "_html",
    "_pages",
    "_checks",
    "_independence",
    "privacy",
    "randomness",
    "accounting",
    "losses",
    "geometry",
    "sampling",
    "clipping",
    "noise",
    "data",
    "sums",
    "problems",
    "plan",
    "ledger",
    "theory",
    "solvers",
    "preprocessing",
    "engines",
    "estimators",
    "torch",
    "audit",
    "report",
    "lectures",
    "cli",
    "__main__",
]
ACCOUNTING = [
    "event_algebra",
    "events",
    "event_json",
    "numerics",
    "theorems",
    "pairs",
    "renyi_orders",
    "fourier",
    "contour",
    "interface",
    "single_step",
    "closed_forms",
    "both_directions",
    "allocation",
    "moment_bounds",
    "selection",
    "stepwise",
    "accountants",
    "attained",
    "words",
    "query",
    "privacy_profile",
    "excess",
    "calibrate",
    "compare",
    "truncated_poisson",
    "matrix_mechanism",
    "toeplitz_mechanism",
    "foreign_events",
    "filters",
    "tradeoff",
]
# Inside accounting, the rooms that have an order of their own.
INNER = {
    "theorems": ["gaussian_profile", "composition", "subsampling", "conversions"],
    "pairs": [
        "pair",
        "complex_functions",
        "line_products",
        "mixture_grid",
        "mixture_moments",
        "mixture",
        "cut_curve",
        "truncated_mixture",
        "blurred_window",
        "elementary",
        "atoms",
        "sampled",
        "fixed_size",
        "crowd",
        "selected",
        "few_outcomes",
        "floating_law",
        "floating_below",
        "lognormal_mean",
        "allocated",
        "dominating",
    ],
    "fourier": ["lattice_laws", "pilot", "composed_law", "brackets"],
    "contour": [
        "few_nodes",
        "turned_mixture",
        "fermi_tail",
        "roots",
        "layout",
        "line",
        "rough_epsilon",
        "integral",
        "big_steps",
        "rare_outcomes",
    ],
}

# Public names that carry no example of their own, and why.
WITHOUT_EXAMPLE = {
    "Bounding": "a protocol; Clip and its neighbours are the examples",
    "Kind": "a type",
    "GroupedProblem": "made by glm, which has an example",
    "LinearProblem": "made by glm, which has an example",
    "Problem": "a protocol; what glm makes is one",
    "RecordProblem": "made by per_record, which has an example",
    "Intervals": "made by confidence_intervals; docs/intervals.md has the example",
    "OneStep": "made by NewtonInference, which has an example",
    "Influence": "a type",
    "Reach": "a protocol; SecondMoments and its neighbours are the examples",
    "ReleaseRule": "a type",
    "Strategy": "a type; Banded and InverseBanded are the examples",
    "Solver": "a protocol; FixedHessian and its neighbours are the examples",
    "LearntCategories": "made by private_categories, which has an example",
    "LearntRanges": "made by private_ranges, which has an example",
    "LearntSchema": "made by learn_schema, which has an example",
    "Moments": "made by private_moments, which has an example",
    "LatticeSum": "made by record_sum and glm_sum, which have examples",
    "People": "made by split_people, which has an example",
    "Result": "made by the solvers, which have examples",
    "Sampling": "a protocol; Poisson and its neighbours are the examples",
    "Table": "made by bounded_table, which has an example",
    "TableModel": "made by fit_table, which has an example",
    "UpdateRule": "a protocol; GradientStep and its neighbours are the examples",
    "Allocated": "an event; written with .allocated",
    "Approximate": "an event; the example of Event shows how events are written",
    "Composed": "an event; written with +",
    "ExponentialMechanism": "an event; the example of Event shows how events are written",
    "FixedSizeSampled": "an event; written with .without_replacement",
    "Gaussian": "an event; the example of Event shows how events are written",
    "Laplace": "an event; the example of Event shows how events are written",
    "NegativeBinomialTrials": "an event; written with random_trials",
    "PoissonTrials": "an event; written with random_trials",
    "PoissonSampled": "an event; written with .poisson",
    "Pure": "an event; the example of Event shows how events are written",
    "RandomizedResponse": "an event; the example of Event shows how events are written",
    "DiscreteGaussian": "an event; the example of Event shows how events are written",
    "DiscreteLaplace": "an event; the example of Event shows how events are written",
    "KaryResponse": "an event; the example of Event shows how events are written",
    "Repeated": "an event; written with *",
    "Under": "an event; written with .under",
    "ZeroConcentrated": "an event; the example of Event shows how events are written",
    "errors": "a module; its docstring draws the tree of exceptions",
    "main": "the command line; docs/cli.md has the examples, and they are run below",
}
SAME_WORD: set[str] = set()
WITH_TORCH = importlib.util.find_spec("torch") is not None
NEEDS_TORCH = {"networks.md", "tutorial-torch.md"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def packages() -> list[str]:
    """Names of all packages, privet first."""
    inner = (m.name for m in pkgutil.walk_packages(privet.__path__, "privet.") if m.ispkg)
    return ["privet", *(name for name in inner if name != "privet.torch" or WITH_TORCH)]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that a file of source is made of."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[str]:
    """Dotted names of the privet modules (or of names inside them) that the file imports, wherever in it."""
    parts = ["privet", *path.relative_to(SOURCE).with_suffix("").parts]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = ".".join([*parts[: -node.level], *filter(None, [node.module])]) if node.level else node.module
            names = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "privet")


def room_of(dotted: str, order: list[str], depth: int) -> int | None:
    """Rank of the part at `depth` of a dotted name; None for what lives in the package's own __init__."""
    parts = dotted.split(".")
    return order.index(parts[depth]) if len(parts) > depth and parts[depth] in order else None


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down_the_list_of_rooms(path: Path) -> None:
    """A room imports only rooms before it; inside accounting, a file only files before it."""
    here = ".".join(["privet", *path.relative_to(SOURCE).with_suffix("").parts])
    if here == "privet.__init__":
        return
    inner = [(3, order, f"privet.accounting.{room}.") for room, order in INNER.items()]
    for depth, order, prefix in ((1, ROOMS, "privet."), (2, ACCOUNTING, "privet.accounting."), *inner):
        if not here.startswith(prefix) or here == prefix + "__init__":
            continue
        mine = room_of(here, order, depth)
        assert mine is not None, f"{here} is in no room: give it a place in the list above"
        for there in imports(path):
            if there.startswith(prefix):
                theirs = room_of(there, order, depth)
                assert theirs is not None, f"{here} imports {there}: import from the file that defines it"
                assert theirs <= mine, f"{here} imports {there}, which lives above it"


def test_only_the_command_line_reads_the_lectures() -> None:
    """The library stands without the lectures that it grew from: they use it, and nothing but `cli` uses them."""
    readers = {
        path.relative_to(SOURCE).parts[0]
        for path in SOURCE.rglob("*.py")
        if any(name.startswith("privet.lectures") for name in imports(path))
    }
    assert readers == {"lectures", "cli"}


def test_files_and_functions_are_of_a_size_to_read() -> None:
    """No file of src has over 300 lines, no function over 60 without its docstring."""
    long: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > 300:
            long.append(f"{path.relative_to(SOURCE)}: {lines} lines")
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                told = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) else 0
                size = (node.end_lineno or 0) - node.lineno + 1 - told
                if size > 60:
                    long.append(f"{path.relative_to(SOURCE)}: {node.name} has {size} lines")
    assert long == []


def test_no_two_files_have_one_name() -> None:
    """A file's name says what it holds; the few that are the same word in two rooms are named here."""
    names = Counter(path.name for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 1} <= SAME_WORD


@pytest.mark.parametrize("package", packages())
def test_public_names_exist_sorted_and_complete(package: str) -> None:
    """`__all__` is sorted, each of its names exists, and nothing of privet is exported by accident."""
    module = importlib.import_module(package)
    listed = getattr(module, "__all__", [])
    assert sorted(set(listed)) == list(listed)
    missing = [name for name in listed if not hasattr(module, name)]
    assert not missing
    ours = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("privet")
    }
    assert ours <= set(listed), "imported into the package but not in __all__"


@pytest.mark.parametrize("package", packages())
def test_public_names_are_explained_by_example(package: str) -> None:
    """Every function and class that is exported has a docstring with an example, or a reason not to."""
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", []):
        value = getattr(module, name)
        if not (callable(value) or name in WITHOUT_EXAMPLE) or getattr(value, "__module__", "") == "typing":
            continue
        doc = value.__doc__ or ""
        assert doc.strip(), f"{package}.{name} has no docstring"
        if isinstance(value, type) and issubclass(value, Exception):
            continue  # an error is raised, not called
        assert ">>>" in doc or name in WITHOUT_EXAMPLE, f"{package}.{name} has no example"


def test_every_reason_for_no_example_is_needed() -> None:
    """The list of exceptions names only public names that indeed have no example."""
    modules = [importlib.import_module(package) for package in packages()]
    public = {name: getattr(module, name) for module in modules for name in getattr(module, "__all__", [])}
    stale = [n for n in WITHOUT_EXAMPLE if n not in public or ">>>" in (public[n].__doc__ or "")]
    assert not stale


def test_pricing_needs_numpy_and_scipy_special_only() -> None:
    """`import privet.accounting` loads nothing that is heavy or optional, and `import privet` not even NumPy.

    A command that prices a run waits for no scikit-learn either, nor for what draws.
    """
    heavy = [
        "matplotlib",
        "click",
        "torch",
        "sklearn",
        "pandas",
        "mpmath",
        "scipy.optimize",
        "scipy.stats",
        "scipy.integrate",
    ]
    for module, unwanted in (
        ("privet", [*heavy, "numpy"]),
        ("privet.accounting", heavy),
        ("privet.cli", ["matplotlib", "sklearn", "pandas", "torch", "numba"]),
    ):
        code = f"import sys, {module}; print(*[m for m in {unwanted!r} if m in sys.modules])"
        loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert loaded.split() == [], f"import {module} loads {loaded}"


def test_rooms_are_there_without_importing_them() -> None:
    """`import privet` is enough for `privet.estimators`: every room that is listed is found, and is one."""
    code = "import privet, sys; print('sklearn' in sys.modules, privet.estimators.Ridge.__name__)"
    known = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=known).stdout
    assert told.split() == ["False", "Ridge"]
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"cli"}
    assert set(dir(privet)) - set(privet.__all__) == rooms
    for room in rooms - ({"torch"} if not WITH_TORCH else set()):
        assert getattr(privet, room).__name__ == f"privet.{room}"


@pytest.mark.parametrize("page", MARKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_on_the_pages_runs(page: Path) -> None:
    """Every `>>>` in the README and the docs runs and prints what the page says it prints."""
    if page.name in NEEDS_TORCH and not WITH_TORCH:
        pytest.skip("PyTorch is not installed")
    # Fences become blank lines, or the closing one would count as expected output; line numbers stay.
    text = re.sub(r"^\s*```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report: list[str] = []
    failed = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append).failed
    assert not failed, "".join(report)


def console_examples() -> dict[str, tuple[str, str]]:
    """Every `$ privet …` in a console block that needs no file and no shell: the command, and what it prints."""
    found: dict[str, tuple[str, str]] = {}
    for page in PAGES:
        for block in re.findall(r"^```(?:console|text)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for chunk in re.split(r"^\$ ", block, flags=re.M)[1:]:
                joined = re.sub(r"\\\n\s*", "", chunk)
                command, _, printed = joined.partition("\n")
                if command.startswith("privet ") and not re.search(r"--events|[|<>]", command):
                    found[f"{page.name}-{len(found)}"] = (command, printed)
    return found


@pytest.mark.parametrize(("command", "printed"), console_examples().values(), ids=console_examples())
def test_commands_on_the_pages_run(command: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `$ privet …` in a console block succeeds and prints what the page says it prints."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, shlex.split(command, comments=True)[1:])
    assert result.exit_code == 0, result.output
    if printed.strip():
        assert doctest.OutputChecker().check_output(printed, result.output, FLAGS), result.output


def test_every_command_and_option_is_documented() -> None:
    """docs/cli.md names each command of `privet` and each of its options."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert isinstance(main, click.Group)
    for name, command in main.commands.items():
        assert f"privet {name}" in page, f"docs/cli.md does not show privet {name}"
        options = [o for p in command.params if isinstance(p, click.Option) for o in p.opts if o.startswith("--")]
        missing = [option for option in options if option not in page]
        assert not missing, f"docs/cli.md does not mention {missing} of privet {name}"


def test_readme_names_the_commands_that_start_everything() -> None:
    """A newcomer finds how to install, to see it work and to test it; and each of those targets exists."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert {"demo", "test"} <= {target for target in targets if f"make {target}" in readme}
    named = re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.M)
    assert set(named) <= set(targets)
    assert "pip install" in readme


def test_changelog_has_the_version() -> None:
    """The newest entry of the changelog is the version of the package."""
    entries = re.findall(r"^## \[?(\d[^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert entries[0] == privet.__version__


def test_licence_is_declared_and_present() -> None:
    """pyproject.toml names the licence whose text is in LICENSE."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_every_test_states_its_promise() -> None:
    """Each test function has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test") and not ast.get_docstring(node)
    ]
    assert not silent


def test_ways_to_fail_are_counted_and_name_tests_that_exist() -> None:
    """docs/footguns.md has 80 numbered ways; its count is true, what is closed names a test, and each test exists."""
    page = (ROOT / "docs" / "footguns.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^\*\*(\d+)\. ", page, flags=re.M)
    ways = parts[1::2]
    assert parts[::2] == [str(number) for number in range(1, 81)]
    states = [re.findall(r"\*\*(Closed|In part|Open):\*\*", way) for way in ways]
    assert [way for way, state in zip(ways, states, strict=True) if len(state) != 1] == []
    count = Counter(state for (state,) in states)
    assert f"**{count['Closed']} closed, {count['In part']} in part, {count['Open']} open.**" in page
    named = [set(re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", way)) for way in ways]
    assert [way for way, state, tests in zip(ways, states, named, strict=True) if state != ["Open"] and not tests] == []
    missing = [
        f"{file}::{test}"
        for file, test in sorted(set().union(*named))
        if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_room_is_in_the_table_of_the_design() -> None:
    """docs/design.md has a line for each room, in the order in which imports point."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|", page, re.M)
    inside = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert told[::-1] == [room for room in ROOMS if room in inside]


def test_no_paths_of_a_machine() -> None:
    """No file that is handed over names a directory of the machine it was written on."""
    folders = [ROOT / name for name in ("src", "tests", "docs", "examples", "benchmarks", ".ci")]
    files = [p for p in ROOT.iterdir() if p.is_file() and p.name != ".git"]  # a file in a second work tree
    files += [p for f in folders for p in f.rglob("*") if p.is_file()]
    text = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".cfg", ""}
    machine = re.compile(r"(?<![\w.])/(?:work|farm|root|home|Users|tmp)/")
    guilty = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        if path.suffix in text and "__pycache__" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if machine.search(line)
    ]
    assert not guilty
