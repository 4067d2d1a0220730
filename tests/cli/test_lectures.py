"""`privet lectures` lists, shows and checks, in words and in stable JSON."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from privet.cli import main
from privet.lectures import all_claims, check_for

DOCS = Path(__file__).parents[2] / "docs"
ROW = ["id", "lecture", "author", "title", "place", "kind", "statement", "formula", "realised_by", "erratum", "method"]
ROW += ["varies", "mutant"]


def lectures(line: str) -> Result:
    return CliRunner().invoke(main, ["lectures", *shlex.split(line)])


def told(line: str) -> Any:
    result = lectures(f"{line} --json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_has_a_line_for_every_claim() -> None:
    """One line a claim, with id, lecture, place, kind and formula; fewer if asked for fewer."""
    assert len(lectures("list").stdout.splitlines()) == 117
    assert [line.split()[0] for line in lectures("list brown_dpgd --kind calibration").stdout.splitlines()] == ["58"]


def test_show_says_all_there_is() -> None:
    """Statement, formula, what realises it, erratum, and how to run it."""
    text = " ".join(lectures("show 48").stdout.split())
    for part in ("Gavin Brown", "Claim 3.2", "sqrt(2) is missing", "privet.theory.exact_noise", "lectures check 48"):
        assert part in text


def test_check_says_the_verdict_with_its_numbers() -> None:
    """The sentence, the numbers by name if few claims are asked for, and a count."""
    result = lectures("check 1 11")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "claimed = 0.3" in result.stdout
    assert "2 checked: 2 holds, 0 holds within" in result.stdout


def test_json_is_stable() -> None:
    """Fields, their order and their values are the same each time, and the same as Python's."""
    first, again = told("check 1 11"), told("check 1 11")
    assert first == again
    assert list(first) == ["format", "claims", "full"]
    assert first["format"] == 1
    assert list(first["claims"][0]) == [*ROW, "verdict", "sentence", "numbers", "close"]
    for row in first["claims"]:
        found = check_for(row["id"])()
        assert (row["verdict"], row["sentence"], row["numbers"]) == (found.verdict, found.sentence, found.numbers)


def test_json_of_list_and_show_has_no_verdict() -> None:
    """What is stored says nothing about what is true."""
    assert list(told("show 12")["claims"][0]) == ROW
    assert [list(row) for row in told("list")["claims"]] == [ROW] * len(all_claims())


FORKED = """
import sys
from privet.cli import lectures, main
right = lectures.get_context
lectures._MANY, lectures.most_threads = 2, lambda: 2
lectures.get_context = lambda way: print(way, file=sys.stderr) or right(way)
main(["lectures", "check", "9", "12", "24", "--json"])
"""


@pytest.mark.medium
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_many_checks_run_on_all_cores_and_find_the_same() -> None:
    """In processes of their own, in the order that was asked for, what they find one after the other."""
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    run = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, env=here)
    assert run.stderr == "fork\n"
    assert json.loads(run.stdout) == told("check 9 12 24")


def test_terminals_see_how_far_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line on stderr if that is a terminal, once it takes long; stdout is the same with or without it."""
    plain = lectures("check 1 11")
    monkeypatch.setattr("privet._progress._PATIENCE", 0.0)
    monkeypatch.setattr("privet._progress._EVERY", 0.0)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: True, raising=False)
    shown = lectures("check 1 11")
    assert plain.stderr == ""
    assert "privet is checking: step 2 of 2" in shown.stderr
    assert shown.stdout == plain.stdout


@pytest.mark.parametrize("command", ["show", "check", "list"])
def test_unknown_ids_are_answered_by_near_ones(command: str) -> None:
    """One paragraph on stderr, exit code 2, nothing on stdout."""
    result = lectures(f"{command} 171")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Did you mean 117" in result.stderr
    assert "Traceback" not in result.stderr


def test_every_subcommand_and_option_is_documented() -> None:
    """docs/cli.md shows each subcommand, and docs/lectures.md every field of the JSON."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    group = main.commands["lectures"]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert f"privet lectures {name}" in page
        assert all(option in page for part in command.params for option in part.opts if option.startswith("--"))
    fields = (DOCS / "lectures.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in fields for name in [*ROW, "verdict", "sentence", "numbers", "close", "format", "full"])
